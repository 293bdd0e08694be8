//! How far a time service changed a clock's rate during a run.
//!
//! A time service slews `CLOCK_MONOTONIC` so that it follows the time of day: the Linux kernel and ntpd by up to 500
//! ppm (ntp_adjtime(2)), chronyd by up to 83,333 ppm (chrony.conf(5), maxslewrate). A realistic limit for a quartz
//! oscillator does not cover that. `CLOCK_MONOTONIC_RAW` counts the same oscillator and is never slewed
//! (clock_gettime(2)), so a comparison of the two shows the slew.

use super::stamps::Stamps;
use serde::{Deserialize, Serialize};

/// `CLOCK_MONOTONIC_RAW` around a rank's stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawClock {
    /// From right before t0 to right after t3, ns.
    pub elapsed_ns: i64,
    /// How much longer than t3 - t0 `elapsed_ns` may be (`CLOCK_MONOTONIC`, ns): the time that the readings
    /// themselves take.
    pub slack_ns: i64,
}

impl RawClock {
    /// The least slew (ppm, positive if the clock is fast) that explains the readings; 0 for a rank without
    /// readings.
    pub fn slew_ppm(self, stamps: Stamps) -> f64 {
        let (raw, shortest) = (self.elapsed_ns as f64, stamps.outer_ns() as f64);
        let longest = shortest + self.slack_ns as f64;
        if raw <= 0.0 {
            return 0.0;
        }
        1e6 * ((shortest - raw).max(0.0) + (longest - raw).min(0.0)) / raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slew_ppm(outer_ns: i64, elapsed_ns: i64, slack_ns: i64) -> f64 {
        RawClock { elapsed_ns, slack_ns }.slew_ppm(Stamps::new(7, 8, 9, 7 + outer_ns).unwrap())
    }

    #[test]
    fn only_what_the_readings_prove_is_a_slew() {
        assert_eq!(slew_ppm(1_000_500, 1_000_000, 0), 500.0);
        assert_eq!(slew_ppm(999_500, 1_000_000, 0), -500.0);
        assert_eq!(slew_ppm(999_500, 1_000_000, 400), -100.0);
        assert_eq!(slew_ppm(999_500, 1_000_000, 500), 0.0);
        assert_eq!(slew_ppm(999_500, 1_000_000, 9_000), 0.0);
    }

    #[test]
    fn no_reading_proves_nothing() {
        assert_eq!(RawClock::default().slew_ppm(Stamps::default()), 0.0);
        assert_eq!(slew_ppm(5, 0, 0), 0.0);
    }
}
