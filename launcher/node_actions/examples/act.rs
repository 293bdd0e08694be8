//! Acts on findings by hand: `act FINDINGS.json --log FILE [--apply drain|comment|feature[=NAME]] [--max-nodes N]
//! [--dry-run]`, where the file holds `{"findings":[{"node":"n1","reason":"..."}],"passed":["n2"],
//! "kernels":[{"kernel":"triad","area":"memory"}],"fleet":40}`. A finding may also have
//! `"found_by":[{"kernel":"triad","options":["--memory","85%"]}]`, and a kernel may have `options`.
//! Without `--apply` it shows which drains it would make. Exit status: 0; 1 if something needs an operator; 2 for a
//! wrong command line.

use pmmpi_node_actions::{Action, ActionSettings, Finding, MeasuredKernel, Scontrol, run};
use serde::Deserialize;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    #[serde(default)]
    findings: Vec<Finding>,
    #[serde(default)]
    passed: Vec<String>,
    #[serde(default)]
    kernels: Vec<MeasuredKernel>,
    fleet: u32,
}

struct Options {
    input: PathBuf,
    settings: ActionSettings,
    limit: Option<Duration>,
}

fn main() -> ExitCode {
    let options = match options(env::args().skip(1)) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("act: {why}");
            return ExitCode::from(2);
        }
    };
    match act(options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("act: {why}");
            ExitCode::FAILURE
        }
    }
}

/// True if nothing needs an operator.
fn act(options: Options) -> Result<bool, Box<dyn std::error::Error>> {
    let Options { input, mut settings, limit } = options;
    let text = fs::read_to_string(&input).map_err(|why| format!("{}: {why}", input.display()))?;
    let Input { findings, passed, kernels, fleet } =
        serde_json::from_str(&text).map_err(|why| format!("{}: {why}", input.display()))?;
    (settings.fleet, settings.kernels) = (fleet, kernels);
    let mut slurm = Scontrol::find()?;
    slurm.limit = limit.unwrap_or(slurm.limit);
    let report = run(&findings, &passed, &settings, &slurm)?;
    print!("{report}");
    Ok(!report.needs_attention())
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let (mut input, mut log, mut action, mut max_nodes, mut limit) = (None, None, None, None, None);
    let mut is_dry = false;
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--log" => log = Some(PathBuf::from(value()?)),
            "--apply" => action = Some(named(&value()?)?),
            "--max-nodes" => max_nodes = Some(number(&value()?)?),
            // The longest time for a call of scontrol, in seconds.
            "--limit" => limit = Some(Duration::from_secs(number(&value()?)?.into())),
            "--dry-run" => is_dry = true,
            option if option.starts_with('-') => return Err(format!("unknown option {option}")),
            path => input = Some(PathBuf::from(path)),
        }
    }
    let input = input.ok_or("name a file with findings")?;
    let apply = action.is_some() && !is_dry;
    let log = log.ok_or("name a log with --log")?;
    let action = action.unwrap_or(Action::Drain);
    let settings = ActionSettings { action, max_nodes, kernels: Vec::new(), fleet: 0, apply, log };
    Ok(Options { input, settings, limit })
}

fn named(text: &str) -> Result<Action, String> {
    match text.split_once('=').unwrap_or((text, "")) {
        ("drain", "") => Ok(Action::Drain),
        ("comment", "") => Ok(Action::Comment),
        ("feature", "") => Ok(Action::feature()),
        ("feature", name) => Ok(Action::Feature(name.to_owned())),
        _ => Err(format!("--apply {text}: use drain, comment or feature")),
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}
