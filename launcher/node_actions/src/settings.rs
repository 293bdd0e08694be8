//! What the caller asks for.

use crate::error::Error;
use crate::measurement::Measurement;
use serde::Deserialize;
use std::path::PathBuf;

/// The name of the feature, unless the caller names another.
const FEATURE: &str = "pmmpi_slow";
/// The name of each feature of pmmpi begins with this, so that pmmpi never removes a feature of the site.
const FEATURE_START: &str = "pmmpi";
const MOST_FEATURE_BYTES: usize = 64;

/// A node that `pmmpi screen` found slow.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Finding {
    /// The name of its host, with or without the domain, or its name in Slurm.
    pub node: String,
    /// What is slow, for example `pmmpi: slow-memory: +8.1 % (at least 7.4 %) 20261126-xyz`.
    pub reason: String,
    /// The kernels in which it is slow or wrong, or the user's program.
    #[serde(default)]
    pub found_by: Vec<Measurement>,
}

/// A kernel that all nodes that passed ran.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MeasuredKernel {
    /// The kernel with its options, or the user's program.
    #[serde(flatten)]
    pub ran: Measurement,
    /// What is slow if this kernel is slow, for example `memory`: see [`Finding::reason`].
    pub area: String,
}

/// How pmmpi marks a slow node. A node that passed loses this mark, and no other mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Drains the node, with the finding as reason. Running jobs go on.
    Drain,
    /// Appends `[pmmpi: ...]` to the node's comment.
    Comment,
    /// Adds this feature to the node's available and active features.
    Feature(String),
}

impl Action {
    /// The feature `pmmpi_slow`.
    pub fn feature() -> Self {
        Self::Feature(FEATURE.to_owned())
    }
}

/// Settings of [`run`](crate::run).
#[derive(Clone, Debug)]
pub struct ActionSettings {
    /// How to mark slow nodes.
    pub action: Action,
    /// The most nodes that may carry pmmpi's mark at once. `None`: 5 % of the fleet, at least 1 and at most 10.
    pub max_nodes: Option<u32>,
    /// What the nodes that passed have passed: the mark of a node that something else found slow stays.
    pub kernels: Vec<MeasuredKernel>,
    /// The number of nodes that were screened.
    pub fleet: u32,
    /// False: decide, but change nothing and write no journal (dry run).
    pub apply: bool,
    /// The journal; all runs on a cluster must use the same file, and runs on another cluster another file.
    pub log: PathBuf,
}

impl ActionSettings {
    /// Refuses a feature that could be the site's own.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Action::Feature(name) = &self.action else { return Ok(()) };
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if name.starts_with(FEATURE_START) && name.len() <= MOST_FEATURE_BYTES && name.bytes().all(is_plain) {
            return Ok(());
        }
        Err(Error::Setting(format!(
            "pmmpi cannot use the feature {name:?}: its name must begin with {FEATURE_START}, so that pmmpi never removes \
             a feature of the site; use at most {MOST_FEATURE_BYTES} letters, digits and _, for example {FEATURE}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_of_the_site_is_refused() {
        let check = |action| {
            let (kernels, log) = (Vec::new(), PathBuf::new());
            ActionSettings { action, max_nodes: None, kernels, fleet: 1, apply: true, log }.check().is_ok()
        };
        assert!(check(Action::Drain) && check(Action::Comment) && check(Action::feature()));
        for name in ["gpu", "", "pmmpi slow", "pmmpi,gpu", "pmmpi=", "pmmpi&a", &"pmmpi".repeat(20)] {
            assert!(!check(Action::Feature(name.to_owned())), "{name}");
        }
    }
}
