//! How often a method is right.

/// Counts over several fleets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    pub fleets: usize,
    /// Number of slow nodes that were found.
    pub found: usize,
    /// Number of slow nodes.
    pub slow: usize,
    /// Number of nodes slower than 5 % that were found.
    pub much_found: usize,
    /// Number of nodes slower than 5 %.
    pub much: usize,
    /// Number of nodes that were found but are not slow.
    pub wrong: usize,
}

impl Score {
    /// Adds one fleet: `said` is the finding for each node, `slow_by` its true slowdown as a fraction.
    pub fn add(&mut self, said: &[bool], slow_by: &[f64]) {
        self.fleets += 1;
        for (said, slow_by) in said.iter().zip(slow_by) {
            let (is_slow, is_much) = (*slow_by > 0.0, *slow_by > 0.05);
            self.slow += usize::from(is_slow);
            self.much += usize::from(is_much);
            self.found += usize::from(*said && is_slow);
            self.much_found += usize::from(*said && is_much);
            self.wrong += usize::from(*said && !is_slow);
        }
    }

    /// The share of findings that are right; 1 without findings.
    pub fn precision(&self) -> f64 {
        share(self.found, self.found + self.wrong)
    }

    /// The share of slow nodes that was found.
    pub fn recall(&self) -> f64 {
        share(self.found, self.slow)
    }

    /// The share of nodes slower than 5 % that was found.
    pub fn recall_of_much(&self) -> f64 {
        share(self.much_found, self.much)
    }

    /// False findings per fleet.
    pub fn wrong_per_fleet(&self) -> f64 {
        self.wrong as f64 / self.fleets as f64
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}
