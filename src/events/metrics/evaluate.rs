//! The engine: computes metrics from counts, or the reason why there is no value.

use super::catalogue::{Catalogue, CpuTable, Meaning, Metric, Rule, catalogue};
use super::cpu::CpuKind;
use super::formula::{Condition, Formula, NoValue};
use super::inputs::{MetricInput, MetricInputs, RUNNING_SHARE_FLOOR, supports_verdict, worse};
use crate::validation::EventVerdict;
use pmmpi::counters::count_and_quality::Quality;
use pmmpi::counters::open_counters::Scope;
use std::fmt;

/// A metric, evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricValue {
    /// The metric.
    pub metric: &'static Metric,
    /// The value, or why there is none.
    pub result: Result<FormulaValue, Lack>,
}

/// The value of a formula.
#[derive(Clone, Debug, PartialEq)]
pub struct FormulaValue {
    /// In the metric's unit; finite.
    pub value: f64,
    /// The worst quality of the counts in it.
    pub quality: Quality,
    /// The smallest known running share of the counts in it.
    pub running_share: Option<f64>,
    /// Which count is not exact, and why; or which count is unusable.
    pub remark: Option<String>,
    /// The worst verdict on the events in it.
    pub trust: EventVerdict,
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Lack {
    /// The metric is not for this processor, for this reason.
    NotHere(String),
    /// A count is missing.
    Unmeasured {
        /// The name of the count.
        name: String,
        /// The quality of the missing count.
        quality: Quality,
        /// Why it is missing.
        reason: String,
    },
    /// A quantity was not given.
    Unknown(String),
    /// This divisor is 0.
    Nothing(String),
    /// The counts contradict each other: this condition does not hold.
    Contradiction(String),
    /// A step of the formula exceeds the range of f64.
    NotFinite,
}

/// The result of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleJudgement {
    /// The rule speaks against the measurement.
    Raised,
    /// The rule does not speak against the measurement.
    Clear,
    /// The rule cannot be judged.
    Unknown(Lack),
}

impl MetricValue {
    /// The value, if there is one.
    pub fn value(&self) -> Option<f64> {
        self.result.as_ref().ok().map(|value| value.value)
    }

    /// The quality of the value, or of the missing value.
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

    /// False without a value, with a running share below [`super::RUNNING_SHARE_FLOOR`], and with an unusable
    /// event: no verdict may rest on such a value.
    pub fn supports_verdict(&self) -> bool {
        self.result.as_ref().is_ok_and(FormulaValue::supports_verdict)
    }
}

impl FormulaValue {
    /// See [`MetricValue::supports_verdict`].
    pub fn supports_verdict(&self) -> bool {
        supports_verdict(self.running_share, self.trust)
    }
}

impl Lack {
    /// The quality of the missing value.
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
                Some(quantity) => write!(f, "no value for {name} ({})", quantity.text),
                None => write!(f, "no value for {name}"),
            },
            Lack::Nothing(divisor) => {
                let is_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
                if catalogue().quantity(divisor).is_some() || !divisor.bytes().all(is_name) {
                    write!(f, "{divisor} is 0")
                } else {
                    write!(f, "the count of {divisor} is 0")
                }
            }
            Lack::Contradiction(condition) => {
                write!(f, "the counts contradict one another: {condition} is false")
            }
            Lack::NotFinite => f.write_str("the value is larger than any floating-point number"),
        }
    }
}

/// Every metric of these inputs on this processor, in the catalogue's order.
pub fn evaluate(cpu: &CpuKind, inputs: &MetricInputs) -> Vec<MetricValue> {
    let catalogue = catalogue();
    let Some(table) = catalogue.table(cpu) else { return Vec::new() };
    let engine = Engine { catalogue, table, inputs };
    let of = |metric| MetricValue { metric, result: engine.metric(metric) };
    catalogue.metrics.iter().map(of).collect()
}

/// The value of a name in formulas, on the processor of this table: a count, or what the table computes from counts.
pub fn amount(table: &CpuTable, inputs: &MetricInputs, name: &str) -> Result<FormulaValue, Lack> {
    Engine { catalogue: catalogue(), table, inputs }.name(name, DEEPEST)
}

pub(super) fn evaluate_one(
    table: &CpuTable,
    inputs: &MetricInputs,
    metric: &Metric,
) -> Result<FormulaValue, Lack> {
    Engine { catalogue: catalogue(), table, inputs }.metric(metric)
}

/// Every rule and its result, in the catalogue's order.
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

/// Limit of nested definitions, larger than any that occurs: definitions name events and quantities, and the
/// defaults of quantities name quantities.
const DEEPEST: u32 = 8;

impl Engine<'_> {
    fn metric(&self, metric: &Metric) -> Result<FormulaValue, Lack> {
        if !self.table.has(metric) {
            return Err(Lack::NotHere(format!("this metric does not exist for {}", self.table.text)));
        }
        self.compares_like_with_like(&metric.formula)?;
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

    /// An error if the formula combines counts of a whole socket with counts of the program's own threads. Other
    /// programs may run on the socket, and the program may also run on other sockets.
    fn compares_like_with_like(&self, formula: &Formula) -> Result<(), Lack> {
        match formula.degrees(|name| self.degrees(name)) {
            Some([task, socket]) if task != 0 && socket != 0 => {}
            _ => return Ok(()),
        }
        let of = |scope: usize| {
            let is_of = |name: &&String| self.degrees(name).is_some_and(|degrees| degrees[scope] != 0);
            formula.names().iter().find(is_of).map_or("", String::as_str)
        };
        Err(Lack::NotHere(format!(
            "{} counts whole sockets, but {} counts only the program: another program may share the sockets",
            of(1),
            of(0)
        )))
    }

    /// How often a name stands for counts of the program's threads, and for counts of sockets.
    fn degrees(&self, name: &str) -> Option<[i32; 2]> {
        match (self.inputs.count(name), self.table.meaning(name)) {
            (Some(input), _) => {
                Some([Scope::Task, Scope::Socket].map(|scope| i32::from(input.scope == scope)))
            }
            // One level is enough: no definition names another one.
            (None, Some(Meaning::Formula { formula, .. })) => formula.degrees(|name| {
                let scope = self.inputs.count(name).map(|input| input.scope);
                Some([Scope::Task, Scope::Socket].map(|of| i32::from(scope == Some(of))))
            }),
            _ => Some([0; 2]),
        }
    }

    fn rule(&self, rule: &Rule) -> RuleJudgement {
        let mut unknown = None;
        for condition in &rule.when {
            match self.condition(condition) {
                // An unusable event decides nothing.
                Ok((_, value)) if value.trust == EventVerdict::Unusable => {
                    let (name, reason) = (condition.text().to_owned(), UNUSABLE.to_owned());
                    let lack = Lack::Unmeasured { name, quality: Quality::Unavailable, reason };
                    unknown = unknown.or(Some(lack));
                }
                // So does a count of a part of the events, or of a small part of the time.
                Ok((_, value))
                    if value.quality == Quality::Partial
                        || value.running_share.is_some_and(|share| share < RUNNING_SHARE_FLOOR) =>
                {
                    let (name, reason) = (condition.text().to_owned(), "counted only in part".to_owned());
                    unknown = unknown.or(Some(Lack::Unmeasured { name, quality: value.quality, reason }));
                }
                Ok((false, _)) => return RuleJudgement::Clear,
                Ok((true, _)) => {}
                Err(lack) => unknown = unknown.or(Some(lack)),
            }
        }
        unknown.map_or(RuleJudgement::Raised, RuleJudgement::Unknown)
    }

    fn condition(&self, condition: &Condition) -> Result<(bool, FormulaValue), Lack> {
        let [left, right] = condition.sides();
        let (left, right) = (self.formula(left, DEEPEST)?, self.formula(right, DEEPEST)?);
        let holds = condition.holds([left.value, right.value]);
        Ok((holds, left.taint(right)))
    }

    fn formula(&self, formula: &Formula, depth: u32) -> Result<FormulaValue, Lack> {
        let mut found = Vec::new();
        let mut lack = None;
        for name in formula.names() {
            match (self.name(name, depth), &lack) {
                (Ok(value), _) => found.push(value),
                // Report first what no measurement on this processor can have.
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
        Ok(found.into_iter().fold(FormulaValue::exact(value), FormulaValue::taint))
    }

    /// A given input has priority, even if the table can compute the name or says that the processor cannot count
    /// it. If the input has no value, the table may have one.
    fn name(&self, name: &str, depth: u32) -> Result<FormulaValue, Lack> {
        if let Some(input) = self.inputs.count(name) {
            return match self.table.meaning(name) {
                Some(Meaning::Formula { formula, .. }) if input.value.is_none() && depth > 0 => {
                    self.formula(formula, depth - 1)
                }
                _ => given(name, input),
            };
        }
        if let Some(value) = self.inputs.quantity(name) {
            return if value.is_finite() { Ok(FormulaValue::exact(value)) } else { Err(Lack::NotFinite) };
        }
        let definition = match self.table.meaning(name) {
            Some(Meaning::Event(_)) => {
                return Err(Lack::Unmeasured {
                    name: name.to_owned(),
                    quality: Quality::Unavailable,
                    reason: "the run did not count this event".to_owned(),
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

/// The value of an input.
fn given(name: &str, input: &MetricInput) -> Result<FormulaValue, Lack> {
    let reason = match input.trust {
        EventVerdict::Unusable => Some(UNUSABLE),
        _ => input.reason.as_deref(),
    };
    let remark = reason.map(|reason| format!("{name}: {reason}"));
    let (quality, running_share, trust) = (input.quality, input.running_share, input.trust);
    match input.value {
        Some(value) if value.is_finite() && quality.has_value() => {
            Ok(FormulaValue { value, quality, running_share, remark, trust })
        }
        _ => Err(Lack::Unmeasured {
            name: name.to_owned(),
            quality: if quality.has_value() { Quality::Overflowed } else { quality },
            reason: input.reason.clone().unwrap_or_else(|| "the count has no value".to_owned()),
        }),
    }
}

impl FormulaValue {
    /// A value without any reservation.
    fn exact(value: f64) -> Self {
        let (quality, trust) = (Quality::Exact, EventVerdict::Trusted);
        Self { value, quality, running_share: None, remark: None, trust }
    }

    /// This value, with quality and trust no better than the other's.
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

/// The remark on an unusable event.
const UNUSABLE: &str = "unusable on this processor, according to `pmmpi validate`";
