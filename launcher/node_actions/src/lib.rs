//! Acts on the findings of `pmmpi screen` in Slurm: marks slow nodes with a drain, a comment or a feature, and removes
//! the marks of nodes that passed.
//!
//! [`run`] reads every node's state, decides ([`Decision`]), writes each act into a [journal](Error::Journal) before
//! and after, and reads the node again directly before and after each act. One act is one `scontrol update` of one
//! node, which Slurm does as a whole or not at all. pmmpi never changes what somebody else has set: a state, a
//! reason, a part of a comment, a feature. It removes only a mark that is as the journal has it, and only if the gate
//! ran all that found the node slow or wrong, with the same options, on as much of the node and after at least the same
//! warm-up. An error in pmmpi itself never drains a node.
//!
//! One risk remains, because Slurm has no conditional update. Somebody may change a node in the milliseconds between
//! pmmpi's last read and its update. Then pmmpi replaces their reason, or ends their drain. The journal has the state
//! of the node before and after each act.

#![warn(missing_docs)]

mod cause;
mod comment;
mod decide;
pub mod dry_run;
mod error;
mod features;
mod gate_cover;
mod journal;
mod limit;
mod mark_nodes;
mod measurement;
mod node_name;
mod node_state;
mod one_change;
mod own_marks;
mod process;
mod reason;
mod report;
mod scontrol;
mod settings;
mod slurm_names;

#[cfg(test)]
mod fake;

pub use decide::Skip;
pub use error::{Error, ScontrolFailure, ToolError};
pub use journal::check_log;
pub use limit::OverLimit;
pub use mark_nodes::run;
pub use measurement::Measurement;
pub use node_state::{NodeState, Reason};
pub use one_change::Act;
pub use report::{ActionsReport, Decision, Recovered};
pub use scontrol::{ListedNodes, Scontrol, Slurm};
pub use settings::{Action, ActionSettings, Finding, MeasuredKernel};
