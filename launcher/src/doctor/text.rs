//! The report as text.

use super::check::{Check, DoctorReport, Status};
use pmmpi::text::{lines, printable};
use std::ffi::OsString;
use std::fmt::Write;

/// Width of the text in columns, also on a wider terminal. Commands and paths do not wrap, so that the user can copy
/// them.
const WIDTH: usize = 80;
/// A column of text has at least this many characters.
const LEAST: usize = 20;
const STATUS_WIDTH: usize = 8;

/// True on a terminal, unless the user disables colours (https://no-color.org).
pub fn wants_colour(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let minds = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    is_terminal && !minds && variable("TERM").is_none_or(|term| term != "dumb")
}

/// Renders all checks, for a terminal of `width` columns. Only a check that is not ok shows its effect and its fix.
pub fn render(report: &DoctorReport, colour: bool, width: Option<usize>) -> String {
    let width = width.map_or(WIDTH, |width| width.min(WIDTH));
    let names = report.checks.iter().map(|check| check.name.len()).max().unwrap_or(0) + 2;
    let mut text = format!("pmmpi {} on {}\n\n", env!("CARGO_PKG_VERSION"), printable(&report.node));
    for check in &report.checks {
        line(&mut text, check, names, colour, width);
    }
    let count = |status: Status| format!("{} {}", report.count(status), status.name());
    let counts = [Status::Ok, Status::Limits, Status::Broken].map(count).join(", ");
    let is_mendable = report.checks.iter().any(|check| check.fix.is_some());
    let advice = if is_mendable { " Commands that change the system need root." } else { "" };
    // Writing to a string does not fail.
    let _ = writeln!(text, "\n{counts}.{advice}");
    text
}

fn line(text: &mut String, check: &Check, names: usize, colour: bool, width: usize) {
    let wrapped =
        |text: &str, indent: usize| lines(&printable(text), width.saturating_sub(indent).max(LEAST));
    let status = format!("{:<STATUS_WIDTH$}", check.status.name());
    let status = if colour { format!("\x1b[{}m{status}\x1b[0m", code(check.status)) } else { status };
    let indent = STATUS_WIDTH + names;
    let mut all = wrapped(&check.found, indent);
    if check.status != Status::Ok {
        all.extend(wrapped(&check.meaning, indent));
    }
    for (number, line) in all.iter().enumerate() {
        let _ = match number {
            0 => writeln!(text, "{status}{:<names$}{line}", check.name),
            _ => writeln!(text, "{:indent$}{line}", ""),
        };
    }
    for fix in check.fix.iter().flat_map(|fix| fix.lines()) {
        let fix = printable(fix);
        // Comments wrap; commands stay on one line.
        match fix.strip_prefix("# ") {
            Some(comment) => {
                for line in wrapped(comment, STATUS_WIDTH + 4) {
                    let _ = writeln!(text, "{:STATUS_WIDTH$}  # {line}", "");
                }
            }
            None => {
                let _ = writeln!(text, "{:STATUS_WIDTH$}  {fix}", "");
            }
        }
    }
}

/// Select graphic rendition (ECMA-48): green, yellow, red.
fn code(status: Status) -> u8 {
    match status {
        Status::Ok => 32,
        Status::Limits => 33,
        Status::Broken => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> DoctorReport {
        let long = "word ".repeat(60);
        let hostile = "a\x1b[2J\nb";
        let checks = vec![
            Check::ok("one", hostile, "not shown"),
            Check::limits("number_two", "found", long, "# on the host:\nsysctl -w a=1"),
            Check::broken("three", "x".repeat(200), "costs", "mend"),
        ];
        DoctorReport { node: "node\x07".into(), checks }
    }

    #[test]
    fn columns_are_aligned_and_fit() {
        let text = render(&report(), false, None);
        assert!(text.starts_with("pmmpi ") && text.contains(" on node?\n"));
        assert!(text.contains("\nok      one         a?[2J b\n"), "{text}");
        assert!(text.contains("\nlimits  number_two  found\n                    word word"), "{text}");
        assert!(
            text.contains("\n          # on the host:\n          sysctl -w a=1\nbroken  three"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.len() <= WIDTH || line.contains(&"x".repeat(200))), "{text}");
        assert!(!text.contains("not shown") && text.contains("1 ok, 1 limits, 1 broken."));
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn a_narrow_terminal_has_shorter_lines() {
        let text = render(&report(), false, Some(50));
        assert!(
            text.lines().all(|line| line.len() <= 50 || line.contains('x') || line.contains('.')),
            "{text}"
        );
        assert_eq!(render(&report(), false, Some(200)), render(&report(), false, None));
        assert!(render(&report(), false, Some(1)).contains("word word word"));
    }

    #[test]
    fn colours_change_no_column() {
        let mut plain = render(&report(), true, None);
        assert!(plain.contains("\x1b[32mok      \x1b[0m") && plain.contains("\x1b[31mbroken  \x1b[0m"));
        for code in ["\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, render(&report(), false, None));
    }

    #[test]
    fn colours_are_for_terminals_whose_users_do_not_mind() {
        let with = |terminal: bool, name: &'static str, value: &'static str| {
            wants_colour(terminal, |asked| (asked == name).then(|| value.into()))
        };
        assert!(with(true, "TERM", "xterm") && with(true, "NO_COLOR", ""));
        assert!(!with(false, "TERM", "xterm") && !with(true, "NO_COLOR", "1") && !with(true, "TERM", "dumb"));
    }
}
