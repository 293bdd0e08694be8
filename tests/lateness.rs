//! Which node others waited for, on hosts whose clocks are hours apart. Only the rig knows these clocks.

use pmmpi::record::Run;
use rig::cluster::Cluster;
use rig::tool::{Folder, pmmpi, run, runs_in, tool};
use rig::{Mpi, programs};
use serde_json::Value;
use std::process::Command;

/// Rounding of seconds in JSON.
const ROUNDING_S: f64 = 1e-6;

/// When the last rank of each host reached the end (s).
type Arrivals = Vec<(String, f64)>;

/// Two ranks on each of three hosts. Returns the report of the run, and the arrival times.
fn measure(mpi: Mpi, args: [&str; 3], options: &[&str]) -> (Value, Arrivals) {
    let (folder, cluster) = (Folder::new("late"), Cluster::hours_apart(3));
    let job = cluster.mpirun(mpi, 6).arg(pmmpi()).args(options).arg("--out").arg(folder.path());
    job.arg(programs::mpi(mpi, "late")).args(args).run().success();
    let output = run(Command::new(tool("pmmpi")).args(["report", "--format", "json"]).arg(folder.path()));
    let mut report: Value = serde_json::from_slice(&output.success().stdout).unwrap();
    (report["runs"][0].take(), arrivals(&cluster, &runs_in(folder.path())[0]))
}

fn arrivals(cluster: &Cluster, run: &Run) -> Arrivals {
    let instants = cluster.instants_ns(run);
    let last = |node: usize| {
        let ranks = run.ranks.iter().zip(&instants).filter(|(rank, _)| rank.node.index() == node);
        ranks.map(|(_, at)| at[1]).max().expect("each host has ranks") as f64 / 1e9
    };
    run.nodes.iter().enumerate().map(|(at, node)| (node.key.hostname.clone(), last(at))).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// What the report says of each host is true.
fn assert_true(said: &Value, arrivals: &Arrivals) {
    let nodes = said["node_waits"].as_array().unwrap();
    assert_eq!((nodes.len(), said["node_waits_count"].as_u64()), (3, Some(3)));
    for node in nodes {
        let own = arrivals.iter().find(|(host, _)| node["node"] == **host).expect("a host of the job").1;
        let others = arrivals.iter().filter(|(host, _)| node["node"] != **host).map(|(_, at)| *at);
        let truth = own - others.fold(f64::MIN, f64::max);
        let lateness = numbers(&node["lateness_s"]);
        assert!(lateness[0] <= truth + ROUNDING_S && truth - ROUNDING_S <= lateness[1], "{truth} {node}");
        let median = {
            let mut all: Vec<f64> = arrivals.iter().map(|(_, at)| *at).collect();
            all.sort_by(f64::total_cmp);
            own - all[1]
        };
        let behind = numbers(&node["behind_median_s"]);
        assert!(behind[0] <= median + ROUNDING_S && median - ROUNDING_S <= behind[1], "{median} {node}");
        assert_eq!(node["ranks"], 2);
    }
}

fn a_late_rank_is_named(mpi: Mpi) {
    for options in [&[][..], &["--sync", "pingpong"]] {
        let (said, arrivals) = measure(mpi, ["20", "2", "500"], options);
        assert_true(&said, &arrivals);
        let waited_for = &said["waited_for"];
        assert_eq!(waited_for["node"], "node1", "{waited_for}");
        assert_eq!((&waited_for["rank"], &waited_for["sure"]), (&2.into(), &true.into()), "{waited_for}");
        assert!(numbers(&waited_for["rank_lateness_s"])[0] > 0.0, "{waited_for}");
        // Five of six ranks wait nearly all the time.
        assert!(waited_for["waiting_share"].as_f64().unwrap() > 0.3, "{waited_for}");
        let warnings = said["warnings"].as_array().unwrap();
        let late: Vec<_> = warnings.iter().filter(|warning| warning["code"] == "late-node").collect();
        let message = late[0]["message"].as_str().unwrap();
        assert!(
            message.starts_with("the other 2 nodes waited at least 0.")
                && message.contains(" of the elapsed time) for node1; ")
                && late.len() == 1,
            "{message}"
        );
    }
}

#[test]
fn a_late_rank_is_named_under_open_mpi() {
    a_late_rank_is_named(Mpi::OpenMpi);
}

#[test]
fn a_late_rank_is_named_under_mpich() {
    a_late_rank_is_named(Mpi::Mpich);
}

/// With equal ranks, a node that the report names as last was last, and by no more than the true time. Usually the
/// report names none.
#[test]
fn nobody_is_named_of_equal_ranks_who_was_not_last() {
    for mpi in Mpi::ALL {
        let (said, arrivals) = measure(mpi, ["50", "0", "0"], &[]);
        assert_true(&said, &arrivals);
        let waited_for = &said["waited_for"];
        assert_eq!(waited_for["sure"], numbers(&waited_for["lateness_s"])[0] > 0.0);
    }
}
