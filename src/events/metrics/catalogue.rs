//! Metrics, groups and event tables.

use super::cpu::{CpuKind, Range};
use super::formula::{Condition, Formula};
use pmmpi::counters::open_counters::Scope;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// All definitions.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// Documents with the formulas and codes.
    pub sources: Vec<FormulaSource>,
    /// Events that are opened together.
    pub groups: Vec<EventGroup>,
    /// Named numbers that are not counts.
    pub quantities: Vec<Quantity>,
    /// All metrics, in the order of the file.
    pub metrics: Vec<Metric>,
    /// Reasons not to trust a measurement.
    pub rules: Vec<Rule>,
    /// One event table per kind of processor; the last one is for all other processors.
    pub tables: Vec<CpuTable>,
}

/// A document.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormulaSource {
    /// The first word of each citation.
    pub key: String,
    /// Author, title, date.
    pub text: String,
}

/// Events that are opened together.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventGroup {
    /// The name in --group.
    pub name: String,
    /// One line.
    pub text: String,
}

/// A number that is not a count.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// The name in formulas.
    pub name: String,
    /// "1" for pure numbers.
    pub unit: String,
    /// One line.
    pub text: String,
    /// The source of the default.
    pub source: Option<String>,
    /// The value if no input gives one.
    pub default: Option<Formula>,
}

/// A value computed from counts.
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
    /// A source's key, and the place in it.
    pub source: String,
    /// What one value covers.
    pub per: Per,
    /// Tables of its processors; empty for all processors.
    pub cpus: Vec<String>,
    /// Conditions that the inputs must satisfy; otherwise there is no value.
    pub checks: Vec<Condition>,
}

/// A reason not to trust a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// One word.
    pub code: String,
    /// The rule is raised if all of these hold.
    pub when: Vec<Condition>,
    /// What the rule means, and what to do.
    pub text: String,
    /// True if the measurement must be discarded.
    pub discards: bool,
    /// A source's key, and where in it.
    pub source: String,
}

/// The meaning of the names in formulas on some processors.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuTable {
    /// One word.
    pub name: String,
    /// A description for users.
    pub text: String,
    /// Where its codes come from.
    pub source: String,
    /// Its processors; empty for the table of all other processors.
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
        /// Over events of this table.
        formula: Formula,
        /// How it differs from what its name suggests.
        note: Option<String>,
    },
    /// The processor cannot count it, for this reason.
    Absent(String),
}

/// An event, not yet resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// The name in formulas.
    pub name: String,
    /// The event as perf(1) takes it: a generic name, or pmu/terms/. A PMU's name stands for all PMUs whose names
    /// begin with it; their counts are added.
    pub encoding: String,
    /// The vendor's name.
    pub vendor_name: Option<String>,
    /// How it differs from what its name suggests.
    pub note: Option<String>,
    /// Where it is counted.
    pub scope: Scope,
    /// The hardware thread of a core that counts it; `None` if it is not limited to one.
    pub sibling: Option<Sibling>,
    /// Suggested sampling period (events per sample).
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
    /// Its index among the core's hardware threads, ordered by the kernel's numbers.
    pub fn index(self) -> usize {
        match self {
            Sibling::A => 0,
            Sibling::B => 1,
        }
    }
}

/// What one value of a metric covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// All ranks of a run: counts are sums over the ranks.
    #[default]
    Run,
    /// One core. The value of a run is the mean over its cores.
    Core,
}

impl Catalogue {
    /// The table of this processor, else the last one.
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

    /// Events that a group needs on a processor, each once, in the order in which its metrics name them. Skips
    /// metrics that cannot be computed there.
    pub fn events_of<'a>(&'a self, group: &'a str, table: &'a CpuTable) -> Vec<&'a EventSpec> {
        let mut events: Vec<&EventSpec> = Vec::new();
        for metric in self.metrics_of(group).filter(|metric| table.computes(metric)) {
            table.add_events_of(metric, &mut events);
        }
        events
    }
}

/// All definitions. The files are compiled into the program, and tests make sure that they can be read. So the
/// empty catalogue for unreadable files never occurs.
pub fn catalogue() -> &'static Catalogue {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    CATALOGUE.get_or_init(|| Catalogue::load().unwrap_or_default())
}

impl Metric {
    /// The metric's own formula and those of its checks.
    pub fn formulas(&self) -> impl Iterator<Item = &Formula> {
        std::iter::once(&self.formula).chain(self.checks.iter().flat_map(Condition::sides))
    }
}

impl CpuTable {
    /// The meaning of a name; `None` for names that no table has, such as quantities.
    pub fn meaning(&self, name: &str) -> Option<&Meaning> {
        self.names.get(name)
    }

    /// True if the metric is for this table's processors.
    pub fn has(&self, metric: &Metric) -> bool {
        metric.cpus.is_empty() || metric.cpus.contains(&self.name)
    }

    /// True if the metric is for these processors and none of its names is absent.
    pub fn computes(&self, metric: &Metric) -> bool {
        let is_absent = |name: &String| matches!(self.meaning(name), Some(Meaning::Absent(_)));
        // One level is enough: no definition names another one.
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

    /// Adds a formula's events, and those of the definitions that it names, unless `events` has them.
    fn add_events<'a>(&'a self, formula: &Formula, events: &mut Vec<&'a EventSpec>) {
        for name in formula.names() {
            match self.meaning(name) {
                Some(Meaning::Event(event)) if !events.contains(&event) => events.push(event),
                // One level is enough: no definition names another one.
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
