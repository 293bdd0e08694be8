//! Decides whether pmmpi may change a node. The decision depends only on the wish, the kind of mark and the state of
//! the node.

use crate::error::one_line;
use crate::node_state::{NodeState, Service};
use crate::one_change::Act;
use crate::settings::Action;
use crate::{comment, features};
use std::fmt;

/// What the caller wants for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Mark it, for this reason.
    Mark(String),
    /// Remove the mark, because the node passed.
    Unmark,
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
        Wish::Unmark if !is_marked(action, node) => Err(Skip::NotMarked),
        _ if *action == Action::Comment && !comment::can_be_kept(&node.comment) => Err(Skip::OddComment),
        Wish::Mark(reason) => Ok(match action {
            Action::Drain => Act::Drain(reason.clone()),
            Action::Comment => Act::AddComment(reason.clone()),
            Action::Feature(name) => Act::AddFeature(name.clone()),
        }),
        Wish::Unmark => Ok(match action {
            Action::Drain => Act::Resume,
            Action::Comment => Act::RemoveComment,
            Action::Feature(name) => Act::RemoveFeature(name.clone()),
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
                f.write_str("the screen found this node slow, but the node also passed: screen it again")
            }
            Skip::OverLimit => f.write_str("more nodes are slow or still marked than --max-nodes allows"),
            Skip::Unknown => {
                f.write_str("Slurm has no node with this name (`scontrol show node` lists the names)")
            }
            Skip::Ambiguous(nodes) => write!(
                f,
                "this is the name of several nodes in Slurm (NodeName or NodeHostName): {nodes}; change the \
                 right one yourself"
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
            Skip::NotMarked => f.write_str("the node passed, and does not have the mark that --apply sets"),
            Skip::OddComment => f.write_str(
                "the node's comment begins with a quote, begins or ends with a space, or contains several \
                 lines or unprintable characters, so scontrol may not keep this comment exactly",
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
        Wish::Mark("pmmpi: slow".to_owned())
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
                for wish in [slow(), Wish::Unmark] {
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
        let resume = |state, reason| decide(&Action::Drain, &Wish::Unmark, &node("a", state, reason));
        assert_eq!(resume("IDLE+DRAIN", Some("pmmpi: slow")), Ok(Act::Resume));
        assert_eq!(resume("ALLOCATED+DRAIN", Some("pmmpi: slow")), Ok(Act::Resume));
        assert_eq!(resume("IDLE", None), Err(Skip::NotMarked));
        assert_eq!(resume("IDLE", Some("pmmpi: slow")), Err(Skip::NotMarked));
        assert!(matches!(resume("IDLE+DRAIN", Some("bad DIMM")), Err(Skip::OutOfService(_))));
        // The site changed the action since: pmmpi may no longer change states.
        let drained = node("a", "IDLE+DRAIN", Some("pmmpi: slow"));
        assert_eq!(decide(&Action::Comment, &Wish::Unmark, &drained), Err(Skip::NotMarked));
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
