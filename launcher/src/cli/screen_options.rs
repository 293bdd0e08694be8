//! The options of `pmmpi screen` and of its hidden commands, as they are typed.

use super::{CountersArg, whole};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// The kernels of `pmmpi screen`, each with what it measures, and the unit of the measure that stands for the kernel.
pub const SCREEN_KERNELS: [(&str, &str, &str); 7] = [
    ("triad", "memory bandwidth, with STREAM's four loops", "GB/s"),
    ("dgemm", "matrix products, one independent product per core", "GFLOP/s"),
    ("latency", "latency of memory, one chain of pointers per core", "ns"),
    ("spin", "noise of the operating system: each core repeats a fixed loop", "%"),
    ("fma", "peak floating-point speed", "GFLOP/s"),
    (NET, "latency and bandwidth between nodes", "GB/s"),
    ("disk", "writing and reading a file without the page cache (only with --disk)", "MB/s"),
];
/// The kernel that runs in the ranks and not in a process of its own. It needs two nodes.
pub const NET: &str = "net";

/// The options of `pmmpi screen`.
#[derive(Args)]
pub struct ScreenArgs {
    /// Default: triad,dgemm,latency,spin. Others: fma,net,disk
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub kernels: Vec<String>,
    /// K rounds of all nodes, M more of suspects (default: 3+4)
    #[arg(
        long,
        value_name = "K+M",
        default_value = "3+4",
        hide_default_value = true,
        allow_negative_numbers = true
    )]
    pub rounds: String,
    /// Run K rounds first, without measuring
    #[arg(
        long,
        value_name = "K",
        default_value_t = 1,
        value_parser = whole::<0>,
        allow_negative_numbers = true,
        hide = true
    )]
    pub warmup: u32,
    /// Warm up for at least TIME: some faults appear only on hot nodes
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, hide = true)]
    pub soak: Option<String>,
    /// Memory of triad; maximum memory of latency: 85%, 2G
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    pub memory: Option<String>,
    /// Stores of triad: ordinary or non-temporal
    #[arg(
        long,
        value_name = "KIND",
        value_enum,
        default_value = "ordinary",
        hide_possible_values = true,
        hide = true
    )]
    pub stores: StoresArg,
    /// Folder for the file of the kernel `disk`; adds `disk` to the default kernels
    #[arg(long, value_name = "DIR", hide = true)]
    pub disk: Option<PathBuf>,
    /// In the kernel `dgemm`, use the function cblas_dgemm of the library FILE
    #[arg(long, value_name = "FILE", hide = true)]
    pub blas: Option<PathBuf>,
    /// Time limit of a kernel (default: 10m) or of PROGRAM
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub timeout: Option<String>,
    /// Cores that a kernel uses: `node` (all cores that the job may use on the node) or `rank` (the cores to
    /// which the rank is bound). If a node has several ranks, or the launcher does not show their number, `node`
    /// means the same as `rank`
    #[arg(
        long,
        value_name = "OF",
        value_enum,
        default_value = "node",
        hide_possible_values = true,
        hide = true
    )]
    pub cores: CoresArg,
    /// Seed of all random choices: the order of kernels, the nodes that run beside suspects, the partners in the
    /// kernel net
    #[arg(long, value_name = "N", value_parser = seed, allow_negative_numbers = true, hide = true)]
    pub seed: Option<u64>,
    #[arg(long, value_name = "DIR", help = "Save in DIR (default: PMMPI_OUT, else pmmpi-results)")]
    pub out: Option<PathBuf>,
    /// Store KEY=VALUE with the runs
    #[arg(long = "label", value_name = "KEY=VALUE", hide = true)]
    pub labels: Vec<String>,
    /// Use counters: default or off
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        default_value = "default",
        hide_possible_values = true,
        hide = true
    )]
    pub counters: CountersArg,
    /// text,json,csv,md,html,openmetrics,exclude or nodefile
    #[arg(
        long,
        value_name = "AS",
        value_enum,
        default_value = "text",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub format: ScreenFormat,
    /// Write the result to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Exit with 3 on WHAT: slow, suspect, moved
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',', hide_possible_values = true)]
    pub fail_on: Vec<ScreenFailOn>,
    /// Call a node slow only if it is slower than its class by more than PERCENT (default: 3)
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, hide = true)]
    pub delta: Option<String>,
    /// Limit the false discovery rate over all kernels to PERCENT (default: 1)
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, hide = true)]
    pub fdr: Option<String>,
    /// Print how to drain or avoid nodes with advice "drain it"
    #[arg(long)]
    pub suggest: bool,
    /// Mark nodes of --suggest in Slurm: drain,comment,feature
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    pub apply: Option<ApplyArg>,
    /// Mark no node if more than N nodes have the advice "drain it" or pmmpi's mark from earlier screens
    /// (default: 5 % of the screened nodes, at least 1, at most 10)
    #[arg(
        long,
        value_name = "N",
        requires = "apply",
        value_parser = whole::<0>,
        allow_negative_numbers = true,
        hide = true
    )]
    pub max_nodes: Option<u32>,
    /// Log all changes in FILE (default: node-actions.jsonl in the folder of the run files); use one FILE per
    /// cluster. With a new FILE, pmmpi only prints what it would change
    #[arg(long, value_name = "FILE", requires = "apply", hide = true)]
    pub log: Option<PathBuf>,
    /// Compare with the screens in DIR, and add this screen
    #[arg(long, value_name = "DIR")]
    pub archive: Option<PathBuf>,
    /// Compare with an earlier screen in PATH (run files, a folder or an archive): show for each kernel
    /// whether each class as a whole is slower or faster than before. pmmpi does not change PATH
    #[arg(long, value_name = "PATH", hide = true)]
    pub against: Vec<PathBuf>,
    /// Check whether these repaired nodes are fit to return
    #[arg(long, value_name = "NODES")]
    pub gate: Option<String>,
    /// Print only errors and the result
    #[arg(short, long)]
    pub quiet: bool,
    /// A program of your own, with its arguments
    #[arg(value_name = "PROGRAM", last = true, hide = true)]
    pub argv: Vec<OsString>,
}

/// Reads the seed of random choices.
fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

impl ScreenArgs {
    /// True if an option for kernels is set.
    pub fn names_kernels(&self) -> bool {
        !self.kernels.is_empty()
            || self.memory.is_some()
            || self.disk.is_some()
            || self.blas.is_some()
            || self.stores != StoresArg::Ordinary
    }
}

/// The options of the hidden command that acts on the findings of a screen.
#[derive(Args)]
pub struct ActArgs {
    /// The findings, as `pmmpi-report screen --findings` writes them
    pub findings: PathBuf,
    /// Mark nodes with: drain, comment or feature
    #[arg(long, value_enum)]
    pub apply: ApplyArg,
    /// Mark no node if more than N nodes are in the findings or still have pmmpi's mark
    #[arg(long)]
    pub max_nodes: Option<u32>,
    /// Log of all changes
    #[arg(long)]
    pub log: Option<PathBuf>,
    /// The log was missing when the screen began: change nothing
    #[arg(long)]
    pub first_use: bool,
}

/// A kernel of `pmmpi screen`.
#[derive(Args)]
pub struct KernelArgs {
    /// Name of the kernel
    pub kernel: String,
    /// Memory for the arrays of the kernel
    #[arg(long)]
    pub memory: Option<String>,
    /// Number of ranks on the node; if --memory is in percent, each rank takes an equal part of this memory
    #[arg(long, default_value_t = 1)]
    pub ranks_of_node: u32,
    /// Stores of triad
    #[arg(long, value_enum, default_value = "ordinary")]
    pub stores: StoresArg,
    /// Library with cblas_dgemm
    #[arg(long)]
    pub blas: Option<PathBuf>,
    /// Only check the library, and run no kernel
    #[arg(long)]
    pub check: bool,
    /// Folder for the file of the kernel `disk`
    #[arg(long)]
    pub disk: Option<PathBuf>,
}

impl KernelArgs {
    pub const RANKS_OF_NODE: &str = "--ranks-of-node";
    pub const BLAS: &str = "--blas";
    pub const CHECK: &str = "--check";
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CoresArg {
    /// All cores of the node; if several ranks share the node, or the launcher does not show their number,
    /// each rank uses the cores to which it is bound
    Node,
    /// The cores to which the rank is bound
    Rank,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ApplyArg {
    Drain,
    Comment,
    Feature,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StoresArg {
    Ordinary,
    NonTemporal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScreenFormat {
    Text,
    Json,
    Csv,
    Md,
    Html,
    Openmetrics,
    Exclude,
    Nodefile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScreenFailOn {
    /// No condition: the same as without the option
    #[value(hide = true)]
    Never,
    Slow,
    Suspect,
    /// A class is slower than in earlier screens of the archive, or than in the baseline (--against)
    Moved,
}
