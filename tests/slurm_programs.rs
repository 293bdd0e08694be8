//! Under a real Slurm with four nodes: each kind of program and of launch. docs/programs.md lists these tests. They
//! share a cluster, one at a time. tests/slurm_ends.rs tests steps that end badly, and users other than root.

use pmmpi::record::{End, Mode, Run};
use rig::program_kinds::{self, Kind};
use rig::slurm::{NODES, Slurm, TWO_NODES, exported, manager, read, script, text};
use rig::tool::{self, Folder, pmmpi, runs_in};
use rig::{Mpi, programs};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Two ranks on two nodes.
fn measure(mpi: Mpi, kind: Kind) {
    let slurm = Slurm::turn();
    program_kinds::measured_once(kind, mpi, |program, before| {
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
            measure($mpi, program_kinds::$kind);
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
            program_kinds::measured(&program, |_, before| {
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

/// In rounds, through the runner. A failure of the program is the step's failure.
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
        // The program's own variables of its rank.
        let said = srun(&["ranks", "--mode", "plain", "sh", "-c", "echo $SLURM_PROCID"]).success().out();
        let ranks: BTreeSet<usize> = said.split_whitespace().map(|rank| rank.parse().unwrap()).collect();
        assert!(ranks.into_iter().eq(0..2 * NODES), "{mpi:?} {said}");
        let failed = srun(&["failed", "--mode", "plain", "sh", "-c", "exit 9"]);
        assert_eq!(failed.code(), 9, "{}", failed.err());
    }
}

/// The step has only one MPI_Init; it remains for the MPI program that comes later.
#[test]
fn a_shell_in_a_step_keeps_its_mpi_init() {
    let slurm = Slurm::turn();
    let tool = text(pmmpi());
    for mpi in Mpi::ALL {
        let folder = Folder::new("slot");
        let says = text(programs::mpi(mpi, "says"));
        let script =
            format!("{tool} --out runs true; {tool} --out runs sleep 0.01; {tool} --out runs {says}");
        let args = [&TWO_NODES[..], &[manager(mpi), "bash", "-c", &script]].concat();
        let output = slurm.run(folder.path(), "srun", &args).success();
        let is_said = |line: &str| output.out().contains(line);
        assert!(
            is_said("rank 0 of 2") && is_said("rank 1 of 2"),
            "{mpi:?} {} {}",
            output.out(),
            output.err()
        );
        assert_eq!(output.err().matches("measures each rank alone").count(), 2, "{}", output.err());
        let sizes: Vec<_> = runs_in(&folder.path().join("runs")).iter().map(|run| run.ranks.len()).collect();
        assert_eq!((sizes.len(), sizes.iter().max()), (5, Some(&2)), "{mpi:?} {sizes:?}");
    }
}

/// Without a process manager each task is alone, and a message says so.
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

/// Under pmix or without a process manager, MPICH runs as separate jobs of one rank.
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

/// slurm/hpl.sbatch without changes: several runs of HPC Challenge, which includes HPL, and a report.
fn the_batch_script_measures_hpl(mpi: Mpi) {
    let slurm = Slurm::turn();
    let folder = Folder::new("batch");
    std::fs::write(folder.path().join("hpccinf.txt"), programs::hpcc_input(100, 2)).unwrap();
    let export = exported(mpi, "PMMPI_RUNS=2,PMMPI_OUT=runs");
    let args = ["--output=log", "--ntasks-per-node=1", &export, &script("hpl"), &text(programs::hpcc(mpi))];
    let succeeded = slurm.batch(&mut slurm.command(folder.path(), "sbatch", &args));
    let log = read(folder.path().join("log"));
    assert!(succeeded, "{log}");
    let runs = runs_in(&folder.path().join("runs"));
    assert_eq!(runs.len(), 2, "{log}");
    assert!(runs.iter().all(|run| (run.ranks.len(), run.nodes.len(), run.header.labels.len()) == (2, 2, 1)));
    assert!(log.contains("2 runs, 2 nodes, 2 files"), "{log}");
    let result = read(folder.path().join("hpccoutf.txt"));
    assert_eq!(result.matches("End of HPC Challenge tests.").count(), 3, "a warm-up and two runs");
}

#[test]
fn hpl_is_measured_under_srun_pmix() {
    the_batch_script_measures_hpl(Mpi::OpenMpi);
}

#[test]
fn hpl_is_measured_under_srun_pmi2() {
    the_batch_script_measures_hpl(Mpi::Mpich);
}

/// Only rank 0 detects the problem, and the others wait for it in MPI_Init: the script's srun ends them.
#[test]
fn a_batch_job_whose_runs_cannot_be_saved_ends() {
    let slurm = Slurm::turn();
    for mpi in Mpi::ALL {
        let folder = Folder::new("unsaved");
        let export = exported(mpi, "PMMPI_OUT=/proc/none");
        let args = ["--output=log", &export, &script("step"), &text(programs::mpi(mpi, "says"))];
        assert!(!slurm.batch(&mut slurm.command(folder.path(), "sbatch", &args)));
        let log = read(folder.path().join("log"));
        assert!(log.contains("cannot save runs in") && !log.contains("rank 0 of"), "{log}");
    }
}

/// slurm/step.sbatch without changes: each job of an array leaves a run.
#[test]
fn each_job_of_an_array_is_measured() {
    let slurm = Slurm::turn();
    let folder = Folder::new("array");
    let program = text(programs::mpi(Mpi::Mpich, "says"));
    let export = exported(Mpi::Mpich, "PMMPI_OUT=runs");
    let args = ["--array=1-3", "--output=log.%a", &export, &script("step"), &program];
    let succeeded = slurm.batch(&mut slurm.command(folder.path(), "sbatch", &args));
    assert!(succeeded, "{}", read(folder.path().join("log.1")));
    let runs = runs_in(&folder.path().join("runs"));
    assert!(runs.len() == 3 && runs.iter().all(|run| run.ranks.len() == 4 && run.nodes.len() == 2));
    let mut labels: Vec<_> = runs.iter().map(|run| run.header.labels[1].1.clone()).collect();
    labels.sort();
    assert_eq!(labels, ["1", "2", "3"]);
}

/// Two components with different numbers of ranks per node: one world, one run.
#[test]
fn components_of_a_heterogeneous_step_are_one_run() {
    // Slurm 22.05's srun joins one thread of its pmix plugin once per component. If two joins happen at the same
    // time, srun does not end, with any program. So one component ends later.
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
        started.wait_for(" of 4", 4);
        // Sometimes the joins happen at the same time nevertheless.
        let ended = started.ends_within(Duration::from_secs(10));
        if !ended {
            slurm.spoil();
            started.signal_group(libc::SIGKILL);
        }
        let output = started.finish();
        assert!(output.status.success() || !ended, "{}", output.err());
        assert_is_one_run(&folder, &format!("{}{}", output.out(), output.err()));
    }
}

/// A batch job with two components: a step of both is one run, and a step of the second alone is also one run.
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

/// A run of four ranks, with two of them on the first of three nodes.
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

/// A program that MPI runs as separate jobs of one rank: one message for all components.
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

/// Two ranks on each of two nodes: two reports, and each knows the cluster's plugins.
#[test]
fn the_doctor_answers_once_a_node() {
    let slurm = Slurm::turn();
    for mpi in Mpi::ALL {
        let folder = Folder::new("doctor");
        // srun mixes the output of nodes in pieces of a kilobyte.
        let options = ["-N2", "--ntasks-per-node=2", "--output=%N.json", manager(mpi)];
        let tool = text(pmmpi());
        let args = [&options[..], &[&tool, "doctor", "--out", "/tmp", "--format", "json"]].concat();
        slurm.run(folder.path(), "srun", &args).success();
        let answers = ["node0", "node1"].map(|node| -> serde_json::Value {
            let answer: serde_json::Value =
                serde_json::from_str(&read(folder.path().join(format!("{node}.json")))).unwrap();
            assert_eq!(answer["node"], node);
            answer
        });
        for answer in &answers {
            let checks = answer["checks"].as_array().unwrap();
            let found = |name: &str| {
                let check = checks.iter().find(|check| check["name"] == name).unwrap();
                (check["status"].as_str().unwrap(), check["found"].as_str().unwrap())
            };
            let (status, plugins) = found("slurm");
            assert!(status == "ok" && plugins.contains("pmi2") && plugins.contains("pmix"), "{plugins}");
            let (status, launcher) = found("launch");
            assert!(status == "ok" && launcher.contains("by srun"), "{launcher}");
        }
    }
    let args = ["-N1", "-n1", "--mpi=none", &text(pmmpi()), "doctor", "--out", "/tmp", "--fail-on", "limits"];
    let output = slurm.run(&std::env::temp_dir(), "srun", &args);
    assert!(
        output.code() == 3 && output.out().contains("by srun, without an MPI plugin"),
        "{}",
        output.out()
    );
}

fn only_run(folder: &Path) -> Run {
    let mut runs = runs_in(folder);
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}
