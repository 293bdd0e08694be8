//! Probes: short sections of threads that programs named.

use super::null_reasons::RunNullReason;
use crate::warnings::RunWarning;
use pmmpi::counters::count_and_quality::{Gap, WhyUnavailable};
use pmmpi::counters::expected::instructions_of;
use pmmpi::probes::{Discarded, ProbeTotals, Probes, Times};
use pmmpi::record::Run;
use serde::Serialize;
use std::collections::BTreeMap;

/// The probes of one run, and how exact they are.
#[derive(Debug, Serialize)]
pub struct ProbesReport {
    /// The probes, in the order of their first entry.
    pub probes: Vec<ProbeReport>,
    /// Time between two ticks of the clock, at most (ns).
    pub tick_ns: f64,
    /// Time that pmmpi adds to the program for each entry, at most (ns).
    pub cost_ns: f64,
    /// Entries that were not recorded.
    pub unrecorded: u64,
    /// Why threads have no counts, if some have none.
    pub uncounted: Option<RunNullReason>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, RunNullReason>,
}

/// One probe of one run. All values are of the entries that were kept.
#[derive(Debug, Serialize)]
pub struct ProbeReport {
    /// The name in the program.
    pub name: String,
    /// Ranks that entered the probe.
    pub ranks: usize,
    /// Threads that entered it, over all ranks.
    pub threads: u32,
    /// Entries that were kept.
    pub entries: u64,
    /// Entries that were discarded, by reason.
    pub discarded: DiscardedReport,
    /// The least time of an entry (ns).
    pub min_ns: Option<f64>,
    /// The median of the times, within 10 % or one tick of the clock (ns).
    pub median_ns: Option<f64>,
    /// The mean of the times (ns).
    pub mean_ns: Option<f64>,
    /// The longest time (ns).
    pub max_ns: Option<f64>,
    /// Entries with counts.
    pub counted: u64,
    /// Mean cycles of an entry, in user mode.
    pub cycles: Option<f64>,
    /// Mean instructions of an entry, in user mode.
    pub instructions: Option<f64>,
    /// The least and the most instructions of an entry.
    pub instructions_range: Option<[u64; 2]>,
    /// Mean instructions divided by what `--expect` gives for an entry.
    pub instructions_to_expected: Option<f64>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, RunNullReason>,
}

/// Entries that were discarded.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DiscardedReport {
    /// The clock went backwards.
    pub negative: u64,
    /// The entry ended on another hardware thread.
    pub moved: u64,
    /// Cycles per time were not as usual.
    pub rate: u64,
}

/// The probes of a run; `None` if the program has none.
pub fn of(run: &Run) -> Option<ProbesReport> {
    let Probes { tick_ps, cost_ps, unrecorded, uncounted, .. } = &run.probes;
    let probes: Vec<ProbeReport> = run
        .probes
        .over_ranks()
        .enumerate()
        .map(|(number, (name, totals, times))| {
            let is_of = |of: &&ProbeTotals| of.probe as usize == number;
            let ranks = run.probes.totals.iter().filter(is_of).count();
            let expected = instructions_of(&run.expected, Some(name));
            ProbeReport::new(name, ranks, &totals, times, expected, *uncounted)
        })
        .collect();
    let mut null_reasons = BTreeMap::new();
    if uncounted.is_none() {
        null_reasons.insert("uncounted", RunNullReason::AllThreadsCounted);
    }
    (!probes.is_empty()).then(|| ProbesReport {
        probes,
        tick_ns: *tick_ps as f64 / 1e3,
        cost_ns: *cost_ps as f64 / 1e3,
        unrecorded: *unrecorded,
        uncounted: uncounted.map(RunNullReason::NotCounted),
        null_reasons,
    })
}

impl ProbeReport {
    fn new(
        name: &str,
        ranks: usize,
        totals: &ProbeTotals,
        times: &Times,
        expected: Option<u64>,
        uncounted: Option<Gap>,
    ) -> Self {
        let ProbeTotals { threads, entries, counted, time_ps, cycles, instructions, .. } = *totals;
        let ns = |ps: u64| ps as f64 / 1e3;
        let timed = (entries > 0).then_some(time_ps);
        let [least, most] = [time_ps.least, time_ps.most].map(|ps| ps as f64);
        let mean = |sum: u64| (counted > 0).then(|| sum as f64 / counted as f64);
        let never = Gap::Unavailable(WhyUnavailable::NeverScheduled);
        let lack = match timed {
            None => RunNullReason::AllDiscarded,
            Some(_) => RunNullReason::NotCounted(uncounted.unwrap_or(never)),
        };
        let mut null_reasons = BTreeMap::new();
        if timed.is_none() {
            for key in ["min_ns", "median_ns", "mean_ns", "max_ns"] {
                null_reasons.insert(key, RunNullReason::AllDiscarded);
            }
        }
        if counted == 0 {
            for key in ["cycles", "instructions", "instructions_range"] {
                null_reasons.insert(key, lack.clone());
            }
        }
        let instructions_to_expected =
            mean(instructions.sum).zip(expected).map(|(mean, expected)| mean / expected as f64);
        if instructions_to_expected.is_none() {
            let why = match expected {
                Some(_) => lack,
                None => RunNullReason::NoInstructionsExpected { probe: name.to_owned() },
            };
            null_reasons.insert("instructions_to_expected", why);
        }
        Self {
            name: name.to_owned(),
            ranks,
            threads,
            entries,
            discarded: totals.discarded.into(),
            min_ns: timed.map(|of| ns(of.least)),
            // A bucket may reach beyond the values in it.
            median_ns: times.median_ps().filter(|_| least <= most).map(|ps| ps.clamp(least, most) / 1e3),
            mean_ns: timed.map(|of| ns(of.sum) / entries as f64),
            max_ns: timed.map(|of| ns(of.most)),
            counted,
            cycles: mean(cycles.sum),
            instructions: mean(instructions.sum),
            instructions_range: (counted > 0).then_some([instructions.least, instructions.most]),
            instructions_to_expected,
            null_reasons,
        }
    }
}

impl From<Discarded> for DiscardedReport {
    fn from(Discarded { negative, moved, rate }: Discarded) -> Self {
        Self { negative, moved, rate }
    }
}

impl DiscardedReport {
    /// For all reasons.
    pub fn all(self) -> u64 {
        let Self { negative, moved, rate } = self;
        Discarded { negative, moved, rate }.all()
    }
}

/// Warns of entries that were not recorded.
pub fn warning(run: &Run) -> Option<RunWarning> {
    let entries = run.probes.unrecorded;
    (entries > 0).then_some(RunWarning::ProbesLeftOut { entries })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Even if another thread has no counters.
    #[test]
    fn discarded_entries_are_the_reason_of_missing_times_and_counts() {
        let discarded = Discarded { moved: 3, ..Discarded::default() };
        let totals = ProbeTotals { discarded, ..ProbeTotals::default() };
        for uncounted in [None, Some(Gap::Unavailable(WhyUnavailable::Off))] {
            let report = ProbeReport::new("p", 1, &totals, &Times::default(), Some(5), uncounted);
            for key in ["min_ns", "cycles", "instructions_range", "instructions_to_expected"] {
                assert_eq!(report.null_reasons[key], RunNullReason::AllDiscarded, "{key}");
            }
        }
    }
}
