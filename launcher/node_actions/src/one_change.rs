//! One change of one node.

use crate::node_state::NodeState;
use crate::settings::Action;
use crate::{comment, features};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A change of one node. Each change is one `scontrol update`, so that no node is left with half of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", content = "text", rename_all = "snake_case")]
pub enum Act {
    /// Drains the node, with this reason.
    Drain(String),
    /// Ends the drain. Slurm removes the reason.
    Resume,
    /// Appends this reason to the comment, in brackets.
    AddComment(String),
    /// Removes pmmpi's part of the comment.
    RemoveComment,
    /// Adds this feature.
    AddFeature(String),
    /// Removes this feature.
    RemoveFeature(String),
}

impl Act {
    /// The arguments of scontrol, for a node in this state.
    pub(crate) fn arguments(&self, node: &NodeState) -> Vec<String> {
        let wanted = self.wanted(node);
        let mut arguments = vec!["update".to_owned(), format!("NodeName={}", node.name)];
        match self {
            Act::Drain(reason) => arguments.extend(["State=DRAIN".to_owned(), format!("Reason={reason}")]),
            // Not RESUME, which would also bring back a node that went down in the meantime.
            Act::Resume => arguments.push("State=UNDRAIN".to_owned()),
            Act::AddComment(_) | Act::RemoveComment => arguments.push(format!("Comment={}", wanted.comment)),
            // Both lists at once: Slurm refuses an active feature that is not available.
            Act::AddFeature(_) | Act::RemoveFeature(_) => arguments.extend([
                format!("AvailableFeatures={}", wanted.available_features.join(",")),
                format!("ActiveFeatures={}", wanted.active_features.join(",")),
            ]),
        }
        arguments
    }

    /// The kind of mark that this act changes, and true if it sets the mark.
    pub(crate) fn changes(&self) -> (Action, bool) {
        match self {
            Act::Drain(_) => (Action::Drain, true),
            Act::Resume => (Action::Drain, false),
            Act::AddComment(_) => (Action::Comment, true),
            Act::RemoveComment => (Action::Comment, false),
            Act::AddFeature(name) => (Action::Feature(name.clone()), true),
            Act::RemoveFeature(name) => (Action::Feature(name.clone()), false),
        }
    }

    /// The reason that Slurm shows; a feature shows none.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Act::Drain(reason) | Act::AddComment(reason) => Some(reason),
            _ => None,
        }
    }

    /// The node with the comment and features that this act makes; the rest is as before.
    fn wanted(&self, node: &NodeState) -> NodeState {
        let mut wanted = node.clone();
        match self {
            Act::Drain(_) | Act::Resume => {}
            Act::AddComment(reason) => wanted.comment = comment::with(&node.comment, reason),
            Act::RemoveComment => wanted.comment = comment::without(&node.comment),
            Act::AddFeature(name) => {
                wanted.available_features = features::with(&node.available_features, name);
                wanted.active_features = features::with(&node.active_features, name);
            }
            Act::RemoveFeature(name) => {
                wanted.available_features = features::without(&node.available_features, name);
                wanted.active_features = features::without(&node.active_features, name);
            }
        }
        wanted
    }

    /// True if pmmpi's own mark on the node is as this act wants it.
    pub(crate) fn is_done(&self, node: &NodeState) -> bool {
        match self {
            Act::Drain(reason) => {
                node.has_drain() && node.reason.as_ref().is_some_and(|found| found.text == *reason)
            }
            Act::Resume => !node.has_drain() && !node.has_our_reason(),
            Act::AddComment(reason) => node.comment.contains(&format!("[{reason}]")),
            Act::RemoveComment => !comment::has(&node.comment),
            Act::AddFeature(name) => {
                features::has(&node.available_features, name) && features::has(&node.active_features, name)
            }
            Act::RemoveFeature(name) => {
                !features::has(&node.available_features, name) && !features::has(&node.active_features, name)
            }
        }
    }

    /// Compares the node after the act with the node before the act. The error names what differs from the expected
    /// state. Perhaps somebody changed the node at the same time.
    pub(crate) fn check(&self, before: &NodeState, after: &NodeState) -> Result<(), String> {
        if !self.is_done(after) {
            return Err(format!("the node did not change as requested: {}", self.seen(after)));
        }
        let wanted = self.wanted(before);
        let found =
            [&wanted, after].map(|node| (&node.comment, &node.available_features, &node.active_features));
        match found[0] == found[1] {
            true => Ok(()),
            false => Err(format!(
                "the change is done, but the rest of the comment or other features changed, too; perhaps \
                 somebody changed them at the same time. Before: comment {:?}, features {}. After: comment \
                 {:?}, features {}",
                before.comment,
                before.available_features.join(","),
                after.comment,
                after.available_features.join(",")
            )),
        }
    }

    /// The part of the node that this act changes, in words.
    pub(crate) fn seen(&self, node: &NodeState) -> String {
        match self {
            Act::Drain(_) | Act::Resume => {
                let reason = node.reason.as_ref().map_or("no reason".to_owned(), |reason| {
                    let set_by =
                        reason.set_by.as_ref().map_or(String::new(), |set_by| format!(", set by {set_by}"));
                    format!("reason `{}`{set_by}", reason.text)
                });
                format!("state {}, {reason}", node.state_text())
            }
            Act::AddComment(_) | Act::RemoveComment => format!("comment `{}`", node.comment),
            Act::AddFeature(_) | Act::RemoveFeature(_) => format!(
                "available features `{}`, active features `{}`",
                node.available_features.join(","),
                node.active_features.join(",")
            ),
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Drain(reason) => write!(f, "drain, reason `{reason}`"),
            Act::Resume => f.write_str("resume"),
            Act::AddComment(reason) => write!(f, "add `[{reason}]` to the comment"),
            Act::RemoveComment => f.write_str("remove pmmpi's part of the comment"),
            Act::AddFeature(name) => write!(f, "add the feature {name}"),
            Act::RemoveFeature(name) => write!(f, "remove the feature {name}"),
        }
    }
}
