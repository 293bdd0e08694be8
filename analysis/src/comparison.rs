//! Two sets of runs compared: what `pmmpi compare` shows. Its keys are a contract (docs/schema/compare.schema.json):
//! later versions may only add keys.

pub mod selector;
mod side;
mod units;

use crate::input::Input;
use crate::report::run::RunReport;
use crate::report::warnings;
use crate::stats::two_sets::{self, ClassChange, CompareSettings, SessionRuns, Unit};
use crate::stats::{benjamini_hochberg, resolution, within_nodes};
use crate::table::node_class::ClassBy;
use crate::warning_codes::{Warning, WarningCode};
use pmmpi::text::count;
use selector::Selector;
use serde::Serialize;
use side::{Side, SideRun};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use units::{Matched, MatchedUnit};

/// All that `pmmpi compare` shows. A ratio is B's time over A's: 1.02 is 2 % slower.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// Version of the JSON format.
    pub schema_version: u32,
    /// The first set.
    pub a: SetReport,
    /// The second set.
    pub b: SetReport,
    /// In what all runs of A differ from all runs of B.
    pub differs: Vec<Difference>,
    /// Classes, by name.
    pub classes: Vec<ClassComparison>,
    /// Nodes and jobs, the largest certain difference first.
    pub nodes: Vec<NodeComparison>,
    /// Regions and metrics, the certain differences first.
    pub metrics: Vec<MetricComparison>,
    /// What limits the comparison.
    pub warnings: Vec<Warning>,
}

/// A set of runs.
#[derive(Debug, Serialize)]
pub struct SetReport {
    /// What the user typed.
    pub name: String,
    /// Number of runs; a run on several nodes counts once.
    pub runs: usize,
    /// Number of nodes.
    pub nodes: usize,
}

/// A fact, label or command in which A and B differ.
#[derive(Debug, Serialize)]
pub struct Difference {
    /// cpu, microcode, memory, kernel, command, ranks, class, or the name of a label or column.
    pub key: String,
    /// Its texts in A; empty if no run has one.
    pub a: Vec<String>,
    /// Its texts in B.
    pub b: Vec<String>,
}

/// A class of nodes that did the same work.
#[derive(Debug, Serialize)]
pub struct ClassComparison {
    /// What the nodes have in common in A and B.
    pub class: String,
    /// Number of nodes (or jobs) that were measured in A and B.
    pub nodes: usize,
    /// The median over the nodes of their median times (s).
    pub a_s: f64,
    /// Likewise.
    pub b_s: f64,
    /// The median over the nodes of B's time over A's time.
    pub ratio: f64,
    /// An interval of at least 93.75 %; `None` if too few runs show it.
    pub ci: Option<[f64; 2]>,
    /// A difference of this fraction is found with a probability of at least 95 %: 0.01 is 1 %.
    pub smallest_visible: Option<f64>,
    /// The probability of such a ratio without a difference, adjusted for the number of classes.
    pub p_adjusted: Option<f64>,
    /// True if the difference is certain.
    pub different: bool,
    /// Number of nodes on which runs of A and B took turns.
    pub in_turns: usize,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, String>,
}

/// A node, or a job on several nodes.
#[derive(Debug, Serialize)]
pub struct NodeComparison {
    /// Host name; "4 nodes" for jobs on four nodes.
    pub node: String,
    /// Its class.
    pub class: String,
    /// Number of runs of A and B.
    pub runs: [usize; 2],
    /// The median time (s).
    pub a_s: f64,
    /// Likewise.
    pub b_s: f64,
    /// B's time over A's time.
    pub ratio: f64,
    /// A 95 % interval; `None` if too few runs show it.
    pub ci: Option<[f64; 2]>,
    /// The probability of such a ratio without a difference, adjusted for the number of nodes.
    pub p_adjusted: Option<f64>,
    /// True if the difference is certain.
    pub different: bool,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, String>,
}

/// A region or a metric of a class.
#[derive(Debug, Serialize)]
pub struct MetricComparison {
    /// Its name; for a region "region NAME, s".
    pub name: String,
    /// The class.
    pub class: String,
    /// The median over the nodes of A's medians.
    pub a: f64,
    /// Likewise.
    pub b: f64,
    /// The median over the nodes of B's value over A's value.
    pub ratio: f64,
    /// An interval of at least 93.75 %; `None` if too few runs show it.
    pub ci: Option<[f64; 2]>,
    /// The probability of such a ratio without a difference, adjusted for the number of regions and metrics.
    pub p_adjusted: Option<f64>,
    /// True if the difference is certain.
    pub different: bool,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, String>,
}

/// What was read for A and B.
pub enum Inputs {
    /// Both are parts of the same runs.
    Shared(Input<RunReport>),
    /// Each has its own.
    Apart([Input<RunReport>; 2]),
}

impl Inputs {
    fn of(&self, set: usize) -> &Input<RunReport> {
        match self {
            Self::Shared(input) => input,
            Self::Apart(inputs) => &inputs[set],
        }
    }

    /// True if a part of the input could not be used.
    pub fn is_partial(&self) -> bool {
        match self {
            Self::Shared(input) => input.is_partial(),
            Self::Apart(inputs) => inputs.iter().any(Input::is_partial),
        }
    }

    fn warnings(&self) -> Vec<Warning> {
        let of = |input: &Input<RunReport>| {
            let mut all = input.warnings.clone();
            all.extend(warnings::of_results(&input.results));
            all.extend(warnings::without_time(input.without_time));
            all
        };
        let mut all = match self {
            Self::Shared(input) => of(input),
            Self::Apart(inputs) => inputs.iter().flat_map(of).collect(),
        };
        // Each run is a part of A or B, however few a node has.
        all.sort();
        all.dedup();
        all
    }
}

impl Comparison {
    /// Compares the runs. The error says why there is nothing to compare. `names` are what the user typed.
    pub fn new(
        inputs: &Inputs,
        names: [&str; 2],
        selectors: [&Selector; 2],
        by: &ClassBy,
        settings: &CompareSettings,
    ) -> Result<Self, String> {
        let side = |set: usize| {
            let input = inputs.of(set);
            let own: HashMap<&str, &RunReport> =
                input.runs.iter().map(|run| (run.run_id.as_str(), &run.kept)).collect();
            Side::of(&input.results.table, &own, selectors[set], by)
        };
        let sides = [side(0), side(1)];
        if let Some(empty) = sides.iter().position(|side| side.runs.is_empty()) {
            return Err(format!("{} has no run with a time", names[empty]));
        }
        let same_table = matches!(inputs, Inputs::Shared(_));
        let matched = units::matched(&sides[0], &sides[1], same_table);
        if matched.units.is_empty() {
            let [a, b] = matched.unmatched.each_ref().map(|units| some(units));
            return Err(format!(
                "A and B have no node with the same work in common: A has {a}, B has {b}\n       \
                 If their nodes or labels have other names, --class-by KEYS chooses what must be equal"
            ));
        }
        let mut all = inputs.warnings();
        all.extend(about_blocks(&matched, selectors));
        all.extend(about_unmatched(&matched));
        let compared = compared(&matched, settings);
        all.extend(about_few(&compared.0));
        let [a, b] = [0, 1].map(|set: usize| SetReport {
            name: names[set].to_owned(),
            runs: sides[set].runs.len(),
            nodes: sides[set].nodes().len(),
        });
        let metrics = metrics(&matched, settings);
        Ok(Self {
            schema_version: 1,
            a,
            b,
            differs: matched
                .differs
                .iter()
                .filter(|(key, _)| !selectors.iter().any(|selector| selector.names(key.name())))
                .map(|(key, texts)| Difference::new(key.name(), texts))
                .collect(),
            classes: compared.0,
            nodes: compared.1,
            metrics,
            warnings: all,
        })
    }
}

impl Difference {
    fn new(key: &str, texts: &[BTreeSet<Option<String>>; 2]) -> Self {
        let [a, b] = texts.each_ref().map(|texts| texts.iter().flatten().cloned().collect());
        Self { key: key.to_owned(), a, b }
    }
}

fn some(units: &BTreeSet<&str>) -> String {
    let named: Vec<&str> = units.iter().take(3).copied().collect();
    let more = if units.len() > named.len() { ", ..." } else { "" };
    format!("{}{more}", named.join(", "))
}

/// What rounding may hide in the times of a class (ln T).
fn rounding(units: &[MatchedUnit]) -> f64 {
    let (mut seconds, mut ends) = (Vec::new(), Vec::new());
    for unit in units {
        let runs = unit.sessions.iter().flat_map(|session| session.a.iter().chain(&session.b));
        seconds.extend(runs.map(|run| run.elapsed_s));
        ends.push(seconds.len());
    }
    let middle = within_nodes::median_of(&mut seconds.clone()).unwrap_or(1.0);
    resolution::hidden(resolution::Units::of(&seconds, &ends).class, middle.ln())
}

fn units_of(units: &[MatchedUnit], of: impl Fn(&SideRun) -> Option<f64> + Copy) -> Vec<Unit> {
    units.iter().map(|unit| unit.sessions.iter().map(|session| session.values(of)).collect()).collect()
}

/// The median over the units of the medians of each set.
fn medians(units: &[Unit]) -> [f64; 2] {
    let of = |set: fn(&SessionRuns) -> &Vec<f64>| {
        let of_unit = |unit: &Unit| median_of(unit, set);
        within_nodes::median_of(&mut units.iter().filter_map(of_unit).collect::<Vec<_>>())
            .map_or(f64::NAN, f64::exp)
    };
    [of(|runs| &runs.a), of(|runs| &runs.b)]
}

fn median_of(unit: &Unit, set: fn(&SessionRuns) -> &Vec<f64>) -> Option<f64> {
    within_nodes::median_of(&mut unit.iter().flat_map(set).copied().collect::<Vec<_>>())
}

fn exp(interval: Option<[f64; 2]>) -> Option<[f64; 2]> {
    interval.map(|interval| interval.map(f64::exp))
}

/// Why these keys are null, if there is no interval.
fn reasons(keys: &[&'static str], interval: Option<[f64; 2]>) -> BTreeMap<&'static str, String> {
    const FEW: &str = "too few runs of A or B show how much they vary";
    let keys = keys.iter().filter(|_| interval.is_none());
    keys.map(|key| (*key, FEW.to_owned())).collect()
}

/// True if the interval says the same as the test.
fn is_certain(p: Option<f64>, interval: Option<[f64; 2]>, settings: &CompareSettings) -> bool {
    p.is_some_and(|p| p <= settings.q) && interval.is_some_and(|[low, high]| low * high > 0.0)
}

/// The times of all classes, and of their nodes.
fn compared(matched: &Matched, settings: &CompareSettings) -> (Vec<ClassComparison>, Vec<NodeComparison>) {
    let classes = matched.units.chunk_by(|a, b| a.class == b.class);
    let time = |run: &SideRun| Some(run.elapsed_s);
    let of = |units: &'_ [MatchedUnit]| {
        let values = units_of(units, time);
        let change = two_sets::compare(&values, rounding(units), settings)?;
        Some((values, change))
    };
    let found: Vec<(&[MatchedUnit], (Vec<Unit>, ClassChange))> =
        classes.filter_map(|units| Some((units, of(units)?))).collect();
    let p: Vec<f64> = found.iter().map(|(_, (_, change))| change.p.unwrap_or(f64::NAN)).collect();
    let adjusted = benjamini_hochberg::adjusted(&p);
    let (mut of_classes, mut nodes) = (Vec::new(), Vec::new());
    for ((units, (values, change)), adjusted) in found.iter().zip(adjusted) {
        let p_adjusted = change.p.map(|_| adjusted);
        let [a_s, b_s] = medians(values);
        of_classes.push(ClassComparison {
            class: units[0].class.clone(),
            nodes: units.len(),
            a_s,
            b_s,
            ratio: change.change.exp(),
            ci: exp(change.interval),
            smallest_visible: change.smallest_visible.map(f64::exp_m1),
            p_adjusted,
            different: is_certain(p_adjusted, change.interval, settings),
            null_reasons: reasons(&["ci", "smallest_visible", "p_adjusted"], change.interval),
            in_turns: units
                .iter()
                .filter(|unit| unit.sessions.iter().any(|session| session.in_turns))
                .count(),
        });
        for ((unit, values), change) in units.iter().zip(values).zip(&change.units) {
            let Some(change) = change else { continue };
            let runs: [fn(&SessionRuns) -> &Vec<f64>; 2] = [|runs| &runs.a, |runs| &runs.b];
            let [a_s, b_s] = runs.map(|set| median_of(values, set).map_or(f64::NAN, f64::exp));
            nodes.push(NodeComparison {
                node: unit.unit.to_owned(),
                class: unit.class.clone(),
                runs: runs.map(|set| values.iter().map(|session| set(session).len()).sum()),
                a_s,
                b_s,
                ratio: change.change.exp(),
                ci: exp(change.interval),
                p_adjusted: change.adjusted_p,
                different: change.is_different,
                null_reasons: reasons(&["ci", "p_adjusted"], change.interval),
            });
        }
    }
    nodes.sort_by(|a, b| {
        let size = |node: &NodeComparison| node.ratio.ln().abs();
        b.different
            .cmp(&a.different)
            .then_with(|| size(b).total_cmp(&size(a)))
            .then_with(|| (&a.node, &a.class).cmp(&(&b.node, &b.class)))
    });
    (of_classes, nodes)
}

/// The regions and metrics that runs of A and B have.
fn metrics(matched: &Matched, settings: &CompareSettings) -> Vec<MetricComparison> {
    let mut found = Vec::new();
    for units in matched.units.chunk_by(|a, b| a.class == b.class) {
        let runs = units.iter().flat_map(|unit| &unit.sessions).flat_map(|s| s.a.iter().chain(&s.b));
        let names: BTreeSet<&String> = runs.flat_map(|run| run.values.keys()).collect();
        for name in names {
            let values = units_of(units, |run| run.values.get(name).copied());
            let Some(change) = two_sets::compare(&values, 0.0, settings) else { continue };
            let [a, b] = medians(&values);
            found.push((
                change.p,
                change.interval,
                MetricComparison {
                    name: name.clone(),
                    class: units[0].class.clone(),
                    a,
                    b,
                    ratio: change.change.exp(),
                    ci: exp(change.interval),
                    p_adjusted: None,
                    different: false,
                    null_reasons: reasons(&["ci", "p_adjusted"], change.interval),
                },
            ));
        }
    }
    let p: Vec<f64> = found.iter().map(|(p, ..)| p.unwrap_or(f64::NAN)).collect();
    let adjusted = benjamini_hochberg::adjusted(&p);
    let mut all: Vec<MetricComparison> = Vec::new();
    for ((p, interval, metric), adjusted) in found.into_iter().zip(adjusted) {
        let p_adjusted = p.map(|_| adjusted);
        all.push(MetricComparison {
            p_adjusted,
            different: is_certain(p_adjusted, interval, settings),
            ..metric
        });
    }
    all.sort_by(|a, b| {
        let size = |metric: &MetricComparison| metric.ratio.ln().abs();
        b.different
            .cmp(&a.different)
            .then_with(|| size(b).total_cmp(&size(a)))
            .then_with(|| (&a.class, &a.name).cmp(&(&b.class, &b.name)))
    });
    all
}

/// Warns if A and B were measured one after the other: then what changed in between counts as a difference.
fn about_blocks(matched: &Matched, selectors: [&Selector; 2]) -> Option<Warning> {
    if selectors.iter().all(|selector| selector.is_of_time()) {
        return None; // that is the question
    }
    let is_apart = |unit: &&MatchedUnit| {
        let shared: Vec<_> = unit.sessions.iter().filter(|s| !s.a.is_empty() && !s.b.is_empty()).collect();
        shared.is_empty() || shared.iter().any(|session| session.is_in_blocks())
    };
    let apart = matched.units.iter().filter(is_apart).count();
    let message = format!(
        "A and B were not measured in turns on {}: what changed between them on the machine counts as a difference",
        count(apart, "node")
    );
    (apart > 0).then(|| Warning::new(WarningCode::NotInTurns, message))
}

fn about_unmatched(matched: &Matched) -> Option<Warning> {
    let of = |(set, units): (&str, &BTreeSet<&str>)| {
        (!units.is_empty()).then(|| format!("{} only in {set}: {}", count(units.len(), "node"), some(units)))
    };
    let both: Vec<String> = ["A", "B"].into_iter().zip(&matched.unmatched).filter_map(of).collect();
    (!both.is_empty()).then(|| Warning::new(WarningCode::UnpairedNodes, both.join("; ")))
}

fn about_few(classes: &[ClassComparison]) -> Option<Warning> {
    let few = classes.iter().filter(|class| class.ci.is_none()).count();
    let message = format!(
        "{} too few runs to show how certain a difference is: at least 3 runs of A and 3 of B on a node are needed",
        if few == 1 { "1 class has".to_owned() } else { format!("{few} classes have") }
    );
    (few > 0).then(|| Warning::new(WarningCode::FewRuns, message))
}
