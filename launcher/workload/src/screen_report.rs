//! The end of `pmmpi screen`: rank 0 becomes the program that decides and shows the result.

use crate::Failure;
use crate::process::Prepared;
use crate::screen_plan::ScreenPlan;
use crate::screen_rounds::Screened;
use std::ffi::OsString;
use std::path::Path;

/// Replaces this process by `pmmpi-report screen`. Returns only if that fails.
pub fn exec(plan: &ScreenPlan, done: &Screened) -> Failure {
    if done.files.is_empty() {
        return Failure::own(match done.stopped_by {
            Some(signal) => format!("stopped by signal {signal} before the end of the first round: there is no result"),
            None => "no round has ended: there is no result".to_owned(),
        });
    }
    let files = done.files.iter().map(|file| file.clone().into_os_string());
    let argv: Vec<OsString> = plan.report.iter().cloned().chain(files).collect();
    let program = plan.report.first().cloned().unwrap_or_default();
    let error = Prepared::new(Path::new(&program), &argv, std::env::vars_os())
        .map_or_else(|error| error, |prepared| prepared.exec());
    Failure::own(format_args!("{}: {error}", program.to_string_lossy()))
}
