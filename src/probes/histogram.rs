//! How often each time occurred, in buckets whose width grows with the time.

use serde::{Deserialize, Serialize};

/// Each power of two has 16 buckets, so a bucket is at most 1/16 of its value wide.
const STEPS_BITS: u32 = 4;
const STEPS: u64 = 1 << STEPS_BITS;
/// Larger values are in the last bucket.
const MOST_BITS: u32 = 48;

/// Number of buckets.
pub const BUCKETS: usize = ((MOST_BITS - STEPS_BITS + 1) as usize) << STEPS_BITS;

/// The bucket of a value.
#[inline]
pub fn bucket(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - STEPS_BITS;
    let at = ((u64::from(shift) + 1) << STEPS_BITS) + ((value >> shift) & (STEPS - 1));
    (at as usize).min(BUCKETS - 1)
}

/// The smallest value of a bucket, and the smallest one of the next bucket.
pub fn limits(bucket: usize) -> [u64; 2] {
    let (power, step) = (bucket as u64 >> STEPS_BITS, bucket as u64 & (STEPS - 1));
    match power {
        0 => [step, step + 1],
        _ => [(STEPS + step) << (power - 1), (STEPS + step + 1) << (power - 1)],
    }
}

/// Times of many entries, in picoseconds: for each bucket that is not empty, its number and its entries. The numbers
/// rise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times(Vec<(u16, u64)>);

impl Times {
    /// Adds entries that took this time (ps).
    pub fn add(&mut self, time_ps: u64, entries: u64) {
        let bucket = bucket(time_ps) as u16;
        match self.0.binary_search_by_key(&bucket, |(known, _)| *known) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(entries),
            Err(at) => self.0.insert(at, (bucket, entries)),
        }
    }

    /// Adds the entries of other ranks.
    pub(super) fn join(&mut self, other: &Self) {
        other.0.iter().for_each(|(bucket, entries)| self.add(limits((*bucket).into())[0], *entries));
    }

    /// The median (ps); `None` without entries. It is in the right bucket, so it is wrong by 1/16 at most.
    pub fn median_ps(&self) -> Option<f64> {
        let all: u128 = self.0.iter().map(|(_, entries)| u128::from(*entries)).sum();
        let half = all as f64 / 2.0;
        let mut before = 0.0;
        for (bucket, entries) in &self.0 {
            let entries = *entries as f64;
            if entries > 0.0 && before + entries >= half {
                let [from, to] = limits((*bucket).into()).map(|limit| limit as f64);
                return Some(from + (to - from) * (half - before) / entries);
            }
            before += entries;
        }
        None
    }

    /// True if the numbers of the buckets rise and exist.
    pub(super) fn is_sound(&self) -> bool {
        self.0.windows(2).all(|pair| pair[0].0 < pair[1].0)
            && self.0.iter().all(|(bucket, _)| usize::from(*bucket) < BUCKETS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_buckets_follow_one_another() {
        for at in 0..BUCKETS {
            let [from, to] = limits(at);
            assert_eq!((bucket(from), bucket(to - 1)), (at, at), "{at}");
            assert!(to - from <= (from / STEPS).max(1));
            assert_eq!(to, limits(at + 1)[0]);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn a_median_is_in_its_bucket(mut values in prop::collection::vec(1u64..1 << 40, 1..200)) {
            let mut halves = [Times::default(), Times::default()];
            values.iter().enumerate().for_each(|(at, value)| halves[at % 2].add(*value, 1));
            let [mut times, other] = halves;
            times.join(&other);
            prop_assert!(times.is_sound());
            values.sort_unstable();
            let middle = [values[(values.len() - 1) / 2], values[values.len() / 2]].map(|value| value as f64);
            let median = times.median_ps().unwrap();
            prop_assert!(median >= middle[0] * (1.0 - 1.0 / 16.0) && median <= middle[1] * (1.0 + 1.0 / 16.0) + 1.0);
        }
    }
}
