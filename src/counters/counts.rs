//! What ranks counted, as it travels and as it is stored.

use super::event::Event;
use super::kinds::Kinds;
use super::probe::{Handle, Opened, Scope, Set};
use super::reading::{Cause, Gap, Reading};
use super::table::{CounterTable, GROUP_HEAD, Snapshot, was_read};
use crate::regions::Regions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// What some ranks counted between their snapshots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// What was counted, each set once.
    pub sets: Vec<Set>,
    /// Names of regions, each once.
    pub regions: Vec<String>,
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
    /// Index into [`Counts::regions`]: the sum of its entries; `None` of the whole work.
    pub region: Option<u32>,
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
    /// What `rank` counted from the first snapshot to the second, and in its regions.
    pub fn of_rank(rank: u32, opened: &Opened, table: CounterTable, regions: &Regions) -> Self {
        let mut counts = Self { sets: opened.sets.clone(), ..Self::default() };
        let (start, stop) = (table.of(Snapshot::Start), table.of(Snapshot::Stop));
        for ((handle, start), (_, stop)) in opened.places(start).zip(opened.places(stop)) {
            let between = |at: usize| word(stop, at).wrapping_sub(word(start, at));
            let counted = (was_read(start) && was_read(stop)).then(|| group(start.len(), between));
            counts.add(Place::of(rank, handle, None), handle.group, counted);
        }
        // A set of which nothing could be opened says so once.
        for (set, _) in opened.sets.iter().enumerate().filter(|(_, set)| set.groups.is_empty()) {
            let place = Place { rank, cpu: None, set: set as u32, region: None };
            counts.rows.push(place.row(0));
        }
        for (slot, name) in regions.names.iter().enumerate() {
            let entries = regions.totals.iter().find(|totals| totals.region as usize == slot);
            let entries = entries.map_or(0, |totals| totals.entries);
            for (handle, sum) in opened.places(table.of_region(slot)) {
                let region = counts.region(name);
                let counted =
                    (entries > 0 && word(sum, 0) == entries).then(|| group(sum.len(), |at| word(sum, at)));
                counts.add(Place::of(rank, handle, Some(region)), handle.group, counted);
            }
        }
        counts
    }

    /// The same, and what it took.
    pub fn at_cost(self, cost: Cost) -> Self {
        Self { cost: Some([cost; 2]), ..self }
    }

    fn add(&mut self, place: Place, group: u32, counted: Option<GroupCounts>) {
        let known = self.rows.iter().rposition(|row| row.place() == place);
        let at = known.unwrap_or_else(|| {
            self.rows.push(place.row(self.sets[place.set as usize].groups.len()));
            self.rows.len() - 1
        });
        self.rows[at].groups[group as usize] = counted;
    }

    fn region(&mut self, name: &str) -> u32 {
        index_of(&mut self.regions, name.to_owned())
    }

    /// Some of the rows, and what they need.
    pub fn only(&self, wanted: impl Fn(&Row) -> bool) -> Self {
        let rows: Vec<Row> = self.rows.iter().filter(|row| wanted(row)).cloned().collect();
        let mut some = Self { cost: self.cost, ..Self::default() };
        for row in rows {
            let set = index_of(&mut some.sets, self.sets[row.set as usize].clone());
            let region = row.region.map(|region| some.region(&self.regions[region as usize]));
            some.rows.push(Row { set, region, ..row });
        }
        some
    }

    /// Keeps what one rank of each node counted on its cores and sockets: the first that could read something. Two
    /// processes may both have taken the node for theirs, and each has the whole of it.
    pub(crate) fn keep_nodes_once(&mut self, node_of: impl Fn(u32) -> Option<u32>) {
        let is_tasks: Vec<bool> = self.sets.iter().map(|set| set.scope == Scope::Task).collect();
        if is_tasks.iter().all(|is_tasks| *is_tasks) {
            return;
        }
        let of_node =
            |row: &Row| node_of(row.rank).filter(|_| is_tasks.get(row.set as usize) == Some(&false));
        let mut keepers: BTreeMap<u32, (bool, u32)> = BTreeMap::new(); // of each node: nothing was read, the rank
        for row in &self.rows {
            let Some(node) = of_node(row) else { continue };
            let this = (row.groups.iter().all(Option::is_none), row.rank);
            keepers.entry(node).and_modify(|keeper| *keeper = this.min(*keeper)).or_insert(this);
        }
        self.rows.retain(|row| of_node(row).is_none_or(|node| keepers[&node].1 == row.rank));
    }

    /// Adds what other ranks counted.
    pub fn join(&mut self, other: Self) {
        let sets: Vec<u32> = other.sets.into_iter().map(|set| index_of(&mut self.sets, set)).collect();
        let regions: Vec<u32> = other.regions.iter().map(|name| self.region(name)).collect();
        let known = |row: Row| {
            let region = row.region.map(|region| regions.get(region as usize).copied());
            let region = if region == Some(None) { return None } else { region.flatten() };
            Some(Row { set: *sets.get(row.set as usize)?, region, ..row })
        };
        self.rows.extend(other.rows.into_iter().filter_map(known));
        self.cost = match (self.cost, other.cost) {
            (Some([least, most]), Some([a, b])) => Some([least.with(a, i64::min), most.with(b, i64::max)]),
            (cost, None) | (None, cost) => cost,
        };
    }

    /// Every event of a row's set, and what it came to. Of an event of one kind of core, where there are several, times
    /// are those of the processor.
    pub fn readings<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = (&'a Event, Reading)> {
        // Hardware threads' rows need them not, and may be many.
        let own = self.rows.iter().filter(|other| row.cpu.is_none() && other.rank == row.rank);
        let kinds = match Kinds::of(&self.sets).is_one() {
            true => Kinds::default(),
            false => self.kinds(own.map(|row| row.set)),
        };
        self.readings_on(&kinds, row).into_iter()
    }

    /// Of the node on which all these sets were counted.
    pub(super) fn kinds(&self, sets: impl IntoIterator<Item = u32>) -> Kinds<'_> {
        Kinds::of(sets.into_iter().filter_map(|set| self.sets.get(set as usize)))
    }

    /// The same, for who reads many rows.
    pub(super) fn readings_on<'a>(&'a self, kinds: &Kinds, row: &Row) -> Vec<(&'a Event, Reading)> {
        let Some(set) = self.sets.get(row.set as usize) else { return Vec::new() };
        let events = set.events.iter().enumerate();
        let mut readings: Vec<(&Event, Reading)> =
            events.map(|(at, (event, gap))| (event, set.reading(row, at as u32, *gap))).collect();
        // A hardware thread is of one kind.
        if set.scope == Scope::Task && row.cpu.is_none() {
            kinds.put_together(&mut readings);
        }
        readings
    }

    /// True where every index points at something and every row fits its set.
    pub(crate) fn is_sound(&self, ranks: u32) -> bool {
        let fits = |row: &Row| {
            let Some(set) = self.sets.get(row.set as usize) else { return false };
            row.rank < ranks
                && row.region.is_none_or(|region| (region as usize) < self.regions.len())
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

/// Where something was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    rank: u32,
    cpu: Option<u32>,
    set: u32,
    region: Option<u32>,
}

impl Place {
    fn of(rank: u32, handle: &Handle, region: Option<u32>) -> Self {
        Self { rank, cpu: handle.cpu, set: handle.set, region }
    }

    fn row(self, groups: usize) -> Row {
        let Self { rank, cpu, set, region } = self;
        Row { rank, cpu, set, region, groups: vec![None; groups] }
    }
}

impl Row {
    fn place(&self) -> Place {
        Place { rank: self.rank, cpu: self.cpu, set: self.set, region: self.region }
    }
}

fn index_of<T: PartialEq>(all: &mut Vec<T>, one: T) -> u32 {
    let known = all.iter().position(|known| *known == one);
    known.unwrap_or_else(|| {
        all.push(one);
        all.len() - 1
    }) as u32
}

/// A group's counts, from the words of its place.
fn group(words: usize, value: impl Fn(usize) -> u64) -> GroupCounts {
    let counts = (GROUP_HEAD..words).map(&value).collect();
    GroupCounts { enabled_ns: value(1), running_ns: value(2), counts }
}

fn word(place: &[AtomicU64], at: usize) -> u64 {
    place[at].load(Relaxed)
}
