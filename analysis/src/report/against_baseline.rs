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
    /// The class of these nodes in the screen.
    pub class: Option<String>,
    /// Number of nodes that the screen and the earlier screen have.
    pub nodes: usize,
    /// Number of nodes of this class with a time of this kernel in the screen.
    pub nodes_in_screen: usize,
    /// The screen of the baseline with which pmmpi compares.
    pub earlier: Option<EarlierScreen>,
    /// The median over these nodes of time now / time in the baseline - 1: 0.03 is 3 % slower.
    pub change: Option<f64>,
    /// An interval for this median: at least 93.75 %.
    pub ci: Option<[f64; 2]>,
    /// True if the class as a whole became slower or faster; `None` if the runs do not show whether it did.
    pub moved: Option<bool>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, String>,
}

/// A screen of the baseline.
#[derive(Debug, Serialize)]
pub struct EarlierScreen {
    /// Its first run with this kernel on these nodes.
    pub run_id: String,
    /// The start of this run (ns since 1970).
    pub started_unix_ns: i64,
}

impl KernelAgainst {
    /// A kernel that pmmpi cannot compare, and why.
    pub fn not_compared(kernel: &str, class: Option<&str>, nodes_in_screen: usize, why: String) -> Self {
        let keys = ["earlier", "change", "ci", "moved"];
        let keys = keys.into_iter().chain(class.is_none().then_some("class"));
        Self {
            kernel: kernel.to_owned(),
            class: class.map(str::to_owned),
            nodes: 0,
            nodes_in_screen,
            earlier: None,
            change: None,
            ci: None,
            moved: None,
            null_reasons: keys.map(|key| (key, why.clone())).collect(),
        }
    }

    /// True if the class as a whole is certainly slower than in the baseline.
    pub fn is_slower(&self) -> bool {
        self.moved == Some(true) && self.change.is_some_and(|change| change > 0.0)
    }
}
