//! Whether this user may change nodes.

use super::Scontrol;
use crate::error::{ScontrolFailure, ToolError};

/// A change of a node that no site has. Slurm checks the right before it looks for the node, so it changes nothing, and
/// its answer shows whether it would. Settings of Slurm would show less: scontrol may be a script that calls sudo.
const ASK: [&str; 3] = ["update", "NodeName=pmmpi-asks-for-the-right", "State=RESUME"];
/// Parts of Slurm's messages for a missing right: ESLURM_USER_ID_MISSING and ESLURM_ACCESS_DENIED.
const REFUSALS: [&str; 2] = ["Invalid user id", "Access/permission denied"];

impl Scontrol {
    /// Slurm's message if this user certainly may not change nodes. `None` if the user may, or if pmmpi cannot find this
    /// out. Changes nothing.
    pub fn why_not_allowed(&self) -> Option<String> {
        let ToolError { why: ScontrolFailure::Failed(message), .. } = self.call(&ASK, None).err()? else {
            return None;
        };
        REFUSALS.iter().any(|refusal| message.contains(refusal)).then_some(message)
    }
}
