//! The times of a screen's kernels on each host, from the table: nodes may be judged by an earlier session.

use crate::table::RunTable;
use pmmpi::order_statistics::of_ascending;
use std::collections::{BTreeMap, HashMap};

/// The times of one screen.
#[derive(Default)]
pub struct ScreenTimes<'a> {
    /// Ascending (s).
    of: BTreeMap<(&'a str, &'a str), Vec<f64>>,
    /// The kernel of each host and class; `None` if the class has several.
    kernels: HashMap<(&'a str, &'a str), Option<&'a str>>,
    session: Option<&'a str>,
}

impl<'a> ScreenTimes<'a> {
    /// `kernel_of` has the kernel of each run of the screen.
    pub fn of(table: &'a RunTable, kernel_of: &HashMap<&str, &'a str>) -> Self {
        let mut all = Self::default();
        if table.screens.is_empty() {
            return all;
        }
        for row in (0..table.len()).filter(|row| table.screens.contains(&table.run.at(*row))) {
            let run = table.runs.get(table.run.at(row)).unwrap_or_default();
            let Some(kernel) = kernel_of.get(run).copied() else { continue };
            let (host, class) = (table.node_name(row), table.class_name(row));
            all.of.entry((kernel, host)).or_default().push(table.elapsed_s[row]);
            let known = all.kernels.entry((host, class)).or_insert(Some(kernel));
            *known = known.filter(|known| *known == kernel);
            all.session = table.session_name(row);
        }
        all.of.values_mut().for_each(|seconds| seconds.sort_by(f64::total_cmp));
        all
    }

    /// The session of the screen.
    pub fn session(&self) -> Option<&'a str> {
        self.session
    }

    /// The kernel that a host ran in a class.
    pub fn kernel(&self, host: &str, class: &str) -> Option<&'a str> {
        self.kernels.get(&(host, class)).copied().flatten()
    }

    /// Number of runs with a time.
    pub fn runs(&self, kernel: &str, host: &str) -> usize {
        self.of.get(&(kernel, host)).map_or(0, Vec::len)
    }

    /// The median time (s).
    pub fn median_s(&self, kernel: &str, host: &str) -> Option<f64> {
        of_ascending(self.of.get(&(kernel, host))?)
    }
}
