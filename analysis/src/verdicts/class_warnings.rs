//! Warnings that limit the verdicts of a class.

use super::JudgeSettings;
use super::history::{self, History};
use super::judged_session::{JudgedSession, Sessions, WORTH_A_WARNING};
use super::measured_when::TimeOrder;
use super::node_report::FlakyReport;
use super::rounds_of_runs;
use super::suspects::{FewAnchors, MIN_ANCHORS};
use crate::stats::node_median;
use crate::stats::{bimodal, drift, noise, normal};
use crate::table::{Order, RunTable};
use crate::warnings::ClassWarning;
use crate::warnings::of_classes::{IntervalCoverage, TimeOrderLimit, Uncertain};
use std::collections::HashSet;

/// Warns if the order of several sessions is not known.
pub(super) fn about_sessions(order: &Order) -> Option<ClassWarning> {
    let is_undated = order.sessions > 1 && !order.sessions_are_dated;
    is_undated.then_some(ClassWarning::UndatedSessions)
}

/// Warns of flaky nodes.
pub(super) fn flaky<'a>(nodes: &'a [FlakyReport], class: &'a str) -> impl Iterator<Item = ClassWarning> + 'a {
    nodes.iter().map(move |FlakyReport { node, slow_runs, runs, .. }| ClassWarning::FlakyNode {
        node: node.clone(),
        slow_runs: *slow_runs,
        runs: *runs,
        class: class.to_owned(),
    })
}

/// Warns of sessions in which suspects were measured without other nodes; of several it names the latest.
pub(super) fn few_anchors(
    table: &RunTable,
    sessions_without: &[FewAnchors],
    sessions: &[&[&[u32]]],
    class: &str,
) -> Option<ClassWarning> {
    let (&FewAnchors { session, suspects, anchors, is_coarse }, others) = sessions_without.split_last()?;
    Some(ClassWarning::FewAnchors {
        session: session_name(table, sessions[session]),
        suspects,
        anchors,
        needed: MIN_ANCHORS,
        is_coarse,
        earlier_sessions: others.len(),
        class: class.to_owned(),
    })
}

fn session_name(table: &RunTable, session: &[&[u32]]) -> Option<String> {
    session.first().and_then(|rows| table.session_name(rows[0] as usize)).map(str::to_owned)
}

/// Warnings from the session that judges most nodes of a class.
pub(super) fn about_class(
    table: &RunTable,
    settings: &JudgeSettings,
    session: &JudgedSession<'_>,
    class: &str,
    told: &mut Vec<ClassWarning>,
) {
    let name = || class.to_owned();
    let delta = settings.node.delta;
    let mut ascending: Vec<f64> = session.medians.iter().map(|node| node.median).collect();
    ascending.sort_unstable_by(f64::total_cmp);
    let kinds = bimodal::BimodalSettings { delta, ..Default::default() };
    if let Some(modes) = bimodal::modes(&ascending, session.units.class, &kinds) {
        told.push(ClassWarning::Bimodal {
            fast: modes.fast.nodes,
            slow: modes.slow.nodes,
            slower: (modes.slow.centre - modes.fast.centre).exp_m1(),
            class: name(),
        });
    }
    if let Some((uncertain, by)) = noise_above(table, session, delta) {
        told.push(ClassWarning::NoiseFloor { uncertain, by, delta, class: name() });
    }
    if let Some(centre) = node_median::of_ascending(&ascending) {
        told.extend(rounded_times(session, centre, delta, class));
    }
    let effects = session.round_effects.effects.iter().copied();
    let (low, high) =
        effects.fold((0.0f64, 0.0f64), |(low, high), effect| (low.min(effect), high.max(effect)));
    let is_screen = session.nodes.first().is_some_and(|rows| rounds_of_runs::are_of_a_screen(table, rows));
    // A screen corrects each round anyway.
    if high > low && !is_screen {
        told.push(ClassWarning::RoundEffects { slower: (high - low).exp_m1(), class: name() });
    }
    if let Some(order) = &session.time_order {
        told.push(ClassWarning::TimeOrder { limit: limit_of(order, delta), class: name() });
    }
    let most_runs = session.medians.iter().map(|node| node.runs).max().unwrap_or_default();
    let fewest_runs = session.medians.iter().map(|node| node.runs).min().unwrap_or_default();
    const LEAST_INFLATION: f64 = 1.1;
    let alike = session.dependence.map(|dependence| (dependence, dependence.inflation(most_runs)));
    if let Some((dependence, inflation)) = alike.filter(|(_, inflation)| *inflation >= LEAST_INFLATION) {
        // What the interval of a node's median really covers.
        let covers = |(outside, _, nominal)| IntervalCoverage {
            nominal,
            real: dependence.coverage(most_runs, outside),
        };
        told.push(ClassWarning::DependentRuns {
            correlation: dependence.correlation,
            runs: most_runs,
            independent_runs: most_runs as f64 / inflation,
            interval: node_median::interval(most_runs).map(covers),
            class: name(),
        });
    }
    const UNEQUAL: usize = 3;
    if most_runs >= UNEQUAL * fewest_runs {
        told.push(ClassWarning::UnequalRuns { fewest: fewest_runs, most: most_runs, class: name() });
    }
}

/// Warns of coarse times of the class, or of the nodes with coarser times.
fn rounded_times(session: &JudgedSession, centre: f64, delta: f64, class: &str) -> Option<ClassWarning> {
    let units = &session.units;
    let of_nodes = units.coarser.values().copied();
    let (least, most) = (of_nodes.clone().reduce(f64::min), of_nodes.reduce(f64::max));
    let (nodes, unit_s) = match (units.class, most) {
        (of_class, Some(unit)) if of_class.is_none_or(|of_class| of_class < unit) => {
            (Some(units.coarser.len()), unit)
        }
        (of_class, _) => (None, of_class?),
    };
    let of_median = unit_s / centre.exp();
    (of_median >= WORTH_A_WARNING).then(|| ClassWarning::RoundedTimes {
        nodes,
        least_unit_s: least.filter(|least| *least < unit_s),
        unit_s,
        of_median,
        detectable: delta + of_median,
        class: class.to_owned(),
    })
}

/// What the order of measurements limits.
fn limit_of(order: &TimeOrder, delta: f64) -> TimeOrderLimit {
    let range = order.range();
    TimeOrderLimit {
        evidence: order.found,
        explained: range.exp_m1(),
        needed: (range + delta.ln_1p()).exp_m1(),
    }
}

/// Warns of other sessions whose verdicts the order of the measurements limits; of several it names the latest.
pub(super) fn time_order_of(
    table: &RunTable,
    settings: &JudgeSettings,
    limited: &[(usize, TimeOrder)],
    sessions: &[&[&[u32]]],
    class: &str,
) -> Option<ClassWarning> {
    let (session, order) = limited.last()?;
    Some(ClassWarning::TimeOrderOfSession {
        session: session_name(table, sessions[*session]),
        limit: limit_of(order, settings.node.delta),
        class: class.to_owned(),
    })
}

/// What is more uncertain than `delta`, and by how much.
fn noise_above(table: &RunTable, session: &JudgedSession, delta: f64) -> Option<(Uncertain, f64)> {
    let median_of = |values: &mut dyn Iterator<Item = f64>| {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        node_median::of_ascending(&values)
    };
    let rows = session.nodes.iter().copied().flatten();
    let certain = -normal::quantile(0.01);
    let errors = (0..session.medians.len()).filter_map(|place| session.variance(place));
    let noise = noise::Noise {
        bounds: median_of(&mut rows.map(|row| table.width(*row as usize))),
        runs: median_of(&mut errors.map(|variance| certain * variance.sqrt())),
    };
    let (limit, size) = noise::hides(delta, &noise)?;
    let uncertain = match limit {
        noise::Limit::Bounds => Uncertain::ElapsedTimes,
        noise::Limit::Runs => Uncertain::NodeMedians,
    };
    Some((uncertain, size))
}

/// Warns if the nodes of a class changed from one session to the next, or little by little since the first; of several
/// such sessions it names the latest.
/// `judging` has the numbers of the sessions that judge their nodes.
pub(super) fn composition(
    table: &RunTable,
    judging: &[usize],
    sessions: &[&[&[u32]]],
    class: &str,
) -> Option<ClassWarning> {
    const WORTH_A_WARNING: f64 = 0.1;
    let node = |rows: &&[u32]| table.node.at(rows[0] as usize);
    let changed = |pair: &[usize]| {
        let [before, now] = [pair[0], pair[1]].map(|number| sessions[number]);
        // Both are in the order of nodes.
        if before.len() == now.len() && before.iter().map(node).eq(now.iter().map(node)) {
            return None;
        }
        let earlier: HashSet<u32> = before.iter().map(node).collect();
        let kept = now.iter().filter(|rows| earlier.contains(&node(rows))).count();
        let (gone, new) = (before.len() - kept, now.len() - kept);
        let is_large = (gone + new) as f64 > WORTH_A_WARNING * (kept + gone + new) as f64;
        is_large.then(|| (session_name(table, before), session_name(table, now), gone, new))
    };
    let first_and_last = [*judging.first()?, *judging.last()?];
    let (before, now, gone, new) =
        judging.windows(2).rev().find_map(changed).or_else(|| changed(&first_and_last))?;
    Some(ClassWarning::CompositionChanged {
        session: now,
        earlier_session: before,
        gone,
        new,
        class: class.to_owned(),
    })
}

/// Warns if most nodes of a class became slower: no node is then slower than the others. `effects` has the level of each
/// session, and `centres` is `None` for a session that compares no nodes.
pub(super) fn moved(
    settings: &JudgeSettings,
    effects: &[f64],
    centres: &[Option<f64>],
    histories: &[History],
    sessions: &Sessions,
    class: &str,
) -> Option<ClassWarning> {
    let known: Vec<usize> = (0..effects.len()).filter(|session| centres[*session].is_some()).collect();
    let series: Vec<f64> = known.iter().map(|session| effects[*session]).collect();
    let deviation = drift::deviation(&[&series], &settings.drift)?;
    let alarms = drift::alarms(&series, deviation, &settings.drift);
    let alarm = alarms.into_iter().find(|alarm| alarm.until.is_none())?;
    // New nodes in place of others may have another level: only nodes that were there before can become slower.
    let since = known[alarm.since];
    let change = history::change(histories, since)?;
    if change <= settings.drift.delta.ln_1p() {
        return None;
    }
    Some(ClassWarning::Moved {
        slower: change.exp_m1(),
        since: session_name(sessions.table, sessions.nodes[since]),
        class: class.to_owned(),
    })
}
