//! Where in a region a rank is, or was when it ended.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a rank is in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum At {
    /// At the first barrier: it waits for other ranks.
    Begin = 0,
    /// It works.
    Inside = 1,
    /// At the last barrier: it waits for other ranks.
    End = 2,
}

/// In which region a rank is, and where in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Whereabouts {
    /// The region's name.
    pub region: String,
    /// Where in it.
    pub at: At,
}

impl fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = match self.at {
            At::Begin => "at the start of",
            At::Inside => "in",
            At::End => "at the end of",
        };
        write!(f, "{at} region `{}`", self.region)
    }
}
