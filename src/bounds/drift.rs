//! The limit on every clock's rate error, and what a measured duration proves under it.

use serde::{Deserialize, Serialize};

/// The hard limit on any clock's rate error, in parts per billion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct MaxDrift {
    ppb: u32,
}

impl TryFrom<u32> for MaxDrift {
    type Error = &'static str;

    fn try_from(ppb: u32) -> Result<Self, Self::Error> {
        if ppb <= Self::LARGEST.ppb { Ok(Self { ppb }) } else { Err("a rate error above 10 %") }
    }
}

impl From<MaxDrift> for u32 {
    fn from(drift: MaxDrift) -> Self {
        drift.ppb
    }
}

impl MaxDrift {
    /// 100 ppm: twice the specified error of a quartz oscillator without any discipline.
    pub const DEFAULT: Self = Self { ppb: 100_000 };

    const LARGEST: Self = Self { ppb: 100_000_000 };
    #[cfg(test)]
    pub(super) const NONE: Self = Self { ppb: 0 };

    /// From parts per million, rounded up to ppb; `None` outside 0 to 100,000 (10 %) and for NaN.
    pub fn from_ppm(ppm: f64) -> Option<Self> {
        (0.0..=100_000.0).contains(&ppm).then(|| Self { ppb: (ppm * 1000.0).ceil() as u32 })
    }

    /// Adds `ppm`; the result is at most 10 %.
    pub fn plus(self, ppm: f64) -> Self {
        Self::from_ppm(self.ppm() + ppm).unwrap_or(Self::LARGEST)
    }

    /// In parts per million.
    pub fn ppm(self) -> f64 {
        f64::from(self.ppb) / 1000.0
    }

    const BILLION: i128 = 1_000_000_000;

    /// The shortest true duration that a clock can show as `measured_ns`, rounded down.
    pub(crate) fn shortest(self, measured_ns: i128) -> i128 {
        let rate = if measured_ns >= 0 { Self::BILLION + self.ppb() } else { Self::BILLION - self.ppb() };
        (measured_ns * Self::BILLION).div_euclid(rate)
    }

    /// The longest true duration that a clock can show as `measured_ns`, rounded up.
    pub(crate) fn longest(self, measured_ns: i128) -> i128 {
        -self.shortest(-measured_ns)
    }

    /// The shortest true duration (ns) that one clock can show as `measured_ns`.
    pub fn at_least(self, measured_ns: i64) -> i64 {
        to_i64(self.shortest(measured_ns.into()))
    }

    /// The longest true duration (ns) that one clock can show as `measured_ns`.
    pub fn at_most(self, measured_ns: i64) -> i64 {
        to_i64(self.longest(measured_ns.into()))
    }

    fn ppb(self) -> i128 {
        i128::from(self.ppb)
    }
}

pub(crate) fn to_i64(ns: i128) -> i64 {
    ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// The least rate error for which `explains` is true; `None` if it is false at 10 %. `explains` must also be true
/// for all larger errors.
pub(super) fn least(explains: impl Fn(MaxDrift) -> bool) -> Option<MaxDrift> {
    let (mut below, mut above) = (0, MaxDrift::LARGEST.ppb);
    if !explains(MaxDrift::LARGEST) {
        return None;
    }
    while below < above {
        let middle = below.midpoint(above);
        if explains(MaxDrift { ppb: middle }) { above = middle } else { below = middle + 1 }
    }
    Some(MaxDrift { ppb: above })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_bounded_and_rounds_outward() {
        assert_eq!(MaxDrift::from_ppm(100.0), Some(MaxDrift::DEFAULT));
        assert_eq!(MaxDrift::from_ppm(f64::NAN), None);
        assert_eq!(MaxDrift::from_ppm(-1.0), None);
        assert_eq!(MaxDrift::DEFAULT.shortest(1), 0);
        assert_eq!(MaxDrift::DEFAULT.longest(1), 2);
        assert_eq!(MaxDrift::DEFAULT.longest(-10_001), -10_000);
        assert_eq!(MaxDrift::NONE.longest(7), 7);
        assert_eq!(MaxDrift::NONE.plus(5.5).ppm(), 5.5);
        assert_eq!(MaxDrift::DEFAULT.plus(1e9), MaxDrift::LARGEST);
        // A file may hold any value.
        let stored =
            |ppb: u32| crate::record::wire::decode::<MaxDrift>(&crate::record::wire::encode(&ppb).unwrap());
        assert_eq!(stored(100_000), Ok(MaxDrift::DEFAULT));
        assert!(stored(100_000_001).is_err());
    }
}
