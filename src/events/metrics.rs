//! Metrics: their definitions as data, and the one engine that computes them.
//!
//! metrics.toml has the formulas. cpus/*.toml say what the names in them mean on each processor: an event, a
//! formula, or the reason why the processor cannot count it. Run summary, report and validate all call [`evaluate`].

mod catalogue;
mod cpu;
mod evaluate;
mod formula;
mod inputs;
mod of_run;
mod page;
mod per_core;
mod raw_code;
mod read_tables;

pub use catalogue::{
    Catalogue, CpuTable, EventGroup, EventSpec, FormulaSource, Meaning, Metric, Per, Quantity, Rule, Sibling,
    catalogue,
};
pub use cpu::{CpuKind, Range};
pub use evaluate::{FormulaValue, Lack, MetricValue, RuleJudgement, amount, evaluate, judge};
pub use formula::{Condition, Formula, Malformed, NoValue};
pub use inputs::{MetricInput, MetricInputs, RUNNING_SHARE_FLOOR, worse};
pub use of_run::{of_ranks, of_region, of_run, of_run_with_rules, of_totals, rules_of_region, table_of_run};
pub use page::page;

#[cfg(test)]
mod tests;
