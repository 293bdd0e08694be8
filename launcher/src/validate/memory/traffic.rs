//! The traffic of a test loop at the memory controllers, without the traffic of other programs at the same time.
//!
//! Controllers count all reads and writes of a socket. So before and after each run of the loop, the thread spins for
//! the same time and touches only registers: the counts of these intervals are the background, from other programs and
//! from the counters themselves. The mean of both background rates, times the loop's time, is subtracted from the
//! loop's count. Half the difference of both is the uncertainty of the background.

use pmmpi::counters::count_and_quality::{Gap, Reading, WhyUnavailable};
use pmmpi::counters::counter_table::was_read;
use pmmpi::counters::open_counters::GROUP_HEAD;
use pmmpi::counters::open_counters::{OpenCounters, Opened};
use pmmpi_events::metrics::{MetricInput, MetricInputs};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Gives ns since a fixed instant.
pub type Clock = fn() -> i64;

/// Counts between two snapshots, by name: sums over the controllers of a socket.
#[derive(Clone, Debug)]
pub struct Traffic {
    pub counts: BTreeMap<String, MetricInput>,
    pub ns: f64,
}

/// One run of a kernel, between two intervals without it.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    /// The kernel's traffic: counts minus the background.
    pub net: MetricInputs,
    /// The traffic of others meanwhile.
    pub background: MetricInputs,
    /// The uncertainty of the background.
    pub unsteady: MetricInputs,
}

/// Runs `work` once as a warm-up and then once per element of `into`, each time between two intervals of the same
/// length as the warm-up.
pub fn measure(counters: &mut dyn OpenCounters, clock: Clock, into: &mut [Moved], mut work: impl FnMut()) {
    let words: [Vec<AtomicU64>; 2] =
        std::array::from_fn(|_| (0..counters.opened().words()).map(|_| AtomicU64::new(0)).collect());
    // The warm-up leaves the caches in the state that each run leaves.
    let start = clock();
    work();
    let took = clock().saturating_sub(start);
    let mut wait = || {
        let start = clock();
        while clock().saturating_sub(start) < took {
            std::hint::spin_loop();
        }
    };
    let mut before = section(counters, &words, clock, &mut wait);
    for moved in into {
        let kernel = section(counters, &words, clock, &mut work);
        let after = section(counters, &words, clock, &mut wait);
        moved.add(&before, &kernel, &after);
        before = after;
    }
}

/// Stores the reasons, if no event opens.
pub fn leave_out(opened: &Opened, into: &mut [Moved]) {
    let empty = Traffic { counts: closed(opened), ns: 1.0 };
    into.iter_mut().for_each(|moved| moved.add(&empty, &empty, &empty));
}

fn section(
    counters: &mut dyn OpenCounters,
    words: &[Vec<AtomicU64>; 2],
    clock: Clock,
    work: &mut dyn FnMut(),
) -> Traffic {
    words.iter().flatten().for_each(|word| word.store(0, Relaxed)); // a failed snapshot leaves the old values
    counters.snapshot(&words[0]);
    let start = clock();
    work();
    let ns = clock().saturating_sub(start) as f64;
    counters.snapshot(&words[1]);
    let opened = counters.opened();
    let mut counts = closed(opened);
    for ((handle, start), (_, stop)) in opened.places(&words[0]).zip(opened.places(&words[1])) {
        let Some(set) = opened.sets.get(handle.set as usize) else { continue };
        let group = set.groups.get(handle.group as usize).map_or(&[][..], Vec::as_slice);
        let between = |at: usize| stop[at].load(Relaxed).wrapping_sub(start[at].load(Relaxed));
        for (at, event) in group.iter().enumerate() {
            let Some((event, gap)) = set.events.get(*event as usize) else { continue };
            let reading = if was_read(start) && was_read(stop) {
                let [enabled_ns, running_ns] = [1, 2].map(between);
                Reading { count: between(GROUP_HEAD + at), enabled_ns, running_ns, gap: *gap }
            } else {
                Reading::missing(Gap::Unavailable(WhyUnavailable::Closed))
            };
            add(&mut counts, &event.name, MetricInput::reading(&reading, event.scale));
        }
    }
    Traffic { counts, ns }
}

/// The events that did not open, with the reason.
fn closed(opened: &Opened) -> BTreeMap<String, MetricInput> {
    let mut counts = BTreeMap::new();
    for set in &opened.sets {
        let open = |at: usize| set.groups.iter().flatten().any(|event| *event as usize == at);
        for (at, (event, gap)) in set.events.iter().enumerate() {
            if !open(at) {
                let reading = Reading::missing(gap.unwrap_or(Gap::Unavailable(WhyUnavailable::Closed)));
                add(&mut counts, &event.name, MetricInput::reading(&reading, event.scale));
            }
        }
    }
    counts
}

fn add(counts: &mut BTreeMap<String, MetricInput>, name: &str, input: MetricInput) {
    let sum = match counts.remove(name) {
        Some(there) => there.plus(input),
        None => input,
    };
    counts.insert(name.to_owned(), sum);
}

impl Moved {
    /// Adds the counts of one run of the kernel.
    pub(super) fn add(&mut self, before: &Traffic, kernel: &Traffic, after: &Traffic) {
        for (name, count) in &kernel.counts {
            let others = [before, after].map(|section| Some((section.counts.get(name)?, section.ns)));
            let [Some(before), Some(after)] = others else { continue };
            let rate =
                |(input, ns): (&MetricInput, f64)| Some(input.value? / ns).filter(|rate| rate.is_finite());
            let rates = rate(before).zip(rate(after));
            let share = |of: fn(f64, f64) -> f64| rates.map(|(a, b)| of(a, b) * kernel.ns);
            let (background, unsteady) = (share(|a, b| (a + b) / 2.0), share(|a, b| (a - b).abs() / 2.0));
            let worth = count.clone().plus(before.0.clone()).plus(after.0.clone());
            let net = count.value.zip(background).map(|(count, background)| count - background);
            self.net.add(name, MetricInput { value: net, ..worth.clone() });
            self.background.add(name, MetricInput { value: background, ..worth.clone() });
            self.unsteady.add(name, MetricInput { value: unsteady, ..worth });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(before: &Traffic, kernel: &Traffic, after: &Traffic) -> Moved {
        let mut moved = Moved::default();
        moved.add(before, kernel, after);
        moved
    }

    fn section(count: f64, ns: f64) -> Traffic {
        let input = MetricInput { value: Some(count), ..MetricInput::exact(0) };
        Traffic { counts: [("x".to_owned(), input)].into(), ns }
    }

    fn values(moved: &Moved) -> [f64; 3] {
        [&moved.net, &moved.background, &moved.unsteady]
            .map(|inputs| inputs.count("x").unwrap().value.unwrap())
    }

    #[test]
    fn what_others_move_is_taken_off_by_the_time_that_it_took() {
        let moved = moved(&section(10.0, 100.0), &section(1060.0, 300.0), &section(60.0, 200.0));
        // 0.1 per ns before and 0.3 per ns after.
        let expected = [1000.0, 60.0, 30.0];
        values(&moved).iter().zip(expected).for_each(|(a, b)| assert!((a - b).abs() < 1e-9, "{a} {b}"));
    }

    #[test]
    fn an_interval_of_which_nothing_is_known_leaves_nothing() {
        let mut unknown = section(0.0, 100.0);
        let missing = MetricInput::reading(&Reading::missing(Gap::Unavailable(WhyUnavailable::Closed)), 1.0);
        unknown.counts.insert("x".into(), missing);
        let known = section(1.0, 100.0);
        for [before, kernel, after] in
            [[&unknown, &known, &known], [&known, &unknown, &known], [&known, &known, &unknown]]
        {
            let moved = moved(before, kernel, after);
            let net = moved.net.count("x").unwrap();
            assert_eq!(
                (net.value, net.quality),
                (None, pmmpi::counters::count_and_quality::Quality::Unavailable)
            );
        }
        let nothing = Traffic { counts: BTreeMap::new(), ns: 0.0 };
        assert_eq!(moved(&nothing, &known, &known).net, MetricInputs::new());
        // If the clock does not advance, there is no rate.
        let still = moved(&section(1.0, 0.0), &known, &known);
        assert_eq!(still.net.count("x").unwrap().value, None);
    }

    /// Other programs with constant traffic do not change the result.
    #[test]
    fn a_steady_background_cancels() {
        for rate in [0.0, 1e-3, 7.5, 1e3] {
            for bytes in [0.0, 64.0, 1e9] {
                for [before, kernel, after] in [[1.0, 1.0, 1.0], [3e5, 1e6, 2.0], [1.5, 9e3, 1e6]] {
                    let idle = |ns: f64| section(rate * ns, ns);
                    let moved = moved(&idle(before), &section(bytes + rate * kernel, kernel), &idle(after));
                    let [net, background, unsteady] = values(&moved);
                    let off = 1e-9 * (bytes + rate * kernel) + 1e-9;
                    assert!((net - bytes).abs() <= off && (background - rate * kernel).abs() <= off);
                    assert!(unsteady <= off, "{rate} {bytes}");
                }
            }
        }
    }
}
