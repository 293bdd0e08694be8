//! Two sets of runs compared: what `pmmpi compare` shows. Its keys are a contract (docs/schema/compare.schema.json):
//! later versions may only add keys.
//!
//! Which runs belong to A and B, which of them belong together, and what limits the result belongs here. The formulas
//! are in [`crate::stats::two_sets`], the texts in [`crate::render`], and the exit status is in `cli`.

mod differences;
mod earlier_screens;
mod limits;
pub mod selector;
mod side;
mod units;
pub mod with_baseline;

use crate::input::{Input, input_warnings};
use crate::report::run::RunReport;
use crate::stats::two_sets::CompareSettings;
use crate::table::node_class::ClassBy;
use crate::warnings::Warning;
use selector::Selector;
use serde::Serialize;
use side::Side;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// All that `pmmpi compare` shows. A ratio is B's time over A's: 1.02 is 2 % slower.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// Version of the JSON format.
    pub schema_version: u32,
    /// The first set.
    pub a: SetReport,
    /// The second set.
    pub b: SetReport,
    /// The keys and facts in which all runs of A differ from all runs of B.
    pub differs: Vec<DifferingFact>,
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
    /// Number of runs on nodes that have runs of the same work in the other set.
    pub compared: usize,
    /// Number of nodes.
    pub nodes: usize,
}

/// A fact, label or command in which A and B differ.
#[derive(Debug, Serialize)]
pub struct DifferingFact {
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
    /// A difference of this fraction is found with a probability of about 95 %: 0.01 is 1 %.
    pub smallest_visible: Option<f64>,
    /// The probability of such a ratio without a difference, adjusted for the number of classes.
    pub p_adjusted: Option<f64>,
    /// True if the difference is certain.
    pub different: bool,
    /// Number of nodes on which runs of A and B took turns.
    pub in_turns: usize,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, ComparisonNullReason>,
}

/// A node, or a job on several nodes.
#[derive(Debug, Serialize)]
pub struct NodeComparison {
    /// Host name; "n1+n2" for jobs on two nodes.
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
    pub null_reasons: BTreeMap<&'static str, ComparisonNullReason>,
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
    /// The median over the nodes of B's value over A's value; `None` if a value is 0 or below.
    pub ratio: Option<f64>,
    /// An interval of at least 93.75 %; `None` if too few runs show it.
    pub ci: Option<[f64; 2]>,
    /// The probability of such a ratio without a difference, adjusted for the number of regions and metrics.
    pub p_adjusted: Option<f64>,
    /// True if the difference is certain.
    pub different: bool,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, ComparisonNullReason>,
}

/// Why a value of a comparison is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonNullReason {
    /// Too few runs show how much the times vary.
    FewRuns,
    /// Some values are 0 or below, so there is no ratio.
    NotPositive,
}

/// The input for A and B: one input that contains both, or one input for each.
pub struct Inputs(pub Vec<Input<RunReport>>);

impl Inputs {
    /// True if both are parts of the same runs.
    fn are_shared(&self) -> bool {
        self.0.len() == 1
    }

    /// True if a part of the input could not be used.
    pub fn is_partial(&self) -> bool {
        self.0.iter().any(Input::is_partial)
    }

    /// The warnings about the inputs, in no order. Two inputs may have the same warning.
    pub fn warnings(&self) -> Vec<Warning> {
        let of = |input: &Input<RunReport>| {
            let mut all = input.warnings.clone();
            all.extend(input_warnings::of_results(&input.results));
            all.extend(input_warnings::without_time(input.without_time));
            all
        };
        self.0.iter().flat_map(of).collect()
    }
}

impl Comparison {
    /// Compares the runs. The error says why there is nothing to compare. `warnings` are those about the inputs, and
    /// `names` are what the user typed.
    pub fn new(
        inputs: &Inputs,
        mut warnings: Vec<Warning>,
        names: [&str; 2],
        selectors: [&Selector; 2],
        by: &ClassBy,
        settings: &CompareSettings,
    ) -> Result<Self, String> {
        let side = |set: usize| {
            let input = &inputs.0[set.min(inputs.0.len() - 1)];
            let own: HashMap<&str, &RunReport> =
                input.runs.iter().map(|run| (run.run_id.as_str(), &run.kept)).collect();
            Side::of(&input.results.table, &own, selectors[set], by)
        };
        let mut sides = [side(0), side(1)];
        let shared = side::take_out_shared(&mut sides, inputs.are_shared());
        if let Some(empty) = sides.iter().position(|side| side.runs.is_empty()) {
            return Err(match shared {
                0 => format!(
                    "{} has no run with a time: check this path, session, label or range of times",
                    names[empty]
                ),
                _ => format!("all runs of {} are also in the other set", names[empty]),
            });
        }
        let matched = units::matched(&sides[0], &sides[1], inputs.are_shared());
        if matched.units.is_empty() {
            return Err(limits::nothing_in_common(&matched));
        }
        let (classes, nodes) = differences::times(&matched, settings);
        let limits = [
            limits::about_shared(shared),
            limits::about_blocks(&matched, selectors),
            limits::about_unmatched(&matched),
            limits::about_few(&nodes),
        ];
        warnings.extend(limits.into_iter().flatten().map(Warning::from));
        let [a, b] = [0, 1].map(|set: usize| SetReport {
            name: names[set].to_owned(),
            runs: sides[set].runs.len(),
            compared: sides[set].runs.len() - matched.unmatched[set].values().sum::<usize>(),
            nodes: sides[set].nodes().len(),
        });
        Ok(Self {
            schema_version: 1,
            a,
            b,
            differs: matched
                .differs
                .iter()
                .filter(|(key, _)| !selectors.iter().any(|selector| selector.names(key.name())))
                .map(|(key, texts)| DifferingFact::new(key.name(), texts))
                .collect(),
            classes,
            nodes,
            metrics: differences::metrics(&matched, settings),
            warnings,
        })
    }
}

impl DifferingFact {
    fn new(key: &str, texts: &[BTreeSet<Option<String>>; 2]) -> Self {
        let [a, b] = texts.each_ref().map(|texts| texts.iter().flatten().cloned().collect());
        Self { key: key.to_owned(), a, b }
    }
}
