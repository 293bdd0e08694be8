//! Reads the catalogue from metrics.toml and cpus/*.toml.

use super::catalogue::{
    Catalogue, CpuTable, EventGroup, EventSpec, FormulaSource, Meaning, Metric, Per, Quantity, Rule, Sibling,
};
use super::cpu::Range;
use super::formula::{Condition, Formula};
use pmmpi::counters::open_counters::Scope;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A table stands after the one that it inherits from.
const TABLES: [&str; 22] = [
    include_str!("cpus/any.toml"),
    include_str!("cpus/amd-10h.toml"),
    include_str!("cpus/amd-k8.toml"),
    include_str!("cpus/amd-zen1.toml"),
    include_str!("cpus/amd-zen2.toml"),
    include_str!("cpus/amd-zen3.toml"),
    include_str!("cpus/amd-zen4.toml"),
    include_str!("cpus/amd-zen5.toml"),
    include_str!("cpus/intel-nehalem.toml"),
    include_str!("cpus/intel-sandy-bridge.toml"),
    include_str!("cpus/intel-sandy-bridge-ep.toml"),
    include_str!("cpus/intel-ivy-bridge.toml"),
    include_str!("cpus/intel-ivy-bridge-ep.toml"),
    include_str!("cpus/intel-haswell.toml"),
    include_str!("cpus/intel-haswell-ep.toml"),
    include_str!("cpus/intel-broadwell.toml"),
    include_str!("cpus/intel-broadwell-ep.toml"),
    include_str!("cpus/intel-knights-landing.toml"),
    include_str!("cpus/intel-skylake-sp.toml"),
    include_str!("cpus/intel-ice-lake-sp.toml"),
    include_str!("cpus/intel-sapphire-rapids.toml"),
    include_str!("cpus/intel-granite-rapids.toml"),
];

impl Catalogue {
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
                per: raw.per,
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
            let table = CpuTable::resolve(raw, &catalogue.tables)?;
            catalogue.tables.push(table);
        }
        // The files list the table for all other processors first; `tables` has it last.
        catalogue.tables.reverse();
        Ok(catalogue)
    }

    /// Reads the files that are compiled into the program.
    pub(super) fn load() -> Result<Self, String> {
        Self::parse(include_str!("metrics.toml"), &TABLES)
    }
}

impl CpuTable {
    fn resolve(raw: RawTable, known: &[CpuTable]) -> Result<Self, String> {
        let mut names = match &raw.inherits {
            Some(parent) => {
                let parent = known.iter().find(|table| table.name == *parent);
                parent.ok_or(format!("{}: inherits from an unknown table", raw.name))?.names.clone()
            }
            None => BTreeMap::new(),
        };
        for name in &raw.drops {
            names.remove(name).ok_or(format!("{}: drops {name}, which it does not inherit", raw.name))?;
        }
        let own = raw.names.keys().cloned().collect();
        for (name, raw) in raw.names {
            names.insert(name.clone(), raw.meaning(name)?);
        }
        let RawTable { name, text, source, inherits, cpus, drops, .. } = raw;
        let table = Self { name, text, source, cpus, inherits, names, own, drops };
        let formulas = table.names.values().filter_map(|meaning| match meaning {
            Meaning::Formula { formula, .. } => Some(formula),
            _ => None,
        });
        for name in formulas.flat_map(Formula::names) {
            // Constants are allowed: they name nothing.
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
    source: Vec<FormulaSource>,
    group: Vec<EventGroup>,
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
    #[serde(default)]
    per: Per,
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
    drops: Vec<String>,
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
            _ => Err(format!("{name}: exactly one of event, formula and absent is needed")),
        }
    }
}
