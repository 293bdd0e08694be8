//! The machine that the checks examine.

use super::command::{self, CommandOutput, Silent};
use crate::own_files;
use crate::program;
use pmmpi::counters::count_and_quality::{Gap, WhyUnavailable};
use pmmpi::counters::default;
use pmmpi::counters::open_counters::{OpenCounters, Opened};
use pmmpi::counters::perf_event_open::{Counters, Target};
use pmmpi::node::NodeFacts;
use pmmpi::record::run_file::default_folder;
use pmmpi::record::temporary;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// What the checks can ask. Files come from `root`; everything else has a method.
pub trait Machine {
    /// The folder that contains proc and sys.
    fn root(&self) -> &Path;
    /// An environment variable.
    fn variable(&self, name: &str) -> Option<OsString>;
    /// The folder of this program; `None` if unknown.
    fn own_folder(&self) -> Option<PathBuf>;
    /// The folders in which pmmpi looks for the agent, the runners and its other programs.
    fn libraries(&self) -> Vec<PathBuf>;
    /// The folder for run files.
    fn out(&self) -> PathBuf;
    /// The program with this name, as execvp(3) finds it.
    fn program(&self, name: &str) -> Option<PathBuf>;
    /// Runs a program, with these variables added to the environment.
    fn ask(
        &self,
        program: &Path,
        arguments: &[&str],
        variables: &[(&str, &OsStr)],
    ) -> Result<CommandOutput, Silent>;
    /// Opens the default set of counters for this thread.
    fn open_counters(&self) -> Opened;
    /// How the kernel adjusts its clock: adjtimex(2).
    fn adjustment(&self) -> io::Result<Adjustment>;
    /// True if the loader does not trust the environment of this program, for example because its file has
    /// capabilities: AT_SECURE of getauxval(3).
    fn is_secure(&self) -> bool;
    /// Tries to create a file in an existing folder; gives the free bytes there.
    fn try_writing(&self, folder: &Path) -> io::Result<u64>;
}

/// How a time service adjusts the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Adjustment {
    /// How much faster than its oscillator CLOCK_MONOTONIC runs (ppm).
    pub rate_ppm: f64,
    /// The part of the error of the time of day that the kernel has not yet corrected (ns).
    pub offset_ns: i64,
    /// True if a time service told the kernel that the time of day is right.
    pub synchronised: bool,
}

impl dyn Machine + '_ {
    /// The trimmed text of a small file below the root; `None` if it is missing or empty.
    pub fn text(&self, path: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&std::fs::read(self.root().join(path)).ok()?).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// The same as a number.
    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The names in a folder below the root, sorted.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root().join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// True if the file exists below the root.
    pub fn has(&self, path: &str) -> bool {
        self.root().join(path).exists()
    }

    /// The facts of the node that a run stores.
    pub fn facts(&self) -> NodeFacts {
        NodeFacts::read(self.root())
    }

    /// The path of one of pmmpi's own files.
    pub fn library(&self, name: &str) -> Option<PathBuf> {
        self.libraries().iter().map(|folder| folder.join(name)).find(|path| path.is_file())
    }
}

/// The machine that this process runs on.
pub struct Here {
    out: Option<PathBuf>,
    /// Answers so far, so that no program runs twice; a program without an answer costs the whole `LIMIT`.
    answers: RefCell<HashMap<Question, Result<CommandOutput, Silent>>>,
}

/// A program, its arguments and its added variables.
type Question = (PathBuf, Vec<String>, Vec<(String, OsString)>);

/// The longest wait for an answer. It is long because a batch system's client may ask its controller first.
const LIMIT: Duration = Duration::from_secs(5);

impl Here {
    /// `out` is the folder from `--out`.
    pub fn new(out: Option<PathBuf>) -> Self {
        Self { out, answers: RefCell::default() }
    }
}

impl Machine for Here {
    fn root(&self) -> &Path {
        Path::new("/")
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    fn own_folder(&self) -> Option<PathBuf> {
        own_files::own_folder()
    }

    fn libraries(&self) -> Vec<PathBuf> {
        own_files::folders()
    }

    fn out(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(default_folder)
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        program::find(OsStr::new(name)).ok()
    }

    fn ask(
        &self,
        program: &Path,
        arguments: &[&str],
        variables: &[(&str, &OsStr)],
    ) -> Result<CommandOutput, Silent> {
        let words = arguments.iter().map(|&word| word.to_owned()).collect();
        let named = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let answer = || {
            let mut command = Command::new(program);
            // A library that another tool preloads into pmmpi must not change the answer.
            command.args(arguments).env_remove("LD_PRELOAD").envs(variables.iter().copied());
            command::run(&mut command, LIMIT)
        };
        self.answers.borrow_mut().entry((program.to_owned(), words, named)).or_insert_with(answer).clone()
    }

    fn open_counters(&self) -> Opened {
        let mut counters = Counters::open(&default::groups(), Target::ThisThread);
        let words: Vec<AtomicU64> = (0..counters.opened().words()).map(|_| AtomicU64::new(0)).collect();
        counters.snapshot(&words);
        let mut opened = counters.opened().clone();
        note_never_scheduled(&mut opened, &words);
        opened
    }

    fn adjustment(&self) -> io::Result<Adjustment> {
        // SAFETY: an all-zero timex only reads.
        let mut timex: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills in the live local.
        if unsafe { libc::adjtimex(&mut timex) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // adjtimex(2): freq in 2^-16 ppm; tick in us, nominally 10,000 (100 ticks per second).
        let ticks_ppm = (timex.tick as f64 - 10_000.0) * 100.0;
        let offset_unit_ns = if timex.status & libc::STA_NANO != 0 { 1 } else { 1000 };
        Ok(Adjustment {
            rate_ppm: timex.freq as f64 / 65_536.0 + ticks_ppm,
            offset_ns: (timex.offset as i64).saturating_mul(offset_unit_ns),
            synchronised: timex.status & libc::STA_UNSYNC == 0,
        })
    }

    fn is_secure(&self) -> bool {
        // SAFETY: reads a value that the kernel gave to this process.
        unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
    }

    fn try_writing(&self, folder: &Path) -> io::Result<u64> {
        // A file without a name leaves nothing behind, even if this process is killed.
        let file = File::options().write(true).custom_flags(libc::O_TMPFILE).open(folder);
        match file.map(drop) {
            // Not every file system supports such files; NFS does not.
            Err(e) if matches!(e.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
                make_and_remove(folder)?
            }
            other => other?,
        }
        crate::run::run_folder::free_bytes(folder)
    }
}

/// Notes groups that opened but never ran, because other users of the counters left too few.
fn note_never_scheduled(opened: &mut Opened, words: &[AtomicU64]) {
    // perf_event_open(2), PERF_FORMAT_GROUP: number of events, ns enabled, ns running.
    let never_ran = |place: &[AtomicU64]| match place {
        [_, enabled, running, ..] => enabled.load(Relaxed) > 0 && running.load(Relaxed) == 0,
        _ => false,
    };
    let idle: Vec<(u32, u32)> = opened
        .places(words)
        .filter(|(_, place)| never_ran(place))
        .map(|(handle, _)| (handle.set, handle.group))
        .collect();
    for (set, group) in idle {
        let Some(set) = opened.sets.get_mut(set as usize) else { continue };
        for event in set.groups.get(group as usize).into_iter().flatten() {
            if let Some((_, gap)) = set.events.get_mut(*event as usize) {
                *gap = Some(Gap::Unavailable(WhyUnavailable::NeverScheduled));
            }
        }
    }
}

fn make_and_remove(folder: &Path) -> io::Result<()> {
    let (_, path) = temporary::create(folder, ".pmmpi-doctor-", 0o666)?;
    std::fs::remove_file(path)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use pmmpi::counters::open_counters::{CounterHandle, Set};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Gives why the event of this name does not open; `None` if it opens.
    type Gaps = dyn Fn(&str) -> Option<Gap>;

    /// A fake machine for tests, empty at first.
    pub struct Fake {
        root: PathBuf,
        variables: HashMap<String, OsString>,
        programs: HashMap<PathBuf, Result<CommandOutput, Silent>>,
        gaps: Box<Gaps>,
        adjustment: Option<Adjustment>,
        secure: bool,
        space: Result<u64, i32>,
    }

    impl Fake {
        pub fn new() -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let name =
                format!("test-doctor-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
            Self {
                root: std::env::temp_dir().join(name),
                variables: HashMap::new(),
                programs: HashMap::new(),
                gaps: Box::new(|_| Some(Gap::Unsupported(libc::ENOENT))),
                adjustment: None,
                secure: false,
                space: Err(libc::EACCES),
            }
        }

        /// Adds a file below the root.
        pub fn file(self, path: &str, content: &str) -> Self {
            let path = self.root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
            self
        }

        pub fn variable(mut self, name: &str, value: &str) -> Self {
            self.variables.insert(name.into(), value.into());
            self
        }

        /// Adds a program in bin below the root that prints this on stdout.
        pub fn program(self, name: &str, stdout: &str) -> Self {
            let said = CommandOutput { success: true, stdout: stdout.into(), ..CommandOutput::default() };
            self.answering(&format!("bin/{name}"), Ok(said))
        }

        /// Adds a program at this path below the root, with any answer.
        pub fn answering(mut self, path: &str, answer: Result<CommandOutput, Silent>) -> Self {
            self = self.file(path, "");
            self.programs.insert(self.root.join(path), answer);
            self
        }

        /// Sets which counters do not open, and why.
        pub fn gaps(mut self, gaps: impl Fn(&str) -> Option<Gap> + 'static) -> Self {
            self.gaps = Box::new(gaps);
            self
        }

        pub fn adjusted(mut self, adjustment: Adjustment) -> Self {
            self.adjustment = Some(adjustment);
            self
        }

        pub fn secure(mut self) -> Self {
            self.secure = true;
            self
        }

        /// Sets the free bytes, or an errno.
        pub fn space(mut self, space: Result<u64, i32>) -> Self {
            self.space = space;
            self
        }

        pub fn as_machine(&self) -> &dyn Machine {
            self
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            // The folder does not exist if the test added no file.
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }

    impl Machine for Fake {
        fn root(&self) -> &Path {
            &self.root
        }

        fn variable(&self, name: &str) -> Option<OsString> {
            self.variables.get(name).cloned()
        }

        fn own_folder(&self) -> Option<PathBuf> {
            Some(self.root.join("bin"))
        }

        fn libraries(&self) -> Vec<PathBuf> {
            vec![self.root.join("lib/pmmpi")]
        }

        fn out(&self) -> PathBuf {
            self.root.join("out")
        }

        fn program(&self, name: &str) -> Option<PathBuf> {
            Some(self.root.join("bin").join(name)).filter(|path| self.programs.contains_key(path))
        }

        fn ask(&self, program: &Path, _: &[&str], _: &[(&str, &OsStr)]) -> Result<CommandOutput, Silent> {
            let missing = || Err(Silent::NotStarted("No such file or directory".into()));
            self.programs.get(program).cloned().unwrap_or_else(missing)
        }

        fn open_counters(&self) -> Opened {
            let events = default::groups().into_iter().flatten();
            let events = events.map(|event| (event.clone(), (self.gaps)(&event.name))).collect();
            Opened { sets: vec![Set { events, ..Set::default() }], handles: Vec::new() }
        }

        fn adjustment(&self) -> io::Result<Adjustment> {
            self.adjustment.ok_or_else(|| io::Error::from_raw_os_error(libc::EPERM))
        }

        fn is_secure(&self) -> bool {
            self.secure
        }

        fn try_writing(&self, _: &Path) -> io::Result<u64> {
            self.space.map_err(io::Error::from_raw_os_error)
        }
    }

    #[test]
    fn a_group_that_never_runs_is_not_counted() {
        let events: Vec<_> =
            default::groups().into_iter().flatten().map(|event| (event, None)).take(3).collect();
        let set = Set { events, groups: vec![vec![0, 2], vec![1]], ..Set::default() };
        let handle = |group| CounterHandle { set: 0, group, cpu: None, descriptor: -1, id: 0 };
        let mut opened = Opened { sets: vec![set], handles: vec![handle(0), handle(1)] };
        let words = [2, 100, 0, 0, 0, 1, 100, 100, 7].map(AtomicU64::new);
        note_never_scheduled(&mut opened, &words);
        let gaps: Vec<Option<Gap>> = opened.sets[0].events.iter().map(|(_, gap)| *gap).collect();
        let never = Some(Gap::Unavailable(WhyUnavailable::NeverScheduled));
        assert_eq!(gaps, [never, None, never]);
    }

    /// The kernel's task clock counts on every machine.
    #[test]
    fn what_runs_here_is_counted() {
        let opened = Here::new(None).open_counters();
        let (_, gap) = opened.sets[0].events.iter().find(|(event, _)| event.name == "task_clock_ns").unwrap();
        assert_eq!(*gap, None);
    }

    #[test]
    fn trying_to_write_leaves_nothing() {
        let fake = Fake::new().file("folder/file", "");
        let folder = fake.root.join("folder");
        assert!(Here::new(None).try_writing(&folder).unwrap() > 0);
        assert!(make_and_remove(&folder).is_ok());
        assert_eq!(fake.as_machine().names("folder"), ["file"]);
        assert!(Here::new(None).try_writing(&folder.join("missing")).is_err());
        assert!(make_and_remove(&folder.join("missing")).is_err());
    }
}
