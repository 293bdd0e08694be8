//! `pmmpi screen` on hosts of the rig, one of which is slow, hangs, or computes something wrong.

use pmmpi::record::{End, Run};
use rig::checked_report::checked_report;
use rig::cluster::{Cluster, Job, machine};
use rig::cpu_group::CpuGroup;
use rig::flipped_bits::flip_until;
use rig::freezer::Freezer;
use rig::tool::{Folder, Output, pmmpi};
use rig::{Mpi, programs};
use serde_json::Value;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

const HOSTS: [(&str, i64); 5] = [
    ("n0", 0),
    ("n1", 3_600_000_000_000),
    ("n2", 7_200_000_000_123),
    ("n3", 80_000_000_000_000),
    ("n4", 1_000_000_000),
];

/// The hosts, which get most of the CPU time, whatever else runs on this machine. Without the group of `n2`, all threads
/// get the same share.
struct Hosts {
    cluster: Cluster,
    group: CpuGroup,
    of_n2: Option<CpuGroup>,
}

impl Hosts {
    /// `None` if this machine has no cgroups for CPU time.
    fn new() -> Option<Self> {
        Some(Self { cluster: Cluster::new(&HOSTS), group: CpuGroup::new("hosts")?, of_n2: None })
    }

    /// `n2` gets only this share of one CPU.
    fn limit_n2(mut self, cpus: f64) -> Option<Self> {
        let group = CpuGroup::new("n2")?;
        group.limit(cpus);
        self.of_n2 = Some(group);
        Some(self)
    }

    /// `pmmpi screen` on each host; on `n2` the command begins with `on_n2`.
    fn screen(&self, mpi: Mpi, on_n2: &str, args: &[&str], out: &Folder) -> Output {
        self.job(mpi, on_n2, args, out).run()
    }

    fn job(&self, mpi: Mpi, on_n2: &str, args: &[&str], out: &Folder) -> Job<'_> {
        let enter = |group: &CpuGroup| format!("echo $$ > {}", group.processes().display());
        let (all, n2) = (enter(&self.group), enter(self.of_n2.as_ref().unwrap_or(&self.group)));
        let script =
            format!("case $(hostname) in n2) {n2}; exec {on_n2} \"$@\";; *) {all}; exec \"$@\";; esac");
        let out = out.path().display().to_string();
        let pmmpi = pmmpi().display().to_string();
        self.cluster
            .mpirun(mpi, HOSTS.len())
            .args(["sh", "-c", &script, "sh", &pmmpi, "screen", "--out", &out])
            .args(args)
    }
}

/// How each run ended on `n2`.
fn ends_of_n2(runs: &[Run]) -> Vec<End> {
    runs.iter()
        .flat_map(|run| run.ranks.iter().filter(|rank| rank.rank.0 == 2))
        .map(|rank| rank.end)
        .collect()
}

/// What a rank does in rounds after one that hung on it.
const NOT_AGAIN: End = End::NotStarted(libc::ECANCELED);

fn verdict(report: &Value, node: &str) -> Value {
    let nodes = report["screened"].as_array().expect("screened nodes");
    nodes.iter().find(|of| of["node"] == node).expect("the node").clone()
}

/// Rounds of all nodes, then of suspects: of each kernel and round one run, in one series.
fn rounds_of(runs: &[Run], kernel: &str) -> Vec<(u32, usize)> {
    let of = |run: &&Run| run.screened.as_ref().is_some_and(|of| of.kernel.as_deref() == Some(kernel));
    let mut rounds: Vec<(u32, usize)> = runs
        .iter()
        .filter(of)
        .map(|run| (run.header.series.as_ref().expect("a series").round, run.ranks.len()))
        .collect();
    rounds.sort_unstable();
    rounds
}

/// The highest value of `n2` in a kernel, per its lowest: much more than 1 if the processors of this machine changed
/// their speed during the screen. Two processors of a virtual machine do so, one up and the other down, for seconds.
fn change_of_n2(runs: &[Run], kernel: &str) -> f64 {
    let of = |run: &&Run| run.screened.as_ref().is_some_and(|of| of.kernel.as_deref() == Some(kernel));
    let values: Vec<f64> = (runs.iter().filter(of))
        .flat_map(|run| &run.screened.as_ref().expect("results of a kernel").results)
        .filter(|result| result.rank.0 == 2)
        .filter_map(|result| result.values.first().copied())
        .collect();
    assert!(!values.is_empty());
    values.iter().copied().fold(0.0, f64::max) / values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Checks that `n2` alone is slow, and in which kernels.
fn assert_slow(report: &Value, output: &Output, slow_kernels: &[&str]) {
    let slow = verdict(report, "n2");
    assert_eq!(slow["verdict"], "SLOW-TAIL", "{}\n{slow:#}", output.err());
    assert_eq!(slow["suggests_drain"], true);
    for (kernel, of) in slow["kernels"].as_object().expect("kernels") {
        let is_slow = of["verdict"] == "SLOW-TAIL";
        assert_eq!(is_slow, slow_kernels.contains(&kernel.as_str()), "{}\n{slow:#}", output.err());
        assert!(of["value"].as_f64().is_some_and(|value| value > 0.0));
    }
    for node in ["n0", "n1", "n3", "n4"] {
        let other = verdict(report, node);
        assert!(other["verdict"] != "SLOW-TAIL" && other["verdict"] != "SLOW", "{}\n{other:#}", output.err());
    }
    let text = output.out();
    assert!(text.contains("1 of 5 nodes is slower than its class: n2 in "), "{text}");
}

#[test]
fn a_node_with_fewer_cores_is_slow_in_compute() {
    let Some(hosts) = Hosts::new() else { return };
    // The rounds of suspects take long, so one job is enough for them.
    let usual = ("dgemm", &[] as &[&str], (0..7).map(|round| (round, 5)).collect::<Vec<_>>());
    let short = ("fma", &["--rounds", "5", "--warmup", "0"][..], usual.2[..5].to_vec());
    for (mpi, (compute, options, rounds)) in [(Mpi::OpenMpi, usual), (Mpi::Mpich, short)] {
        let kernels = format!("{compute},latency");
        let args = ["--kernels", &kernels, "--memory", "64M", "--cores", "rank", "--suggest"];
        let args = [&args[..], options].concat();
        let screen = || {
            let out = Folder::new("screen");
            (hosts.screen(mpi, "taskset -c 0", &args, &out).success(), out)
        };
        // Half of the processors is half of the speed only while the processors are equally fast.
        let is_steady = |(_, out): &(Output, Folder)| change_of_n2(&out.runs(), compute) < 1.5;
        let mut screens = std::iter::repeat_with(screen).take(4);
        let (output, out) = screens.find(is_steady).expect("a screen while the processors keep their speed");
        let report = checked_report(out.path());
        assert_slow(&report, &output, &[compute]);
        assert_eq!(verdict(&report, "n2")["slow_in"], "compute");
        assert_eq!(rounds_of(&out.runs(), compute), rounds, "{}", output.err());
        let text = output.out();
        assert!(
            text.contains("scontrol update NodeName=n2 State=DRAIN 'Reason=pmmpi: slow-compute: +"),
            "{text}"
        );
        for node in report["nodes"].as_array().expect("nodes") {
            let kernels = node["kernels"].as_object().expect("kernels of a node");
            assert_eq!(kernels.keys().collect::<Vec<_>>(), [compute, "latency"]);
        }
    }
}

#[test]
fn a_node_that_loses_cpu_time_is_slow_in_all_kernels() {
    let Some(hosts) = Hosts::new().and_then(|hosts| hosts.limit_n2(0.25)) else { return };
    let out = Folder::new("screen-quota");
    let args = ["--kernels", "dgemm,fma", "--rounds", "5", "--warmup", "0", "--fail-on", "slow"];
    let output = hosts.screen(Mpi::OpenMpi, "", &args, &out);
    assert_eq!(output.code(), 3, "{}", output.err());
    assert_slow(&checked_report(out.path()), &output, &["dgemm", "fma"]);
}

#[test]
fn a_node_that_hangs_is_named_and_the_others_go_on() {
    let Some(hosts) = Hosts::new() else { return };
    let out = Folder::new("screen-hangs");
    let text = "case $(hostname) in n2) echo >> $0.starts; sleep 1000;; *) sleep 0.1;; esac";
    let program = programs::script(out.path(), text).display().to_string();
    let args = ["--rounds", "2", "--warmup", "0", "--timeout", "10", "--", &program];
    let output = hosts.screen(Mpi::OpenMpi, "", &args, &out).success();
    assert_eq!(ends_of_n2(&out.runs()), [End::TimedOut, NOT_AGAIN], "{}", output.err());
    let starts = std::fs::read_to_string(format!("{program}.starts")).expect("a line for each start");
    assert_eq!(starts.lines().count(), 1, "a node waits for the time limit once only");
    for why in [", so pmmpi ended it", " in an earlier round or warm-up, so pmmpi did not start it again"] {
        let told = format!("n2: script: it took longer than --timeout{why}");
        assert!(output.err().contains(&told), "{}", output.err());
    }
    let report = checked_report(out.path());
    assert_eq!(verdict(&report, "n2")["verdict"], "FAILED");
    assert!(
        output
            .out()
            .contains("1 of 5 nodes FAILED, because a kernel ended with an error or took too long: n2"),
        "{}",
        output.out()
    );
    let times: Vec<u64> =
        (report["nodes"].as_array().unwrap().iter()).map(|node| node["runs"].as_u64().unwrap()).collect();
    assert_eq!(times, [2, 2, 2, 2]);
}

/// A program that waits for a disk or a file server that never answers.
#[test]
fn a_program_that_no_signal_ends_is_named_and_the_others_go_on() {
    let (Some(hosts), Some(freezer)) = (Hosts::new(), Freezer::new("program")) else { return };
    let out = Folder::new("screen-frozen");
    let text = format!("case $(hostname) in n2) {};; esac; sleep 0.1", freezer.commands());
    let program = programs::script(out.path(), &text).display().to_string();
    let args = ["--rounds", "2", "--warmup", "0", "--timeout", "10", "--", &program];
    let alone = machine();
    let screen = hosts.job(Mpi::OpenMpi, "", &args, &out).start();
    // mpirun itself waits for the program, which has its stdout.
    screen.wait_for("1 of 5 nodes FAILED", 1);
    freezer.thaw();
    let output = screen.finish().success();
    drop(alone);
    assert_eq!(ends_of_n2(&out.runs()), [End::TimedOut, NOT_AGAIN], "{}", output.err());
    let told = "n2: script: it took longer than --timeout, and no signal ended it";
    assert!(output.err().contains(told), "{}", output.err());
    let report = checked_report(out.path());
    assert_eq!(verdict(&report, "n2")["verdict"], "FAILED");
}

/// mpirun of Open MPI does not wait for such a kernel. As it may continue, no other kernel runs beside it, except `net`.
#[test]
fn a_kernel_that_no_signal_ends_is_named_and_the_screen_ends() {
    let (Some(hosts), Some(freezer)) = (Hosts::new(), Freezer::new("kernel")) else { return };
    let out = Folder::new("screen-frozen-kernel");
    let variable = format!("FROZEN={}", out.path().display());
    let args = ["--kernels", "fma,dgemm,net", "--rounds", "2", "--warmup", "0", "--timeout", "20"];
    let is_over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| freezer.freeze_first(&is_over, &variable, "screen-kernel"));
        let output = hosts.screen(Mpi::OpenMpi, &format!("env {variable}"), &args, &out);
        is_over.store(true, Ordering::Relaxed);
        output
    });
    let output = output.success();
    let kernel = |run: &Run| run.screened.as_ref().and_then(|of| of.kernel.clone()).expect("a kernel");
    let (of_net, others): (Vec<Run>, Vec<Run>) = out.runs().into_iter().partition(|run| kernel(run) == "net");
    assert_eq!(ends_of_n2(&others), [End::TimedOut, NOT_AGAIN, NOT_AGAIN, NOT_AGAIN], "{}", output.err());
    let of_net = ends_of_n2(&of_net);
    assert!(of_net.len() >= 2 && !of_net.contains(&NOT_AGAIN), "{of_net:?}");
    let hung = kernel(&others[0]);
    let told = format!("n2: {hung}: it took longer than --timeout, and no signal ended it");
    assert!(output.err().contains(&told), "{}", output.err());
    let other = if hung == "fma" { "dgemm" } else { "fma" };
    let told = format!("n2: {other}: a process of an earlier kernel is still there");
    assert!(output.err().contains(&told), "{}", output.err());
    let n2 = verdict(&checked_report(out.path()), "n2");
    assert_eq!(n2["verdict"], "FAILED", "{n2:#}");
    for kernel in ["fma", "dgemm"] {
        assert_eq!(n2["kernels"][kernel]["failed_runs"], 2, "{n2:#}");
    }
}

/// Bits of a kernel's arrays flip on one host, as in faulty memory.
#[test]
fn flipped_bits_make_a_wrong_result_and_no_time() {
    // In the ring of `latency`, nearly all wrong pointers end in a signal.
    for (kernel, memory) in [("triad", "256M"), ("latency", "64M")] {
        let Some(hosts) = Hosts::new() else { return };
        let out = Folder::new("screen-flips");
        let variable = format!("FLIPPED={}", out.path().display());
        let args = ["--kernels", kernel, "--memory", memory, "--rounds", "3", "--warmup", "0", "--suggest"];
        let is_over = AtomicBool::new(false);
        let output = std::thread::scope(|scope| {
            scope.spawn(|| flip_until(&is_over, &variable, "screen-kernel"));
            let output = hosts.screen(Mpi::OpenMpi, &format!("env {variable}"), &args, &out);
            is_over.store(true, Ordering::Relaxed);
            output
        });
        let report = checked_report(out.path());
        for host in ["n0", "n1", "n3", "n4"] {
            assert_ne!(verdict(&report, host)["verdict"], "WRONG", "{report:#}");
        }
        let n2 = verdict(&report, "n2");
        assert_eq!((&n2["verdict"], &n2["kernel"]), (&"WRONG".into(), &kernel.into()), "{n2:#}");
        // Between two rounds, no kernel has arrays: a flip may come too late for one of them.
        let rounds = ["runs", "failed_runs"].map(|of| n2["kernels"][kernel][of].as_u64().unwrap());
        assert!(rounds[1] >= 1 && rounds.iter().sum::<u64>() == 3, "{n2:#}");
        let told = format!("n2: {kernel}: wrong result on hardware thread ");
        assert!(output.err().contains(&told), "{}", output.err());
        let reason = format!("'Reason=pmmpi: wrong-result: {kernel} ");
        assert!(output.out().contains(&reason), "{}", output.out());
    }
}

/// A kernel that cannot run says why, and the other kernels run.
#[test]
fn a_kernel_that_cannot_run_says_why() {
    let (out, _alone) = (Folder::new("screen-fails"), machine());
    let args = ["screen", "--kernels", "triad,fma", "--memory", "100T", "--rounds", "1", "--out"];
    let output = rig::tool::run(Command::new(pmmpi()).args(args).arg(out.path())).success();
    assert!(output.err().contains("triad: ") && output.err().contains("GB of memory"), "{}", output.err());
    let report = checked_report(out.path());
    let node = &report["screened"][0];
    assert_eq!((&node["verdict"], &node["kernel"]), (&"FAILED".into(), &"triad".into()), "{node:#}");
    assert!(node["kernels"]["fma"]["value"].as_f64().is_some());
    // Only of `fma`, pmmpi knows how many instructions it executes.
    let mut runs = out.runs();
    runs.retain(|run| !run.expected.is_empty());
    assert_eq!(rounds_of(&runs, "fma"), [(0, 1)]);
    assert!(runs.len() == 1 && runs[0].expected[0].instructions > 1_000_000, "{:?}", runs[0].expected);
}

/// The installed pmmpi is static and cannot load a library, so another program of pmmpi does.
#[test]
fn dgemm_uses_the_library_that_the_user_names() {
    let (out, _alone) = (Folder::new("screen-blas"), machine());
    let known = rig::tool::run(Command::new("ldconfig").arg("-p")).success().out();
    let blas = known.lines().find(|line| line.trim_start().starts_with("libblas.so.3 "));
    let blas = blas.and_then(|line| line.rsplit(' ').next()).expect("a line of libblas.so.3");
    let args = ["screen", "--kernels", "dgemm", "--rounds", "1", "--blas", blas, "--out"];
    rig::tool::run(Command::new(pmmpi()).args(args).arg(out.path())).success();
    let report = checked_report(out.path());
    let notes = report["kernels"][0]["notes"].to_string();
    assert!(notes.contains(blas), "{notes}");
    assert!(report["screened"][0]["kernels"]["dgemm"]["value"].as_f64().is_some(), "{report:#}");
    for (library, told) in [
        ("/nowhere/libblas.so", "pmmpi: --blas: Cannot load the BLAS library /nowhere/libblas.so"),
        ("libc.so.6", "pmmpi: --blas: The library libc.so.6 has no function cblas_dgemm"),
    ] {
        let args = ["screen", "--kernels", "dgemm", "--blas", library];
        let output = rig::tool::run(Command::new(pmmpi()).args(args));
        assert!(output.code() == 2 && output.err().starts_with(told), "{}", output.err());
    }
}

#[test]
fn wrong_usage_is_refused_before_anything_starts() {
    for (args, told) in [
        (&["--kernels", "stream"][..], "--kernels stream: unknown kernel; the kernels are triad, dgemm"),
        (&["--rounds", "0"], "--rounds 0: expected"),
        (&["--memory", "lots"], "--memory lots: expected"),
        (&["--soak", "never"], "--soak never: expected a time"),
        (&["--label", "soak=1200s"], "--label soak=1200s: pmmpi screen sets the label soak itself"),
        (&["--label", "a"], "--label a: expected KEY=VALUE"),
        (&["--rounds", "-1"], "--rounds -1: expected"),
        (&["--kernels", "fma", "--", "true"], "remove"),
    ] {
        let output = rig::tool::run(Command::new(pmmpi()).arg("screen").args(args));
        assert_eq!(output.code(), 2, "{}", output.err());
        assert!(output.err().contains(told), "{}", output.err());
    }
    let output = rig::tool::run(Command::new(pmmpi()).args(["screen-kernel", "fma"]));
    assert_eq!(output.code(), 2, "{}", output.err());
}

/// All ranks have the same wrong option, and one of them says so.
#[test]
fn a_job_says_once_what_is_wrong() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        for (args, told) in [
            (&["--rounds", "0"][..], "--rounds 0: expected"),
            (&["--delta", "x"], "--delta"),
            (&["--apply", "drain"], "--apply: "),
        ] {
            let cluster = Cluster::new(&HOSTS[..3]);
            // Without scontrol in PATH.
            let job = cluster.mpirun(mpi, 3).args(["env", "PATH=/nowhere"]).arg(pmmpi());
            let output = job.arg("screen").args(args).run();
            assert_ne!(output.code(), 0, "{}", output.err());
            assert_eq!(output.err().matches(told).count(), 1, "{}", output.err());
            assert!(!output.err().contains("[1/"), "{}", output.err());
        }
    }
}

#[test]
fn a_program_that_is_missing_on_one_host_is_named_with_the_host() {
    let (cluster, out) = (Cluster::new(&HOSTS[..3]), Folder::new("screen-missing"));
    let pmmpi = pmmpi().display().to_string();
    let out = out.path().display().to_string();
    let script = format!(
        "case $(uname -n) in n1) program=/missing;; *) program=true;; esac; exec {pmmpi} screen --out {out} -- $program"
    );
    let output = cluster.mpirun(Mpi::OpenMpi, 3).args(["sh", "-c", &script]).run();
    assert!(output.code() != 0 && output.err().contains("n1: /missing: "), "{}", output.err());
}

#[test]
fn what_a_program_prints_does_not_mix_with_a_report_for_programs() {
    let (out, _alone) = (Folder::new("screen-prints"), machine());
    let args = ["screen", "--rounds", "2", "--format", "json", "--out"];
    let output =
        rig::tool::run(Command::new(pmmpi()).args(args).arg(out.path()).args(["--", "echo", "hello"]));
    let report: Value = serde_json::from_str(&output.success().out()).expect("only the report");
    assert_eq!(report["screened"][0]["kernels"].as_object().map(|kernels| kernels.len()), Some(1));
}
