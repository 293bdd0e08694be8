//! Writes the man pages into `man/man1` and the shell completions into `completions`, below the folder named:
//! `pmmpi-manual FOLDER`. Both are made of the command line that clap parses.

mod completions;
mod page;
mod sections;

#[path = "../../launcher/src/cli/options.rs"]
#[allow(dead_code)]
mod launcher;
#[path = "../../analysis/src/cli/options.rs"]
#[allow(dead_code)]
mod report;

use clap::CommandFactory;
use page::Sections;
use sections::{
    DOCTOR_EXIT_STATUS, ENVIRONMENT, LIST_ENVIRONMENT, MEASURING, REPORT_ENVIRONMENT, SCREEN, VALIDATE,
};
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| ".".into()));
    let (man, completions) = (folder.join("man/man1"), folder.join("completions"));
    std::fs::create_dir_all(&man)?;
    std::fs::create_dir_all(&completions)?;
    write_man_pages(&man)?;
    completions::write(&completions, launcher::Options::command(), report::Options::command())
}

fn write_man_pages(folder: &Path) -> std::io::Result<()> {
    let command = page::with_all(launcher::Options::command())
        .mut_subcommand("run", page::with_all)
        .mut_subcommand("screen", page::with_all);
    let own: [(&str, Sections); 6] = [
        ("run", &MEASURING),
        ("repeat", &MEASURING),
        ("screen", &SCREEN),
        ("list", &[LIST_ENVIRONMENT]),
        ("validate", &VALIDATE),
        ("doctor", &[DOCTOR_EXIT_STATUS, ENVIRONMENT]),
    ];
    for (name, sections) in own {
        let sub = command.find_subcommand(name).cloned().unwrap_or_default();
        let sub = sub.bin_name(format!("pmmpi {name}"));
        page::write(folder, &format!("pmmpi-{name}"), sub, sections)?;
    }
    // The launcher becomes pmmpi-report for these, which parses their options.
    for command in report::Options::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_name();
        let (page, bin) = (format!("pmmpi-{name}"), format!("pmmpi {name}"));
        let command = page::with_all(command.clone()).mut_args(|arg| arg.hide_possible_values(false));
        page::write(folder, &page, command.bin_name(bin), &[REPORT_ENVIRONMENT])?;
    }
    page::write(folder, "pmmpi", command, &MEASURING)
}
