//! A table as text, for a terminal.

use super::one_line;
use super::tabular::{Cell, Table};
use crate::stats::verdict_rule::Verdict;
use std::collections::BTreeSet;

/// The line before the table, then columns of equal width, then notes. Long names are cut in the middle, unless two names
/// would then look alike.
pub fn aligned(table: &Table) -> String {
    let text = |cell: &Cell| match cell {
        Cell::Name(text) | Cell::Text(text) => one_line(text),
        Cell::Words(words) => words.clone(),
        Cell::Verdict(verdict) => verdict.map_or("-", Verdict::name).to_owned(),
    };
    let whole: Vec<Vec<String>> = table.rows.iter().map(|row| row.iter().map(text).collect()).collect();
    let different = |at: usize, of: fn(&str) -> String| {
        whole.iter().map(|row| of(&row[at])).collect::<BTreeSet<String>>().len()
    };
    let is_name = |at: usize| table.rows.iter().any(|row| matches!(row[at], Cell::Name(_)));
    let is_cut = |at: usize| is_name(at) && different(at, cut) == different(at, str::to_owned);
    let is_cut: Vec<bool> = (0..table.columns.len()).map(is_cut).collect();
    let shown = |row: &Vec<String>| -> Vec<String> {
        row.iter().zip(&is_cut).map(|(text, is_cut)| if *is_cut { cut(text) } else { text.clone() }).collect()
    };
    let titles = table.columns.iter().map(|column| column.title.to_uppercase().replace(", S", ", s"));
    let mut rows: Vec<Vec<String>> = vec![titles.collect()];
    rows.extend(whole.iter().map(shown));
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).zip(&table.columns).map(|((text, width), column)| {
            match column.is_right {
                true => format!("{text:>width$}"),
                false => format!("{text:<width$}"),
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let before = table.before.iter().map(|text| one_line(text) + "\n");
    let after = table.more.iter().chain(&table.notes).map(|text| one_line(text) + "\n");
    before.chain(rows.iter().map(line)).chain(after).collect()
}

/// The beginning and the end of a long text.
fn cut(text: &str) -> String {
    const LONGEST: usize = 36;
    let length = text.chars().count();
    if length <= LONGEST {
        return text.to_owned();
    }
    let head: String = text.chars().take(LONGEST / 2 - 1).collect();
    let tail: String = text.chars().skip(length - (LONGEST / 2 - 1)).collect();
    format!("{head}..{tail}")
}

#[cfg(test)]
mod tests {
    use super::super::tabular::{left, name};
    use super::*;

    #[test]
    fn names_that_differ_look_different() {
        let table = |names: [&str; 2]| Table {
            columns: vec![left("Node")],
            rows: names.iter().map(|of| vec![name(of)]).collect(),
            ..Table::default()
        };
        let long = |middle: &str| format!("a-long-name-of-a-node-{middle}.cluster.example.org");
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<String>>();
        let alike = lines(&aligned(&table([&long("n0000"), &long("n0001")])));
        assert_eq!(alike[1..], [long("n0000"), long("n0001")]);
        let apart = lines(&aligned(&table([&long("n0000"), "n0001"])));
        assert_eq!(apart[1..], ["a-long-name-of-a-..uster.example.org", "n0001"]);
    }
}
