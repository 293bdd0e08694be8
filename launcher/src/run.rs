//! Measures one program: `pmmpi PROGRAM`.
//!
//! Read [`run`] from top to bottom. It makes settings from the command line, chooses the way of measuring from the
//! launch and the program's file, prepares everything that can fail, and then starts the program. This module contains
//! the work of the process that the user or the launcher starts. The work inside a rank is in `pmmpi::session`, the
//! rounds of plain programs are in `pmmpi_workload`.

mod choose_mode;
pub mod exec_runner;
mod health_answer;
mod keep_partial_run;
mod kept_until_reboot;
pub mod kept_variables;
mod mpi_program;
pub mod node_record;
pub mod run_folder;
mod start_warnings;
pub mod task;
mod unseen_program;

use crate::cli::options::{self, MeasurementArgs};
use crate::cli::settings::Settings;
use crate::launch::Launch;
use crate::program;
use choose_mode::Choice;
use pmmpi::clock;
use pmmpi::counters::open_counters::OpenCounters;
use pmmpi::counters::perf_event_open::Target;
use pmmpi::counters::requested;
use pmmpi::record::run_file::{Slot, reserved_bytes, reserved_bytes_alone};
use pmmpi::record::{End, Mode};
use pmmpi::transport::fabric::Solo;
use pmmpi_workload::console::{say, warn};
use pmmpi_workload::rounds::{self, RoundsContext};
use pmmpi_workload::{Failure, signals};
use std::ffi::OsString;
use task::{Task, Way};

/// Measures the program and gives its end.
pub fn run(typed: MeasurementArgs) -> Result<End, Failure> {
    let began_ns = clock::monotonic_ns();
    let launch = Launch::read();
    // Other nodes may be able to count the events, so their ranks may start: end the job.
    let settings = match Settings::validate(typed) {
        Ok(settings) => settings,
        Err(failure) => return Ok(not_begun(&launch, &failure)),
    };
    let (task, slot) = match get_ready(&settings, launch.clone(), began_ns) {
        Ok(ready) => ready,
        Err(failure) => return Ok(not_begun(&launch, &failure)),
    };
    match task.way {
        Way::Inside => match mpi_program::start(&task, slot.as_ref()) {
            Ok(started) => started.measure(&task, slot),
            Err(failure) => Ok(not_begun(&launch, &failure)),
        },
        Way::Together(family) => {
            Ok(not_begun(&launch, &exec_runner::exec(&task, family, exec_runner::rounds(&task))))
        }
        Way::Alone => measure_alone(&task, slot),
    }
}

/// This rank starts no program; the other ranks must not wait for it.
fn not_begun(launch: &Launch, failure: &Failure) -> End {
    End::Exited(launch.refuse(failure))
}

/// Does everything that can fail before the program starts.
fn get_ready(
    settings: &Settings,
    launch: Launch,
    began_ns: i64,
) -> Result<(Task<'_>, Option<Slot>), Failure> {
    let name = &settings.argv[0];
    let program =
        program::find_as(launch.launcher, name).map_err(|failure| hinted(failure, &settings.argv))?;
    let choice = choose_mode::choose(&program, settings, &launch)?;
    let task = Task::new(settings, launch, program, choice.mode, began_ns);
    let slot = prepare(&task, &choice)?;
    Ok((task, slot))
}

/// Adds a hint if the missing program is a command in the wrong place or with a spelling error.
fn hinted(mut failure: Failure, argv: &[OsString]) -> Failure {
    let name = argv[0].to_string_lossy();
    if options::COMMANDS.contains(&name.as_ref()) {
        failure.message += "\n       Write the command as the first word: pmmpi COMMAND OPTIONS...";
    } else if name == "help" {
        let asked = argv.get(1).map(|word| word.to_string_lossy());
        let command = asked.as_deref().filter(|word| options::COMMANDS.contains(word));
        let command = command.map_or(String::new(), |command| format!("{command} "));
        failure.message += &format!("\n       For help, type pmmpi {command}--help");
    } else if let Some(command) = like(&name) {
        failure.message += &format!("\n       Did you mean the command {command}? pmmpi {command} --help");
    }
    failure
}

/// The command with the most similar spelling, whatever its capitals, if any is similar enough.
fn like(name: &str) -> Option<&'static str> {
    const ALIKE: f64 = 0.8; // clap uses Jaro's measure above 0.7, but only if a command is certainly meant
    let name = name.to_lowercase();
    let alike = options::COMMANDS.iter().map(|command| (strsim::jaro(&name, command), *command));
    alike.filter(|(how, _)| *how >= ALIKE).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, command)| command)
}

/// Prints the start messages and reserves the file of the run. In a job, only the rank that prints messages reserves
/// one, because it probably saves the run.
fn prepare(task: &Task, choice: &Choice) -> Result<Option<Slot>, Failure> {
    if task.settings.verbose && task.speaks() {
        say(format_args!("{} is {choice}", task.program.display()));
    }
    if task.speaks() && !task.settings.quiet {
        start_warnings::give(task);
    }
    warn_of_uncounted(task, choice);
    let saves_for_all = task.speaks() && task.way != Way::Alone;
    let saves = saves_for_all || task.way == Way::Alone || task.launch.family.is_none();
    let ranks = task.launch.size.unwrap_or(1);
    let is_small = task.way == Way::Alone && task.settings.selection.asked.is_empty();
    let bytes = || match is_small {
        true => reserved_bytes_alone(&task.header(Mode::Plain)),
        false => reserved_bytes(ranks),
    };
    let out = task.settings.out.as_deref().filter(|_| saves);
    let prepared = out.map(|out| run_folder::prepare(out, ranks, bytes())).transpose();
    // Only this rank knows about the failure, so it must end the job.
    prepared.map_err(|failure| match (saves_for_all, task.launch.family) {
        (true, Some(family)) if task.launch.ends_by_mpi_abort() => exec_runner::abort(family, failure),
        _ => failure,
    })
}

/// Warns, once per job, of requested events that the node of the printing rank cannot count.
fn warn_of_uncounted(task: &Task, choice: &Choice) {
    let selection = &task.settings.selection;
    if selection.asked.is_empty() || task.settings.quiet || !task.speaks() {
        return;
    }
    // Nothing is tried if only the default set is selected: the user did not ask for it.
    let counters = match choice.mode {
        Mode::Mpi => selection.open_for(&task.program),
        Mode::Plain => selection.open(Target::NextProgram, Some(&task.program)),
    };
    let uncounted = requested::unopened(&selection.asked, counters.opened());
    if !uncounted.is_empty() {
        let lines: Vec<String> = uncounted.iter().map(ToString::to_string).collect();
        warn(format_args!("{}\n       {}", lines.join("\n       "), requested::ADVICE));
    }
}

fn measure_alone(task: &Task, slot: Option<Slot>) -> Result<End, Failure> {
    signals::prepare();
    // A run that is not saved needs no description of its node.
    let host = task.settings.out.as_deref().map(|out| node_record::remembered_part(out, task.settings.quiet));
    let place =
        RoundsContext { mpi_library: None, host: host.unwrap_or_default(), began_ns: task.began_ns, slot };
    signals::forward();
    rounds::run(Solo, &task.plan(std::env::vars_os().collect()), place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_do_not_hide_the_command_that_was_meant() {
        assert_eq!(
            ["Report", "COMPARE", "reprot", "hpl"].map(like),
            [Some("report"), Some("compare"), Some("report"), None]
        );
    }
}
