//! The engine: from counts to metrics, or to the reason why there is none.

use super::catalogue::{Catalogue, CpuTable, Meaning, Metric, Rule, catalogue};
use super::cpu::CpuKind;
use super::formula::{Condition, Formula, NoValue};
use super::inputs::{MetricInputs, supports_verdict, worse};
use crate::validation::EventVerdict;
use pmmpi::counters::reading::Quality;
use std::fmt;

/// A metric, evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricValue {
    /// Which.
    pub metric: &'static Metric,
    /// What it came to, or why there is nothing.
    pub result: Result<Value, Lack>,
}

/// What a formula came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// In the metric's unit; finite.
    pub value: f64,
    /// The worst quality of the counts in it.
    pub quality: Quality,
    /// The smallest running share of the counts in it, where any is known.
    pub running_share: Option<f64>,
    /// Which count is not exact, and why; or which is not to be trusted.
    pub remark: Option<String>,
    /// The worst of the events in it.
    pub trust: EventVerdict,
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Lack {
    /// The metric is not for this processor: why.
    NotHere(String),
    /// A count is missing.
    Unmeasured {
        /// Which.
        name: String,
        /// How.
        quality: Quality,
        /// Why.
        reason: String,
    },
    /// A quantity was not given.
    Unknown(String),
    /// This divisor came to 0.
    Nothing(String),
    /// The counts contradict one another: this does not hold.
    Contradiction(String),
    /// A step of the formula came to more than an f64 can hold.
    NotFinite,
}

/// What came of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleJudgement {
    /// It speaks against the measurement.
    Raised,
    /// It does not.
    Clear,
    /// It cannot be judged.
    Unknown(Lack),
}

impl MetricValue {
    /// The value, if there is one.
    pub fn value(&self) -> Option<f64> {
        self.result.as_ref().ok().map(|value| value.value)
    }

    /// What it is worth.
    pub fn quality(&self) -> Quality {
        match &self.result {
            Ok(value) => value.quality,
            Err(lack) => lack.quality(),
        }
    }

    /// Why there is no value, or no exact one.
    pub fn reason(&self) -> Option<String> {
        match &self.result {
            Ok(value) => value.remark.clone(),
            Err(lack) => Some(lack.to_string()),
        }
    }

    /// False where nothing must be concluded from it: see [`super::RUNNING_SHARE_FLOOR`]; nor from a counter that failed.
    pub fn supports_verdict(&self) -> bool {
        self.result.as_ref().is_ok_and(Value::supports_verdict)
    }
}

impl Value {
    /// See [`MetricValue::supports_verdict`].
    pub fn supports_verdict(&self) -> bool {
        supports_verdict(self.running_share, self.trust)
    }
}

impl Lack {
    /// As the quality of a value that there is not.
    pub fn quality(&self) -> Quality {
        match self {
            Lack::NotHere(_) => Quality::Unsupported,
            Lack::Unmeasured { quality, .. } => *quality,
            Lack::Unknown(_) | Lack::Nothing(_) | Lack::Contradiction(_) => Quality::Unavailable,
            Lack::NotFinite => Quality::Overflowed,
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::NotHere(reason) => f.write_str(reason),
            Lack::Unmeasured { name, reason, .. } => write!(f, "{name}: {reason}"),
            Lack::Unknown(name) => match catalogue().quantity(name) {
                Some(quantity) => write!(f, "{name} was not given: {}", quantity.text),
                None => write!(f, "{name} was not given"),
            },
            Lack::Nothing(divisor) => {
                let is_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
                if catalogue().quantity(divisor).is_some() || !divisor.bytes().all(is_name) {
                    write!(f, "{divisor} is 0")
                } else {
                    write!(f, "no {} were counted", divisor.replace('_', " "))
                }
            }
            Lack::Contradiction(condition) => write!(f, "the counts contradict one another: not {condition}"),
            Lack::NotFinite => f.write_str("larger than any number that can be stored"),
        }
    }
}

/// Every metric, in the catalogue's order, as these inputs have it on this processor.
pub fn evaluate(cpu: &CpuKind, inputs: &MetricInputs) -> Vec<MetricValue> {
    let catalogue = catalogue();
    let Some(table) = catalogue.table(cpu) else { return Vec::new() };
    let engine = Engine { catalogue, table, inputs };
    let of = |metric| MetricValue { metric, result: engine.metric(metric) };
    catalogue.metrics.iter().map(of).collect()
}

/// What a name of formulas comes to on this processor: a count, or what its table makes of counts.
pub fn amount(cpu: &CpuKind, inputs: &MetricInputs, name: &str) -> Result<Value, Lack> {
    let catalogue = catalogue();
    let table = catalogue.table(cpu).ok_or_else(|| Lack::Unknown(name.to_owned()))?;
    Engine { catalogue, table, inputs }.name(name, DEEPEST)
}

/// One metric.
pub(super) fn evaluate_one(table: &CpuTable, inputs: &MetricInputs, metric: &Metric) -> Result<Value, Lack> {
    Engine { catalogue: catalogue(), table, inputs }.metric(metric)
}

/// Every rule, in the catalogue's order, and what came of it.
pub fn judge(cpu: &CpuKind, inputs: &MetricInputs) -> Vec<(&'static Rule, RuleJudgement)> {
    let catalogue = catalogue();
    let Some(table) = catalogue.table(cpu) else { return Vec::new() };
    let engine = Engine { catalogue, table, inputs };
    catalogue.rules.iter().map(|rule| (rule, engine.rule(rule))).collect()
}

struct Engine<'a> {
    catalogue: &'a Catalogue,
    table: &'a CpuTable,
    inputs: &'a MetricInputs,
}

/// Definitions name events and quantities; quantities' defaults name quantities. More levels than there can
/// be.
const DEEPEST: u32 = 8;

impl Engine<'_> {
    fn metric(&self, metric: &Metric) -> Result<Value, Lack> {
        if !self.table.has(metric) {
            return Err(Lack::NotHere(format!("not for {}", self.table.text)));
        }
        let mut value = self.formula(&metric.formula, DEEPEST)?;
        for check in &metric.checks {
            let (holds, of_check) = self.condition(check)?;
            if !holds {
                return Err(Lack::Contradiction(check.text().to_owned()));
            }
            value = value.taint(of_check);
        }
        Ok(value)
    }

    fn rule(&self, rule: &Rule) -> RuleJudgement {
        let mut unknown = None;
        for condition in &rule.when {
            match self.condition(condition) {
                // Nothing is concluded from a counter that failed.
                Ok((_, value)) if value.trust == EventVerdict::Unusable => {
                    let (name, reason) = (condition.text().to_owned(), UNUSABLE.to_owned());
                    let lack = Lack::Unmeasured { name, quality: Quality::Unavailable, reason };
                    unknown = unknown.or(Some(lack));
                }
                Ok((false, _)) => return RuleJudgement::Clear,
                Ok((true, _)) => {}
                Err(lack) => unknown = unknown.or(Some(lack)),
            }
        }
        unknown.map_or(RuleJudgement::Raised, RuleJudgement::Unknown)
    }

    fn condition(&self, condition: &Condition) -> Result<(bool, Value), Lack> {
        let [left, right] = condition.sides();
        let (left, right) = (self.formula(left, DEEPEST)?, self.formula(right, DEEPEST)?);
        let holds = condition.holds([left.value, right.value]);
        Ok((holds, left.taint(right)))
    }

    fn formula(&self, formula: &Formula, depth: u32) -> Result<Value, Lack> {
        let mut found = Vec::new();
        let mut lack = None;
        for name in formula.names() {
            match (self.name(name, depth), &lack) {
                (Ok(value), _) => found.push(value),
                // What no measurement could have is said first.
                (Err(Lack::NotHere(reason)), _) => return Err(Lack::NotHere(reason)),
                (Err(other), None) => lack = Some(other),
                (Err(_), Some(_)) => {}
            }
        }
        if let Some(lack) = lack {
            return Err(lack);
        }
        let values: Vec<f64> = found.iter().map(|value| value.value).collect();
        let value = formula.value(&values).map_err(|no_value| match no_value {
            NoValue::Zero(divisor) => Lack::Nothing(divisor),
            NoValue::NotFinite => Lack::NotFinite,
        })?;
        Ok(found.into_iter().fold(Value::exact(value), Value::taint))
    }

    /// What was given counts, also where a table knows how to compute it or that nothing here counts it.
    fn name(&self, name: &str, depth: u32) -> Result<Value, Lack> {
        if let Some(input) = self.inputs.count(name) {
            let reason = match input.trust {
                EventVerdict::Unusable => Some(UNUSABLE),
                _ => input.reason.as_deref(),
            };
            let remark = reason.map(|reason| format!("{name}: {reason}"));
            let (quality, running_share, trust) = (input.quality, input.running_share, input.trust);
            return match input.value {
                Some(value) if value.is_finite() && quality.has_value() => {
                    Ok(Value { value, quality, running_share, remark, trust })
                }
                _ => Err(Lack::Unmeasured {
                    name: name.to_owned(),
                    quality: if quality.has_value() { Quality::Overflowed } else { quality },
                    reason: input.reason.clone().unwrap_or_else(|| "there is no value".to_owned()),
                }),
            };
        }
        if let Some(value) = self.inputs.quantity(name) {
            return if value.is_finite() { Ok(Value::exact(value)) } else { Err(Lack::NotFinite) };
        }
        let definition = match self.table.meaning(name) {
            Some(Meaning::Event(_)) => {
                return Err(Lack::Unmeasured {
                    name: name.to_owned(),
                    quality: Quality::Unavailable,
                    reason: "not among the events that were counted".to_owned(),
                });
            }
            Some(Meaning::Absent(reason)) => return Err(Lack::NotHere(reason.clone())),
            Some(Meaning::Formula { formula, .. }) => Some(formula),
            None => self.catalogue.quantity(name).and_then(|quantity| quantity.default.as_ref()),
        };
        match definition {
            Some(formula) if depth > 0 => self.formula(formula, depth - 1),
            _ => Err(Lack::Unknown(name.to_owned())),
        }
    }
}

impl Value {
    /// Nothing speaks against it.
    fn exact(value: f64) -> Self {
        let (quality, trust) = (Quality::Exact, EventVerdict::Trusted);
        Self { value, quality, running_share: None, remark: None, trust }
    }

    /// This value, no better than the other.
    pub(super) fn taint(self, other: Self) -> Self {
        let quality = worse(self.quality, other.quality);
        let shares = [self.running_share, other.running_share];
        let [own, others] = [&self, &other].map(|value| value.trust == EventVerdict::Unusable);
        let is_own = if own == others { quality == self.quality } else { own };
        let remark = if is_own { self.remark.or(other.remark) } else { other.remark };
        Self {
            value: self.value,
            quality,
            running_share: shares.into_iter().flatten().reduce(f64::min),
            remark,
            trust: self.trust.worse(other.trust),
        }
    }
}

/// Why an event is not to be trusted.
const UNUSABLE: &str = "unusable on this processor, as `pmmpi validate` found";
