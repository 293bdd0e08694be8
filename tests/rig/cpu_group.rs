//! The CPU time of a simulated host: a cgroup of version 1 or 2.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A cgroup whose processes get most of the CPU time, whatever else runs on this machine.
pub struct CpuGroup {
    folder: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// The period of a quota. Short, so that a program of some 100 ms meets many periods.
const PERIOD_US: u64 = 10_000;

impl CpuGroup {
    /// `None`, with a visible message, if this machine lets the test make no such cgroup.
    pub fn new(name: &str) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("rig-{name}-{}-{number}", std::process::id());
        let made = mounted().and_then(|(mount, version)| Self::make(mount.join(name), version));
        if let Err(e) = &made {
            // Not with a macro, because cargo test would hide the output.
            let text = format!("\n*** NOT TESTED with a CPU quota: no cgroup for CPU time: {e} ***\n");
            io::stderr().write_all(text.as_bytes()).expect("stderr");
        }
        made.ok()
    }

    fn make(folder: PathBuf, version: Version) -> io::Result<Self> {
        fs::create_dir(&folder)?;
        let group = Self { folder, version };
        // 32 times the share of another group, or of a process without a group.
        match version {
            Version::V1 => group.set("cpu.shares", "32768")?,
            Version::V2 => group.set("cpu.weight", "3200")?,
        }
        Ok(group)
    }

    /// Limits the group to this share of one CPU: 1.5 is one and a half CPUs.
    pub fn limit(&self, cpus: f64) {
        let quota_us = (PERIOD_US as f64 * cpus) as u64;
        let set = |file: &str, text: String| self.set(file, &text).expect("a limit of CPU time");
        match self.version {
            Version::V1 => {
                set("cpu.cfs_period_us", PERIOD_US.to_string());
                set("cpu.cfs_quota_us", quota_us.to_string());
            }
            Version::V2 => set("cpu.max", format!("{quota_us} {PERIOD_US}")),
        }
    }

    /// The file into which a process writes its number to enter the group.
    pub fn processes(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// A command in the group; its arguments may follow.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
        command.arg(self.processes()).arg(program);
        command
    }

    fn set(&self, file: &str, text: &str) -> io::Result<()> {
        fs::write(self.folder.join(file), text)
    }
}

impl Drop for CpuGroup {
    /// The processes of a test end slightly later than its commands.
    fn drop(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while fs::remove_dir(&self.folder).is_err() && self.folder.exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Where the controller for CPU time is mounted.
fn mounted() -> io::Result<(PathBuf, Version)> {
    for line in fs::read_to_string("/proc/self/mounts")?.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, mount, kind, options, ..] = words[..] else { continue };
        if kind == "cgroup" && options.split(',').any(|option| option == "cpu") {
            return Ok((mount.into(), Version::V1));
        }
        let has_cpu = |list: String| list.split_ascii_whitespace().any(|controller| controller == "cpu");
        let file = |name: &str| Path::new(mount).join(name);
        if kind == "cgroup2" && fs::read_to_string(file("cgroup.controllers")).is_ok_and(has_cpu) {
            fs::write(file("cgroup.subtree_control"), "+cpu")?;
            return Ok((mount.into(), Version::V2));
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "/proc/self/mounts names none"))
}
