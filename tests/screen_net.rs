//! The kernel `net` of `pmmpi screen` on hosts of the rig: pairs of nodes, with real messages.

use pmmpi::RankId;
use pmmpi::slow_links::{Network, readings};
use rig::Mpi;
use rig::checked_report::checked_report;
use rig::cluster::Cluster;
use rig::tool::{Folder, pmmpi};
use std::process::Command;

#[test]
fn the_first_rank_of_each_node_measures_with_all_others() {
    let cluster = Cluster::hours_apart(3);
    for (mpi, ranks) in [(Mpi::OpenMpi, 6), (Mpi::Mpich, 3)] {
        let out = Folder::new("screen-net");
        let pmmpi = pmmpi().display().to_string();
        let args = ["screen", "--kernels", "net", "--rounds", "2", "--warmup", "0", "--out"];
        let output = cluster.mpirun(mpi, ranks).arg(pmmpi).args(args).arg(out.path()).run().success();
        let runs = out.runs();
        assert_eq!(runs.len(), 2, "{}", output.err());
        for run in &runs {
            let screened = run.screened.as_ref().expect("results of a kernel");
            assert_eq!(screened.kernel.as_deref(), Some("net"));
            let names: Vec<_> = screened.measures.iter().map(|measure| measure.name.as_str()).collect();
            assert_eq!(names, ["bandwidth", "latency", "least latency"]);
            let leaders: Vec<RankId> = screened.results.iter().map(|result| result.rank).collect();
            assert_eq!(leaders.len(), 3, "{}", output.err());
            for result in &screened.results {
                assert_eq!((&result.wrong, &result.failed, &result.notes), (&None, &None, &vec![]));
                let mut others: Vec<RankId> = result.links.iter().map(|link| link.partner).collect();
                others.push(result.rank);
                others.sort_unstable();
                assert_eq!(others, leaders);
                assert!(result.seconds.is_some_and(|seconds| seconds > 0.0));
                assert_eq!(result.values.len(), 3);
            }
        }
        let network = Network::of(runs.iter().flat_map(readings));
        assert_eq!(network.nodes.into_keys().collect::<Vec<_>>(), ["node0", "node1", "node2"]);
    }
}

#[test]
fn a_node_with_a_slow_link_is_slow_in_the_network() {
    let hosts = ["n0", "n1", "n2", "n3", "n4"].map(|name| (name, 0));
    let (cluster, out) = (Cluster::new(&hosts), Folder::new("screen-link"));
    let job = cluster.mpirun_on_networks("n2", "1gbit").arg(pmmpi());
    let args = ["screen", "--kernels", "net", "--rounds", "7", "--out"];
    let output = job.args(args).arg(out.path()).run().success();
    let report = checked_report(out.path());
    for node in report["screened"].as_array().expect("nodes") {
        let is_slow = node["node"] == "n2";
        assert_eq!(node["verdict"] == "SLOW-TAIL", is_slow, "{}\n{node:#}", output.out());
        assert!(!is_slow || node["slow_in"] == "network", "{node:#}");
    }
    assert!(
        output.out().contains("1 of 5 nodes is slower than its class: n2 in network "),
        "{}",
        output.out()
    );
}

#[test]
fn one_node_alone_is_refused() {
    let output = rig::tool::run(Command::new(pmmpi()).args(["screen", "--kernels", "net"]));
    assert_eq!(output.code(), 2, "{}", output.err());
    assert!(output.err().contains("the kernel `net` measures the network between nodes"), "{}", output.err());
}
