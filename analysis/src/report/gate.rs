//! Repaired nodes: is each fit to return to service? One answer per node.

use super::host_names;
use super::screen::{ScreenReport, ScreenedNode};
use crate::input::LaterHistory;
use crate::table::slurm_host_list::HostList;
use crate::verdicts::fitness::{Fitness, GateAnswer, GateReason};
use crate::verdicts::kernels_of_node::{KernelOfNode, ScreenVerdict};
use std::collections::{HashMap, HashSet};

/// A node with fewer runs of a kernel is not fit for certain.
pub const FEWEST_RUNS: usize = 5;
/// Fewer nodes do not show how fast their class is. Repaired nodes do not count: a batch may share a fault. Neither do nodes
/// that are slow themselves.
pub const FEWEST_OTHERS: usize = 4;
/// The same, if an archive shows how fast the node itself was while it was healthy.
pub const FEWEST_WITH_HISTORY: usize = 2;
/// For each repaired node. A class of just as many repaired nodes as others has the speed of its slowest healthy node.
pub const FEWEST_FOR_EACH: usize = 2;

/// A longer list is a typing error.
const MOST_NAMES: usize = 100_000;

/// The repaired nodes as the user names them. The error says what is wrong with the list.
pub fn repaired(list: &str) -> Result<HostList, String> {
    HostList::at_most(list, MOST_NAMES)
        .and_then(checked)
        .map_err(|why| format!("{why}. A list of nodes looks like this: n[001-010],m5"))
}

fn checked(list: HostList) -> Result<HostList, String> {
    if let Some(wrong) = list.names().find(|name| !host_names::is_host_name(name)) {
        return Err(format!("`{}` is not a valid host name", wrong.escape_debug()));
    }
    Ok(list)
}

/// Adds the answers for the nodes of `list`, in its order. A node that may be slower than its class by `limit` is not fit
/// for certain: pmmpi would drain a node that is slower by more. `now_unix_ns` is the time by the clock of this host
/// (the first node, if `pmmpi screen` runs).
pub fn ask(screen: &mut ScreenReport, list: &HostList, limit: f64, now_unix_ns: i64) {
    // Both lists may be long.
    let mut hosts: HashMap<&str, Vec<&str>> = HashMap::new();
    for node in &screen.screened {
        let host = node.node.as_str();
        hosts.entry(host_names::short(host)).or_default().push(host);
    }
    let host = |name| host_names::same(name, hosts.get(host_names::short(name))?.iter().copied());
    let named: Vec<(&str, Option<&str>)> = list.names().map(|name| (name, host(name))).collect();
    let repaired = named.iter().filter_map(|(_, host)| *host).collect();
    let asked = Asked { screen: &*screen, repaired, limit, now_unix_ns };
    let answers: Vec<GateAnswer> = named.iter().map(|(name, host)| asked.answer(name, *host)).collect();
    screen.gate = answers;
}

struct Asked<'a> {
    screen: &'a ScreenReport,
    /// Host names.
    repaired: HashSet<&'a str>,
    limit: f64,
    now_unix_ns: i64,
}

impl Asked<'_> {
    fn answer(&self, name: &str, host: Option<&str>) -> GateAnswer {
        let is_host = |host: &str| self.screen.screened.iter().find(|node| node.node.as_str() == host);
        let node = host.and_then(is_host);
        let (answer, reason) = match node {
            None => (Fitness::Undecided, GateReason::NoPart),
            Some(node) => self.of(node),
        };
        let slower_by_at_most = node.and_then(at_most);
        GateAnswer { node: name.to_owned(), host: host.map(str::to_owned), answer, reason, slower_by_at_most }
    }

    fn of(&self, node: &ScreenedNode) -> (Fitness, GateReason) {
        let kernel = node.kernel.clone();
        // Below, kernels without a verdict leave it open.
        match node.verdict.unwrap_or(ScreenVerdict::Ok) {
            ScreenVerdict::Wrong => (Fitness::NotFit, GateReason::WrongResult { kernel }),
            ScreenVerdict::Failed => (Fitness::NotFit, GateReason::Failed { kernel }),
            ScreenVerdict::Slow | ScreenVerdict::SlowTail => {
                (Fitness::NotFit, GateReason::SlowerThanClass { kernel })
            }
            ScreenVerdict::Slowed => (Fitness::NotFit, GateReason::SlowerThanBefore { kernel }),
            ScreenVerdict::Suspect | ScreenVerdict::Unusual => {
                (Fitness::Undecided, GateReason::MaybeSlow { kernel })
            }
            ScreenVerdict::Fast => (Fitness::Undecided, GateReason::MuchFaster { kernel }),
            ScreenVerdict::Ok => match self.missing(node) {
                Some(missing) => (Fitness::Undecided, missing),
                None => (Fitness::Fit, GateReason::NothingMissing),
            },
        }
    }

    /// What is missing until the node is fit for certain.
    fn missing(&self, node: &ScreenedNode) -> Option<GateReason> {
        let history = &self.screen.later_history;
        if is_history_lost(history, node.node.as_str(), self.now_unix_ns) {
            let (host, clock_of) = (node.node.as_str().to_owned(), history.clock_of.clone());
            return Some(GateReason::WrongClock { host, clock_of });
        }
        let is_left_out = |kernel: &&str| !node.kernels.contains_key(*kernel);
        let mut kernels = self.screen.kernels.iter().map(|summary| summary.kernel.as_str());
        match kernels.find(is_left_out) {
            Some(kernel) => Some(GateReason::NotRun { kernel: kernel.to_owned() }),
            None => node.kernels.iter().find_map(|(kernel, of)| self.missing_of(kernel, of)),
        }
    }

    fn missing_of(&self, kernel: &str, of: &KernelOfNode) -> Option<GateReason> {
        let limit = self.limit;
        let name = || kernel.to_owned();
        if of.verdict.is_none() {
            return Some(GateReason::NotCompared { kernel: name() });
        }
        if of.runs < FEWEST_RUNS {
            return Some(GateReason::FewRuns { kernel: name(), runs: of.runs });
        }
        let [repaired, others] = self.of_class(kernel, of);
        let needed = if of.was_healthy { FEWEST_WITH_HISTORY } else { FEWEST_OTHERS };
        if others < needed {
            return Some(GateReason::FewOthers { kernel: name(), others, limit });
        }
        let needed = repaired.saturating_mul(FEWEST_FOR_EACH);
        if others < needed {
            return Some(GateReason::FewOthersForEach { kernel: name(), repaired, others, needed });
        }
        match of.slower_by_at_most {
            Some(most) if most < limit => None,
            Some(slower_by_at_most) => {
                Some(GateReason::MaybeAboveLimit { kernel: name(), slower_by_at_most, limit })
            }
            None => Some(GateReason::UnknownSlowdown { kernel: name() }),
        }
    }

    /// How many nodes of the same class have times of this kernel: repaired nodes, and others that are OK.
    fn of_class(&self, kernel: &str, of: &KernelOfNode) -> [usize; 2] {
        let [mut repaired, mut others] = [0, 0];
        for node in &self.screen.screened {
            let Some(other) = node.kernels.get(kernel) else { continue };
            if other.class.is_none() || other.class != of.class {
                continue;
            }
            if self.repaired.contains(node.node.as_str()) {
                repaired += 1;
            } else if other.verdict == Some(ScreenVerdict::Ok) {
                others += 1;
            }
        }
        [repaired, others]
    }
}

/// True if a session of the host that does not count began in the future: then a clock is wrong, and the session may be
/// an earlier one. Without its whole history, a node that became slower together with its class may look fit. If a
/// report is made again, sessions between the screen and the present time are usual.
fn is_history_lost(history: &LaterHistory, host: &str, now_unix_ns: i64) -> bool {
    history.last_began.get(host).is_some_and(|began| *began > now_unix_ns)
}

/// The largest of all kernels; `None` if that of a kernel is not known.
fn at_most(node: &ScreenedNode) -> Option<f64> {
    let each: Option<Vec<f64>> = node.kernels.values().map(|kernel| kernel.slower_by_at_most).collect();
    each?.into_iter().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_session_that_began_in_the_future_shows_that_a_clock_is_wrong() {
        let history = LaterHistory { last_began: BTreeMap::from([("n1".to_owned(), 7)]), clock_of: None };
        assert!(is_history_lost(&history, "n1", 6));
        assert!(!is_history_lost(&history, "n1", 7));
        assert!(!is_history_lost(&history, "n2", 6));
    }

    #[test]
    fn a_list_has_only_host_names() {
        let names = |list: &str| repaired(list).unwrap().names().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(names("n[08-09], a_b.example-1.org"), ["a_b.example-1.org", "n08", "n09"]);
        assert_eq!(names("n[1-100000]").len(), MOST_NAMES);
        for (wrong, why) in [
            ("n 1", "`n 1` is not a valid host name. A list"),
            ("n1,a/b[1-2]", "`a/b1` is not a valid host name. A list"),
            ("n\u{1b}[1-2]", "`n\\u{1b}1` is not a valid host name. A list"),
            ("n1,,n2", "a name is empty. A list"),
            ("", "a name is empty. A list"),
            ("n[1-100001]", "the list has more than 100000 nodes. A list"),
            ("n1,..", "`..` is not a valid host name. A list"),
        ] {
            let said = repaired(wrong).unwrap_err();
            assert!(said.starts_with(why) && said.ends_with(" looks like this: n[001-010],m5"), "{said}");
        }
    }
}
