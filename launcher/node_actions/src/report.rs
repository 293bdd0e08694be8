//! What pmmpi did and did not do, as values and as text.

use crate::decide::Skip;
use crate::error::one_line;
use crate::limit::OverLimit;
use crate::one_change::Act;
use crate::scontrol::command_line;
use std::fmt;

/// The result of [`run`](crate::run).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ActionsReport {
    /// Acts for which an earlier pmmpi wrote no outcome, usually because it was killed.
    pub recovered: Vec<Recovered>,
    /// Set if more nodes were found slow than pmmpi may mark; then it marked none.
    pub over_limit: Option<OverLimit>,
    /// One for each node: first the nodes that passed, then the slow nodes.
    pub decisions: Vec<Decision>,
    /// Why pmmpi stopped before the last node.
    pub stopped: Option<String>,
}

/// An act that an earlier pmmpi began, and what this run found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The node.
    pub node: String,
    /// What the earlier pmmpi wanted.
    pub act: Act,
    /// When it began, in UTC.
    pub time: String,
    /// What the node is like now.
    pub found: String,
}

/// What pmmpi did with a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// In a dry run: pmmpi would run scontrol with these arguments.
    WouldRun {
        /// The node.
        node: String,
        /// The arguments of scontrol.
        arguments: Vec<String>,
    },
    /// The node changed as wanted.
    Done {
        /// The node.
        node: String,
        /// What pmmpi did.
        act: Act,
    },
    /// pmmpi did not change the node.
    Skipped {
        /// The node.
        node: String,
        /// Why.
        why: Skip,
    },
    /// The act failed, or pmmpi cannot tell.
    Failed {
        /// The node.
        node: String,
        /// What pmmpi tried.
        act: Act,
        /// What happened.
        why: String,
    },
}

impl ActionsReport {
    /// True if something needs an operator: a failed act, a node that pmmpi cannot find or read, a limit that was
    /// exceeded, or a stop.
    pub fn needs_attention(&self) -> bool {
        let is_failure = |decision: &Decision| {
            let unread = matches!(decision, Decision::Skipped { why: Skip::Unreadable(_), .. });
            // The node passed, and somebody has to remove its mark.
            let stays = matches!(
                decision,
                Decision::Skipped {
                    why: Skip::NotLogged | Skip::Changed { .. } | Skip::NotMeasured { .. },
                    ..
                }
            );
            unread || stays || decision.is_without_node() || matches!(decision, Decision::Failed { .. })
        };
        self.over_limit.is_some() || self.stopped.is_some() || self.decisions.iter().any(is_failure)
    }

    /// True if there are nodes to change, and pmmpi found none of them in Slurm.
    pub fn is_without_nodes(&self) -> bool {
        !self.decisions.is_empty() && self.decisions.iter().all(Decision::is_without_node)
    }
}

impl Decision {
    /// True if pmmpi cannot tell which node of Slurm this is.
    fn is_without_node(&self) -> bool {
        let Decision::Skipped { why, .. } = self else { return false };
        matches!(why, Skip::BadName | Skip::Unknown | Skip::Ambiguous(_) | Skip::OtherHost { .. })
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Decision::WouldRun { node, arguments } => {
                write!(f, "{node}: would run: {}", one_line(&command_line(arguments)))
            }
            Decision::Done { node, act } => write!(f, "{node}: done: {act}"),
            Decision::Skipped { node, why } => write!(f, "{}: not changed: {why}", one_line(node)),
            Decision::Failed { node, act, why } => write!(f, "{node}: FAILED: {act}: {}", one_line(why)),
        }
    }
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Recovered { node, act, time, found } = self;
        write!(
            f,
            "{node}: an earlier pmmpi began a change ({act}; {time} UTC), but wrote no outcome. Now: {}",
            one_line(found)
        )
    }
}

impl fmt::Display for ActionsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.recovered.iter().try_for_each(|recovered| writeln!(f, "{recovered}"))?;
        self.decisions.iter().try_for_each(|decision| writeln!(f, "{decision}"))?;
        if let Some(over) = &self.over_limit {
            writeln!(f, "{over}")?;
        }
        if let Some(why) = &self.stopped {
            writeln!(f, "pmmpi stopped and changed no more nodes: {why}")?;
        }
        Ok(())
    }
}
