//! Parses the command line into a command.

use crate::cli::options::{self, Command, Options};
use crate::launch::Launch;
use crate::stdout;
use clap::Parser;
use pmmpi_workload::Failure;
use pmmpi_workload::console::say;
use std::ffi::OsString;

/// Parses this process's command line. Only the first word can be a command; to measure a program with the name of a
/// command, the user types `run` before it.
pub fn parse() -> Command {
    let is_command =
        std::env::args_os().nth(1).is_some_and(|word| options::COMMANDS.iter().any(|name| word == *name));
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if !is_command && let Ok(measurement) = options::measurement(&arguments) {
        return Command::Run(measurement);
    }
    // The full parser has the help, and its errors know all commands and options.
    let options = Options::try_parse().unwrap_or_else(|e| end_with(&e));
    options.command.unwrap_or(Command::Run(options.measurement))
}

/// Help and version exit with 0, or with 1 if pmmpi could not write them. A wrong command line exits with 125 if the
/// command starts a program, because 2 is often that program's own exit status for a usage error. Commands that start no
/// program exit with the usual 2.
fn end_with(error: &clap::Error) -> ! {
    if error.use_stderr() {
        let text = error.render().to_string();
        let starts_nothing = std::env::args_os()
            .nth(1)
            .is_some_and(|word| options::COMMANDS_WITHOUT_PROGRAM.iter().any(|name| word == *name));
        let code = if starts_nothing { 2 } else { 125 };
        let message = text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned();
        std::process::exit(Launch::read().refuse(&Failure { code, message }))
    }
    match stdout::write(&error.render().to_string()) {
        Ok(()) => std::process::exit(0),
        Err(failure) => {
            say(&failure);
            std::process::exit(failure.code)
        }
    }
}
