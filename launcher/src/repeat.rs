//! Repeats a whole launch (`pmmpi repeat`), because an MPI program starts only once per launch.
//!
//! The order of the launches, and the runs that they leave, belong here. The command line of a launch is in
//! `cli/repeat_command.rs`; rounds of a plain program within one launch are in `pmmpi_workload::rounds`.

mod run_files;

use crate::cli::repeat_command::{LaunchCommand, Launches};
use crate::program;
use pmmpi::clock;
use pmmpi::record::End;
use pmmpi::text::count;
use pmmpi_workload::Failure;
use pmmpi_workload::console::{say, time_left};
use pmmpi_workload::plan::OnFailure;
use pmmpi_workload::process::PreparedProgram;
use pmmpi_workload::series_summary::SeriesSummary;
use pmmpi_workload::signals;
use run_files::NewRunFiles;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::time::Instant;

/// Starts all launches. Gives the end of the first failed launch, or else success.
pub fn run(launches: &Launches) -> Result<End, Failure> {
    let find = |launch: &LaunchCommand| program::find(launch.launcher());
    let programs = launches.commands.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let id = pmmpi::record::new_run_id(clock::realtime_ns());
    let series = Series { id, sets: launches.commands.len(), groups: &launches.groups };
    signals::prepare();
    signals::forward();
    let mut result = End::Exited(0);
    let mut kept_of = vec![0; series.sets];
    let files: Vec<Option<NewRunFiles>> =
        launches.commands.iter().map(|launch| launch.folder().map(NewRunFiles::in_folder)).collect();
    let mut summaries: Vec<SeriesSummary> =
        launches.commands.iter().map(|_| SeriesSummary::new(series.runs(launches.runs))).collect();
    let progress = LaunchProgress::new(launches, &series);
    'rounds: for number in 0..launches.warmup.saturating_add(launches.runs) {
        let warmup = number < launches.warmup;
        for (turn, at) in series.turns(number, warmup).enumerate() {
            let Turn { set, group } = at;
            if !launches.quiet {
                progress.announce(number, turn, at);
            }
            let round = (!warmup).then(|| series.number(number - launches.warmup, group));
            let marks = series.marks(at, round);
            let (program, argv) = (&programs[set], launches.commands[set].with(&marks));
            let ended = PreparedProgram::new(program, &argv, std::env::vars_os())
                .and_then(|prepared| prepared.start())
                .and_then(|running| running.wait(None))
                .map_err(|e| {
                    program::failure(program.as_os_str(), e.raw_os_error().unwrap_or(libc::EINVAL))
                })?;
            kept_of[set] += u32::from(!warmup && ended.end.is_success());
            if let Some(round) = round {
                summaries[set].add_end(round, ended.end);
            }
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
        let all = series.runs(launches.runs).saturating_mul(series.sets as u32);
        let kept: u32 = kept_of.iter().sum();
        let all = count(all as usize, "launch");
        let ids: Vec<String> = (0..series.sets).map(|set| series.of_set(set)).collect();
        say(format_args!("{kept} of {all} succeeded, series {}", ids.join(" and ")));
        for (set, (summary, files)) in summaries.iter_mut().zip(&files).enumerate() {
            summarise(summary, files.as_ref(), &series.of_set(set), series.letter(set));
        }
        if series.sets > 1 && kept_of.iter().all(|kept| *kept > 0) {
            let [a, b] = [0, 1].map(|set| format!("label:{COMPARE_LABEL}={}", series.of_set(set)));
            let out =
                launches.commands[0].out().map(|out| format!(" --in {}", out.display())).unwrap_or_default();
            say(format_args!("to compare A and B: pmmpi compare {a} {b}{out}"));
        }
    }
    Ok(result)
}

/// The label that tells apart the commands of `--compare`.
const COMPARE_LABEL: &str = "compare";

/// A series of launches; with `--compare` one series of each command.
struct Series<'a> {
    id: String,
    /// Number of commands.
    sets: usize,
    /// The groups that take turns; none: all launches count the same events.
    groups: &'a [String],
}

/// One launch of a round.
#[derive(Clone, Copy)]
struct Turn {
    /// The command, from 0.
    set: usize,
    /// The group, from 0.
    group: usize,
}

impl Series<'_> {
    /// The launches of a round. A, B, then B, A: so what drifts from launch to launch is the same for all. A warm-up counts
    /// nothing, so it needs no launch of each group.
    fn turns(&self, round: u32, is_warmup: bool) -> impl Iterator<Item = Turn> + use<> {
        let groups = if is_warmup { 1 } else { self.groups.len().max(1) };
        let (turns, is_reversed) = (self.sets * groups, round % 2 == 1);
        let turn = move |at: usize| Turn { set: at / groups, group: at % groups };
        (0..turns).map(move |at| turn(if is_reversed { turns - 1 - at } else { at }))
    }

    /// Number of measured launches of a command in so many rounds.
    fn runs(&self, rounds: u32) -> u32 {
        rounds.saturating_mul(self.groups.len().max(1) as u32)
    }

    /// The number of a measured launch in its series, from 0.
    fn number(&self, round: u32, group: usize) -> u32 {
        self.runs(round).saturating_add(group as u32)
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
    fn marks(&self, turn: Turn, round: Option<u32>) -> Vec<OsString> {
        let Some(round) = round else { return vec!["--no-save".into()] };
        let series = self.of_set(turn.set);
        let label = (self.sets > 1).then(|| ["--label".to_owned(), format!("{COMPARE_LABEL}={series}")]);
        let group = self.groups.get(turn.group).map(|group| ["--group".to_owned(), group.clone()]);
        let marks = ["--series".to_owned(), series, "--round".to_owned(), round.to_string()];
        let options = [label, group].into_iter().flatten().flatten();
        marks.into_iter().chain(options).map(OsString::from).collect()
    }
}

/// Prints what the runs of a series show together. `letter` is " A", " B" or nothing.
fn summarise(summary: &mut SeriesSummary, files: Option<&NewRunFiles>, series: &str, letter: &str) {
    let name = letter.trim_start();
    let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
    let Some(files) = files else {
        return say(format_args!("{name}no summary, because the launches save no run files (--no-save)"));
    };
    // A run may be large, so only one is in memory.
    let (mut each, mut rounds, mut is_repeated) = (SeriesSummary::open(), BTreeSet::new(), false);
    for (round, run) in files.of_series(series) {
        summary.add(round, &run);
        each.push(&run);
        is_repeated |= !rounds.insert(round);
    }
    // If a launch gave several runs, each run counts, and not each launch.
    let summary = if is_repeated { &each } else { &*summary };
    summary.lines().iter().for_each(|line| say(format_args!("{name}{line}")));
    if summary.not_found() > 0 {
        let folder = files.folder().display();
        say(format_args!(
            "{name}this machine does not see the files of some runs in {folder}, so the summary lacks these \
             runs: use pmmpi report on a machine that sees the files"
        ));
    }
}

/// Prints which launch begins.
struct LaunchProgress<'a> {
    launches: &'a Launches,
    series: &'a Series<'a>,
    began: Instant,
    /// Only a terminal gets the time left. There is no bar, because the launches write to the same terminal.
    shows_time_left: bool,
}

impl<'a> LaunchProgress<'a> {
    fn new(launches: &'a Launches, series: &'a Series<'a>) -> Self {
        let shows_time_left = std::io::stderr().is_terminal();
        Self { launches, series, began: Instant::now(), shows_time_left }
    }

    /// Round `number` (from 0) begins its launch `turn` (from 0).
    fn announce(&self, number: u32, turn: usize, at: Turn) {
        let Launches { runs, warmup, .. } = self.launches;
        let of_round = |is_warmup| self.series.turns(0, is_warmup).count() as u32;
        let before = |rounds: u32| {
            let warmups = rounds.min(*warmup);
            warmups
                .saturating_mul(of_round(true))
                .saturating_add((rounds - warmups).saturating_mul(of_round(false)))
        };
        let (done, all) = (before(number).saturating_add(turn as u32), before(warmup.saturating_add(*runs)));
        let left = match self.shows_time_left {
            true => time_left(self.began.elapsed(), done, all),
            false => String::new(),
        };
        let letter = self.series.letter(at.set);
        match number.checked_sub(*warmup) {
            Some(round) => {
                let launch = self.series.number(round, at.group) + 1;
                let group = self.series.groups.get(at.group).map(|group| format!(", --group {group}"));
                let group = group.unwrap_or_default();
                say(format_args!("launch {launch}{letter} of {}{group}{left}", self.series.runs(*runs)));
            }
            None => say(format_args!("warm-up launch {}{letter} of {warmup}{left}", number + 1)),
        }
    }
}
