//! A further finding on a node that has a mark of pmmpi's already. Slurm keeps showing the first reason, but the log keeps
//! each finding, so that the mark stays until a gate has measured all of them.

use crate::cause::Cause;
use crate::decide;
use crate::error::Error;
use crate::journal::Journal;
use crate::node_state::NodeState;
use crate::own_marks::OwnMarks;

/// Writes this finding into the log for each mark on the node, unless the log has it.
pub(crate) fn keep(
    journal: &mut Journal,
    marks: &OwnMarks,
    node: &NodeState,
    cause: &Cause,
) -> Result<(), Error> {
    for mark in marks.of_node(&node.name) {
        let (action, _) = mark.act.changes();
        if decide::is_marked(&action, node) && !cause.is_among(&mark.causes) {
            journal.keep(node, &mark.act, cause)?;
        }
    }
    Ok(())
}
