//! The command line as it is meant: every value checked, what belongs together together.

use crate::counting;
use crate::options::{self, Measurement, Mode, OnMismatch, Repetition, Sync};
use pmmpi::bounds::MaxDrift;
use pmmpi::counters::selection::Selection;
use pmmpi::record::{Series, runfile};
use pmmpi::session::instructions::{Extras, Marks};
use pmmpi_rounds::Failure;
use pmmpi_rounds::plan::OnFailure;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How to measure what.
pub struct Settings {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Where run files go; `None` keeps none.
    pub out: Option<PathBuf>,
    /// The user's own keys and values.
    pub labels: Vec<(String, String)>,
    /// Rounds that are kept, at least 1.
    pub runs: u32,
    /// Rounds before them.
    pub warmup: u32,
    /// What follows a failed round.
    pub on_failure: OnFailure,
    /// What a run may take, if there is a limit.
    pub timeout: Option<Duration>,
    /// What its ranks do together beside the barriers.
    pub extras: Extras,
    /// What is counted.
    pub selection: Selection,
    /// What follows where the job is not the one that was started.
    pub on_mismatch: OnMismatch,
    /// What the user says the program is.
    pub mode: Mode,
    /// The rate error that any clock may have.
    pub max_drift: MaxDrift,
    /// Errors only.
    pub quiet: bool,
    /// Decisions, too.
    pub verbose: bool,
    /// Set where the run is one of several launches.
    pub series: Option<Series>,
}

impl From<options::OnFailure> for pmmpi_rounds::plan::OnFailure {
    fn from(typed: options::OnFailure) -> Self {
        match typed {
            options::OnFailure::Stop => Self::Stop,
            options::OnFailure::Continue => Self::Continue,
        }
    }
}

impl From<options::Regions> for Marks {
    fn from(typed: options::Regions) -> Self {
        match typed {
            options::Regions::Marks => Self::Names,
            options::Regions::Pcontrol => Self::NamesAndNumbers,
            options::Regions::Off => Self::Off,
        }
    }
}

impl Settings {
    /// Says which option is wrong, and what would be right.
    pub fn validate(typed: Measurement) -> Result<Self, Failure> {
        let max_drift = MaxDrift::from_ppm(typed.max_drift_ppm).ok_or_else(|| {
            let ppm = typed.max_drift_ppm;
            Failure::own(format_args!("--max-drift-ppm {ppm}: a rate error is from 0 to 100000 ppm"))
        })?;
        if typed.runs == 0 {
            return Err(Failure::own("--runs 0: at least one run must be measured"));
        }
        let selection = counting::select(&typed)?;
        let series = typed.series.zip(typed.round).map(|(id, round)| Series { id, round });
        Ok(Self {
            argv: typed.argv,
            out: (!typed.no_save).then(|| typed.out.unwrap_or_else(runfile::default_folder)),
            labels: labels(&typed.labels)?,
            runs: typed.runs,
            warmup: typed.warmup,
            on_failure: typed.on_failure.into(),
            timeout: typed.timeout.as_deref().map(duration).transpose()?,
            extras: Extras {
                pings: typed.sync == Sync::Pingpong,
                marks: typed.regions.into(),
                tight_end: true,
            },
            selection,
            on_mismatch: typed.on_mismatch,
            mode: typed.mode,
            max_drift,
            quiet: typed.quiet,
            verbose: typed.verbose,
            series,
        })
    }
}

/// As timeout(1) has it: a number, and s, m, h or d.
fn duration(text: &str) -> Result<Duration, Failure> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        Some((at, 'd')) => (&text[..at], 86_400.0),
        _ => (text, 1.0),
    };
    let seconds = number.parse::<f64>().ok().filter(|seconds| *seconds > 0.0).map(|seconds| seconds * unit);
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| {
        Failure::own(format_args!("--timeout {text}: expected a time above zero, such as 90, 1.5m or 2h"))
    })
}

fn labels(typed: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let labels = typed.iter().map(|text| label(text)).collect::<Result<Vec<_>, _>>()?;
    let mut keys = HashSet::new();
    match labels.iter().find(|(key, _)| !keys.insert(key)) {
        Some((key, _)) => Err(Failure::own(format_args!("--label {key}=...: given twice"))),
        None => Ok(labels),
    }
}

fn label(text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Failure::own(format_args!("--label {text}: expected KEY=VALUE, such as build=O3"))),
    }
}

/// A launch, with the places where the options go that make it one of a series.
pub struct Launches {
    /// The launcher, `pmmpi` and the program, each with its arguments.
    argv: Vec<OsString>,
    /// Indices right behind each `pmmpi` (and `run`), in order.
    places: Vec<usize>,
    /// Launches that are kept, at least 1.
    pub runs: u32,
    /// Launches before them.
    pub warmup: u32,
    /// What follows a failed launch.
    pub on_failure: OnFailure,
    /// Errors only.
    pub quiet: bool,
}

impl Launches {
    /// What is started: the launcher.
    pub fn launcher(&self) -> &OsStr {
        &self.argv[0]
    }

    /// The launch with `options` for every `pmmpi` in it.
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

impl Repetition {
    /// Finds each `pmmpi` in the launch: one, or one in each part of an MPMD launch, between its colons.
    pub fn validate(self) -> Result<Launches, Failure> {
        if self.runs == 0 {
            return Err(Failure::own("--runs 0: at least one run must be measured"));
        }
        let (mut places, mut begin) = (Vec::new(), 0);
        for part in self.argv.split(|arg| arg == ":") {
            places.extend(measured_from(part)?.map(|place| begin + place));
            begin += part.len() + 1;
        }
        if places.is_empty() {
            return Err(Failure::own(
                "there is no `pmmpi` in the launch, so nothing would be measured.\n       \
                 Example: pmmpi repeat --runs 7 -- mpirun -n 4 pmmpi ./hpl",
            ));
        }
        Ok(Launches {
            argv: self.argv,
            places,
            runs: self.runs,
            warmup: self.warmup,
            on_failure: self.on_failure.into(),
            quiet: self.quiet,
        })
    }
}

/// Where the arguments of the `pmmpi` in a launch begin.
///
/// A host or a folder of the launcher's options may have the same name. `pmmpi` is what a command line of
/// pmmpi follows; and where that command line would measure another `pmmpi`, an option's value came first.
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
        Some(error) => Err(Failure::own(format_args!("in the launch, behind `pmmpi`: {error}"))),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_timeout_has_them() {
        let seconds = |text: &str| duration(text).map(|time| time.as_secs_f64()).ok();
        assert_eq!([seconds("90"), seconds("1.5m"), seconds("2h")], [Some(90.0), Some(90.0), Some(7200.0)]);
        assert!(
            ["", "s", "0", "-1", "1y", "nan", "inf", "1e300d"].iter().all(|text| seconds(text).is_none())
        );
    }

    #[test]
    fn a_label_has_a_key() {
        assert_eq!(label("a=b=c").ok(), Some(("a".into(), "b=c".into())));
        assert!(label("a").is_err() && label("=b").is_err());
    }

    fn launches(argv: &[&str]) -> Result<Vec<OsString>, Failure> {
        let repetition = Repetition {
            runs: 2,
            warmup: 0,
            on_failure: crate::options::OnFailure::Stop,
            quiet: true,
            argv: argv.iter().map(OsString::from).collect(),
        };
        repetition.validate().map(|launches| launches.with(&["--X".into()]))
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
    fn a_launch_in_which_nothing_is_measured_is_refused() {
        assert!(launches(&["srun", "./hpl"]).unwrap_err().message.contains("no `pmmpi`"));
        assert!(launches(&["srun", "pmmpi"]).is_err());
        assert!(launches(&["srun", "pmmpi", "--rnus", "7", "./hpl"]).unwrap_err().message.contains("--rnus"));
    }
}
