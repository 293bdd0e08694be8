//! Writes the man pages of `pmmpi report`, `export` and `bounds` into `man/man1` below the folder named, and the shell
//! completions of all commands into `completions`: `cargo run --example report-manual -- FOLDER`.

#[path = "../../launcher/src/cli/options.rs"]
#[allow(dead_code)]
mod launcher;
#[path = "../src/cli/options.rs"]
#[allow(dead_code)]
mod options;
#[path = "../../docs/man/page.rs"]
mod page;

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate_to};
use pmmpi_events::metrics::catalogue;
use std::path::PathBuf;

const ENVIRONMENT: (&str, &str) = (
    "ENVIRONMENT",
    "PMMPI_OUT  the folder that `pmmpi report` reads where no PATH is given\nPMMPI_TRUST  the folder with what `pmmpi validate` found",
);

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| ".".into()));
    let (man, completions) = (folder.join("man/man1"), folder.join("completions"));
    std::fs::create_dir_all(&man)?;
    std::fs::create_dir_all(&completions)?;
    let mut all = with_values(launcher::Options::command()).mut_subcommands(with_values);
    for command in options::Options::command().get_subcommands() {
        all = all.mut_subcommand(command.get_name(), |_| command.clone());
        let command = page::with_all(command.clone()).mut_args(|arg| arg.hide_possible_values(false));
        let name = format!("pmmpi-{}", command.get_name());
        let bin = format!("pmmpi {}", command.get_name());
        page::write(&man, &name, command.bin_name(bin), &[ENVIRONMENT])?;
    }
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut visible(&all), "pmmpi", &completions)?;
    }
    Ok(())
}

/// With the names that options take as words: a shell offers them.
fn with_values(command: Command) -> Command {
    let groups: Vec<&'static str> = catalogue().groups.iter().map(|group| group.name.as_str()).collect();
    let kernels: Vec<&'static str> = pmmpi_kernels::all().iter().map(|kernel| kernel.name).collect();
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
