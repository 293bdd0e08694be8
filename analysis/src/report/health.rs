//! Counts of nodes that did not work as they should: how much each grew during the run, on each node, according to the
//! Linux kernel.

use pmmpi::node::{HealthCount, USAGE_COUNTS};
use pmmpi::record::{NodeRecord, Run};
use serde::Serialize;

/// A count of a node that grew during the run.
#[derive(Debug, Serialize)]
pub struct HealthReport {
    /// Host name.
    pub node: String,
    /// One of [`pmmpi::node::HEALTH_COUNTS`].
    pub fact: String,
    /// What was added during the run.
    pub change: u64,
    /// Where, most first: sockets, cores, memory controllers, ports, devices.
    pub places: Vec<HealthPlace>,
}

/// A place of a node.
#[derive(Debug, Serialize)]
pub struct HealthPlace {
    /// For example `socket 1` or `mlx5_0 port 1`.
    pub place: String,
    /// What was added there.
    pub change: u64,
}

/// The counts that grew: the first `most`.
pub fn of(run: &Run, most: usize) -> Vec<HealthReport> {
    let counts = run.nodes.iter().flat_map(|node| node.health.iter().map(move |count| (node, count)));
    // A busy network waits; only an unusual wait says something, and verdicts find this.
    let is_health = |count: &HealthCount| {
        count.name != "network_waits" && !USAGE_COUNTS.iter().any(|(name, _)| *name == count.name)
    };
    let grown = counts.filter_map(|(node, count)| {
        let change = count.added.filter(|added| *added > 0 && is_health(count))?;
        Some(HealthReport::new(node, count, change))
    });
    grown.take(most).collect()
}

impl HealthReport {
    fn new(node: &NodeRecord, count: &HealthCount, change: u64) -> Self {
        let place = |(place, change): &(String, u64)| HealthPlace { place: place.clone(), change: *change };
        Self {
            node: node.key.hostname.clone(),
            fact: count.name.to_string(),
            change,
            places: count.added_at.iter().map(place).collect(),
        }
    }
}
