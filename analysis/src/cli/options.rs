//! The command line as the user types it.

use clap::{Args, Parser, Subcommand, ValueEnum};
use pmmpi_analysis::input::importers::PathPattern;
use pmmpi_analysis::report::gate;
use pmmpi_analysis::table::node_class::ClassBy;
use pmmpi_analysis::table::place_table::Level;
use pmmpi_analysis::table::run_name::RunName;
use pmmpi_analysis::table::selection::{LabelValue, Moment, RunSelection};
use pmmpi_analysis::table::slurm_host_list::HostList;
use std::path::PathBuf;
use std::str::FromStr;

const EXIT_STATUS: &str = "Exit 0: done; 1: write error or some bad input; 2: wrong usage or all input bad.";

/// Reports on measurements.
#[derive(Parser)]
#[command(name = "pmmpi", bin_name = "pmmpi", version, disable_help_subcommand = true)]
pub struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Report on the runs in files or folders
    #[command(after_help = report_help())]
    Report(ReportArgs),
    /// Show the result of a screen (`pmmpi screen` starts this command)
    #[command(hide = true)]
    Screen(ScreenReportArgs),
    /// Add runs to an archive in Parquet
    #[command(after_help = export_help())]
    Export(ExportArgs),
    /// Compare two sets of runs
    #[command(after_help = compare_help())]
    Compare(CompareArgs),
    /// Show all that a run records: launch, environment, binding, nodes
    #[command(after_help = show_help())]
    Show(ShowArgs),
    /// Show where two runs differ: environment, binding, nodes, ...
    #[command(after_help = diff_help())]
    Diff(DiffArgs),
    /// Compute bounds of the elapsed time from your own stamps
    #[command(after_help = bounds_help())]
    Bounds(BoundsArgs),
}

/// Reads "3", "3%" or "3 %".
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    number.parse().map_err(|_| "expected a percentage, such as 3 or 3%".to_owned())
}

/// Reads a whole number that is at least `LEAST`.
fn whole<const LEAST: usize>(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|number| *number >= LEAST);
    number.ok_or_else(|| format!("expected a whole number, at least {LEAST}"))
}

/// Reads a rate error; its limits are checked later.
fn ppm(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "expected a number from 0 to 100000".to_owned())
}

fn report_help() -> String {
    format!(
        "SLOWER: how much slower a node is than its class in the node's latest session.
Class: nodes with the same processor, microcode, memory, Linux kernel, work.
{EXIT_STATUS}
--fail-on: 3 if a condition is true, 4 if undecided (docs/exit-status.md).
Select: --since T, --until T, --node LIST, --class C, --run ID, --where K=V.
Also: --by, --correlate, --against, --path-pattern, --metric: man pmmpi-report.
Example: pmmpi report --format json a.pmr | jq '.nodes[].verdict'"
    )
}

fn export_help() -> String {
    format!(
        "pmmpi writes one row per run and node into DIR/month=YYYY-MM/. A later export
adds only new runs, in new files. It changes no file that already has runs.
`pmmpi report DIR` and any Parquet reader can read the archive.
Select: --since T, --until T, --node LIST, --class C, --run ID, --where K=V.
{EXIT_STATUS}
All options: man pmmpi-export.
Example: pmmpi export pmmpi-results -o archive && pmmpi report archive"
    )
}

fn compare_help() -> String {
    format!(
        "A and B are files, folders or archives, or a selection of the runs in --in PATH:
session:NAME, label:KEY=VALUE, time:FROM..TO. SLOWER: time of B / time of A - 1.
VISIBLE (docs/compare.md): pmmpi finds 95 % of true differences of this size.
{EXIT_STATUS}
--fail-on: 3 if a condition is true, 4 if undecided (docs/exit-status.md).
Also: --since, --until, --node, --class, --run, --where, ...: man pmmpi-compare.
Example: pmmpi compare label:blas=mkl label:blas=openblas --fail-on slower:2%"
    )
}

fn show_help() -> String {
    format!(
        "RUN is a run file, or the folder of a partial run. pmmpi records only those
environment variables that can change performance or describe a Slurm job.
{EXIT_STATUS}

Example: pmmpi show pmmpi-results/*.pmr"
    )
}

fn diff_help() -> String {
    "A and B are run files, or folders of partial runs. pmmpi diff does not compare
times, ids of jobs or names of nodes. Of the counts, it compares only the four
counts of memory (docs/guide.md). For times, use pmmpi compare. To measure a
program with the name diff, use: pmmpi run diff ...
Exit 0: done; 1: write error; 2: wrong usage or a bad run.
With --fail-on different: 3 if the runs differ.

Example: pmmpi diff good.pmr slow.pmr"
        .to_owned()
}

fn bounds_help() -> String {
    format!(
        "STAMPS.csv has a header with the columns rank,node,t0_ns,t1_ns,t2_ns,t3_ns. The
stamps are integers from the clock of the rank's node. The order in each rank is
`t0; barrier; t1; work; t2; barrier; t3`. Each combination of values in the
optional columns `run` and `region` has its own bounds. `-` reads stdin. pmmpi
reports rows that are not valid and computes the bounds without them.
{EXIT_STATUS}

Example: pmmpi bounds stamps.csv --format json"
    )
}

#[derive(Args)]
pub struct ReportArgs {
    #[arg(value_name = "PATH", help = "Runs, other tools' results (default: PMMPI_OUT, else pmmpi-results)")]
    pub paths: Vec<PathBuf>,
    /// text, json, csv, md, html, exclude, ...
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    pub format: ReportFormat,
    /// Write to FILE, not to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Rows per table in text, md, html; 0: all
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<0>, allow_negative_numbers = true)]
    pub top: usize,
    /// Exit with 3 on: slow, suspect, odd, wrong, ...
    #[arg(long, value_enum, value_name = "WHAT", hide_possible_values = true, value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    /// Meaning of the exit status: plain, nagios
    #[arg(long, value_enum, value_name = "STYLE", default_value = "plain", hide = true)]
    pub exit: ExitStyle,
    /// A SLOW node is > X % slower than its class
    #[arg(long, value_name = "X", default_value = "3", value_parser = percent, allow_negative_numbers = true)]
    pub delta: f64,
    /// A SLOW node has at least N runs
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole::<0>, allow_negative_numbers = true)]
    pub min_runs: usize,
    /// A SLOWED node is > X % slower than in its earlier sessions
    #[arg(long, value_name = "X", default_value = "1", value_parser = percent, allow_negative_numbers = true, hide = true)]
    pub delta_history: f64,
    /// False discovery rate in percent
    #[arg(long, value_name = "X", default_value = "1", value_parser = percent, allow_negative_numbers = true, hide = true)]
    pub fdr: f64,
    /// For each kernel of the latest screen, compare each class as a whole with the baseline in PATH
    #[arg(long, value_name = "PATH", hide = true)]
    pub against: Vec<PathBuf>,
    /// Make classes by: cpu,memory,LABEL,... or none
    #[arg(long, value_name = "KEYS")]
    pub class_by: Option<ClassBy>,
    /// With --since, do not read the medians of earlier sessions
    #[arg(long, hide = true)]
    pub no_history: bool,
    /// CSV file with the columns node,when: the history of the node starts anew at the time `when`
    #[arg(long, value_name = "FILE", hide = true)]
    pub resets: Option<PathBuf>,
    /// Show metrics and counts of each node, socket, NUMA node, core, hardware thread or rank
    #[arg(long, value_enum, value_name = "PLACE", hide = true)]
    pub by: Option<LevelArg>,
    /// Read all counters, and show which counters, metrics and facts go with slowness
    #[arg(long, hide = true)]
    pub correlate: bool,
    #[command(flatten)]
    pub select: Select,
    #[command(flatten)]
    pub of_others: OfOthers,
}

/// What `pmmpi screen` asks for.
#[derive(Args)]
pub struct ScreenReportArgs {
    #[command(flatten)]
    pub report: ReportArgs,
    /// Print how to drain or avoid slow nodes
    #[arg(long)]
    pub suggest: bool,
    /// Print only the kernels and nodes that need further rounds
    #[arg(long)]
    pub suspects: bool,
    /// Are these repaired nodes fit to return? If not, exit with 3
    #[arg(long, value_name = "NODES", value_parser = gate::repaired)]
    pub gate: Option<HostList>,
    /// Only check these options
    #[arg(long)]
    pub check: bool,
    /// For --check: the command of a kernel or of the user's program; the runs of the screen have the same command
    #[arg(long = "work", value_name = "COMMAND", hide = true, allow_hyphen_values = true)]
    pub works: Vec<String>,
    /// The series id of the screen; the report uses other screens in PATH only as history
    #[arg(long, value_name = "ID", hide = true)]
    pub series: Option<String>,
    /// Write to FILE what `pmmpi screen-act` needs
    #[arg(long, value_name = "FILE")]
    pub findings: Option<PathBuf>,
    /// The path of the user's program for --findings; the runs have the path that the user typed
    #[arg(long, value_name = "PATH", hide = true)]
    pub program: Option<String>,
}

/// Which runs count.
#[derive(Args)]
pub struct Select {
    /// Runs that started at T or later; T is a date, or a time as in RFC 3339
    #[arg(long, value_name = "T", hide = true)]
    pub since: Option<Moment>,
    /// Runs that started before T
    #[arg(long, value_name = "T", hide = true)]
    pub until: Option<Moment>,
    /// Nodes: n[001-010],m5
    #[arg(long, value_name = "LIST", hide = true)]
    pub node: Option<HostList>,
    /// A class, or a part of its name
    #[arg(long, value_name = "C", hide = true, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub class: Option<String>,
    /// A run that pmmpi measured: its id, the beginning of its id, or its short id (column RUN)
    #[arg(long = "run", value_name = "ID", hide = true)]
    pub runs: Vec<RunName>,
    /// Runs whose label or fact LABEL has the value VALUE; rows of other tools with VALUE in the column LABEL
    #[arg(long = "where", value_name = "LABEL=VALUE", hide = true)]
    pub labels: Vec<LabelValue>,
}

impl Select {
    /// The same for readers.
    pub fn selection(&self) -> RunSelection {
        let Self { since, until, node, class, runs, labels } = self;
        RunSelection {
            since: since.clone(),
            until: until.clone(),
            nodes: node.clone(),
            class: class.clone(),
            runs: runs.clone(),
            labels: labels.clone(),
        }
    }
}

/// Values that other tools' results lack.
#[derive(Args)]
pub struct OfOthers {
    /// Name of the node in other tools' results, unless --path-pattern or a field `node` gives this name
    #[arg(long, value_name = "NODE", hide = true)]
    pub default_node: Option<String>,
    /// In results of other tools, use the metric NAME as elapsed time
    #[arg(long, value_name = "NAME", hide = true)]
    pub metric: Option<String>,
    /// Pattern of the paths of other tools' results, such as {session}/{node}/hpl-{run}.out
    #[arg(long, value_name = "PATTERN", hide = true)]
    pub path_pattern: Option<PathPattern>,
}

/// docs/report.md says what is in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For a terminal
    Text,
    /// Everything, for scripts
    Json,
    /// One table of nodes
    Csv,
    /// For a ticket or a wiki
    Md,
    /// One file without external parts
    Html,
    /// For monitoring
    Openmetrics,
    /// Nodes to avoid, for Slurm's --exclude
    Exclude,
    /// Nodes to avoid, one per line
    Nodefile,
}

#[derive(Args)]
pub struct ExportArgs {
    #[arg(value_name = "PATH", help = "Runs, other tools' results (default: PMMPI_OUT, else pmmpi-results)")]
    pub paths: Vec<PathBuf>,
    /// The archive; pmmpi creates it if it is missing
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Also add the counts of each core, socket and rank
    #[arg(long)]
    pub places: bool,
    /// Make classes by: cpu,memory,LABEL,... or none
    #[arg(long, value_name = "KEYS")]
    pub class_by: Option<ClassBy>,
    #[command(flatten)]
    pub select: Select,
    #[command(flatten)]
    pub of_others: OfOthers,
}

/// The part of a node that a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LevelArg {
    /// The whole node
    Node,
    /// Each socket
    Socket,
    /// Each NUMA node
    Numa,
    /// Each core
    Core,
    /// Each hardware thread
    Thread,
    /// Each rank
    Rank,
}

impl From<LevelArg> for Level {
    fn from(place: LevelArg) -> Self {
        match place {
            LevelArg::Node => Self::Node,
            LevelArg::Socket => Self::Socket,
            LevelArg::Numa => Self::Numa,
            LevelArg::Core => Self::Core,
            LevelArg::Thread => Self::Thread,
            LevelArg::Rank => Self::Rank,
        }
    }
}

/// What makes a report fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A node is slower than its class, than its peers, or than in its earlier sessions; or a kernel of a screen
    /// computed a wrong result
    Slow,
    /// A node is slow or may be slow; or a kernel of a screen failed or computed a wrong result
    Suspect,
    /// A node is odd: its facts differ from the facts of most nodes of its class, or of a large class with the same
    /// work
    Odd,
    /// A class became slower than before, or than in the baseline (--against). Also: a node became slower after its
    /// maintenance, or at least 5 nodes became slower after the same change of a fact
    Moved,
    /// A node is in the session before the latest session, but not in the latest session
    Missing,
    /// A node is in neither of the latest two sessions
    Gone,
    /// A node is flaky: it has more slow runs than expected by chance
    Flaky,
    /// A node computed a wrong result in its latest session
    Wrong,
    /// A run failed or is not complete
    Failed,
    /// The report could not judge a node (exit status 4)
    Unjudged,
}

/// What exit statuses mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExitStyle {
    /// The exit statuses of docs/exit-status.md
    Plain,
    /// 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN
    Nagios,
}

#[derive(Args)]
pub struct CompareArgs {
    /// The reference: the runs with which pmmpi compares B
    #[arg(value_name = "A")]
    pub a: String,
    /// The runs that pmmpi compares with A
    #[arg(value_name = "B")]
    pub b: String,
    /// Find A, B here (default: PMMPI_OUT, else pmmpi-results)
    #[arg(long = "in", value_name = "PATH")]
    pub of: Vec<PathBuf>,
    /// text, json, csv or md
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    pub format: CompareFormat,
    /// Write to FILE, not to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Rows per table in text and md; 0: all
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<0>, allow_negative_numbers = true)]
    pub top: usize,
    /// Exit with 3 on: different, slower:X%, faster:X%
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub fail_on: Vec<CompareFailOn>,
    /// Make classes by: cpu,memory,LABEL,... or none
    #[arg(long, value_name = "KEYS")]
    pub class_by: Option<ClassBy>,
    /// False discovery rate in percent
    #[arg(long, value_name = "X", default_value = "1", value_parser = percent, allow_negative_numbers = true, hide = true)]
    pub fdr: f64,
    #[command(flatten)]
    pub select: Select,
    #[command(flatten)]
    pub of_others: OfOthers,
}

/// docs/compare.md says what is in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// For a terminal
    Text,
    /// Everything, for scripts
    Json,
    /// One table of classes, nodes and metrics
    Csv,
    /// For a ticket or a wiki
    Md,
}

/// What makes a comparison fail. Sizes are fractions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CompareFailOn {
    /// Any certain difference.
    Different,
    /// B is certainly slower, and by more than this.
    Slower(f64),
    /// B is certainly faster, and by more than this.
    Faster(f64),
}

impl FromStr for CompareFailOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (what, size) = text.split_once(':').unwrap_or((text, "0"));
        let size = percent(size)? / 100.0;
        match what {
            "different" if !text.contains(':') => Ok(Self::Different),
            "slower" | "faster" if !(0.0..=10.0).contains(&size) => {
                Err("expected 0 to 1000 percent".to_owned())
            }
            "slower" => Ok(Self::Slower(size)),
            "faster" => Ok(Self::Faster(size)),
            _ => Err("expected different, slower:X% or faster:X%".to_owned()),
        }
    }
}

#[derive(Args)]
pub struct ShowArgs {
    /// Run files
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// text or json
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    pub format: BoundsFormat,
    /// Write to FILE, not to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Args)]
pub struct DiffArgs {
    /// A run
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Another run
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// text or json
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    pub format: BoundsFormat,
    /// Write to FILE, not to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Exit with 3 if the runs are: different
    #[arg(long, value_enum, value_name = "WHAT", hide_possible_values = true)]
    pub fail_on: Option<DiffFailOn>,
}

/// What makes a diff fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffFailOn {
    /// The runs differ
    Different,
}

#[derive(Args)]
pub struct BoundsArgs {
    /// Stamps of a job's ranks
    #[arg(value_name = "STAMPS.csv")]
    pub stamps: PathBuf,
    /// text or json
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    pub format: BoundsFormat,
    /// Allow clock rate errors of up to N ppm
    #[arg(
        long,
        value_name = "N",
        default_value_t = pmmpi::bounds::MaxDrift::DEFAULT.ppm(),
        value_parser = ppm,
        allow_negative_numbers = true
    )]
    pub max_drift_ppm: f64,
    /// Write to FILE, not to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BoundsFormat {
    Text,
    Json,
}
