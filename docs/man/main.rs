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
use sections::{ENVIRONMENT, LIST_ENVIRONMENT, MEASURING, REPORT_ENVIRONMENT, SCREEN, VALIDATE};
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| ".".into()));
    let (man, completions) = (folder.join("man/man1"), folder.join("completions"));
    std::fs::create_dir_all(&man)?;
    std::fs::create_dir_all(&completions)?;
    for (name, text) in man_pages()? {
        std::fs::write(man.join(format!("{name}.1")), text)?;
    }
    completions::write(&completions, launcher::Options::command(), report::Options::command())
}

/// Each page with its name.
fn man_pages() -> std::io::Result<Vec<(String, String)>> {
    let command = page::with_all(launcher::Options::command())
        .mut_subcommand("run", page::with_all)
        .mut_subcommand("screen", page::with_all);
    let own: [(&str, Sections); 6] = [
        ("run", &MEASURING),
        ("repeat", &MEASURING),
        ("screen", &SCREEN),
        ("list", &[LIST_ENVIRONMENT]),
        ("validate", &VALIDATE),
        ("doctor", &[ENVIRONMENT]),
    ];
    let mut pages = Vec::new();
    for (name, sections) in own {
        let sub = command.find_subcommand(name).cloned().unwrap_or_default();
        pages.push(page::of_command(sub, name, sections)?);
    }
    // The launcher becomes pmmpi-report for these, which parses their options.
    for command in report::Options::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        let all = page::with_all(command.clone()).mut_args(|arg| arg.hide_possible_values(false));
        pages.push(page::of_command(all, command.get_name(), &[REPORT_ENVIRONMENT])?);
    }
    pages.push(("pmmpi".to_owned(), page::text("pmmpi", command, &MEASURING)?));
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_the_exit_status_and_the_place_of_the_documentation() {
        let pages = man_pages().unwrap();
        assert_eq!(pages.len(), 13, "pmmpi, run and the 11 commands that help shows");
        for (name, text) in &pages {
            for heading in [".SH EXIT STATUS\n", ".SH SEE ALSO\n"] {
                assert_eq!(text.matches(heading).count(), 1, "{heading} in {name}");
            }
            assert!(text.contains("share/doc/pmmpi/docs"), "{name}");
            assert!(!text.contains("see a summary"), "{name}: -h prints the same");
            assert!(!text.contains(": man pmmpi"), "{name} names itself");
        }
    }

    #[test]
    fn the_page_of_pmmpi_explains_version_and_does_not_name_itself() {
        let pages = man_pages().unwrap();
        let (_, text) = pages.iter().find(|(name, _)| name == "pmmpi").unwrap();
        assert!(text.contains("Print the version") && !text.contains("man pmmpi"), "{text}");
    }
}
