//! The times of a screen's kernels on each host, from the table: nodes may be judged by an earlier session.

use super::cores_differ::HostThreads;
use crate::table::{RunTable, facts};
use hashbrown::HashMap;
use pmmpi::order_statistics::of_ascending;

/// The fact with the number of hardware threads: see [`pmmpi::node::FACTS`].
const THREADS: &str = "hardware_threads";

/// The times of one screen.
#[derive(Default)]
pub struct ScreenTimes<'a> {
    /// Of each kernel and host.
    of: HashMap<(&'a str, &'a str), KernelTimes<'a>>,
    /// The kernel of each host and class; `None` if the class has several.
    kernels: HashMap<(&'a str, &'a str), Option<&'a str>>,
    session: Option<&'a str>,
    /// The hardware threads that are online on each host of a class, where that is known.
    threads: HashMap<(&'a str, &'a str), usize>,
}

/// The times of a kernel on a host.
struct KernelTimes<'a> {
    class: &'a str,
    /// Ascending (s).
    seconds: Vec<f64>,
}

impl<'a> ScreenTimes<'a> {
    /// `kernel_of` has the kernel of each run of the screen.
    pub fn of(table: &'a RunTable, kernel_of: &HashMap<&str, &'a str>) -> Self {
        let mut all = Self::default();
        // Numbers are found faster than names, and each run has a row for each node.
        let kernel_of_run = |run: &u32| Some((*run, *kernel_of.get(table.runs.get(*run)?)?));
        let kernels: HashMap<u32, &str> = table.screens.iter().filter_map(kernel_of_run).collect();
        let mut names: Vec<&str> = kernels.values().copied().collect();
        names.sort_unstable();
        names.dedup();
        let number = |(run, kernel): (u32, &str)| Some((run, names.binary_search(&kernel).ok()?));
        let kernels: HashMap<u32, usize> = kernels.into_iter().filter_map(number).collect();
        let of_screen = |row: usize| Some((*kernels.get(&table.run.at(row))?, table.node.at(row), row));
        let mut rows: Vec<(usize, u32, usize)> = (0..table.len()).filter_map(of_screen).collect();
        all.session = rows.last().and_then(|(.., row)| table.session_name(*row));
        rows.sort_unstable();
        let mut texts: HashMap<u32, Option<usize>> = HashMap::new();
        for rows in rows.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (kernel, node) = (names[rows[0].0], rows[0].1);
            let host = table.nodes.get(node).unwrap_or_default();
            let (mut class, mut seen) = ("", None);
            for (.., row) in rows {
                let text = table.facts_of(*row);
                let now = Some((table.class.at(*row), text));
                if std::mem::replace(&mut seen, now) == now {
                    continue;
                }
                class = table.class_name(*row);
                let threads = *texts.entry(text).or_insert_with(|| {
                    let facts = facts::values(table.fact_texts.get(text).unwrap_or_default());
                    facts.get(THREADS)?.parse().ok()
                });
                all.threads.extend(threads.map(|threads| ((class, host), threads)));
                let known = all.kernels.entry((host, class)).or_insert(Some(kernel));
                *known = known.filter(|known| *known == kernel);
            }
            let mut seconds: Vec<f64> = rows.iter().map(|(.., row)| table.elapsed_s[*row]).collect();
            seconds.sort_by(f64::total_cmp);
            all.of.insert((kernel, host), KernelTimes { class, seconds });
        }
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

    /// The hardware threads that are online on each host of a class.
    pub fn online_threads(&self) -> impl Iterator<Item = HostThreads<'a>> {
        self.threads.iter().map(|((class, host), threads)| ([*class, ""], *host, *threads))
    }

    /// The class of a kernel on a host.
    pub fn class(&self, kernel: &str, host: &str) -> Option<&'a str> {
        self.of.get(&(kernel, host)).map(|times| times.class)
    }

    /// Number of runs with a time.
    pub fn runs(&self, kernel: &str, host: &str) -> usize {
        self.of.get(&(kernel, host)).map_or(0, |times| times.seconds.len())
    }

    /// The median time (s).
    pub fn median_s(&self, kernel: &str, host: &str) -> Option<f64> {
        of_ascending(&self.of.get(&(kernel, host))?.seconds)
    }
}
