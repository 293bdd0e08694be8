//! The built tool, temporary folders, and commands with a time limit.

use pmmpi::record::Run;
use pmmpi::runfile;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Nothing in a test takes longer unless it hangs.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The folder that cargo builds into, from where this test's own program lies.
pub fn target() -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its own path");
    let release =
        own.ancestors().find(|path| path.ends_with("release")).expect("tests are built with --release");
    release.parent().expect("release is a folder in target").to_owned()
}

/// A program of the staged tool, as `make install` would put it into bin/.
pub fn tool(name: &str) -> PathBuf {
    let path = target().join("pmmpi/bin").join(name);
    assert!(path.exists(), "{} is missing: `make test` builds it", path.display());
    path
}

/// The measuring launcher.
pub fn pmmpi() -> PathBuf {
    tool("pmmpi")
}

/// A folder of a test's own, removed in the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("pmmpi-{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The run files in it, in the order of their start.
    pub fn runs(&self) -> Vec<Run> {
        runs_in(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays in /tmp must not hide why a test failed.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The run files in a folder, in the order of their start; none where there is no folder.
pub fn runs_in(folder: &Path) -> Vec<Run> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("readable").path());
    let mut paths: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "pmr")).collect();
    paths.sort();
    let read = |path: &PathBuf| runfile::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    paths.iter().map(read).collect()
}

/// What a command left.
#[derive(Debug)]
pub struct Output {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Output {
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Exit code, or 128 + signal as a shell has it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Itself, if it succeeded.
    pub fn success(self) -> Self {
        assert!(self.status.success(), "{}\nstdout:\n{}\nstderr:\n{}", self.status, self.out(), self.err());
        self
    }
}

/// Runs a command in a process group of its own; a command that hangs is killed and fails the test.
pub fn run(command: &mut Command) -> Output {
    let folder = Folder::new("output");
    let create = |name: &str| File::create(folder.path().join(name)).expect("a temporary file");
    command.stdin(Stdio::null()).stdout(create("out")).stderr(create("err")).process_group(0);
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let deadline = Instant::now() + TIMEOUT;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            break Some(status);
        }
        if Instant::now() > deadline {
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    if status.is_none() {
        // SAFETY: the group is the child's own.
        unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
        child.wait().expect("a killed child can be waited for");
    }
    let read = |name: &str| fs::read(folder.path().join(name)).expect("its output");
    let (stdout, stderr) = (read("out"), read("err"));
    match status {
        Some(status) => Output { status, stdout, stderr },
        None => panic!(
            "{command:?} took longer than {TIMEOUT:?}\nstdout:\n{}\nstderr:\n{}",
            String::from_utf8_lossy(&stdout),
            String::from_utf8_lossy(&stderr)
        ),
    }
}
