//! Metrics, groups and event tables.

use super::cpu::{CpuKind, Range};
use super::formula::{Condition, Formula};
use pmmpi::counters::probe::Scope;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// All that is known of metrics.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// Where formulas and codes come from.
    pub sources: Vec<FormulaSource>,
    /// Events that are opened together, and what they tell.
    pub groups: Vec<EventGroup>,
    /// Named numbers that are no counts.
    pub quantities: Vec<Quantity>,
    /// What is computed.
    pub metrics: Vec<Metric>,
    /// What speaks against using a measurement.
    pub rules: Vec<Rule>,
    /// One event table a processor; the last is everybody's.
    pub tables: Vec<CpuTable>,
}

/// A document.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormulaSource {
    /// First word of every citation of it.
    pub key: String,
    /// Author, title, date.
    pub text: String,
}

/// Events that are opened together.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventGroup {
    /// As --group has it.
    pub name: String,
    /// One line.
    pub text: String,
}

/// A number that is no count.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// As formulas have it.
    pub name: String,
    /// "1" for pure numbers.
    pub unit: String,
    /// One line.
    pub text: String,
    /// Its source, where it has a default.
    pub source: Option<String>,
    /// What it is where nobody gives it.
    pub default: Option<Formula>,
}

/// Something that is computed from counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// One word.
    pub name: String,
    /// Groups that show it.
    pub groups: Vec<String>,
    /// How it is computed.
    pub formula: Formula,
    /// "1" for ratios.
    pub unit: String,
    /// One line.
    pub text: String,
    /// A source's key, and where in it.
    pub source: String,
    /// What one value is of.
    pub per: Per,
    /// Set where it is a bound of what cannot be computed.
    pub bound: Option<Bound>,
    /// Tables of the processors that it is for; empty for all.
    pub cpus: Vec<String>,
    /// What the inputs must satisfy, or there is no value.
    pub checks: Vec<Condition>,
}

/// Which bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// What is asked for is not smaller.
    Lower,
    /// What is asked for is not larger.
    Upper,
}

/// What speaks against using a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// One word.
    pub code: String,
    /// It is raised where all of these hold.
    pub when: Vec<Condition>,
    /// What that means, and what to do.
    pub text: String,
    /// True where the measurement is to be discarded.
    pub discards: bool,
    /// A source's key, and where in it.
    pub source: String,
}

/// What names in formulas mean on some processors.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuTable {
    /// One word.
    pub name: String,
    /// For people.
    pub text: String,
    /// Where its codes come from.
    pub source: String,
    /// Whose it is; empty for everybody's.
    pub cpus: Vec<Range>,
    /// The table that it inherits from, by name.
    pub inherits: Option<String>,
    /// Each name, its own or inherited.
    pub names: BTreeMap<String, Meaning>,
    /// Its own names.
    pub own: BTreeSet<String>,
    /// Names that it does not inherit.
    pub drops: Vec<String>,
}

/// What a name in a formula means on a processor.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning {
    /// A count.
    Event(EventSpec),
    /// Computed from counts.
    Formula {
        /// How.
        formula: Formula,
        /// How it differs from what its name promises.
        note: Option<String>,
    },
    /// Nothing here counts it: why.
    Absent(String),
}

/// An event, not yet resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// As formulas have it.
    pub name: String,
    /// What perf(1) takes: a generic name, or pmu/terms/. A PMU's name stands for all PMUs whose names begin
    /// with it, whose counts are added.
    pub encoding: String,
    /// The vendor's name.
    pub vendor_name: Option<String>,
    /// How it differs from what its name promises.
    pub note: Option<String>,
    /// Where it is counted.
    pub scope: Scope,
    /// The hardware thread of a core on which it is counted, where one is meant.
    pub sibling: Option<Sibling>,
    /// Suggested sampling period (events a sample).
    pub period: Option<u64>,
}

/// One of a core's two hardware threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sibling {
    /// The first.
    A,
    /// The other.
    B,
}

impl Sibling {
    /// Its place among its core's hardware threads, by the kernel's numbers.
    pub fn index(self) -> usize {
        match self {
            Sibling::A => 0,
            Sibling::B => 1,
        }
    }
}

/// What one value of a metric is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// All ranks of a run: its counts are their sums.
    #[default]
    Run,
    /// One core. Of a run: the mean over its cores.
    Core,
}

impl Catalogue {
    /// The table of this processor, else everybody's.
    pub fn table(&self, cpu: &CpuKind) -> Option<&CpuTable> {
        self.tables
            .iter()
            .find(|table| table.cpus.iter().any(|range| range.holds(cpu)))
            .or(self.tables.last())
    }

    /// The quantity of this name.
    pub fn quantity(&self, name: &str) -> Option<&Quantity> {
        self.quantities.iter().find(|quantity| quantity.name == name)
    }

    /// The metric of this name.
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// Metrics that a group shows.
    pub fn metrics_of<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a Metric> {
        self.metrics.iter().filter(move |metric| metric.groups.iter().any(|of| of == group))
    }

    /// Events that a group needs on a processor, each once, in the order in which its metrics name them; none
    /// for metrics that cannot be computed there.
    pub fn events_of<'a>(&'a self, group: &'a str, table: &'a CpuTable) -> Vec<&'a EventSpec> {
        let mut events: Vec<&EventSpec> = Vec::new();
        for metric in self.metrics_of(group).filter(|metric| table.computes(metric)) {
            table.add_events_of(metric, &mut events);
        }
        events
    }
}

/// All that is known of metrics. The files are part of the program and tests hold that they can be read, so
/// that the empty catalogue in place of unreadable ones is nobody's.
pub fn catalogue() -> &'static Catalogue {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    CATALOGUE.get_or_init(|| Catalogue::load().unwrap_or_default())
}

impl Metric {
    /// Its own and those of its checks.
    pub fn formulas(&self) -> impl Iterator<Item = &Formula> {
        std::iter::once(&self.formula).chain(self.checks.iter().flat_map(Condition::sides))
    }
}

impl CpuTable {
    /// What a name means here; `None` for names that no table knows, as those of quantities.
    pub fn meaning(&self, name: &str) -> Option<&Meaning> {
        self.names.get(name)
    }

    /// True where a metric is for this table's processors.
    pub fn has(&self, metric: &Metric) -> bool {
        metric.cpus.is_empty() || metric.cpus.contains(&self.name)
    }

    /// True where every name of a metric means something here.
    pub fn computes(&self, metric: &Metric) -> bool {
        let is_absent = |name: &String| matches!(self.meaning(name), Some(Meaning::Absent(_)));
        // One level: no definition names another.
        let lacks = |name: &String| match self.meaning(name) {
            Some(Meaning::Formula { formula, .. }) => formula.names().iter().any(is_absent),
            _ => is_absent(name),
        };
        self.has(metric) && !metric.formulas().flat_map(Formula::names).any(lacks)
    }

    /// Events that a metric needs here, each once.
    pub fn events_of(&self, metric: &Metric) -> Vec<&EventSpec> {
        let mut events = Vec::new();
        self.add_events_of(metric, &mut events);
        events
    }

    fn add_events_of<'a>(&'a self, metric: &Metric, events: &mut Vec<&'a EventSpec>) {
        metric.formulas().for_each(|formula| self.add_events(formula, events));
    }

    /// A formula's events, and those of what it is made of, that `events` has not got.
    fn add_events<'a>(&'a self, formula: &Formula, events: &mut Vec<&'a EventSpec>) {
        for name in formula.names() {
            match self.meaning(name) {
                Some(Meaning::Event(event)) if !events.contains(&event) => events.push(event),
                // One level: no definition names another.
                Some(Meaning::Formula { formula, .. }) => {
                    for name in formula.names() {
                        if let Some(Meaning::Event(event)) = self.meaning(name)
                            && !events.contains(&event)
                        {
                            events.push(event);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}
