//! Under a real Slurm: `srun pmmpi ./prog`, and the batch script in slurm/.

use pmmpi::record::{End, Mode};
use rig::slurm::{NODES, Slurm};
use rig::tool::{Folder, pmmpi, runs_in};
use rig::{Mpi, programs};
use std::path::Path;

fn srun_mpi(mpi: Mpi) -> &'static str {
    match mpi {
        Mpi::OpenMpi => "--mpi=pmix",
        Mpi::Mpich => "--mpi=pmi2",
    }
}

#[test]
fn jobs_of_slurm_are_measured() {
    let slurm = Slurm::start();
    let tool = pmmpi().display().to_string();
    for mpi in Mpi::ALL {
        let folder = Folder::new("srun");
        let program = programs::mpi(mpi, "truth").display().to_string();
        let here = folder.path().display().to_string();
        let layout = ["-N4", "--ntasks-per-node=2", srun_mpi(mpi)];
        let srun = |args: &[&str]| slurm.run(folder.path(), "srun", &[&layout, args].concat());

        // An MPI program, with the agent in it.
        srun(&[&tool, "--out", "mpi", &program, &here, "20", "5"]).success();
        let run = &runs_in(&folder.path().join("mpi"))[0];
        assert_eq!((run.ranks.len(), run.nodes.len(), run.end()), (2 * NODES, NODES, Some(End::Finalized)));
        let job = &run.header.job;
        assert_eq!((job.launcher.as_deref(), job.launched_ranks), (Some("srun"), Some(2 * NODES as u32)));
        assert!(job.job_id.is_some() && job.step_id.is_some());
        assert!(run.header.environment.iter().any(|(name, _)| name == "SLURM_STEP_NUM_TASKS"));
        let bounds = run.elapsed().unwrap();
        assert!(bounds.consistent && bounds.lower_ns >= 50_000_000, "{bounds:?}");

        // A plain program, through the runner.
        let plain = ["--out", "plain", "--runs", "2", "--", "sleep", "0.02"];
        srun(&[&[tool.as_str()], &plain[..]].concat()).success();
        let runs = runs_in(&folder.path().join("plain"));
        assert_eq!(runs.len(), 2, "{mpi:?}");
        for run in &runs {
            assert_eq!((run.ranks.len(), run.nodes.len(), run.header.mode), (2 * NODES, NODES, Mode::Plain));
            assert!(run.elapsed().unwrap().consistent);
        }

        // The workload's failure is the step's.
        let output = srun(&[&tool, "--out", "failed", "--mode", "plain", "sh", "-c", "exit 9"]);
        assert_eq!(output.code(), 9, "{}", output.err());
    }

    // Without a process manager each task is alone, and is told so.
    let folder = Folder::new("alone");
    let alone = ["-N2", "--ntasks-per-node=1", "--mpi=none", &tool, "--out", "alone", "sleep", "0.01"];
    let output = slurm.run(folder.path(), "srun", &alone).success();
    assert!(output.err().contains("add --mpi=pmix or --mpi=pmi2"), "{}", output.err());
    assert_eq!(runs_in(&folder.path().join("alone")).len(), 2);

    a_wrong_process_manager_is_named(&slurm);
    batch_script_measures(&slurm);
    an_array_of_steps_measures(&slurm);
    ends_of_steps_are_recorded(&slurm);
}

/// Each job of an array leaves a run, under MPICH's process manager as well.
fn an_array_of_steps_measures(slurm: &Slurm) {
    let folder = Folder::new("array");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../slurm/step.sbatch").display().to_string();
    let program = programs::mpi(Mpi::Mpich, "says").display().to_string();
    let args =
        ["--wait", "--array=1-3", "--output=log.%a", "--export=ALL,PMMPI_SRUN_MPI=pmi2,PMMPI_OUT=runs"];
    let output = slurm.run(folder.path(), "sbatch", &[&args[..], &[&script, &program]].concat());
    assert!(output.status.success(), "{}", output.err());
    let runs = runs_in(&folder.path().join("runs"));
    assert!(runs.len() == 3 && runs.iter().all(|run| run.ranks.len() == 4 && run.nodes.len() == 2));
    let mut labels: Vec<_> = runs.iter().map(|run| run.header.labels[1].1.clone()).collect();
    labels.sort();
    assert_eq!(labels, ["1", "2", "3"]);
}

/// MPICH under pmix or under no process manager runs as so many jobs of one rank.
fn a_wrong_process_manager_is_named(slurm: &Slurm) {
    let folder = Folder::new("mismatch");
    let tool = pmmpi().display().to_string();
    let program = programs::mpi(Mpi::Mpich, "says").display().to_string();
    for manager in ["--mpi=pmix", "--mpi=none"] {
        let srun = |more: &[&str]| {
            let args = ["-N2", "--ntasks-per-node=1", manager, &tool, "--no-save"];
            slurm.run(folder.path(), "srun", &[&args, more, &[program.as_str()]].concat())
        };
        let warned = srun(&[]).success();
        assert_eq!(warned.err().matches("add --mpi=pmi2 to srun").count(), 1, "{}", warned.err());
        let aborted = srun(&["--on-mismatch", "abort"]);
        assert_eq!(aborted.code(), 125, "{}", aborted.err());
        assert!(aborted.err().contains("add --mpi=pmi2 to srun") && !aborted.out().contains("rank"));
    }
}

/// A killed rank with srun -K1, scancel, and a node that is lost: what was measured is kept each time.
fn ends_of_steps_are_recorded(slurm: &Slurm) {
    let tool = pmmpi().display().to_string();
    for mpi in Mpi::ALL {
        let program = programs::mpi(mpi, "ends").display().to_string();
        let layout = ["-N4", "--ntasks-per-node=1", "--job-name=ends", srun_mpi(mpi)];
        let last = if mpi == Mpi::Mpich { &["kill", "scancel", "node"][..] } else { &["kill", "scancel"] };
        for &way in last {
            let folder = Folder::new("steps");
            let here = folder.path().display().to_string();
            let how = if way == "kill" { ["kill", "1", &here, "0"] } else { ["wait", "0", &here, "600000"] };
            let args = [&layout[..], &["-K1", &tool, "--out", "runs", &program], &how].concat();
            let started = slurm.start_command(folder.path(), "srun", &args);
            let ready = || (0..NODES).all(|rank| folder.path().join(format!("pids.{rank}")).exists());
            while way != "kill" && !ready() {
                started.assert_running();
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            match way {
                "scancel" => drop(slurm.run(folder.path(), "scancel", &["--name=ends"]).success()),
                "node" => {
                    // The last thing that this cluster does: the node does not come back.
                    slurm.lose_node(3);
                    slurm.run(folder.path(), "scancel", &["--name=ends"]).success();
                }
                _ => {}
            }
            let output = started.finish();
            assert!(!output.status.success());
            let left = std::fs::read_dir(folder.path().join("runs")).unwrap().flatten().map(|e| e.path());
            let left: Vec<_> = left.filter(|path| path.extension().is_some_and(|e| e == "partial")).collect();
            let run = pmmpi::partial::read(&left[0]).unwrap();
            assert_eq!((run.lost.len(), run.nodes.len()), (NODES, NODES), "{mpi:?} {way} {}", output.err());
            match way {
                "kill" => assert_eq!(run.end(), Some(End::Signaled(libc::SIGKILL)), "{mpi:?}"),
                _ => assert!(run.end().is_some_and(|end| !end.is_success())),
            }
        }
    }
}

fn batch_script_measures(slurm: &Slurm) {
    let folder = Folder::new("batch");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../slurm/hpl.sbatch").display().to_string();
    let program = programs::mpi(Mpi::OpenMpi, "truth").display().to_string();
    let here = folder.path().display().to_string();
    let args = ["--wait", "--output=log", "--export=ALL,PMMPI_RUNS=3,PMMPI_OUT=runs", &script];
    let output = slurm.run(folder.path(), "sbatch", &[&args[..], &[&program, &here, "10", "5"]].concat());
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    assert!(output.status.success(), "{}\n{log}", output.err());
    let runs = runs_in(&folder.path().join("runs"));
    assert_eq!(runs.len(), 3, "{log}");
    assert!(runs.iter().all(|run| run.ranks.len() == 4 && run.header.labels.len() == 1));
    assert!(log.contains("3 runs, 2 nodes, 3 files"), "{log}");
}
