//! Decides whether pmmpi may change a node. The decision depends only on the wish with what a gate measured, the kind of
//! mark and the state of the node.

use crate::cause::MarkCause;
use crate::error::one_line;
use crate::gate_cover::GateCover;
use crate::node_state::{NodeState, Service};
use crate::one_change::Act;
use crate::settings::Action;
use crate::{comment, features};
use std::fmt;

/// What the caller wants for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Mark it, because of this finding.
    Mark(MarkCause),
    /// Remove the mark, because the node passed.
    Unmark(GateCover),
}

/// Why pmmpi leaves a node as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skip {
    /// The name is not the name of a single host.
    BadName,
    /// The node was found slow and also passed.
    Contradiction,
    /// More nodes were found slow than pmmpi may mark.
    OverLimit,
    /// Slurm has no node of this name.
    Unknown,
    /// The name may mean any of these nodes.
    Ambiguous(String),
    /// Slurm's node of this name is another host.
    OtherHost {
        /// The name of Slurm's node.
        node: String,
        /// The name of its host.
        host_name: String,
    },
    /// pmmpi cannot read the node's state, with the reason.
    Unreadable(String),
    /// Slurm or somebody else took the node out of service. The text has the node's state and reason.
    OutOfService(String),
    /// Somebody else set this reason.
    OthersReason(String),
    /// The node has pmmpi's mark.
    AlreadyMarked,
    /// The node passed and has no mark.
    NotMarked,
    /// The log has no mark of this kind on this node.
    NotLogged,
    /// Somebody changed the text of the mark.
    Changed {
        /// What Slurm shows.
        found: String,
        /// The reason in the log.
        logged: String,
    },
    /// The gate did not measure all that was found on the node.
    NotMeasured {
        /// The findings that it did not measure.
        reasons: String,
        /// What a gate must run to measure all findings, in words.
        needed: Vec<String>,
    },
    /// scontrol may not keep the comment of others exactly.
    OddComment,
    /// pmmpi stopped before it came to this node, with the reason.
    Stopped(String),
}

/// The act that fulfils a wish on a node in this state.
pub(crate) fn decide(action: &Action, wish: &Wish, node: &NodeState) -> Result<Act, Skip> {
    let is_drained_by_us = node.service() == Service::Drained && node.has_our_reason();
    match &node.reason {
        _ if is_drained_by_us => {}
        reason if node.service() != Service::In => {
            let reason = reason.as_ref().map_or("no reason", |reason| &reason.text);
            return Err(Skip::OutOfService(format!("{}: {}", node.state_text(), one_line(reason))));
        }
        Some(reason) if !reason.is_ours() => return Err(Skip::OthersReason(one_line(&reason.text))),
        _ => {}
    }
    match wish {
        Wish::Mark(_) if is_drained_by_us || is_marked(action, node) => Err(Skip::AlreadyMarked),
        Wish::Unmark(_) if !is_marked(action, node) => Err(Skip::NotMarked),
        _ if *action == Action::Comment && !comment::can_be_kept(&node.comment) => Err(Skip::OddComment),
        Wish::Mark(MarkCause { reason, .. }) => Ok(match action {
            Action::Drain => Act::Drain(reason.clone()),
            Action::Comment => Act::AddComment(reason.clone()),
            Action::Feature(name) => Act::AddFeature(name.clone()),
        }),
        Wish::Unmark(cover) => allow_unmark(action, cover, node).map(|()| match action {
            Action::Drain => Act::Resume,
            Action::Comment => Act::RemoveComment,
            Action::Feature(name) => Act::RemoveFeature(name.clone()),
        }),
    }
}

/// Allows to remove the mark of this node.
fn allow_unmark(action: &Action, cover: &GateCover, node: &NodeState) -> Result<(), Skip> {
    let Some(logged) = &cover.reason else { return Err(Skip::NotLogged) };
    let shown = node.reason.as_ref().map_or("", |reason| &reason.text);
    let changed = match action {
        Action::Drain if shown != logged => Some(shown),
        Action::Comment if !comment::is_as_set(&node.comment, logged) => Some(node.comment.as_str()),
        _ => None,
    };
    match changed {
        Some(found) => Err(Skip::Changed { found: one_line(found), logged: one_line(logged) }),
        None if cover.not_measured.is_empty() => Ok(()),
        None => Err(Skip::NotMeasured {
            reasons: one_line(&cover.not_measured.join("; ")),
            needed: cover.needed.iter().map(|needed| one_line(needed)).collect(),
        }),
    }
}

/// True if the node has the mark that this action sets.
pub(crate) fn is_marked(action: &Action, node: &NodeState) -> bool {
    match action {
        Action::Drain => node.has_drain() && node.has_our_reason(),
        Action::Comment => comment::has(&node.comment),
        Action::Feature(name) => {
            features::has(&node.available_features, name) || features::has(&node.active_features, name)
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skip::BadName => f.write_str("this is not the name of a single host"),
            Skip::Contradiction => {
                f.write_str("the screen found this node slow, but the node also passed --gate: screen it again")
            }
            Skip::OverLimit => f.write_str("more nodes are slow or still marked than --max-nodes allows"),
            Skip::Unknown => {
                f.write_str("Slurm has no node with this name (`scontrol show node` lists the names)")
            }
            Skip::Ambiguous(nodes) => write!(
                f,
                "this is the name of several nodes in Slurm (NodeName or NodeHostName): {nodes}; change the \
                 right node yourself"
            ),
            Skip::OtherHost { node, host_name } => write!(
                f,
                "Slurm's node {node} is another host (NodeHostName={}); find the node that Slurm has for the \
                 screened host, and change that node yourself",
                one_line(host_name)
            ),
            Skip::Unreadable(why) => write!(f, "pmmpi cannot read the state of this node: {why}"),
            Skip::OutOfService(state) => {
                write!(
                    f,
                    "Slurm or somebody else took this node out of service, or pmmpi does not know \
                     this state ({state})"
                )
            }
            Skip::OthersReason(reason) => write!(f, "somebody else set the reason `{reason}`"),
            Skip::AlreadyMarked => f.write_str("pmmpi has already marked this node"),
            Skip::NotMarked => f.write_str("the node passed --gate, and does not have the mark that --apply sets"),
            Skip::NotLogged => f.write_str(
                "the node passed --gate and has a mark, but the log does not have this mark, so pmmpi does not remove the \
                 mark. Perhaps the log is new: use the log of the screen that marked the node (--log). If the log is lost, \
                 remove the mark by hand. For a drain, use: scontrol update NodeName=NODE State=UNDRAIN",
            ),
            Skip::Changed { found, logged } => write!(
                f,
                "the node passed --gate, but somebody changed the text of the mark: Slurm shows `{found}`, and the log has \
                 `{logged}`. Ask this person before you remove the mark by hand. For a drain, use: scontrol update \
                 NodeName=NODE State=UNDRAIN"
            ),
            Skip::NotMeasured { reasons, needed } => {
                write!(
                    f,
                    "the node passed --gate, but the gate did not repeat the measurements that found a problem on this \
                     node: `{reasons}`. Repeat the gate with {}",
                    needed.join(" and ")
                )?;
                if needed.len() > 1 {
                    f.write_str(
                        " in one screen. If one screen cannot run all these measurements, use one screen for each \
                         measurement, and then remove the mark by hand. For a drain, use: scontrol update \
                         NodeName=NODE State=UNDRAIN",
                    )?;
                }
                Ok(())
            }
            Skip::OddComment => f.write_str(
                "the node's comment begins with a quote, begins or ends with a space, or contains several \
                 lines or unprintable characters, so scontrol might change this comment",
            ),
            Skip::Stopped(why) => write!(f, "pmmpi stopped before it came to this node: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::node;

    fn slow() -> Wish {
        Wish::Mark(MarkCause { reason: "pmmpi: slow".to_owned(), found_by: Vec::new() })
    }

    /// For a mark with this reason in the log.
    fn passed(reason: &str) -> Wish {
        Wish::Unmark(GateCover {
            reason: Some(reason.to_owned()),
            not_measured: Vec::new(),
            needed: Vec::new(),
        })
    }

    fn actions() -> [Action; 3] {
        [Action::Drain, Action::Comment, Action::feature()]
    }

    #[test]
    fn a_node_in_service_is_marked() {
        for state in ["IDLE", "ALLOCATED", "MIXED", "IDLE+RESERVED"] {
            let node = node("a", state, None);
            let acts = actions().map(|action| decide(&action, &slow(), &node).unwrap());
            let reason = || "pmmpi: slow".to_owned();
            let expected =
                [Act::Drain(reason()), Act::AddComment(reason()), Act::AddFeature("pmmpi_slow".to_owned())];
            assert_eq!(acts, expected, "{state}");
        }
    }

    /// For every action, and also if the node has a mark that pmmpi set.
    #[test]
    fn a_node_that_others_took_out_of_service_is_left_alone() {
        for (state, reason) in [
            ("IDLE+DRAIN", Some("bad DIMM")),
            ("ALLOCATED+DRAIN", Some("not pmmpi: x")),
            ("IDLE+DRAIN", None),
            ("DOWN", Some("Not responding")),
            ("DOWN+DRAIN", Some("pmmpi: slow")),
            ("IDLE+FAIL", Some("pmmpi: slow")),
            ("FAILING", None),
            ("IDLE+MAINTENANCE+RESERVED", None),
            ("IDLE+DRAIN+MAINTENANCE", Some("pmmpi: slow")),
            ("IDLE+DRAIN+REBOOT_REQUESTED", Some("pmmpi: slow")),
            ("IDLE+NOT_RESPONDING", None),
            ("UNKNOWN", None),
        ] {
            let mut node = node("a", state, reason);
            node.comment = "[pmmpi: slow]".to_owned();
            node.available_features = vec!["pmmpi_slow".to_owned()];
            for action in actions() {
                for wish in [slow(), passed("pmmpi: slow")] {
                    let skip = decide(&action, &wish, &node).unwrap_err();
                    assert!(matches!(skip, Skip::OutOfService(_)), "{state} {action:?} {wish:?} {skip:?}");
                }
            }
        }
    }

    #[test]
    fn a_reason_of_others_is_kept() {
        let node = node("a", "IDLE", Some("watch this fan"));
        for action in actions() {
            let skip = decide(&action, &slow(), &node).unwrap_err();
            assert_eq!(skip, Skip::OthersReason("watch this fan".to_owned()));
        }
    }

    #[test]
    fn only_our_drain_is_resumed() {
        let passed = passed("pmmpi: slow");
        let resume = |state, reason| decide(&Action::Drain, &passed, &node("a", state, reason));
        assert_eq!(resume("IDLE+DRAIN", Some("pmmpi: slow")), Ok(Act::Resume));
        assert_eq!(resume("ALLOCATED+DRAIN", Some("pmmpi: slow")), Ok(Act::Resume));
        assert_eq!(resume("IDLE", None), Err(Skip::NotMarked));
        assert_eq!(resume("IDLE", Some("pmmpi: slow")), Err(Skip::NotMarked));
        assert!(matches!(resume("IDLE+DRAIN", Some("bad DIMM")), Err(Skip::OutOfService(_))));
        // The site changed the action since: pmmpi may no longer change states.
        let drained = node("a", "IDLE+DRAIN", Some("pmmpi: slow"));
        assert_eq!(decide(&Action::Comment, &passed, &drained), Err(Skip::NotMarked));
    }

    /// An operator who adds words to our reason says that the drain is theirs now.
    #[test]
    fn a_mark_that_differs_from_the_log_stays() {
        let longer = "pmmpi: slow EVA: vendor on site, do not return";
        let mut marked = node("a", "IDLE", None);
        marked.comment = format!("rack 7 [{longer}]");
        for (action, node, found) in [
            (Action::Drain, node("a", "IDLE+DRAIN", Some(longer)), longer),
            (Action::Comment, marked.clone(), marked.comment.as_str()),
        ] {
            let changed = Skip::Changed { found: found.to_owned(), logged: "pmmpi: slow".to_owned() };
            assert!(changed.to_string().contains(longer) && changed.to_string().contains("`pmmpi: slow`"));
            assert_eq!(decide(&action, &passed("pmmpi: slow"), &node), Err(changed));
            assert!(decide(&action, &passed(longer), &node).is_ok());
        }
    }

    #[test]
    fn without_a_gate_of_all_findings_a_mark_stays() {
        let mut comment = node("a", "IDLE", None);
        comment.comment = "[pmmpi: slow]".to_owned();
        let mut feature = node("a", "IDLE", None);
        feature.available_features = vec!["pmmpi_slow".to_owned()];
        let drained = node("a", "IDLE+DRAIN", Some("pmmpi: slow"));
        for (action, node) in actions().into_iter().zip([drained, comment, feature]) {
            let of = |reason: Option<&str>, not_measured: &[&str]| {
                let reason = reason.map(str::to_owned);
                let not_measured = not_measured.iter().map(|reason| (*reason).to_owned()).collect();
                let needed = vec!["`--kernels fma`".to_owned(), "`--kernels triad`".to_owned()];
                decide(&action, &Wish::Unmark(GateCover { reason, not_measured, needed }), &node)
            };
            assert_eq!(of(None, &[]), Err(Skip::NotLogged), "{action:?}");
            let skip = of(Some("pmmpi: slow"), &["pmmpi: slow", "pmmpi: x"]).unwrap_err();
            let why = ": `pmmpi: slow; pmmpi: x`. Repeat the gate with `--kernels fma` and `--kernels triad` in one ";
            assert!(skip.to_string().contains(why), "{action:?} {skip}");
            assert!(of(Some("pmmpi: slow"), &[]).is_ok(), "{action:?}");
        }
    }

    #[test]
    fn a_marked_node_keeps_its_first_reason() {
        let drained = node("a", "IDLE+DRAIN", Some("pmmpi: older"));
        for action in actions() {
            assert_eq!(decide(&action, &slow(), &drained), Err(Skip::AlreadyMarked));
        }
        let mut marked = node("a", "IDLE", None);
        marked.comment = "x [pmmpi: older]".to_owned();
        marked.active_features = vec!["pmmpi_slow".to_owned()];
        assert_eq!(decide(&Action::Comment, &slow(), &marked), Err(Skip::AlreadyMarked));
        assert_eq!(decide(&Action::feature(), &slow(), &marked), Err(Skip::AlreadyMarked));
    }

    #[test]
    fn a_comment_that_would_change_is_left_alone() {
        let mut node = node("a", "IDLE", None);
        node.comment = "\"quoted\"".to_owned();
        assert_eq!(decide(&Action::Comment, &slow(), &node), Err(Skip::OddComment));
        assert!(decide(&Action::Drain, &slow(), &node).is_ok());
    }
}
