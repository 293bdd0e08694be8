//! The status and the line of a plugin of Nagios.

use super::options::FailOn;
use super::verdict_status::{is_found, is_nothing_judged};
use pmmpi_analysis::render::{answer, one_line};
use pmmpi_analysis::report::Report;
use std::io::{self, Write};

/// UNKNOWN of a plugin of Nagios.
const UNKNOWN: u8 = 3;

/// The status of a plugin of Nagios: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
pub fn status(report: &Report, partial: bool) -> u8 {
    let any = |what: &[FailOn]| what.iter().any(|what| is_found(report, *what));
    match () {
        () if any(&[FailOn::Slow, FailOn::Wrong, FailOn::Failed]) => 2,
        () if any(&[FailOn::Suspect, FailOn::Odd, FailOn::Missing, FailOn::Moved, FailOn::Flaky]) => 1,
        () if partial || is_nothing_judged(report) => UNKNOWN,
        () => 0,
    }
}

/// The line that monitoring shows.
pub fn first_line(report: &Report, partial: bool) -> String {
    let word = ["OK", "WARNING", "CRITICAL", "UNKNOWN"][usize::from(status(report, partial))];
    let unusable = partial.then(|| "pmmpi could not use some input".to_owned());
    // Without this reason, nothing in the line would tell why the status is CRITICAL.
    let failed = answer::failed_runs(report);
    let all: Vec<String> = failed.into_iter().chain(answer::of(report)).chain(unusable).collect();
    format!("PMMPI {word} - {}\n", of_plugin(&all.join("; ")))
}

/// The text of a plugin: one line, without the character that begins its performance data.
fn of_plugin(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    one_line(&lines.join(" ")).replace('|', "/")
}

/// Prints to stdout, which monitoring reads, why there is no report. Gives the status.
pub fn unknown(reason: &str) -> u8 {
    // If stdout is closed, there is nothing to do.
    let _ = writeln!(io::stdout(), "PMMPI UNKNOWN - {}", of_plugin(reason));
    UNKNOWN
}
