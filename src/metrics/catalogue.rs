//! Metrics, groups and event tables as they are written down in metrics.toml and cpus/*.toml.

use super::cpu::{CpuKind, Range};
use super::formula::{Condition, Formula};
use crate::counters::probe::Scope;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// All that is known of metrics.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// Where formulas and codes come from.
    pub sources: Vec<Source>,
    /// Events that are opened together, and what they tell.
    pub groups: Vec<Group>,
    /// Named numbers that are no counts.
    pub quantities: Vec<Quantity>,
    /// What is computed.
    pub metrics: Vec<Metric>,
    /// What speaks against using a measurement.
    pub rules: Vec<Rule>,
    /// One event table a processor; the last is everybody's.
    pub tables: Vec<Table>,
}

/// A document.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// First word of every citation of it.
    pub key: String,
    /// Author, title, date.
    pub text: String,
}

/// Events that are opened together.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
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
    /// True for a bound of what cannot be computed.
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
pub struct Table {
    /// One word.
    pub name: String,
    /// For people.
    pub text: String,
    /// Where its codes come from.
    pub source: String,
    /// Whose it is; empty for everybody's.
    pub cpus: Vec<Range>,
    /// Each name, its table's own or inherited.
    pub names: BTreeMap<String, Meaning>,
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

impl Catalogue {
    /// The table of this processor, else everybody's.
    pub fn table(&self, cpu: &CpuKind) -> Option<&Table> {
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

    /// Events that a group needs on a processor, each once, in the order in which its metrics name them.
    pub fn events_of<'a>(&'a self, group: &'a str, table: &'a Table) -> Vec<&'a EventSpec> {
        let mut events: Vec<&EventSpec> = Vec::new();
        for metric in self.metrics_of(group).filter(|metric| table.has(metric)) {
            let checked = metric.checks.iter().flat_map(Condition::sides);
            for formula in std::iter::once(&metric.formula).chain(checked) {
                table.add_events(formula, &mut events);
            }
        }
        events
    }

    fn parse(metrics: &str, tables: &[&str]) -> Result<Self, String> {
        let raw: RawCatalogue = toml::from_str(metrics).map_err(|error| format!("metrics.toml: {error}"))?;
        let formula = |of: &str, text: &str| Formula::parse(text).map_err(|error| format!("{of}: {error}"));
        let conditions = |of: &str, texts: &[String]| -> Result<Vec<Condition>, String> {
            let parse = |text: &String| Condition::parse(text).map_err(|error| format!("{of}: {error}"));
            texts.iter().map(parse).collect()
        };
        let mut catalogue = Self { sources: raw.source, groups: raw.group, ..Self::default() };
        for raw in raw.quantity {
            let RawQuantity { name, unit, text, source, default } = raw;
            let default = default.map(|text| formula(&name, &text)).transpose()?;
            catalogue.quantities.push(Quantity { name, unit, text, source, default });
        }
        for raw in raw.metric {
            catalogue.metrics.push(Metric {
                formula: formula(&raw.name, &raw.formula)?,
                checks: conditions(&raw.name, &raw.checks)?,
                name: raw.name,
                groups: raw.groups,
                unit: raw.unit,
                text: raw.text,
                source: raw.source,
                bound: raw.bound,
                cpus: raw.cpus,
            });
        }
        for raw in raw.rule {
            let when = conditions(&raw.code, &raw.when)?;
            let RawRule { code, text, discards, source, .. } = raw;
            catalogue.rules.push(Rule { code, when, text, discards, source });
        }
        for text in tables {
            let raw: RawTable = toml::from_str(text).map_err(|error| format!("an event table: {error}"))?;
            let table = Table::resolve(raw, &catalogue.tables)?;
            catalogue.tables.push(table);
        }
        // A table stands after those that it inherits from; everybody's is the first of these.
        catalogue.tables.reverse();
        Ok(catalogue)
    }

    fn load() -> Result<Self, String> {
        Self::parse(include_str!("metrics.toml"), &TABLES)
    }
}

const TABLES: [&str; 12] = [
    include_str!("cpus/any.toml"),
    include_str!("cpus/amd-10h.toml"),
    include_str!("cpus/amd-k8.toml"),
    include_str!("cpus/amd-zen1.toml"),
    include_str!("cpus/amd-zen2.toml"),
    include_str!("cpus/amd-zen3.toml"),
    include_str!("cpus/amd-zen4.toml"),
    include_str!("cpus/amd-zen5.toml"),
    include_str!("cpus/intel-skylake-sp.toml"),
    include_str!("cpus/intel-ice-lake-sp.toml"),
    include_str!("cpus/intel-sapphire-rapids.toml"),
    include_str!("cpus/intel-granite-rapids.toml"),
];

/// All that is known of metrics. The files are part of the program and tests hold that they can be read, so
/// that the empty catalogue in place of unreadable ones is nobody's.
pub fn catalogue() -> &'static Catalogue {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    CATALOGUE.get_or_init(|| Catalogue::load().unwrap_or_default())
}

impl Table {
    /// What a name means here; `None` for names that no table knows, as those of quantities.
    pub fn meaning(&self, name: &str) -> Option<&Meaning> {
        self.names.get(name)
    }

    /// True where a metric is for this table's processors.
    pub fn has(&self, metric: &Metric) -> bool {
        metric.cpus.is_empty() || metric.cpus.contains(&self.name)
    }

    /// A formula's events, and those of what it is made of, that `events` has not got.
    fn add_events<'a>(&'a self, formula: &Formula, events: &mut Vec<&'a EventSpec>) {
        for name in formula.names() {
            match self.meaning(name) {
                Some(Meaning::Event(event)) if !events.contains(&event) => events.push(event),
                // One level: `resolve` lets no definition name another.
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

    fn resolve(raw: RawTable, known: &[Table]) -> Result<Self, String> {
        let mut names = match &raw.inherits {
            Some(parent) => {
                let parent = known.iter().find(|table| table.name == *parent);
                parent.ok_or(format!("{}: inherits from an unknown table", raw.name))?.names.clone()
            }
            None => BTreeMap::new(),
        };
        for (name, raw) in raw.names {
            names.insert(name.clone(), raw.meaning(name)?);
        }
        let table = Self { name: raw.name, text: raw.text, source: raw.source, cpus: raw.cpus, names };
        let formulas = table.names.values().filter_map(|meaning| match meaning {
            Meaning::Formula { formula, .. } => Some(formula),
            _ => None,
        });
        for name in formulas.flat_map(Formula::names) {
            // Constants are no such level.
            if let Some(Meaning::Formula { formula, .. }) = table.meaning(name)
                && !formula.names().is_empty()
            {
                return Err(format!(
                    "{}: {name} is itself computed and cannot be part of a definition",
                    table.name
                ));
            }
        }
        Ok(table)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCatalogue {
    source: Vec<Source>,
    group: Vec<Group>,
    quantity: Vec<RawQuantity>,
    metric: Vec<RawMetric>,
    rule: Vec<RawRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawQuantity {
    name: String,
    unit: String,
    text: String,
    source: Option<String>,
    default: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMetric {
    name: String,
    groups: Vec<String>,
    formula: String,
    unit: String,
    text: String,
    source: String,
    bound: Option<Bound>,
    #[serde(default)]
    cpus: Vec<String>,
    #[serde(default)]
    checks: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    code: String,
    when: Vec<String>,
    text: String,
    discards: bool,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    name: String,
    text: String,
    source: String,
    inherits: Option<String>,
    #[serde(default)]
    cpus: Vec<Range>,
    names: BTreeMap<String, RawMeaning>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMeaning {
    event: Option<String>,
    formula: Option<String>,
    absent: Option<String>,
    vendor: Option<String>,
    note: Option<String>,
    scope: Option<RawScope>,
    sibling: Option<Sibling>,
    period: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawScope {
    Core,
    Socket,
}

impl RawMeaning {
    fn meaning(self, name: String) -> Result<Meaning, String> {
        match (self.event, self.formula, self.absent) {
            (Some(encoding), None, None) => Ok(Meaning::Event(EventSpec {
                name,
                encoding,
                vendor_name: self.vendor,
                note: self.note,
                scope: match self.scope {
                    None => Scope::Task,
                    Some(RawScope::Core) => Scope::Core,
                    Some(RawScope::Socket) => Scope::Socket,
                },
                sibling: self.sibling,
                period: self.period,
            })),
            (None, Some(text), None) => match Formula::parse(&text) {
                Ok(formula) => Ok(Meaning::Formula { formula, note: self.note }),
                Err(error) => Err(format!("{name}: {error}")),
            },
            (None, None, Some(reason)) => Ok(Meaning::Absent(reason)),
            _ => Err(format!("{name}: one of event, formula and absent is needed")),
        }
    }
}
