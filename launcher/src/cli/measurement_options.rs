//! The options of a measurement, as they are typed.

use super::whole;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// The options of a measurement.
#[derive(Args)]
pub struct MeasurementArgs {
    #[arg(long, value_name = "DIR", help = "Save in DIR (default: PMMPI_OUT, else pmmpi-results)")]
    pub out: Option<PathBuf>,
    /// Save no run file
    #[arg(long, overrides_with = "no_save", hide = true)]
    pub no_save: bool,
    /// Store KEY=VALUE with the run
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    /// Measure a plain program (without MPI) in K runs
    #[arg(
        long,
        value_name = "K",
        default_value_t = 1,
        hide_default_value = true,
        value_parser = whole::<1>,
        allow_negative_numbers = true
    )]
    pub runs: u32,
    /// Run PROGRAM K times first, without measuring
    #[arg(
        long,
        value_name = "K",
        default_value_t = 0,
        hide_default_value = true,
        value_parser = whole::<0>,
        allow_negative_numbers = true
    )]
    pub warmup: u32,
    /// If a run fails: stop or continue
    #[arg(
        long,
        value_name = "DO",
        value_enum,
        default_value = "stop",
        hide_possible_values = true,
        hide = true
    )]
    pub on_failure: OnFailureArg,
    /// End a run after TIME: 90 (seconds), 1.5m, 2h
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub timeout: Option<String>,
    /// If MPI sees fewer ranks than the launcher started: warn or abort
    #[arg(
        long,
        value_name = "DO",
        value_enum,
        default_value = "warn",
        hide_possible_values = true,
        hide = true
    )]
    pub on_mismatch: OnMismatch,
    /// How to measure: auto,mpi,plain,ranks
    #[arg(long, value_enum, default_value = "auto", hide_possible_values = true)]
    pub mode: ModeArg,
    /// Tighten bounds with pings: pingpong, none (default)
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        default_value = "none",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub sync: Sync,
    /// What makes regions: marks (default), pcontrol, off
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        default_value = "marks",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub regions: RegionsArg,
    /// Use counters: default or off
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        default_value = "default",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub counters: CountersArg,
    /// Count more events: see pmmpi list events
    #[arg(long, value_name = "LIST")]
    pub events: Option<String>,
    /// Count the events of groups: cache,memory, ...
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub group: Vec<String>,
    /// Count in this scope: task (default), core or socket
    #[arg(long, value_name = "WHERE", value_enum, hide_possible_values = true)]
    pub scope: Option<ScopeArg>,
    /// Expected number of instructions. instructions=N: each rank executes N instructions in its whole work.
    /// PART:instructions=N: each rank executes N in one entry of the region PART; or one entry of the probe PART has N
    #[arg(long, value_name = "WHAT", hide = true)]
    pub expect: Vec<String>,
    /// Allow clock rate errors of up to N ppm
    #[arg(
        long,
        value_name = "N",
        default_value_t = pmmpi::bounds::MaxDrift::DEFAULT.ppm(),
        value_parser = ppm,
        allow_negative_numbers = true,
        hide = true
    )]
    pub max_drift_ppm: f64,
    /// Print only errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Show how pmmpi measures PROGRAM, and why
    #[arg(short, long)]
    pub verbose: bool,
    /// Set by `pmmpi repeat`
    #[arg(long, hide = true, requires = "round")]
    pub series: Option<String>,
    /// Set by `pmmpi repeat`
    #[arg(long, hide = true, requires = "series")]
    pub round: Option<u32>,
    /// The program to measure, with its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, hide = true)]
    pub argv: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// pmmpi looks at the program's file and chooses the mode
    Auto,
    /// As an MPI program: the agent takes the stamps in each rank
    Mpi,
    /// As a plain program: pmmpi starts it as a child process, without the agent
    Plain,
    /// As a plain program on all ranks together; pmmpi calls MPI_Init, so a rank cannot start an MPI program
    /// later
    Ranks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sync {
    None,
    Pingpong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CountersArg {
    /// No counters: a program that counts by itself (PAPI, LIKWID, TAU) can use all counters of the processor
    Off,
    /// The default set
    Default,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScopeArg {
    /// Each rank's own threads and descendants
    Task,
    /// Like task, plus everything that runs on each hardware thread of the node
    Core,
    /// Like task, plus PMUs outside the cores: memory controllers, caches, power
    Socket,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RegionsArg {
    /// pmmpi_begin and pmmpi_end
    Marks,
    /// pmmpi_begin, pmmpi_end and MPI_Pcontrol(n)
    Pcontrol,
    /// No regions and no probes
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnMismatch {
    Warn,
    Abort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnFailureArg {
    Stop,
    Continue,
}

/// Reads a rate error; its limits are checked later.
fn ppm(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "expected a number from 0 to 100000".to_owned())
}
