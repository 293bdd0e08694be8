//! How often a method is right.

/// Counted over fleets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    pub fleets: usize,
    /// Slow and found.
    pub found: usize,
    /// Slow.
    pub slow: usize,
    /// Slower than 5 % and found.
    pub much_found: usize,
    /// Slower than 5 %.
    pub much: usize,
    /// Found and not slow.
    pub wrong: usize,
}

impl Score {
    /// One fleet more: what was said of each node, against the fraction that it is slow by.
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

    /// Of all said to be slow, the share that is. 1 where nothing was said.
    pub fn precision(&self) -> f64 {
        share(self.found, self.found + self.wrong)
    }

    /// Of all slow ones, the share that was found.
    pub fn recall(&self) -> f64 {
        share(self.found, self.slow)
    }

    /// Of those slower than 5 %.
    pub fn recall_of_much(&self) -> f64 {
        share(self.much_found, self.much)
    }

    /// Found and not slow, in a fleet.
    pub fn wrong_per_fleet(&self) -> f64 {
        self.wrong as f64 / self.fleets as f64
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}
