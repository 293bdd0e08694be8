//! MPIs that Debian does not package: Open MPI 5, MPICH 5 and Intel MPI, with their own ABIs and the standard ABI,
//! under each of their launchers. docs/programs.md lists these tests in a table.

use pmmpi::record::{End, Mode, Run};
use rig::cluster::{Cluster, Job, machine};
use rig::programs::{Launchable, truth_ns};
use rig::remains::left_in;
use rig::tool::{Folder, Output, pmmpi, processes_with, runs_in};
use rig::wheels::{Launcher, Library};
use std::path::Path;
use std::time::{Duration, Instant};

/// A job on hosts whose clocks are hours apart; without a cluster, on this machine.
fn launch(launcher: Launcher, ranks: usize, cluster: Option<&Cluster>) -> Job<'_> {
    cluster.map_or_else(|| launcher.local(ranks), |cluster| launcher.on(cluster, ranks))
}

/// Two hosts, if the launcher can use a remote shell.
fn two_hosts(launcher: Launcher) -> Option<Cluster> {
    launcher.has_remote_shell().then(|| Cluster::hours_apart(2))
}

/// This program, with `before` in front of it in the job's command line.
fn bare<'a>(job: Job<'a>, before: &[&str], program: &Launchable) -> Job<'a> {
    let job = program.environment.iter().fold(job, |job, (name, value)| job.env(name, value));
    job.args(before).args(&program.argv)
}

/// The same program, measured: its run is in `runs` in the folder.
fn measured<'a>(job: Job<'a>, folder: &Path, program: &Launchable) -> Job<'a> {
    let (tool, out) = (pmmpi().display().to_string(), folder.join("runs").display().to_string());
    bare(job, &[&tool, "--out", &out], program)
}

/// The only run of a job that ended well.
fn run_in(folder: &Path, library: Library, ranks: usize) -> Run {
    let mut runs = runs_in(&folder.join("runs"));
    assert_eq!(runs.len(), 1, "{library:?}");
    let run = runs.remove(0);
    assert_eq!((run.ranks.len(), run.header.mode, run.end()), (ranks, Mode::Mpi, Some(End::Finalized)));
    let version = run.header.mpi_library.as_deref().unwrap_or_default();
    assert!(version.starts_with(library.says()), "{library:?}: {version}");
    run
}

/// A program with a known true time, on this machine and on hosts with clocks of their own.
fn c(library: Library) {
    // The program for the standard ABI also checks its library. Intel's takes MPI_ERRORS_RETURN for MPI_ERRORS_ABORT.
    let program = library.compile(if library == Library::MpichStandard { "abi" } else { "truth" });
    for launcher in library.launchers() {
        let alone = [(2, 0), (3, 0), (5, 0)];
        let on_hosts = [(2, 2), (3, 3), (5, 2)];
        let on_hosts = if launcher.has_remote_shell() { &on_hosts[..] } else { &[] };
        for (ranks, hosts) in alone.iter().chain(on_hosts) {
            assert_bounded(library, &program, *launcher, *ranks, *hosts);
        }
    }
}

fn assert_bounded(library: Library, program: &Launchable, launcher: Launcher, ranks: usize, hosts: usize) {
    let folder = Folder::new("c");
    let cluster = (hosts > 0).then(|| Cluster::hours_apart(hosts));
    let job = measured(launch(launcher, ranks, cluster.as_ref()), folder.path(), program);
    let output = job.arg(folder.path()).args(["30", "20"]).run();
    let nodes = hosts.max(1);
    let context = format!("{launcher:?} {ranks} {hosts} {}", output.err());
    assert!(output.status.success() && output.out().is_empty(), "{context}");
    assert_eq!(output.err().matches("pmmpi:").count(), 1, "{context}");
    assert!(output.err().contains(&format!("{ranks} ranks on {nodes} node")), "{context}");
    let run = run_in(folder.path(), library, ranks);
    assert!(run.nodes.len() == nodes && run.nodes.iter().all(|node| node.facts.is_some()), "{context}");
    let (truth, bounds) = (truth_ns(folder.path(), ranks), run.elapsed().unwrap());
    let ours = |which: usize| run.ranks.iter().map(move |rank| rank.real_ns[which]);
    let real = ours(1).max().unwrap() - ours(0).min().unwrap();
    // The program's own clock readings are within pmmpi's, and these are within t1..t2.
    assert!(truth <= real && real <= bounds.upper_ns, "{truth} <= {real} <= {bounds:?} {context}");
    let slept_ns = 30_000_000 + 20_000_000 * (ranks as i64 - 1);
    assert!(bounds.consistent && bounds.lower_ns >= slept_ns - 1_000_000, "{slept_ns} {bounds:?} {context}");
}

/// The program prints its ranks. The output is the same with and without the tool; the program sleeps 20 ms.
fn says(library: Library, program: &Launchable) {
    for launcher in library.launchers() {
        let folder = Folder::new("says");
        let said = |job: Job| {
            // Two ranks may write into one line.
            let mut said: Vec<char> = job.run().success().out().chars().collect();
            said.sort_unstable();
            said
        };
        let expected = said(bare(launcher.local(3), &[], program));
        assert_eq!(expected, said(measured(launcher.local(3), folder.path(), program)), "{launcher:?}");
        let bounds = run_in(folder.path(), library, 3).elapsed().unwrap();
        assert!(bounds.consistent && bounds.lower_ns >= 19_000_000, "{launcher:?} {bounds:?}");
    }
}

fn mpi4py(library: Library) {
    says(library, &library.mpi4py("python"));
}

/// Every thread level is provided as it is without the tool.
fn threads(library: Library) {
    let program = library.compile("init_thread");
    for (launcher, level) in
        library.launchers().iter().flat_map(|l| library.thread_levels().map(|level| (l, level)))
    {
        let folder = Folder::new("threads");
        let expected = bare(launcher.local(2), &[], &program).arg(level).run().success();
        let output = measured(launcher.local(2), folder.path(), &program).arg(level).run().success();
        assert!(expected.out().contains("main 1") && expected.out() == output.out(), "{launcher:?} {level}");
        run_in(folder.path(), library, 2);
    }
}

/// Regions that the program names.
fn regions(library: Library) {
    let program = library.compile_with_regions("regions");
    for launcher in library.launchers() {
        let (folder, cluster) = (Folder::new("regions"), two_hosts(*launcher));
        let job = measured(launch(*launcher, 3, cluster.as_ref()), folder.path(), &program);
        job.arg(folder.path()).args(["4", "5"]).run().success();
        let run = run_in(folder.path(), library, 3);
        let bounds = run.regions.bounds(3, run.max_drift());
        for name in ["solve", "step"] {
            let region = bounds.iter().find(|bounds| bounds.name == name).unwrap();
            // The last rank sleeps 7 ms in each entry.
            assert_eq!(region.entries, Some(4), "{launcher:?}");
            assert!(region.lower_ns >= 4 * 7_000_000 - 1_000_000, "{launcher:?} {region:?}");
            assert!(region.lower_ns <= region.upper_ns, "{launcher:?} {region:?}");
            assert!(region.lower_ns <= run.elapsed().unwrap().upper_ns, "{launcher:?} {region:?}");
        }
    }
}

/// MPI_Abort, exit without MPI_Finalize, and SIGKILL, of rank 0 and of another rank. The tool records each, and the
/// job ends as it would without the tool.
fn ends(library: Library) {
    let program = library.compile("ends");
    let ways = [("abort", End::Aborted(7)), ("exit", End::Exited(5)), ("kill", End::Signaled(libc::SIGKILL))];
    for (launcher, (how, end)) in library.launchers().iter().flat_map(|l| ways.map(|way| (*l, way))) {
        for rank in ["0", "1"] {
            let folder = Folder::new("ends");
            // Between hosts, if a rank leaves without MPI_Finalize, Open MPI 5's other ranks sometimes abort with 14,
            // and the records do not show which rank was first.
            let is_open_mpi = matches!(launcher, Launcher::Mpirun | Launcher::Prterun);
            let cluster = two_hosts(launcher).filter(|_| how != "exit" && !(how == "kill" && is_open_mpi));
            let arguments = [how, rank, folder.path().to_str().unwrap()];
            let job = || launch(launcher, 3, cluster.as_ref());
            let expected = match (launcher, how) {
                // If a rank leaves without MPI_Finalize, Hydra sometimes returns 9, and Intel's always 255: they kill
                // the other ranks and return the status of a killed rank. With the tool they know the rank's own
                // status.
                (Launcher::Hydra | Launcher::IntelHydra, "exit") => vec![5],
                // If a rank is killed, an assertion of Hydra's proxy sometimes fails.
                (Launcher::Hydra, "kill") => vec![libc::SIGKILL, 255],
                _ => vec![ended(launcher, || bare(job(), &[], &program).args(arguments)).code()],
            };
            let output = ended(launcher, || {
                _ = std::fs::remove_dir_all(folder.path().join("runs"));
                measured(job(), folder.path(), &program).args(arguments)
            });
            let context = format!("{launcher:?} {how} {rank} {}", output.err());
            assert!(expected.contains(&output.code()), "{} {expected:?} {context}", output.code());
            let left = left_in(&folder.path().join("runs"));
            assert_eq!((left.size, left.end()), (3, Some(end)), "{context} {left:#?}");
            // MPICH 5's MPI_Abort returns, so its program may reach MPI_Finalize before Hydra kills it.
            let known = left.lost.len() + if how == "abort" { left.ranks.len() } else { 0 };
            assert_eq!(known, 3, "{context} {left:#?}");
            assert_none_is_left(folder.path());
        }
    }
}

/// Runs a job to its end. Open MPI 5's prterun sometimes hangs after a job has ended, also without the tool (openpmix/prrte,
/// issue 1839): then the job is started again.
fn ended<'a>(launcher: Launcher, job: impl Fn() -> Job<'a>) -> Output {
    const HANGS: usize = 2;
    const LIMIT: Duration = Duration::from_secs(60);
    if matches!(launcher, Launcher::Mpirun | Launcher::Prterun) {
        for _ in 0..HANGS {
            let _alone = machine();
            let started = job().start();
            if started.ends_within(LIMIT) {
                return started.finish();
            }
            let tools: Vec<i32> =
                processes_with("ends").into_iter().filter(|process| is_tool(*process)).collect();
            assert!(tools.is_empty(), "the tool hangs: {tools:?}");
        }
    }
    job().run()
}

/// True for the tool, which lives as long as its rank; not for launchers and for ranks without the tool.
fn is_tool(process: i32) -> bool {
    std::fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|program| program.ends_with("pmmpi"))
}

/// SIGTERM to the launcher, as a batch system sends it.
fn told(library: Library) {
    let program = library.compile("ends");
    for launcher in library.launchers() {
        let (folder, cluster) = (Folder::new("told"), two_hosts(*launcher));
        let _alone = machine();
        let job = measured(launch(*launcher, 3, cluster.as_ref()), folder.path(), &program);
        let started = job.args(["wait", "0"]).arg(folder.path()).arg("60000").start();
        while !(0..3).all(|rank| folder.path().join(format!("pids.{rank}")).exists()) {
            started.assert_running();
            std::thread::sleep(Duration::from_millis(5));
        }
        started.signal(libc::SIGTERM);
        let output = started.finish();
        let left = left_in(&folder.path().join("runs"));
        assert_eq!(left.lost.len(), 3, "{launcher:?} {}", output.err());
        assert!(left.end().is_some_and(|end| !end.is_success()), "{launcher:?} {left:#?}");
        assert_none_is_left(folder.path());
    }
}

/// No process of the job remains.
fn assert_none_is_left(folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let left = || processes_with(folder.to_str().unwrap());
    while !left().is_empty() {
        assert!(Instant::now() < deadline, "left: {:?}", left());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A plain program in rounds between barriers of all ranks: the runner of Debian's MPI joins the job. Open MPI 4's
/// own library cannot join a job of Open MPI 5's launchers, but its runner works with Open MPI 5's library.
fn rounds(library: Library) {
    for launcher in library.launchers() {
        let (folder, cluster) = (Folder::new("rounds"), two_hosts(*launcher));
        // Debian's MPICH 4.0 crashes under MPICH 5's Hydra if hosts have unequal numbers of ranks, also without the
        // tool.
        let ranks = if cluster.is_some() { 4 } else { 3 };
        let mut program =
            Launchable::of_words(["--mode", "plain", "--runs", "2", "--", "sh", "-c", "echo .; sleep 0.06"]);
        program.environment = vec![library.search_path()];
        let job = measured(launch(*launcher, ranks, cluster.as_ref()), folder.path(), &program);
        let output = job.run().success();
        assert_eq!(output.out().lines().count(), 2 * ranks, "{launcher:?}");
        let runs = runs_in(&folder.path().join("runs"));
        let rounds: Vec<_> =
            runs.iter().map(|run| run.header.series.as_ref().map(|series| series.round)).collect();
        assert_eq!(rounds, [Some(0), Some(1)], "{launcher:?} {}", output.err());
        for run in &runs {
            assert_eq!((run.header.mode, run.ranks.len()), (Mode::Plain, ranks), "{launcher:?}");
            assert_eq!(
                (run.nodes.len(), run.end()),
                (1 + usize::from(cluster.is_some()), Some(End::Exited(0)))
            );
            let bounds = run.elapsed().unwrap();
            assert!(bounds.consistent && bounds.lower_ns >= 59_000_000, "{launcher:?} {bounds:?}");
        }
        // No rank begins a round before every rank has ended the previous round.
        let end = runs[0].ranks.iter().map(|rank| rank.real_ns[1]).max().unwrap();
        assert!(runs[1].ranks.iter().all(|rank| rank.real_ns[0] >= end), "{launcher:?}");
    }
}

macro_rules! cells {
    ($($library:expr, $($what:ident => $name:ident),*;)*) => {$($(
        #[test]
        fn $name() {
            $what($library);
        }
    )*)*};
}

cells! {
    Library::OpenMpi, c => c_under_open_mpi_5, mpi4py => mpi4py_under_open_mpi_5,
        threads => threads_under_open_mpi_5, regions => regions_under_open_mpi_5, ends => ends_under_open_mpi_5,
        told => told_to_end_under_open_mpi_5, rounds => rounds_under_open_mpi_5;
    Library::Mpich, c => c_under_mpich_5, mpi4py => mpi4py_under_mpich_5, threads => threads_under_mpich_5,
        regions => regions_under_mpich_5, ends => ends_under_mpich_5, told => told_to_end_under_mpich_5,
        rounds => rounds_under_mpich_5;
    Library::MpichStandard, c => c_of_mpich_5s_standard_abi, threads => threads_of_mpich_5s_standard_abi,
        regions => regions_of_mpich_5s_standard_abi, ends => ends_of_mpich_5s_standard_abi,
        told => told_to_end_of_mpich_5s_standard_abi;
}

/// Intel's wheel is only for this kind of processor.
#[cfg(target_arch = "x86_64")]
mod intel {
    use super::*;

    cells! {
        Library::Intel, c => c_under_intel_mpi, mpi4py => mpi4py_under_intel_mpi,
            threads => threads_under_intel_mpi, regions => regions_under_intel_mpi, ends => ends_under_intel_mpi,
            told => told_to_end_under_intel_mpi, rounds => rounds_under_intel_mpi;
        Library::IntelStandard, c => c_of_intel_mpis_standard_abi, threads => threads_of_intel_mpis_standard_abi,
            regions => regions_of_intel_mpis_standard_abi, ends => ends_of_intel_mpis_standard_abi,
            told => told_to_end_of_intel_mpis_standard_abi;
    }

    /// Of these MPIs only Intel's has a Fortran binding, also for gfortran's programs.
    #[test]
    fn fortran_under_intel_mpi() {
        for name in ["mpif", "use_mpi", "use_mpi_f08"] {
            says(Library::Intel, &rig::wheels::intel_fortran(name));
        }
    }

    /// Intel's own benchmark, as installed: it runs, and its run has bounds.
    #[test]
    fn intels_benchmark_is_measured() {
        let program = rig::wheels::intels_own("IMB-MPI1");
        let folder = Folder::new("imb");
        let job = measured(Launcher::IntelHydra.local(3), folder.path(), &program);
        let job =
            job.args(["Sendrecv", "Allreduce", "Barrier", "-npmin", "3", "-iter", "100", "-msglog", "3:6"]);
        let output = job.run().success();
        for benchmark in ["Sendrecv", "Allreduce", "Barrier"] {
            assert!(output.out().contains(&format!("# Benchmarking {benchmark}")), "{}", output.out());
        }
        let run = run_in(folder.path(), Library::Intel, 3);
        let bounds = run.elapsed().unwrap();
        assert!(bounds.consistent && 0 < bounds.lower_ns && bounds.lower_ns <= bounds.upper_ns, "{bounds:?}");
    }
}
