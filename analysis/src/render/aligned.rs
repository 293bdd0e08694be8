//! A table as text, for a terminal.

use super::node_names::NodeNames;
use super::one_line;
use super::tabular::{Cell, Table};
use crate::stats::verdict_rule::Verdict;

/// Names that are not nodes have at most this many characters, if that tells them apart.
const LONGEST: usize = 36;

/// The line before the table, then columns of equal width, then notes. Long names are cut; the names of `nodes` look as
/// in the other tables.
pub fn aligned(table: &Table, nodes: &NodeNames) -> String {
    let names_of_column = |at: usize| -> Option<NodeNames> {
        let names = || table.rows.iter().filter_map(move |row| name(&row[at]));
        let are_nodes = names().all(|name| nodes.has(name));
        (!are_nodes).then(|| NodeNames::within(LONGEST, names()))
    };
    let columns: Vec<Option<NodeNames>> = (0..table.columns.len()).map(names_of_column).collect();
    let text = |(cell, names): (&Cell, &Option<NodeNames>)| match cell {
        Cell::Name(name) => names.as_ref().unwrap_or(nodes).shown(name).to_owned(),
        Cell::Text(text) => one_line(text),
        Cell::Words(words) => words.clone(),
        Cell::Verdict(verdict) => verdict.map_or("-", Verdict::name).to_owned(),
    };
    let shown = |row: &Vec<Cell>| -> Vec<String> { row.iter().zip(&columns).map(text).collect() };
    let titles = table.columns.iter().map(|column| column.title.to_uppercase().replace(", S", ", s"));
    let mut rows: Vec<Vec<String>> = vec![titles.collect()];
    rows.extend(table.rows.iter().map(shown));
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

fn name(cell: &Cell) -> Option<&str> {
    match cell {
        Cell::Name(name) => Some(name),
        Cell::Text(_) | Cell::Words(_) | Cell::Verdict(_) => None,
    }
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
        let long = |middle: &str| format!("a-long-name-of-a-node-{middle}.cluster.example.org.and.more");
        let lines = |names: [&str; 2], nodes: &NodeNames| {
            aligned(&table(names), nodes).lines().map(str::to_owned).collect::<Vec<String>>()
        };
        let (first, second) = (long("n0000"), long("n0001"));
        let names = [first.as_str(), second.as_str()];
        let others = lines(names, &NodeNames::of([]));
        assert!(others.iter().all(|line| line.chars().count() <= LONGEST), "{others:?}");
        assert!(others[1].contains("n0000") && others[2].contains("n0001"), "{others:?}");
        let of_nodes = NodeNames::of(names);
        assert_eq!(lines(names, &of_nodes)[1..], names.map(|name| of_nodes.shown(name).to_owned()));
    }
}
