//! Hosts that lose CPU time between two sessions: pmmpi measures the same program before and after, and the report
//! names each of these hosts and the session of the change.

use pmmpi::node::CpuSet;
use rig::cluster::machine;
use rig::cpu_group::CpuGroup;
use rig::programs;
use rig::tool::{Folder, Started, pmmpi, run, start, target};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The hardware threads that are online.
const ONLINE: &str = "/sys/devices/system/cpu/online";

const SESSIONS: [&str; 5] = ["s1", "s2", "s3", "s4", "s5"];
const RUNS: usize = 5;

/// What takes half of a host's CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// A limit for all processes of the host.
    Quota,
    /// Another process on each hardware thread.
    Hogs,
    /// A hardware thread is offline: programs may use one of two, and a copy of the kernel's list has one less.
    Offline,
}

/// The hosts, with what takes CPU time from them, and the first session in which it does. More than half of the hosts
/// lose nothing.
const HOSTS: [(&str, Option<(Loss, &str)>); 7] = [
    ("n0", None),
    ("n1", Some((Loss::Quota, "s2"))),
    ("n2", None),
    ("n3", Some((Loss::Hogs, "s3"))),
    ("n4", None),
    ("n5", Some((Loss::Offline, "s4"))),
    ("n6", None),
];

struct Host {
    name: &'static str,
    loss: Option<(Loss, &'static str)>,
    group: CpuGroup,
}

impl Host {
    fn loses(&self, loss: Loss, session: &str) -> bool {
        self.loss.is_some_and(|(of, since)| of == loss && since <= session)
    }

    /// The hogs run only while the host's own program runs, because all hosts share the same hardware threads.
    fn measure(&self, session: &str, program: &Path, cpus: [u32; 2], out: &Folder) {
        if self.loses(Loss::Quota, session) {
            self.group.limit(1.0);
        }
        let has_hogs = self.loses(Loss::Hogs, session);
        let _hogs: Vec<Started> = cpus.iter().filter(|_| has_hogs).map(|cpu| self.hog(*cpu)).collect();
        let mut command = self.group.command(&target().join("release/pmmpi-rig-host"));
        command.args([self.name, "0", "--"]);
        if self.loses(Loss::Offline, session) {
            let online = out.path().join("online");
            fs::write(&online, format!("{}\n", cpus[0])).expect("a copy of the list");
            let script = format!("mount --bind \"$0\" {ONLINE} && exec \"$@\"");
            command.args(["unshare", "--mount", "sh", "-c", &script]).arg(online);
            command.args(["taskset", "-c", &cpus[0].to_string()]);
        } else {
            command.args(["taskset", "-c", &format!("{},{}", cpus[0], cpus[1])]);
        }
        command.arg(pmmpi());
        command.args(["--label", &format!("session={session}"), "--out"]).arg(out.path());
        run(command.arg(program).arg("60")).success();
    }

    /// A process that computes until this test kills it or ends.
    fn hog(&self, cpu: u32) -> Started {
        let mut command = self.group.command(Path::new("taskset"));
        let script = "echo ready; while kill -0 $PPID; do :; done";
        let hog = start(command.args(["-c", &cpu.to_string(), "sh", "-c", script]));
        hog.wait_for("ready", 1);
        hog
    }
}

/// The only entry of this node in a report.
fn node<'a>(report: &'a Value, name: &str) -> &'a Value {
    let nodes = report["nodes"].as_array().expect("nodes");
    let of_name: Vec<&Value> = nodes.iter().filter(|node| node["node"] == name).collect();
    assert_eq!(of_name.len(), 1, "{name}: {report:#}");
    of_name[0]
}

#[test]
fn a_host_that_loses_half_of_its_cpu_time_is_slowed_since_then() {
    let cpus: Vec<u32> = CpuSet::allowed().numbers().take(2).collect();
    let cpus: [u32; 2] = cpus.try_into().expect("two hardware threads");
    let host = |(name, loss)| Some(Host { name, loss, group: CpuGroup::new(name)? });
    let Some(hosts) = HOSTS.into_iter().map(host).collect::<Option<Vec<_>>>() else { return };
    let (out, program) = (Folder::new("slowed"), programs::plain("bound_threads"));
    let _alone = machine();
    for (session, _) in SESSIONS.iter().flat_map(|session| (0..RUNS).map(move |run| (session, run))) {
        hosts.iter().for_each(|host| host.measure(session, &program, cpus, &out));
    }
    let mut command = Command::new(pmmpi());
    let output = run(command.args(["report", "--format", "json"]).arg(out.path())).success();
    let report: Value = serde_json::from_str(&output.out()).expect("JSON");
    for (name, loss) in HOSTS {
        let node = node(&report, name);
        let history = &node["history"];
        if let Some((loss, since)) = loss {
            assert_eq!(history["verdict"], "SLOWED", "{name} {loss:?}: {node:#}");
            assert_eq!(history["since"], since, "{name} {loss:?}: {node:#}");
        } else {
            // Other work on this machine may slow any host, but not by half of what the others lose.
            let change = history["change"].as_f64().expect("a change");
            assert!(change < 0.5, "{name}: {node:#}");
        }
        if let Some((Loss::Offline, since)) = loss {
            // Half of the hardware threads: ln 2, apart from a rest that the terms share.
            let term = node["terms"]["d_cpus"].as_f64().expect("the other hosts have two hardware threads");
            assert!((term - std::f64::consts::LN_2).abs() < 0.01, "{name}: {node:#}");
            let changes = report["reconfigured"].as_array().expect("changes");
            let of_host = changes.iter().find(|change| change["nodes"] == json!([name]));
            let change = of_host.unwrap_or_else(|| panic!("{changes:#?}"));
            assert_eq!(change["since"], since, "{change:#}");
            let facts = change["facts"].as_array().expect("facts");
            let fact = facts.iter().find(|fact| fact["key"] == "hardware_threads").expect("the fact");
            assert!(fact["after"] == "1" && fact["before"] != "1", "{fact}");
        }
    }
}
