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
    /// True for a class that pmmpi does not compare, because these are fewer than 5 nodes, and fewer than half of all
    /// nodes (of any class) that have a time of this kernel in the screen.
    pub too_small: bool,
    /// The screen of the baseline with which pmmpi compares.
    pub earlier: Option<EarlierScreen>,
    /// The median over these nodes of time now / time in the baseline - 1: 0.03 is 3 % slower.
    pub change: Option<f64>,
    /// An interval for this median: at least 93.75 %.
    pub ci: Option<[f64; 2]>,
    /// True if the class as a whole became slower or faster; `None` if the runs do not show whether it did.
    pub moved: Option<bool>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, BaselineNullReason>,
}

/// Why a value of a kernel is null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BaselineNullReason {
    /// The screen has no time of the kernel.
    NoTimeInScreen,
    /// The class is too small: see [`KernelAgainst::too_small`].
    SmallClass,
    /// The baseline has no time of these nodes from before the screen.
    NoEarlierTime,
    /// The baseline has times of these nodes from before the screen, but only of other work.
    NoEarlierTimeOfWork {
        /// The work of the screen.
        work: String,
    },
    /// The earlier screen has times of too few nodes of the class.
    FewNodes {
        /// Number of nodes with times in both screens.
        measured: usize,
        /// Number of nodes of the class in the screen.
        nodes: usize,
    },
    /// Too few runs show how much the times vary.
    FewRuns,
}

/// A screen of the baseline.
#[derive(Debug, Serialize)]
pub struct EarlierScreen {
    /// Its session; `None` if its runs have no session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its first run with this kernel on these nodes.
    pub run_id: String,
    /// The start of this run (ns since 1970).
    pub started_unix_ns: i64,
}

impl AgainstBaseline {
    /// The classes of each kernel.
    pub fn by_kernel(&self) -> impl Iterator<Item = &[KernelAgainst]> {
        self.kernels.chunk_by(|a, b| a.kernel == b.kernel)
    }

    /// True if there is a kernel for which pmmpi cannot tell whether each class moved. Classes that are too small do not
    /// count, unless the kernel has no other.
    pub fn is_open(&self) -> bool {
        self.by_kernel().any(|classes| {
            let mut large = classes.iter().filter(|of| !of.too_small).peekable();
            large.peek().is_none() || large.any(|of| of.moved.is_none())
        })
    }
}

impl KernelAgainst {
    /// A kernel that pmmpi cannot compare, and why.
    pub fn not_compared(
        kernel: &str,
        class: Option<&str>,
        nodes_in_screen: usize,
        why: BaselineNullReason,
    ) -> Self {
        let keys = ["earlier", "change", "ci", "moved"];
        let keys = keys.into_iter().chain(class.is_none().then_some("class"));
        Self {
            kernel: kernel.to_owned(),
            class: class.map(str::to_owned),
            nodes: 0,
            nodes_in_screen,
            too_small: false,
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
