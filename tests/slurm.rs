//! Under a real Slurm of four nodes: each kind of program and of launch, each way to end, and any user.
//! docs/programs.md lists these tests. They share a cluster, one at a time.

use pmmpi::record::{End, Mode, Run};
use rig::kinds::{self, Kind};
use rig::slurm::{NODES, Slurm};
use rig::tool::{self, Folder, Output, Started, pmmpi, runs_in};
use rig::{Mpi, programs};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How srun starts a job of this MPI's.
fn manager(mpi: Mpi) -> &'static str {
    match mpi {
        Mpi::OpenMpi => "--mpi=pmix",
        Mpi::Mpich => "--mpi=pmi2",
    }
}

const TWO_NODES: [&str; 2] = ["-N2", "--ntasks-per-node=1"];

/// Two ranks on two nodes.
fn measure(mpi: Mpi, kind: Kind) {
    let slurm = Slurm::turn();
    kinds::measured_once(kind, mpi, |program, before| {
        let argv: Vec<&str> = program.argv.iter().map(String::as_str).collect();
        let args = [&TWO_NODES[..], &[manager(mpi)], before, &argv].concat();
        let mut command = slurm.command(&std::env::temp_dir(), "srun", &args);
        tool::run(command.envs(program.environment.iter().map(|(name, value)| (name, value))))
    });
}

macro_rules! cells {
    ($($mpi:expr, $($kind:ident => $name:ident),*;)*) => {$($(
        #[test]
        fn $name() {
            measure($mpi, kinds::$kind);
        }
    )*)*};
}

cells! {
    Mpi::OpenMpi, c => c_under_srun_pmix, plusplus => cplusplus_under_srun_pmix, mpif_h => mpif_h_under_srun_pmix,
        use_mpi => use_mpi_under_srun_pmix, use_mpi_f08 => use_mpi_f08_under_srun_pmix,
        mpi4py => mpi4py_under_srun_pmix, shell_command => a_shell_command_under_srun_pmix,
        env_and_numactl => env_and_numactl_under_srun_pmix, script => a_script_under_srun_pmix;
    Mpi::Mpich, c => c_under_srun_pmi2, plusplus => cplusplus_under_srun_pmi2, mpif_h => mpif_h_under_srun_pmi2,
        use_mpi => use_mpi_under_srun_pmi2, use_mpi_f08 => use_mpi_f08_under_srun_pmi2,
        mpi4py => mpi4py_under_srun_pmi2, shell_command => a_shell_command_under_srun_pmi2,
        env_and_numactl => env_and_numactl_under_srun_pmi2, script => a_script_under_srun_pmi2;
}

#[test]
fn threads_are_initialised_as_asked_under_srun() {
    let slurm = Slurm::turn();
    for mpi in Mpi::ALL {
        let init_thread = programs::mpi(mpi, "init_thread").display().to_string();
        for level in ["0", "1", "2", "3"] {
            let program = programs::Launchable::of_words([init_thread.as_str(), level]);
            kinds::measured(&program, |_, before| {
                let args = [&TWO_NODES[..], &[manager(mpi)], before, &[init_thread.as_str(), level]].concat();
                slurm.run(&std::env::temp_dir(), "srun", &args)
            });
        }
    }
}

/// Eight ranks on four nodes whose clocks are hours apart.
#[test]
fn a_step_is_bounded_and_knows_its_job() {
    let slurm = Slurm::turn();
    for mpi in Mpi::ALL {
        let folder = Folder::new("srun");
        let (tool, program) = (text(pmmpi()), text(programs::mpi(mpi, "truth")));
        let here = text(folder.path());
        let args =
            ["-N4", "--ntasks-per-node=2", manager(mpi), &tool, "--out", "runs", &program, &here, "20", "5"];
        slurm.run(folder.path(), "srun", &args).success();
        let run = only_run(&folder.path().join("runs"));
        assert_eq!((run.ranks.len(), run.nodes.len(), run.end()), (2 * NODES, NODES, Some(End::Finalized)));
        let job = &run.header.job;
        assert_eq!((job.launcher.as_deref(), job.launched_ranks), (Some("srun"), Some(2 * NODES as u32)));
        assert!(job.job_id.is_some() && job.step_id.is_some());
        assert!(run.header.environment.iter().any(|(name, _)| name == "SLURM_STEP_NUM_TASKS"));
        let bounds = run.elapsed().unwrap();
        assert!(bounds.consistent && bounds.lower_ns >= 50_000_000, "{bounds:?}");
    }
}

/// In rounds, through the runner; and its failure is the step's.
#[test]
fn a_plain_program_is_measured_in_rounds_under_srun() {
    let slurm = Slurm::turn();
    let tool = text(pmmpi());
    for mpi in Mpi::ALL {
        let folder = Folder::new("plain");
        let srun = |args: &[&str]| {
            let layout = ["-N4", "--ntasks-per-node=2", manager(mpi), &tool, "--out"];
            slurm.run(folder.path(), "srun", &[&layout, args].concat())
        };
        srun(&["runs", "--runs", "2", "--", "sleep", "0.02"]).success();
        let runs = runs_in(&folder.path().join("runs"));
        assert_eq!(runs.len(), 2, "{mpi:?}");
        for run in &runs {
            assert_eq!((run.ranks.len(), run.nodes.len(), run.header.mode), (2 * NODES, NODES, Mode::Plain));
            assert!(run.elapsed().unwrap().consistent);
        }
        let failed = srun(&["failed", "--mode", "plain", "sh", "-c", "exit 9"]);
        assert_eq!(failed.code(), 9, "{}", failed.err());
    }
}

/// Without a process manager each task is alone, and is told so.
#[test]
fn plain_programs_without_a_process_manager_are_alone() {
    let slurm = Slurm::turn();
    let folder = Folder::new("alone");
    let tool = text(pmmpi());
    let args = [&TWO_NODES[..], &["--mpi=none", &tool, "--out", "runs", "sleep", "0.01"]].concat();
    let output = slurm.run(folder.path(), "srun", &args).success();
    assert!(output.err().contains("add --mpi=pmix or --mpi=pmi2"), "{}", output.err());
    assert_eq!(runs_in(&folder.path().join("runs")).len(), 2);
}

/// MPICH under pmix or under no process manager runs as so many jobs of one rank.
#[test]
fn a_wrong_process_manager_is_named() {
    let slurm = Slurm::turn();
    let folder = Folder::new("mismatch");
    let (tool, program) = (text(pmmpi()), text(programs::mpi(Mpi::Mpich, "says")));
    for manager in ["--mpi=pmix", "--mpi=none"] {
        let srun = |more: &[&str]| {
            let args = [&TWO_NODES[..], &[manager, &tool, "--no-save"], more, &[&program]].concat();
            slurm.run(folder.path(), "srun", &args)
        };
        let warned = srun(&[]).success();
        assert_eq!(warned.err().matches("add --mpi=pmi2 to srun").count(), 1, "{}", warned.err());
        let aborted = srun(&["--on-mismatch", "abort"]);
        assert_eq!(aborted.code(), 125, "{}", aborted.err());
        assert!(aborted.err().contains("add --mpi=pmi2 to srun") && !aborted.out().contains("rank"));
    }
}

/// slurm/hpl.sbatch as it is: several runs and a report.
#[test]
fn the_batch_script_measures_and_reports() {
    let slurm = Slurm::turn();
    let folder = Folder::new("batch");
    let (script, program) = (script("hpl"), text(programs::mpi(Mpi::OpenMpi, "truth")));
    let here = text(folder.path());
    let export = "--export=ALL,PMMPI_RUNS=3,PMMPI_OUT=runs";
    let args = ["--output=log", export, &script, &program, &here, "10", "5"];
    let succeeded = slurm.batch(&mut slurm.command(folder.path(), "sbatch", &args));
    let log = read(folder.path().join("log"));
    assert!(succeeded, "{log}");
    let runs = runs_in(&folder.path().join("runs"));
    assert_eq!(runs.len(), 3, "{log}");
    assert!(runs.iter().all(|run| run.ranks.len() == 4 && run.header.labels.len() == 1));
    assert!(log.contains("3 runs, 2 nodes, 3 files"), "{log}");
}

/// slurm/step.sbatch as it is: each job of an array leaves a run.
#[test]
fn each_job_of_an_array_is_measured() {
    let slurm = Slurm::turn();
    let folder = Folder::new("array");
    let program = text(programs::mpi(Mpi::Mpich, "says"));
    let export = "--export=ALL,PMMPI_SRUN_MPI=pmi2,PMMPI_OUT=runs";
    let args = ["--array=1-3", "--output=log.%a", export, &script("step"), &program];
    let succeeded = slurm.batch(&mut slurm.command(folder.path(), "sbatch", &args));
    assert!(succeeded, "{}", read(folder.path().join("log.1")));
    let runs = runs_in(&folder.path().join("runs"));
    assert!(runs.len() == 3 && runs.iter().all(|run| run.ranks.len() == 4 && run.nodes.len() == 2));
    let mut labels: Vec<_> = runs.iter().map(|run| run.header.labels[1].1.clone()).collect();
    labels.sort();
    assert_eq!(labels, ["1", "2", "3"]);
}

/// Two components, other numbers of ranks on a node in each: one world, one run.
#[test]
fn components_of_a_heterogeneous_step_are_one_run() {
    // Slurm 22.05's srun joins one thread of its pmix plugin once for each component, and does not end where two
    // joins meet, whatever it started: so one component ends later.
    const LATER: [&str; 4] = ["sh", "-c", "\"$@\"; sleep 1", "later"];
    for mpi in Mpi::ALL {
        let mut slurm = Slurm::turn();
        let folder = Folder::new("het");
        let (tool, program) = (text(pmmpi()), text(programs::mpi(mpi, "says")));
        let measured = [tool.as_str(), "--on-mismatch", "abort", "--out", "runs", &program];
        let first = [&["-N1", "-n2", manager(mpi)], &measured[..]].concat();
        let args = [&first[..], &[":", "-N2", "-n2"], &LATER, &measured].concat();
        let started = tool::start(&mut slurm.command(folder.path(), "srun", &args));
        started.wait_for_error("4 ranks on 3 nodes");
        // On a busy machine the joins meet all the same.
        let ended = started.ends_within(Duration::from_secs(30));
        if !ended {
            slurm.spoil();
            started.signal_group(libc::SIGKILL);
        }
        let output = started.finish();
        assert!(output.status.success() || !ended, "{}", output.err());
        assert_is_one_run(&folder, &format!("{}{}", output.out(), output.err()));
    }
}

/// A batch job of two components: a step of both is one run, and a step of the second alone is one, too.
#[test]
fn steps_of_a_heterogeneous_batch_job_are_measured() {
    let slurm = Slurm::turn();
    let folder = Folder::new("hetbatch");
    let program = text(programs::mpi(Mpi::Mpich, "says"));
    let step = |groups: &str, out: &str| {
        format!("srun --mpi=pmi2 --het-group={groups} pmmpi --on-mismatch abort --out {out} {program}\n")
    };
    let layout =
        "#SBATCH --nodes=1 --ntasks-per-node=2\n#SBATCH hetjob\n#SBATCH --nodes=2 --ntasks-per-node=1\n";
    let script = format!("#!/bin/sh\n{layout}{}{}", step("0,1", "runs"), step("1", "second"));
    let script = text(programs::script(folder.path(), &script));
    let succeeded = slurm.batch(&mut slurm.command(folder.path(), "sbatch", &["--output=log", &script]));
    let log = read(folder.path().join("log"));
    assert!(succeeded, "{log}");
    assert_is_one_run(&folder, &log);
    let second = only_run(&folder.path().join("second"));
    assert_eq!((second.ranks.len(), second.nodes.len(), second.header.job.launched_ranks), (2, 2, Some(2)));
}

/// Of four ranks, two of them on the first of three nodes.
fn assert_is_one_run(folder: &Folder, said: &str) {
    let run = only_run(&folder.path().join("runs"));
    assert_eq!((run.ranks.len(), run.nodes.len(), run.end()), (4, 3, Some(End::Finalized)));
    assert_eq!(run.header.job.launched_ranks, Some(4));
    assert!(run.header.environment.contains(&("SLURM_HET_SIZE".to_owned(), "2".to_owned())));
    assert!(run.elapsed().unwrap().consistent && run.nodes.iter().all(|node| node.facts.is_some()));
    assert_eq!(said.matches("4 ranks on 3 nodes").count(), 1, "{said}");
    assert_eq!(said.matches(" of 4").count(), 4, "{said}");
    assert!(!said.contains("warning"), "{said}");
}

/// A program that one MPI runs as jobs of one rank is named once for all components.
#[test]
fn a_wrong_process_manager_of_a_heterogeneous_step_is_named_once() {
    let slurm = Slurm::turn();
    let folder = Folder::new("hetwrong");
    let (tool, program) = (text(pmmpi()), text(programs::mpi(Mpi::Mpich, "says")));
    let measured = ["-N1", "-n2", &tool, "--no-save", &program];
    let args = [&["--mpi=none"], &measured[..], &[":"], &measured].concat();
    let warned = slurm.run(folder.path(), "srun", &args).success();
    assert_eq!(warned.err().matches("srun started 4 ranks").count(), 1, "{}", warned.err());
    assert_eq!(warned.err().matches("add --mpi=pmi2 to srun").count(), 1, "{}", warned.err());
}

#[test]
fn a_rank_killed_under_srun_k1_is_recorded() {
    let slurm = Slurm::turn();
    for mpi in Mpi::ALL {
        let folder = Folder::new("kill");
        let output = four_ranks(&slurm, mpi, &folder, &["kill", "1", "0"]).finish();
        assert_eq!(left_of(mpi, &folder, &output).end(), Some(End::Signaled(libc::SIGKILL)), "{mpi:?}");
    }
}

#[test]
fn a_step_cancelled_by_scancel_is_recorded() {
    let slurm = Slurm::turn();
    for mpi in Mpi::ALL {
        let folder = Folder::new("scancel");
        let started = four_ranks(&slurm, mpi, &folder, &["wait", "0", "600000"]);
        wait_for_ranks(&started, &folder, NODES);
        slurm.run(folder.path(), "scancel", &["--name=ends"]).success();
        let output = started.finish();
        assert!(left_of(mpi, &folder, &output).end().is_some_and(|end| !end.is_success()));
    }
}

/// What the lost node's rank had measured is kept as well.
#[test]
fn a_run_that_loses_a_node_is_recorded() {
    for mpi in Mpi::ALL {
        let mut slurm = Slurm::turn();
        let folder = Folder::new("node");
        let started = four_ranks(&slurm, mpi, &folder, &["wait", "0", "600000"]);
        wait_for_ranks(&started, &folder, NODES);
        slurm.lose_node(3);
        slurm.run(folder.path(), "scancel", &["--name=ends"]).success();
        let output = started.finish();
        assert!(left_of(mpi, &folder, &output).end().is_some_and(|end| !end.is_success()));
    }
}

/// tests/programs/ends.c on each node: how, which rank, and how long at most.
fn four_ranks(slurm: &Slurm, mpi: Mpi, folder: &Folder, [how, rank, ms]: &[&str; 3]) -> Started {
    let (tool, program, here) = (text(pmmpi()), text(programs::mpi(mpi, "ends")), text(folder.path()));
    let layout = ["-N4", "--ntasks-per-node=1", "--job-name=ends", manager(mpi), "-K1"];
    let args = [&layout[..], &[&tool, "--out", "runs", &program, how, rank, &here, ms]].concat();
    tool::start(&mut slurm.command(folder.path(), "srun", &args))
}

fn wait_for_ranks(started: &Started, folder: &Folder, ranks: usize) {
    while !(0..ranks).all(|rank| folder.path().join(format!("pids.{rank}")).exists()) {
        started.assert_running();
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The one run of which every rank was lost.
fn left_of(mpi: Mpi, folder: &Folder, output: &Output) -> Run {
    assert!(!output.status.success());
    let run = pmmpi::partial::read(&partial_folder(folder)).unwrap();
    assert_eq!((run.lost.len(), run.nodes.len()), (NODES, NODES), "{mpi:?} {}", output.err());
    run
}

fn partial_folder(folder: &Folder) -> PathBuf {
    let left = std::fs::read_dir(folder.path().join("runs")).unwrap().flatten().map(|entry| entry.path());
    let left: Vec<_> = left.filter(|path| path.extension().is_some_and(|e| e == "partial")).collect();
    assert_eq!(left.len(), 1);
    left[0].clone()
}

/// Neither is root, whose the cluster's daemons are.
const USER: u32 = 65_534;
const ANOTHER_USER: u32 = 1;

/// The tool where every user finds it, not in a checkout that may be one's own; a folder of the user's own.
struct Home {
    folder: Folder,
    tool: PathBuf,
}

impl Home {
    fn new() -> Self {
        let folder = Folder::new("user");
        chown(folder.path(), Some(USER), Some(USER)).unwrap();
        let stage = tool::target().join("pmmpi");
        tool::run(Command::new("cp").arg("-r").arg(stage).arg(folder.path().join("tool"))).success();
        tool::run(Command::new("chmod").args(["-R", "a+rX,go-w"]).arg(folder.path())).success();
        Self { tool: folder.path().join("tool/bin/pmmpi"), folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A file of the checkout's, readable by everyone.
    fn copy(&self, file: impl AsRef<Path>) -> String {
        let copy = self.path().join(file.as_ref().file_name().unwrap());
        std::fs::copy(file, &copy).unwrap();
        std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).unwrap();
        text(copy)
    }

    fn command(&self, slurm: &Slurm, program: &str, args: &[&str]) -> Command {
        let mut command = slurm.command(self.path(), program, args);
        let path = format!("{}:/usr/bin:/bin", self.tool.parent().unwrap().display());
        command.env("HOME", self.path()).env("PATH", path).uid(USER).gid(USER);
        command
    }

    fn run(&self, slurm: &Slurm, program: &str, args: &[&str]) -> Output {
        tool::run(&mut self.command(slurm, program, args))
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o777
}

/// Nobody in particular measures, with srun and with sbatch: the runs are that user's, and nothing else is left.
#[test]
fn a_user_who_is_not_root_measures() {
    let slurm = Slurm::turn();
    for mpi in Mpi::ALL {
        let home = Home::new();
        let program = home.copy(programs::mpi(mpi, "says"));
        let step = [&TWO_NODES[..], &[manager(mpi), "pmmpi", "--out", "runs", &program]].concat();
        home.run(&slurm, "srun", &step).success();
        // Installed so that it can be run and not read: the kernel then guards its process from others.
        std::fs::set_permissions(&home.tool, PermissionsExt::from_mode(0o711)).unwrap();
        home.run(&slurm, "srun", &step).success();
        let plain = [&TWO_NODES[..], &[manager(mpi), "pmmpi", "--out", "runs", "sleep", "0.01"]].concat();
        home.run(&slurm, "srun", &plain).success();
        let export =
            format!("--export=ALL,PMMPI_OUT=runs,PMMPI_SRUN_{}", manager(mpi)[2..].replace("mpi", "MPI"));
        let batch = ["--output=log", &export, &home.copy(script("step")), &program];
        let succeeded = slurm.batch(&mut home.command(&slurm, "sbatch", &batch));
        assert!(succeeded, "{}", read(home.path().join("log")));

        let runs = runs_in(&home.path().join("runs"));
        let ranks: Vec<_> = runs.iter().map(|run| (run.ranks.len(), run.header.mode)).collect();
        assert_eq!(ranks, [(2, Mode::Mpi), (2, Mode::Mpi), (2, Mode::Plain), (4, Mode::Mpi)]);
        assert!(runs.iter().flat_map(|run| &run.nodes).all(|node| node.facts.is_some()));
        let names = |folder: &Path| {
            let entries = std::fs::read_dir(folder).unwrap().flatten();
            let mut names: Vec<_> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(names(home.path()), ["log", "runs", "says", "step.sbatch", "tool"]);
        let files = names(&home.path().join("runs"));
        assert!(files.len() == 4 && files.iter().all(|name| name.ends_with(".pmr")), "{files:?}");
        for name in files {
            let metadata = std::fs::metadata(home.path().join("runs").join(name)).unwrap();
            assert_eq!((metadata.uid(), metadata.mode() & 0o777), (USER, 0o644));
        }
    }
}

/// What is kept of a run while it runs is its user's alone, and reported to that user only.
#[test]
fn nobody_reads_what_is_kept_of_anothers_run() {
    let slurm = Slurm::turn();
    for mpi in Mpi::ALL {
        let home = Home::new();
        let (program, here) = (home.copy(programs::mpi(mpi, "ends")), text(home.path()));
        let layout = ["--job-name=ends", manager(mpi), "pmmpi", "--out", "runs"];
        let args = [&TWO_NODES[..], &layout, &[&program, "wait", "0", &here, "600000"]].concat();
        let started = tool::start(&mut home.command(&slurm, "srun", &args));
        wait_for_ranks(&started, &home.folder, 2);
        let partial = partial_folder(&home.folder);
        assert_eq!((std::fs::metadata(&partial).unwrap().uid(), mode(&partial)), (USER, 0o700));
        for entry in std::fs::read_dir(&partial).unwrap().flatten() {
            assert_eq!((entry.metadata().unwrap().uid(), mode(&entry.path())), (USER, 0o600));
        }
        home.run(&slurm, "scancel", &["--name=ends"]).success();
        assert!(!started.finish().status.success());
        let report = |user: u32| {
            let mut command = home.command(&slurm, text(&home.tool).as_str(), &["report", "runs"]);
            tool::run(command.uid(user).gid(user))
        };
        let own = report(USER).success();
        assert!(own.out().contains("not complete"), "{}", own.out());
        let others = report(ANOTHER_USER);
        assert!(!others.out().contains("not complete"), "{}", others.out());
        assert!(others.err().contains("Permission denied"), "{}\n{}", others.out(), others.err());
    }
}

/// The path or whatever else is to go into a command line.
fn text(path: impl AsRef<Path>) -> String {
    path.as_ref().display().to_string()
}

/// A script of slurm/.
fn script(name: &str) -> String {
    text(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../slurm/{name}.sbatch")))
}

/// Empty where there is no such file.
fn read(file: PathBuf) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

fn only_run(folder: &Path) -> Run {
    let mut runs = runs_in(folder);
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}
