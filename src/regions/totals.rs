//! Parts of a program's work that it names itself, each entry between barriers of its own.
//!
//! Each entry is `t0; barrier; t1; REGION; t2; barrier; t3`, as for the whole work. A rank adds up its entries in a
//! [`RegionTable`](crate::session::live_regions::RegionTable), so that thousands of them take no more memory than
//! one. Let W_1 .. W_n be the true durations of n entries (from the first rank's t1 to the last rank's t2). For each
//! rank, t2 - t1 is at most W_i and t3 - t0 at least W_i. Added over the entries, this gives
//!
//! max over ranks of sum (t2 - t1) <= W_1 + .. + W_n <= min over ranks of sum (t3 - t0).
//!
//! Each sum is on one clock, so no clock's offset matters. The error of its rate counts as in [`crate::bounds`].

use crate::bounds::MaxDrift;
use crate::ids::RankId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Most regions of one program. Entries of further regions are not recorded.
pub const MOST: usize = 255;

/// The regions of some ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regions {
    /// Names of the regions, each once.
    pub names: Vec<String>,
    /// One row per rank and region.
    pub totals: Vec<RegionTotals>,
    /// Ranks that called MPI_Pcontrol(0), and how long they were paused (ns).
    pub paused: Vec<(RankId, i64)>,
    /// Entries that were not recorded, over all ranks: of regions beyond the first [`MOST`](crate::regions::MOST)
    /// of a rank, nested too deeply, or with a failed barrier.
    pub unrecorded: u64,
}

/// One rank's entries of one region, added up (ns of its own clock).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionTotals {
    /// The rank.
    pub rank: RankId,
    /// Index into [`Regions::names`].
    pub region: u32,
    /// How often it was entered and left.
    pub entries: u64,
    /// A checksum of the entries' numbers: times of different entries must not be compared.
    pub which: u32,
    /// Sum of t1 - t0.
    pub start_barrier_ns: i64,
    /// Sum of t2 - t1.
    pub inner_ns: i64,
    /// Sum of t3 - t2.
    pub end_barrier_ns: i64,
    /// Least t2 - t1.
    pub shortest_ns: i64,
    /// Largest t2 - t1.
    pub longest_ns: i64,
}

impl RegionTotals {
    /// Sum of t3 - t0.
    pub fn outer_ns(&self) -> i64 {
        self.start_barrier_ns.saturating_add(self.inner_ns).saturating_add(self.end_barrier_ns)
    }
}

/// How long a job was in one region, over all its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionBounds<'a> {
    /// Its name.
    pub name: &'a str,
    /// How often each rank entered it; `None` if the ranks did not count the same entries.
    pub entries: Option<u64>,
    /// Not shorter than this (ns).
    pub lower_ns: i64,
    /// Not longer than this (ns).
    pub upper_ns: i64,
    /// The rank with the longest time between the region's barriers, and this time (ns).
    pub slowest: (RankId, i64),
    /// Mean over ranks of their time between the barriers (ns).
    pub mean_ns: i64,
    /// Mean over ranks of their time at the barriers that end it (ns).
    pub mean_wait_ns: i64,
    /// The shortest and the longest entry of any rank, between its barriers (ns).
    pub entry_ns: [i64; 2],
    /// Mean over all entries of all ranks of the time between the barriers (ns).
    pub mean_entry_ns: i64,
}

impl Regions {
    /// Adds the regions of other ranks.
    pub fn join(&mut self, other: Self) {
        let mut known: HashMap<String, u32> = self.names.iter().cloned().zip(0..).collect();
        let mut numbers = Vec::with_capacity(other.names.len());
        for name in other.names {
            numbers.push(*known.entry(name).or_insert_with_key(|name| {
                self.names.push(name.clone());
                self.names.len() as u32 - 1
            }));
        }
        let renumbered = |totals: RegionTotals| {
            let region = *numbers.get(totals.region as usize)?;
            Some(RegionTotals { region, ..totals })
        };
        self.totals.extend(other.totals.into_iter().filter_map(renumbered));
        self.paused.extend(other.paused);
        self.unrecorded = self.unrecorded.saturating_add(other.unrecorded);
    }

    /// True if every index is valid and the rows are in order, with one row per rank and region.
    pub(crate) fn is_sound(&self, size: u32) -> bool {
        self.totals.iter().all(|t| t.rank.0 < size && (t.region as usize) < self.names.len())
            && self.totals.windows(2).all(|w| (w[0].region, w[0].rank) < (w[1].region, w[1].rank))
            && self.paused.iter().all(|(rank, _)| rank.0 < size)
    }

    /// The bounds of each region, by region number. `ranks` is the expected number of ranks.
    pub fn bounds(&self, ranks: usize, drift: MaxDrift) -> Vec<RegionBounds<'_>> {
        let mut rows: Vec<Vec<&RegionTotals>> = vec![Vec::new(); self.names.len()];
        self.totals.iter().filter(|t| t.entries > 0).for_each(|t| rows[t.region as usize].push(t));
        let named = self.names.iter().zip(rows);
        named.filter_map(|(name, rows)| RegionBounds::of(name, &rows, ranks, drift)).collect()
    }
}

impl<'a> RegionBounds<'a> {
    /// From the rows of one region; `None` without any.
    fn of(name: &'a str, rows: &[&RegionTotals], ranks: usize, drift: MaxDrift) -> Option<Self> {
        let slowest = rows.iter().max_by_key(|t| t.inner_ns)?;
        let outer_ns = rows.iter().map(|t| t.outer_ns()).min()?;
        let entries = |t: &RegionTotals| (t.entries, t.which);
        let same = rows.len() == ranks && rows.iter().all(|t| entries(t) == entries(slowest));
        let mean = |of: fn(&RegionTotals) -> i64| {
            let sum: i128 = rows.iter().map(|t| i128::from(of(t))).sum();
            (sum / rows.len() as i128) as i64
        };
        Some(Self {
            name,
            entries: same.then_some(slowest.entries),
            lower_ns: drift.at_least(slowest.inner_ns),
            upper_ns: drift.at_most(outer_ns),
            slowest: (slowest.rank, slowest.inner_ns),
            mean_ns: mean(|t| t.inner_ns),
            mean_wait_ns: mean(|t| t.end_barrier_ns),
            mean_entry_ns: {
                let time_ns: i128 = rows.iter().map(|t| i128::from(t.inner_ns)).sum();
                let entries: i128 = rows.iter().map(|t| i128::from(t.entries)).sum();
                (time_ns / entries.max(1)) as i64
            },
            entry_ns: [rows.iter().map(|t| t.shortest_ns).min()?, rows.iter().map(|t| t.longest_ns).max()?],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::live_regions::{Recorder, RegionTable};
    #[test]
    fn ranks_that_name_regions_in_another_order_are_joined_by_name() {
        let of = |rank: u32, ended_first: [&str; 2], inner_ns: i64| {
            let table = RegionTable::boxed();
            let mut recorder = Recorder::without_counters(&table);
            ["a", "bb"].iter().for_each(|name| _ = recorder.begin(name.as_bytes(), 0, 10));
            for name in ended_first {
                recorder.end(name.as_bytes(), 10 + inner_ns + name.len() as i64, 200);
            }
            table.regions(RankId(rank))
        };
        let mut regions = of(0, ["a", "bb"], 50);
        regions.join(of(1, ["bb", "a"], 60));
        assert_eq!(regions.names, ["a", "bb"]);
        let bounds = regions.bounds(2, MaxDrift::from_ppm(0.0).unwrap());
        assert_eq!((bounds[1].name, bounds[1].entries, bounds[1].slowest), ("bb", Some(1), (RankId(1), 62)));
        assert_eq!((bounds[1].lower_ns, bounds[1].upper_ns, bounds[1].entry_ns), (62, 200, [52, 62]));
        assert_eq!(bounds[1].mean_wait_ns, (138 + 128) / 2);
        assert_eq!(regions.bounds(3, MaxDrift::DEFAULT)[0].entries, None, "one rank was never there");
    }

    /// Ranks that pause in different entries have sums over different times.
    #[test]
    fn ranks_that_counted_other_entries_are_not_compared() {
        let of = |rank: u32, paused: i64| {
            let table = RegionTable::boxed();
            let mut recorder = Recorder::without_counters(&table);
            for entry in 1..=3 {
                recorder.begin(b"a", entry * 100, entry * 100 + 1);
                if entry == paused {
                    table.pause(1);
                }
                recorder.end(b"a", entry * 100 + 50, entry * 100 + 51);
                table.resume(2);
            }
            table.regions(RankId(rank))
        };
        let entries = |other: i64| {
            let mut regions = of(0, 1);
            regions.join(of(1, other));
            regions.bounds(2, MaxDrift::DEFAULT)[0].entries
        };
        assert_eq!((entries(1), entries(2)), (Some(2), None));
    }

    /// A duplicate row of one rank would take the place of a missing rank.
    #[test]
    fn a_row_that_is_there_twice_is_refused() {
        let table = RegionTable::boxed();
        let mut recorder = Recorder::without_counters(&table);
        recorder.begin(b"a", 0, 1);
        recorder.end(b"a", 2, 3);
        let mut regions = table.regions(RankId(1));
        assert!(regions.is_sound(2) && !regions.is_sound(1));
        regions.totals.push(regions.totals[0]);
        assert!(!regions.is_sound(2));
    }
}
