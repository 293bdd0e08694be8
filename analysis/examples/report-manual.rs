//! Writes the man pages of `pmmpi report` and `pmmpi bounds` into `man/man1` below the folder named:
//! `cargo run --example report-manual -- FOLDER`.

#[path = "../src/options.rs"]
#[allow(dead_code)]
mod options;

use clap::CommandFactory;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| ".".into())).join("man/man1");
    std::fs::create_dir_all(&folder)?;
    for command in options::Options::command().get_subcommands() {
        let name = format!("pmmpi-{}", command.get_name());
        let bin = format!("pmmpi {}", command.get_name());
        let command = command.clone().display_name(name.clone()).bin_name(bin);
        let mut text = Vec::new();
        clap_mangen::Man::new(command).render(&mut text)?;
        std::fs::write(folder.join(format!("{name}.1")), text)?;
    }
    Ok(())
}
