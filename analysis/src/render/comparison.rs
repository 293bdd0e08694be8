//! A comparison of two sets of runs: as text, Markdown and CSV. JSON needs no module.

use super::aligned::aligned;
use super::cells::{percent, probability, seconds, shortened};
use super::csv::{name as csv_name, number};
use super::markdown::{of_table, prose};
use super::node_names::NodeNames;
use super::tabular::{Cell, Table, left, name, or_dash, right, words};
use super::{more, one_line, shown};
use crate::comparison::{
    ClassComparison, Comparison, DifferingFact, MetricComparison, NodeComparison, SetReport,
};
use crate::render::sentences::percent as unsigned;
use pmmpi::text::count;
use std::collections::BTreeMap;

/// Number of nodes that a sentence names.
const NAMED: usize = 3;

/// For a terminal, with at most `top` rows per table (0: all).
pub fn text(comparison: &Comparison, top: usize) -> String {
    let mut lines = vec![set("A", &comparison.a), set("B", &comparison.b)];
    lines.extend(sentences(comparison));
    let mut text: String = lines.iter().map(|line| one_line(line) + "\n").collect();
    let names = NodeNames::of(comparison.nodes.iter().map(|node| node.node.as_str()));
    for table in tables(comparison, top) {
        text += "\n";
        text += &aligned(&table, &names);
    }
    text += "\n";
    for (number, class) in comparison.classes.iter().enumerate() {
        text += &format!("class {}: {}\n", number + 1, one_line(&shortened(&class.class)));
    }
    for warning in &comparison.warnings {
        let (message, advice) = (one_line(&warning.to_string()), warning.code().advice());
        text += &format!("\nwarning: {message} [{}]\n         {advice}\n", warning.code().name());
    }
    text
}

/// For a ticket or a wiki.
pub fn markdown(comparison: &Comparison, top: usize) -> String {
    let sets = [set("A", &comparison.a), set("B", &comparison.b)];
    let lines = sets.into_iter().chain(sentences(comparison));
    let mut text: String = lines.map(|line| format!("{}\n\n", prose(&line))).collect();
    text.extend(tables(comparison, top).iter().map(of_table));
    for (number, class) in comparison.classes.iter().enumerate() {
        text += &format!("- class {}: {}\n", number + 1, prose(&shortened(&class.class)));
    }
    for warning in &comparison.warnings {
        let (message, advice) = (prose(&warning.to_string()), prose(warning.code().advice()));
        text += &format!("- Warning: {message} \\[{}\\]: {advice}\n", warning.code().name());
    }
    text
}

/// The header of the CSV.
pub const COLUMNS: [&str; 13] = [
    "kind",
    "name",
    "class",
    "nodes",
    "runs_a",
    "runs_b",
    "a",
    "b",
    "ratio",
    "ci_low",
    "ci_high",
    "p_adjusted",
    "different",
];

/// One table of classes, nodes, regions and metrics. Times are seconds.
pub fn csv(comparison: &Comparison) -> Result<String, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |row: [String; COLUMNS.len()]| writer.write_record(row).map_err(|e| e.to_string());
    write(COLUMNS.map(str::to_owned))?;
    let none = String::new;
    let ends = |ci: Option<[f64; 2]>| [0, 1].map(|at| number(ci.map(|ci| ci[at])));
    for class in &comparison.classes {
        let [low, high] = ends(class.ci);
        let values = [class.a_s, class.b_s, class.ratio].map(|value| number(Some(value)));
        let ([a, b, ratio], p) = (values, number(class.p_adjusted));
        let (of, nodes, different) =
            (csv_name(&class.class), class.nodes.to_string(), class.different.to_string());
        write(["class".into(), none(), of, nodes, none(), none(), a, b, ratio, low, high, p, different])?;
    }
    for node in &comparison.nodes {
        let [low, high] = ends(node.ci);
        let [a, b, ratio] = [node.a_s, node.b_s, node.ratio].map(|value| number(Some(value)));
        let ([runs_a, runs_b], p) = (node.runs.map(|runs| runs.to_string()), number(node.p_adjusted));
        let (of, class, different) =
            (csv_name(&node.node), csv_name(&node.class), node.different.to_string());
        write(["node".into(), of, class, "1".into(), runs_a, runs_b, a, b, ratio, low, high, p, different])?;
    }
    for metric in &comparison.metrics {
        let [low, high] = ends(metric.ci);
        let [a, b, ratio] = [Some(metric.a), Some(metric.b), metric.ratio].map(number);
        let (of, class, different) =
            (csv_name(&metric.name), csv_name(&metric.class), metric.different.to_string());
        let p = number(metric.p_adjusted);
        write(["metric".into(), of, class, none(), none(), none(), a, b, ratio, low, high, p, different])?;
    }
    let bytes = writer.into_inner().map_err(|e| e.to_string())?;
    String::from_utf8(bytes).map_err(|e| e.to_string())
}

fn set(letter: &str, set: &SetReport) -> String {
    let (runs, nodes) = (count(set.runs, "run"), count(set.nodes, "node"));
    let compared = match set.compared == set.runs {
        true => String::new(),
        false => format!(", {} compared", set.compared),
    };
    format!("{letter}: {} ({runs}{compared}, {nodes})", shortened(&set.name))
}

/// The answer, and what else differs.
pub fn sentences(comparison: &Comparison) -> Vec<String> {
    let mut all: Vec<String> = comparison.differs.iter().map(differs).collect();
    all.extend(comparison.classes.iter().enumerate().map(|(at, class)| of_class(at + 1, class)));
    all.extend(nodes(comparison));
    all
}

/// For example "A and B differ in kernel: 5.14 and 6.1".
fn differs(of: &DifferingFact) -> String {
    let texts = |texts: &Vec<String>| match &texts[..] {
        [] => "none".to_owned(),
        [text] => shortened(text),
        [first, second] => format!("{} and {}", shortened(first), shortened(second)),
        [first, second, ..] => {
            format!("{}, {} and {} more", shortened(first), shortened(second), texts.len() - 2)
        }
    };
    format!("A and B differ in {}: A has {}, B has {}", shortened(&of.key), texts(&of.a), texts(&of.b))
}

/// For example "class 1: B is 2.1 % slower than A (1.9 % .. 2.3 %)".
fn of_class(number: usize, class: &ClassComparison) -> String {
    let by = unsigned((class.ratio - 1.0).abs());
    let how = if class.ratio < 1.0 { "faster" } else { "slower" };
    match (class.ci, class.smallest_visible) {
        (Some(ci), _) if class.different => {
            let mut ci = ci.map(|ratio| (ratio - 1.0).abs());
            ci.sort_unstable_by(f64::total_cmp);
            let [low, high] = ci.map(unsigned);
            format!("class {number}: B is {by} {how} than A ({low} .. {high})")
        }
        (Some(_), Some(visible)) => format!(
            "class {number}: no certain difference (B is {by} {how}); these runs would show a difference of {} with a \
             probability of 95 %",
            unsigned(visible)
        ),
        _ => format!(
            "class {number}: B is {by} {how} than A, but there are too few runs to say how certain this is"
        ),
    }
}

/// Nodes that differ, if there are several nodes.
fn nodes(comparison: &Comparison) -> Option<String> {
    let all = comparison.nodes.len();
    let different: Vec<&NodeComparison> = comparison.nodes.iter().filter(|node| node.different).collect();
    if all == comparison.classes.len() || different.is_empty() {
        return None;
    }
    let named: Vec<String> = different
        .iter()
        .take(NAMED)
        .map(|node| format!("{} {}", shortened(&node.node), percent(node.ratio - 1.0, 1)))
        .collect();
    let more = if different.len() > NAMED { ", ..." } else { "" };
    let differ = if different.len() == 1 { "differs" } else { "differ" };
    Some(format!(
        "{} of {} {differ} with certainty: {}{more}",
        different.len(),
        count(all, "node"),
        named.join(", ")
    ))
}

fn tables(comparison: &Comparison, top: usize) -> Vec<Table> {
    let numbers: BTreeMap<&str, usize> =
        comparison.classes.iter().zip(1..).map(|(class, number)| (class.class.as_str(), number)).collect();
    let all = [
        classes(&comparison.classes, top),
        of_nodes(&comparison.nodes, &numbers, top),
        metrics(&comparison.metrics, &numbers, top),
    ];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn interval(ci: Option<[f64; 2]>) -> Cell {
    let [low, high] = match ci {
        Some(ci) => ci.map(|ratio| percent(ratio - 1.0, 2)),
        None => return words("-"),
    };
    words(format!("{low} .. {high}"))
}

fn difference(different: bool) -> Cell {
    words(if different { "yes" } else { "-" })
}

fn classes(classes: &[ClassComparison], top: usize) -> Table {
    let (shown, hidden) = shown(classes.len(), top);
    let row = |(class, number): (&ClassComparison, usize)| {
        vec![
            words(number),
            words(class.nodes),
            words(seconds(class.a_s)),
            words(seconds(class.b_s)),
            words(percent(class.ratio - 1.0, 2)),
            interval(class.ci),
            or_dash(class.smallest_visible, |visible| percent(visible, 2)),
            difference(class.different),
        ]
    };
    Table {
        columns: vec![
            right("Class"),
            right("Nodes"),
            right("A, s"),
            right("B, s"),
            right("Slower"),
            left("Interval"),
            right("Visible"),
            left("Different"),
        ],
        rows: classes[..shown].iter().zip(1..).map(row).collect(),
        more: more(hidden, "more class"),
        ..Table::default()
    }
}

fn of_nodes(nodes: &[NodeComparison], numbers: &BTreeMap<&str, usize>, top: usize) -> Table {
    let (shown, hidden) = shown(nodes.len(), top);
    let row = |node: &NodeComparison| {
        vec![
            name(&node.node),
            words(numbers[node.class.as_str()]),
            words(format!("{}, {}", node.runs[0], node.runs[1])),
            words(seconds(node.a_s)),
            words(seconds(node.b_s)),
            words(percent(node.ratio - 1.0, 2)),
            interval(node.ci),
            or_dash(node.p_adjusted, probability),
            difference(node.different),
        ]
    };
    Table {
        columns: vec![
            left("Node"),
            right("Class"),
            right("Runs"),
            right("A, s"),
            right("B, s"),
            right("Slower"),
            left("Interval"),
            right("P"),
            left("Different"),
        ],
        rows: nodes[..shown].iter().map(row).collect(),
        more: more(hidden, "more node"),
        ..Table::default()
    }
}

fn metrics(metrics: &[MetricComparison], numbers: &BTreeMap<&str, usize>, top: usize) -> Table {
    let (shown, hidden) = shown(metrics.len(), top);
    let row = |metric: &MetricComparison| {
        vec![
            name(&metric.name),
            words(numbers[metric.class.as_str()]),
            words(seconds(metric.a)),
            words(seconds(metric.b)),
            or_dash(metric.ratio, |ratio| percent(ratio - 1.0, 2)),
            interval(metric.ci),
            or_dash(metric.p_adjusted, probability),
            difference(metric.different),
        ]
    };
    Table {
        columns: vec![
            left("Region or metric"),
            right("Class"),
            right("A"),
            right("B"),
            right("More"),
            left("Interval"),
            right("P"),
            left("Different"),
        ],
        rows: metrics[..shown].iter().map(row).collect(),
        more: more(hidden, "more row"),
        ..Table::default()
    }
}
