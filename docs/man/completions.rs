//! Completions of all commands for bash, zsh and fish.

use clap::Command;
use clap::builder::PossibleValuesParser;
use clap_complete::{Shell, generate_to};
use pmmpi_events::metrics::catalogue;
use std::path::Path;

/// Writes one file for each shell into `folder`. The commands of `report` take the place of those that `launcher`
/// passes on to it.
pub fn write(folder: &Path, launcher: Command, report: Command) -> std::io::Result<()> {
    let mut all = with_values(launcher).mut_subcommands(with_values);
    for command in report.get_subcommands().filter(|command| !command.is_hide_set()) {
        all = all.mut_subcommand(command.get_name(), |_| command.clone());
    }
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut visible(&all), "pmmpi", folder)?;
    }
    Ok(())
}

/// With the names that options take as words: a shell offers them.
fn with_values(command: Command) -> Command {
    let groups: Vec<&'static str> = catalogue().groups.iter().map(|group| group.name.as_str()).collect();
    let kernels: Vec<&'static str> = pmmpi_kernels::all().iter().map(|kernel| kernel.name).collect();
    // `screen` has kernels of its own.
    if command.get_name() == "screen" {
        return command;
    }
    command.mut_args(|arg| match arg.get_id().as_str() {
        "group" => arg.value_parser(PossibleValuesParser::new(groups.clone())),
        "kernels" => arg.value_parser(PossibleValuesParser::new(kernels.clone())),
        _ => arg,
    })
}

/// The same command without options that help does not show.
fn visible(command: &Command) -> Command {
    let arguments = command.get_arguments().filter(|arg| !arg.is_hide_set() || arg.is_positional());
    let name: &'static str = Box::leak(command.get_name().into()); // this program ends at once
    Command::new(name)
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_help_subcommand(true)
        .args(arguments.cloned())
        .subcommands(command.get_subcommands().map(visible))
}
