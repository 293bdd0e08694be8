//! The built tool, temporary folders, and commands with a time limit.

use pmmpi::record::{Run, run_file};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Every test is faster, unless it hangs.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Within this time, a launcher that receives SIGTERM ends its ranks.
const GRACE: Duration = Duration::from_secs(5);

/// The folder for build results of cargo, found from the path of this test's own program.
pub fn target() -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its own path");
    let release =
        own.ancestors().find(|path| path.ends_with("release")).expect("tests are built with --release");
    release.parent().expect("release is a folder in target").to_owned()
}

/// A program of the staged tool; `make install` would install it into bin/.
pub fn tool(name: &str) -> PathBuf {
    let path = target().join("pmmpi/bin").join(name);
    assert!(path.exists(), "{} is missing: `make test` builds it", path.display());
    path
}

/// The measuring launcher.
pub fn pmmpi() -> PathBuf {
    tool("pmmpi")
}

/// A copy of the tool in a folder that every user can access; the build folder may be private.
pub fn for_anybody(folder: &Folder) -> PathBuf {
    let stage = pmmpi().parent().and_then(Path::parent).expect("a folder with bin").to_owned();
    let place = folder.path().join("installed");
    run(Command::new("cp").arg("-r").arg(stage).arg(&place)).success();
    run(Command::new("chmod").args(["-R", "a+rX"]).arg(folder.path())).success();
    place.join("bin/pmmpi")
}

/// The tool with another `pmmpi-report`: this shell script, in which `$real` is the real one. Gives the path of `pmmpi`.
pub fn with_report(folder: &Path, script: &str) -> PathBuf {
    let place = folder.join("installed");
    let bin = place.join("bin");
    fs::create_dir_all(&bin).expect("a folder for programs");
    // A copy, because pmmpi finds its other programs relative to its own file.
    run(Command::new("cp").arg(pmmpi()).arg(&bin)).success();
    symlink(target().join("pmmpi/lib"), place.join("lib")).expect("a link to the libraries");
    let text = format!("#!/bin/sh\nreal={}\n{script}\n", tool("pmmpi-report").display());
    let report = bin.join("pmmpi-report");
    fs::write(&report, text).expect("a script");
    fs::set_permissions(&report, fs::Permissions::from_mode(0o755)).expect("executable");
    bin.join("pmmpi")
}

/// A folder for one test, removed at its end.
pub struct Folder(TempDir);

impl Folder {
    pub fn new(name: &str) -> Self {
        Self(TempDir::with_prefix(format!("rig-{name}-")).expect("a temporary folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The runs in the folder, in the order of their start.
    pub fn runs(&self) -> Vec<Run> {
        runs_in(self.path())
    }
}

/// The runs in a folder, in the order of their start; none if the folder does not exist.
pub fn runs_in(folder: &Path) -> Vec<Run> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("readable").path());
    let mut paths: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "pmr")).collect();
    paths.sort();
    let read = |path: &PathBuf| run_file::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    paths.iter().map(read).collect()
}

/// Restores kernel.perf_event_paranoid at the end.
pub struct Paranoid(String);

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

impl Paranoid {
    pub fn set(level: &str) -> Self {
        let before = fs::read_to_string(PARANOID).expect("root may set it");
        fs::write(PARANOID, level).expect("root may set it");
        Self(before)
    }
}

impl Drop for Paranoid {
    fn drop(&mut self) {
        fs::write(PARANOID, self.0.trim()).expect("root may set it");
    }
}

/// The result of a command.
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

    /// stderr, without a message that Open MPI's mpirun sometimes prints on a busy machine, because of a race with
    /// its child.
    pub fn err(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let is_said = |line: &&str| !line.contains("sh: Warning: setpgid(");
        text.split_inclusive('\n').filter(is_said).collect()
    }

    /// Exit code, or 128 + signal like a shell.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Itself if it succeeded; panics otherwise.
    pub fn success(self) -> Self {
        assert!(self.status.success(), "{}\nstdout:\n{}\nstderr:\n{}", self.status, self.out(), self.err());
        self
    }
}

/// A running command in a process group of its own. If it is dropped before its end, the group is killed.
pub struct Started {
    child: Child,
    command: String,
    output: Folder,
    limit: Duration,
    reaped: bool,
}

/// Starts a command. Its output goes to files, so it never waits for a reader.
pub fn start(command: &mut Command) -> Started {
    start_with(command, |_, _| ())
}

/// Like [`start`]. `prepare` gets a folder that stays until the command has ended.
pub fn start_with(command: &mut Command, prepare: impl FnOnce(&mut Command, &Path)) -> Started {
    hear_signals();
    let output = Folder::new("output");
    prepare(command, output.path());
    let create = |name: &str| File::create(output.path().join(name)).expect("a temporary file");
    command.stdin(Stdio::null()).stdout(create("out")).stderr(create("err")).process_group(0);
    let child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    Started { child, command: format!("{command:?}"), output, limit: TIMEOUT, reaped: false }
}

/// Under nohup(1) this process ignores SIGHUP, and in the background of a script SIGINT and SIGQUIT. All processes
/// that tests start would inherit that.
fn hear_signals() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
            // SAFETY: the default disposition needs no handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    });
}

/// The processes whose command line has `mark` in it.
pub fn processes_with(mark: &str) -> Vec<i32> {
    marked_processes("cmdline", mark)
}

/// The processes that have this variable in their environment: "NAME=value".
pub fn processes_with_variable(variable: &str) -> Vec<i32> {
    marked_processes("environ", variable)
}

/// The processes that have this variable ("NAME=value") in their environment, and this word in their command line.
pub fn processes_of(variable: &str, word: &str) -> Vec<i32> {
    let has = |process: &i32, file: &str, wanted: &str| {
        let bytes = fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
        bytes.split(|byte| *byte == 0).any(|of| of == wanted.as_bytes())
    };
    // mpirun gives each rank a variable with the command of the job.
    let is_wanted = |process: &i32| has(process, "environ", variable) && has(process, "cmdline", word);
    processes_with_variable(variable).into_iter().filter(is_wanted).collect()
}

fn marked_processes(file: &str, mark: &str) -> Vec<i32> {
    let marked = |process: &i32| {
        let line = fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
        line.windows(mark.len()).any(|part| part == mark.as_bytes())
    };
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(marked).collect()
}

/// Waits until no process has `mark` in its command line: the carrier ends slightly later than its job.
pub fn wait_until_gone(mark: &Path) {
    let left = || processes_with(&mark.display().to_string());
    assert!(is_over_within(TIMEOUT, || left().is_empty()), "left: {:?}", left());
}

/// Runs a command to its end. A command that hangs is killed, and its test fails.
pub fn run(command: &mut Command) -> Output {
    start(command).finish()
}

impl Started {
    /// Sets the time limit for each wait.
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Waits until stdout contains `text` this many times.
    pub fn wait_for(&self, text: &str, times: usize) {
        self.wait(|| {
            String::from_utf8_lossy(&self.read("out")).matches(text).count() >= times || self.has_ended()
        });
    }

    /// Waits until stderr contains `text`.
    pub fn wait_for_error(&self, text: &str) {
        self.wait(|| String::from_utf8_lossy(&self.read("err")).contains(text) || self.has_ended());
        assert!(String::from_utf8_lossy(&self.read("err")).contains(text), "{} ended early", self.command);
    }

    /// The id of the process, and of its group.
    pub fn id(&self) -> i32 {
        self.child.id() as i32
    }

    /// Sends a signal to the process itself, not to its group.
    pub fn signal(&self, signal: i32) {
        // SAFETY: this process has not yet waited for the child, so the id is the child's.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// Sends a signal to the whole group, as a terminal does.
    pub fn signal_group(&self, signal: i32) {
        // SAFETY: as above; the group was created for the child.
        assert_eq!(unsafe { libc::kill(-(self.child.id() as i32), signal) }, 0);
    }

    /// For loops that wait for an effect of the running command.
    pub fn assert_running(&self) {
        let text = |name| String::from_utf8_lossy(&self.read(name)).into_owned();
        assert!(!self.has_ended(), "{} has ended\n{}\n{}", self.command, text("out"), text("err"));
    }

    /// True if it ends within that time.
    pub fn ends_within(&self, limit: Duration) -> bool {
        is_over_within(limit, || self.has_ended())
    }

    /// Waits for the end.
    pub fn finish(mut self) -> Output {
        self.wait(|| self.has_ended());
        let status = self.child.wait().expect("a child can be waited for");
        self.reaped = true;
        Output { status, stdout: self.read("out"), stderr: self.read("err") }
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.output.path().join(name)).expect("its output")
    }

    /// Does not reap the process.
    fn has_ended(&self) -> bool {
        // SAFETY: an all-zero siginfo is valid, and waitid fills it.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            let code = libc::waitid(libc::P_PID, self.child.id(), &mut info, options);
            code == 0 && info.si_pid() != 0
        }
    }

    fn wait(&self, is_over: impl Fn() -> bool) {
        let text = |name| String::from_utf8_lossy(&self.read(name)).into_owned();
        let over = is_over_within(self.limit, is_over);
        let (command, limit) = (&self.command, self.limit);
        assert!(over, "{command} took longer than {limit:?}\n{}\n{}", text("out"), text("err"));
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        // The launcher comes first, because ranks are in groups or sessions of their own.
        self.signal_group(libc::SIGTERM);
        is_over_within(GRACE, || self.has_ended());
        self.signal_group(libc::SIGKILL);
        // If the process survives this, nothing more can be done.
        let _ = self.child.wait();
    }
}

/// False if the limit passes first.
pub fn is_over_within(limit: Duration, is_over: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !is_over() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}
