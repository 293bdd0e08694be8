//! Values that are not valid, in rows that are.

use super::building::Building;

/// Counts all of them and keeps the first.
#[derive(Default)]
pub(super) struct InvalidValues {
    count: u64,
    first: Vec<(u64, String)>,
}

impl InvalidValues {
    /// Number of values of one column, or of one file, that are kept with a reason.
    const TOLD: usize = 10;

    pub fn add(&mut self, line: u64, reason: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < Self::TOLD {
            self.first.push((line, reason()));
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds them to the rejected values.
    pub fn tell(self, building: &mut Building) {
        building.reject_values(self.count, self.first);
    }
}
