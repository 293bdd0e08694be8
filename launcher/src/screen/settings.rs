//! The command line of `pmmpi screen` after the checks.

use super::kernel_list;
use crate::cli::options::{CoresArg, ScreenArgs, ScreenFailOn, ScreenFormat};
use crate::cli::settings::{self, Settings};
use clap::ValueEnum;
use pmmpi::record::Screened;
use pmmpi_workload::Failure;
use pmmpi_workload::screen_plan::one_word;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What `pmmpi screen` does.
pub struct ScreenSettings {
    /// How each round is measured. Its runs are the rounds of all nodes.
    pub run: Settings,
    pub works: Works,
    /// Further rounds of the suspects.
    pub more_rounds: u32,
    /// The warm-up lasts at least so long.
    pub soak: Duration,
    /// True if the only rank of a node uses all its cores, whatever the launcher bound it to.
    pub all_cores: bool,
    /// True if what the user's program prints must not mix with the report on stdout.
    pub output_to_stderr: bool,
    /// Of the order of the kernels.
    pub seed: u64,
    /// Options of `pmmpi-report screen`.
    pub report: Vec<OsString>,
    /// True if the user named a baseline.
    pub has_baseline: bool,
    /// The archive of earlier screens.
    pub archive: Option<PathBuf>,
    /// Options of `pmmpi screen-act`; `None` changes no node.
    pub act: Option<Vec<OsString>>,
    /// The log of changes, if the user chose one.
    pub log: Option<PathBuf>,
}

/// What runs in each round.
pub enum Works {
    /// Kernels, each with its options.
    Kernels(Vec<(&'static str, Vec<OsString>)>),
    /// The user's program and its arguments.
    Program(Vec<OsString>),
}

/// A kernel that takes longer hangs.
const KERNEL_TIMEOUT: &str = "10m";

impl ScreenSettings {
    /// The error names the wrong option and a correct value.
    pub fn validate(typed: ScreenArgs) -> Result<Self, Failure> {
        let works = match typed.argv.is_empty() {
            true => Works::Kernels(kernel_list::with_options(&typed)?),
            false if typed.names_kernels() => {
                return Err(Failure::usage(
                    "options of kernels (--kernels, --memory, --disk, --blas, --stores) have no effect on a program of \
                     your own: remove these options, or remove the program",
                ));
            }
            false => Works::Program(typed.argv.clone()),
        };
        if typed.fail_on.contains(&ScreenFailOn::Moved) && typed.archive.is_none() && typed.against.is_empty()
        {
            return Err(Failure::usage(
                "--fail-on moved: there is no earlier screen to compare with. Add --archive DIR or \
                 --against PATH",
            ));
        }
        let (rounds, more_rounds) = rounds(&typed.rounds)?;
        let soak = typed.soak.as_deref().map(|text| duration("--soak", text)).transpose()?;
        let is_kernels = matches!(works, Works::Kernels(_));
        let timeout = typed.timeout.as_deref().or(is_kernels.then_some(KERNEL_TIMEOUT));
        let timeout = timeout.map(|text| duration("--timeout", text)).transpose()?;
        let all_cores = typed.cores == CoresArg::Node;
        let output_to_stderr = typed.format != ScreenFormat::Text && typed.output.is_none();
        let (report, act) = (report(&typed), act(&typed));
        let (archive, log) = (typed.archive.clone(), typed.log.clone());
        let has_baseline = !typed.against.is_empty();
        let seed = typed.seed.unwrap_or_else(|| pmmpi::clock::realtime_ns().unsigned_abs());
        let mut run = Settings::of_screen(typed, rounds, timeout)?;
        check_labels(&run.labels)?;
        run.labels.extend(own_labels(soak, is_kernels && !all_cores));
        Ok(Self {
            run,
            works,
            more_rounds,
            soak: soak.unwrap_or_default(),
            all_cores,
            output_to_stderr,
            seed,
            report,
            has_baseline,
            archive,
            act,
            log,
        })
    }
}

/// A screen starts no program of the user by default, so that wrong usage has the usual status.
fn duration(option: &str, text: &str) -> Result<Duration, Failure> {
    settings::duration(option, text).map_err(|failure| Failure::usage(failure.message))
}

/// `3+4` are three rounds of all nodes and four more of the suspects, `7` are seven rounds of all nodes.
fn rounds(text: &str) -> Result<(u32, u32), Failure> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let rounds = match text.split_once('+') {
        Some((all, more)) => number(all).zip(number(more)),
        None => number(text).zip(Some(0)),
    };
    rounds
        .filter(|(all, more)| *all > 0 && all.checked_add(*more).is_some_and(|sum| sum <= 10_000))
        .ok_or_else(|| {
            Failure::usage(format_args!(
                "--rounds {text}: expected K or K+M, such as 7 or 3+4: K rounds of all nodes, then M more \
                 rounds of the suspects. K must be at least 1, and K+M at most 10000"
            ))
        })
}

/// The options that `pmmpi-report screen` gets.
fn report(typed: &ScreenArgs) -> Vec<OsString> {
    let mut options: Vec<OsString> = Vec::new();
    let mut option = |name: &str, value: OsString| options.push(one_word(name, value));
    let named = |value: Option<clap::builder::PossibleValue>| {
        value.map(|value| OsString::from(value.get_name())).unwrap_or_default()
    };
    if typed.format != ScreenFormat::Text {
        option("--format", named(typed.format.to_possible_value()));
    }
    for what in typed.fail_on.iter().filter(|what| **what != ScreenFailOn::Never) {
        option("--fail-on", named(what.to_possible_value()));
    }
    for path in &typed.against {
        option("--against", path.into());
    }
    for (name, value) in [("--delta", &typed.delta), ("--fdr", &typed.fdr)] {
        if let Some(value) = value {
            option(name, value.into());
        }
    }
    if let Some(file) = &typed.output {
        option("--output", file.into());
    }
    if let Some(nodes) = &typed.gate {
        option("--gate", nodes.into());
    }
    if typed.suggest {
        options.push("--suggest".into());
    }
    options
}

/// The options that `pmmpi screen-act` gets.
fn act(typed: &ScreenArgs) -> Option<Vec<OsString>> {
    let apply = typed.apply?.to_possible_value()?;
    let mut options = vec![one_word("--apply", apply.get_name())];
    options.extend(typed.max_nodes.map(|most| one_word("--max-nodes", most.to_string())));
    options.extend(typed.log.as_ref().map(|log| one_word("--log", log)));
    Some(options)
}

/// Labels are part of the class, so no report compares hot nodes with cold nodes, or whole nodes with some of their cores.
fn own_labels(soak: Option<Duration>, is_on_cores_of_rank: bool) -> Vec<(String, String)> {
    let soak = soak.map(|soak| (Screened::SOAK_LABEL, format!("{}s", soak.as_secs_f64().ceil())));
    let cores = is_on_cores_of_rank.then(|| (Screened::CORES_LABEL, "rank".to_owned()));
    soak.into_iter().chain(cores).map(|(key, value)| (key.to_owned(), value)).collect()
}

/// A gate trusts these labels.
fn check_labels(typed: &[(String, String)]) -> Result<(), Failure> {
    let is_own = |key: &str| [Screened::SOAK_LABEL, Screened::CORES_LABEL].contains(&key);
    match typed.iter().find(|(key, _)| is_own(key)) {
        Some((key, value)) => Err(Failure::usage(format_args!(
            "--label {key}={value}: pmmpi screen sets the label {key} itself, for the option --{key}: choose another KEY"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        screen: ScreenArgs,
    }

    fn validate(words: &[&str]) -> Result<ScreenSettings, Failure> {
        let typed = Typed::try_parse_from([&["screen"], words].concat()).unwrap();
        ScreenSettings::validate(typed.screen)
    }

    #[test]
    fn the_runs_have_the_soak_and_the_cores_as_labels() {
        let labels = |words: &[&str]| {
            let labels = validate(words).ok().unwrap().run.labels;
            labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(&["--label", "room=2"]), "room=2");
        let hot = ["--label", "room=2", "--soak", "1.51m", "--cores", "rank"];
        assert_eq!(labels(&hot), "room=2 soak=91s cores=rank");
        // A program uses the cores that its rank has.
        assert_eq!(labels(&["--cores", "rank", "--soak", "20m", "--", "true"]), "soak=1200s");
        for label in ["soak=1200s", "cores=rank"] {
            let error = validate(&["--label", label]).err().unwrap();
            assert!(error.code == 2 && error.message.contains(label), "{}", error.message);
        }
    }

    #[test]
    fn a_wrong_label_is_wrong_usage() {
        for words in
            [&["--label", "a"][..], &["--label", "=x"], &["--label", "session=1", "--label", "session=2"]]
        {
            let error = validate(words).err().unwrap();
            assert!(error.code == 2 && error.message.starts_with("--label "), "{}", error.message);
        }
    }

    /// clap would take them for unknown options.
    #[test]
    fn a_negative_number_is_told_what_is_expected() {
        for option in ["--rounds", "--memory", "--timeout", "--soak"] {
            let error = validate(&[option, "-1"]).err().unwrap();
            assert!(
                error.code == 2 && error.message.starts_with(&format!("{option} -1: expected ")),
                "{}",
                error.message
            );
        }
        let error = Typed::try_parse_from(["screen", "--seed", "-1"]).err().unwrap().to_string();
        assert!(error.contains("expected a whole number from 0"), "{error}");
        // pmmpi-report refuses them.
        assert_eq!(
            validate(&["--delta", "-1", "--fdr", "-2"]).ok().unwrap().report,
            ["--delta=-1", "--fdr=-2"]
        );
    }

    /// As two words, a value that begins with `-` would be an option of the other program.
    #[test]
    fn an_option_of_another_program_is_one_word() {
        let settings = validate(&["--output=-o", "--gate=-n1", "--apply=drain", "--log=-l", "--against=-a"]);
        let settings = settings.ok().unwrap();
        assert_eq!(settings.report, ["--against=-a", "--output=-o", "--gate=-n1"]);
        assert_eq!(settings.act.unwrap(), ["--apply=drain", "--log=-l"]);
    }

    #[test]
    fn rounds_are_those_of_all_nodes_and_those_of_suspects() {
        assert_eq!(rounds("3+4").ok(), Some((3, 4)));
        assert_eq!(rounds("7").ok(), Some((7, 0)));
        assert_eq!(rounds(" 5 + 0 ").ok(), Some((5, 0)));
        for text in ["", "0", "0+4", "-1", "3+", "+4", "3+4+5", "a", "4294967295+1", "20000"] {
            let error = rounds(text).unwrap_err();
            assert!(error.code == 2 && error.message.contains("--rounds"), "{text}");
        }
    }
}
