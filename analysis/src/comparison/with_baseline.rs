//! The latest screen compared with a baseline: whether the class of each kernel moved.
//!
//! How much a class changed, and how certain this is, comes from the same statistics as in `pmmpi compare`. But the
//! level of a class also differs between healthy screens, for example because the room is warmer. So the change must
//! also be so large that a report would call it a change of the class: see [`verdicts::is_change_of_level`]. The times
//! of several screens do not show how much the level varies, so each class is compared with one earlier screen.

use super::side::{self, Side};
use super::{ClassComparison, differences, units};
use crate::input::Input;
use crate::report::against_baseline::{EarlierScreen, KernelAgainst};
use crate::report::run::RunReport;
use crate::report::screen;
use crate::stats::own_history::OwnHistorySettings;
use crate::stats::two_sets::CompareSettings;
use crate::table::RunTable;
use crate::table::node_class::{ClassBy, Parts};
use crate::verdicts::{self, JudgeSettings};
use pmmpi::text::count;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

/// True if the baseline has a time of a screen.
pub fn has_screen(baseline: &Input<()>) -> bool {
    let table = &baseline.results.table;
    (0..table.len()).any(|row| side::is_of_screen(table, row))
}

/// Compares the kernels of the latest screen in `input`. Both inputs must have the parts of their classes
/// ([`crate::input::importers::ImportOptions::keep_parts`]); the classes of the screen are those that `by` makes up.
pub fn of_latest_screen(
    input: &Input<RunReport>,
    baseline: &Input<()>,
    by: &ClassBy,
    settings: &JudgeSettings,
) -> Vec<KernelAgainst> {
    let rounds = screen::rounds_of_latest(input.runs.iter().map(|run| &run.kept));
    let kernel_of: HashMap<&str, &str> =
        rounds.iter().map(|(run, screened)| (run.run_id.as_str(), screened.kernel.as_str())).collect();
    let (table, by) = (&input.results.table, by.of_work());
    // Facts and labels may have changed since the baseline. They make up the classes of the screen only.
    let mut classes: HashMap<(&str, u32, Parts), Vec<usize>> = HashMap::new();
    for row in (0..table.len()).filter(|row| side::is_of_screen(table, *row)) {
        let run = table.runs.get(table.run.at(row)).unwrap_or_default();
        if let (Some(kernel), Some(parts)) = (kernel_of.get(run), side::parts_of(table, row)) {
            let work = parts.making_up(&by, true);
            classes.entry((*kernel, table.class.at(row), work)).or_default().push(row);
        }
    }
    let before = Earlier::of(&baseline.results.table, table, &kernel_of, classes.values().flatten());
    // The rate of false discoveries holds for all comparisons together.
    let part = classes.len().max(1) as f64;
    let compare = CompareSettings { q: settings.node.q / part, ..CompareSettings::default() };
    let level = OwnHistorySettings { q: settings.own_history.q / part, ..settings.own_history };
    let class = |((kernel, _, work), rows): (&(&str, u32, Parts), &Vec<usize>)| {
        let now = Class { kernel, table, rows, work, by: &by };
        now.next_to(&before, &compare, &level)
    };
    let mut found: Vec<KernelAgainst> = classes.iter().map(class).collect();
    let timed: HashSet<&str> = classes.keys().map(|(kernel, ..)| *kernel).collect();
    let all: BTreeSet<&str> = kernel_of.into_values().collect();
    let others = all.into_iter().filter(|kernel| !timed.contains(kernel));
    found.extend(others.map(|kernel| {
        KernelAgainst::not_compared(kernel, None, 0, "this screen has no time of this kernel".to_owned())
    }));
    found.sort_by(|a, b| {
        let order = |of: &KernelAgainst| (Reverse(of.nodes), Reverse(of.nodes_in_screen));
        a.kernel.cmp(&b.kernel).then(order(a).cmp(&order(b))).then(a.class.cmp(&b.class))
    });
    found
}

/// The baseline as it was before the screen.
struct Earlier<'a> {
    table: &'a RunTable,
    /// Rows of screens.
    rows: Vec<usize>,
}

impl<'a> Earlier<'a> {
    /// `rows` are those of the screen, in the table `now`; `runs` has its runs.
    fn of<'b>(
        table: &'a RunTable,
        now: &RunTable,
        runs: &HashMap<&str, &str>,
        rows: impl Iterator<Item = &'b usize>,
    ) -> Self {
        let start = rows.map(|row| now.started_unix_ns[*row]).min().unwrap_or(i64::MIN);
        // An archive may have this screen. The user may have selected only a part of it.
        let runs: HashSet<u32> = runs.keys().filter_map(|run| table.runs.find(run)).collect();
        let is_of_now = |row: &usize| runs.contains(&table.run.at(*row));
        let own: HashSet<u32> = (0..table.len()).filter(is_of_now).map(|row| table.session.at(row)).collect();
        let is_earlier = |row: &usize| {
            table.started_unix_ns[*row] < start
                && !own.contains(&table.session.at(*row))
                && side::is_of_screen(table, *row)
        };
        Self { table, rows: (0..table.len()).filter(is_earlier).collect() }
    }
}

/// The times of a kernel on the nodes of a class of the screen.
struct Class<'a> {
    kernel: &'a str,
    table: &'a RunTable,
    rows: &'a [usize],
    work: &'a Parts,
    /// The keys of the work.
    by: &'a ClassBy,
}

impl Class<'_> {
    /// Compares with the latest screen that did the same on one of these nodes.
    fn next_to(
        &self,
        before: &Earlier,
        settings: &CompareSettings,
        level: &OwnHistorySettings,
    ) -> KernelAgainst {
        let Self { kernel, table, rows, work, by } = *self;
        let nodes: HashSet<&str> = rows.iter().map(|row| table.node_name(*row)).collect();
        let (all, earlier) = (nodes.len(), before.table);
        let name = table.class_name(rows[0]);
        let not_compared = |why: String| KernelAgainst::not_compared(kernel, Some(name), all, why);
        let numbers: HashSet<u32> = nodes.iter().filter_map(|node| earlier.nodes.find(node)).collect();
        let has_node = |row: &usize| numbers.contains(&earlier.node.at(*row));
        let mut of_nodes = before.rows.iter().copied().filter(has_node).peekable();
        if of_nodes.peek().is_none() {
            return not_compared(
                "the baseline has no time of these nodes from before this screen".to_owned(),
            );
        }
        let is_same: Vec<bool> =
            earlier.all_parts.iter().map(|parts| parts.making_up(by, true) == *work).collect();
        let of_work: Vec<usize> = of_nodes.filter(|row| is_same[earlier.parts[*row] as usize]).collect();
        let start = |row: &usize| earlier.started_unix_ns[*row];
        let Some(session) = of_work.iter().copied().max_by_key(start).map(|row| earlier.session.at(row))
        else {
            return not_compared(format!(
                "the baseline has no time of these nodes from before this screen with the same work: {}",
                work.class_of_own(by)
            ));
        };
        let latest = || of_work.iter().copied().filter(|row| earlier.session.at(*row) == session);
        let sides = [Side::of_rows(earlier, latest(), by), Side::of_rows(table, rows.iter().copied(), by)];
        let matched = units::matched(&sides[0], &sides[1], false);
        let (classes, _) = differences::times(&matched, settings);
        // All runs did the same, so that they are one class.
        let Some(class) = classes.into_iter().next() else {
            return not_compared("these times cannot be compared".to_owned());
        };
        let first = latest().min_by_key(start);
        let screen = first.map(|row| EarlierScreen {
            run_id: earlier.run_id(row),
            started_unix_ns: earlier.started_unix_ns[row],
        });
        of_comparison(KernelAgainst { earlier: screen, ..not_compared(String::new()) }, class, level)
    }
}

/// `of` has what is known without the times.
fn of_comparison(of: KernelAgainst, class: ClassComparison, level: &OwnHistorySettings) -> KernelAgainst {
    let ClassComparison { nodes, ratio, ci, different, null_reasons, .. } = class;
    let mut reasons = null_reasons;
    reasons.retain(|key, _| *key == "ci");
    let few = (!verdicts::show_class(nodes, of.nodes_in_screen)).then(|| {
        format!("the earlier screen has times of only {nodes} of {}", count(of.nodes_in_screen, "node"))
    });
    if let Some(why) = few.or_else(|| reasons.get("ci").cloned()) {
        reasons.insert("moved", why);
    }
    let is_open = reasons.contains_key("moved");
    KernelAgainst {
        nodes,
        change: Some(ratio - 1.0),
        ci: ci.map(|ends| ends.map(|end| end - 1.0)),
        moved: (!is_open).then(|| different && verdicts::is_change_of_level(ratio.ln(), level)),
        null_reasons: reasons,
        ..of
    }
}
