//! The result of `pmmpi screen` in sentences and tables.

use super::against_baseline;
use super::cells::{percent, shortened};
use super::more;
use super::tabular::{Cell, Table, left, name, or_dash, right, words};
use crate::report::Report;
use crate::report::screen::{KernelSummary, ScreenReport, ScreenedNode, SlowLinkReport, WrongLinkReport};
use crate::table::slurm_host_list::compressed;
use crate::verdicts::fitness::{Fitness, GateAnswer};
use crate::verdicts::kernels_of_node::ScreenVerdict;
use pmmpi::text::count;

/// Number of nodes that a sentence names.
const NAMED: usize = 3;
/// Nodes of `--gate` without part that have a line each. More of them share a line.
const ABSENT: usize = 10;
/// A longer list of nodes is not readable.
const LONGEST_LIST: usize = 400;
/// Number of hardware threads that a line names.
const THREADS: usize = 4;

/// What was measured.
pub fn measured(screen: &ScreenReport) -> String {
    let kernels: Vec<&str> = screen.kernels.iter().map(|kernel| kernel.kernel.as_str()).collect();
    let more = match screen.more_rounds {
        0 => String::new(),
        rounds => format!("; {} of suspects", count(rounds, "more round")),
    };
    format!(
        "screen of {}: {} of {}{more}; {:.1} runs per node and kernel, {:.1} node-minutes in the \
         measured rounds",
        count(screen.screened.len(), "node"),
        count(screen.rounds, "round"),
        kernels.join(", "),
        screen.runs_per_node,
        screen.node_minutes
    )
}

/// All sentences of a report; none if it has no screen.
pub fn sentences(report: &Report) -> Vec<String> {
    let Some(screen) = &report.screen else { return Vec::new() };
    let after = [measured(screen)];
    gate(screen).into_iter().chain(answer(screen)).chain(after).collect()
}

/// The answer: one sentence per kind of finding.
pub fn answer(screen: &ScreenReport) -> Vec<String> {
    use ScreenVerdict::{Failed, Fast, Slow, SlowTail, Slowed, Suspect, Unusual, Wrong};
    let all = count(screen.screened.len(), "node");
    let failed = match screen.wrong_links.is_empty() {
        true => "FAILED, because a kernel ended with an error or took too long",
        false => "FAILED, because a kernel ended with an error, took too long or exchanged wrong data",
    };
    let mut sentences = Vec::new();
    for (verdicts, one, several) in [
        (&[Wrong][..], "computed a wrong result", "computed wrong results"),
        (&[Slow, SlowTail], "is slower than its class", "are slower than their class"),
        (&[Slowed], "is slower than in earlier screens", "are slower than in earlier screens"),
        (&[Failed], failed, failed),
        (&[Suspect, Unusual], "may be slow, but this is not certain", "may be slow, but this is not certain"),
        (&[Fast], "is much faster than its class", "are much faster than their class"),
    ] {
        let nodes: Vec<&ScreenedNode> = screen
            .screened
            .iter()
            .filter(|node| node.verdict.is_some_and(|of| verdicts.contains(&of)))
            .collect();
        if nodes.is_empty() {
            continue;
        }
        let named: Vec<String> = nodes.iter().take(NAMED).map(|node| in_short(node)).collect();
        let more = if nodes.len() > NAMED { ", ..." } else { "" };
        let what = if nodes.len() == 1 { one } else { several };
        sentences.push(format!("{} of {all} {what}: {}{more}", nodes.len(), named.join(", ")));
    }
    if !is_compared(screen) {
        let none = "pmmpi could not compare any node: a comparison needs other nodes of the same class, or \
                    an archive of earlier screens (see docs/screening.md)";
        sentences.push(none.to_owned());
    } else if sentences.is_empty() {
        let judged = screen.screened.iter().filter(|node| node.verdict.is_some()).count();
        let noun = if judged < screen.screened.len() { "compared node" } else { "node" };
        sentences.push(format!("none of {} looks slow", count(judged, noun)));
    }
    if is_compared(screen) {
        sentences.extend(not_compared(screen));
    }
    sentences.extend(wrong_data(screen));
    sentences.extend(not_screened(screen));
    sentences.extend(against_baseline::sentences(screen));
    sentences
}

/// For example "wrong data from n2 to n5: the link or one of its two nodes is faulty".
fn wrong_data(screen: &ScreenReport) -> Option<String> {
    let of = |link: &WrongLinkReport| format!("from {} to {}", shortened(&link.from), shortened(&link.to));
    let links: Vec<String> = screen.wrong_links.iter().map(of).collect();
    let what = match links.len() {
        0 => return None,
        1 => "the link or one of its two nodes is faulty",
        _ => "links or nodes are faulty",
    };
    Some(format!("wrong data {}: {what}", few(&links)))
}

/// Nodes with results that nothing was compared with, for example "2 of 9 nodes cannot be compared with other nodes or with
/// earlier screens: n7, n8 (in triad)".
fn not_compared(screen: &ScreenReport) -> Option<String> {
    let of = |node: &ScreenedNode| {
        let kernels: Vec<&str> = node.not_compared().collect();
        let name = shortened(&node.node);
        match kernels.len() {
            0 => None,
            all if all == node.kernels.len() => Some(name),
            _ => Some(format!("{name} (in {})", kernels.join(", "))),
        }
    };
    let nodes: Vec<String> = screen.screened.iter().filter_map(of).collect();
    let all = count(screen.screened.len(), "node");
    let named = few(&nodes);
    (!nodes.is_empty()).then(|| {
        format!(
            "{} of {all} cannot be compared with other nodes or with earlier screens: {named}",
            nodes.len()
        )
    })
}

/// Nodes of the job without any result, for example "1 node of the job took no part in the screen: n7".
fn not_screened(screen: &ScreenReport) -> Option<String> {
    let nodes: Vec<String> = screen.not_screened.iter().map(|node| shortened(node)).collect();
    let all = count(nodes.len(), "node");
    let named = few(&nodes);
    (!nodes.is_empty()).then(|| format!("{all} of the job took no part in the screen: {named}"))
}

/// The first names.
fn few(names: &[String]) -> String {
    let more = if names.len() > NAMED { ", ..." } else { "" };
    names[..names.len().min(NAMED)].join(", ") + more
}

/// Why nodes did not pass, although nothing is slow: one part per kind, for a message; `None` if all have results.
pub fn without_result(screen: &ScreenReport) -> Option<String> {
    let of = |node: &ScreenedNode| {
        let kernels: Vec<&str> = node.without_result().collect();
        (!kernels.is_empty()).then(|| format!("{} ({})", shortened(&node.node), kernels.join(", ")))
    };
    let nodes: Vec<String> = screen.screened.iter().filter_map(of).collect();
    let failed = (!nodes.is_empty())
        .then(|| format!("{} without a result of a kernel: {}", count(nodes.len(), "node"), few(&nodes)));
    let parts: Vec<String> = failed.into_iter().chain(not_screened(screen)).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// One sentence per repaired node, and one for all nodes that took no part if they are many.
pub fn gate(screen: &ScreenReport) -> Vec<String> {
    let sentence = |asked: &GateAnswer| {
        let node = shortened(&asked.node);
        match asked.answer {
            Fitness::Fit => format!("{node} is fit to return: {}", how_fast(asked)),
            Fitness::NotFit => format!("{node} is NOT fit to return: {}", asked.reason),
            Fitness::Undecided => format!("{node}: UNDECIDED: {}", asked.reason),
        }
    };
    let (measured, absent): (Vec<&GateAnswer>, Vec<&GateAnswer>) =
        screen.gate.iter().partition(|asked| asked.host.is_some());
    match absent.len() > ABSENT {
        true => measured.into_iter().map(sentence).chain([without_part(&absent)]).collect(),
        false => screen.gate.iter().map(sentence).collect(),
    }
}

/// The sentence for nodes of `--gate` that took no part. A long list has only its first names.
fn without_part(absent: &[&GateAnswer]) -> String {
    let names = || absent.iter().map(|asked| asked.node.as_str());
    let whole = compressed(names());
    let list = match whole.len() > LONGEST_LIST {
        true => few(&names().map(shortened).collect::<Vec<String>>()) + " (all of them: --format json)",
        false => whole,
    };
    let nodes = count(absent.len(), "node");
    format!("{nodes} of --gate: UNDECIDED: they did not take part in the screen: {list}")
}

/// The upper end for a node that is fit.
fn how_fast(asked: &GateAnswer) -> String {
    match asked.slower_by_at_most.filter(|most| *most > 0.0) {
        None => "with a probability of 99 %, it is not slower than its class in any kernel".to_owned(),
        Some(most) => format!(
            "with a probability of 99 %, it is at most {:.1} % slower than its class in each kernel",
            most * 100.0
        ),
    }
}

/// True if the verdict of some kernel on some node is known.
fn is_compared(screen: &ScreenReport) -> bool {
    screen.screened.iter().any(|node| node.kernels.values().any(|kernel| kernel.verdict.is_some()))
}

/// For example "n17 in memory +8.1 % (at least +7.2 %, drain it)".
fn in_short(node: &ScreenedNode) -> String {
    let mut text = shortened(&node.node);
    if let Some(area) = &node.slow_in {
        text += &format!(" in {}", shortened(area));
    } else if let Some(kernel) = &node.kernel {
        text += &format!(" in {}", shortened(kernel));
    }
    if let Some(slowdown) = node.slowdown {
        text += &format!(" {}", percent(slowdown, 1));
    }
    let least = node.slower_by_at_least.filter(|least| *least > 0.0);
    let least = least.map(|least| format!("at least {}", percent(least, 1)));
    let drain = node.suggests_drain.then(|| "drain it".to_owned());
    let details: Vec<String> = least.into_iter().chain(drain).collect();
    if details.is_empty() { text } else { format!("{text} ({})", details.join(", ")) }
}

/// The nodes that are not OK, at most `top` (0: all).
pub fn nodes(screen: &ScreenReport, top: usize) -> Table {
    let is_found = |node: &&ScreenedNode| node.verdict.is_some_and(|verdict| verdict != ScreenVerdict::Ok);
    let found: Vec<&ScreenedNode> = screen.screened.iter().filter(is_found).collect();
    let shown = if top == 0 { found.len() } else { top.min(found.len()) };
    let row = |node: &&ScreenedNode| {
        let of_kernel = node.kernel.as_ref().and_then(|kernel| node.kernels.get(kernel));
        let summary = screen.kernels.iter().find(|summary| Some(&summary.kernel) == node.kernel.as_ref());
        let unit = of_kernel.and_then(|kernel| kernel.unit.as_deref());
        vec![
            name(&node.node),
            words(node.verdict.map_or("-", ScreenVerdict::name)),
            node.slow_in.as_deref().map_or_else(|| words("-"), name),
            node.kernel.as_deref().map_or_else(|| words("-"), name),
            or_dash(node.slowdown, |by| percent(by, 1)),
            or_dash(node.slower_by_at_least.filter(|by| *by > 0.0), |by| percent(by, 1)),
            or_dash(of_kernel.and_then(|kernel| kernel.value), |value| quantity(value, unit)),
            or_dash(summary.and_then(|summary| summary.median), |value| {
                quantity(value, summary.and_then(|summary| summary.unit.as_deref()))
            }),
        ]
    };
    Table {
        columns: vec![
            left("Node"),
            left("Verdict"),
            left("Slow in"),
            left("Kernel"),
            right("Slower"),
            right("At least"),
            right("Value"),
            right("Median"),
        ],
        rows: found[..shown].iter().map(row).collect(),
        more: more(found.len() - shown, "more node"),
        notes: found[..shown].iter().filter_map(|node| why(node)).collect(),
        ..Table::default()
    }
}

/// The cause and the slow hardware threads of a node.
fn why(node: &ScreenedNode) -> Option<String> {
    let threads: Vec<String> = node
        .slow_threads
        .iter()
        .take(THREADS)
        .map(|thread| format!("{} {}", thread.hardware_thread, percent(thread.slowdown, 0)))
        .collect();
    let more = if node.slow_threads.len() > THREADS { ", ..." } else { "" };
    let threads =
        (!threads.is_empty()).then(|| format!("slow hardware threads: {}{more}", threads.join(", ")));
    let cause = node.cause.as_deref().map(ToString::to_string);
    let parts: Vec<String> = cause.into_iter().chain(threads).collect();
    (!parts.is_empty()).then(|| format!("{}: {}", node.node, parts.join("; ")))
}

/// One row per slow link, at most `top` (0: all).
pub fn links(screen: &ScreenReport, top: usize) -> Table {
    let found = &screen.slow_links;
    let shown = if top == 0 { found.len() } else { top.min(found.len()) };
    let row = |link: &SlowLinkReport| {
        vec![
            name(&link.nodes[0]),
            name(&link.nodes[1]),
            words(quantity(link.latency_us, Some("us"))),
            words(quantity(link.gigabytes_per_s, Some("GB/s"))),
            words(format!("{:.1} times", link.times_worse)),
        ]
    };
    Table {
        columns: vec![
            left("Slow link"),
            left("And"),
            right("Latency"),
            right("Bandwidth"),
            right("Worse by"),
        ],
        rows: found[..shown].iter().map(row).collect(),
        more: more(found.len() - shown, "more link"),
        ..Table::default()
    }
}

/// One row per pair of nodes and direction, at most `top` (0: all).
pub fn wrong_links(screen: &ScreenReport, top: usize) -> Table {
    let found = &screen.wrong_links;
    let shown = if top == 0 { found.len() } else { top.min(found.len()) };
    Table {
        columns: vec![left("Wrong data from"), left("To")],
        rows: found[..shown].iter().map(|link| vec![name(&link.from), name(&link.to)]).collect(),
        more: more(found.len() - shown, "more link"),
        ..Table::default()
    }
}

/// One row per kernel.
pub fn kernels(screen: &ScreenReport) -> Table {
    let row = |kernel: &KernelSummary| -> Vec<Cell> {
        let unit = kernel.unit.as_deref();
        vec![
            name(&kernel.kernel),
            words(kernel.nodes),
            or_dash(kernel.median, |value| quantity(value, unit)),
            or_dash(kernel.worst, |value| quantity(value, unit)),
            or_dash(kernel.median_s, |seconds| format!("{seconds:.3} s")),
        ]
    };
    let notes = screen
        .kernels
        .iter()
        .flat_map(|kernel| kernel.notes.iter().map(move |note| format!("{}: {note}", kernel.kernel)));
    Table {
        columns: vec![left("Kernel"), right("Nodes"), right("Median"), right("Worst"), right("Time")],
        rows: screen.kernels.iter().map(row).collect(),
        notes: notes.collect(),
        ..Table::default()
    }
}

/// Three digits or more, with the unit.
fn quantity(value: f64, unit: Option<&str>) -> String {
    let unit = unit.map_or(String::new(), |unit| format!(" {unit}"));
    match value.abs() {
        0.0 => format!("0{unit}"),
        large if large >= 100.0 => format!("{value:.0}{unit}"),
        large if large >= 10.0 => format!("{value:.1}{unit}"),
        large if large >= 1.0 => format!("{value:.2}{unit}"),
        _ => format!("{value:.3}{unit}"),
    }
}
