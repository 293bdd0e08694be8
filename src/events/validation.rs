//! Which events can be trusted: the results of `pmmpi validate`, one file per kind of processor.
//!
//! `trust-<cpu>.json` is what `pmmpi validate --format json` prints (docs/schema/validate.schema.json). The next
//! validation of the same kind of processor replaces it.

use crate::names::pmu_family;
use pmmpi::counters::event::Event;
use pmmpi::node::Hardware;
use pmmpi::record::{NodeRecord, Run, temporary};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The environment variable with another folder for these files.
pub const FOLDER_VARIABLE: &str = "PMMPI_TRUST";

/// The version of these files. Keys are only ever added to it.
pub const SCHEMA_VERSION: u32 = 1;

const PREFIX: &str = "trust-";
const SUFFIX: &str = ".json";
/// Far more than validate writes.
const LARGEST_BYTES: u64 = 4 << 20;
/// Most files that are read; a site has a handful of kinds of processors.
const MOST_FILES: usize = 1000;
const LONGEST_NAME: usize = 128;

/// The verdict on one event on one kind of processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventVerdict {
    /// It counts what its name says, within [`TRUSTED`].
    Trusted,
    /// It deviates from the expected count by this fraction.
    Within(f64),
    /// It does not count what its name says: never offer it as a cause.
    Unusable,
    /// Not validated here, or could not be counted.
    Unknown,
}

/// An event is trusted if it deviates from the known count by at most this fraction: interrupts add to counts.
pub const TRUSTED: f64 = 0.01;
/// An event is unusable if it deviates by more than this fraction.
pub const USABLE: f64 = 0.25;

impl EventVerdict {
    /// The verdict for a deviation, which is a fraction of the expected count.
    pub fn of_deviation(deviation: f64) -> Self {
        if deviation <= TRUSTED {
            EventVerdict::Trusted
        } else if deviation <= USABLE {
            EventVerdict::Within(deviation)
        } else {
            EventVerdict::Unusable // also if not a number
        }
    }

    /// The worse of two verdicts. From best to worst: trusted, within, unknown, unusable.
    pub fn worse(self, other: Self) -> Self {
        match (self, other) {
            (EventVerdict::Unusable, _) | (_, EventVerdict::Unusable) => EventVerdict::Unusable,
            (EventVerdict::Unknown, _) | (_, EventVerdict::Unknown) => EventVerdict::Unknown,
            (EventVerdict::Within(a), EventVerdict::Within(b)) => EventVerdict::Within(a.max(b)),
            (EventVerdict::Within(deviation), _) | (_, EventVerdict::Within(deviation)) => {
                EventVerdict::Within(deviation)
            }
            (EventVerdict::Trusted, EventVerdict::Trusted) => EventVerdict::Trusted,
        }
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            EventVerdict::Trusted => "trusted",
            EventVerdict::Within(_) => "within",
            EventVerdict::Unusable => "unusable",
            EventVerdict::Unknown => "not counted here",
        }
    }
}

/// All known verdicts, for all kinds of processors.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    cpus: BTreeMap<String, JudgedCpu>,
    /// Files that could not be used, and why.
    pub unusable: Vec<(PathBuf, String)>,
}

/// The verdicts for one kind of processor.
#[derive(Clone, Debug, Default)]
struct JudgedCpu {
    names: BTreeMap<String, EventVerdict>,
    /// By owner of the code and attr.config: a run may count an event under another name.
    codes: BTreeMap<(Owner, u64), EventVerdict>,
}

/// The PMUs to which a code belongs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// All PMUs with this attr.type.
    Kind(u32),
    /// All PMUs of this name: their attr.type changes with each boot.
    Pmus(String),
}

/// The verdicts on events in one run: the worst over its kinds of processors.
#[derive(Clone, Debug, Default)]
pub struct RunTrust<'a>(Vec<Option<&'a JudgedCpu>>);

#[derive(Deserialize)]
struct StoredValidation {
    schema_version: u32,
    cpu: KeptCpu,
    #[serde(default)]
    mappings: Vec<KeptMapping>,
    events: Vec<KeptEvent>,
}

#[derive(Deserialize)]
struct KeptMapping {
    event: String,
    kind: u32,
    config: String,
    pmu: Option<String>,
    counted_as: Option<String>,
}

#[derive(Deserialize)]
struct KeptCpu {
    name: String,
}

#[derive(Deserialize)]
struct KeptEvent {
    name: String,
    verdict: String,
    deviation: Option<f64>,
}

impl Trust {
    /// Reads the files of this folder. A file that cannot be read, another file, and a missing folder give no
    /// verdict.
    pub fn read(folder: &Path) -> Self {
        let mut trust = Self::default();
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let named = entries.filter_map(|entry| Some((cpu_of_file(&entry.file_name())?, entry.path())));
        for (cpu, path) in named.take(MOST_FILES) {
            match read_file(&path, &cpu) {
                Ok(events) => {
                    trust.cpus.insert(cpu, events);
                }
                Err(why) => trust.unusable.push((path, why)),
            }
        }
        trust
    }

    /// The verdict on the event of this name on a kind of processor, which [`cpu_name`] names.
    pub fn of(&self, cpu: &str, event: &str) -> EventVerdict {
        let verdict = self.cpus.get(cpu).and_then(|judged| judged.names.get(event));
        verdict.copied().unwrap_or(EventVerdict::Unknown)
    }

    /// The verdicts on events on the processors of this run's nodes.
    pub fn of_run(&self, run: &Run) -> RunTrust<'_> {
        if self.cpus.is_empty() {
            // All events of all processors are unknown.
            return RunTrust(vec![None]);
        }
        // Most nodes of a cluster are like the node before.
        fn hardware(node: &NodeRecord) -> Option<&Hardware> {
            node.facts.as_ref().map(|facts| &facts.hardware)
        }
        let kinds = run.nodes.chunk_by(|a, b| match (hardware(a), hardware(b)) {
            (Some(a), Some(b)) => is_same_cpu(a, b),
            (a, b) => a.is_none() && b.is_none(),
        });
        let cpus: BTreeSet<Option<String>> = kinds.map(|nodes| hardware(&nodes[0]).map(cpu_name)).collect();
        RunTrust(cpus.iter().map(|cpu| cpu.as_ref().and_then(|cpu| self.cpus.get(cpu))).collect())
    }
}

impl RunTrust<'_> {
    /// By the event's name, else by its code.
    pub fn of(&self, event: &Event) -> EventVerdict {
        let verdicts =
            self.0.iter().map(|judged| judged.map_or(EventVerdict::Unknown, |judged| judged.of(event)));
        verdicts.reduce(EventVerdict::worse).unwrap_or(EventVerdict::Unknown)
    }

    /// The verdict on their sum: the worst of their verdicts.
    pub fn of_sum(&self, events: &[&Event]) -> EventVerdict {
        let verdicts = events.iter().map(|event| self.of(event));
        verdicts.reduce(EventVerdict::worse).unwrap_or(EventVerdict::Unknown)
    }
}

impl JudgedCpu {
    fn new(kept: StoredValidation) -> Self {
        let mut names: BTreeMap<String, EventVerdict> =
            kept.events.into_iter().map(|event| (event.verdict(), event.name)).map(|(v, n)| (n, v)).collect();
        let mut codes: BTreeMap<(Owner, u64), EventVerdict> = BTreeMap::new();
        for KeptMapping { event, kind, config, pmu, counted_as } in kept.mappings {
            let config = config.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
            let (Some(config), Some(verdict)) = (config, names.get(&event).copied()) else { continue };
            // The verdict on a sum applies to each of its parts.
            if let Some(part) = counted_as {
                names.entry(part).and_modify(|known| *known = known.worse(verdict)).or_insert(verdict);
            }
            let owner = pmu.map_or(Owner::Kind(kind), Owner::Pmus);
            // All names of one code (user and kernel mode have different names) get the worst verdict of these
            // names.
            codes.entry((owner, config)).and_modify(|known| *known = known.worse(verdict)).or_insert(verdict);
        }
        Self { names, codes }
    }

    fn of(&self, event: &Event) -> EventVerdict {
        let [config, extended @ ..] = event.encoding.config;
        let by = |owner: Owner| self.codes.get(&(owner, config)).filter(|_| extended == [0, 0]);
        let pmu = || by(Owner::Pmus(pmu_family(event.name.split_once('/')?.0).to_owned()));
        let known = self.names.get(&event.name).or_else(pmu).or_else(|| by(Owner::Kind(event.encoding.kind)));
        known.copied().unwrap_or(EventVerdict::Unknown)
    }
}

fn cpu_of_file(name: &std::ffi::OsStr) -> Option<String> {
    let cpu = name.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    Some(cpu.to_owned())
}

fn read_file(path: &Path, cpu: &str) -> Result<JudgedCpu, String> {
    // Opening a pipe must not block until another process writes.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(|e| format!("cannot be read: {e}"))?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err("is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    let read = file.take(LARGEST_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|e| format!("cannot be read: {e}"))?;
    if bytes.len() as u64 > LARGEST_BYTES {
        return Err(format!("has more than {LARGEST_BYTES} bytes"));
    }
    let kept: StoredValidation = serde_json::from_slice(&bytes).map_err(|e| format!("is damaged: {e}"))?;
    if kept.schema_version != SCHEMA_VERSION {
        return Err(format!(
            "has schema {}, but this pmmpi reads only schema {SCHEMA_VERSION}",
            kept.schema_version
        ));
    }
    if kept.cpu.name != cpu {
        return Err("is for another processor than the one in its file name".to_owned());
    }
    Ok(JudgedCpu::new(kept))
}

impl KeptEvent {
    fn verdict(&self) -> EventVerdict {
        match (self.verdict.as_str(), self.deviation) {
            ("trusted", _) => EventVerdict::Trusted,
            ("within", Some(deviation)) if (0.0..=USABLE).contains(&deviation) => {
                EventVerdict::Within(deviation)
            }
            ("within" | "unusable", _) => EventVerdict::Unusable,
            _ => EventVerdict::Unknown,
        }
    }
}

/// The name of a kind of processor, for use in a file name. It has everything that changes what counters count:
/// vendor-family-model-stepping-microcode.
pub fn cpu_name(hardware: &Hardware) -> String {
    let number =
        |number: Option<u32>| number.map_or_else(|| "unknown".to_owned(), |number| number.to_string());
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let parts = [
        text(&hardware.cpu_vendor),
        number(hardware.cpu_family),
        number(hardware.cpu_model),
        number(hardware.cpu_stepping),
        text(&hardware.microcode),
    ];
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
    let parts = parts.map(|part| part.chars().map(plain).take(LONGEST_NAME / 5).collect::<String>());
    parts.join("-")
}

/// True if nothing of [`cpu_name`] differs.
fn is_same_cpu(one: &Hardware, other: &Hardware) -> bool {
    let numbers = |of: &Hardware| [of.cpu_family, of.cpu_model, of.cpu_stepping];
    numbers(one) == numbers(other) && one.cpu_vendor == other.cpu_vendor && one.microcode == other.microcode
}

/// The folder of these files: PMMPI_TRUST, else pmmpi in XDG_STATE_HOME, else pmmpi in ~/.local/state; `None` if
/// HOME is not set either.
pub fn folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    if let Some(folder) = set(FOLDER_VARIABLE) {
        return Some(folder.into());
    }
    // The XDG Base Directory Specification: a relative path is ignored.
    let state = set("XDG_STATE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = state.or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/state")))?;
    Some(state.join("pmmpi"))
}

/// Saves the results for a kind of processor and replaces older ones; returns the path. Concurrent readers see the
/// old file or the new one.
pub fn keep(folder: &Path, cpu: &str, json: &[u8]) -> io::Result<PathBuf> {
    const READABLE: u32 = 0o644;
    std::fs::create_dir_all(folder)?;
    pmmpi::session::shared_memory::within_file_limit(json.len() as u64)?;
    let path = folder.join(format!("{PREFIX}{cpu}{SUFFIX}"));
    temporary::replace(&path, READABLE, |file| {
        // Other users' reports must be able to read it, whatever this user's umask is.
        file.set_permissions(std::fs::Permissions::from_mode(READABLE))?;
        file.write_all(json)?;
        file.sync_all()
    })?;
    // The file's name must survive a crash, too. Some file systems cannot do this.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tempfile::TempDir;

    const CPU: &str = "AuthenticAMD-25-17-1-0x1000065";

    fn folder() -> TempDir {
        TempDir::with_prefix("test-trust-").unwrap()
    }

    fn json(cpu: &str, event: &str) -> String {
        format!(
            r#"{{"schema_version": 1, "later": [], "cpu": {{"name": "{cpu}", "vendor": "x"}}, "events": [{event}]}}"#
        )
    }

    #[test]
    fn what_was_kept_is_read() {
        let folder = folder();
        let events = r#"{"name": "a", "verdict": "trusted", "deviation": 0.0},
            {"name": "b", "verdict": "within", "deviation": 0.04},
            {"name": "c", "verdict": "unusable", "deviation": 3},
            {"name": "d", "verdict": "not counted here", "deviation": null}"#;
        let path = keep(folder.path(), CPU, json(CPU, "").as_bytes()).unwrap();
        assert_eq!(Trust::read(folder.path()).of(CPU, "a"), EventVerdict::Unknown);
        assert_eq!(keep(folder.path(), CPU, json(CPU, events).as_bytes()).unwrap(), path);
        let trust = Trust::read(folder.path());
        assert_eq!(trust.of(CPU, "a"), EventVerdict::Trusted);
        assert_eq!(trust.of(CPU, "b"), EventVerdict::Within(0.04));
        assert_eq!(trust.of(CPU, "c"), EventVerdict::Unusable);
        assert_eq!(trust.of(CPU, "d"), EventVerdict::Unknown);
        assert_eq!(trust.of("another", "a"), EventVerdict::Unknown);
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn files_that_are_none_give_no_verdict() {
        let folder = folder();
        let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        put("trust-empty.json", b"");
        put("trust-deep.json", "[".repeat(1 << 20).as_bytes());
        put("trust-large.json", &vec![b' '; LARGEST_BYTES as usize + 1]);
        put("trust-newer.json", br#"{"schema_version": 2, "cpu": {"name": "newer"}, "events": []}"#);
        put("trust-lies.json", json(CPU, r#"{"name": "a", "verdict": "trusted"}"#).as_bytes());
        put("trust-bytes.json", &[0xff; 100]);
        std::fs::create_dir(folder.path().join("trust-folder.json")).unwrap();
        let pipe = std::ffi::CString::new(folder.path().join("trust-pipe.json").to_str().unwrap()).unwrap();
        // SAFETY: a path that ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o644) }, 0);
        std::os::unix::fs::symlink("nowhere", folder.path().join("trust-link.json")).unwrap();
        put("notes.txt", b"not one of these");
        let odd = r#"{"name": "a", "verdict": "within", "deviation": -1e300},
            {"name": "b", "verdict": "excellent"}"#;
        put("trust-odd.json", json("odd", odd).as_bytes());
        let trust = Trust::read(folder.path());
        assert_eq!(trust.unusable.len(), 9, "{:?}", trust.unusable);
        assert_eq!(trust.of(CPU, "a"), EventVerdict::Unknown);
        assert_eq!(trust.of("odd", "a"), EventVerdict::Unusable);
        assert_eq!(trust.of("odd", "b"), EventVerdict::Unknown);
        assert!(Trust::read(Path::new("/nonexistent")).unusable.is_empty());
    }

    #[test]
    fn a_name_holds_what_changes_counters() {
        let hardware = Hardware {
            cpu_vendor: Some("../Authentic AMD".into()),
            cpu_family: Some(25),
            microcode: Some("0x1000065".into()),
            ..Hardware::default()
        };
        assert_eq!(cpu_name(&hardware), ".._Authentic_AMD-25-unknown-unknown-0x1000065");
    }

    proptest! {
        #[test]
        fn damage_is_never_a_panic(at in 0usize..150, byte: u8, cut in 0usize..200) {
            let folder = folder();
            let mut bytes = json(CPU, r#"{"name": "a", "verdict": "within", "deviation": 0.2}"#).into_bytes();
            if let Some(place) = bytes.get_mut(at) { *place = byte }
            bytes.truncate(cut);
            std::fs::write(folder.path().join(format!("trust-{CPU}.json")), bytes).unwrap();
            let verdict = Trust::read(folder.path()).of(CPU, "a");
            prop_assert!(!matches!(verdict, EventVerdict::Within(x) if !(0.0..=USABLE).contains(&x)));
        }

        #[test]
        fn a_larger_deviation_is_never_worth_more(a in 0.0..10.0, b in 0.0..10.0) {
            let rank = |deviation: f64| match EventVerdict::of_deviation(deviation) {
                EventVerdict::Trusted => 0.0,
                EventVerdict::Within(x) => x,
                _ => f64::MAX,
            };
            let (a, b) = if a < b { (a, b) } else { (b, a) };
            prop_assert!(rank(a) <= rank(b));
            prop_assert_eq!(EventVerdict::of_deviation(f64::NAN), EventVerdict::Unusable);
        }
    }
}
