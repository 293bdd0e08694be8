//! Processes that no signal ends, as if they waited for a disk that never answers: a cgroup freezer of version 1. (In
//! one of version 2, SIGKILL ends frozen processes.)

use crate::tool::processes_of;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Its processes continue when it is dropped.
pub struct Freezer {
    folder: PathBuf,
}

impl Freezer {
    /// `None`, with a visible message, if this machine lets the test make no such cgroup.
    pub fn new(name: &str) -> Option<Self> {
        let name = format!("rig-{name}-{}", std::process::id());
        let made = mounted().and_then(|mount| Self::make(mount.join(name)));
        if let Err(e) = &made {
            // Not with a macro, because cargo test would hide the output.
            let text =
                format!("\n*** NOT TESTED with frozen processes: no freezer of cgroups version 1: {e} ***\n");
            io::stderr().write_all(text.as_bytes()).expect("stderr");
        }
        made.ok()
    }

    fn make(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir(&folder)?;
        Ok(Self { folder })
    }

    /// Commands with which a shell freezes itself.
    pub fn commands(&self) -> String {
        let folder = self.folder.display();
        format!("echo $$ > {folder}/cgroup.procs; echo FROZEN > {folder}/freezer.state")
    }

    /// Freezes the first process that has this variable in its environment ("NAME=value") and this word in its command
    /// line. Returns when it has done so, or when `is_over`.
    pub fn freeze_first(&self, is_over: &AtomicBool, variable: &str, word: &str) {
        while !is_over.load(Ordering::Relaxed) {
            let found = processes_of(variable, word);
            // The process may end at any moment.
            let has_entered =
                |process: &i32| fs::write(self.folder.join("cgroup.procs"), process.to_string()).is_ok();
            if found.iter().any(has_entered) {
                self.set("FROZEN");
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Lets the processes continue.
    pub fn thaw(&self) {
        self.set("THAWED");
    }

    fn set(&self, state: &str) {
        // Without a macro that panics, because this also runs after a panic.
        if let Err(e) = fs::write(self.folder.join("freezer.state"), state) {
            let _ = writeln!(io::stderr(), "{}: {state}: {e}", self.folder.display());
        }
    }
}

impl Drop for Freezer {
    /// The signals that came meanwhile take effect after the thaw.
    fn drop(&mut self) {
        self.thaw();
        let deadline = Instant::now() + Duration::from_secs(5);
        while fs::remove_dir(&self.folder).is_err() && self.folder.exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Where the freezer is mounted.
fn mounted() -> io::Result<PathBuf> {
    for line in fs::read_to_string("/proc/self/mounts")?.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, mount, kind, options, ..] = words[..] else { continue };
        if kind == "cgroup" && options.split(',').any(|option| option == "freezer") {
            return Ok(mount.into());
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "/proc/self/mounts names none"))
}
