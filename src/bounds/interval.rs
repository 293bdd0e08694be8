//! A lower and an upper bound of one value.

use super::drift::to_i64;
use serde::{Deserialize, Serialize};

/// A lower and an upper bound (ns) of a duration, or of an instant relative to a known one. Serde: `[low, high]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[i64; 2]", into = "[i64; 2]")]
pub struct Interval {
    /// The value is at least this.
    pub low: i64,
    /// The value is at most this.
    pub high: i64,
}

impl Interval {
    /// False if the bounds contradict each other: no value lies between them.
    pub fn is_possible(self) -> bool {
        self.low <= self.high
    }
}

impl From<[i64; 2]> for Interval {
    fn from([low, high]: [i64; 2]) -> Self {
        Self { low, high }
    }
}

impl From<Interval> for [i64; 2] {
    fn from(Interval { low, high }: Interval) -> Self {
        [low, high]
    }
}

/// An [`Interval`] before its ends are rounded to 64 bits: a sum of several readings and worst-case rates needs
/// more.
pub(crate) type Between = [i128; 2];

impl From<Between> for Interval {
    fn from(between: Between) -> Self {
        between.map(to_i64).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::wire;

    #[test]
    fn an_interval_is_an_array_of_two_in_a_file() {
        let interval = Interval { low: -3, high: 5 };
        let bytes = wire::encode(&interval).unwrap();
        assert_eq!(bytes, wire::encode(&[-3i64, 5]).unwrap());
        assert_eq!(wire::decode(&bytes), Ok(interval));
    }
}
