//! What nodes count when hardware does not work as it should, around real runs: on a node with the files of another
//! machine and a double of NVIDIA's library.

use pmmpi::node::HealthCount;
use pmmpi::record::Run;
use rig::cluster::machine;
use rig::tool::{Folder, is_over_within, pmmpi, processes_with_variable, run, runs_in, target};
use rig::{FOR_ROOT, Mpi, programs};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The file with the rate of its network link.
const RATE: &str = "class/infiniband/mlx5_0/ports/1/rate";

/// What its fall is in a run.
const LINK_FELL: &str = "infiniband from 1 x 200 Gb/sec (4X HDR) to 1 x 100 Gb/sec (2X HDR)";

/// A node with NVIDIA's driver and an InfiniBand adapter, below `folder`.
struct Node {
    folder: Folder,
    library: PathBuf,
}

impl Node {
    fn new() -> Self {
        let folder = Folder::new("health");
        let node = Self { library: double_of_nvml(folder.path()), folder };
        fs::create_dir_all(node.path("module/nvidia")).unwrap();
        for (file, text) in [
            ("class/net/lo/type", "772\n"),
            ("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"),
            (RATE, "200 Gb/sec (4X HDR)\n"),
            ("class/infiniband/mlx5_0/ports/1/counters/link_downed", "1\n"),
            ("counted", "1000000000 5\n"),
        ] {
            node.put(file, text);
        }
        node
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs a command there, in a mount namespace of its own.
    fn run(&self, command: &[&str]) -> Vec<Run> {
        let _ = fs::remove_dir_all(self.path("runs"));
        let script = format!(
            "set -e; cd {}; mount --bind module /sys/module; mount --bind class /sys/class; cd /; exec \"$@\"",
            self.folder.path().display()
        );
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-c", &script, "sh"]).args(command).envs(FOR_ROOT);
        shell.env("LD_LIBRARY_PATH", self.library.parent().unwrap());
        shell.env("NVML_DOUBLE", self.path("counted")).env("LINK_RATE", self.path(RATE));
        shell.env("PMMPI_OUT", self.path("runs"));
        run(&mut shell).success();
        runs_in(&self.path("runs"))
    }
}

fn double_of_nvml(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/nvml.c");
    let library = folder.join("double/libnvidia-ml.so.1");
    fs::create_dir_all(library.parent().unwrap()).unwrap();
    run(Command::new("cc").args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(&library).arg(source))
        .success();
    library
}

fn count<'a>(run: &'a Run, name: &str) -> &'a HealthCount {
    let counts = &run.nodes[0].health;
    counts.iter().find(|count| count.name == name).unwrap_or_else(|| panic!("{name}: {counts:#?}"))
}

fn check(run: &Run, what: &str) {
    let gpu = |name: &str| {
        let HealthCount { before, added, added_at, .. } = count(run, name);
        (*before, *added, added_at.clone())
    };
    let at_first = |added: u64| vec![("GPU 0".to_owned(), added)];
    assert_eq!(gpu("gpu_throttled_ms"), (1000, Some(1500), at_first(1500)), "{what}");
    assert_eq!(gpu("gpu_memory_errors_corrected"), (5, Some(7), at_first(7)), "{what}");
    assert_eq!(count(run, "link_downs").added, Some(0), "{what}");
    let facts = run.nodes[0].facts.as_ref().unwrap().named();
    assert_eq!(
        facts["gpus"],
        "2 x NVIDIA H100 PCIe, at most 1755 MHz, 350 W, ECC on, 1 x lost GPU; driver 570.86.15",
        "{what}"
    );
    assert_eq!(facts["infiniband"], "1 x 200 Gb/sec (4X HDR)", "{what}");
    let changed = run.nodes[0].facts.as_ref().unwrap().inventory.changed();
    assert_eq!(changed, Some(LINK_FELL), "{what}");
}

/// Alone, under launchers of both MPIs, as an MPI program and in rounds.
#[test]
fn gpus_and_kernel_are_read_around_the_work() {
    let node = Node::new();
    let tool = pmmpi();
    let tool = tool.to_str().unwrap();
    let counted = node.path("counted");
    let rate = node.path(RATE).display().to_string();
    let heats =
        format!("sleep 1.1; echo 2500000000 12 > {}; echo '100 Gb/sec (2X HDR)' > {rate}", counted.display());
    let _alone = machine();
    let measure = |what: &str, command: &[&str]| {
        node.put("counted", "1000000000 5\n");
        node.put(RATE, "200 Gb/sec (4X HDR)\n");
        let runs = node.run(command);
        assert_eq!(runs.len(), 1, "{what}");
        check(&runs[0], what);
    };
    measure("alone", &[tool, "sh", "-c", &heats]);
    for mpi in Mpi::ALL {
        let mpirun = format!("mpirun.{}", mpi.name());
        let program = programs::mpi(mpi, "heats_gpu");
        measure(&mpirun, &[&mpirun, "-n", "2", tool, program.to_str().unwrap()]);
        measure(&format!("{mpirun}, rounds"), &[&mpirun, "-n", "1", tool, "sh", "-c", &heats]);
    }
}

/// A driver that hangs takes nothing from a run but the GPUs, and leaves no process behind. A short run does not wait for it.
#[test]
fn a_driver_that_hangs_takes_only_the_gpus() {
    let node = Node::new();
    // Nothing ever opens the gate.
    let gate = format!("NVML_GATE={}", node.path("gate").display());
    let tool = pmmpi();
    let tool = tool.to_str().unwrap();
    let _alone = machine();
    let check = |what: &str, command: &[&str]| {
        let command: Vec<&str> = ["env", &gate].iter().chain(command).copied().collect();
        let began = Instant::now();
        let runs = node.run(&command);
        assert!(began.elapsed() < Duration::from_secs(30), "{what}: the driver hangs for a minute");
        assert_eq!(count(&runs[0], "link_downs").added, Some(0), "{what}");
        assert!(!runs[0].nodes[0].health.iter().any(|count| count.name.starts_with("gpu")), "{what}");
        let left = || processes_with_variable(&gate);
        assert!(is_over_within(Duration::from_secs(10), || left().is_empty()), "{what}: left {:?}", left());
        runs[0].nodes[0].facts.as_ref().unwrap().inventory.changed().map(str::to_owned)
    };
    assert_eq!(check("short", &[tool, "true"]), None);
    let rate = node.path(RATE).display().to_string();
    let falls = format!("sleep 1.1; echo '100 Gb/sec (2X HDR)' > {rate}");
    assert_eq!(check("alone", &[tool, "sh", "-c", &falls]).as_deref(), Some(LINK_FELL));
    for mpi in Mpi::ALL {
        node.put(RATE, "200 Gb/sec (4X HDR)\n");
        let mpirun = format!("mpirun.{}", mpi.name());
        let program = programs::mpi(mpi, "heats_gpu");
        let changed = check(&mpirun, &[&mpirun, "-n", "2", tool, program.to_str().unwrap()]);
        assert_eq!(changed.as_deref(), Some(LINK_FELL), "{mpirun}");
    }
}

/// Each round has the facts of its own beginning.
#[test]
fn a_later_round_has_the_facts_of_its_time() {
    let node = Node::new();
    let falls = format!("sleep 1.1; echo '100 Gb/sec (2X HDR)' > {}", node.path(RATE).display());
    let _alone = machine();
    let runs = node.run(&[pmmpi().to_str().unwrap(), "--runs", "2", "--quiet", "sh", "-c", &falls]);
    let facts: Vec<_> = runs.iter().map(|run| run.nodes[0].facts.as_ref().unwrap()).collect();
    let rates: Vec<_> = facts.iter().map(|facts| facts.named()["infiniband"].clone()).collect();
    assert_eq!(rates, ["1 x 200 Gb/sec (4X HDR)", "1 x 100 Gb/sec (2X HDR)"]);
    let changed: Vec<_> = facts.iter().map(|facts| facts.inventory.changed()).collect();
    assert_eq!(changed, [Some(LINK_FELL), None]);
}

/// Without NVIDIA's library the program that reads GPUs says so and fails; a run does not.
#[test]
fn a_missing_library_is_no_error() {
    let gpus = target().join("pmmpi/lib/pmmpi/pmmpi-gpus");
    let alone = run(&mut Command::new(&gpus));
    assert!(!alone.status.success() && alone.err().contains("libnvidia-ml.so.1"), "{}", alone.err());
    // A short run may end before this program starts. Without its parent it does not even load the library.
    let orphan = run(Command::new(&gpus).arg("1"));
    assert!(!orphan.status.success() && orphan.err().is_empty(), "{}", orphan.err());
    let node = Node::new();
    fs::remove_file(&node.library).unwrap();
    let _alone = machine();
    let runs = node.run(&[pmmpi().to_str().unwrap(), "true"]);
    assert!(!runs[0].nodes[0].health.iter().any(|count| count.name.starts_with("gpu")));
}
