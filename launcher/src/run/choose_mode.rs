//! Chooses how to measure a program: from its file, unless the user gives --mode.

use crate::cli::options;
use crate::cli::settings::Settings;
use crate::launch::Launch;
use crate::program::is_mpi_program::{Nature, mpi_argument, nature, opens_mpi};
use pmmpi::record::Mode;
use pmmpi::text::shell_line;
use pmmpi_workload::Failure;
use std::fmt;
use std::path::Path;

/// How to measure a program, and why.
#[derive(Debug)]
pub struct Choice {
    pub mode: Mode,
    reason: String,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.mode {
            Mode::Mpi => "started as an MPI program, with the agent",
            Mode::Plain => "measured as a plain program",
        };
        write!(f, "{how}: {}", self.reason)
    }
}

/// Chooses by `--mode`, else by the program's file.
pub fn choose(program: &Path, settings: &Settings, launch: &Launch) -> Result<Choice, Failure> {
    let rounds = settings.warmup > 0 || settings.runs > 1;
    let plain = |reason: String| Ok(Choice { mode: Mode::Plain, reason });
    let mpi = |reason: String| {
        if rounds { Err(starts_once(program, settings)) } else { Ok(Choice { mode: Mode::Mpi, reason }) }
    };
    match settings.mode {
        options::ModeArg::Plain => return plain("the user chose this mode with --mode".into()),
        options::ModeArg::Ranks if launch.family.is_none() => return Err(no_ranks(launch)),
        options::ModeArg::Ranks => return plain("the user chose this mode with --mode".into()),
        options::ModeArg::Mpi => return mpi("the user chose this mode with --mode".into()),
        options::ModeArg::Auto => {}
    }
    let nature = match nature(program) {
        Nature::Plain(reason) if launch.launcher.is_some() => {
            let hint = mpi_argument(&settings.argv[1..]).or_else(|| opens_mpi(program));
            hint.map_or(Nature::Plain(reason), Nature::Wrapper)
        }
        nature => nature,
    };
    match nature {
        Nature::Mpi(reason) => mpi(reason),
        Nature::Plain(reason) => plain(reason),
        Nature::Wrapper(name) if launch.launcher.is_none() => {
            plain(format!("{name} may start an MPI program, but no MPI launcher started pmmpi"))
        }
        Nature::Wrapper(name) if rounds && (launch.size == Some(1) || launch.family.is_none()) => {
            plain(format!(
                "{name} may start an MPI program, but each rank is its own MPI job, so {name} can start again \
                 in each round"
            ))
        }
        Nature::Wrapper(name) if rounds => Err(may_start_once(&name, settings)),
        Nature::Wrapper(name) => mpi(format!("{name} may start an MPI program")),
        Nature::StaticMpi => mpi("the program is a statically linked MPI program".to_owned()),
    }
}

fn starts_once(program: &Path, settings: &Settings) -> Failure {
    let (program, argv, rounds) = (program.display(), argv(settings), round_options(settings));
    Failure::own(format_args!(
        "{program} is an MPI program, which can start only once in a launch. Repeat the launch instead:\n       \
         pmmpi repeat {rounds} -- LAUNCHER ARGS... pmmpi {argv}"
    ))
}

fn argv(settings: &Settings) -> String {
    shell_line(settings.argv.iter().map(|arg| arg.to_string_lossy()))
}

fn round_options(settings: &Settings) -> String {
    let warmup = if settings.warmup > 0 { format!(" --warmup {}", settings.warmup) } else { String::new() };
    format!("--runs {}{warmup}", settings.runs)
}

/// The error for several rounds of a program that may start an MPI program: each round would be a separate job of one
/// rank.
fn may_start_once(name: &str, settings: &Settings) -> Failure {
    let (argv, rounds) = (argv(settings), round_options(settings));
    Failure::own(format_args!(
        "{name} may start an MPI program, which can start only once in a launch. Repeat the launch \
         instead:\n       \
         pmmpi repeat {rounds} -- LAUNCHER ARGS... pmmpi {argv}\n       \
         If {name} starts no MPI program, add --mode plain: pmmpi --mode plain {rounds} {argv}"
    ))
}

fn no_ranks(launch: &Launch) -> Failure {
    let what = match launch.launcher {
        Some(launcher) => format!("{launcher} started pmmpi without a process manager that pmmpi knows"),
        None => "no launcher started pmmpi".to_owned(),
    };
    Failure::own(format_args!(
        "--mode ranks needs a launcher with a process manager (for example PMIx), but {what}. \
         Remove --mode ranks, or start pmmpi with mpirun or srun --mpi=pmix"
    ))
}
