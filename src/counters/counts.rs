//! What ranks counted, as it travels and as it is stored.

use super::event::Event;
use super::probe::{Opened, Scope, Set};
use super::reading::{Cause, Gap, Reading};
use super::table::{CounterTable, GROUP_HEAD, Snapshot};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering::Relaxed;

/// What some ranks counted between their snapshots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// What was counted, each set once.
    pub sets: Vec<Set>,
    /// One a rank and place.
    pub rows: Vec<Row>,
    /// What that took, at least and at most.
    pub cost: Option<[Cost; 2]>,
}

/// What counting took on a rank (ns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// To open the counters.
    pub opening_ns: i64,
    /// Of the snapshots at t1 and t2, CPU time and time stamp counter included.
    pub snapshots_ns: [i64; 2],
}

impl Cost {
    fn with(self, other: Self, choose: fn(i64, i64) -> i64) -> Self {
        let ([a0, a1], [b0, b1]) = (self.snapshots_ns, other.snapshots_ns);
        Self {
            opening_ns: choose(self.opening_ns, other.opening_ns),
            snapshots_ns: [choose(a0, b0), choose(a1, b1)],
        }
    }
}

/// One rank's counts at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The rank that counted.
    pub rank: u32,
    /// The hardware thread, by the kernel's number on that rank's node; `None` where the rank's own threads
    /// were counted.
    pub cpu: Option<u32>,
    /// Index into [`Counts::sets`].
    pub set: u32,
    /// For each group of the set; `None` where it could not be read.
    pub groups: Vec<Option<GroupCounts>>,
}

/// A group between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCounts {
    /// How long it was to be counted (ns), over all threads.
    pub enabled_ns: u64,
    /// How long it was.
    pub running_ns: u64,
    /// Of each event of the group.
    pub counts: Vec<u64>,
}

impl Counts {
    /// What `rank` counted from the first snapshot to the second.
    pub fn of_rank(rank: u32, opened: &Opened, table: CounterTable) -> Self {
        let mut counts = Self { sets: opened.sets.clone(), ..Self::default() };
        let snapshots = [Snapshot::Start, Snapshot::Stop].map(|snapshot| opened.places(table.of(snapshot)));
        let [starts, stops] = snapshots;
        for ((handle, start), (_, stop)) in starts.zip(stops) {
            let groups = counts.sets[handle.set as usize].groups.len();
            let row = counts.row(rank, handle.cpu, handle.set, groups);
            let events = start.len() - GROUP_HEAD;
            let was_read = |place: &[_]| word(place, 0) == events as u64;
            if was_read(start) && was_read(stop) {
                let between = |at| word(stop, at).wrapping_sub(word(start, at));
                row.groups[handle.group as usize] = Some(GroupCounts {
                    enabled_ns: between(1),
                    running_ns: between(2),
                    counts: (GROUP_HEAD..start.len()).map(between).collect(),
                });
            }
        }
        // A set of which nothing could be opened says so once.
        for set in 0..counts.sets.len() as u32 {
            counts.row(rank, None, set, 0);
        }
        counts.rows.retain(|row| row.cpu.is_some() || counts.sets[row.set as usize].scope == Scope::Task);
        counts
    }

    /// The same, and what it took.
    pub fn at_cost(self, cost: Cost) -> Self {
        Self { cost: Some([cost; 2]), ..self }
    }

    fn row(&mut self, rank: u32, cpu: Option<u32>, set: u32, groups: usize) -> &mut Row {
        let known = self.rows.iter().rposition(|row| (row.cpu, row.set) == (cpu, set));
        let at = known.unwrap_or_else(|| {
            self.rows.push(Row { rank, cpu, set, groups: vec![None; groups] });
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }

    /// Adds what other ranks counted.
    pub fn join(&mut self, other: Self) {
        let sets: Vec<u32> = other.sets.into_iter().map(|set| self.set(set)).collect();
        let known = |row: &Row| sets.get(row.set as usize).copied();
        self.rows.extend(other.rows.into_iter().filter_map(|row| Some(Row { set: known(&row)?, ..row })));
        self.cost = match (self.cost, other.cost) {
            (Some([least, most]), Some([a, b])) => Some([least.with(a, i64::min), most.with(b, i64::max)]),
            (cost, None) | (None, cost) => cost,
        };
    }

    fn set(&mut self, set: Set) -> u32 {
        let known = self.sets.iter().position(|known| *known == set);
        known.unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        }) as u32
    }

    /// Every event of a row's set, and what it came to.
    pub fn readings<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = (&'a Event, Reading)> {
        let set = self.sets.get(row.set as usize);
        set.into_iter().flat_map(move |set| {
            set.events
                .iter()
                .enumerate()
                .map(move |(at, (event, gap))| (event, set.reading(row, at as u32, *gap)))
        })
    }

    /// True where every index points at something and every row fits its set.
    pub(crate) fn is_sound(&self, ranks: u32) -> bool {
        let fits = |row: &Row| {
            let Some(set) = self.sets.get(row.set as usize) else { return false };
            row.rank < ranks
                && row.groups.len() <= set.groups.len()
                && row.groups.iter().zip(&set.groups).all(|(counts, events)| {
                    counts.as_ref().is_none_or(|counts| counts.counts.len() == events.len())
                })
        };
        let indexes =
            |set: &Set| set.groups.iter().flatten().all(|event| (*event as usize) < set.events.len());
        self.sets.iter().all(indexes) && self.rows.iter().all(fits)
    }
}

impl Set {
    fn reading(&self, row: &Row, event: u32, gap: Option<Gap>) -> Reading {
        let place = self
            .groups
            .iter()
            .enumerate()
            .find_map(|(group, events)| Some((group, events.iter().position(|at| *at == event)?)));
        let Some((group, at)) = place else {
            return Reading::missing(gap.unwrap_or(Gap::Unavailable(Cause::NoSnapshot)));
        };
        match row.groups.get(group).and_then(Option::as_ref) {
            Some(counts) => Reading {
                count: counts.counts[at],
                enabled_ns: counts.enabled_ns,
                running_ns: counts.running_ns,
                gap,
            },
            None => Reading::missing(super::linux::UNREADABLE),
        }
    }
}

fn word(place: &[std::sync::atomic::AtomicU64], at: usize) -> u64 {
    place[at].load(Relaxed)
}
