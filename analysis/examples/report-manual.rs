//! Writes the man pages of `pmmpi report` and `pmmpi bounds` into `man/man1` below the folder named:
//! `cargo run --example report-manual -- FOLDER`.

#[path = "../src/options.rs"]
#[allow(dead_code)]
mod options;
#[path = "../../docs/man/page.rs"]
mod page;

use clap::CommandFactory;
use std::path::PathBuf;

const ENVIRONMENT: (&str, &str) = (
    "ENVIRONMENT",
    "PMMPI_OUT  the folder that `pmmpi report` reads where no PATH is given\nPMMPI_TRUST  the folder with what `pmmpi validate` found",
);

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| ".".into())).join("man/man1");
    std::fs::create_dir_all(&folder)?;
    for command in options::Options::command().get_subcommands() {
        let name = format!("pmmpi-{}", command.get_name());
        let bin = format!("pmmpi {}", command.get_name());
        // Help fits a screen; the manual has all.
        let command =
            command.clone().bin_name(bin).mut_args(|arg| arg.hide(false).hide_possible_values(false));
        page::write(&folder, &name, command, &[ENVIRONMENT])?;
    }
    Ok(())
}
