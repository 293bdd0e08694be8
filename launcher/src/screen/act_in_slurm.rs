//! Acts on the findings of a screen in Slurm: the hidden command that rank 0 starts after the report.

use crate::cli::options::{ActArgs, ApplyArg};
use pmmpi::record::End;
use pmmpi_node_actions::{Action, Finding, MeasuredKernel, Scontrol, Settings, dry_run, run as run_actions};
use pmmpi_workload::Failure;
use pmmpi_workload::console::say;
use serde::Deserialize;
use std::path::Path;

/// The hidden command.
pub const COMMAND: &str = "screen-act";

/// The log beside the run files, if the user names none.
pub const LOG: &str = "node-actions.jsonl";

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

/// Reads the findings and acts on them. The first use of a log is a dry run; but a screen whose nodes Slurm does
/// not know is no use, because it has not shown an operator what pmmpi would do.
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
    let is_first = dry_run::is_first_use(&log);
    let action = match typed.apply {
        ApplyArg::Drain => Action::Drain,
        ApplyArg::Comment => Action::Comment,
        ApplyArg::Feature => Action::feature(),
    };
    let settings = Settings {
        action,
        max_nodes: typed.max_nodes,
        kernels: read.kernels,
        fleet: read.fleet,
        apply: !is_first,
        log: log.clone(),
    };
    let slurm = Scontrol::find().map_err(Failure::own)?;
    let report = run_actions(&read.findings, &read.passed, &settings, &slurm).map_err(Failure::own)?;
    for line in report.to_string().lines() {
        say(line);
    }
    let has_work = !(read.findings.is_empty() && read.passed.is_empty());
    if !has_work {
        say("no node to change");
    } else if is_first && report.is_without_nodes() {
        say(format_args!(
            "pmmpi changed nothing, because it found none of these nodes in Slurm. The next screen with --apply \
             and the log {} is a dry run again",
            log.display()
        ));
    } else if is_first {
        dry_run::begin_log(&log).map_err(|e| Failure::own(format_args!("{}: {e}", log.display())))?;
        say(format_args!(
            "pmmpi changed nothing, because the first use of a log is a dry run, and this is the first use \
             of the log {}. The next screen with --apply and this log changes nodes",
            log.display()
        ));
    }
    Ok(End::Exited(if report.needs_attention() { NEEDS_ATTENTION } else { 0 }))
}

/// Refuses if there is no Slurm to act in, or if the user may not change nodes. A dry run needs no right. `log` is that
/// of the screen.
pub fn check(log: &Path) -> Result<(), Failure> {
    let slurm = Scontrol::find().map_err(|e| Failure::usage(format_args!("--apply: {e}")))?;
    if dry_run::is_first_use(log) {
        return Ok(());
    }
    slurm.why_not_allowed().map_or(Ok(()), |answer| {
        Err(Failure::usage(format_args!(
            "--apply: this user may not change nodes in Slurm (scontrol says: {answer})\n       \
             Start the screen as root, as SlurmUser or as a Slurm administrator. Or use --suggest in place of --apply: \
             then pmmpi prints the commands for an administrator"
        )))
    })
}
