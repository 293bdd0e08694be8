//! MPI jobs on hosts whose clocks are hours apart. Each run file is complete, and the true time is within the bounds.
//! All hosts share one CLOCK_REALTIME, which gives the true time.

use pmmpi::record::{End, Mode, Run};
use rig::cluster::{Cluster, Job};
use rig::programs::truth_ns;
use rig::tool::{Folder, pmmpi, run};
use rig::{Mpi, programs};
use std::process::Command;

/// All that holds for a complete run of any program.
fn assert_complete(run: &Run, ranks: usize, hosts: usize) {
    assert_eq!((run.ranks.len(), run.size as usize, run.nodes.len()), (ranks, ranks, hosts));
    let header = &run.header;
    assert_eq!((header.mode, run.end()), (Mode::Mpi, Some(End::Finalized)));
    assert!(header.mpi_library.as_ref().is_some_and(|library| library.contains("MPI")));
    assert_eq!(header.job.launched_ranks, Some(ranks as u32));
    assert!(header.job.launcher.is_some() && !header.command.is_empty());
    for node in &run.nodes {
        let facts = node.facts.as_ref().expect("each node has its facts");
        // Arm kernels give no model name.
        assert!(facts.hardware.cpu_vendor.is_some() && facts.hardware.memory_bytes.is_some());
        let topology = &run.topologies[node.topology.expect("each node has its topology") as usize];
        let online: usize =
            facts.settings.online.0.iter().map(|(first, last)| (last - first + 1) as usize).sum();
        assert_eq!(topology.threads.len(), online);
        assert!(node.key.time_namespace != 0 && !node.key.boot_id.is_empty());
    }
    for rank in &run.ranks {
        assert!(rank.stamps.in_order() && !rank.allowed.0.is_empty());
        assert!(rank.setup_ns >= 0 && rank.real_ns[0] < rank.real_ns[1]);
        assert_eq!(rank.tsc.is_some(), pmmpi::clock::tsc().is_some());
    }
    let bounds = run.elapsed().expect("bounds");
    assert!(bounds.consistent && bounds.lower_ns <= bounds.upper_ns, "{bounds:?}");
    assert!(run.overhead_ns().unwrap() >= 0);
}

/// Runs `truth` on `ranks` ranks and `hosts` hosts.
fn measure_truth(mpi: Mpi, ranks: usize, hosts: usize) {
    let folder = Folder::new("truth");
    let cluster = Cluster::hours_apart(hosts);
    let job = cluster.mpirun(mpi, ranks).arg(pmmpi()).arg("--out").arg(folder.path().join("runs"));
    let job = job.arg(programs::mpi(mpi, "truth")).arg(folder.path()).args(["30", "20"]);
    let output = job.run().success();
    assert_eq!(output.out(), "");
    let summaries: Vec<_> =
        output.err().lines().filter(|l| l.starts_with("pmmpi:")).map(str::to_owned).collect();
    let places = format!("{ranks} rank{} on {hosts} node{}", plural(ranks), plural(hosts));
    assert!(summaries.len() == 1 && summaries[0].contains(&places), "{}", output.err());
    let runs = rig::tool::runs_in(&folder.path().join("runs"));
    assert_eq!(runs.len(), 1);
    assert_complete(&runs[0], ranks, hosts);
    let hostnames: Vec<_> = runs[0].nodes.iter().map(|node| node.key.hostname.as_str()).collect();
    assert!(hostnames.iter().all(|name| name.starts_with("node")), "{hostnames:?}");
    let (truth, bounds) = (truth_ns(folder.path(), ranks), runs[0].elapsed().unwrap());
    cluster.assert_bounded(&runs[0]);
    // The program's own clock readings are within t1..t2.
    assert!(truth <= cluster.elapsed_ns(&runs[0]) && truth <= bounds.upper_ns, "{truth} > {bounds:?}");
    let ours = |which: usize| runs[0].ranks.iter().map(move |rank| rank.real_ns[which]);
    let real = ours(1).max().unwrap() - ours(0).min().unwrap();
    assert!(truth <= real && real <= bounds.upper_ns, "{truth} <= {real} <= {bounds:?}");
}

fn plural(number: usize) -> &'static str {
    if number == 1 { "" } else { "s" }
}

/// With pings to rank 0's node the bounds are never wider, and the truth stays within them.
fn measure_with_pings(mpi: Mpi) {
    for (ranks, hosts) in [(1, 1), (2, 2), (3, 3), (6, 3)] {
        let folder = Folder::new("pings");
        let cluster = Cluster::hours_apart(hosts);
        let job = cluster.mpirun(mpi, ranks).arg(pmmpi()).args(["--sync", "pingpong", "--out"]);
        let job = job.arg(folder.path().join("runs")).arg(programs::mpi(mpi, "truth"));
        job.arg(folder.path()).args(["30", "20"]).run().success();
        let run = rig::tool::runs_in(&folder.path().join("runs")).remove(0);
        assert_complete(&run, ranks, hosts);
        assert_eq!(run.sync.len(), hosts - 1, "each node but the hub's");
        for (_, pings) in &run.sync {
            let of = |pings: &[pmmpi::bounds::Ping]| pings.iter().all(|ping| ping.sent_ns < ping.back_ns);
            assert!(of(&pings.before) && of(&pings.after));
            assert_eq!((pings.before.len(), pings.after.len()), (10, 10));
        }
        let (with, without) = (run.elapsed().unwrap(), run.job_stamps().elapsed(run.max_drift()).unwrap());
        assert!(
            with.lower_ns >= without.lower_ns && with.upper_ns <= without.upper_ns,
            "{with:?} {without:?}"
        );
        let truth = truth_ns(folder.path(), ranks);
        assert!(truth <= with.upper_ns, "{truth} {with:?}");
        cluster.assert_bounded(&run);
    }
}

#[test]
fn pings_tighten_the_bounds_under_open_mpi() {
    measure_with_pings(Mpi::OpenMpi);
}

#[test]
fn pings_tighten_the_bounds_under_mpich() {
    measure_with_pings(Mpi::Mpich);
}

/// Runs of plain programs have pings too.
#[test]
fn plain_programs_are_measured_with_pings() {
    for mpi in Mpi::ALL {
        let (folder, cluster) = (Folder::new("plain-pings"), Cluster::hours_apart(2));
        let job = cluster.mpirun(mpi, 2).arg(pmmpi()).args(["--sync", "pingpong", "--runs", "2", "--out"]);
        job.arg(folder.path()).args(["sleep", "0.05"]).run().success();
        let runs = rig::tool::runs_in(folder.path());
        assert_eq!(runs.len(), 2);
        for run in runs {
            assert_eq!((run.sync.len(), run.nodes.len(), run.sync[0].1.after.len()), (1, 2, 10));
            assert!(run.elapsed().unwrap().consistent);
        }
    }
}

#[test]
fn open_mpi_jobs_are_bounded() {
    for (ranks, hosts) in [(1, 1), (2, 1), (2, 2), (3, 1), (3, 3), (6, 2), (6, 3)] {
        measure_truth(Mpi::OpenMpi, ranks, hosts);
    }
}

#[test]
fn mpich_jobs_are_bounded() {
    for (ranks, hosts) in [(1, 1), (2, 1), (2, 2), (3, 1), (3, 3), (6, 2), (6, 3)] {
        measure_truth(Mpi::Mpich, ranks, hosts);
    }
}

/// Ranks that share memory but not a clock: each rank is in a host of its own, which the launcher does not know.
#[test]
fn ranks_share_a_clock_only_where_they_do() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("wrapped");
        let host = rig::tool::target().join("release/pmmpi-rig-host");
        let script = "n=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; h=$1; shift; exec $h same$((n / 2)) $((n * 7200000000000)) -- \"$@\"";
        let job = Job::local(mpi, 3).args(["sh", "-c", script, "sh"]).arg(host).arg(pmmpi());
        let job = job.arg("--out").arg(folder.path()).arg(programs::mpi(mpi, "truth")).arg(folder.path());
        job.args(["10", "10"]).run().success();
        let runs = folder.runs();
        // same0 has two clocks, same1 has one.
        assert_eq!((runs[0].nodes.len(), runs[0].host_count()), (3, 2), "{mpi:?}");
        let bounds = runs[0].elapsed().unwrap();
        assert!(bounds.consistent && truth_ns(folder.path(), 3) <= bounds.upper_ns);
    }
}

#[test]
fn threads_are_initialised_as_asked() {
    for mpi in Mpi::ALL {
        let program = programs::mpi(mpi, "init_thread");
        for level in ["0", "1", "2", "3"] {
            let folder = Folder::new("threads");
            let bare = Job::local(mpi, 2).arg(&program).arg(level).run().success();
            let job =
                Job::local(mpi, 2).arg(pmmpi()).arg("--out").arg(folder.path()).arg(&program).arg(level);
            let measured = job.run().success();
            assert_eq!(bare.out(), measured.out(), "{mpi:?}");
            assert_eq!(folder.runs()[0].ranks.len(), 2);
        }
    }
}

#[test]
fn a_program_alone_is_a_job_of_one() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("alone");
        let _alone = rig::cluster::machine();
        let mut command = Command::new(pmmpi());
        command.arg("--out").arg(folder.path()).arg(programs::mpi(mpi, "truth")).arg(folder.path());
        run(command.args(["10", "0"]).envs(rig::FOR_ROOT)).success();
        assert_eq!(folder.runs()[0].ranks.len(), 1);
        assert_eq!(folder.runs()[0].header.job.launcher, None);
    }
}

/// MPI is needed by a library of the program, by a script's interpreter, or behind a wrapper.
#[test]
fn mpi_is_found_wherever_it_is() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("found");
        let program = programs::through_library(mpi);
        let measure = |args: &[&str]| {
            let job = Job::local(mpi, 2).arg(pmmpi()).args(["-v", "--out"]).arg(folder.path());
            job.args(args).run().success()
        };
        let program = program.to_str().unwrap();
        assert!(measure(&[program]).err().contains("through"), "{mpi:?}");
        let script = folder.path().join("script");
        std::fs::write(&script, format!("#!/bin/sh\nexec env A=b {program}\n")).unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let output = measure(&[script.to_str().unwrap()]);
        assert!(output.err().contains("may start an MPI program"), "{}", output.err());
        assert!(output.out().lines().all(|line| line == "size 2"));
        assert_eq!(folder.runs().iter().filter(|run| run.ranks.len() == 2).count(), 2);
    }
}

/// A program that pmmpi does not know, which starts the MPI program in its arguments.
#[test]
fn a_wrapper_is_known_by_what_it_is_given() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("given");
        let job = Job::local(mpi, 2).arg(pmmpi()).args(["-v", "--out"]).arg(folder.path());
        let output = job.args(["setpriv", "--no-new-privs"]).arg(programs::mpi(mpi, "quiet")).run().success();
        assert!(output.err().contains("is an MPI program) may start an MPI program"), "{}", output.err());
        let runs = folder.runs();
        assert_eq!((runs.len(), runs[0].ranks.len(), runs[0].header.mode), (1, 2, Mode::Mpi), "{mpi:?}");
    }
}

/// Two MPI programs behind one `pmmpi`, one after the other and at the same time: the record contains only the first.
#[test]
fn the_second_program_of_a_launch_leaves_the_first_ones_record_alone() {
    let program = programs::mpi(Mpi::Mpich, "ends");
    for between in ["; ", " & "] {
        let folder = Folder::new("second");
        let place = folder.path().display();
        let command = |ms: u32| format!("{} wait 0 {place} {ms}", program.display());
        // The first program signals that it has begun.
        let begun = format!("while [ ! -e {place}/pids.0 ]; do sleep 0.01; done");
        let script = format!("{}{between}{begun}; {}; wait", command(300), command(20));
        let mut measured = Command::new(pmmpi());
        measured.args(["--mode", "mpi", "--out"]).arg(folder.path()).args(["sh", "-c", &script]);
        let output = run(measured.envs(rig::FOR_ROOT)).success();
        assert!(
            output.err().contains("several MPI programs: pmmpi measured only the first"),
            "{}",
            output.err()
        );
        let runs = folder.runs();
        assert_eq!(runs.len(), 1);
        assert!(runs[0].elapsed().unwrap().lower_ns >= 290_000_000, "{between}");
    }
}

/// Work after MPI_Finalize is not measured, but if the program fails there, the run has failed.
#[test]
fn a_failure_after_finalize_is_recorded() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("after");
        for end in ["3", "-11"] {
            let job = Job::local(mpi, 1).arg(pmmpi()).args(["-q", "--out"]).arg(folder.path());
            assert_ne!(job.arg(programs::mpi(mpi, "noisy")).arg(end).run().code(), 0);
        }
        let ends: Vec<_> = folder.runs().iter().map(|run| run.end()).collect();
        assert_eq!(ends, [Some(End::Exited(3)), Some(End::Signaled(11))], "{mpi:?}");
    }
}

/// HPC Challenge, which includes HPL.
fn measure_hpcc(mpi: Mpi, ranks: usize, hosts: usize) {
    let folder = Folder::new("hpcc");
    std::fs::write(folder.path().join("hpccinf.txt"), programs::hpcc_input(100, ranks)).unwrap();
    let cluster = Cluster::hours_apart(hosts);
    let job = cluster.mpirun(mpi, ranks).current_dir(folder.path()).arg(pmmpi());
    job.args(["--out", "runs", "--label", "n=100"]).arg(programs::hpcc(mpi)).run().success();
    let runs = rig::tool::runs_in(&folder.path().join("runs"));
    assert_complete(&runs[0], ranks, hosts);
    assert_eq!(runs[0].header.labels, [("n".to_owned(), "100".to_owned())]);
    let result = std::fs::read_to_string(folder.path().join("hpccoutf.txt")).unwrap();
    // Not hpcc's own Success: its RandomAccess may lose updates in races and then reports a failure.
    let hpl = result.lines().find(|line| line.starts_with("||Ax-b||_oo")).expect("HPL's residual");
    assert!(hpl.ends_with("PASSED") && result.contains("End of HPC Challenge tests."), "{hpl}");
}

#[test]
fn hpl_is_measured_under_open_mpi() {
    for (ranks, hosts) in [(1, 1), (2, 2), (3, 3), (6, 3)] {
        measure_hpcc(Mpi::OpenMpi, ranks, hosts);
    }
}

#[test]
fn hpl_is_measured_under_mpich() {
    // Not six ranks: MPICH's ranks wait busily, so on two cores they would need minutes.
    for (ranks, hosts) in [(1, 1), (2, 2), (3, 3)] {
        measure_hpcc(Mpi::Mpich, ranks, hosts);
    }
}

/// Messages that a program leaves open do not mix with the tool's messages.
#[test]
fn what_a_program_leaves_under_way_does_not_matter() {
    for mpi in Mpi::ALL {
        for way in ["receive", "attribute", "short", "long"] {
            let folder = Folder::new("stray");
            let job =
                Job::local(mpi, 2).arg(pmmpi()).args(["--sync", "pingpong", "--out"]).arg(folder.path());
            job.arg(programs::mpi(mpi, "stray")).arg(way).run().success();
            let runs = rig::tool::runs_in(folder.path());
            assert!(runs.len() == 1 && runs[0].is_complete(), "{mpi:?} {way}");
        }
    }
}
