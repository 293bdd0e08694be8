//! How much the runs of A and B differ: times, regions and metrics.

use super::side::SideRun;
use super::units::{Matched, MatchedUnit};
use super::{ClassComparison, ComparisonNullReason, MetricComparison, NodeComparison};
use crate::stats::two_sets::{self, ClassChange, CompareSettings, SessionRuns, Unit};
use crate::stats::{benjamini_hochberg, resolution, within_nodes};
use std::collections::{BTreeMap, BTreeSet};

/// What rounding may hide in the times of a class (ln T). `ends` has the end of each unit's times.
pub(super) fn rounding(seconds: &[f64], ends: &[usize]) -> f64 {
    let middle = within_nodes::median_of(&mut seconds.to_vec()).unwrap_or(1.0);
    resolution::hidden(resolution::Units::of(seconds, ends).class, middle.ln())
}

fn rounding_of(units: &[MatchedUnit]) -> f64 {
    let (mut seconds, mut ends) = (Vec::new(), Vec::new());
    for unit in units {
        let runs = unit.sessions.iter().flat_map(|session| session.a.iter().chain(&session.b));
        seconds.extend(runs.map(|run| run.elapsed_s));
        ends.push(seconds.len());
    }
    rounding(&seconds, &ends)
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
fn reasons(
    keys: &[&'static str],
    interval: Option<[f64; 2]>,
) -> BTreeMap<&'static str, ComparisonNullReason> {
    let keys = keys.iter().filter(|_| interval.is_none());
    keys.map(|key| (*key, ComparisonNullReason::FewRuns)).collect()
}

/// True if the interval says the same as the test.
pub(super) fn is_certain(p: Option<f64>, interval: Option<[f64; 2]>, settings: &CompareSettings) -> bool {
    p.is_some_and(|p| p <= settings.q) && interval.is_some_and(|[low, high]| low * high > 0.0)
}

/// The times of a class, and how they differ.
struct ClassTimes<'a> {
    units: &'a [MatchedUnit<'a>],
    values: Vec<Unit>,
    change: ClassChange,
}

/// The times of all classes, and of their nodes.
pub(super) fn times(
    matched: &Matched,
    settings: &CompareSettings,
) -> (Vec<ClassComparison>, Vec<NodeComparison>) {
    let classes = matched.units.chunk_by(|a, b| a.class == b.class);
    let count = classes.clone().count();
    let time = |run: &SideRun| Some(run.elapsed_s);
    let of = |units| {
        let values = units_of(units, time);
        let change = two_sets::compare(&values, rounding_of(units), count, settings)?;
        Some(ClassTimes { units, values, change })
    };
    let found: Vec<ClassTimes> = classes.filter_map(of).collect();
    let p: Vec<f64> = found.iter().map(|class| class.change.p.unwrap_or(f64::NAN)).collect();
    let adjusted = benjamini_hochberg::adjusted(&p);
    let (mut of_classes, mut nodes) = (Vec::new(), Vec::new());
    for (ClassTimes { units, values, change }, adjusted) in found.iter().zip(adjusted) {
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
pub(super) fn metrics(matched: &Matched, settings: &CompareSettings) -> Vec<MetricComparison> {
    let mut found = Vec::new();
    for units in matched.units.chunk_by(|a, b| a.class == b.class) {
        let runs = units.iter().flat_map(|unit| &unit.sessions).flat_map(|s| s.a.iter().chain(&s.b));
        let names: BTreeSet<&String> = runs.flat_map(|run| run.values.keys()).collect();
        for name in names {
            let value = |run: &SideRun| run.values.get(name).copied();
            if !is_positive(units, value) {
                found.extend(without_ratio(units, name, value).map(|metric| (None, None, metric)));
                continue;
            }
            let values = units_of(units, value);
            let Some(change) = two_sets::compare(&values, 0.0, 1, settings) else { continue };
            let [a, b] = medians(&values);
            found.push((
                change.p,
                change.interval,
                MetricComparison {
                    name: name.clone(),
                    class: units[0].class.clone(),
                    a,
                    b,
                    ratio: Some(change.change.exp()),
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
        let size = |metric: &MetricComparison| metric.ratio.map_or(0.0, |ratio| ratio.ln().abs());
        b.different
            .cmp(&a.different)
            .then_with(|| size(b).total_cmp(&size(a)))
            .then_with(|| (&a.class, &a.name).cmp(&(&b.class, &b.name)))
    });
    all
}

/// All runs of a class.
fn runs<'a>(units: &'a [MatchedUnit<'a>], of_b: bool) -> impl Iterator<Item = &'a SideRun> {
    let sessions = units.iter().flat_map(|unit| &unit.sessions);
    sessions.flat_map(move |session| if of_b { &session.b } else { &session.a }).copied()
}

/// True if a ratio of all values makes sense.
fn is_positive(units: &[MatchedUnit], value: impl Fn(&SideRun) -> Option<f64>) -> bool {
    [false, true].into_iter().flat_map(|of_b| runs(units, of_b)).filter_map(value).all(|value| value > 0.0)
}

/// A metric with some values of 0 or below. `None` if only one set has it.
fn without_ratio(
    units: &[MatchedUnit],
    name: &str,
    value: impl Fn(&SideRun) -> Option<f64>,
) -> Option<MetricComparison> {
    let middle =
        |of_b| within_nodes::median_of(&mut runs(units, of_b).filter_map(&value).collect::<Vec<f64>>());
    Some(MetricComparison {
        name: name.to_owned(),
        class: units[0].class.clone(),
        a: middle(false)?,
        b: middle(true)?,
        ratio: None,
        ci: None,
        p_adjusted: None,
        different: false,
        null_reasons: ["ratio", "ci", "p_adjusted"]
            .map(|key| (key, ComparisonNullReason::NotPositive))
            .into(),
    })
}
