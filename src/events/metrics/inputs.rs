//! The inputs of metrics: counts by name, each with its quality, and quantities.

use crate::validation::EventVerdict;
use pmmpi::counters::count_and_quality::{Quality, Reading};
use pmmpi::counters::open_counters::Scope;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Running share below which a value does not support a verdict.
///
/// The kernel counts multiplexed events in slices of, say, 4 ms and extrapolates. Let n be the number of slices, s
/// the share of slices that were counted, and c the variation of the event's rate from slice to slice (standard
/// deviation over mean). Then the error of the extrapolated count is c sqrt((1 - s) / (s n)), which is the error of a
/// sample of s n out of n. For a run of 10 s (n = 2500) and c = 0.5 the error is 2 % at s = 0.2 and 3 % at s = 0.1.
/// The report gives a verdict on a node from a slowdown of 3 % on.
pub const RUNNING_SHARE_FLOOR: f64 = 0.2;

/// True if a verdict may rest on a value with this running share and this verdict on its events.
pub(super) fn supports_verdict(running_share: Option<f64>, trust: EventVerdict) -> bool {
    running_share.is_none_or(|share| share >= RUNNING_SHARE_FLOOR) && trust != EventVerdict::Unusable
}

/// Counts and quantities by their names in formulas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricInputs {
    counts: BTreeMap<String, MetricInput>,
    quantities: BTreeMap<String, f64>,
}

/// A count.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricInput {
    /// In the event's unit; samples are already multiplied by their period. `None` if it was not counted.
    pub value: Option<f64>,
    /// The quality of the value, or of the missing value.
    pub quality: Quality,
    /// Share of the time in which it was counted, 0 to 1, if known.
    pub running_share: Option<f64>,
    /// Why there is no value, or only a part of it.
    pub reason: Option<String>,
    /// The verdict on the event on this processor.
    pub trust: EventVerdict,
    /// Where it was counted.
    pub scope: Scope,
}

/// The worse of two qualities: exact, scaled, partial, and then those without a value.
pub fn worse(a: Quality, b: Quality) -> Quality {
    let rank = |quality| match quality {
        Quality::Exact => 0,
        Quality::Scaled => 1,
        Quality::Partial => 2,
        Quality::Overflowed => 3,
        Quality::Unavailable => 4,
        Quality::Denied => 5,
        Quality::Unsupported => 6,
    };
    if rank(b) > rank(a) { b } else { a }
}

impl MetricInput {
    /// An exact count.
    pub fn exact(count: u64) -> Self {
        Self {
            value: Some(count as f64),
            quality: Quality::Exact,
            running_share: None,
            reason: None,
            trust: EventVerdict::Unknown,
            scope: Scope::Task,
        }
    }

    /// Samples, each of which stands for `period` events: "it is only meaningful to perform arithmetic on
    /// counts that have the same weight" (AMD 2008, section 3). An estimate, so not exact.
    pub fn samples(samples: u64, period: u64) -> Self {
        let reason = Some(format!("estimated from samples, one in {period} events"));
        let value = Some(samples as f64 * period as f64);
        Self { value, quality: Quality::Scaled, reason, ..Self::exact(0) }
    }

    /// From a reading; one count is `scale` of the event's unit ([`pmmpi::counters::event::Event::scale`]).
    pub fn reading(reading: &Reading, scale: f64) -> Self {
        let value = reading.value().map(|count| count as f64 * scale);
        let quality = reading.quality();
        let running_share = reading.running_share().map(|share| share.clamp(0.0, 1.0));
        // A count that overflows when it is extrapolated has a quality but no value.
        let quality = if value.is_none() && quality.has_value() { Quality::Overflowed } else { quality };
        Self { value, quality, running_share, reason: reading.reason(), ..Self::exact(0) }
    }

    /// False without a value, with a running share below [`super::RUNNING_SHARE_FLOOR`], and with an unusable
    /// event: no verdict may rest on such a count.
    pub fn supports_verdict(&self) -> bool {
        self.value.is_some() && supports_verdict(self.running_share, self.trust)
    }

    /// The sum of both, as of two ranks. It has the worse quality, and no value if one of them has none.
    pub fn plus(self, other: Self) -> Self {
        let quality = worse(self.quality, other.quality);
        let shares = [self.running_share, other.running_share];
        let reason = if quality == self.quality { self.reason } else { other.reason };
        Self {
            value: self.value.zip(other.value).map(|(a, b)| a + b),
            quality,
            running_share: shares.into_iter().flatten().reduce(f64::min),
            reason,
            trust: self.trust.worse(other.trust),
            scope: self.scope,
        }
    }
}

impl MetricInputs {
    /// No inputs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds this count to the one of the same name.
    pub fn with(mut self, name: &str, input: MetricInput) -> Self {
        self.add(name, input);
        self
    }

    /// Sets this quantity.
    pub fn with_quantity(mut self, name: &str, value: f64) -> Self {
        self.set(name, value);
        self
    }

    /// Adds a count to the one of the same name.
    pub fn add(&mut self, name: &str, input: MetricInput) {
        match self.counts.entry(name.to_owned()) {
            Entry::Occupied(mut there) => {
                let sum = there.get().clone().plus(input);
                there.insert(sum);
            }
            Entry::Vacant(place) => _ = place.insert(input),
        }
    }

    /// Sets a quantity.
    pub fn set(&mut self, name: &str, value: f64) {
        self.quantities.insert(name.to_owned(), value);
    }

    /// A count, if it was given.
    pub fn count(&self, name: &str) -> Option<&MetricInput> {
        self.counts.get(name)
    }

    /// All counts, by name.
    pub fn counts(&self) -> impl Iterator<Item = (&str, &MetricInput)> {
        self.counts.iter().map(|(name, input)| (name.as_str(), input))
    }

    /// A quantity, if it was given.
    pub fn quantity(&self, name: &str) -> Option<f64> {
        self.quantities.get(name).copied()
    }
}
