//! The command line as it is typed.

#[path = "measurement_options.rs"]
mod measurement_options;
#[path = "screen_options.rs"]
mod screen_options;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
pub use measurement_options::*;
pub use screen_options::*;
use std::ffi::OsString;
use std::path::PathBuf;

macro_rules! example {
    () => {
        "Example: mpirun -n 4 pmmpi ./hpl, then: pmmpi report"
    };
}

/// Three columns, because the help of all options leaves few lines for the commands.
macro_rules! commands {
    () => {
        "Commands (see pmmpi COMMAND --help):
  repeat  repeat a launch  report   report on runs    doctor    check this node
  list    list events      compare  compare two sets  validate  test counters
  export  archive runs     show     show one run      bounds    compute bounds
  screen  find slow nodes  diff     find differences"
    };
}

/// Measures how long a program really took, alone or on all ranks of a job.
#[derive(Parser)]
#[command(
    name = "pmmpi",
    version,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    override_usage = "pmmpi [OPTIONS] [--] PROGRAM [ARGS]...",
    disable_version_flag = true,
    help_template = concat!(
        "{about}\n{usage-heading} {usage}\n", commands!(), "\nOptions:\n{options}\n",
        "More options: man pmmpi. ", example!()
    ), // must fit a terminal of 24 lines
    after_help = example!() // for the manual; the template above already shows it in the help
)]
pub struct Options {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub measurement: MeasurementArgs,
    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version, hide = true)]
    version: Option<bool>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Measure PROGRAM (the default; type `run` if PROGRAM has the name of a command)
    #[command(hide = true, override_usage = "pmmpi run [OPTIONS] [--] PROGRAM [ARGS]...")]
    Run(MeasurementArgs),
    /// Repeat a whole MPI launch, as one series of runs
    #[command(
        override_usage = "pmmpi repeat --runs K [OPTIONS] -- LAUNCHER ARGS... pmmpi PROGRAM",
        after_help = "An MPI program can start only once in a launch. `repeat` repeats the launch, and
all runs of one launch command get the same series id.

With --compare, each round starts both commands: A, B in one round, B, A in the
next. With --groups, each measured launch counts one of the groups. With fewer
events at once, more counts are exact.

Examples:
  pmmpi repeat --runs 7 --warmup 1 -- mpirun -n 4 pmmpi ./hpl
  pmmpi repeat --runs 7 --compare 'srun pmmpi ./old' 'srun pmmpi ./new'
  pmmpi repeat --runs 3 --groups cache,tlb -- srun pmmpi ./hpl"
    )]
    Repeat(RepeatArgs),
    /// Find slow nodes: the same work on all nodes, in rounds
    #[command(
        override_usage = "LAUNCHER pmmpi screen [OPTIONS] [-- PROGRAM ARGS...]",
        after_help = "Start one rank per node. Without PROGRAM, kernels run; most use all cores.
Nodes that look slow run M more rounds (see --rounds). Guide: docs/screening.md.
Example: srun -N 100 --ntasks-per-node=1 pmmpi screen --archive DIR --suggest
         mpirun --map-by ppr:1:node pmmpi screen --rounds 7 -- ./dgemm 4000"
    )]
    Screen(Box<ScreenArgs>),
    /// Run one kernel of `pmmpi screen`
    #[command(hide = true)]
    ScreenKernel(KernelArgs),
    /// Act on the findings of `pmmpi screen`
    #[command(hide = true)]
    ScreenAct(ActArgs),
    /// Report on the runs in files or folders
    #[command(disable_help_flag = true)]
    Report {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Add runs to an archive in Parquet
    #[command(disable_help_flag = true)]
    Export {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Compare two sets of runs
    #[command(disable_help_flag = true)]
    Compare {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Show all that a run records: launch, environment, binding, nodes
    #[command(disable_help_flag = true)]
    Show {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Show where two runs differ: environment, binding, nodes, ...
    #[command(disable_help_flag = true)]
    Diff {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Compute bounds of the elapsed time from your own stamps
    #[command(disable_help_flag = true)]
    Bounds {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Check what limits measurements on this machine
    #[command(after_help = "A check has one of three results:
  ok
  limits  pmmpi works, but some programs or some values cannot be measured well
  broken  a part of pmmpi does not work
For each check that is not ok, doctor shows a fix (if it knows one). doctor does
not change the machine. In an MPI job, one rank per node reports.

Exit status: 1: write error, or (without --fail-on) a check is broken; 2: wrong
usage; 3: --fail-on: a check is STATUS or worse; 125: pmmpi fails; 0: otherwise.

Example: pmmpi doctor
         srun -N4 -n4 -o doctor-%N.json pmmpi doctor --format json
         pmmpi doctor --fail-on limits && sbatch job.sh")]
    Doctor(Examination),
    /// List what this machine can count, and the kernels and test loops of pmmpi
    #[command(
        override_usage = "pmmpi list WHAT [FILTER] [--format text|json]",
        after_help = "The column HERE is `yes` if you can now count the event completely here. If not,
the text below the table gives the reason.
FILTER is part of a name, description, PMU or group. If no event matches, pmmpi
takes FILTER itself as an event, such as cpu/event=0xc0/.

Examples:
  pmmpi list events cache
  pmmpi list events cpu/event=0xc0,umask=1/u --format json"
    )]
    List(List),
    /// Find out which counters you can trust here
    #[command(after_help = "`validate` runs test loops with known counts, and compares the measured counts
with the known counts. This takes some seconds, or longer with --ceilings.
pmmpi saves the result in the folder PMMPI_TRUST (default: XDG_STATE_HOME/pmmpi
or ~/.local/state/pmmpi), and replaces the earlier result for this kind of
processor. With --kernel, or if not all kinds of cores ran, pmmpi saves nothing.

Exit status: 1: at least one event is unusable, or write error; 2: the command
line is wrong; 125: pmmpi failed; 0: otherwise.

Example: pmmpi validate
         pmmpi validate --cpu 3 --kernel loads --kernel stores --format json")]
    Validate(Validation),
}

/// `pmmpi [OPTIONS] PROGRAM` without what the commands need: half the time to build, on every rank.
#[derive(Parser)]
#[command(name = "pmmpi")]
struct Direct {
    #[command(flatten)]
    measurement: MeasurementArgs,
}

/// The commands that start no program of the user.
pub const COMMANDS_WITHOUT_PROGRAM: [&str; 12] = [
    "screen",
    "screen-kernel",
    "screen-act",
    "report",
    "export",
    "compare",
    "show",
    "diff",
    "bounds",
    "doctor",
    "list",
    "validate",
];

/// First words that are commands, not programs.
pub const COMMANDS: [&str; 14] = [
    "run",
    "repeat",
    "screen",
    "screen-kernel",
    "screen-act",
    "report",
    "export",
    "compare",
    "show",
    "diff",
    "bounds",
    "doctor",
    "list",
    "validate",
];

/// Parses the command line of a measurement. `arguments` begins after the name `pmmpi`.
pub fn measurement(arguments: &[OsString]) -> Result<MeasurementArgs, clap::Error> {
    let name = OsString::from("pmmpi");
    Direct::try_parse_from(std::iter::once(&name).chain(arguments)).map(|direct| direct.measurement)
}

/// Reads a whole number that is at least `LEAST`.
fn whole<const LEAST: u32>(text: &str) -> Result<u32, String> {
    let number = text.parse::<u32>().ok().filter(|number| *number >= LEAST);
    number.ok_or_else(|| format!("expected a whole number, at least {LEAST}"))
}

/// The options of `pmmpi repeat`.
#[derive(Args)]
pub struct RepeatArgs {
    /// Measure K rounds (by default, a round is one launch)
    #[arg(long, value_name = "K", value_parser = whole::<1>, allow_negative_numbers = true)]
    pub runs: u32,
    /// Run K rounds first, without saving them
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = whole::<0>, allow_negative_numbers = true)]
    pub warmup: u32,
    /// If a launch fails: stop or continue
    #[arg(long, value_name = "DO", value_enum, default_value = "stop", hide_possible_values = true)]
    pub on_failure: OnFailureArg,
    /// Start two launch commands alternately
    #[arg(long, value_names = ["A", "B"], num_args = 2, conflicts_with = "argv")]
    pub compare: Vec<String>,
    /// Start one launch per group in each measured round
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', conflicts_with = "compare")]
    pub groups: Vec<String>,
    /// Print only errors
    #[arg(short, long)]
    pub quiet: bool,
    /// The launch command, which contains `pmmpi`
    #[arg(
        value_name = "LAUNCHER",
        required_unless_present = "compare",
        trailing_var_arg = true,
        hide = true
    )]
    pub argv: Vec<OsString>,
}

/// The options of `pmmpi doctor`.
#[derive(Args)]
pub struct Examination {
    /// Output: text or json
    #[arg(long, value_name = "AS", value_enum, default_value = "text", hide_possible_values = true)]
    pub format: FormatArg,
    /// Exit with 3 if a check is STATUS or worse: limits, broken
    #[arg(long, value_name = "STATUS", value_enum, hide_possible_values = true)]
    pub fail_on: Option<DoctorFailOn>,
    #[arg(long, value_name = "DIR", help = "Check DIR (default: PMMPI_OUT, else pmmpi-results)")]
    pub out: Option<PathBuf>,
}

/// The options of `pmmpi list`.
#[derive(Args)]
pub struct List {
    /// events, groups, metrics or kernels (and test loops)
    #[arg(value_enum, value_name = "WHAT", hide_possible_values = true)]
    pub what: Listing,
    /// Show only what has FILTER in its name, description, PMU or group
    #[arg(value_name = "FILTER")]
    pub filter: Option<String>,
    /// text or json
    #[arg(long, value_enum, default_value = "text", hide_possible_values = true)]
    pub format: FormatArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    Events,
    Groups,
    Metrics,
    Kernels,
}

/// The options of `pmmpi validate`.
#[derive(Args)]
pub struct Validation {
    /// Output: text or json
    #[arg(long, value_name = "AS", value_enum, default_value = "text", hide_possible_values = true)]
    pub format: FormatArg,
    /// Use hardware thread N (default: one per kind of core)
    #[arg(long, value_name = "N", value_parser = whole::<0>, allow_negative_numbers = true)]
    pub cpu: Option<u32>,
    /// Run only this test loop; do not save the result
    #[arg(long = "kernel", value_name = "NAME")]
    pub kernels: Vec<String>,
    /// Measure the attainable bandwidth and latency of memory
    #[arg(long)]
    pub ceilings: bool,
    /// Run one more test loop, with prefetchers off (as root)
    #[arg(long)]
    pub prefetchers_off: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DoctorFailOn {
    Broken,
    Limits,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn a_wrong_number_is_told_what_is_expected() {
        for (option, value, wanted) in [
            ("--runs", "x", "expected a whole number, at least 1"),
            ("--runs", "0", "expected a whole number, at least 1"),
            ("--warmup", "-1", "expected a whole number, at least 0"),
            ("--max-drift-ppm", "x", "expected a number from 0 to 100000"),
        ] {
            let words = [option, value, "./hpl"].map(OsString::from);
            let error = measurement(&words).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(wanted) && error.contains(option), "{option} {value}: {error}");
        }
        let typed = measurement(&["--max-drift-ppm", "-5", "./hpl"].map(OsString::from));
        assert_eq!(typed.ok().map(|typed| typed.max_drift_ppm), Some(-5.0), "the settings refuse it");
        let typed = measurement(&["--timeout", "-1", "./hpl"].map(OsString::from));
        assert_eq!(typed.ok().and_then(|typed| typed.timeout), Some("-1".into()), "the settings refuse it");
    }

    #[test]
    fn the_commands_are_those_that_help_lists() {
        let command = Options::command();
        assert_eq!(command.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>(), COMMANDS);
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        for name in shown.map(clap::Command::get_name) {
            assert!(commands!().contains(&format!("  {name} ")), "{name}");
        }
        command.debug_assert();
        Direct::command().debug_assert();
    }
}
