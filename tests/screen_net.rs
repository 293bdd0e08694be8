//! The kernel `net` of `pmmpi screen` on hosts of the rig: pairs of nodes, with real messages.

use pmmpi::RankId;
use pmmpi::network::{Network, readings};
use rig::Mpi;
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
fn one_node_alone_is_refused() {
    let output = rig::tool::run(Command::new(pmmpi()).args(["screen", "--kernels", "net"]));
    assert_eq!(output.code(), 2, "{}", output.err());
    assert!(output.err().contains("the kernel net measures the network between nodes"), "{}", output.err());
}
