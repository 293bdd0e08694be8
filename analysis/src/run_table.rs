//! The data frame: one row a (run, rank).

use pmmpi::record::{End, Run};
use polars::prelude::*;

/// Stamps in ns of the clock named by (`run`, `clock`); `run` counts from 0 in the order given.
///
/// | column | type | |
/// |---|---|---|
/// | run, clock, rank | u32 | `clock` is the number of the node record in its run |
/// | node | str | host name |
/// | t0_ns .. t3_ns | i64 | |
/// | usable | bool | the workload succeeded, and nothing says that this clock was stepped |
pub struct RunTable {
    frame: DataFrame,
}

/// Time that one node worked in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTime {
    /// Host name.
    pub node: String,
    /// Number of the run.
    pub run: usize,
    /// Number of a node record of that host in the run.
    pub clock: u32,
    /// The node's last t2 - its first t1, on its one clock (ns).
    pub work_ns: i64,
}

/// For each clock of a run: may its times be compared with others?
fn usable_clocks(run: &Run) -> Vec<bool> {
    let good = run.is_complete() && run.end().is_some_and(End::is_success);
    let mut usable = vec![good; run.nodes.len()];
    for suspect in run.elapsed().into_iter().flat_map(|elapsed| elapsed.suspects) {
        usable[suspect as usize] = false;
    }
    usable
}

impl RunTable {
    /// From runs in any order.
    pub fn new(runs: &[Run]) -> PolarsResult<Self> {
        let rows =
            || runs.iter().enumerate().flat_map(|(i, run)| run.ranks.iter().map(move |rank| (i, run, rank)));
        let stamp = |which: usize| {
            rows().map(|(_, _, rank)| <[i64; 4]>::from(rank.stamps)[which]).collect::<Vec<i64>>()
        };
        let usable: Vec<Vec<bool>> = runs.iter().map(usable_clocks).collect();
        let usable = rows().map(|(i, _, rank)| usable[i][rank.node as usize]);
        let host = |run: &Run, node: u32| run.nodes[node as usize].key.hostname.clone();
        let frame = df!(
            "run" => rows().map(|(i, ..)| i as u32).collect::<Vec<_>>(),
            "node" => rows().map(|(_, run, rank)| host(run, rank.node)).collect::<Vec<_>>(),
            "clock" => rows().map(|(_, _, rank)| rank.node).collect::<Vec<_>>(),
            "rank" => rows().map(|(_, _, rank)| rank.rank).collect::<Vec<_>>(),
            "t0_ns" => stamp(0),
            "t1_ns" => stamp(1),
            "t2_ns" => stamp(2),
            "t3_ns" => stamp(3),
            "usable" => usable.collect::<Vec<bool>>(),
        )?;
        Ok(Self { frame })
    }

    /// The frame itself.
    pub fn frame(&self) -> &DataFrame {
        &self.frame
    }

    /// Each node's time in each usable run, by node, time and run. Two clocks of one host name are
    /// never subtracted: the longer of their times counts.
    pub fn node_times(&self) -> PolarsResult<Vec<NodeTime>> {
        let times = self
            .frame
            .clone()
            .lazy()
            .filter(col("usable"))
            .group_by([col("run"), col("node"), col("clock")])
            .agg([(col("t2_ns").max() - col("t1_ns").min()).alias("work_ns")])
            .sort(["work_ns", "clock"], SortMultipleOptions::default())
            .group_by_stable([col("run"), col("node")])
            .agg([col("work_ns").last(), col("clock").last()])
            .sort(["node", "work_ns", "run"], SortMultipleOptions::default())
            .collect()?;
        let node = times.column("node")?.str()?;
        let run = times.column("run")?.u32()?;
        let clock = times.column("clock")?.u32()?;
        let work = times.column("work_ns")?.i64()?;
        let row = |at: usize| {
            Some(NodeTime {
                node: node.get(at)?.to_owned(),
                run: run.get(at)? as usize,
                clock: clock.get(at)?,
                work_ns: work.get(at)?,
            })
        };
        Ok((0..times.height()).filter_map(row).collect())
    }
}
