//! From what was typed to what is to be done.

use crate::cli::options::{self, Command, Options};
use crate::launch::Launch;
use clap::Parser;
use pmmpi_rounds::Failure;
use std::ffi::OsString;

/// This process's command line. A command is the first word; a program of the same name follows `run`.
pub fn parse() -> Command {
    let is_command =
        std::env::args_os().nth(1).is_some_and(|word| options::COMMANDS.iter().any(|name| word == *name));
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if !is_command && let Ok(measurement) = options::measurement(&arguments) {
        return Command::Run(measurement);
    }
    // Help, and errors that know of all there is.
    let options = Options::try_parse().unwrap_or_else(|e| end_with(&e));
    options.command.unwrap_or(Command::Run(options.measurement))
}

/// Help and version end with 0. A command line that cannot be understood ends with 125 where a program was to be
/// started: often its own usage errors are 2. Commands that start none have the usual 2.
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
    // A closed stdout leaves nobody to tell.
    let _ = error.print();
    std::process::exit(0)
}
