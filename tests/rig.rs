//! The rig itself: hosts differ in names and clocks, and otherwise are one machine.

use rig::cluster::{Cluster, machine};
use rig::tool::{Folder, Output, run, target};
use rig::{Mpi, programs};
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

/// The output of the program `clocks` for one host.
struct Clocks {
    /// CLOCK_MONOTONIC and CLOCK_BOOTTIME against CLOCK_REALTIME (ns).
    ahead_ns: [i64; 2],
    real_ns: i64,
}

/// The clocks by host name.
fn clocks(output: Output) -> BTreeMap<String, Clocks> {
    let text = output.success().out();
    let host = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse().unwrap_or_else(|e| panic!("{line}: {e}"));
        (words[0].to_owned(), Clocks { ahead_ns: [number(1), number(2)], real_ns: number(3) })
    };
    text.lines().map(host).collect()
}

fn real_ns() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as i64
}

/// A host that is ahead, one that is behind, and one that is neither.
const HOSTS: [(&str, i64); 3] = [("ahead", 7_200_000_000_001), ("behind", -1_500_000_001), ("neither", 0)];

#[test]
fn hosts_have_names_and_clocks_of_their_own() {
    let program = programs::plain("clocks");
    let (_, own) = clocks(run(&mut Command::new(&program))).pop_first().expect("this machine");
    for (mpi, count) in Mpi::ALL.into_iter().flat_map(|mpi| [(mpi, 1), (mpi, 2), (mpi, 3)]) {
        let before = real_ns();
        let found = clocks(Cluster::new(&HOSTS[..count]).mpirun(mpi, count).arg(&program).run());
        let after = real_ns();
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, HOSTS[..count].iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{mpi:?}");
        for (name, offset_ns) in &HOSTS[..count] {
            let host = &found[*name];
            for (ahead, own) in host.ahead_ns.iter().zip(own.ahead_ns) {
                let error = ahead - own - offset_ns;
                // The error of two readings, plus what a time server changes between them.
                assert!(error.abs() < 1_000_000, "{mpi:?} {name}: off by {error} ns");
            }
            assert!(before < host.real_ns && host.real_ns < after, "{mpi:?} {name}: CLOCK_REALTIME differs");
        }
    }
}

#[test]
fn ranks_on_different_hosts_are_one_job() {
    for (mpi, ranks, hosts) in
        [(Mpi::OpenMpi, 2, 2), (Mpi::OpenMpi, 6, 3), (Mpi::Mpich, 2, 2), (Mpi::Mpich, 3, 3)]
    {
        let folder = Folder::new("together");
        let before = real_ns();
        let cluster = Cluster::hours_apart(hosts);
        let job = cluster.mpirun(mpi, ranks).arg(programs::mpi(mpi, "truth"));
        job.arg(folder.path()).args(["20", "10", "barrier"]).run().success();
        let after = real_ns();
        let times: Vec<Vec<i64>> = (0..ranks).map(|rank| truth(folder.path(), rank)).collect();
        let slowest_ns = (20 + 10 * (ranks as i64 - 1)) * 1_000_000;
        for time in &times {
            // Ranks of separate jobs would not wait for the last one.
            let last_begin = times.iter().map(|time| time[0]).max().unwrap();
            assert!(time[1] >= last_begin, "{mpi:?} {times:?}");
            assert!(before < time[0] && time[1] < after, "{mpi:?} {times:?}");
        }
        let span = times.iter().map(|t| t[1]).min().unwrap() - times.iter().map(|t| t[0]).min().unwrap();
        assert!(span >= slowest_ns, "{mpi:?} {span} {times:?}");
    }
}

fn truth(folder: &Path, rank: usize) -> Vec<i64> {
    let text = fs::read_to_string(folder.join(format!("truth.{rank}"))).expect("each rank writes its truth");
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

#[test]
fn a_job_that_fails_says_so() {
    for mpi in Mpi::ALL {
        for code in [1, 7, 255] {
            let script = format!("exit {code}");
            let output = Cluster::hours_apart(2).mpirun(mpi, 2).args(["sh", "-c", &script]).run();
            assert_eq!(output.code(), code, "{mpi:?}");
        }
    }
}

/// If a job hangs, its test fails with the job's command, and no rank remains.
#[test]
fn a_job_that_hangs_is_ended() {
    for mpi in Mpi::ALL {
        let (folder, cluster) = (Folder::new("hang"), Cluster::hours_apart(2));
        let script = "echo $$ > $0/$(uname -n); echo ready; exec sleep 1000";
        let _alone = machine();
        let started = cluster.mpirun(mpi, 2).args(["sh", "-c", script]).arg(folder.path()).start();
        started.wait_for("ready", 2);
        let ranks = ["node0", "node1"].map(|host| fs::read_to_string(folder.path().join(host)).unwrap());
        while !ranks.iter().all(|rank| is_asleep(rank)) {
            std::thread::sleep(Duration::from_millis(1)); // the shells have not started sleep yet
        }
        let limit = Duration::from_millis(100);
        let panic = catch_unwind(AssertUnwindSafe(|| started.within(limit).finish())).unwrap_err();
        let message = panic.downcast_ref::<String>().expect("a message");
        assert!(message.contains("mpirun") && message.contains("sleep 1000"), "{message}");
        // The launcher has ended; the processes on its other hosts follow.
        let deadline = Instant::now() + Duration::from_secs(10);
        while ranks.iter().any(|rank| is_asleep(rank)) {
            assert!(Instant::now() < deadline, "{mpi:?}: a rank is left");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A process that has ended has no command line, whether it is reaped or not.
fn is_asleep(process: &str) -> bool {
    let command = fs::read(format!("/proc/{}/cmdline", process.trim())).unwrap_or_default();
    command.starts_with(b"sleep\x001000")
}

fn host(args: &[&str]) -> Output {
    run(Command::new(target().join("release/pmmpi-rig-host")).args(args))
}

#[test]
fn the_remote_shell_knows_the_options_of_ssh() {
    let folder = Folder::new("rsh");
    let path = folder.path().join("table");
    fs::write(&path, "nearer 0\nnear 0\n").unwrap();
    let table = path.to_str().unwrap();
    let shell = |args: &[&str]| host(&[&["--rsh", table], args].concat());
    for options in [&[][..], &["-x"], &["-q", "-o", "BatchMode=yes"], &["-oBatchMode=yes"], &["-xp", "22"]] {
        let output = shell(&[options, &["near", "uname", "-n;", "exit 9"]].concat());
        assert_eq!((output.code(), output.out().as_str()), (9, "near\n"), "{options:?} {}", output.err());
    }
    let says = |args: &[&str], what: &str| {
        let output = shell(args);
        assert!(output.code() == 1 && output.err().contains(what), "{args:?} {}", output.err());
    };
    says(&["far", "true"], "far is not in");
    says(&["-x", "-o"], "no host");
}

#[test]
fn a_host_that_cannot_be_says_why() {
    for (args, why) in [
        (&["name"][..], "usage"),
        (&["name", "soon", "--", "true"], "soon: invalid digit"),
        (&["name", "0", "--", "/nonexistent"], "/nonexistent: No such file"),
        // A time before the start of the machine.
        (&["name", "-1000000000000000000", "--", "true"], "host name, /proc/self/timens_offsets: "),
        (&[&"long".repeat(17), "0", "--", "true"], "sethostname: "),
    ] {
        let output = host(args);
        assert!(output.code() == 1 && output.err().contains(why), "{args:?} {}", output.err());
    }
}

/// As an ordinary user of this machine, if such users may create namespaces.
#[test]
fn a_user_may_have_hosts_too() {
    let folder = Folder::new("user");
    let copy = folder.path().join("host");
    fs::copy(target().join("release/pmmpi-rig-host"), &copy).unwrap();
    let as_user = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        run(command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).args(args))
    };
    if as_user(&["unshare", "--user", "--uts", "true"]).code() != 0 {
        eprintln!("skipped: users make no namespaces here");
        return;
    }
    let copy = copy.to_str().unwrap();
    let output = as_user(&[
        copy,
        "theirs",
        "3600000000000",
        "--",
        "sh",
        "-c",
        "uname -n; cat /proc/self/timens_offsets",
    ]);
    let output = output.success();
    let words: Vec<String> = output.out().split_whitespace().map(str::to_owned).collect();
    assert_eq!(words, ["theirs", "monotonic", "3600", "0", "boottime", "3600", "0"]);
}
