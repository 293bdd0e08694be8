//! The cluster of a journal: the lines `begin` have its name. Older journals have none.

use super::{Open, Past};
use crate::error::{Error, ToolError, one_line};
use crate::one_change::Act;
use crate::own_marks::OwnMarks;
use crate::scontrol::ListedNodes;
use std::path::Path;

/// The name that a line `begin` has, in lower case: somebody may have written it by hand.
pub(super) fn name(entry: Option<String>) -> Option<String> {
    entry.map(|name| name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty())
}

impl Past {
    /// Fails if an earlier run was on another cluster than this one, and if pmmpi cannot know this.
    pub(super) fn require_cluster(&self, path: &Path, own: &Result<String, ToolError>) -> Result<(), Error> {
        let other = match own {
            Ok(own) => self.clusters.iter().find(|name| !name.eq_ignore_ascii_case(own)),
            Err(_) => self.clusters.first(),
        };
        let Some(other) = other else { return Ok(()) };
        let other = one_line(other);
        let why = match own {
            Ok(own) => format!(
                "it is the log of the cluster {other}, but this is the cluster {}; each cluster needs its own log, so \
                 name another file with --log. If you have renamed the cluster {other}, change its name in all entries \
                 `begin` of the log",
                one_line(own)
            ),
            Err(error) => format!(
                "it is the log of the cluster {other}, and pmmpi could not find out with `scontrol show config` \
                 whether this cluster is {other} ({}); run this command by hand to find the problem",
                error.why.brief()
            ),
        };
        Err(Error::NoJournal(path.to_owned(), why))
    }

    /// True if the nodes of a cluster must show that the marks are of this cluster.
    pub(super) fn has_marks_of_unknown_cluster(&self) -> bool {
        let has_marks = self.marks.all().next().is_some() || !self.open.is_empty();
        self.clusters.is_empty() && has_marks
    }
}

/// Fails if none of these marks is on a node of this cluster: they may be of another one.
pub(super) fn require_seen_mark(
    path: &Path,
    own: &str,
    marks: &OwnMarks,
    open: &[Open],
    listed: &ListedNodes,
) -> Result<(), Error> {
    // The end of a mark shows nothing: a node that never had the mark is like this, too.
    let begun = open.iter().filter(|open| open.act.changes().1).map(|open| (open.node.as_str(), &open.act));
    let mut acts = marks.all().map(|(node, mark)| (node, &mark.act)).chain(begun);
    let is_seen = |(node, act): (&str, &Act)| {
        listed.get(node).is_some_and(|state| state.as_ref().is_ok_and(|state| act.is_done(state)))
    };
    if acts.any(is_seen) {
        return Ok(());
    }
    let own = one_line(own);
    let why = format!(
        "it names no cluster, and no node of this cluster ({own}) has a mark that is in the log. If it is the log of this \
         cluster, add `\"cluster\":\"{own}\"` to one of its entries `begin`. Otherwise, name another log with --log"
    );
    Err(Error::NoJournal(path.to_owned(), why))
}
