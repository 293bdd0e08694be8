//! The entries of probes, added up.

use super::histogram::Times;
use crate::counters::count_and_quality::Gap;
use crate::ids::RankId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Most probes of one thread. Entries of further probes are not recorded.
pub const MOST: usize = 255;

/// The probes of some ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probes {
    /// Names of the probes, each once.
    pub names: Vec<String>,
    /// One row per rank and probe.
    pub totals: Vec<ProbeTotals>,
    /// The times of all kept entries, one per name.
    pub times: Vec<Times>,
    /// Entries that were not recorded: of probes beyond the first [`MOST`] of a thread, nested too deeply, or without
    /// an end.
    pub unrecorded: u64,
    /// Why a thread has no counts, if one has none.
    pub uncounted: Option<Gap>,
    /// The longest time between two ticks of a rank's clock (ps).
    pub tick_ps: u64,
    /// The largest time that one entry without content takes, begin and end together (ps).
    pub cost_ps: u64,
}

/// One rank's entries of one probe, over all its threads. pmmpi's own part, as far as it is constant, is subtracted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeTotals {
    /// The rank.
    pub rank: RankId,
    /// Index into [`Probes::names`].
    pub probe: u32,
    /// Threads that entered it.
    pub threads: u32,
    /// Entries that were kept.
    pub entries: u64,
    /// Entries that were not kept.
    pub discarded: Discarded,
    /// Time of the kept entries (ps).
    pub time_ps: Spread,
    /// Kept entries with counts.
    pub counted: u64,
    /// Cycles of these entries, in user mode.
    pub cycles: Spread,
    /// Instructions of these entries, in user mode.
    pub instructions: Spread,
}

/// Entries whose values mean nothing, by the first reason that holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discarded {
    /// The clock went backwards.
    pub negative: u64,
    /// The thread ended the entry on another hardware thread than it began.
    pub moved: u64,
    /// Cycles per time were not as usual in the thread: the frequency changed, or the kernel took time.
    pub rate: u64,
}

/// Values of several entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// Their sum.
    pub sum: u64,
    /// The least; 0 without entries.
    pub least: u64,
    /// The largest; 0 without entries.
    pub most: u64,
}

impl Discarded {
    /// For all reasons.
    pub fn all(self) -> u64 {
        self.negative.saturating_add(self.moved).saturating_add(self.rate)
    }

    /// Adds other entries.
    pub fn join(&mut self, other: Self) {
        self.negative = self.negative.saturating_add(other.negative);
        self.moved = self.moved.saturating_add(other.moved);
        self.rate = self.rate.saturating_add(other.rate);
    }
}

impl Spread {
    /// Of two sets of entries, each with the number of its entries.
    pub fn joined(self, entries: u64, other: Self, others: u64) -> Self {
        match (entries, others) {
            (_, 0) => self,
            (0, _) => other,
            _ => Self {
                sum: self.sum.saturating_add(other.sum),
                least: self.least.min(other.least),
                most: self.most.max(other.most),
            },
        }
    }

    /// Each value changed by `change`, which must be monotonic.
    pub fn map(self, change: impl Fn(u64) -> u64) -> Self {
        Self { sum: change(self.sum), least: change(self.least), most: change(self.most) }
    }
}

impl ProbeTotals {
    /// Adds entries of other threads or ranks.
    pub fn join(&mut self, other: &Self) {
        self.time_ps = self.time_ps.joined(self.entries, other.time_ps, other.entries);
        self.cycles = self.cycles.joined(self.counted, other.cycles, other.counted);
        self.instructions = self.instructions.joined(self.counted, other.instructions, other.counted);
        self.threads = self.threads.saturating_add(other.threads);
        self.entries = self.entries.saturating_add(other.entries);
        self.counted = self.counted.saturating_add(other.counted);
        self.discarded.join(other.discarded);
    }
}

impl Probes {
    /// Adds the probes of other ranks.
    pub fn join(&mut self, other: Self) {
        let mut known: HashMap<String, u32> = self.names.iter().cloned().zip(0..).collect();
        let mut numbers = Vec::with_capacity(other.names.len());
        for (name, times) in other.names.into_iter().zip(&other.times) {
            let number = *known.entry(name).or_insert_with_key(|name| {
                self.names.push(name.clone());
                self.times.push(Times::default());
                self.names.len() as u32 - 1
            });
            self.times[number as usize].join(times);
            numbers.push(number);
        }
        let renumbered =
            |totals: ProbeTotals| Some(ProbeTotals { probe: *numbers.get(totals.probe as usize)?, ..totals });
        self.totals.extend(other.totals.into_iter().filter_map(renumbered));
        self.unrecorded = self.unrecorded.saturating_add(other.unrecorded);
        self.uncounted = self.uncounted.or(other.uncounted);
        self.tick_ps = self.tick_ps.max(other.tick_ps);
        self.cost_ps = self.cost_ps.max(other.cost_ps);
    }

    /// True if every index is valid and the rows are in order, with one row per rank and probe.
    pub(crate) fn is_sound(&self, size: u32) -> bool {
        self.names.len() == self.times.len()
            && self.times.iter().all(Times::is_sound)
            && self.totals.iter().all(|t| t.rank.0 < size && (t.probe as usize) < self.names.len())
            && self.totals.windows(2).all(|w| (w[0].probe, w[0].rank) < (w[1].probe, w[1].rank))
    }

    /// Each probe with its name, its sums over all ranks and the times of its entries.
    pub fn over_ranks(&self) -> impl Iterator<Item = (&str, ProbeTotals, &Times)> {
        let mut sums = vec![ProbeTotals::default(); self.names.len()];
        self.totals.iter().for_each(|totals| sums[totals.probe as usize].join(totals));
        self.names.iter().zip(sums).zip(&self.times).map(|((name, sum), times)| (name.as_str(), sum, times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_rank(rank: u32, names: &[&str]) -> Probes {
        let spread = |value: u64| Spread { sum: 2 * value + 1, least: value, most: value + 1 };
        let totals = |probe: usize| ProbeTotals {
            rank: RankId(rank),
            probe: probe as u32,
            threads: 1,
            entries: 2,
            discarded: Discarded { moved: 1, ..Discarded::default() },
            time_ps: spread(1000 + u64::from(rank)),
            ..ProbeTotals::default()
        };
        let mut times = Times::default();
        times.add(1000, 2);
        Probes {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            totals: (0..names.len()).map(totals).collect(),
            times: vec![times; names.len()],
            ..Probes::default()
        }
    }

    #[test]
    fn ranks_are_joined_by_name() {
        let mut probes = of_rank(0, &["a", "b"]);
        probes.join(of_rank(1, &["b", "c"]));
        probes.totals.sort_by_key(|totals| (totals.probe, totals.rank));
        assert_eq!(probes.names, ["a", "b", "c"]);
        assert!(probes.is_sound(2) && !probes.is_sound(1));
        let sums: Vec<_> = probes.over_ranks().collect();
        let (name, b, times) = &sums[1];
        assert_eq!((*name, b.threads, b.entries, b.discarded.all()), ("b", 2, 4, 2));
        assert_eq!(b.time_ps, Spread { sum: 4004, least: 1000, most: 1002 });
        // Without counted entries there is no least count.
        assert_eq!((b.counted, b.cycles), (0, Spread::default()));
        assert_eq!(times.median_ps().map(|ps| (ps / 64.0) as u64), Some(15));
        probes.totals.push(probes.totals[0]);
        assert!(!probes.is_sound(2));
    }
}
