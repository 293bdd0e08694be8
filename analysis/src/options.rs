//! The command line as it is typed.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const EXIT_STATUS: &str = "Exit status: 0; 1: some input could not be used; 2: none could, or wrong usage.";

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
    Report(Report),
    /// Elapsed bounds from anybody's stamps
    #[command(after_help = bounds_help())]
    Bounds(Bounds),
}

fn report_help() -> String {
    format!(
        "A run that is given twice counts once. SLOWER is against the median of the
node's class: the nodes of the same processor, microcode, memory and kernel that
ran the same.
{EXIT_STATUS}

Examples:
  pmmpi report                                  the runs in pmmpi-results
  pmmpi report --format json a.pmr | jq '.runs[].elapsed'"
    )
}

fn bounds_help() -> String {
    format!(
        "STAMPS.csv has a header and the columns rank,node,t0_ns,t1_ns,t2_ns,t3_ns:
integers of that node's own clock around `t0; barrier; t1; work; t2; barrier;
t3`. Columns run and region separate jobs. `-` reads stdin. A row that makes no
sense is named and left out.
{EXIT_STATUS}

Example: pmmpi bounds stamps.csv --format json"
    )
}

#[derive(Args)]
pub struct Report {
    #[arg(value_name = "PATH", help = "Run files or folders of them (PMMPI_OUT, else pmmpi-results)")]
    pub paths: Vec<PathBuf>,
    /// text or json
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    pub format: Format,
    /// Write to FILE, not to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Rows a table in text; 0: all
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
}

#[derive(Args)]
pub struct Bounds {
    /// Stamps of a job's ranks
    #[arg(value_name = "STAMPS.csv")]
    pub stamps: PathBuf,
    /// text or json
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    pub format: Format,
    /// Largest rate error of any clock
    #[arg(long, value_name = "N", default_value_t = 100.0)]
    pub max_drift_ppm: f64,
    /// Write to FILE, not to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}
