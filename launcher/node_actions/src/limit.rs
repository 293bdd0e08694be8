//! The limit of how many nodes pmmpi may mark.
//!
//! If more nodes are slow than the limit allows, pmmpi marks none of them, not even the slowest. The reason: if many
//! nodes are slow at once, they usually have a common cause, such as a new Linux kernel, a file system or the
//! cooling. Then a drain takes nodes out of service, but repairs nothing. Nodes with pmmpi's mark from earlier
//! screens count, too. Otherwise a screen every hour would drain the whole fleet, a few nodes at a time.

use std::collections::BTreeSet;
use std::fmt;

/// One of 20 nodes is 5 % of the fleet.
const FLEET_PER_NODE: u32 = 20;
const MOST_BY_DEFAULT: u32 = 10;

/// The limit if the caller sets none.
pub(crate) fn default(fleet: u32) -> u32 {
    (fleet / FLEET_PER_NODE).clamp(1, MOST_BY_DEFAULT)
}

/// More nodes than the limit allows are slow, so pmmpi marks none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverLimit {
    /// Number of nodes that the screen found slow.
    pub found: usize,
    /// Number of other nodes that have pmmpi's mark from earlier runs.
    pub marked_before: usize,
    /// The limit.
    pub limit: u32,
    /// True if the limit is 5 % of the fleet or 10, false if the caller set it.
    pub by_default: bool,
}

/// Fails if findings and nodes with pmmpi's mark together are more than the limit. Every finding counts, also one for
/// a node that somebody else has drained, because it shows how widespread the problem is.
pub(crate) fn check(
    found: &BTreeSet<&str>,
    marked: &BTreeSet<&str>,
    max_nodes: Option<u32>,
    fleet: u32,
) -> Result<(), OverLimit> {
    let limit = max_nodes.unwrap_or_else(|| default(fleet));
    let marked_before = marked.difference(found).count();
    if found.is_empty() || found.len() + marked_before <= limit as usize {
        return Ok(());
    }
    Err(OverLimit { found: found.len(), marked_before, limit, by_default: max_nodes.is_none() })
}

impl fmt::Display for OverLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OverLimit { found, marked_before, limit, by_default } = self;
        write!(f, "the screen found {}", pmmpi::text::count(*found, "slow node"))?;
        if *marked_before > 0 {
            let has = if *marked_before == 1 { "has" } else { "have" };
            write!(f, ", and {} still {has} pmmpi's mark", pmmpi::text::count(*marked_before, "more node"))?;
        }
        let origin = if *by_default {
            ", by default 5 % of the screened nodes, at least 1 and at most 10"
        } else {
            ""
        };
        write!(
            f,
            "; the limit is {limit} (--max-nodes{origin}). pmmpi marked no node, because many slow nodes may \
             have a common cause, which a mark does not repair. Look for this cause, or repair the marked \
             nodes and remove their marks, or set --max-nodes to at least {}",
            found + marked_before
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_five_percent_from_one_to_ten() {
        let cases = [(0, 1), (1, 1), (19, 1), (39, 1), (40, 2), (199, 9), (200, 10), (u32::MAX, 10)];
        for (fleet, limit) in cases {
            assert_eq!(default(fleet), limit, "{fleet}");
        }
    }

    #[test]
    fn findings_and_earlier_marks_share_the_limit() {
        let set = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<&str>>();
        let check = |found: &[&'static str], marked: &[&'static str], limit| {
            check(&set(found), &set(marked), limit, 40).is_ok()
        };
        assert!(check(&["a", "b"], &[], None) && !check(&["a", "b", "c"], &[], None));
        assert!(check(&["a", "b"], &["a"], None) && !check(&["a", "b"], &["c"], None));
        assert!(check(&["a", "b", "c"], &["d"], Some(4)) && !check(&["a"], &[], Some(0)));
        // Nothing to mark: earlier marks are no reason to complain.
        assert!(check(&[], &["a", "b", "c"], None));
    }

    #[test]
    fn the_numbers_are_named() {
        let over = OverLimit { found: 12, marked_before: 3, limit: 10, by_default: true };
        let text = over.to_string();
        assert!(text.starts_with(
            "the screen found 12 slow nodes, and 3 more nodes still have pmmpi's mark; the limit is 10 "
        ));
        assert!(text.ends_with("set --max-nodes to at least 15"), "{text}");
    }
}
