//! The latest screen next to a baseline that the user named: whether the class of a kernel moved.

use serde::Serialize;
use std::collections::BTreeMap;

/// All kernels of the screen.
#[derive(Debug, Serialize)]
pub struct AgainstBaseline {
    /// The paths of the baseline, as the user typed them.
    pub baseline: Vec<String>,
    /// By name; a kernel with several classes has an entry for each, the largest class first.
    pub kernels: Vec<KernelAgainst>,
}

/// A kernel on the nodes of a class.
#[derive(Debug, Serialize)]
pub struct KernelAgainst {
    /// Its name.
    pub kernel: String,
    /// What the nodes have in common, in the screen and in the baseline.
    pub class: Option<String>,
    /// Number of nodes that both have.
    pub nodes: usize,
    /// The median over these nodes of time now / time in the baseline - 1: 0.03 is 3 % slower.
    pub change: Option<f64>,
    /// An interval for this median: at least 93.75 %.
    pub ci: Option<[f64; 2]>,
    /// True if the class as a whole became slower or faster; `None` if the runs do not show whether it did.
    pub moved: Option<bool>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, String>,
}

impl KernelAgainst {
    /// A kernel that pmmpi cannot compare.
    pub fn not_compared(kernel: &str) -> Self {
        const WHY: &str =
            "the baseline has no time of this kernel with the same options on a node of this screen";
        let keys = ["class", "change", "ci", "moved"];
        Self {
            kernel: kernel.to_owned(),
            class: None,
            nodes: 0,
            change: None,
            ci: None,
            moved: None,
            null_reasons: keys.map(|key| (key, WHY.to_owned())).into(),
        }
    }

    /// True if the class as a whole is certainly slower than in the baseline.
    pub fn is_slower(&self) -> bool {
        self.moved == Some(true) && self.change.is_some_and(|change| change > 0.0)
    }
}
