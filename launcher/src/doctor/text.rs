//! The report as text.

use super::check::{Check, DoctorReport, Status};
use pmmpi::text::printable;
use std::ffi::OsString;
use std::fmt::Write;

/// Width of the text in columns. Commands and paths do not wrap, so that the user can copy them.
const WIDTH: usize = 80;
const STATUS_WIDTH: usize = 8;

/// True on a terminal, unless the user disables colours (https://no-color.org).
pub fn wants_colour(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let minds = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    is_terminal && !minds && variable("TERM").is_none_or(|term| term != "dumb")
}

/// Renders all checks. Only a check that is not ok shows its effect and its fix.
pub fn render(report: &DoctorReport, colour: bool) -> String {
    let names = report.checks.iter().map(|check| check.name.len()).max().unwrap_or(0) + 2;
    let mut text = format!("pmmpi {} on {}\n\n", env!("CARGO_PKG_VERSION"), printable(&report.node));
    for check in &report.checks {
        line(&mut text, check, names, colour);
    }
    let count = |status: Status| format!("{} {}", report.count(status), status.name());
    let counts = [Status::Ok, Status::Limits, Status::Broken].map(count).join(", ");
    let is_mendable = report.checks.iter().any(|check| check.fix.is_some());
    let advice = if is_mendable { " Commands that change the system need root." } else { "" };
    // Writing to a string does not fail.
    let _ = writeln!(text, "\n{counts}.{advice}");
    text
}

fn line(text: &mut String, check: &Check, names: usize, colour: bool) {
    let status = format!("{:<STATUS_WIDTH$}", check.status.name());
    let status = if colour { format!("\x1b[{}m{status}\x1b[0m", code(check.status)) } else { status };
    let indent = STATUS_WIDTH + names;
    let mut lines = wrapped(&check.found, WIDTH - indent);
    if check.status != Status::Ok {
        lines.extend(wrapped(&check.meaning, WIDTH - indent));
    }
    for (number, line) in lines.iter().enumerate() {
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
                for line in wrapped(comment, WIDTH - STATUS_WIDTH - 4) {
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

/// Lines of at most `width` columns, except for longer words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in printable(text).split_whitespace() {
        let Some(line) = lines.last_mut() else { continue };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
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
        let text = render(&report(), false);
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
    fn colours_change_no_column() {
        let mut plain = render(&report(), true);
        assert!(plain.contains("\x1b[32mok      \x1b[0m") && plain.contains("\x1b[31mbroken  \x1b[0m"));
        for code in ["\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, render(&report(), false));
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
