//! What was counted at places of a node: hardware threads, and what belongs to no core.

use pmmpi::counters::counts::CountRow;
use pmmpi::record::Run;
use pmmpi_events::names::family;
use pmmpi_events::readings::readings;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// One hardware thread of one node, and what was counted there, or for what it stands for.
#[derive(Debug, Serialize)]
pub struct PlaceReport {
    /// Host name.
    pub node: String,
    /// core or socket.
    pub scope: &'static str,
    /// As the node's topology has it; null where that is not known.
    pub socket: Option<u32>,
    /// The core within the node.
    pub core: Option<u32>,
    /// By the kernel's number.
    pub hardware_thread: u32,
    /// In the event's unit; null where it has no value there. Of several instances of a PMU their sum, too.
    pub values: BTreeMap<String, Option<f64>>,
}

/// Of one run, at most `most` of them, by node and hardware thread; and how many there are.
pub fn of(run: &Run, most: usize) -> (Vec<PlaceReport>, usize) {
    let of_ranks = run.ranks.iter().map(|rank| (rank.rank, rank.node));
    let nodes: HashMap<u32, u32> =
        of_ranks.chain(run.lost.iter().map(|rank| (rank.rank, rank.node))).collect();
    let mut rows: Vec<(u32, u32, &CountRow)> = run
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
    fn new(run: &Run, node: u32, cpu: u32, row: &CountRow) -> Self {
        let record = &run.nodes[node as usize];
        let topology = record.topology.map(|topology| &run.topologies[topology as usize]);
        let thread = topology.and_then(|topology| topology.threads.iter().find(|thread| thread.cpu == cpu));
        // Several controllers of one place have one name: their sum, or nothing where one has none.
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
        // Those that have names of their own, together.
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
