//! Counts at places of a node: hardware threads, and devices that belong to no core.

use pmmpi::counters::counts::CountRow;
use pmmpi::record::Run;
use pmmpi::{NodeId, RankId};
use pmmpi_events::names::family;
use pmmpi_events::readings::readings;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// The counts of one hardware thread of a node, or of the device that it stands for.
#[derive(Debug, Serialize)]
pub struct PlaceReport {
    /// Host name.
    pub node: String,
    /// Scope: core or socket.
    pub scope: &'static str,
    /// Socket in the node's topology; null if unknown.
    pub socket: Option<u32>,
    /// The core within the node.
    pub core: Option<u32>,
    /// The kernel's number of the hardware thread.
    pub hardware_thread: u32,
    /// Values in the event's unit; null if there is no value. Several instances of a PMU also have a sum.
    pub values: BTreeMap<String, Option<f64>>,
}

/// The places of one run by node and hardware thread, at most `most`; and the number of all places.
pub fn of(run: &Run, most: usize) -> (Vec<PlaceReport>, usize) {
    let of_ranks = run.ranks.iter().map(|rank| (rank.rank, rank.node));
    let nodes: HashMap<RankId, NodeId> =
        of_ranks.chain(run.lost.iter().map(|rank| (rank.rank, rank.node))).collect();
    let mut rows: Vec<(NodeId, u32, &CountRow)> = run
        .counts
        .rows
        .iter()
        .filter(|row| row.region.is_none())
        .filter_map(|row| Some((*nodes.get(&row.rank)?, row.cpu?, row)))
        .collect();
    rows.sort_by_key(|(node, cpu, row)| (*node, *cpu, row.set));
    let count = rows.len();
    rows.truncate(most);
    (rows.into_iter().map(|(node, cpu, row)| PlaceReport::new(run, node, cpu, row)).collect(), count)
}

impl PlaceReport {
    fn new(run: &Run, node: NodeId, cpu: u32, row: &CountRow) -> Self {
        let record = &run.nodes[node.index()];
        let topology = record.topology.map(|topology| &run.topologies[topology as usize]);
        let thread = topology.and_then(|topology| topology.threads.iter().find(|thread| thread.cpu == cpu));
        // Several controllers at one place share a name: their sum, or null if one of them has no value.
        let mut values: BTreeMap<String, Option<f64>> = BTreeMap::new();
        let mut families: BTreeMap<String, (usize, Option<f64>)> = BTreeMap::new();
        for (event, reading) in readings(&run.counts, row) {
            let value = reading.value().map(|count| count as f64 * event.scale);
            let add = |sum: &mut Option<f64>| {
                *sum = sum.zip(value).map(|(sum, value)| sum + value).filter(|sum| sum.is_finite());
            };
            add(values.entry(event.name.clone()).or_insert(Some(0.0)));
            let (members, sum) = families.entry(family(event)).or_insert((0, Some(0.0)));
            add(sum);
            *members += 1;
        }
        // Instances with names of their own also get a sum.
        let together = families.into_iter().filter(|(_, (members, _))| *members > 1);
        for (name, (_, sum)) in together {
            values.entry(name).or_insert(sum);
        }
        Self {
            node: record.key.hostname.clone(),
            scope: run.counts.sets[row.set as usize].scope.name(),
            socket: thread.map(|thread| thread.socket),
            core: thread.map(|thread| thread.core),
            hardware_thread: cpu,
            values,
        }
    }
}
