//! The places of slow runs in words.

use super::cells::shortened;
use crate::verdicts::node_report::{NodeReport, SlowRunReport};
use crate::verdicts::slow_places::{PlaceOfRun, SlowPlaces};
use pmmpi::text::count;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Names of places that fit into a sentence.
const NAMED: usize = 8;

/// A slow run or node in words, and where it is slow.
type SlowOne<'a> = (String, &'a SlowPlaces);

/// One sentence for each cause whose places are known, the cause of most runs first: "cpi/snoop-filter: at 4 to 12 of 48
/// cores, bytes into the L2 cache are 1.5 to 2.2 times the usual value (74 runs; most often socket 1 core 3: 12 runs)".
pub fn of_runs(runs: &[SlowRunReport]) -> Vec<String> {
    let slow = runs.iter().filter_map(|run| {
        Some((run.why.cause_name()?, (name_of_run(run, &shortened(&run.node)), run.places.as_ref()?)))
    });
    sentences(slow, "run")
}

/// "run 20261125T... of n03". `node` is the name of its node as it is shown.
pub(super) fn name_of_run(run: &SlowRunReport, node: &str) -> String {
    format!("run {} of {node}", shortened(&run.run_id))
}

/// The same for the causes of slow nodes.
pub fn of_nodes(nodes: &[NodeReport]) -> Vec<String> {
    let slow = nodes.iter().filter_map(|node| {
        let (cause, places) = (node.why.cause_name()?, node.places.as_deref()?);
        Some((cause, (shortened(&node.node), places)))
    });
    sentences(slow, "node")
}

fn sentences<'a>(slow: impl Iterator<Item = (&'a str, SlowOne<'a>)>, what: &str) -> Vec<String> {
    let mut causes: BTreeMap<(&str, &str, &str), Vec<SlowOne>> = BTreeMap::new();
    for (cause, one) in slow {
        causes.entry((cause, one.1.by, one.1.measure)).or_default().push(one);
    }
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(_, ones)| Reverse(ones.len()));
    causes.into_iter().map(|((cause, by, measure), ones)| sentence(cause, by, measure, &ones, what)).collect()
}

fn sentence(cause: &str, by: &str, measure: &str, runs: &[SlowOne], of: &str) -> String {
    let at = match runs {
        [(_, places)] => of_one(places),
        _ => of_many(by, runs),
    };
    let ratios = runs.iter().flat_map(|(_, places)| places.places.iter().map(|place| place.ratio));
    let (least, most) =
        ratios.fold((f64::INFINITY, 0.0f64), |(least, most), ratio| (least.min(ratio), most.max(ratio)));
    let usual = match (format!("{least:.2}"), format!("{most:.2}")) {
        (least, most) if least == most => format!("{least} times"),
        (least, most) => format!("{least} to {most} times"),
    };
    let (what, are) = in_words(measure);
    let which = match runs {
        [(which, _)] => which.clone(),
        _ => format!("{}{}", count(runs.len(), of), most_often(by, runs, of)),
    };
    format!("{cause}: at {at}, {what} {are} {usual} the usual value ({which})")
}

/// "cores 3, 7-9 of socket 0", "all 48 cores", "socket 1".
fn of_one(places: &SlowPlaces) -> String {
    let [first, ..] = &places.places[..] else { return String::new() };
    if places.places.len() == places.compared {
        return format!("all {}", count(places.compared, places.by));
    }
    let of_socket = only_socket(places.places.iter(), places.sockets).unwrap_or_default();
    let names: Vec<u32> = places.places.iter().filter_map(|place| number(place, places.by)).collect();
    if places.places.len() == 1 {
        return format!("{} {}{of_socket}", places.by, number(first, places.by).unwrap_or_default());
    }
    if names.len() > NAMED {
        return format!("{} of {}{of_socket}", names.len(), count(places.compared, places.by));
    }
    let names: Vec<String> = names.iter().map(u32::to_string).collect();
    format!("{}s {}{of_socket}", places.by, names.join(", "))
}

/// "4 to 12 of 48 cores".
fn of_many(by: &str, runs: &[SlowOne]) -> String {
    let numbers = |of: fn(&SlowPlaces) -> usize| {
        let all: BTreeSet<usize> = runs.iter().map(|(_, places)| of(places)).collect();
        [all.first().copied().unwrap_or(0), all.last().copied().unwrap_or(0)]
    };
    let range = |[least, most]: [usize; 2]| {
        if least == most { least.to_string() } else { format!("{least} to {most}") }
    };
    let (places, compared) = (numbers(|places| places.places.len()), numbers(|places| places.compared));
    let sockets = runs.iter().map(|(_, places)| places.sockets).max().unwrap_or(0);
    let of_socket =
        only_socket(runs.iter().flat_map(|(_, places)| &places.places), sockets).unwrap_or_default();
    if runs.iter().all(|(_, places)| places.places.len() == places.compared) {
        return format!("all {} {by}s", range(compared));
    }
    format!("{} of {} {by}s{of_socket}", range(places), range(compared))
}

/// " of socket 1", if all places are there and the node has other sockets.
fn only_socket<'a>(mut places: impl Iterator<Item = &'a PlaceOfRun>, sockets: usize) -> Option<String> {
    let socket = places.next()?.socket?;
    let is_only = sockets > 1 && places.all(|place| place.socket == Some(socket));
    is_only.then(|| format!(" of socket {socket}"))
}

/// "; most often socket 1 core 3: 12 runs", if a place of one node is in several runs, or one of all nodes is.
fn most_often(by: &str, runs: &[SlowOne], of: &str) -> String {
    let mut times: BTreeMap<[Option<u32>; 3], usize> = BTreeMap::new();
    for (_, places) in runs.iter().filter(|(_, places)| places.places.len() < places.compared) {
        for place in &places.places {
            *times.entry([place.socket, place.core, place.rank]).or_default() += 1;
        }
    }
    let most = times.into_iter().max_by_key(|(place, times)| (*times, Reverse(*place)));
    match most {
        Some(([socket, core, rank], times)) if times > 1 => {
            let place = match by {
                "rank" => format!("rank {}", rank.unwrap_or_default()),
                "socket" => format!("socket {}", socket.unwrap_or_default()),
                _ => format!("core {} of socket {}", core.unwrap_or_default(), socket.unwrap_or_default()),
            };
            format!("; most often {place}: {}", count(times, of))
        }
        _ => String::new(),
    }
}

fn number(place: &PlaceOfRun, by: &str) -> Option<u32> {
    match by {
        "rank" => place.rank,
        "socket" => place.socket,
        _ => place.core,
    }
}

/// A measure for people, and its verb.
pub(super) fn in_words(measure: &str) -> (&str, &'static str) {
    match measure {
        "system_read_bytes" => ("bytes into the L2 cache", "are"),
        "snoop_filter_evictions" => ("evictions of snoop filters", "are"),
        "dram_bytes" => ("bytes read from and written to memory", "are"),
        "cycles/instructions" => ("cycles per instruction", "are"),
        "cycles/ref_cycles" => ("the frequency", "is"),
        "cycles/task_clock_ns" => ("cycles per second", "are"),
        "task_clock_ns" => ("the time on the processor", "is"),
        "work" | "utilisation" => ("the time of work", "is"),
        other => (other, "are"),
    }
}
