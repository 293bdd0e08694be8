//! What a run file records beside times and counts, as sections of names and values (`pmmpi show`), and which of these
//! values differ between two runs (`pmmpi diff`).
//!
//! The names, values and differences of single runs belong here. Their tables are in [`crate::render::recorded`];
//! differences of times are in [`crate::comparison`].

mod node_counts;
mod places;

use pmmpi::node::NodeFacts;
use pmmpi::record::{Mode, Run, civil_from_days};
use pmmpi::text::count;
use serde::Serialize;
use std::collections::BTreeMap;

/// Variables that end so tell where a job ran, not how.
const LIST_OF_NODES: &str = "_NODELIST";

/// All that a run records, by section.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recorded {
    /// The id of the run.
    pub run_id: String,
    /// Sections in the order of reading.
    pub sections: Vec<Section>,
}

/// One section.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    /// run, launch, program, options, environment, binding, ranks, node, counts of nodes, or topology.
    pub name: &'static str,
    /// True if two runs of one job script may differ here: time, ids, results. [`differences`] leaves such sections out.
    #[serde(skip)]
    pub is_of_this_run: bool,
    /// Values by name, in the order of reading. A value that is not equal on all nodes says which nodes have it.
    pub values: Vec<Named>,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// The value in words.
    pub value: String,
    /// What [`differences`] compares.
    #[serde(skip)]
    pub compared: Compared,
}

/// What of a value is compared with the value of another run.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Compared {
    /// The value in words.
    #[default]
    Value,
    /// The value without the names of nodes.
    Text(String),
    /// An amount that no two runs have exactly alike. It differs if it is more than twice the other and this `least`.
    Amount {
        /// The amount.
        amount: f64,
        /// In the unit of `amount`.
        least: f64,
    },
    /// Nothing: it is a result.
    Nothing,
}

impl Named {
    /// True if two runs differ in this value; `None` is a value that a run does not have.
    fn differ(a: Option<&Self>, b: Option<&Self>) -> bool {
        let compared = |of: Option<&Self>| of.map(|of| of.compared.clone());
        match (compared(a), compared(b)) {
            (Some(Compared::Nothing), _) | (_, Some(Compared::Nothing)) => false,
            // An older run does not have it.
            (Some(Compared::Amount { .. }), None) | (None, Some(Compared::Amount { .. })) => false,
            (Some(Compared::Amount { amount: a, least }), Some(Compared::Amount { amount: b, .. })) => {
                a.max(b) > 2.0 * a.min(b) + least
            }
            (Some(Compared::Text(a)), Some(Compared::Text(b))) => a != b,
            _ => a.map(|of| &of.value) != b.map(|of| &of.value),
        }
    }
}

/// A value in which two runs differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The section.
    pub section: &'static str,
    /// The name of the value.
    pub name: String,
    /// The value of each run; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<String>,
    /// See `a`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<String>,
}

/// Two runs and their differences.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Differences {
    /// The ids of the runs.
    pub runs: [String; 2],
    /// Empty if nothing differs.
    pub differences: Vec<Difference>,
}

impl Recorded {
    /// Everything that a run records.
    pub fn of(run: &Run) -> Self {
        let sections = [
            section("run", true, pairs(of_run(run))),
            section("launch", true, pairs(ids(run))),
            section("program", false, pairs(program(run))),
            section("options", false, pairs(options(run))),
            section("environment", false, pairs(run.header.environment.clone())),
            section("binding", false, pairs(places::binding(run))),
            section("ranks", true, pairs(places::ranks(run))),
            section("node", false, nodes(run)),
            section("counts of nodes", false, node_counts::of(run)),
            section("topology", false, places::topology(run)),
        ];
        let run_id = run.header.run_id.clone();
        Self { run_id, sections: sections.into_iter().filter(|section| !section.values.is_empty()).collect() }
    }
}

fn section(name: &'static str, is_of_this_run: bool, values: Vec<Named>) -> Section {
    Section { name, is_of_this_run, values }
}

fn pairs(pairs: Pairs) -> Vec<Named> {
    pairs.into_iter().map(|(name, value)| Named { name, value, compared: Compared::Value }).collect()
}

/// The differences of the two runs, in the order of the sections. Values that differ in any two runs, such as the
/// time, are left out.
pub fn differences(a: &Run, b: &Run) -> Differences {
    let (a, b) = (Recorded::of(a), Recorded::of(b));
    let mut differences = Vec::new();
    let names = a.sections.iter().chain(&b.sections).filter(|section| !section.is_of_this_run);
    let mut known = Vec::new();
    for name in names.map(|section| section.name) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    for name in known {
        let [of_a, of_b] = [&a, &b].map(|of| of.values(name));
        let mut all: Vec<&str> = of_a.keys().chain(of_b.keys()).copied().collect();
        all.sort_unstable();
        all.dedup();
        all.retain(|name| {
            let [a, b] = [&of_a, &of_b].map(|of| of.get(name).copied());
            !name.ends_with(LIST_OF_NODES) && Named::differ(a, b)
        });
        for value in all {
            let of = |values: &BTreeMap<&str, &Named>| values.get(value).map(|of| of.value.clone());
            differences.push(Difference {
                section: name,
                name: value.to_owned(),
                a: of(&of_a),
                b: of(&of_b),
            });
        }
    }
    Differences { runs: [a.run_id, b.run_id], differences }
}

impl Recorded {
    /// The values of a section, by name.
    fn values(&self, section: &str) -> BTreeMap<&str, &Named> {
        let found = self.sections.iter().filter(|of| of.name == section);
        found.flat_map(|of| &of.values).map(|of| (of.name.as_str(), of)).collect()
    }
}

type Pairs = Vec<(String, String)>;

/// Adds a value that is known.
fn push(pairs: &mut Pairs, name: &str, value: Option<impl ToString>) {
    pairs.extend(value.map(|value| (name.to_owned(), value.to_string())));
}

fn of_run(run: &Run) -> Pairs {
    let header = &run.header;
    let mut pairs = Pairs::new();
    push(&mut pairs, "run_id", Some(&header.run_id));
    push(&mut pairs, "started", Some(utc(header.started_unix_ns)));
    push(&mut pairs, "end", run.end());
    if let Some(elapsed) = run.elapsed() {
        let [lower, upper] = [elapsed.lower_ns, elapsed.upper_ns].map(|ns| ns as f64 * 1e-9);
        let text = match elapsed.consistent {
            true => format!("between {lower:.6} and {upper:.6} s"),
            false => "unknown: the stamps of the nodes contradict one another".to_owned(),
        };
        push(&mut pairs, "elapsed", Some(text));
    }
    push(&mut pairs, "ranks_measured", Some(run.ranks.len()));
    push(
        &mut pairs,
        "series",
        header.series.as_ref().map(|series| format!("{}, run {}", series.id, series.round)),
    );
    pairs
}

fn ids(run: &Run) -> Pairs {
    let mut pairs = Pairs::new();
    push(&mut pairs, "job_id", run.header.job.job_id.as_ref());
    push(&mut pairs, "step_id", run.header.job.step_id.as_ref());
    pairs
}

fn program(run: &Run) -> Pairs {
    let header = &run.header;
    let mut pairs = Pairs::new();
    push(&mut pairs, "command", Some(header.command.join(" ")));
    push(&mut pairs, "launcher", header.job.launcher.as_ref());
    push(&mut pairs, "mpi_library", header.mpi_library.as_ref().map(|text| text.trim()));
    push(&mut pairs, "ranks", Some(run.size));
    push(&mut pairs, "nodes", Some(run.host_count()));
    let mode = match header.mode {
        Mode::Mpi => "as an MPI program, with the agent",
        Mode::Plain => "as a child process, without the agent",
    };
    push(&mut pairs, "measured", Some(mode));
    pairs.extend(header.labels.iter().map(|(key, value)| (format!("label {key}"), value.clone())));
    pairs
}

fn options(run: &Run) -> Pairs {
    let mut pairs = Pairs::new();
    push(&mut pairs, "max_drift_ppm", Some(run.header.max_drift.ppm()));
    push(&mut pairs, "sync", (!run.sync.is_empty()).then_some("pingpong"));
    push(&mut pairs, "pmmpi_version", Some(&run.header.pmmpi_version));
    for asked in &run.asked {
        let events = asked.events.iter().map(|(scope, name)| format!("{name} ({})", scope.name()));
        push(&mut pairs, &asked.typed, Some(events.collect::<Vec<String>>().join(", ")));
    }
    for expected in &run.expected {
        let part = expected.part.as_ref().map_or(String::new(), |part| format!("{part}:"));
        push(&mut pairs, &format!("--expect {part}instructions"), Some(expected.instructions));
    }
    pairs
}

/// Facts of the nodes.
fn nodes(run: &Run) -> Vec<Named> {
    let of = |facts: &NodeFacts| {
        let hardware = &facts.hardware;
        let mut pairs = Pairs::new();
        push(&mut pairs, "cpu", hardware.cpu_model_name.as_ref());
        let numbers = [hardware.cpu_family, hardware.cpu_model, hardware.cpu_stepping];
        let numbers: Option<Vec<String>> =
            numbers.into_iter().map(|number| Some(number?.to_string())).collect();
        push(&mut pairs, "cpu_family/model/stepping", numbers.map(|numbers| numbers.join("/")));
        push(&mut pairs, "microcode", hardware.microcode.as_ref());
        push(&mut pairs, "memory_bytes", hardware.memory_bytes);
        push(&mut pairs, "kernel", hardware.kernel.as_ref());
        push(&mut pairs, "virtual_machine", hardware.hypervisor.then_some("yes"));
        pairs.extend(facts.named().into_iter().map(|(name, value)| (name.to_owned(), value)));
        pairs
    };
    let known =
        run.nodes.iter().filter_map(|node| Some((node.key.hostname.as_str(), of(node.facts.as_ref()?))));
    of_all(known)
}

/// Puts equal values of several nodes together: "off (1 node: n2); on (2 nodes: n1, n3)". Names keep the order in
/// which they come first. The comparison uses how many nodes have each value, and not which nodes have it.
fn of_all<'a>(nodes: impl Iterator<Item = (&'a str, Pairs)>) -> Vec<Named> {
    const NAMED: usize = 4;
    let mut order: Vec<String> = Vec::new();
    let mut all: BTreeMap<String, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    let mut hosts = 0;
    for (host, pairs) in nodes {
        hosts += 1;
        for (name, value) in pairs {
            if !all.contains_key(&name) {
                order.push(name.clone());
            }
            all.entry(name).or_default().entry(value).or_default().push(host);
        }
    }
    let of = |name: String| {
        let values = &all[&name];
        if let Some((value, _)) = values.iter().next().filter(|(_, of)| of.len() == hosts) {
            return Named { value: value.clone(), compared: Compared::Value, name };
        }
        let named = values.iter().map(|(value, of)| {
            let more = if of.len() > NAMED { ", ..." } else { "" };
            format!("{value} ({}: {}{more})", count(of.len(), "node"), of[..of.len().min(NAMED)].join(", "))
        });
        let counted = values.iter().map(|(value, of)| format!("{value} ({})", count(of.len(), "node")));
        let [value, compared] = [named.collect::<Vec<String>>(), counted.collect()].map(|all| all.join("; "));
        Named { name, value, compared: Compared::Text(compared) }
    };
    order.into_iter().map(of).collect()
}

/// YYYY-MM-DDThh:mm:ssZ.
fn utc(unix_ns: i64) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_from_days(days);
    let [hour, minute, second] = [second / 3600, second / 60 % 60, second % 60];
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_with_other_values_are_named() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let all = |hosts: [&'static str; 3]| {
            let nodes = [
                (hosts[0], vec![pair("smt", "on"), pair("kernel", "6.1")]),
                (hosts[1], vec![pair("smt", "off"), pair("kernel", "6.1")]),
                (hosts[2], vec![pair("smt", "on"), pair("kernel", "6.1"), pair("gpus", "4")]),
            ];
            of_all(nodes.into_iter())
        };
        let [here, elsewhere] = [["n1", "n2", "n3"], ["n4", "n5", "n6"]].map(all);
        let shown: Vec<(&str, &str)> = here.iter().map(|of| (of.name.as_str(), of.value.as_str())).collect();
        let smt = ("smt", "off (1 node: n2); on (2 nodes: n1, n3)");
        assert_eq!(shown, [smt, ("kernel", "6.1"), ("gpus", "4 (1 node: n3)")]);
        assert!(here.iter().zip(&elsewhere).all(|(a, b)| a.compared == b.compared));
    }

    #[test]
    fn a_time_is_of_the_calendar() {
        assert_eq!(utc(1_795_223_943_123_456_789), "2026-11-21T01:19:03Z");
        assert_eq!(utc(-1), "1969-12-31T23:59:59Z");
    }
}
