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

use clap::CommandFactory;
use clap_complete::{Shell, generate_to};
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
    let mut all = page::with_all(launcher::Options::command()).mut_subcommands(page::with_all);
    for command in options::Options::command().get_subcommands() {
        let command = page::with_all(command.clone()).mut_args(|arg| arg.hide_possible_values(false));
        all = all.mut_subcommand(command.get_name(), |_| command.clone());
        let name = format!("pmmpi-{}", command.get_name());
        let bin = format!("pmmpi {}", command.get_name());
        page::write(&man, &name, command.bin_name(bin), &[ENVIRONMENT])?;
    }
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut all, "pmmpi", &completions)?;
    }
    Ok(())
}
