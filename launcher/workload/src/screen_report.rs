//! The end of `pmmpi screen` on rank 0: the program that decides and shows the result, the archive, and what acts on the
//! findings. Each is a process of its own, started after MPI has ended.

use crate::Failure;
use crate::messages::warn;
use crate::process::PreparedProgram;
use crate::rank_watch::LastWords;
use crate::screen_messages::RoundsEnd;
use crate::screen_plan::{ScreenOutcome, ScreenPlan, one_word};
use crate::signals;
use pmmpi::record::End;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// The status of a program that did its work is below this: 125 to 127 mean that it could not (see docs/exit-status.md).
const OWN_FAILURE: i32 = 125;
/// The status if the report is good, but something before or after it failed.
pub const INCOMPLETE: i32 = 1;

/// Shows the result, and does what else the plan asks for. Gives the end of this process.
pub fn finish(plan: &ScreenPlan, done: &ScreenOutcome) -> Result<End, Failure> {
    let RoundsEnd { stopped_by, failure } = &done.ending;
    let why = match (failure, stopped_by) {
        (Some(failure), _) => Some(failure.message.clone()),
        (None, Some(signal)) => Some(format!("signal {signal} has stopped the screen")),
        (None, None) => None,
    };
    let is_complete = why.is_none();
    if let Some(message) = why {
        let file = plan.ended_file().filter(|_| !done.files.is_empty());
        LastWords { message, file }.say();
    }
    if done.files.is_empty() {
        return Err(Failure::own("no round has ended, so there is no result"));
    }
    let end = if is_complete { report_and_act(plan, done)? } else { report_early(plan, done)? };
    Ok(match (end, failure) {
        // What the report found is worth more than that some rounds are missing.
        (End::Exited(code), Some(failure)) if code == 0 || failure.code >= OWN_FAILURE => {
            End::Exited(code.max(failure.code))
        }
        (End::Exited(0), None) if !is_complete => End::Exited(INCOMPLETE),
        (end, _) => end,
    })
}

/// The end of a screen that ended early.
fn report_early(plan: &ScreenPlan, done: &ScreenOutcome) -> Result<End, Failure> {
    if plan.act.is_some() {
        warn("pmmpi changes no node, because the screen ended early");
    }
    // A launcher that ends the job gives its processes about one second, and signals their process group.
    let mut report = command(&with_history(plan, done, None));
    let status = status_of(report.process_group(0))?;
    if let Some(archive) = &plan.archive {
        keep(&plan.report[0], archive, done);
    }
    Ok(End::Exited(status.code().unwrap_or(OWN_FAILURE)))
}

fn report_and_act(plan: &ScreenPlan, done: &ScreenOutcome) -> Result<End, Failure> {
    if plan.archive.is_none() && plan.act.is_none() {
        return Err(exec(&with_history(plan, done, None)));
    }
    let findings = findings(done);
    let option = plan.act.is_some().then(|| one_word("--findings", &findings));
    let status = status_of(&mut command(&with_history(plan, done, option)))?;
    let code = status.code().unwrap_or(OWN_FAILURE);
    let mut is_complete = true;
    // Said before the archive, because a launcher that ends the job gives little time.
    let is_stopped = plan.act.is_some() && is_asked_to_end();
    if let Some(archive) = &plan.archive {
        is_complete &= keep(&plan.report[0], archive, done);
    }
    if let Some(act) = &plan.act {
        if is_stopped || is_asked_to_end() {
            is_complete = false;
        // A report that failed has no findings.
        } else if code < OWN_FAILURE && status.code().is_some() {
            let words: Vec<OsString> =
                act.iter().cloned().chain(["--".into(), findings.into_os_string()]).collect();
            is_complete &= status_unless_asked_to_end(&mut command(&words))?.success();
        } else {
            warn("pmmpi changes no node, because it could not make the report");
            is_complete = false;
        }
    }
    Ok(End::Exited(if code == 0 && !is_complete { INCOMPLETE } else { code }))
}

/// True, with a warning, if a signal came after the last round.
fn is_asked_to_end() -> bool {
    let is_asked = signals::asked_to_end().is_some();
    if is_asked {
        warn("pmmpi changes no node, because it received a signal to end");
    }
    is_asked
}

/// The command line of the report on all runs, next to those of earlier screens, with one more option if there is one.
pub(crate) fn with_history(
    plan: &ScreenPlan,
    done: &ScreenOutcome,
    option: Option<OsString>,
) -> Vec<OsString> {
    let files = done.files.iter().map(|file| file.clone().into_os_string());
    // A first screen fills the archive.
    let is_empty = |archive: &Path| archive.read_dir().is_ok_and(|mut files| files.next().is_none());
    let archive = plan.archive.iter().filter(|archive| archive.exists() && !is_empty(archive));
    let archive = archive.map(|archive| archive.clone().into_os_string());
    // The folder of the archive may have run files of other screens.
    let series = one_word("--series", plan.series());
    let options = plan.report.iter().cloned().chain([series]).chain(option);
    options.chain(["--".into()]).chain(files).chain(archive).collect()
}

/// The file with the findings, beside the last run.
fn findings(done: &ScreenOutcome) -> PathBuf {
    done.files.last().map(|file| file.with_extension("findings")).unwrap_or_default()
}

/// Adds the runs to the archive. False, with a warning, if that fails.
fn keep(report: &OsString, archive: &Path, done: &ScreenOutcome) -> bool {
    let mut words = vec![report.clone(), "export".into(), one_word("--output", archive), "--".into()];
    words.extend(done.files.iter().map(|file| file.clone().into_os_string()));
    let status = status_of(command(&words).stdout(Stdio::null()));
    let is_kept = status.as_ref().is_ok_and(ExitStatus::success);
    if !is_kept {
        warn(format_args!(
            "pmmpi could not add the runs to the archive {}. To add them: pmmpi export -o {} FILES",
            archive.display(),
            archive.display()
        ));
    }
    is_kept
}

fn command(words: &[OsString]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    command
}

fn status_of(command: &mut Command) -> Result<ExitStatus, Failure> {
    let status = command.status();
    status.map_err(|e| Failure::own(format_args!("{}: {e}", command.get_program().to_string_lossy())))
}

/// Like [`status_of`], but a signal to this process alone also ends the command. It may wait for minutes for another pmmpi
/// that changes nodes.
fn status_unless_asked_to_end(command: &mut Command) -> Result<ExitStatus, Failure> {
    const PAUSE: Duration = Duration::from_millis(20);
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |e| Failure::own(format_args!("{program}: {e}"));
    let mut running = command.spawn().map_err(failed)?;
    let mut is_signalled = false;
    loop {
        if let Some(status) = running.try_wait().map_err(failed)? {
            return Ok(status);
        }
        if !is_signalled && signals::asked_to_end().is_some() {
            // SAFETY: no memory is involved, and the process has not been waited for.
            unsafe { libc::kill(running.id() as libc::pid_t, libc::SIGTERM) };
            is_signalled = true;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Replaces this process. Returns only if that fails.
fn exec(words: &[OsString]) -> Failure {
    let program = &words[0];
    let error = PreparedProgram::new(Path::new(program), words, std::env::vars_os())
        .map_or_else(|error| error, |prepared| prepared.exec());
    Failure::own(format_args!("{}: {error}", program.to_string_lossy()))
}
