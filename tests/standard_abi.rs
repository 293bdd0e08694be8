//! Programs of the standard ABI (MPI 5.0). Debian packages no MPI with this ABI. So the programs use
//! tests/programs/mpi_abi.c, which translates a few calls to those of a real MPI.

use pmmpi::partial;
use pmmpi::record::{End, Mode, Run};
use rig::cluster::{Cluster, Job};
use rig::programs::{Launchable, truth_ns};
use rig::tool::{Folder, Output, pmmpi};
use rig::{Mpi, programs};
use std::path::{Path, PathBuf};

fn program(mpi: Mpi) -> Launchable {
    Launchable::of(programs::standard_abi(mpi))
}

/// The only run in a folder, measured from inside; the true time of its `ranks` is within its bounds.
fn measured(folder: &Path, ranks: usize) -> Run {
    let mut runs = rig::tool::runs_in(&folder.join("runs"));
    assert_eq!(runs.len(), 1);
    let run = runs.remove(0);
    assert_eq!((run.ranks.len(), run.header.mode, run.end()), (ranks, Mode::Mpi, Some(End::Finalized)));
    let (truth, bounds) = (truth_ns(folder, ranks), run.elapsed().unwrap());
    let ours = |which: usize| run.ranks.iter().map(move |rank| rank.real_ns[which]);
    let real = ours(1).max().unwrap() - ours(0).min().unwrap();
    // The program's own clock readings are within pmmpi's, and these are within t1..t2.
    assert!(truth <= real && real <= bounds.upper_ns, "{truth} <= {real} <= {bounds:?}");
    let slept_ns = 30_000_000 + 20_000_000 * (ranks as i64 - 1);
    assert!(bounds.consistent && bounds.lower_ns >= slept_ns - 1_000_000, "{slept_ns}, {bounds:?}");
    run
}

/// The program's calls do what MPI specifies, with and without the tool, on hosts whose clocks are hours apart.
fn measure(mpi: Mpi, says: &str) {
    for (ranks, hosts) in [(2, 2), (3, 3), (3, 1)] {
        let folder = Folder::new("abi");
        let cluster = Cluster::hours_apart(hosts);
        let launch = |before: &[&str]| {
            let job = cluster.mpirun(mpi, ranks).args(before).args(&program(mpi).argv);
            job.arg(folder.path()).args(["30", "20"]).run().success()
        };
        assert_eq!(launch(&[]).out() + &launch(&[]).err(), "");
        let out = folder.path().join("runs").display().to_string();
        let output = launch(&[&pmmpi().display().to_string(), "--verbose", "--out", &out]);
        assert_eq!(output.out(), "");
        let why = "started as an MPI program, with the agent: the program needs libmpi_abi.so.1";
        assert!(output.err().contains(why), "{}", output.err());
        let run = measured(folder.path(), ranks);
        cluster.assert_bounded(&run);
        assert_eq!(run.nodes.len(), hosts);
        let library = run.header.mpi_library.unwrap();
        assert!(library.contains(says), "{library}");
    }
}

#[test]
fn the_standard_abi_on_open_mpi() {
    measure(Mpi::OpenMpi, "Open MPI");
}

#[test]
fn the_standard_abi_on_mpich() {
    measure(Mpi::Mpich, "MPICH");
}

/// Two ranks on this machine; the environment `variables` configure the ABI library.
fn local(mpi: Mpi, program: &Launchable, variables: &[(&str, &str)], folder: &Path) -> Output {
    let mut job = Job::local(mpi, 2);
    for (name, value) in variables {
        job = job.env(name, value);
    }
    let job = job.arg(pmmpi()).arg("--out").arg(folder.join("runs")).args(&program.argv);
    job.arg(folder).args(["30", "20"]).run().success()
}

#[test]
fn the_standard_abi_is_not_told_by_whose_it_is() {
    for mpi in Mpi::ALL {
        for says in ["MPICH Version: 5.0.1", "Open MPI v6.0.0, package: Debian", "Some MPI 1.0"] {
            let folder = Folder::new("abi");
            local(mpi, &program(mpi), &[("ABI_LIBRARY_VERSION", says)], folder.path());
            let run = measured(folder.path(), 2);
            assert_eq!(run.header.mpi_library.as_deref(), Some(says), "{mpi:?}");
        }
    }
}

/// The agent guesses no constants: a wrong one would crash the program.
#[test]
fn other_abis_than_the_standard_one_are_left_alone() {
    for mpi in Mpi::ALL {
        // A later ABI, a draft, and a library with the standard's file name that reports no standard ABI.
        for major in ["2", "0", "-1"] {
            let folder = Folder::new("abi");
            let output = local(mpi, &program(mpi), &[("ABI_MAJOR", major)], folder.path());
            let why = "pmmpi does not know the family of the program's MPI library";
            assert!(output.err().contains(why), "{}", output.err());
            assert!(rig::tool::runs_in(&folder.path().join("runs")).is_empty());
            assert!(truth_ns(folder.path(), 2) > 0);
        }
    }
}

/// Loads a module as mpi4py does. Open MPI's own library then enters the search order; the ABI library does not.
#[test]
fn a_module_of_the_standard_abi() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("abi");
        let mut module = programs::standard_abi_module(mpi);
        module.argv.insert(0, "env".to_owned()); // env may start an MPI program; no file shows that this one is
        local(mpi, &module, &[], folder.path());
        measured(folder.path(), 2);
    }
}

#[test]
fn the_standard_abis_threads_are_initialised_as_asked() {
    for mpi in Mpi::ALL {
        // MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE.
        for level in ["0", "1024", "2048", "4096"] {
            let folder = Folder::new("abi");
            let launch = |before: &[PathBuf]| {
                let job = Job::local(mpi, 2).args(before).args(&program(mpi).argv);
                job.args(["thread", level]).run().success().out()
            };
            let bare = launch(&[]);
            assert!(bare.contains(&format!("for {level}")), "{bare}");
            assert_eq!(bare, launch(&[pmmpi(), "--out".into(), folder.path().to_owned()]), "{mpi:?}");
            assert_eq!(folder.runs()[0].ranks.len(), 2);
        }
    }
}

#[test]
fn an_abort_in_the_standard_abi_is_recorded() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("abi");
        let job = Job::local(mpi, 2).arg(pmmpi()).arg("--out").arg(folder.path()).args(&program(mpi).argv);
        assert_eq!(job.args(["abort", "7"]).run().code(), 7, "{mpi:?}");
        rig::tool::wait_until_gone(folder.path());
        let mut entries = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let left = entries.find(|path| path.extension().is_some_and(|e| e == "partial")).unwrap();
        assert_eq!(partial::read(&left).unwrap().end(), Some(End::Aborted(7)), "{mpi:?}");
    }
}
