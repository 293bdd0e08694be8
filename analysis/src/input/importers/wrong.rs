//! Values that make no sense, in rows that do.

use super::building::Building;

/// All are counted, the first are told.
#[derive(Default)]
pub(super) struct Wrong {
    count: u64,
    first: Vec<(u64, String)>,
}

impl Wrong {
    /// Of one column, or of one file.
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

    /// Counts them as rejected.
    pub fn tell(self, building: &mut Building) {
        building.reject_values(self.count, self.first);
    }
}
