//! Facts that make up no class, such as memory modules, governors and links: which nodes differ in them from most nodes of
//! their class.

use super::ClassRows;
use super::node_report::OddFact;
use crate::table::RunTable;
use crate::table::facts::{self, FactValues};
use crate::table::run_settings::may_differ_between_nodes;
use std::collections::BTreeMap;

/// There are at least this many peers, and at least this many times as many peers as odd nodes.
pub(super) const MANY: usize = 5;

/// The values of each text in the table's `fact_texts`.
pub(super) struct KnownFacts(Vec<FactValues>);

impl KnownFacts {
    pub fn of(table: &RunTable) -> Self {
        Self(table.fact_texts.iter().map(facts::values).collect())
    }

    /// True if no row has facts.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(BTreeMap::is_empty)
    }

    /// The values of a text, by name.
    pub fn get(&self, number: u32) -> Option<&FactValues> {
        self.0.get(number as usize)
    }
}

/// The facts of a node in a session: of most of its runs; of the latest runs if none is more frequent. `rows` has the runs.
pub(super) fn of_session(table: &RunTable, rows: &[u32]) -> u32 {
    let mut counts: BTreeMap<u32, (usize, i64)> = BTreeMap::new();
    for row in rows.iter().map(|row| *row as usize).filter(|row| table.facts_of(*row) > 0) {
        let (runs, latest) = counts.entry(table.facts_of(row)).or_insert((0, i64::MIN));
        (*runs, *latest) = (*runs + 1, table.started_unix_ns[row].max(*latest));
    }
    counts.into_iter().max_by_key(|(_, found)| *found).map_or(0, |(number, _)| number)
}

/// The facts of a class's nodes.
pub(super) struct ClassFacts<'a> {
    known: &'a KnownFacts,
    /// Number of nodes with a value, by name and value.
    counts: BTreeMap<&'a str, BTreeMap<&'a str, usize>>,
}

impl<'a> ClassFacts<'a> {
    /// From the facts of each node: numbers of texts.
    pub fn of(known: &'a KnownFacts, nodes: impl Iterator<Item = u32>) -> Self {
        let mut of_text: BTreeMap<u32, usize> = BTreeMap::new();
        nodes.for_each(|number| *of_text.entry(number).or_default() += 1);
        let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for (number, nodes) in of_text {
            for (name, value) in
                known.get(number).into_iter().flatten().filter(|(name, _)| !may_differ_between_nodes(name))
            {
                *counts.entry(name).or_default().entry(value).or_default() += nodes;
            }
        }
        counts.retain(|_, values| values.values().any(|nodes| *nodes >= MANY));
        Self { known, counts }
    }

    /// The facts in which a node differs from many nodes of the class: from at least [`MANY`] nodes, and from at
    /// least [`MANY`] times as many nodes as have the same value as this node.
    pub fn odd(&self, number: u32) -> Vec<OddFact> {
        let Some(facts) = self.known.get(number) else { return Vec::new() };
        let of = |(name, value): (&String, &String)| {
            let values = self.counts.get(name.as_str())?;
            let (most, nodes) = values.iter().max_by_key(|(_, nodes)| **nodes)?;
            let alike = values.get(value.as_str()).copied().unwrap_or_default().max(1);
            (*most != value && *nodes >= MANY * alike).then(|| OddFact {
                key: name.clone(),
                value: Some(value.clone()),
                class_value: Some((*most).to_owned()),
            })
        };
        facts.iter().filter_map(of).collect()
    }
}

/// The facts of each node of a class in its latest session: the number of the text, by node. `rows` has the rows of each node
/// by session.
pub(super) fn latest(table: &RunTable, rows: ClassRows) -> BTreeMap<u32, u32> {
    let mut latest: BTreeMap<u32, &[u32]> = BTreeMap::new();
    for rows in rows {
        latest.insert(table.node.at(rows[0] as usize), rows);
    }
    latest.into_iter().map(|(node, rows)| (node, of_session(table, rows))).collect()
}
