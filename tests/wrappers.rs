//! Programs between pmmpi and the MPI program: wrappers, preloaded tools, scripts that start jobs of their own, other
//! C libraries.

use pmmpi::record::Mode;
use rig::cluster::Job;
use rig::program_kinds;
use rig::programs::Launchable;
use rig::tool::{Folder, Output, pmmpi, runs_in};
use rig::{Mpi, programs};

fn says(mpi: Mpi) -> String {
    programs::mpi(mpi, "says").display().to_string()
}

/// Two ranks, with a library preloaded into every process that the launcher starts.
fn with_preloaded(mpi: Mpi, library: &str) -> impl Fn(&Launchable, &[&str]) -> Output {
    move |program, before| {
        let mut job = Job::local(mpi, 2);
        for (name, value) in &program.environment {
            job = job.env(name, value);
        }
        job.args(["env", &format!("LD_PRELOAD={library}")]).args(before).args(&program.argv).run()
    }
}

/// Each wrapper contains a preloaded tool that needs MPI; nevertheless the wrapper is not an MPI program.
#[test]
fn wrappers_with_a_preloaded_mpi_keep_the_agent() {
    for mpi in Mpi::ALL {
        let library = programs::preloaded(mpi, "brings_mpi.c");
        let program = says(mpi);
        let shell = format!("true && {program}");
        for wrapper in [&["env", "A=b", &program][..], &["sh", "-c", &shell], &["numactl", "--all", &program]]
        {
            program_kinds::measured(
                &Launchable::of_words(wrapper.iter().copied()),
                with_preloaded(mpi, &library),
            );
        }
    }
}

#[test]
fn one_rank_behind_a_wrapper_with_a_preloaded_mpi() {
    for mpi in Mpi::ALL {
        let library = format!("LD_PRELOAD={}", programs::preloaded(mpi, "brings_mpi.c"));
        let (folder, program, tool) = (Folder::new("mixed"), says(mpi), pmmpi().display().to_string());
        let measured = ["env", &library, &tool, "--out", folder.path().to_str().unwrap()];
        let job = Job::local(mpi, 1).args(measured).args(["env", &program, ":", "-n", "1"]);
        job.args(measured).arg(&program).run().success();
        assert_eq!(folder.runs()[0].ranks.len(), 2);
    }
}

/// Neither children of an MPI program nor other MPI programs that it starts before its MPI_Init count as the rank.
#[test]
fn what_an_mpi_program_starts_has_nothing_of_the_agent() {
    for mpi in Mpi::ALL {
        let library = programs::preloaded(mpi, "brings_mpi.c");
        let program = programs::mpi(mpi, "children").display().to_string();
        program_kinds::measured(
            &Launchable::of_words([program.as_str(), &says(mpi)]),
            with_preloaded(mpi, &library),
        );
        program_kinds::measured(&Launchable::of_words([program.as_str()]), |program, before| {
            Job::local(mpi, 2).args(before).args(&program.argv).run()
        });
        program_kinds::measured(&programs::mpi4py(mpi, "children"), with_preloaded(mpi, &library));
    }
}

/// Below a measured rank a script starts a job of its own. One of its ranks has no agent, as on another host.
#[test]
fn a_job_that_another_launcher_starts_below_a_rank_is_left_alone() {
    // Hydra below Hydra and below Open MPI's mpirun. Open MPI's mpirun does not start below another launcher of its
    // kind.
    for outer in Mpi::ALL {
        let (folder, program) = (Folder::new("inner"), says(Mpi::Mpich));
        let inner = format!(
            "mpirun.mpich -launcher fork -n 1 {program} : -n 1 env -u LD_PRELOAD -u PMMPI_SPOOL {program}"
        );
        let job = Job::local(outer, 1).arg(pmmpi()).arg("--out").arg(folder.path());
        let output = job.args(["sh", "-c", &inner]).run().success();
        assert_eq!(output.out().matches("of 2").count(), 2, "{}", output.out());
        assert!(output.err().contains("the program itself started an MPI job"), "{}", output.err());
        assert!(output.err().contains("mpirun -n 2 pmmpi ./prog"), "{}", output.err());
        let runs = folder.runs();
        assert_eq!((runs.len(), runs[0].header.mode), (1, Mode::Plain));
    }
}

/// The same job with pmmpi inside the script, as the message advises.
#[test]
fn a_job_below_a_rank_is_measured_where_it_is_launched() {
    let folder = Folder::new("inner");
    let inner = format!(
        "mpirun.mpich -launcher fork -n 2 {} --out {} {}",
        pmmpi().display(),
        folder.path().join("inner").display(),
        says(Mpi::Mpich)
    );
    let job = Job::local(Mpi::Mpich, 1).arg(pmmpi()).arg("--out").arg(folder.path().join("outer"));
    job.args(["sh", "-c", &inner]).run().success();
    let runs = runs_in(&folder.path().join("inner"));
    assert_eq!((runs.len(), runs[0].ranks.len(), runs[0].header.mode), (1, 2, Mode::Mpi));
}

/// musl's loader ends a program if it cannot load a preloaded library; it can load this one.
#[test]
fn programs_for_musl_run_and_say_why_they_are_not_measured_from_inside() {
    let plain = programs::for_musl().display().to_string();
    let mpi = programs::mpi_for_musl().display().to_string();
    for (program, why) in [
        (vec!["--mode", "mpi", plain.as_str()], "the program's C library is musl"),
        (vec!["sh", "-c", &plain], "pmmpi saw no call of MPI_Init"),
        (vec![&mpi], "a C library other than glibc"),
        (vec!["env", &mpi], "a C library other than glibc"),
    ] {
        let folder = Folder::new("musl");
        let job = Job::local(Mpi::Mpich, 2).arg(pmmpi()).arg("--out").arg(folder.path());
        let output = job.args(program).run().success();
        assert_eq!(output.out(), "done\ndone\n");
        assert!(output.err().contains(why), "{}", output.err());
        assert_eq!(folder.runs()[0].header.mode, Mode::Plain);
    }
}

/// An exception, a jump, a cancelled thread: each leaves MPI's functions as it does without the tool.
#[test]
fn whatever_leaves_a_function_of_mpi_passes_the_tool() {
    for mpi in Mpi::ALL {
        let library = format!("LD_PRELOAD={}", programs::preloaded(mpi, "leaves_tool.cc"));
        let program = programs::cplusplus(mpi, "leaves").display().to_string();
        for throws in [&[][..], &["THROWS=init"]] {
            let folder = Folder::new("leaves");
            let launch = |before: &[&str]| {
                let job = Job::local(mpi, 2).args(["env", &library]).args(throws).args(before);
                let mut lines: Vec<String> =
                    job.arg(&program).run().success().out().lines().map(str::to_owned).collect();
                lines.sort_unstable();
                lines
            };
            let bare = launch(&[]);
            assert_eq!(bare.len(), 2 * (4 + throws.len()));
            let tool = pmmpi().display().to_string();
            let out = folder.path().display().to_string();
            assert_eq!(launch(&[&tool, "--regions", "pcontrol", "--out", &out]), bare);
        }
    }
}
