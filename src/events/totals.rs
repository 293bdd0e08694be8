//! Sums of counts over the ranks of a run.

use crate::core_kinds::CoreKinds;
use crate::names::family;
use crate::readings::{SetReader, core_kinds};
use pmmpi::RankId;
use pmmpi::counters::count_and_quality::{Gap, Quality, Reading};
use pmmpi::counters::counts::{CountRow, Counts};
use pmmpi::counters::event::Event;
use pmmpi::counters::open_counters::{Scope, Set};
use std::collections::HashMap;
use std::fmt;
use std::ptr;

/// One event, summed.
#[derive(Clone, Debug, PartialEq)]
pub struct Total<'a> {
    /// Where it was counted.
    pub scope: Scope,
    /// The summed event.
    pub event: &'a Event,
    /// The sum over all places; `None` if one of them has no value: a missing value is not 0.
    pub count: Option<u64>,
    /// The worst quality of all places.
    pub quality: Quality,
    /// Why the quality is not better: of the first place with that quality.
    pub reason: Option<WhyInexact>,
    /// The smallest running share of a place.
    pub running_share: Option<f64>,
    /// Number of places in the sum.
    pub places: usize,
    /// The largest count of a place; `None` like `count`.
    pub most: Option<u64>,
    /// True if every place counted user mode only, although the event includes the kernel, and nothing else is
    /// missing.
    pub user_mode_only: bool,
}

/// Why a total is not exact.
#[derive(Clone, Debug, PartialEq)]
pub enum WhyInexact {
    /// What a place read. The text is made only when it is needed, because a large run has many totals.
    Place {
        /// The rank that read it; `None` if there is only one rank.
        rank: Option<RankId>,
        /// The hardware thread, if it was one.
        cpu: Option<u32>,
        /// Not exact.
        reading: Reading,
    },
    /// Only some of a node's ranks counted the event.
    FewRanks {
        /// How many counted it.
        counted: usize,
        /// Of how many.
        of: usize,
    },
}

impl WhyInexact {
    /// `None` for an exact reading.
    fn of(row: &CountRow, reading: &Reading) -> Option<Self> {
        let (rank, cpu, reading) = (Some(row.rank), row.cpu, *reading);
        (reading.quality() != Quality::Exact).then_some(Self::Place { rank, cpu, reading })
    }

    /// The place, if it is known, and the reason.
    pub fn place_and_reason(&self) -> (Option<String>, String) {
        match self {
            Self::Place { rank, cpu, reading } => {
                let place = match (cpu, rank) {
                    (Some(cpu), Some(rank)) => Some(format!("hardware thread {cpu} of rank {rank}'s node")),
                    (Some(cpu), None) => Some(format!("hardware thread {cpu}")),
                    (None, Some(rank)) => Some(format!("rank {rank}")),
                    (None, None) => None,
                };
                (place, reading.reason().unwrap_or_default())
            }
            Self::FewRanks { counted, of } => {
                (None, format!("only {counted} of the node's {of} ranks counted this event"))
            }
        }
    }
}

impl fmt::Display for WhyInexact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place_and_reason() {
            (Some(place), reason) => write!(f, "{place}: {reason}"),
            (None, reason) => f.write_str(&reason),
        }
    }
}

impl Total<'_> {
    /// The sum in the event's unit.
    pub fn value(&self) -> Option<f64> {
        self.count.map(|count| count as f64 * self.event.scale)
    }
}

/// Sums every event of every set over the rows for which `of` is true. Events of several sets (of different nodes)
/// are one total if their scope, name, unit and scale are the same.
pub fn totals(counts: &Counts, of: impl Fn(&CountRow) -> bool) -> Vec<Total<'_>> {
    totals_by(counts, |row| of(row).then_some(())).next().map(|((), totals)| totals).unwrap_or_default()
}

/// Like [`totals`], but separately for each key that `key` gives to a row, in the order of the keys; skips rows without
/// a key. The totals of all nodes of a large run take much memory, so each is made only when the iterator reaches it.
pub fn totals_by<K: Ord + Copy>(
    counts: &Counts,
    key: impl Fn(&CountRow) -> Option<K>,
) -> impl Iterator<Item = (K, Vec<Total<'_>>)> {
    let is_one_kind = CoreKinds::of(&counts.sets).is_one();
    let mut kinds = vec![CoreKinds::default()];
    let mut known: HashMap<Vec<u32>, usize> = HashMap::new();
    let mut rows: Vec<(K, &CountRow, usize)> = Vec::with_capacity(counts.rows.len());
    // The rows of a rank are adjacent.
    for of_rank in counts.rows.chunk_by(|a, b| a.rank == b.rank) {
        let of_node = match is_one_kind {
            true => 0,
            false => {
                let mut sets: Vec<u32> = of_rank.iter().map(|row| row.set).collect();
                sets.sort_unstable();
                sets.dedup();
                *known.entry(sets).or_insert_with_key(|sets| {
                    kinds.push(core_kinds(counts, sets.iter().copied()));
                    kinds.len() - 1
                })
            }
        };
        rows.extend(of_rank.iter().filter_map(|row| Some((key(row)?, row, of_node))));
    }
    rows.sort_by_key(|(key, ..)| *key);
    let sets: Vec<SummedSet> = counts.sets.iter().map(SummedSet::of).collect();
    let mut next = 0;
    std::iter::from_fn(move || {
        let key = rows.get(next)?.0;
        let mut totals = Vec::new();
        while let Some((_, row, of_node)) = rows.get(next).filter(|(other, ..)| *other == key) {
            if let Some(set) = sets.get(row.set as usize) {
                set.add(row, &kinds[*of_node], &mut totals);
            }
            next += 1;
        }
        Some((key, totals))
    })
}

/// A set whose rows are summed.
struct SummedSet<'a> {
    scope: Scope,
    reader: SetReader<'a>,
    /// For each event the index of its total, if the set's totals are the first ones. A set may count an event twice.
    totals: Vec<usize>,
}

impl<'a> SummedSet<'a> {
    fn of(set: &'a Set) -> Self {
        let mut firsts: Vec<&Event> = Vec::new();
        let total = |(event, _): &'a (Event, Option<Gap>)| {
            let known = firsts.iter().position(|first| same_count(first, event));
            known.unwrap_or_else(|| {
                firsts.push(event);
                firsts.len() - 1
            })
        };
        let totals = set.events.iter().map(total).collect();
        Self { scope: set.scope, reader: SetReader::of(set), totals }
    }

    fn add(&self, row: &CountRow, kinds: &CoreKinds, totals: &mut Vec<Total<'a>>) {
        let readings = self.reader.readings(kinds, row);
        let are_first = totals.is_empty();
        if are_first {
            totals.reserve(readings.len());
        }
        for (at, (event, reading)) in self.totals.iter().zip(readings) {
            let is_same = |total: &Total| {
                total.scope == self.scope && (ptr::eq(total.event, event) || same_count(total.event, event))
            };
            // The rows of a set are adjacent and in the set's order, so the same index is likely to match.
            let near = totals.get(*at).is_some_and(|total| are_first || is_same(total)).then_some(*at);
            match near.or_else(|| totals.iter().position(is_same).filter(|_| !are_first)) {
                Some(known) => totals[known].add(row, &reading),
                None => totals.push(Total::of(self.scope, event, row, &reading)),
            }
        }
    }
}

/// The sum of events that are one event in several parts of a machine: in each kind of core, in each memory
/// controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Sum<'a> {
    /// Where they were counted.
    pub scope: Scope,
    /// Their common name: see [`family`].
    pub name: String,
    /// The unit of the value.
    pub unit: String,
    /// See [`Event::scale`].
    pub scale: f64,
    /// The sum; `None` if one of them has no value.
    pub count: Option<u64>,
    /// Their worst quality.
    pub quality: Quality,
    /// The names of the summed events; and why the quality is not better, from the first event with that quality.
    pub reason: String,
    /// The smallest running share of an event at a place.
    pub running_share: Option<f64>,
    /// The events themselves.
    pub of: Vec<&'a Event>,
}

impl Sum<'_> {
    /// The sum in the events' unit.
    pub fn value(&self) -> Option<f64> {
        self.count.map(|count| count as f64 * self.scale)
    }

    /// True for a total with the same name, which is a part of the sum: nodes with one kind of core have such
    /// totals.
    pub fn is_named_like(&self, total: &Total) -> bool {
        let (own, event) = ((&self.name, &self.unit, self.scale), total.event);
        self.scope == total.scope && own == (&event.name, &event.unit, event.scale)
    }
}

/// The sums of totals of one family, in the order of their first members. A total that is alone in its family has
/// no sum.
pub fn sums<'a>(totals: &[Total<'a>]) -> Vec<Sum<'a>> {
    // Events without a PMU in their names are alone in their families: see `family`.
    if totals.iter().all(|total| !total.event.name.contains('/')) {
        return Vec::new();
    }
    let mut families: Vec<(String, Vec<&Total<'a>>)> = Vec::new();
    let mut known: HashMap<(Scope, String, &str, u64), usize> = HashMap::new();
    for total in totals {
        let (name, event) = (family(total.event), total.event);
        let at = *known
            .entry((total.scope, name.clone(), event.unit.as_str(), event.scale.to_bits()))
            .or_insert(families.len());
        match families.get_mut(at) {
            Some((_, members)) => members.push(total),
            None => families.push((name, vec![total])),
        }
    }
    families.retain(|(_, members)| members.len() > 1);
    families.into_iter().filter_map(|(name, members)| Sum::of(name, &members)).collect()
}

impl<'a> Sum<'a> {
    fn of(name: String, members: &[&Total<'a>]) -> Option<Self> {
        let first = members.first()?;
        let counts = members.iter().map(|member| member.count);
        let count = counts.clone().try_fold(0u64, |sum, count| sum.checked_add(count?));
        let ran_over = count.is_none() && counts.clone().all(|count| count.is_some());
        let worst = members.iter().fold(
            first,
            |worst, member| {
                if member.quality > worst.quality { member } else { worst }
            },
        );
        let names: Vec<&str> = members.iter().map(|member| member.event.name.as_str()).collect();
        let mut reason = format!("the sum of {}", in_words(&names));
        if let Some(why) = &worst.reason {
            reason = format!("{reason}; {}: {why}", worst.event.name);
        }
        Some(Self {
            scope: first.scope,
            name,
            unit: first.event.unit.clone(),
            scale: first.event.scale,
            count,
            quality: if ran_over { Quality::Overflowed } else { worst.quality },
            reason,
            running_share: members.iter().filter_map(|member| member.running_share).reduce(f64::min),
            of: members.iter().map(|member| member.event).collect(),
        })
    }
}

/// "a and b"; for more than three names, the first and the last.
fn in_words(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first, last] => format!("{first} and {last}"),
        [first, second, last] => format!("{first}, {second} and {last}"),
        [first, .., last] => format!("{first} to {last} ({} events)", names.len()),
    }
}

fn same_count(a: &Event, b: &Event) -> bool {
    (&a.name, &a.unit, a.scale) == (&b.name, &b.unit, b.scale)
}

impl<'a> Total<'a> {
    fn of(scope: Scope, event: &'a Event, row: &CountRow, reading: &Reading) -> Self {
        Self {
            scope,
            event,
            count: reading.value(),
            quality: reading.quality(),
            reason: WhyInexact::of(row, reading),
            running_share: reading.running_share(),
            places: 1,
            most: reading.value(),
            user_mode_only: is_of_user_mode(reading),
        }
    }

    fn add(&mut self, row: &CountRow, reading: &Reading) {
        let sum = self.count.zip(reading.value()).and_then(|(a, b)| a.checked_add(b));
        let ran_over = self.count.is_some() && reading.value().is_some() && sum.is_none();
        let quality = if ran_over { Quality::Overflowed } else { reading.quality() };
        if quality > self.quality {
            (self.quality, self.reason) = (quality, WhyInexact::of(row, reading));
        }
        self.count = sum;
        self.places += 1;
        self.most = self.most.zip(reading.value()).map(|(a, b)| a.max(b));
        self.user_mode_only &= is_of_user_mode(reading);
        let shares = [self.running_share, reading.running_share()];
        self.running_share = shares.into_iter().flatten().reduce(f64::min);
    }
}

fn is_of_user_mode(reading: &Reading) -> bool {
    reading.gap == Some(Gap::UserModeOnly) && reading.quality() == Quality::Partial
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmmpi::counters::count_and_quality::Gap;
    use pmmpi::counters::counts::GroupCounts;
    use pmmpi::counters::event::Encoding;

    fn set(gap: Option<Gap>) -> Set {
        let event = |name| Event::counted(name, Encoding::new(0, 0));
        let groups = if gap.is_none() { vec![vec![0, 1]] } else { vec![vec![0]] };
        Set { events: vec![(event("cycles"), None), (event("instructions"), gap)], groups, ..Set::default() }
    }

    fn row(rank: u32, set: u32, times: [u64; 2], counts: &[u64]) -> CountRow {
        let [enabled_ns, running_ns] = times;
        let group = GroupCounts { enabled_ns, running_ns, counts: counts.to_vec() };
        CountRow { rank: RankId(rank), cpu: None, set, region: None, groups: vec![Some(group)] }
    }

    #[test]
    fn a_sum_is_worth_what_its_worst_part_is() {
        let counts = Counts {
            sets: vec![set(None), set(Some(Gap::Denied(13)))],
            rows: vec![row(0, 0, [9, 9], &[100, 7]), row(1, 0, [8, 4], &[50, 1]), row(2, 1, [9, 9], &[1])],
            ..Counts::default()
        };
        let all = totals(&counts, |row| row.rank < RankId(2));
        assert_eq!((all[0].count, all[0].quality), (Some(200), Quality::Scaled));
        assert_eq!((all[0].places, all[0].most, all[0].user_mode_only), (2, Some(100), false));
        assert_eq!(all[0].running_share, Some(0.5));
        assert!(all[0].reason.as_ref().unwrap().to_string().starts_with("rank 1: counted 50.0 %"));
        assert_eq!(all[1].count, Some(9));
        // With a rank on another kind of node.
        let all = totals(&counts, |_| true);
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].count, all[0].quality), (Some(201), Quality::Scaled));
        assert_eq!((all[1].count, all[1].quality), (None, Quality::Denied));
        assert!(all[1].reason.as_ref().unwrap().to_string().starts_with("rank 2: not allowed"));
    }

    #[test]
    fn sums_may_be_of_parts_of_the_ranks() {
        let counts = Counts {
            sets: vec![set(None), set(Some(Gap::Denied(13)))],
            rows: (0..6).map(|rank| row(rank, 0, [9, 9], &[1 << rank, 7])).collect(),
            ..Counts::default()
        };
        let totals = totals_by(&counts, |row| (row.rank > RankId(0)).then_some(row.rank.0 % 2));
        let cycles: Vec<_> = totals.map(|(key, totals)| (key, totals[0].count, totals[0].most)).collect();
        assert_eq!(cycles, [(0, Some(20), Some(16)), (1, Some(42), Some(32))]);
    }

    #[test]
    fn user_mode_is_said_of_all_places_or_none() {
        let user = Set {
            events: vec![(Event::counted("cycles", Encoding::new(0, 0)), Some(Gap::UserModeOnly))],
            ..set(None)
        };
        let user = Set { groups: vec![vec![0]], ..user };
        let counts = Counts {
            sets: vec![user, set(None)],
            rows: vec![row(0, 0, [9, 9], &[3]), row(1, 0, [9, 9], &[4]), row(2, 1, [9, 9], &[5, 6])],
            ..Counts::default()
        };
        let is_user = |most: u32| totals(&counts, |row| row.rank <= RankId(most))[0].user_mode_only;
        assert_eq!((is_user(1), is_user(2)), (true, false));
    }

    #[test]
    fn a_sum_that_runs_over_is_none() {
        let most = (1 << 62) - 1;
        let rows = (0..5).map(|rank| row(rank, 0, [1, 1], &[most, 0])).collect();
        let counts = Counts { sets: vec![set(None)], rows, ..Counts::default() };
        let all = totals(&counts, |_| true);
        assert_eq!((all[0].count, all[0].quality), (None, Quality::Overflowed));
        assert_eq!(all[1].count, Some(0));
    }
}
