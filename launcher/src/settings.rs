//! The command line as it is meant: every value checked, what belongs together together.

use crate::options::{Measurement, Mode, Repetition};
use pmmpi::bounds::MaxDrift;
use pmmpi::record::Series;
use pmmpi_rounds::Failure;
use pmmpi_rounds::plan::OnFailure;
use std::ffi::OsString;
use std::path::PathBuf;

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
        let series = typed.series.zip(typed.round).map(|(id, round)| Series { id, round });
        Ok(Self {
            argv: typed.argv,
            out: (!typed.no_save).then_some(typed.out),
            labels: typed.labels.iter().map(|text| label(text)).collect::<Result<_, _>>()?,
            runs: typed.runs,
            warmup: typed.warmup,
            on_failure: typed.on_failure.into(),
            mode: typed.mode,
            max_drift,
            quiet: typed.quiet,
            verbose: typed.verbose,
            series,
        })
    }
}

fn label(text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Failure::own(format_args!("--label {text}: expected KEY=VALUE, such as build=O3"))),
    }
}

/// A launch, cut where the options that make it one of a series go.
pub struct Launches {
    /// The launch up to `pmmpi` (and `run`).
    pub before: Vec<OsString>,
    /// What follows.
    pub after: Vec<OsString>,
    /// Launches that are kept, at least 1.
    pub runs: u32,
    /// Launches before them.
    pub warmup: u32,
    /// What follows a failed launch.
    pub on_failure: OnFailure,
    /// Errors only.
    pub quiet: bool,
}

impl Repetition {
    /// Finds `pmmpi` in the launch.
    pub fn validate(self) -> Result<Launches, Failure> {
        if self.runs == 0 {
            return Err(Failure::own("--runs 0: at least one run must be measured"));
        }
        let is_pmmpi =
            |arg: &OsString| std::path::Path::new(arg).file_name().is_some_and(|name| name == "pmmpi");
        let Some(at) = self.argv.iter().position(is_pmmpi) else {
            return Err(Failure::own(
                "there is no `pmmpi` in the launch, so nothing would be measured.\n       \
                 Example: pmmpi repeat --runs 7 -- mpirun -n 4 pmmpi ./hpl",
            ));
        };
        let is_run = self.argv.get(at + 1).is_some_and(|arg| arg == "run");
        let mut before = self.argv;
        let after = before.split_off(at + 1 + usize::from(is_run));
        if after.is_empty() {
            return Err(Failure::own("no PROGRAM follows `pmmpi` in the launch"));
        }
        Ok(Launches {
            before,
            after,
            runs: self.runs,
            warmup: self.warmup,
            on_failure: self.on_failure.into(),
            quiet: self.quiet,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_a_key() {
        assert_eq!(label("a=b=c").ok(), Some(("a".into(), "b=c".into())));
        assert!(label("a").is_err() && label("=b").is_err());
    }

    #[test]
    fn a_launch_is_cut_behind_pmmpi() {
        let repetition = |argv: &[&str]| Repetition {
            runs: 2,
            warmup: 0,
            on_failure: crate::options::OnFailure::Stop,
            quiet: true,
            argv: argv.iter().map(OsString::from).collect(),
        };
        let cut = repetition(&["srun", "/opt/bin/pmmpi", "run", "./pmmpi"]).validate().unwrap();
        assert_eq!((cut.before.len(), cut.after), (3, vec![OsString::from("./pmmpi")]));
        assert!(repetition(&["srun", "./hpl"]).validate().is_err());
        assert!(repetition(&["srun", "pmmpi"]).validate().is_err());
    }
}
