//! Whether the cores of a run were slower than the turbo step of so many active cores.
//!
//! "Average frequency while not halted [..] should be compared to the expected frequency for your processor, given the
//! number of cores that you think should be active" (McCalpin, Comments on timing short code sections, 2018).

use super::flag_findings::RunFinding;
use super::metrics::MetricReport;
use pmmpi::NodeId;
use pmmpi::node::{NodeFacts, TurboSteps};
use pmmpi::record::{RankRecord, Run};
use std::collections::{BTreeMap, BTreeSet};

/// A frequency below this part of the step raises the flag: `close_to_1` of docs/metrics.md.
const CLOSE: f64 = 0.95;
const FREQUENCY: &str = "frequency_active";

/// What may be expected of a socket.
struct Expected<'a> {
    hz: f64,
    active_cores: usize,
    host: &'a str,
    /// True if a limit of the governor is below the turbo step.
    is_limit: bool,
}

/// What raises the flag. `None` if nothing is known of the steps of some node, or if turbo is off there.
pub fn below_step(run: &Run, metrics: &[MetricReport]) -> Option<RunFinding> {
    let metric = metrics.iter().find(|metric| metric.name == FREQUENCY && metric.supports_verdict)?;
    let hz = metric.value?;
    // The frequency is a mean over all ranks, so compare it with the socket of which least may be expected.
    let least = sockets(run)?.into_iter().min_by(|a, b| a.hz.total_cmp(&b.hz))?;
    if hz >= CLOSE * least.hz {
        return None;
    }
    let active_cores = (!least.is_limit).then_some(least.active_cores);
    Some(RunFinding::BelowTurboStep { hz, expected_hz: least.hz, active_cores, node: least.host.to_owned() })
}

/// A socket on which ranks may run.
#[derive(Default)]
struct Socket {
    /// The cores on which they may run.
    cores: BTreeSet<u32>,
    /// How many of these ranks had one busy thread.
    with_one_thread: usize,
    /// How many other ranks may run there.
    others: usize,
}

impl Socket {
    /// How many cores one thinks are active. Ranks with several threads may at times keep all their cores active, however
    /// short these times are. Threads that take turns look like one thread here.
    fn active_cores(&self) -> usize {
        match self.others {
            0 => self.cores.len().min(self.with_one_thread),
            _ => self.cores.len(),
        }
    }
}

/// True if one thread of the rank was busy for all of its time: 5 % may be missing, or be of helpers of MPI.
fn has_one_thread(rank: &RankRecord) -> bool {
    let cpu_ns = (rank.cpu_user_ns + rank.cpu_system_ns) as f64;
    (0.95..=1.05).contains(&(cpu_ns / rank.stamps.inner_ns().max(1) as f64))
}

/// Each socket on which ranks may run.
fn sockets(run: &Run) -> Option<Vec<Expected<'_>>> {
    let mut sockets: BTreeMap<(NodeId, u32), Socket> = BTreeMap::new();
    for rank in &run.ranks {
        let topology = &run.topologies[run.nodes[rank.node.index()].topology? as usize];
        let mut own = BTreeSet::new();
        for thread in topology.threads.iter().filter(|thread| rank.allowed.contains(thread.cpu)) {
            sockets.entry((rank.node, thread.socket)).or_default().cores.insert(thread.core);
            own.insert(thread.socket);
        }
        for socket in own {
            let of = sockets.entry((rank.node, socket)).or_default();
            *if has_one_thread(rank) { &mut of.with_one_thread } else { &mut of.others } += 1;
        }
    }
    let of = |((node, _), socket): ((NodeId, u32), Socket)| {
        let (node, active_cores) = (&run.nodes[node.index()], socket.active_cores());
        let NodeFacts { settings, inventory, .. } = node.facts.as_ref()?;
        let fact = |name: &str| inventory.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        if fact("turbo") == Some("off") {
            return None;
        }
        let steps: TurboSteps = fact("turbo_steps")?.parse().ok()?;
        let step = steps.of(u32::try_from(active_cores).ok()?)? as f64;
        let limit = settings.frequency_limits_hz.map_or(f64::INFINITY, |[_, highest]| highest as f64);
        let (hz, is_limit) = (step.min(limit), limit < step);
        Some(Expected { hz, active_cores, host: &node.key.hostname, is_limit })
    };
    sockets.into_iter().map(of).collect()
}
