//! Warnings that limit the verdicts of a class.

use super::JudgeSettings;
use super::history::{self, History};
use super::judged_session::{JudgedSession, Sessions, WORTH_A_WARNING};
use super::measured_when::{TimeOrder, TimeOrderEvidence};
use super::node_report::FlakyReport;
use super::rounds_of_runs;
use super::suspects::{FewAnchors, MIN_ANCHORS};
use crate::stats::node_median;
use crate::stats::time_order::{Dependence, RankRatio};
use crate::stats::{bimodal, drift, noise, normal};
use crate::table::{Order, RunTable};
use crate::warning_codes::{Warning, WarningCode, percent};
use pmmpi::text::count;
use std::collections::HashSet;

/// Warns if the order of several sessions is not known.
pub(super) fn about_sessions(order: &Order) -> Option<Warning> {
    let is_undated = order.sessions > 1 && !order.sessions_are_dated;
    is_undated.then(|| Warning::new(WarningCode::UndatedSessions, WarningCode::UndatedSessions.example()))
}

/// Warns of flaky nodes.
pub(super) fn flaky<'a>(nodes: &'a [FlakyReport], class: &'a str) -> impl Iterator<Item = Warning> + 'a {
    nodes.iter().map(move |FlakyReport { node, slow_runs, runs, .. }| {
        let message =
            format!("{node}: {slow_runs} of {runs} runs are slow, more than expected by chance ({class})");
        Warning::new(WarningCode::FlakyNode, message)
    })
}

/// Warns of sessions in which suspects were measured without other nodes; of several it names the latest.
pub(super) fn few_anchors(
    table: &RunTable,
    sessions_without: &[FewAnchors],
    sessions: &[&[&[u32]]],
    class: &str,
) -> Option<Warning> {
    let (FewAnchors { session, suspects, anchors, is_coarse }, others) = sessions_without.split_last()?;
    let why = match is_coarse {
        true => "but its times are too coarse for a comparison with earlier sessions".to_owned(),
        false => format!(
            "and {} that {} OK or FAST before; a comparison needs {MIN_ANCHORS} such nodes",
            count(*anchors, "node"),
            if *anchors == 1 { "was" } else { "were" },
        ),
    };
    let and = match others.len() {
        0 => String::new(),
        more => format!("; {} could not compare suspects either", count(more, "earlier session")),
    };
    let message = format!(
        "{} has {}, {why}; suspects keep their earlier verdicts{and} ({class})",
        session_name(table, sessions[*session]),
        count(*suspects, "suspect"),
    );
    Some(Warning::new(WarningCode::FewAnchors, message))
}

fn session_name(table: &RunTable, session: &[&[u32]]) -> String {
    let name = session.first().and_then(|rows| table.session_name(rows[0] as usize));
    name.map_or_else(|| "runs without a session".to_owned(), |name| format!("session {name}"))
}

/// Warnings from the session that judges most nodes of a class.
pub(super) fn about_class(
    table: &RunTable,
    settings: &JudgeSettings,
    session: &JudgedSession<'_>,
    class: &str,
    told: &mut Vec<Warning>,
) {
    let mut warn = |code, message: String| told.push(Warning::new(code, format!("{message} ({class})")));
    let delta = settings.node.delta;
    let mut ascending: Vec<f64> = session.medians.iter().map(|node| node.median).collect();
    ascending.sort_unstable_by(f64::total_cmp);
    let kinds = bimodal::BimodalSettings { delta, ..Default::default() };
    if let Some(modes) = bimodal::modes(&ascending, session.units.class, &kinds) {
        let message = format!(
            "{} of a class are fast and {} are {} slower",
            count(modes.fast.nodes, "node"),
            count(modes.slow.nodes, "node"),
            percent((modes.slow.centre - modes.fast.centre).exp_m1())
        );
        warn(WarningCode::BimodalClass, message);
    }
    if let Some((what, size)) = noise_above(table, session, delta) {
        let message = format!(
            "{what} uncertain by {}: the report cannot detect a node that is {} slower",
            percent(size),
            percent(delta)
        );
        warn(WarningCode::NoiseFloor, message);
    }
    if let Some(centre) = node_median::of_ascending(&ascending) {
        told_of_units(session, centre, delta)
            .into_iter()
            .for_each(|message| warn(WarningCode::RoundedTimes, message));
    }
    let effects = session.round_effects.effects.iter().copied();
    let (low, high) =
        effects.fold((0.0f64, 0.0f64), |(low, high), effect| (low.min(effect), high.max(effect)));
    let is_screen = session.nodes.first().is_some_and(|rows| rounds_of_runs::are_of_a_screen(table, rows));
    // A screen corrects each round anyway.
    if high > low && !is_screen {
        let message = format!(
            "the rounds of the session differ by {}: the report corrects the times of each round",
            percent((high - low).exp_m1())
        );
        warn(WarningCode::RoundEffects, message);
    }
    if let Some(order) = &session.time_order {
        warn(WarningCode::TimeOrder, of_time_order(order, delta));
    }
    let most_runs = session.medians.iter().map(|node| node.runs).max().unwrap_or_default();
    let fewest_runs = session.medians.iter().map(|node| node.runs).min().unwrap_or_default();
    const LEAST_INFLATION: f64 = 1.1;
    let alike = session.dependence.map(|dependence| (dependence, dependence.inflation(most_runs)));
    if let Some((dependence, inflation)) = alike.filter(|(_, inflation)| *inflation >= LEAST_INFLATION) {
        let message = format!(
            "successive runs of a node are alike (correlation {:.1}): {} of a node give as much information as {:.1} \
             independent runs{}",
            dependence.correlation,
            count(most_runs, "run"),
            most_runs as f64 / inflation,
            covers(most_runs, &dependence)
        );
        warn(WarningCode::DependentRuns, message);
    }
    const UNEQUAL: usize = 3;
    if most_runs >= UNEQUAL * fewest_runs {
        let message = format!(
            "nodes have between {fewest_runs} and {}: the report cannot detect small differences of nodes with few runs",
            count(most_runs, "run")
        );
        warn(WarningCode::UnequalRuns, message);
    }
}

/// Of the class's times, and of the nodes with coarser times.
fn told_of_units(session: &JudgedSession, centre: f64, delta: f64) -> Option<String> {
    let units = &session.units;
    let of_nodes = units.coarser.values().copied();
    let (least, most) = (of_nodes.clone().reduce(f64::min), of_nodes.reduce(f64::max));
    let (whose, who, unit) = match (units.class, most) {
        (class, Some(unit)) if class.is_none_or(|class| class < unit) => {
            let nodes = count(units.coarser.len(), "node");
            (format!("the times of {nodes}"), "such a slow node", unit)
        }
        (class, _) => ("the times".to_owned(), "a slow node", class?),
    };
    let from = least.filter(|least| *least < unit).map(|least| format!("{least} s to ")).unwrap_or_default();
    let of_time = unit / centre.exp();
    (of_time >= WORTH_A_WARNING).then(|| {
        format!(
            "{whose} are multiples of {from}{unit} s, which is {} of the class median: the report can detect \
             {who} only if it is slower by about {} or more",
            percent(of_time),
            percent(delta + of_time)
        )
    })
}

/// What the order of measurements limits.
fn of_time_order(order: &TimeOrder, delta: f64) -> String {
    let alike = |who: &str, found: RankRatio| {
        format!(
            "nodes measured {who} have similar times (von Neumann's ratio {:.2}; about 2 if the order has no effect)",
            found.ratio
        )
    };
    let found = match order.found {
        TimeOrderEvidence::Neighbours(found) => alike("one after another", found),
        TimeOrderEvidence::Hours(found) => alike("at similar hours of several days", found),
        TimeOrderEvidence::SlowTogether(nodes) => {
            format!(
                "{} measured together, at another time than the other nodes, and many of them are slow",
                were(nodes)
            )
        }
        TimeOrderEvidence::OtherRounds(nodes) => {
            format!("{} measured in other rounds than most nodes, and rounds differ", were(nodes))
        }
    };
    let who = match order.found {
        TimeOrderEvidence::Neighbours(_) | TimeOrderEvidence::Hours(_) => "a node",
        TimeOrderEvidence::SlowTogether(_) | TimeOrderEvidence::OtherRounds(_) => "such a node",
    };
    let range = order.range();
    format!(
        "{found}: the moment of the measurement may explain a slowdown of up to {}; therefore {who} is \
         SLOW or SLOW-TAIL only if it is certainly more than {} (this slowdown and --delta together) slower \
         than its class",
        percent(range.exp_m1()),
        percent((range + delta.ln_1p()).exp_m1())
    )
}

fn were(nodes: usize) -> String {
    format!("{} {}", count(nodes, "node"), if nodes == 1 { "was" } else { "were" })
}

/// Warns of other sessions whose verdicts the order of the measurements limits; of several it names the latest.
pub(super) fn time_order_of(
    table: &RunTable,
    settings: &JudgeSettings,
    limited: &[(usize, TimeOrder)],
    sessions: &[&[&[u32]]],
    class: &str,
) -> Option<Warning> {
    let (session, order) = limited.last()?;
    let told = of_time_order(order, settings.node.delta);
    let message = format!("{}: {told} ({class})", session_name(table, sessions[*session]));
    Some(Warning::new(WarningCode::TimeOrder, message))
}

/// What the interval of a node's median really covers.
fn covers(runs: usize, dependence: &Dependence) -> String {
    let Some((outside, _, coverage)) = node_median::interval(runs) else { return String::new() };
    format!(
        "; the {:.1} % interval of a median contains the true median with a probability of only about {:.0} %",
        100.0 * coverage,
        100.0 * dependence.coverage(runs, outside)
    )
}

/// What is more uncertain than `delta`, and by how much.
fn noise_above(table: &RunTable, session: &JudgedSession, delta: f64) -> Option<(&'static str, f64)> {
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
    let what = match limit {
        noise::Limit::Bounds => "elapsed times are",
        noise::Limit::Runs => "a node's median is",
    };
    Some((what, size))
}

/// Warns if the nodes of a class changed from one session to the next, or little by little since the first; of several
/// such sessions it names the latest.
/// `judging` has the numbers of the sessions that judge their nodes.
pub(super) fn composition(
    table: &RunTable,
    judging: &[usize],
    sessions: &[&[&[u32]]],
    class: &str,
) -> Option<Warning> {
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
    let message = format!(
        "{now} lacks {} of {before} and has {}: for drift, the report uses only nodes that were measured in several \
         sessions ({class})",
        count(gone, "node"),
        count(new, "new node")
    );
    Some(Warning::new(WarningCode::CompositionChanged, message))
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
) -> Option<Warning> {
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
    let message = format!(
        "most nodes have been {} slower since {}: drift does not show this change, because drift compares each \
         node with the other nodes ({class})",
        percent(change.exp_m1()),
        session_name(sessions.table, sessions.nodes[since])
    );
    Some(Warning::new(WarningCode::ClassMoved, message))
}
