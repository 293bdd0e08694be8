//! Repeats a whole launch, because an MPI program starts only once per launch.

use crate::cli::launches::Launches;
use crate::program;
use pmmpi::clock;
use pmmpi::record::End;
use pmmpi_workload::Failure;
use pmmpi_workload::console::say;
use pmmpi_workload::plan::OnFailure;
use pmmpi_workload::process::Prepared;
use pmmpi_workload::signals;
use std::ffi::OsString;

/// Starts all launches. Gives the end of the first failed launch, or else success.
pub fn run(launches: &Launches) -> Result<End, Failure> {
    let program = program::find(launches.launcher())?;
    let series = pmmpi::record::new_run_id(clock::realtime_ns());
    signals::prepare();
    signals::forward();
    let mut result = End::Exited(0);
    let mut kept = 0;
    for number in 0..launches.warmup.saturating_add(launches.runs) {
        let warmup = number < launches.warmup;
        if !launches.quiet {
            announce(launches, number);
        }
        let argv = launches.with(&marks(&series, (!warmup).then(|| number - launches.warmup)));
        let ended = Prepared::new(&program, &argv, std::env::vars_os())
            .and_then(|prepared| prepared.start())
            .and_then(|running| running.wait(None))
            .map_err(|e| program::failure(program.as_os_str(), e.raw_os_error().unwrap_or(libc::EINVAL)))?;
        kept += u32::from(!warmup && ended.end.is_success());
        if result.is_success() {
            result = ended.end;
        }
        if let Some(signal) = signals::asked_to_end() {
            result = if result.is_success() { End::Signaled(signal) } else { result };
            break;
        }
        if !ended.end.is_success() {
            let stop = launches.on_failure == OnFailure::Stop;
            let next = if stop { "; pmmpi starts no further launch (see --on-failure)" } else { "" };
            say(format_args!("this launch failed: {}{next}", ended.end));
            if stop {
                break;
            }
        }
    }
    if !launches.quiet {
        say(format_args!("{kept} of {} launches succeeded, series {series}", launches.runs));
    }
    Ok(result)
}

fn announce(launches: &Launches, number: u32) {
    match number.checked_sub(launches.warmup) {
        Some(round) => say(format_args!("launch {} of {}", round + 1, launches.runs)),
        None => say(format_args!("warm-up launch {} of {}", number + 1, launches.warmup)),
    }
}

/// The options that mark a launch as part of a series. They are options, not variables, because not every launcher
/// passes the environment to other nodes. A warm-up launch saves nothing.
fn marks(series: &str, round: Option<u32>) -> Vec<OsString> {
    match round {
        Some(round) => vec!["--series".into(), series.into(), "--round".into(), round.to_string().into()],
        None => vec!["--no-save".into()],
    }
}
