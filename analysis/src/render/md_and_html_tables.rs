//! The tables of a report, for all formats that have tables.

use super::cells::{self, class_numbers, classes, interval, percent, probability, seconds};
use super::tabular::{Cell, Table, left, name, or_dash, right, words};
use super::{
    against_baseline, by_place, goes_with_slowness, more, run_spread, run_table, screen, shown,
    tables_of_last_run, where_slow,
};
use crate::report::Report;
use crate::stats::own_history::{Course, OwnVerdict};
use crate::verdicts::node_report::{DriftReport, NodeReport, SlowRunReport};

/// All tables that have rows, each with at most `top` rows (0: all).
pub fn of(report: &Report, top: usize) -> Vec<Table> {
    let by_place = by_place::table(report, top);
    let all = [
        nodes(&report.nodes, top),
        of_classes(report, top),
        slow_runs(&report.slow_runs, top),
        go_with_slowness(report, top),
        odd(&report.nodes, top),
        changed(&report.nodes, top),
        drift(&report.drift, top),
        run_table::of(&report.runs, top, None),
    ];
    let [nodes, rest @ ..] = all;
    let of_screen = report.screen.iter().flat_map(|of| {
        [
            screen::nodes(of, top),
            screen::links(of, top),
            screen::wrong_links(of, top),
            screen::kernels(of),
            against_baseline::table(of),
        ]
    });
    [nodes]
        .into_iter()
        .chain(of_screen)
        .chain(rest)
        .chain(by_place)
        .chain(tables_of_last_run::of(report, top))
        .filter(|table| !table.rows.is_empty())
        .collect()
}

fn nodes(nodes: &[NodeReport], top: usize) -> Table {
    let mut columns = vec![
        left("Node"),
        right("Class"),
        right("Runs"),
        right("Median, s"),
        left("Its interval, s"),
        right("Slower"),
        right("At least"),
        right("P"),
        left("Verdict"),
    ];
    let has_history = nodes.iter().any(|node| node.history.verdict.is_some());
    columns.extend(has_history.then(|| left("History")));
    columns.push(left("Why"));
    let numbers = class_numbers(nodes);
    let (shown, hidden) = shown(nodes.len(), top);
    let row = |node: &NodeReport| {
        // An odd node has the values of the class that it would belong to.
        let peers = node.among_peers();
        let mut cells = vec![
            name(&node.node),
            words(numbers[node.class.as_str()]),
            words(node.runs),
            words(seconds(node.median_s)),
            words(interval(node.ci_s)),
            or_dash(peers.slowdown, |slowdown| percent(slowdown, 2)),
            or_dash(peers.slower_by_at_least, |least| percent(least, 2)),
            or_dash(node.p_adjusted, probability),
            match node.is_current() {
                true => Cell::Verdict(peers.verdict),
                false => words(format!("({})", node.presence.name())),
            },
        ];
        cells.extend(has_history.then(|| words(node.history.verdict.map_or("-", OwnVerdict::name))));
        cells.push(words(node.why.cause_name().unwrap_or("-")));
        cells
    };
    let rows = nodes[..shown].iter().map(row).collect();
    let notes = where_slow::of_nodes(nodes);
    Table { columns, rows, more: more(hidden, "more row"), notes, ..Table::default() }
}

fn of_classes(report: &Report, top: usize) -> Table {
    let classes = classes(&report.nodes);
    let spreads = run_spread::of_classes(report);
    let (shown, hidden) = shown(classes.len(), top);
    let row = |(number, class): (usize, &&str)| {
        let mut row = vec![words(number + 1), name(class)];
        row.extend((!spreads.is_empty()).then(|| words(spreads.get(class).map_or("-", String::as_str))));
        row
    };
    let rows = classes[..shown].iter().enumerate().map(row).collect();
    Table {
        columns: [right("Class"), left("Nodes that should be equally fast")]
            .into_iter()
            .chain((!spreads.is_empty()).then(|| left("Spread of its runs")))
            .collect(),
        rows,
        more: more(hidden, "more class"),
        ..Table::default()
    }
}

fn slow_runs(runs: &[SlowRunReport], top: usize) -> Table {
    let (shown, hidden) = shown(runs.len(), top);
    let row = |run: &SlowRunReport| {
        vec![
            name(&run.run_id),
            name(&run.node),
            words(seconds(run.elapsed_s)),
            words(percent(run.slowdown, 1)),
            words(probability(run.p_adjusted)),
            run.why.cause_name().map_or_else(|| words("-"), words),
            run.session.as_deref().map_or_else(|| words("-"), name),
        ]
    };
    let rows = runs[..shown].iter().map(row).collect();
    Table {
        columns: vec![
            left("Slow run"),
            left("Node"),
            right("Took, s"),
            right("Slower"),
            right("P"),
            left("Cause"),
            left("Session"),
        ],
        rows,
        more: more(hidden, "more slow run"),
        notes: where_slow::of_runs(runs),
        ..Table::default()
    }
}

fn go_with_slowness(report: &Report, top: usize) -> Table {
    let found = goes_with_slowness::rows(report);
    let (shown, hidden) = shown(found.len(), top);
    let has_classes = found.iter().any(|row| row.class.is_some());
    let mut columns = vec![
        left("Goes with slowness"),
        left("Of"),
        right("Rho"),
        left("Its interval"),
        right("P"),
        left("Ratio"),
    ];
    columns.extend(has_classes.then(|| right("Class")));
    let row = |row: &goes_with_slowness::SlownessRow| {
        let mut cells = vec![
            name(row.name),
            words(row.of),
            words(row.rho()),
            words(row.interval()),
            words(probability(row.found.p_adjusted)),
            words(row.ratio()),
        ];
        cells.extend(row.class.map(words));
        cells
    };
    let rows = found[..shown].iter().map(row).collect();
    let notes = goes_with_slowness::meaning(report, &found).into_iter().collect();
    let more = more(hidden, "more row");
    Table { columns, rows, more, notes, ..Table::default() }
}

fn odd(nodes: &[NodeReport], top: usize) -> Table {
    let rows = cells::odd(nodes);
    let (shown, hidden) = shown(rows.len(), top);
    let row =
        |row: &cells::OddRow| vec![name(row.node), words(row.key), name(row.value), name(row.class_value)];
    Table {
        columns: vec![left("Odd"), left("Fact"), left("Value"), left("Peers have")],
        rows: rows[..shown].iter().map(row).collect(),
        more: more(hidden, "more fact"),
        ..Table::default()
    }
}

fn changed(nodes: &[NodeReport], top: usize) -> Table {
    let nodes = cells::changed(nodes);
    let (shown, hidden) = shown(nodes.len(), top);
    let row = |node: &&NodeReport| {
        let history = &node.history;
        vec![
            name(&node.node),
            words(history.verdict.map_or("-", OwnVerdict::name)),
            or_dash(history.before_s, seconds),
            or_dash(history.now_s, seconds),
            or_dash(history.change, |by| percent(by, 1)),
            or_dash(history.events.at_least, |by| percent(by, 1)),
            words(history.events.course.map_or("-", Course::name)),
            history.events.since.as_deref().map_or_else(|| words("-"), name),
        ]
    };
    let rows = nodes[..shown].iter().map(row).collect();
    Table {
        columns: vec![
            left("Changed"),
            left("Verdict"),
            right("Before, s"),
            right("Now, s"),
            right("By"),
            right("At least"),
            left("How"),
            left("Since"),
        ],
        rows,
        more: more(hidden, "more node"),
        ..Table::default()
    }
}

fn drift(drifts: &[DriftReport], top: usize) -> Table {
    let (shown, hidden) = shown(drifts.len(), top);
    let row = |drift: &DriftReport| {
        let since = drift.since.as_deref().map_or_else(|| words("-"), name);
        vec![name(&drift.node), words(percent(drift.change, 1)), words(format!("{:.1}", drift.score)), since]
    };
    let rows = drifts[..shown].iter().map(row).collect();
    Table {
        columns: vec![left("Grew slower"), right("By"), right("Score"), left("Since")],
        rows,
        more: more(hidden, "more node"),
        ..Table::default()
    }
}
