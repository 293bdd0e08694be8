//! The counts of ranks, as ranks send them and as run files store them.

use super::counter_table::{CounterTable, Snapshot, was_read};
use super::open_counters::{CounterHandle, GROUP_HEAD, Opened, Scope, Set};
use crate::ids::{NodeId, RankId};
use crate::regions::Regions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Counts of some ranks between their snapshots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// The sets of events, each once.
    pub sets: Vec<Set>,
    /// Names of regions, each once.
    pub regions: Vec<String>,
    /// One per rank and place.
    pub rows: Vec<CountRow>,
    /// The least and the greatest cost over the ranks.
    pub cost: Option<[Cost; 2]>,
}

/// The cost of counting on a rank (ns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// To open the counters.
    pub opening_ns: i64,
    /// For the snapshots at t1 and t2, including CPU time and time stamp counter.
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
pub struct CountRow {
    /// The rank that counted.
    pub rank: RankId,
    /// The hardware thread, by the kernel's number on that rank's node; `None` where the rank's own threads
    /// were counted.
    pub cpu: Option<u32>,
    /// Index into [`Counts::sets`].
    pub set: u32,
    /// Index into [`Counts::regions`], for the sum over the region's entries; `None` for the whole work.
    pub region: Option<u32>,
    /// One per group of the set; `None` if the group could not be read.
    pub groups: Vec<Option<GroupCounts>>,
}

/// A group's counts between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCounts {
    /// How long the group was enabled (ns), summed over all threads.
    pub enabled_ns: u64,
    /// How long the group was counting (ns), summed over all threads.
    pub running_ns: u64,
    /// One per event of the group.
    pub counts: Vec<u64>,
}

impl Counts {
    /// What `rank` counted from the first snapshot to the second, and in its regions.
    pub fn of_rank(rank: RankId, opened: &Opened, table: CounterTable, regions: &Regions) -> Self {
        let mut counts = Self { sets: opened.sets.clone(), ..Self::default() };
        let (start, stop) = (table.of(Snapshot::Start), table.of(Snapshot::Stop));
        for ((handle, start), (_, stop)) in opened.places(start).zip(opened.places(stop)) {
            let between = |at: usize| word(stop, at).wrapping_sub(word(start, at));
            let counted = (was_read(start) && was_read(stop)).then(|| group(start.len(), between));
            counts.add(Place::of(rank, handle, None), handle.group, counted);
        }
        // A set without any opened event gets one row without counts.
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

    /// Adds the cost of counting.
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

    /// The wanted rows, with only the sets and regions that they use.
    pub fn only(&self, wanted: impl Fn(&CountRow) -> bool) -> Self {
        let rows: Vec<CountRow> = self.rows.iter().filter(|row| wanted(row)).cloned().collect();
        let mut some = Self { cost: self.cost, ..Self::default() };
        for row in rows {
            let set = index_of(&mut some.sets, self.sets[row.set as usize].clone());
            let region = row.region.map(|region| some.region(&self.regions[region as usize]));
            some.rows.push(CountRow { set, region, ..row });
        }
        some
    }

    /// Keeps the core and socket counts of one rank per node: of the first rank that could read something. Two
    /// processes of a node may both have counted the whole node.
    pub(crate) fn keep_nodes_once(&mut self, node_of: impl Fn(RankId) -> Option<NodeId>) {
        let is_tasks: Vec<bool> = self.sets.iter().map(|set| set.scope == Scope::Task).collect();
        if is_tasks.iter().all(|is_tasks| *is_tasks) {
            return;
        }
        let of_node =
            |row: &CountRow| node_of(row.rank).filter(|_| is_tasks.get(row.set as usize) == Some(&false));
        let mut keepers: BTreeMap<NodeId, (bool, RankId)> = BTreeMap::new(); // the bool: nothing was read
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
        let known = |row: CountRow| {
            let region = row.region.map(|region| regions.get(region as usize).copied());
            let region = if region == Some(None) { return None } else { region.flatten() };
            Some(CountRow { set: *sets.get(row.set as usize)?, region, ..row })
        };
        self.rows.extend(other.rows.into_iter().filter_map(known));
        self.cost = match (self.cost, other.cost) {
            (Some([least, most]), Some([a, b])) => Some([least.with(a, i64::min), most.with(b, i64::max)]),
            (cost, None) | (None, cost) => cost,
        };
    }

    /// True if every index points at something and every row fits its set.
    pub(crate) fn is_sound(&self, ranks: u32) -> bool {
        let fits = |row: &CountRow| {
            let Some(set) = self.sets.get(row.set as usize) else { return false };
            row.rank.0 < ranks
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

/// Where something was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    rank: RankId,
    cpu: Option<u32>,
    set: u32,
    region: Option<u32>,
}

impl Place {
    fn of(rank: RankId, handle: &CounterHandle, region: Option<u32>) -> Self {
        Self { rank, cpu: handle.cpu, set: handle.set, region }
    }

    fn row(self, groups: usize) -> CountRow {
        let Self { rank, cpu, set, region } = self;
        CountRow { rank, cpu, set, region, groups: vec![None; groups] }
    }
}

impl CountRow {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks 0 to 2 share one node, ranks 3 and 4 another. Each rank that counts its node counts all of it.
    #[test]
    fn what_belongs_to_a_node_is_counted_once() {
        let set = |scope| Set { scope, ..Set::default() };
        let row = |rank: u32, cpu: Option<u32>, count: Option<u64>| {
            let group = count.map(|count| GroupCounts { enabled_ns: 9, running_ns: 9, counts: vec![count] });
            CountRow {
                rank: RankId(rank),
                cpu,
                set: u32::from(cpu.is_some()),
                region: None,
                groups: vec![group],
            }
        };
        let mut counts = Counts {
            sets: vec![set(Scope::Task), set(Scope::Core)],
            rows: vec![
                row(0, None, Some(1)),
                row(1, None, Some(1)),
                row(0, Some(0), None),
                row(0, Some(1), None),
                row(1, Some(0), Some(400)),
                row(1, Some(1), Some(2)),
                row(2, Some(0), Some(401)),
                row(2, Some(1), Some(3)),
                row(3, Some(0), None),
                row(4, Some(0), None),
            ],
            ..Counts::default()
        };
        counts.keep_nodes_once(|rank| Some(NodeId(u32::from(rank.0 > 2))));
        let kept: Vec<_> = counts.rows.iter().map(|row| (row.rank.0, row.cpu)).collect();
        // All rows of the ranks' own threads; per node, the first rank that could read something, else the first
        // rank.
        assert_eq!(kept, [(0, None), (1, None), (1, Some(0)), (1, Some(1)), (3, Some(0))]);
    }
}
