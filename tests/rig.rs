//! The rig itself: hosts that differ as they should, and are one machine where they should be.

use rig::Mpi;
use rig::cluster::Cluster;
use std::collections::BTreeSet;

#[test]
fn hosts_have_names_and_clocks_of_their_own() {
    let script = "echo $(uname -n) $(cut -d' ' -f1 /proc/uptime) $(date +%s)";
    for mpi in Mpi::ALL {
        let cluster = Cluster::hours_apart(3);
        let output = cluster.mpirun(mpi, 3).args(["sh", "-c", script]).run().success().out();
        let rows: Vec<Vec<&str>> = output.lines().map(|line| line.split(' ').collect()).collect();
        let names: BTreeSet<&str> = rows.iter().map(|row| row[0]).collect();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["node0", "node1", "node2"], "{mpi:?}");
        let number = |row: &[&str], at: usize| row[at].parse::<f64>().unwrap();
        let up = |name: &str| number(rows.iter().find(|row| row[0] == name).unwrap(), 1);
        assert!(((up("node0") - up("node1")) / 3600.0 - 3.0).abs() < 0.01, "{output}");
        assert!(((up("node2") - up("node1")) / 3600.0 - 75.0).abs() < 0.01, "{output}");
        let dates = rows.iter().map(|row| number(row, 2));
        assert!(dates.clone().fold(f64::MIN, f64::max) - dates.fold(f64::MAX, f64::min) < 10.0);
    }
}

#[test]
fn a_job_that_fails_says_so() {
    for mpi in Mpi::ALL {
        let output = Cluster::hours_apart(2).mpirun(mpi, 2).args(["sh", "-c", "exit 7"]).run();
        assert_eq!(output.code(), 7, "{mpi:?}");
    }
}
