//! The end barrier: the last rank waits for no rank that sleeps, whatever the number of ranks.

use rig::cluster::{Cluster, machine};
use rig::tool::{Folder, pmmpi, runs_in};
use rig::{Mpi, programs};
use std::fs;
use std::time::{Duration, SystemTime};

/// All ranks except the last one are stopped (SIGSTOP) while they wait in the barrier. The last rank leaves
/// nevertheless.
#[test]
fn the_last_rank_leaves_while_all_others_are_stopped() {
    // Number of ranks, and the rank that comes last.
    const JOBS: [(usize, usize); 7] = [(2, 1), (3, 2), (4, 3), (5, 0), (5, 4), (6, 5), (7, 3)];
    for mpi in Mpi::ALL {
        for (ranks, last) in JOBS {
            let (cluster, folder) = (Cluster::hours_apart(3), Folder::new("last"));
            let (gate, out) = (folder.path().join("gate"), folder.path().join("runs"));
            let job = cluster.mpirun(mpi, ranks).arg(pmmpi()).arg("--out").arg(&out);
            let job = job.arg(programs::mpi(mpi, "last")).arg(last.to_string()).arg(&gate);
            let _alone = machine();
            let started = job.start();
            let waiting = || -> Vec<i32> {
                let names = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name());
                let of = |name: &str| name.strip_prefix("gate.")?.split('.').nth(1)?.parse().ok();
                names.filter_map(|name| of(name.to_str()?)).collect()
            };
            while waiting().len() < ranks - 1 {
                started.assert_running();
                std::thread::sleep(Duration::from_millis(10));
            }
            // By then each has informed the others; a waiting rank does so at least once per millisecond.
            std::thread::sleep(Duration::from_millis(500));
            let stopped = waiting();
            let signal_all = |signal| {
                // SAFETY: ranks of the test's job that still run, because they wait for the last one.
                stopped.iter().for_each(|rank| assert_eq!(unsafe { libc::kill(*rank, signal) }, 0));
            };
            signal_all(libc::SIGSTOP);
            fs::write(&gate, "").unwrap();
            std::thread::sleep(Duration::from_secs(2));
            let continued_ns = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
            signal_all(libc::SIGCONT);
            started.finish().success();
            let run = runs_in(&out).remove(0);
            let rank = run.ranks.iter().find(|rank| rank.rank.index() == last).expect("the last rank");
            let left_ns = rank.real_ns[1] + rank.stamps.end_barrier_ns();
            assert!(
                (left_ns as u128) < continued_ns,
                "{mpi:?}: rank {last} of {ranks} waited {} ns for ranks that slept",
                rank.stamps.end_barrier_ns()
            );
        }
    }
}
