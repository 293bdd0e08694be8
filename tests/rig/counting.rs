//! Counts events during some work.

use pmmpi::RankId;
use pmmpi::counters::count_and_quality::Reading;
use pmmpi::counters::counter_table::{CounterTable, Snapshot};
use pmmpi::counters::counts::Counts;
use pmmpi::counters::default;
use pmmpi::counters::event::{Encoding, Event, Group, kind};
use pmmpi::counters::open_counters::{CounterHandle, OpenCounters, Opened, Scope, Set};
use pmmpi::counters::perf_event_open::{Counters, Inherited, Target};
use pmmpi::regions::Regions;
use pmmpi_events::readings::readings;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicU64;

/// The counts of some work.
pub struct Counted {
    /// In the form in which a run stores them.
    pub counts: Counts,
}

impl Counted {
    /// Opens the groups, reads them, lets the work run, and reads them again.
    pub fn during(groups: &[Group], target: Target, work: impl FnOnce()) -> Self {
        let scope = if let Target::Cpu(_) = target { Scope::Core } else { Scope::Task };
        let mut counters = Counters::default();
        counters.add(scope, groups, &[target]);
        Self::with(&mut counters, work)
    }

    /// Reads the open counters, runs the work, and reads them again.
    pub fn with(counters: &mut impl OpenCounters, work: impl FnOnce()) -> Self {
        let words = CounterTable::words(counters.opened());
        let words: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let table = CounterTable::new(&words, counters.opened());
        counters.snapshot(table.of(Snapshot::Start));
        work();
        counters.snapshot(table.of(Snapshot::Stop));
        Self { counts: Counts::of_rank(RankId(0), counters.opened(), table, &Regions::default()) }
    }

    /// Every event with its reading, in the requested order; none if nothing was counted.
    pub fn all(&self) -> Vec<(&Event, Reading)> {
        self.counts.rows.iter().flat_map(|row| readings(&self.counts, row)).collect()
    }

    /// The reading of the event with this name.
    pub fn of(&self, name: &str) -> Result<Reading, String> {
        let found = self.all().into_iter().find(|(event, _)| event.name == name);
        found.map(|(_, reading)| reading).ok_or_else(|| format!("{name} was not opened"))
    }

    /// The value of the event with this name.
    pub fn value(&self, name: &str) -> Result<u64, String> {
        let reading = self.of(name)?;
        reading.value().ok_or_else(|| format!("{name}: {}", reading.reason().unwrap_or_default()))
    }
}

/// A single event.
pub fn alone(name: &str, encoding: Encoding) -> Vec<Group> {
    vec![vec![Event::counted(name, encoding)]]
}

/// Opens an event for the program `pmmpi-rig-pmu`, starts the program, and returns what it reads.
pub fn handed_down(program: &Path, encoding: Encoding, work: &str) -> Result<String, String> {
    let mut counters = Counters::open(&alone("event", encoding), Target::NextProgram);
    let opened = counters.hand_down().map_err(|e| e.to_string())?.opened;
    let [handle] = opened.handles.as_slice() else { return Err(format!("{opened:?}")) };
    let args = [work, &handle.descriptor.to_string(), &handle.id.to_string()];
    let output = Command::new(program).arg("inherited").args(args).output().map_err(|e| e.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// The counterpart of [`handed_down`]: the count during the work.
pub fn inherited(descriptor: i32, id: u64, work: impl FnOnce()) -> Result<u64, String> {
    let event = Event::counted("event", Encoding::new(kind::SOFTWARE, 0));
    let set = Set { scope: Scope::Task, events: vec![(event, None)], groups: vec![vec![0]] };
    let handles = vec![CounterHandle { set: 0, group: 0, cpu: None, descriptor, id }];
    let mut inherited = Inherited::take(Opened { sets: vec![set], handles }, &[descriptor]);
    Counted::with(&mut inherited, work).value("event")
}

/// The default set in the form of `--events`: each group in braces.
pub fn default_set() -> String {
    let names = |group: Group| group.into_iter().map(|event| event.name).collect::<Vec<_>>().join(",");
    let groups = default::groups().into_iter().map(|group| format!("{{{}}}", names(group)));
    groups.collect::<Vec<_>>().join(",")
}
