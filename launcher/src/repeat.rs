//! Repeats a whole launch, because an MPI program starts only once per launch.

use crate::cli::launches::{Launch, Launches};
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
    let find = |launch: &Launch| program::find(launch.launcher());
    let programs = launches.commands.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let series =
        Series { id: pmmpi::record::new_run_id(clock::realtime_ns()), sets: launches.commands.len() };
    signals::prepare();
    signals::forward();
    let mut result = End::Exited(0);
    let mut kept_of = vec![0; series.sets];
    'rounds: for number in 0..launches.warmup.saturating_add(launches.runs) {
        let warmup = number < launches.warmup;
        for set in series.order(number) {
            if !launches.quiet {
                announce(launches, number, series.letter(set));
            }
            let marks = series.marks(set, (!warmup).then(|| number - launches.warmup));
            let (program, argv) = (&programs[set], launches.commands[set].with(&marks));
            let ended = Prepared::new(program, &argv, std::env::vars_os())
                .and_then(|prepared| prepared.start())
                .and_then(|running| running.wait(None))
                .map_err(|e| {
                    program::failure(program.as_os_str(), e.raw_os_error().unwrap_or(libc::EINVAL))
                })?;
            kept_of[set] += u32::from(!warmup && ended.end.is_success());
            if result.is_success() {
                result = ended.end;
            }
            if let Some(signal) = signals::asked_to_end() {
                result = if result.is_success() { End::Signaled(signal) } else { result };
                break 'rounds;
            }
            if !ended.end.is_success() {
                let stop = launches.on_failure == OnFailure::Stop;
                let next = if stop { "; pmmpi starts no further launch (see --on-failure)" } else { "" };
                say(format_args!("this launch failed: {}{next}", ended.end));
                if stop {
                    break 'rounds;
                }
            }
        }
    }
    if !launches.quiet {
        let (all, kept) = (launches.runs.saturating_mul(series.sets as u32), kept_of.iter().sum::<u32>());
        say(format_args!("{kept} of {all} launches succeeded, series {}", series.id));
        if series.sets > 1 && kept_of.iter().all(|kept| *kept > 0) {
            let [a, b] = [0, 1].map(|set| format!("label:{COMPARE_LABEL}={}", series.of_set(set)));
            let out =
                launches.commands[0].out().map(|out| format!(" --in {}", out.display())).unwrap_or_default();
            say(format_args!("compare them: pmmpi compare {a} {b}{out}"));
        }
    }
    Ok(result)
}

/// The label that tells apart the commands of `--compare`.
const COMPARE_LABEL: &str = "compare";

/// A series of launches; with `--compare` one series of each command.
struct Series {
    id: String,
    /// Number of commands.
    sets: usize,
}

impl Series {
    /// The commands of a round. A, B, then B, A: so what drifts from launch to launch is the same for both.
    fn order(&self, round: u32) -> impl Iterator<Item = usize> {
        let (sets, is_reversed) = (self.sets, round % 2 == 1);
        (0..sets).map(move |set| if is_reversed { sets - 1 - set } else { set })
    }

    /// " A" or " B"; nothing if there is one command.
    fn letter(&self, set: usize) -> &'static str {
        if self.sets == 1 { "" } else { [" A", " B"][set] }
    }

    fn of_set(&self, set: usize) -> String {
        if self.sets == 1 { self.id.clone() } else { format!("{}.{}", self.id, ["a", "b"][set]) }
    }

    /// The options that mark a launch as part of a series. They are options, not variables, because not every launcher
    /// passes the environment to other nodes. A warm-up launch saves nothing.
    fn marks(&self, set: usize, round: Option<u32>) -> Vec<OsString> {
        let Some(round) = round else { return vec!["--no-save".into()] };
        let series = self.of_set(set);
        let label = (self.sets > 1).then(|| ["--label".to_owned(), format!("{COMPARE_LABEL}={series}")]);
        let marks = ["--series".to_owned(), series, "--round".to_owned(), round.to_string()];
        marks.into_iter().chain(label.into_iter().flatten()).map(OsString::from).collect()
    }
}

fn announce(launches: &Launches, number: u32, letter: &str) {
    match number.checked_sub(launches.warmup) {
        Some(round) => say(format_args!("launch {}{letter} of {}", round + 1, launches.runs)),
        None => say(format_args!("warm-up launch {}{letter} of {}", number + 1, launches.warmup)),
    }
}
