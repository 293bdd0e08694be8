//! One man page from a clap command.

use crate::sections::{exit_status, see_also};
use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;
use std::io::Write;

/// Heading and text.
pub type PageSection = (&'static str, &'static str);
pub type Sections = &'static [PageSection];

/// The name and the text of the page of `pmmpi NAME`.
pub fn of_command(command: Command, name: &str, sections: Sections) -> std::io::Result<(String, String)> {
    let page = format!("pmmpi-{name}");
    let text = text(&page, command.bin_name(format!("pmmpi {name}")), sections)?;
    Ok((page, text))
}

/// The text of the page `name`. The command's usage is the synopsis, its last words are the notes.
pub fn text(name: &str, command: Command, sections: Sections) -> std::io::Result<String> {
    let mut command = with_help(command);
    let (status, see) = (exit_status(command.get_name()), see_also(command.get_name()));
    let usage = command.render_usage().to_string();
    let last_words = command.get_after_help().map(|help| without_manual(&help.to_string()));
    let man = Man::new(command.clone().display_name(name.to_owned()));
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    section(&mut text, "SYNOPSIS", usage.trim_start_matches("Usage: "))?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    if let Some(words) = last_words {
        notes(&mut text, &words)?;
    }
    filled(&mut text, "EXIT STATUS", &status)?;
    for (heading, body) in sections {
        filled(&mut text, heading, body)?;
    }
    filled(&mut text, "SEE ALSO", &see)?;
    section(&mut text, "VERSION", env!("CARGO_PKG_VERSION"))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The last words of a help without the line that leads to the manual: the manual has all options.
fn without_manual(help: &str) -> String {
    help.lines().filter(|line| !line.contains("man pmmpi")).collect::<Vec<_>>().join("\n")
}

/// With one text for -h and --help, which print the same. clap's own text says that they differ, because only the
/// man page explains the values of options.
fn with_help(command: Command) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).help("Print help");
    command.disable_help_flag(true).arg(help)
}

/// What only pmmpi itself sets, and what PROGRAM in the usage says.
const NOT_FOR_USERS: [&str; 5] = ["series", "round", "argv", "works", "program"];

/// With the options that a screen of --help has no room for.
pub fn with_all(command: Command) -> Command {
    command.mut_args(|arg| {
        let is_for_users = !NOT_FOR_USERS.iter().any(|name| arg.get_id() == *name);
        if is_for_users { arg.hide(false) } else { arg }
    })
}

/// Lines as they are.
fn section(text: &mut Vec<u8>, heading: &str, body: &str) -> std::io::Result<()> {
    writeln!(text, ".SH {heading}\n.nf")?;
    for line in body.lines() {
        writeln!(text, "{}", literal(line))?;
    }
    writeln!(text, ".fi")
}

/// Paragraphs, which the viewer fits to the width of its terminal. A line `NAME  text`, with two blanks, begins an
/// entry, and lines that begin with a blank continue it.
fn filled(text: &mut Vec<u8>, heading: &str, body: &str) -> std::io::Result<()> {
    writeln!(text, ".SH {heading}")?;
    let mut is_entry = false;
    for line in body.lines() {
        match line.split_once("  ").filter(|(name, _)| !name.is_empty()) {
            Some((name, words)) => {
                writeln!(text, ".TP\n{}\n{}", literal(name), literal(words.trim_start()))?;
                is_entry = true;
            }
            None => {
                if is_entry && !line.starts_with(' ') {
                    writeln!(text, ".PP")?;
                    is_entry = false;
                }
                writeln!(text, "{}", literal(line.trim_start()))?;
            }
        }
    }
    Ok(())
}

/// The last words of a help, which the viewer fits to the width of its terminal. Indented lines and the examples at the
/// end stay as they are. The page also breaks its line after a line that ends with a full stop, because the next line
/// often has another subject.
fn notes(text: &mut Vec<u8>, body: &str) -> std::io::Result<()> {
    writeln!(text, ".SH NOTES")?;
    let (mut has_examples, mut is_kept, mut is_ended) = (false, false, false);
    for line in body.lines() {
        has_examples |= line.starts_with("Example");
        let keeps = has_examples || line.starts_with(' ');
        if keeps != is_kept {
            writeln!(text, "{}", if keeps { ".nf" } else { ".fi" })?;
        } else if is_ended && !keeps && !line.is_empty() {
            writeln!(text, ".br")?;
        }
        match line.is_empty() && !keeps {
            true => writeln!(text, ".PP")?,
            false => writeln!(text, "{}", literal(line))?,
        }
        (is_kept, is_ended) = (keeps, line.ends_with('.'));
    }
    if is_kept { writeln!(text, ".fi") } else { Ok(()) }
}

/// A line without special meanings for troff.
fn literal(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    // A line that begins with a dot or a quote would be a request.
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_may_fill_paragraphs_and_entries() {
        let mut text = Vec::new();
        filled(&mut text, "X", "One\ntwo.\n1    a-b\n     .c\nLONG_NAME  d\nLast.").unwrap();
        let wanted = ".SH X\nOne\ntwo.\n.TP\n1\na\\-b\n\\&.c\n.TP\nLONG_NAME\nd\n.PP\nLast.\n";
        assert_eq!(String::from_utf8(text).unwrap(), wanted);
    }

    #[test]
    fn a_viewer_may_fill_notes_but_not_their_examples() {
        let mut text = Vec::new();
        notes(&mut text, "One\ntwo.\nThree:\n  a  b\nFour.\n\nFive.\nExample: c\n         d").unwrap();
        let wanted = ".SH NOTES\nOne\ntwo.\n.br\nThree:\n.nf\n  a  b\n.fi\nFour.\n.PP\nFive.\n.nf\n\
                      Example: c\n         d\n.fi\n";
        assert_eq!(String::from_utf8(text).unwrap(), wanted);
    }
}
