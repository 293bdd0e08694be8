//! The report for a ticket or a wiki, in GitHub-flavoured Markdown.

use super::md_and_html_tables;
use super::origin::ReportOrigin;
use super::tabular::{Cell, Table};
use super::{answer, first_warnings, one_line, screen};
use crate::report::Report;
use crate::stats::verdict_rule::Verdict;
use std::collections::BTreeSet;

/// A report with at most `top` rows per table (0: all).
pub fn report(report: &Report, origin: &ReportOrigin, top: usize) -> String {
    let mut text = String::new();
    for sentence in screen::sentences(report).into_iter().chain(answer::of(report)) {
        text += &format!("**{}**\n\n", prose(&sentence));
    }
    if let Some(selected) = &report.selected {
        text += &format!("Selected: {}\n\n", code(&selected.to_string()));
    }
    for (number, table) in md_and_html_tables::of(report, top).iter().enumerate() {
        text += &of_table(table);
        if number == 0 {
            text += &meanings(report);
        }
    }
    for (number, warning) in first_warnings::few(report).into_iter().enumerate() {
        if number == 0 {
            text += "Warnings:\n\n";
        }
        let (message, advice) = (prose(&warning.message), prose(warning.code.advice()));
        text += &format!("- {message} \\[{}\\]: {advice}\n", warning.code.name());
    }
    let sources: Vec<String> = origin.sources.iter().map(|source| code(source)).collect();
    format!("{}\n\n{} {}\n", text.trim_end(), prose(&origin.sentence()), sources.join(", "))
}

/// A table.
pub(super) fn of_table(table: &Table) -> String {
    let row =
        |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let mut text = table.before.iter().map(|before| format!("{}\n\n", prose(before))).collect::<String>();
    text += &row(&mut table.columns.iter().map(|column| column.title.to_owned()));
    text +=
        &row(&mut table.columns.iter().map(|column| if column.is_right { "--:" } else { "---" }.to_owned()));
    for cells in &table.rows {
        text += &row(&mut cells.iter().map(cell));
    }
    for after in table.more.iter().chain(&table.notes) {
        text += &format!("\n{}\n", prose(after));
    }
    text + "\n"
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Name(name) => code(name),
        Cell::Text(text) | Cell::Words(text) => prose(text),
        Cell::Verdict(None) => "-".to_owned(),
        Cell::Verdict(Some(Verdict::Ok)) => Verdict::Ok.name().to_owned(),
        Cell::Verdict(Some(verdict)) => format!("**{}**", verdict.name()),
    }
}

/// Explains the verdicts that occur.
fn meanings(report: &Report) -> String {
    let verdicts: BTreeSet<Verdict> =
        report.nodes.iter().filter_map(|node| node.among_peers().verdict).collect();
    let with_meaning =
        verdicts.iter().rev().filter_map(|verdict| Some((verdict.name(), answer::meaning(*verdict)?)));
    let lines: Vec<String> = with_meaning.map(|(name, meaning)| format!("- {name}: {meaning}\n")).collect();
    match lines.is_empty() {
        true => String::new(),
        false => lines.concat() + "\n",
    }
}

/// A name in a code span: there, no character is markup, a mention or a link. The fence is longer than any run of
/// backticks in the name.
fn code(name: &str) -> String {
    let name = one_line(name);
    let longest = name.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    if name.trim().is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest + 1);
    let pad = if name.starts_with('`') || name.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{}{pad}{fence}", within_cell(&name))
}

/// Escapes each bar, because Markdown splits a table row into cells before it reads code spans. After an odd number
/// of backslashes the bar gets two: a single one would itself be escaped. The cell then shows one backslash too many,
/// but the columns are right.
fn within_cell(name: &str) -> String {
    let (mut text, mut before) = (String::new(), 0);
    for c in name.chars() {
        if c == '|' {
            text.push_str(if before % 2 == 0 { "\\" } else { "\\\\" });
        }
        before = if c == '\\' { before + 1 } else { 0 };
        text.push(c);
    }
    text
}

/// A sentence that may contain names: escapes all markup. GitHub finds mentions, references and links in the text
/// that remains after markup, so a zero-width space separates their characters.
pub(super) fn prose(sentence: &str) -> String {
    const APART: &str = "&#8203;";
    let mut text = String::new();
    for c in one_line(sentence).chars() {
        match c {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '|' | '~' | '!' | '$' | '&' => {
                text.extend(['\\', c]);
            }
            '@' => text.extend(["@", APART]),
            '#' => text.extend(["\\#", APART]),
            _ => text.push(c),
        }
    }
    // GitHub makes links of these without any markup.
    text.replace("://", &format!(":{APART}//")).replace("www.", &format!("www{APART}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_shown_as_they_are() {
        for (name, expected) in [
            ("n01", "`n01`"),
            ("a|b", "`a\\|b`"),
            ("a\\|b", "`a\\\\\\|b`"),
            ("a`b", "``a`b``"),
            ("`", "`` ` ``"),
            ("<b>&amp;*_@all", "`<b>&amp;*_@all`"),
            ("a\n| b", "`a?\\| b`"),
            ("\u{202e}a", "`?a`"),
            ("", ""),
            (" ", ""),
        ] {
            assert_eq!(code(name), expected, "{name:?}");
        }
    }

    #[test]
    fn nothing_in_a_sentence_is_markup() {
        assert_eq!(prose("n_1 +7.9 % (at least)"), "n\\_1 +7.9 % (at least)");
        assert_eq!(
            prose("<img src=x> [a](http://b) `c`"),
            "\\<img src=x\\> \\[a\\](http:&#8203;//b) \\`c\\`"
        );
        assert_eq!(prose("@all #1 www.b\r\n- c"), "@&#8203;all \\#&#8203;1 www&#8203;.b??- c");
    }

    /// Splits a row like cmark-gfm and markdown-it.
    fn columns(row: &str) -> [usize; 2] {
        let (mut pairs, mut toggled) = (0, 0);
        let mut characters = row.chars();
        while let Some(c) = characters.next() {
            match c {
                '\\' => _ = characters.next(),
                '|' => pairs += 1,
                _ => {}
            }
        }
        let mut previous = ' ';
        for c in row.chars() {
            toggled += usize::from(c == '|' && previous != '\\');
            previous = c;
        }
        [pairs, toggled]
    }

    proptest! {
        #[test]
        fn no_name_moves_a_column(name in "([a|`\\\\<@]|\\PC|[\r\n\t]){0,12}") {
            let row = format!("| {} | {} |", code(&name), prose(&name));
            prop_assert_eq!(columns(&row), [3, 3], "{}", row);
            prop_assert!(!row.contains('\n'));
        }
    }
}
