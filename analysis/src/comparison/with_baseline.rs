//! The latest screen compared with a baseline: whether the class of each kernel moved.
//!
//! How much a class changed, and how certain this is, comes from the same statistics as in `pmmpi compare`. But the
//! level of a class also differs between healthy screens, for example because the room is warmer. So the change must
//! also be so large that a report would call it a change of the class: see [`verdicts::is_change_of_level`]. The times
//! of several screens do not show how much the level varies, so each class is compared with one earlier screen.

use super::earlier_screens::EarlierScreens;
use super::{differences, side};
use crate::input::Input;
use crate::report::against_baseline::{BaselineNullReason, EarlierScreen, KernelAgainst};
use crate::report::run::RunReport;
use crate::report::screen;
use crate::stats::own_history::OwnHistorySettings;
use crate::stats::two_sets::{self, ClassChange, CompareSettings, SessionRuns, Unit};
use crate::table::RunTable;
use crate::table::node_class::{ClassBy, Key, Parts};
use crate::verdicts::{self, JudgeSettings};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// True if the baseline has a time of a screen.
pub fn has_screen(baseline: &Input<()>) -> bool {
    let table = &baseline.results.table;
    (0..table.len()).any(|row| side::is_of_screen(table, row))
}

/// True if the baseline has a time of one of these commands in a screen.
pub fn has_any(baseline: &Input<()>, commands: &[String]) -> bool {
    let table = &baseline.results.table;
    let is_one = |row: usize| {
        let command = side::parts_of(table, row).and_then(|parts| parts.get(&Key::Command));
        command.is_some_and(|command| commands.iter().any(|of| of == command))
    };
    (0..table.len()).any(|row| side::is_of_screen(table, row) && is_one(row))
}

/// Compares the kernels of the latest screen in `input`. Both inputs must have the parts of their classes
/// ([`crate::input::importers::ImportOptions::keep_parts`]); the classes of the screen are those that `by` makes up.
pub fn of_latest_screen(
    input: &Input<RunReport>,
    baseline: &Input<()>,
    by: &ClassBy,
    settings: &JudgeSettings,
) -> Vec<KernelAgainst> {
    let rounds = screen::rounds_of(input.runs.iter().map(|run| &run.kept), input.screen.as_deref());
    let kernel_of: HashMap<&str, &str> =
        rounds.iter().map(|(run, screened)| (run.run_id.as_str(), screened.kernel.as_str())).collect();
    let by = by.of_work();
    let classes = KernelOfClass::all(&input.results.table, &kernel_of, &by);
    let runs: HashSet<&str> = kernel_of.keys().copied().collect();
    let start = classes.iter().map(KernelOfClass::start).min().unwrap_or(i64::MIN);
    let before = EarlierScreens::of(&baseline.results.table, &by, start, &runs);
    // The rate of false discoveries holds for all comparisons together.
    let comparisons = classes.iter().filter(|class| !class.is_too_small).count().max(1) as f64;
    let compare = CompareSettings { q: settings.node.q / comparisons, ..CompareSettings::default() };
    let level = OwnHistorySettings { q: settings.own_history.q / comparisons, ..settings.own_history };
    let mut found: Vec<KernelAgainst> =
        classes.iter().map(|class| class.compare_with(&before, &compare, &level)).collect();
    let timed: HashSet<&str> = classes.iter().map(|class| class.kernel).collect();
    let all: BTreeSet<&str> = kernel_of.into_values().collect();
    let others = all.into_iter().filter(|kernel| !timed.contains(kernel));
    found.extend(
        others.map(|kernel| KernelAgainst::not_compared(kernel, None, 0, BaselineNullReason::NoTimeInScreen)),
    );
    found.sort_by(|a, b| {
        let order = |of: &KernelAgainst| (Reverse(of.nodes), Reverse(of.nodes_in_screen));
        a.kernel.cmp(&b.kernel).then(order(a).cmp(&order(b))).then(a.class.cmp(&b.class))
    });
    found
}

/// The times of a kernel on the nodes of a class of the screen.
struct KernelOfClass<'a> {
    kernel: &'a str,
    table: &'a RunTable,
    rows: Vec<usize>,
    nodes: BTreeSet<&'a str>,
    work: Parts,
    /// True if these are so few of all nodes with a time of this kernel that they are no class to compare.
    is_too_small: bool,
}

impl<'a> KernelOfClass<'a> {
    /// `kernel_of` has the kernel of each run of the screen, and `by` has the keys of the work. Facts and labels may have
    /// changed since the baseline: they make up the classes of the screen only.
    fn all(table: &'a RunTable, kernel_of: &HashMap<&str, &'a str>, by: &ClassBy) -> Vec<Self> {
        let mut classes: HashMap<(&str, u32, Parts), Vec<usize>> = HashMap::new();
        let mut nodes_of: HashMap<&str, HashSet<u32>> = HashMap::new();
        for row in (0..table.len()).filter(|row| side::is_of_screen(table, *row)) {
            let run = table.runs.get(table.run.at(row)).unwrap_or_default();
            if let (Some(kernel), Some(parts)) = (kernel_of.get(run), side::parts_of(table, row)) {
                let class = (*kernel, table.class.at(row), parts.making_up(by, true));
                classes.entry(class).or_default().push(row);
                nodes_of.entry(*kernel).or_default().insert(table.node.at(row));
            }
        }
        let class = |((kernel, _, work), rows): ((&'a str, u32, Parts), Vec<usize>)| {
            let nodes: BTreeSet<&str> = rows.iter().map(|row| table.node_name(*row)).collect();
            let with_kernel = nodes_of.get(kernel).map_or(0, HashSet::len);
            let is_too_small = !verdicts::is_large_class(nodes.len(), with_kernel);
            Self { kernel, table, rows, nodes, work, is_too_small }
        };
        classes.into_iter().map(class).collect()
    }

    /// ns since 1970.
    fn start(&self) -> i64 {
        self.rows.iter().map(|row| self.table.started_unix_ns[*row]).min().unwrap_or(i64::MAX)
    }

    fn compare_with(
        &self,
        before: &EarlierScreens,
        settings: &CompareSettings,
        level: &OwnHistorySettings,
    ) -> KernelAgainst {
        if self.is_too_small {
            return KernelAgainst { too_small: true, ..self.not_compared(BaselineNullReason::SmallClass) };
        }
        match before.latest_of(&self.nodes, &self.work) {
            Ok(rows) => self.next_to(before.table, &rows, settings, level),
            Err(why) => self.not_compared(why),
        }
    }

    fn class(&self) -> &'a str {
        self.table.class_name(self.rows[0])
    }

    fn not_compared(&self, why: BaselineNullReason) -> KernelAgainst {
        KernelAgainst::not_compared(self.kernel, Some(self.class()), self.nodes.len(), why)
    }

    /// `rows` of `earlier` are those of the earlier screen.
    fn next_to(
        &self,
        earlier: &RunTable,
        rows: &[usize],
        settings: &CompareSettings,
        level: &OwnHistorySettings,
    ) -> KernelAgainst {
        let times = times_of_both([(earlier, rows), (self.table, self.rows.as_slice())]);
        let (nodes, all) = (times.len(), self.nodes.len());
        let found = change(&times, settings);
        let interval = found.as_ref().and_then(|found| found.interval);
        let few_runs = interval.is_none().then_some(BaselineNullReason::FewRuns);
        let few_nodes = (!verdicts::stand_for_class(nodes, all))
            .then_some(BaselineNullReason::FewNodes { measured: nodes, nodes: all });
        let reasons = [("ci", few_runs.clone()), ("moved", few_nodes.or(few_runs))];
        let null_reasons: BTreeMap<&str, BaselineNullReason> =
            reasons.into_iter().filter_map(|(key, why)| Some((key, why?))).collect();
        let is_moved = found.as_ref().is_some_and(|found| {
            differences::is_certain(found.p, found.interval, settings)
                && verdicts::is_change_of_level(found.change, level)
        });
        let first = rows.iter().copied().min_by_key(|row| earlier.started_unix_ns[*row]);
        KernelAgainst {
            kernel: self.kernel.to_owned(),
            class: Some(self.class().to_owned()),
            nodes,
            nodes_in_screen: all,
            too_small: false,
            earlier: first.map(|row| EarlierScreen {
                session: earlier.session_name(row).map(str::to_owned),
                run_id: earlier.run_id(row),
                started_unix_ns: earlier.started_unix_ns[row],
            }),
            change: found.map(|found| found.change.exp_m1()),
            ci: interval.map(|ends| ends.map(f64::exp_m1)),
            moved: (!null_reasons.contains_key("moved")).then_some(is_moved),
            null_reasons,
        }
    }
}

/// The times (s) before and now of each node that has both. A screen is some rows of a table.
fn times_of_both(screens: [(&RunTable, &[usize]); 2]) -> Vec<[Vec<f64>; 2]> {
    let mut times: BTreeMap<&str, [Vec<f64>; 2]> = BTreeMap::new();
    for (set, (table, rows)) in screens.into_iter().enumerate() {
        for row in rows {
            times.entry(table.node_name(*row)).or_default()[set].push(table.elapsed_s[*row]);
        }
    }
    times.into_values().filter(|[before, now]| !before.is_empty() && !now.is_empty()).collect()
}

/// The change of the class. Each screen is a session of its own.
fn change(times: &[[Vec<f64>; 2]], settings: &CompareSettings) -> Option<ClassChange> {
    let (mut seconds, mut ends): (Vec<f64>, Vec<usize>) = (Vec::new(), Vec::new());
    for of_node in times {
        seconds.extend(of_node.iter().flatten().copied());
        ends.push(seconds.len());
    }
    let ln = |times: &[f64]| times.iter().map(|time| time.ln()).collect::<Vec<f64>>();
    let unit = |[before, now]: &[Vec<f64>; 2]| {
        let a = SessionRuns { a: ln(before), ..SessionRuns::default() };
        let b = SessionRuns { b: ln(now), ..SessionRuns::default() };
        vec![a, b]
    };
    let units: Vec<Unit> = times.iter().map(unit).collect();
    two_sets::compare(&units, differences::rounding(&seconds, &ends), 1, settings)
}
