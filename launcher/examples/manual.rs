//! Writes the launcher's man pages and shell completions into `man/man1` and `completions` below the folder
//! named: `cargo run --example manual -- FOLDER`.

#[path = "../src/options.rs"]
#[allow(dead_code)]
mod options;

use clap::CommandFactory;
use clap_complete::{Shell, generate_to};
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| ".".into()));
    let (man, completions) = (folder.join("man/man1"), folder.join("completions"));
    std::fs::create_dir_all(&man)?;
    std::fs::create_dir_all(&completions)?;
    let command = options::Options::command();
    // `report` and `bounds` are described by the program that they become.
    let repeat = command.find_subcommand("repeat").cloned().unwrap_or_default().display_name("pmmpi-repeat");
    page(&man, command, "pmmpi.1", ENVIRONMENT)?;
    page(&man, repeat.bin_name("pmmpi repeat"), "pmmpi-repeat.1", "")?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut options::Options::command(), "pmmpi", &completions)?;
    }
    Ok(())
}

const ENVIRONMENT: &str = ".SH ENVIRONMENT
.TP
PMMPI_OUT
The folder for run files where \\-\\-out names none.
.TP
PMMPI_LIBDIR
Where libpmmpi_agent.so, pmmpi\\-topology and the runners are, if not in ../lib/pmmpi beside pmmpi's own folder.
";

fn page(folder: &Path, command: clap::Command, name: &str, more: &str) -> std::io::Result<()> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    text.extend_from_slice(more.as_bytes());
    std::fs::write(folder.join(name), text)
}
