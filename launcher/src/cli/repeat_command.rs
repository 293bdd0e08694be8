//! `pmmpi repeat`: finds each `pmmpi` in the command line of a launch.

use super::options::{self, MeasurementArgs, RepeatArgs};
use super::selection::check_group;
use pmmpi::record::run_file;
use pmmpi_workload::Failure;
use pmmpi_workload::plan::OnFailure;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A launch command, and the places where `pmmpi repeat` inserts the options of the series.
pub struct LaunchCommand {
    /// The launcher, `pmmpi` and the program, each with its arguments.
    argv: Vec<OsString>,
    /// Indices in `argv` directly after each `pmmpi` (and `run`), ascending.
    places: Vec<usize>,
}

/// What `pmmpi repeat` does.
pub struct Launches {
    /// One, or two that take turns.
    pub commands: Vec<LaunchCommand>,
    /// Number of measured launches of each, at least 1.
    pub runs: u32,
    /// Number of warm-up launches before them.
    pub warmup: u32,
    pub on_failure: OnFailure,
    /// Groups of events that take turns: each round has a launch for each of them.
    pub groups: Vec<String>,
    /// Print only errors.
    pub quiet: bool,
}

impl LaunchCommand {
    /// Finds each `pmmpi` in the launch. An MPMD launch has several parts, separated by colons; each part has at
    /// most one.
    fn new(argv: Vec<OsString>) -> Result<Self, Failure> {
        let (mut places, mut begin) = (Vec::new(), 0);
        for part in argv.split(|arg| arg == ":") {
            places.extend(measured_from(part)?.map(|place| begin + place));
            begin += part.len() + 1;
        }
        if places.is_empty() {
            return Err(Failure::own(
                "there is no `pmmpi` in the launch command, so pmmpi would measure nothing.\n       \
                 Example: pmmpi repeat --runs 7 -- mpirun -n 4 pmmpi ./hpl",
            ));
        }
        Ok(Self { argv, places })
    }

    /// The folder of its runs, if its `pmmpi` names one.
    pub fn out(&self) -> Option<PathBuf> {
        self.measurement()?.out
    }

    /// The folder of its runs, as this process names it; `None` if it saves none.
    pub fn folder(&self) -> Option<PathBuf> {
        let typed = self.measurement().filter(|typed| !typed.no_save)?;
        Some(typed.out.unwrap_or_else(run_file::default_folder))
    }

    /// The options of its first `pmmpi`.
    fn measurement(&self) -> Option<MeasurementArgs> {
        options::measurement(self.argv.get(*self.places.first()?..)?).ok()
    }

    pub fn launcher(&self) -> &OsStr {
        &self.argv[0]
    }

    /// The command line of the launch, with `options` added to every `pmmpi` in it.
    pub fn with(&self, options: &[OsString]) -> Vec<OsString> {
        let (mut argv, mut from) = (Vec::new(), 0);
        for place in &self.places {
            argv.extend_from_slice(&self.argv[from..*place]);
            argv.extend_from_slice(options);
            from = *place;
        }
        argv.extend_from_slice(&self.argv[from..]);
        argv
    }
}

/// True for `NAME=value`.
fn sets_variable(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

impl RepeatArgs {
    pub fn validate(self) -> Result<Launches, Failure> {
        // A wrong name must not cost the launches before it.
        self.groups.iter().try_for_each(|group| check_group("--groups", group))?;
        let words = |command: &String| match shell_words::split(command) {
            Ok(words) => match words.first() {
                Some(first) if sets_variable(first) => Err(Failure::own(format_args!(
                    "--compare: `{command}` begins with a variable, but pmmpi starts the command without a \
                     shell: write `env {command}`"
                ))),
                _ => Ok(words.into_iter().map(OsString::from).collect()),
            },
            Err(_) => Err(Failure::own(format_args!("--compare: in `{command}` a quote is not closed"))),
        };
        let argvs = match self.compare.is_empty() {
            true => vec![self.argv],
            false => self.compare.iter().map(words).collect::<Result<_, _>>()?,
        };
        Ok(Launches {
            commands: argvs.into_iter().map(LaunchCommand::new).collect::<Result<_, _>>()?,
            runs: self.runs,
            warmup: self.warmup,
            on_failure: self.on_failure.into(),
            groups: self.groups,
            quiet: self.quiet,
        })
    }
}

/// The index in `launch` of the first argument of its `pmmpi`; `None` if it has none.
///
/// A launcher option may have a host or a folder named `pmmpi` as its value. Therefore a word `pmmpi` counts only if a
/// valid command line of pmmpi follows it. If that command line would measure another `pmmpi`, and a launcher option
/// comes directly before the word, the word is the option's value.
fn measured_from(launch: &[OsString]) -> Result<Option<usize>, Failure> {
    let named = |arg: &OsString| Path::new(arg).file_name().is_some_and(|name| name == "pmmpi");
    let mut not_understood = None;
    for (at, _) in launch.iter().enumerate().filter(|(_, arg)| named(arg) && !Path::new(arg).is_dir()) {
        let is_run = launch.get(at + 1).is_some_and(|arg| arg == "run");
        let arguments = at + 1 + usize::from(is_run);
        match options::measurement(&launch[arguments..]) {
            Ok(measurement) => {
                let may_be_value = at > 0 && launch[at - 1].as_encoded_bytes().starts_with(b"-");
                if !(may_be_value && named(&measurement.argv[0])) {
                    return Ok(Some(arguments));
                }
            }
            Err(error) => not_understood = Some(error),
        }
    }
    match not_understood {
        Some(error) => Err(Failure::own(format_args!("in the launch command, after `pmmpi`: {error}"))),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launches(argv: &[&str]) -> Result<Vec<OsString>, Failure> {
        let repetition = RepeatArgs {
            runs: 2,
            warmup: 0,
            on_failure: options::OnFailureArg::Stop,
            quiet: true,
            compare: Vec::new(),
            groups: Vec::new(),
            argv: argv.iter().map(OsString::from).collect(),
        };
        repetition.validate().map(|launches| launches.commands[0].with(&["--X".into()]))
    }

    #[test]
    fn options_go_behind_the_pmmpi_that_measures() {
        let launches_like = [
            "srun pmmpi --X ./hpl",
            "srun /opt/bin/pmmpi run --X ./pmmpi",
            "mpirun --wdir /tmp/pmmpi -n 2 pmmpi --X ../hpl",
            "mpirun --host pmmpi pmmpi --X --quiet ./hpl pmmpi",
            "mpirun --prefix /opt/pmmpi /opt/pmmpi/bin/pmmpi --X -- ./hpl",
            "mpirun -n 1 pmmpi --X ./a x : -n 2 ./b : -n 3 pmmpi --X ./c",
            "pmmpi --X ./hpl :",
        ];
        for wanted in launches_like {
            let wanted: Vec<&str> = wanted.split(' ').collect();
            let typed: Vec<&str> = wanted.iter().copied().filter(|arg| *arg != "--X").collect();
            assert_eq!(launches(&typed).unwrap(), wanted);
        }
    }

    #[test]
    fn a_group_that_does_not_exist_costs_no_launch() {
        let repetition = |groups: &[&str]| RepeatArgs {
            runs: 2,
            warmup: 0,
            on_failure: options::OnFailureArg::Stop,
            quiet: true,
            compare: Vec::new(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            argv: ["srun", "pmmpi", "./hpl"].map(OsString::from).into(),
        };
        assert_eq!(repetition(&["cache", "tlb"]).validate().unwrap().groups, ["cache", "tlb"]);
        let failure = repetition(&["cache", "nonsense"]).validate().err().unwrap();
        assert!(failure.message.starts_with("--groups nonsense: there is no group of this name"));
    }

    #[test]
    fn a_launch_in_which_nothing_is_measured_is_refused() {
        assert!(launches(&["srun", "./hpl"]).unwrap_err().message.contains("no `pmmpi`"));
        assert!(launches(&["srun", "pmmpi"]).is_err());
        assert!(launches(&["srun", "pmmpi", "--rnus", "7", "./hpl"]).unwrap_err().message.contains("--rnus"));
    }
}
