//! Acts on the findings of a screen in Slurm: the hidden command that rank 0 starts after the report.

use crate::cli::options::{ActArgs, ApplyArg};
use pmmpi::record::End;
use pmmpi_node_actions::{
    Action, ActionSettings, ActionsReport, Error, Finding, MeasuredKernel, Scontrol, check_log, dry_run,
    run as run_actions,
};
use pmmpi_workload::Failure;
use pmmpi_workload::console::say;
use serde::Deserialize;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

/// The hidden command.
pub const COMMAND: &str = "screen-act";

/// The log beside the run files, if the user names none.
pub const LOG: &str = "node-actions.jsonl";

/// The option if there was no log when the screen began.
const FIRST_USE: &str = "--first-use";

/// How long to wait for another pmmpi that has locked the log.
const PATIENCE: Duration = Duration::from_secs(300);
/// The pause between two tries to lock the log.
const PAUSE: Duration = Duration::from_secs(1);

/// The status if something needs an operator.
const NEEDS_ATTENTION: i32 = 1;

/// What `pmmpi-report screen --findings` writes.
#[derive(Deserialize)]
struct Findings {
    schema_version: u32,
    findings: Vec<Finding>,
    passed: Vec<String>,
    /// Without this key, pmmpi does not know what the nodes have passed, and removes no mark.
    #[serde(default)]
    kernels: Vec<MeasuredKernel>,
    fleet: u32,
}

const SCHEMA: u32 = 1;

/// Reads the findings and acts on them. The first use of a log is a dry run, also if another screen has created the log
/// during the rounds. A screen whose nodes Slurm does not know is no use of the log, because it has not shown an operator
/// what pmmpi would do.
pub fn run(typed: &ActArgs) -> Result<End, Failure> {
    let file = typed.findings.display();
    let text =
        std::fs::read_to_string(&typed.findings).map_err(|e| Failure::own(format_args!("{file}: {e}")))?;
    let read: Findings =
        serde_json::from_str(&text).map_err(|e| Failure::own(format_args!("{file}: {e}")))?;
    if read.schema_version != SCHEMA {
        let version = read.schema_version;
        return Err(Failure::own(format_args!(
            "{file} has schema {version}, but this pmmpi reads only schema {SCHEMA}"
        )));
    }
    let log = typed.log.clone().unwrap_or_else(|| typed.findings.with_file_name(LOG));
    let is_missing = dry_run::is_first_use(&log);
    let is_first = typed.first_use || is_missing;
    let action = match typed.apply {
        ApplyArg::Drain => Action::Drain,
        ApplyArg::Comment => Action::Comment,
        ApplyArg::Feature => Action::feature(),
    };
    let settings = ActionSettings {
        action,
        max_nodes: typed.max_nodes,
        kernels: read.kernels,
        fleet: read.fleet,
        apply: !is_first,
        log: log.clone(),
    };
    let slurm = Scontrol::find().map_err(Failure::own)?;
    let report = act(&read.findings, &read.passed, &settings, &slurm).map_err(Failure::own)?;
    for line in report.to_string().lines() {
        say(line);
    }
    let has_work = !(read.findings.is_empty() && read.passed.is_empty());
    if !has_work {
        say("no node to change");
    } else if is_first && !is_missing {
        say(format_args!(
            "pmmpi changed nothing, because the first use of a log is a dry run, and the log {} was missing when this \
             screen began. The next screen with --apply and this log changes nodes",
            log.display()
        ));
    } else if is_first && report.is_without_nodes() {
        say(format_args!(
            "pmmpi changed nothing, because it found none of these nodes in Slurm. The next screen with --apply \
             and the log {} is a dry run again",
            log.display()
        ));
    } else if is_first {
        dry_run::begin_log(&log, &slurm).map_err(Failure::own)?;
        say(format_args!(
            "pmmpi changed nothing, because the first use of a log is a dry run, and this is the first use \
             of the log {}. The next screen with --apply and this log changes nodes",
            log.display()
        ));
    }
    Ok(End::Exited(if report.needs_attention() { NEEDS_ATTENTION } else { 0 }))
}

/// Acts on the findings. Waits for another pmmpi that has locked the log, because it needs less time than the
/// rounds that would be lost.
fn act(
    findings: &[Finding],
    passed: &[String],
    settings: &ActionSettings,
    slurm: &Scontrol,
) -> Result<ActionsReport, Error> {
    let deadline = Instant::now() + PATIENCE;
    let mut is_waiting = false;
    loop {
        let result = run_actions(findings, passed, settings, slurm);
        let Err(Error::Held { path, .. }) = &result else { return result };
        if Instant::now() >= deadline {
            return result;
        }
        if !is_waiting {
            say(format_args!(
                "another pmmpi is changing nodes and has locked the log {}: this pmmpi waits for at most {} minutes",
                path.display(),
                PATIENCE.as_secs() / 60
            ));
            is_waiting = true;
        }
        std::thread::sleep(PAUSE);
        // If somebody removed the log, the next try would create a new one and act at its first use.
        if dry_run::is_first_use(&settings.log) {
            return result;
        }
    }
}

/// Adds to the options of the hidden command whether there is no log before the rounds. Another screen may have created it
/// after them, but no operator has seen what this screen would do.
pub fn note_first_use(options: &mut Vec<OsString>, log: &Path) {
    if dry_run::is_first_use(log) {
        options.push(FIRST_USE.into());
    }
}

/// Refuses if there is no Slurm to act in, if the user may not change nodes, or if pmmpi cannot use this log there. A dry
/// run needs no right.
pub fn check(log: &Path) -> Result<(), Failure> {
    let slurm = Scontrol::find().map_err(|e| Failure::usage(format_args!("--apply: {e}")))?;
    // First, because this user may have the right on the cluster of the log.
    check_log(log, &slurm).map_err(Failure::own)?;
    let needs_right = !dry_run::is_first_use(log);
    if let Some(answer) = needs_right.then(|| slurm.why_not_allowed()).flatten() {
        return Err(Failure::usage(format_args!(
            "--apply: this user has no right to change nodes in Slurm (answer of scontrol: {answer})\n       \
             Start the screen as root, as SlurmUser or as a Slurm administrator. Or use --suggest in place of --apply: \
             then pmmpi prints the commands for an administrator"
        )));
    }
    Ok(())
}
