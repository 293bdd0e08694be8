//! The command line after the checks: valid values, grouped by their use.

use super::options::{self, MeasurementArgs, ModeArg, OnMismatch, ScreenArgs, Sync};
use super::selection;
use pmmpi::bounds::MaxDrift;
use pmmpi::counters::expected::ExpectedInstructions;
use pmmpi::counters::selection::Selection;
use pmmpi::record::{Series, run_file};
use pmmpi::session::launcher_request::{Extras, Marks};
use pmmpi_workload::Failure;
use pmmpi_workload::plan::OnFailure;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub struct Settings {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Folder for run files; `None` saves none.
    pub out: Option<PathBuf>,
    /// From `--label`: keys and values.
    pub labels: Vec<(String, String)>,
    /// Measured rounds, at least 1.
    pub runs: u32,
    /// Warm-up rounds before them.
    pub warmup: u32,
    pub on_failure: OnFailure,
    /// Limit of a run's time; `None` for no limit.
    pub timeout: Option<Duration>,
    /// What the ranks do besides the barriers.
    pub extras: Extras,
    pub selection: Selection,
    /// What to do if MPI sees another number of ranks than the launcher started.
    pub on_mismatch: OnMismatch,
    /// From `--mode`.
    pub mode: ModeArg,
    /// The limit of the rate error of each clock.
    pub max_drift: MaxDrift,
    /// Print only errors.
    pub quiet: bool,
    /// Also print how the program is measured, and why.
    pub verbose: bool,
    /// Set by `pmmpi repeat`, for a run in a series of launches.
    pub series: Option<Series>,
}

impl From<options::OnFailureArg> for pmmpi_workload::plan::OnFailure {
    fn from(typed: options::OnFailureArg) -> Self {
        match typed {
            options::OnFailureArg::Stop => Self::Stop,
            options::OnFailureArg::Continue => Self::Continue,
        }
    }
}

impl From<options::RegionsArg> for Marks {
    fn from(typed: options::RegionsArg) -> Self {
        match typed {
            options::RegionsArg::Marks => Self::Names,
            options::RegionsArg::Pcontrol => Self::NamesAndNumbers,
            options::RegionsArg::Off => Self::Off,
        }
    }
}

impl Settings {
    /// The error names the wrong option and a correct value.
    pub fn validate(typed: MeasurementArgs) -> Result<Self, Failure> {
        let max_drift = MaxDrift::from_ppm(typed.max_drift_ppm).ok_or_else(|| {
            let ppm = typed.max_drift_ppm;
            Failure::own(format_args!("--max-drift-ppm {ppm}: expected a number from 0 to 100000"))
        })?;
        let mut selection = selection::select(&typed)?;
        selection.expected = expected(&typed.expect)?;
        let series = typed.series.zip(typed.round).map(|(id, round)| Series { id, round });
        Ok(Self {
            argv: typed.argv,
            out: (!typed.no_save).then(|| typed.out.unwrap_or_else(run_file::default_folder)),
            labels: labels(&typed.labels)?,
            runs: typed.runs,
            warmup: typed.warmup,
            on_failure: typed.on_failure.into(),
            timeout: typed.timeout.as_deref().map(|text| duration("--timeout", text)).transpose()?,
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

impl Settings {
    /// The settings of the rounds of `pmmpi screen`: `rounds` of all nodes.
    pub fn of_screen(typed: ScreenArgs, rounds: u32, timeout: Option<Duration>) -> Result<Self, Failure> {
        let counters = match typed.counters {
            options::CountersArg::Off => Selection::default().off(),
            options::CountersArg::Default => Selection::default(),
        };
        Ok(Self {
            argv: typed.argv,
            out: Some(typed.out.unwrap_or_else(run_file::default_folder)),
            // As of each command that starts no program of the user by default.
            labels: labels(&typed.labels).map_err(|failure| Failure::usage(failure.message))?,
            runs: rounds,
            warmup: typed.warmup,
            on_failure: OnFailure::Continue,
            timeout,
            extras: Extras { pings: false, marks: Marks::Off, tight_end: true },
            selection: counters,
            on_mismatch: OnMismatch::Warn,
            mode: ModeArg::Auto,
            max_drift: MaxDrift::DEFAULT,
            quiet: typed.quiet,
            verbose: false,
            series: Some(Series { id: pmmpi::record::new_run_id(pmmpi::clock::realtime_ns()), round: 0 }),
        })
    }
}

/// Parses the time of an option in the format of timeout(1): a number and s, m, h, d or no unit.
pub fn duration(option: &str, text: &str) -> Result<Duration, Failure> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        Some((at, 'd')) => (&text[..at], 86_400.0),
        _ => (text, 1.0),
    };
    let seconds = number.parse::<f64>().ok().filter(|seconds| *seconds > 0.0).map(|seconds| seconds * unit);
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| {
        Failure::own(format_args!("{option} {text}: expected a time above zero, such as 90, 1.5m or 2h"))
    })
}

fn labels(typed: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let labels = typed.iter().map(|text| label(text)).collect::<Result<Vec<_>, _>>()?;
    let mut keys = HashSet::new();
    match labels.iter().find(|(key, _)| !keys.insert(key)) {
        Some((key, _)) => Err(Failure::own(format_args!("--label {key}=...: the key {key} is given twice"))),
        None => Ok(labels),
    }
}

fn label(text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Failure::own(format_args!("--label {text}: expected KEY=VALUE, such as build=O3"))),
    }
}

fn expected(typed: &[String]) -> Result<Vec<ExpectedInstructions>, Failure> {
    let expected = typed.iter().map(|text| expectation(text)).collect::<Result<Vec<_>, _>>()?;
    let mut parts = HashSet::new();
    match expected.iter().position(|of| !parts.insert(&of.part)) {
        Some(at) => {
            let of =
                expected[at].part.as_ref().map_or("the whole work".to_owned(), |part| format!("`{part}`"));
            Err(Failure::own(format_args!("--expect {}: {of} has two expectations", typed[at])))
        }
        None => Ok(expected),
    }
}

/// `[PART:]instructions=N`. A part's name may contain any character.
fn expectation(text: &str) -> Result<ExpectedInstructions, Failure> {
    let parsed = text.rsplit_once('=').and_then(|(left, number)| {
        let before = left.strip_suffix("instructions")?;
        let part = if before.is_empty() { None } else { Some(before.strip_suffix(':')?.to_owned()) };
        let instructions = number.parse().ok().filter(|number| *number > 0)?;
        (part.as_deref() != Some("")).then_some(ExpectedInstructions { part, instructions })
    });
    parsed.ok_or_else(|| {
        Failure::own(format_args!(
            "--expect {text}: expected instructions=N, or PART:instructions=N (PART is the name of a region \
             or probe), such as solve:instructions=1200000"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_timeout_has_them() {
        let seconds = |text: &str| duration("--timeout", text).map(|time| time.as_secs_f64()).ok();
        assert_eq!([seconds("90"), seconds("1.5m"), seconds("2h")], [Some(90.0), Some(90.0), Some(7200.0)]);
        assert!(
            ["", "s", "0", "-1", "1y", "nan", "inf", "1e300d"].iter().all(|text| seconds(text).is_none())
        );
    }

    #[test]
    fn what_is_expected_is_of_the_work_or_of_a_part() {
        let of = |text: &str| expectation(text).ok().map(|of| (of.part, of.instructions));
        assert_eq!(of("instructions=12"), Some((None, 12)));
        assert_eq!(of("a:b=c:instructions=12"), Some((Some("a:b=c".into()), 12)));
        for text in
            ["", "instructions", "instructions=0", "instructions=-1", ":instructions=1", "xinstructions=1"]
        {
            assert!(expectation(text).is_err(), "{text}");
        }
        let all = |typed: &[&str]| expected(&typed.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
        assert_eq!(all(&["instructions=1", "a:instructions=1"]).ok().unwrap().len(), 2);
        assert!(all(&["a:instructions=1", "a:instructions=2"]).is_err());
    }

    #[test]
    fn a_label_has_a_key() {
        assert_eq!(label("a=b=c").ok(), Some(("a".into(), "b=c".into())));
        for wrong in [&["a"][..], &["=b"], &["a=1", "a=2"]] {
            let typed: Vec<String> = wrong.iter().map(|&text| text.to_owned()).collect();
            assert_eq!(labels(&typed).err().map(|failure| failure.code), Some(125), "{wrong:?}");
        }
    }
}
