//! Options of `pmmpi screen` on hosts of the rig: what the kernels do, and what is saved.

use pmmpi::record::Run;
use rig::checked_report::checked_report;
use rig::cluster::{Cluster, Job};
use rig::tool::{self, Folder, pmmpi};
use rig::{Mpi, programs};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A screen with these options, which must succeed. Gives its folder.
fn screened(job: Job, name: &str, options: &[&str]) -> Folder {
    let out = Folder::new(name);
    job.arg(pmmpi()).args(["screen", "--warmup", "0", "--out"]).arg(out.path()).args(options).run().success();
    out
}

/// The kernel and the number of ranks of each run, in the order of the runs.
fn kernels_of(runs: &[Run]) -> Vec<(&str, usize)> {
    let of = runs.iter().map(|run| (run.screened.as_ref().expect("results of a kernel"), run.ranks.len()));
    of.map(|(screened, ranks)| (screened.kernel.as_deref().expect("a kernel"), ranks)).collect()
}

/// Checks that each rank has values, and that its notes have these texts.
fn assert_results(run: &Run, measures: &[&str], notes: &[&str]) {
    let screened = run.screened.as_ref().expect("results of a kernel");
    let names: Vec<&str> = screened.measures.iter().map(|measure| measure.name.as_str()).collect();
    assert_eq!(&names[..measures.len()], measures);
    assert_eq!(screened.results.len(), run.ranks.len());
    for result in &screened.results {
        assert_eq!((&result.wrong, &result.failed), (&None, &None));
        assert!(result.values.len() == names.len() && result.values.iter().all(|value| *value > 0.0));
        let said = result.notes.join("\n");
        assert!(notes.iter().all(|note| said.contains(note)), "{notes:?} not in {said}");
    }
}

/// Checks that the report has a value of each of these hosts in each of these kernels.
fn assert_reported(out: &Folder, hosts: &[&str], kernels: &[&str]) {
    let report = checked_report(out.path());
    let screened = report["screened"].as_array().expect("screened nodes");
    let mut names: Vec<&str> = screened.iter().filter_map(|node| node["node"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, hosts);
    for (node, kernel) in screened.iter().flat_map(|node| kernels.iter().map(move |kernel| (node, kernel))) {
        let of = &node["kernels"][kernel];
        assert!(of["value"].as_f64().is_some_and(|value| value > 0.0), "{kernel}: {node:#}");
        assert_eq!(of["failed_runs"], 0, "{kernel}: {node:#}");
    }
}

/// About 3 s for each MPI.
#[test]
fn triad_takes_a_share_of_the_memory_and_stores_past_the_caches() {
    let cluster = Cluster::hours_apart(3);
    for mpi in Mpi::ALL {
        let options = ["--kernels", "triad", "--stores", "non-temporal", "--memory", "1%", "--rounds", "2"];
        let out = screened(cluster.mpirun(mpi, 3), "screen-stores", &options);
        let runs = out.runs();
        assert_eq!(kernels_of(&runs), [("triad", 3); 2]);
        for run in &runs {
            assert_eq!(run.header.command[2..], ["triad", "--memory", "1%", "--stores", "non-temporal"]);
            assert_results(run, &["triad"], &["non-temporal stores, 3 arrays of "]);
        }
        assert_reported(&out, &["node0", "node1", "node2"], &["triad"]);
    }
}

/// About 5 s: each node writes and reads a file of 1 GiB twice.
#[test]
fn the_kernel_disk_leaves_no_file() {
    let (cluster, disk) = (Cluster::hours_apart(2), Folder::new("screen-disk"));
    let folder = disk.path().display().to_string();
    let options = ["--kernels", "disk", "--disk", &folder, "--rounds", "1"];
    let out = screened(cluster.mpirun(Mpi::OpenMpi, 2), "screen-disk-runs", &options);
    let runs = out.runs();
    assert_eq!(kernels_of(&runs), [("disk", 2)]);
    let refusal = "refuses O_DIRECT: choose a folder on a local disk";
    let results = runs.iter().flat_map(|run| &run.screened.as_ref().expect("results of a kernel").results);
    let refused = results.filter(|of| of.failed.as_ref().is_some_and(|why| why.contains(refusal))).count();
    // The folder for temporary files may be in memory. Older Linux kernels refuse O_DIRECT there.
    if refused == 0 {
        assert_results(&runs[0], &["write", "read"], &["without the page cache (O_DIRECT)", &folder]);
        assert_reported(&out, &["node0", "node1"], &["disk"]);
    } else {
        assert_eq!(refused, 2);
    }
    assert_eq!(fs::read_dir(disk.path()).expect("the folder").count(), 0);
}

/// The hardware threads that a rank may use: one.
const ONE_EACH: &str = "exec taskset -c ${OMPI_COMM_WORLD_LOCAL_RANK:-$MPI_LOCALRANKID} \"$@\"";

/// About 3 s for each MPI.
#[test]
fn ranks_that_share_a_node_use_a_core_each() {
    let cluster = Cluster::hours_apart(2);
    for mpi in Mpi::ALL {
        let options = ["--kernels", "triad,fma", "--memory", "64M", "--cores", "rank", "--rounds", "1"];
        let job = cluster.mpirun(mpi, 4).args(["sh", "-c", ONE_EACH, "sh"]);
        let out = screened(job, "screen-cores", &options);
        let runs = out.runs();
        let mut kernels = kernels_of(&runs);
        kernels.sort_unstable();
        assert_eq!(kernels, [("fma", 4), ("triad", 4)]);
        for run in &runs {
            assert_results(run, &[], &[]);
            let results = &run.screened.as_ref().expect("results of a kernel").results;
            let mut threads: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
            for (rank, result) in run.ranks.iter().zip(results) {
                assert_eq!(rank.rank, result.rank);
                let host = run.nodes[rank.node.index()].key.hostname.as_str();
                threads.entry(host).or_default().extend(result.threads.iter().map(|(number, _)| number));
            }
            threads.values_mut().for_each(|numbers| numbers.sort_unstable());
            assert_eq!(threads, BTreeMap::from([("node0", vec![0, 1]), ("node1", vec![0, 1])]));
        }
        assert_reported(&out, &["node0", "node1"], &["fma", "triad"]);
    }
}

/// About 5 s for each MPI.
#[test]
fn a_soak_lasts_its_time_and_is_not_saved() {
    let cluster = Cluster::hours_apart(3);
    let soak = Duration::from_secs(2);
    let began = Instant::now();
    let options = ["--kernels", "fma", "--soak", "2s", "--rounds", "2"];
    let out = screened(cluster.mpirun(Mpi::OpenMpi, 3), "screen-soak", &options);
    assert!(began.elapsed() >= soak);
    let runs = out.runs();
    assert_eq!(kernels_of(&runs), [("fma", 3); 2]);
    assert_eq!(rounds_of(&runs), [0, 1]);
    let label = ("soak".to_owned(), "2s".to_owned());
    assert!(runs.iter().all(|run| run.header.labels.contains(&label)));
    assert_reported(&out, &["node0", "node1", "node2"], &["fma"]);
    // The same with a program, which counts its runs.
    let count = Folder::new("screen-soak-count");
    let script = format!("#!/bin/sh\necho >> {}/$(uname -n)\nsleep 0.3", count.path().display());
    let program = programs::script(count.path(), &script).display().to_string();
    let options = ["--soak", "2s", "--rounds", "1", "--", &program];
    let began = Instant::now();
    let out = screened(cluster.mpirun(Mpi::Mpich, 3), "screen-soak", &options);
    assert!(began.elapsed() >= soak);
    assert_eq!(rounds_of(&out.runs()), [0]);
    let times = ["node0", "node1", "node2"].map(|host| lines(&count.path().join(host)));
    assert!(times[0] >= 2 && times == [times[0]; 3], "{times:?}");
}

fn rounds_of(runs: &[Run]) -> Vec<u32> {
    runs.iter().map(|run| run.header.series.as_ref().expect("a series").round).collect()
}

fn lines(file: &Path) -> usize {
    fs::read_to_string(file).expect("a file of the program").lines().count()
}

/// The baseline is read before the first round and after the last round, and stays as it is. About 3 s.
#[test]
fn a_screen_is_compared_with_a_baseline() {
    let (folder, _alone) = (Folder::new("screen-against"), rig::cluster::machine());
    let screen = |out: &str, options: &[&str]| {
        let mut command = Command::new(pmmpi());
        command.args(["screen", "--rounds", "3", "--warmup", "0", "--out", out]).args(options);
        tool::run(command.args(["--", "sleep", "0.2"]).current_dir(folder.path()))
    };
    screen("before", &[]).success();
    let files = || {
        let entries = fs::read_dir(folder.path().join("before")).expect("the baseline");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("a file").file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    let refused = screen("refused", &["--against", "missing"]);
    let told = "pmmpi: --against missing: pmmpi cannot use this baseline\n";
    assert!(refused.code() == 2 && refused.err().starts_with(told), "{}", refused.err());
    let refused = screen("refused", &["--fail-on", "slow,moved"]);
    let told =
        "pmmpi: --fail-on moved: there is no earlier screen to compare with. Add --archive DIR or --against";
    assert!(refused.code() == 2 && refused.err().starts_with(told), "{}", refused.err());
    let kernels = ["screen", "--kernels", "fma,spin", "--out", "refused", "--against", "before"];
    let refused = tool::run(Command::new(pmmpi()).args(kernels).current_dir(folder.path()));
    let told = "The baseline has no time of fma, spin that was measured with the options";
    assert!(refused.code() == 2 && refused.err().contains(told), "{}", refused.err());
    assert!(tool::runs_in(&folder.path().join("refused")).is_empty());
    let options = ["--against", "before", "--format", "json", "--fail-on", "slow,moved"];
    let compared = screen("now", &options);
    // On a busy machine, the node may be slower, or the runs may not show it.
    assert!([0, 3, 4].contains(&compared.code()), "{} {}", compared.code(), compared.err());
    let found: serde_json::Value = serde_json::from_str(&compared.out()).expect("JSON");
    let kernel = &found["against"]["kernels"][0];
    assert!(kernel["kernel"] == "sleep" && kernel["nodes"] == 1 && kernel["change"].is_f64(), "{kernel:#}");
    assert_eq!(kernel["nodes_in_screen"], 1);
    assert_eq!(files(), before);
}

/// The script of `make demo-screen`, with fewer rounds. About 10 s.
#[test]
fn the_demo_screens_four_hosts() {
    let (folder, _alone) = (Folder::new("screen-demo"), rig::cluster::machine());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("rig/screen-demo.sh");
    let bin = pmmpi().parent().expect("a folder with bin").to_owned();
    let mut demo = Command::new("sh");
    demo.arg(script).arg(bin).arg(tool::target().join("release/pmmpi-rig-host"));
    demo.args(["--rounds", "1", "--warmup", "0"]).env("TMPDIR", folder.path());
    let said = tool::run(&mut demo).success().out();
    assert!(said.starts_with("$ mpirun.openmpi ") && said.contains("\nscreen of 4 nodes: "), "{said}");
    let results = said.lines().last().and_then(|line| line.strip_prefix("The run files are in "));
    let runs = tool::runs_in(Path::new(results.expect("the folder of the runs")));
    let mut kernels = kernels_of(&runs);
    kernels.sort_unstable();
    assert_eq!(kernels, [("dgemm", 4), ("net", 4), ("triad", 4)]);
    let is_dgemm = |run: &&Run| run.screened.as_ref().is_some_and(|of| of.kernel.as_deref() == Some("dgemm"));
    let dgemm = runs.iter().find(is_dgemm).expect("a run of dgemm");
    let results = &dgemm.screened.as_ref().expect("results of a kernel").results;
    for (rank, result) in dgemm.ranks.iter().zip(results) {
        let is_limited = dgemm.nodes[rank.node.index()].key.hostname == "node2";
        assert_eq!(result.threads.len() == 1, is_limited, "{result:?}");
    }
}
