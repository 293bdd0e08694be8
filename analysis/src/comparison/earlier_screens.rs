//! The screens of a baseline that began before a new screen, and which of them a class is compared with.

use super::side;
use crate::report::against_baseline::BaselineNullReason;
use crate::table::RunTable;
use crate::table::node_class::{ClassBy, Parts};
use crate::verdicts;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The times of these screens.
pub struct EarlierScreens<'a> {
    pub table: &'a RunTable,
    /// The keys of the work.
    by: &'a ClassBy,
    /// The rows of each work.
    rows: HashMap<Parts, Vec<usize>>,
    /// The start of each session (ns since 1970).
    started: HashMap<u32, i64>,
}

impl<'a> EarlierScreens<'a> {
    /// The screens that began before `start`. `runs` are those of the new screen: the baseline may have it, too.
    pub fn of(table: &'a RunTable, by: &'a ClassBy, start: i64, runs: &HashSet<&str>) -> Self {
        let of_screens = || (0..table.len()).filter(|row| side::is_of_screen(table, *row));
        let mut started: HashMap<u32, i64> = HashMap::new();
        for row in of_screens() {
            let first = started.entry(table.session.at(row)).or_insert(i64::MAX);
            *first = (*first).min(table.started_unix_ns[row]);
        }
        // The user may have selected only a part of the new screen.
        let runs: HashSet<u32> = runs.iter().filter_map(|run| table.runs.find(run)).collect();
        let is_new = |row: &usize| runs.contains(&table.run.at(*row));
        let new: HashSet<u32> = (0..table.len()).filter(is_new).map(|row| table.session.at(row)).collect();
        started.retain(|session, first| *first < start && !new.contains(session));
        let mut of_parts: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for row in of_screens().filter(|row| started.contains_key(&table.session.at(*row))) {
            of_parts.entry(table.parts[row]).or_default().push(row);
        }
        let mut rows: HashMap<Parts, Vec<usize>> = HashMap::new();
        for (parts, of_parts) in of_parts {
            let work = table.all_parts[parts as usize].making_up(by, true);
            rows.entry(work).or_default().extend(of_parts);
        }
        Self { table, by, rows, started }
    }

    /// The times of these nodes in one screen: the latest one with enough of them to stand for their class, or else the
    /// one with most of them. The error says why there is none.
    pub fn latest_of(&self, nodes: &BTreeSet<&str>, work: &Parts) -> Result<Vec<usize>, BaselineNullReason> {
        let numbers: HashSet<u32> = nodes.iter().filter_map(|node| self.table.nodes.find(node)).collect();
        let has_node = |row: &&usize| numbers.contains(&self.table.node.at(**row));
        let mut sessions: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for row in self.rows.get(work).into_iter().flatten().filter(has_node) {
            sessions.entry(self.table.session.at(*row)).or_default().push(*row);
        }
        let rank = |(session, rows): &(u32, Vec<usize>)| {
            let common: HashSet<u32> = rows.iter().map(|row| self.table.node.at(*row)).collect();
            let are_enough = verdicts::stand_for_class(common.len(), nodes.len());
            (are_enough, if are_enough { 0 } else { common.len() }, self.started.get(session).copied())
        };
        if let Some((_, rows)) = sessions.into_iter().max_by_key(rank) {
            return Ok(rows);
        }
        Err(match self.rows.values().flatten().any(|row| has_node(&row)) {
            true => BaselineNullReason::NoEarlierTimeOfWork { work: work.class_of_own(self.by) },
            false => BaselineNullReason::NoEarlierTime,
        })
    }
}
