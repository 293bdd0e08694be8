//! The latest screen compared with a baseline: whether the class of each kernel moved.
//!
//! How much a class changed, and how certain this is, comes from the same statistics as in `pmmpi compare`. But the
//! level of a class also differs between healthy screens, for example because the room is warmer. So the change must
//! also be so large that a report would call it a change of the class: see [`verdicts::is_change_of_level`].

use super::side::{self, Side, SideRun};
use super::{ClassComparison, differences, units};
use crate::input::Input;
use crate::report::against_baseline::KernelAgainst;
use crate::report::run::RunReport;
use crate::report::screen;
use crate::stats::own_history::OwnHistorySettings;
use crate::stats::two_sets::CompareSettings;
use crate::table::node_class::{ClassBy, Key};
use crate::verdicts::{self, JudgeSettings};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

/// True if the baseline has a time of a screen.
pub fn has_screen(baseline: &Input<()>) -> bool {
    let table = &baseline.results.table;
    (0..table.len()).any(|row| side::is_of_screen(table, row))
}

/// Compares the kernels of the latest screen in `input`. Both inputs must have the parts of their classes, which `by`
/// makes up ([`crate::input::importers::ImportOptions::keep_parts`]).
pub fn of_latest_screen(
    input: &Input<RunReport>,
    baseline: &Input<()>,
    by: &ClassBy,
    settings: &JudgeSettings,
) -> Vec<KernelAgainst> {
    let rounds = screen::rounds_of_latest(input.runs.iter().map(|run| &run.kept));
    let of_run: HashMap<&str, &str> =
        rounds.iter().map(|(run, screened)| (run.run_id.as_str(), screened.kernel.as_str())).collect();
    let kernels: BTreeSet<&str> = of_run.values().copied().collect();
    let mut now = Side::of_screens(&input.results.table, by);
    now.runs.retain(|run| of_run.contains_key(run.run.as_str()));
    let works: HashSet<Vec<(Key, String)>> = now.runs.iter().map(work).collect();
    // An archive may have this screen, and screens with other options.
    let mut before = Side::of_screens(&baseline.results.table, by);
    before.runs.retain(|run| !of_run.contains_key(run.run.as_str()) && works.contains(&work(run)));
    let matched = units::matched(&before, &now, false);
    let mut of_class: HashMap<&str, &str> = HashMap::new();
    for unit in &matched.units {
        let run = unit.sessions.iter().find_map(|session| session.b.first());
        if let Some(kernel) = run.and_then(|run| of_run.get(run.run.as_str())) {
            of_class.insert(unit.class.as_str(), *kernel);
        }
    }
    let compare = CompareSettings { q: settings.node.q, ..CompareSettings::default() };
    // The rate of false discoveries holds for all kernels together.
    let q = settings.own_history.q / kernels.len().max(1) as f64;
    let level = OwnHistorySettings { q, ..settings.own_history };
    let (classes, _) = differences::times(&matched, &compare);
    let mut found: Vec<KernelAgainst> = Vec::new();
    for class in classes {
        if let Some(kernel) = of_class.get(class.class.as_str()) {
            found.push(of_comparison(kernel, class, &level));
        }
    }
    let compared: HashSet<String> = found.iter().map(|of| of.kernel.clone()).collect();
    let others = kernels.into_iter().filter(|kernel| !compared.contains(*kernel));
    found.extend(others.map(KernelAgainst::not_compared));
    found.sort_by(|a, b| (&a.kernel, Reverse(a.nodes)).cmp(&(&b.kernel, Reverse(b.nodes))));
    found
}

/// The program with its options, and labels: without the facts of the node.
fn work(run: &SideRun) -> Vec<(Key, String)> {
    let parts = run.parts.iter().filter(|(key, _)| !key.is_fact());
    parts.map(|(key, text)| (key.clone(), text.to_owned())).collect()
}

fn of_comparison(kernel: &str, class: ClassComparison, settings: &OwnHistorySettings) -> KernelAgainst {
    let ClassComparison { class, nodes, ratio, ci, different, null_reasons, .. } = class;
    let mut reasons = null_reasons;
    reasons.retain(|key, _| *key == "ci");
    if let Some(why) = reasons.get("ci").cloned() {
        reasons.insert("moved", why);
    }
    KernelAgainst {
        kernel: kernel.to_owned(),
        class: Some(class),
        nodes,
        change: Some(ratio - 1.0),
        ci: ci.map(|ends| ends.map(|end| end - 1.0)),
        moved: ci.map(|_| different && verdicts::is_change_of_level(ratio.ln(), settings)),
        null_reasons: reasons,
    }
}
