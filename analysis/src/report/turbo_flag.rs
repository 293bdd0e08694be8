//! Whether the cores of a run were slower than the turbo step of so many active cores.
//!
//! "Average frequency while not halted [..] should be compared to the expected frequency for your processor, given the
//! number of cores that you think should be active" (McCalpin, Comments on timing short code sections, 2018).

use super::metrics::MetricReport;
use pmmpi::node::{NodeFacts, TurboSteps};
use pmmpi::record::Run;
use pmmpi::{NodeId, text};
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

/// The message of the flag. `None` if nothing is known of the steps of some node, or if turbo is off there.
pub fn below_step(run: &Run, metrics: &[MetricReport]) -> Option<String> {
    let metric = metrics.iter().find(|metric| metric.name == FREQUENCY && metric.supports_verdict)?;
    let hz = metric.value?;
    // The frequency is a mean over all ranks, so compare it with the socket of which least may be expected.
    let least = sockets(run)?.into_iter().min_by(|a, b| a.hz.total_cmp(&b.hz))?;
    if hz >= CLOSE * least.hz {
        return None;
    }
    let what = if least.is_limit { "the highest frequency that is set" } else { "the turbo step" };
    let cores = text::count(least.active_cores, "active core");
    Some(format!(
        "cores ran at {} GHz, but {what} for {cores} per socket is {} GHz ({}): look at power and temperature, at wide vector \
         instructions, which have lower steps, and at other programs on the sockets",
        ghz(hz),
        ghz(least.hz),
        least.host,
    ))
}

fn ghz(hz: f64) -> String {
    format!("{:.2}", hz / 1e9)
}

/// Each socket on which ranks may run. Their cores may all be active, so the step is that of all these cores.
fn sockets(run: &Run) -> Option<Vec<Expected<'_>>> {
    let mut cores: BTreeMap<(NodeId, u32), BTreeSet<u32>> = BTreeMap::new();
    for rank in &run.ranks {
        let topology = &run.topologies[run.nodes[rank.node.index()].topology? as usize];
        for thread in topology.threads.iter().filter(|thread| rank.allowed.contains(thread.cpu)) {
            cores.entry((rank.node, thread.socket)).or_default().insert(thread.core);
        }
    }
    let of = |((node, _), cores): ((NodeId, u32), BTreeSet<u32>)| {
        let node = &run.nodes[node.index()];
        let NodeFacts { settings, inventory, .. } = node.facts.as_ref()?;
        let fact = |name: &str| inventory.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        if fact("turbo") == Some("off") {
            return None;
        }
        let steps: TurboSteps = fact("turbo_steps")?.parse().ok()?;
        let step = steps.of(u32::try_from(cores.len()).ok()?)? as f64;
        let limit = settings.frequency_limits_hz.map_or(f64::INFINITY, |[_, highest]| highest as f64);
        let (hz, is_limit) = (step.min(limit), limit < step);
        Some(Expected { hz, active_cores: cores.len(), host: &node.key.hostname, is_limit })
    };
    cores.into_iter().map(of).collect()
}
