//! Removes rows of runs that were read before.

use super::{Building, shown};
use crate::input::importers::{REJECTED_KEPT, Rejected, Results};
use crate::table::Order;

impl Building {
    /// Keeps the first row of each run and rejects the others.
    pub(super) fn remove_repeated(&mut self) {
        let mut declared = std::mem::take(&mut self.declared);
        let again = match declared.is_empty() {
            true => {
                self.results.order = Order::of(&self.results.table);
                self.results.order.repeated(&self.results.table)
            }
            false => {
                std::mem::swap(&mut self.results.table.class, &mut declared);
                let again = Order::of(&self.results.table).repeated(&self.results.table);
                std::mem::swap(&mut self.results.table.class, &mut declared);
                self.results.order = Order::of(&self.results.table);
                again
            }
        };
        if again.is_empty() {
            return;
        }
        let mut kept = vec![true; self.results.table.len()];
        for (row, first) in again {
            kept[row] = false;
            let table = &self.results.table;
            let [source, other] = [row, first].map(|row| table.origins.source(row) as usize);
            let is_known = [source, other].iter().any(|source| self.results.sources[*source].is_own);
            self.results.sources[source].rows -= 1;
            let is_source = !self.results.sources[source].is_own && self.results.sources[other].is_own;
            if source != other && is_known && self.results.table.join(row, first, is_source) {
                self.repeats(other as u32);
                continue;
            }
            let classes = if declared.is_empty() { &self.results.table.class } else { &declared };
            let class = classes.at(row);
            let reason = again_of(&self.results, class, row, first);
            self.results.rejected_rows += 1;
            self.results.sources[source].rejected_rows += 1;
            if self.results.rejected.len() < REJECTED_KEPT {
                let line = self.results.table.origins.line(row);
                self.results.rejected.push(Rejected { source: source as u32, line, reason });
            }
        }
        self.results.table.retain(&kept);
        self.results.order = Order::of(&self.results.table);
    }

    /// Counts a row that the file with the index `first` had before.
    pub(super) fn repeats(&mut self, first: u32) {
        self.results.repeated_rows += 1;
        *self.results.repeated_of.entry(first).or_default() += 1;
    }
}

fn again_of(results: &Results, class: u32, row: usize, first: usize) -> String {
    let table = &results.table;
    let (line, source) = (table.origins.line(first), table.origins.source(first));
    let file = match results.sources.get(source as usize) {
        Some(known) if source != table.origins.source(row) => format!("{}, ", known.path.display()),
        _ => String::new(),
    };
    let of = |what: &str, name: &str| match name.is_empty() {
        true => String::new(),
        false => format!(" of {what} {}", shown(name.as_bytes())),
    };
    format!(
        "run {}/{}{}{} is already in {file}line {line}; only the first row counts",
        shown(table.node_name(row).as_bytes()),
        shown(table.runs.get(table.run.at(row)).unwrap_or_default().as_bytes()),
        of("class", table.classes.get(class).unwrap_or_default()),
        of("session", table.session_name(row).unwrap_or_default()),
    )
}
