//! Sentences about nodes whose facts changed.

use super::NAMED;
use super::own_history::until;
use crate::render::cells::{class_numbers, shortened};
use crate::render::sentences::percent;
use crate::report::Report;
use crate::verdicts::class_report::{ChangedFact, Reconfigured};
use pmmpi::text::count;
use std::cell::LazyCell;

/// One sentence per change, for the first ones.
pub fn of(report: &Report) -> Vec<String> {
    let numbers = LazyCell::new(|| class_numbers(&report.nodes));
    let several = report.reconfigured.len() > 1;
    let of = |changed: &Reconfigured| {
        let number = numbers.get(changed.class.as_str()).filter(|_| several);
        sentence(changed, &number.map(|number| format!(" (now class {number})")).unwrap_or_default())
    };
    report.reconfigured.iter().take(NAMED).map(of).collect()
}

/// For example "kernel changed from 5.14 to 6.1 on 24 nodes; the nodes are 3.1 % slower than they were until 2026-11-14
/// (2.9 % .. 3.3 %)".
fn sentence(changed: &Reconfigured, in_class: &str) -> String {
    let fact = |fact: &ChangedFact| {
        let [before, after] = [&fact.before, &fact.after]
            .map(|value| value.as_deref().map_or_else(|| "unknown".to_owned(), shortened));
        format!("{} changed from {before} to {after}", fact.key)
    };
    let facts: Vec<String> = changed.facts.iter().map(fact).collect();
    let (nodes, they_are, they_were) = match &changed.nodes[..] {
        [node] => (shortened(node), "the node is", "it was"),
        nodes => (count(nodes.len(), "node"), "the nodes are", "they were"),
    };
    let until = until(changed.until.as_deref(), changed.until_date.as_deref(), changed.since_date.as_deref());
    let change = match changed.ci {
        Some([low, high]) if low <= 0.0 && high >= 0.0 => {
            let [low, high] = [low, high].map(|by| crate::render::cells::percent(by, 1));
            format!("it is not certain that the elapsed time changed since {until} ({low} .. {high})")
        }
        ci => {
            let how = if changed.change < 0.0 { "faster" } else { "slower" };
            let mut ci = ci.map(|ci| ci.map(f64::abs));
            ci.iter_mut().for_each(|ci| ci.sort_unstable_by(f64::total_cmp));
            let ci = ci.map(|[low, high]| format!(" ({} .. {})", percent(low), percent(high)));
            let about = if ci.is_some() { "" } else { "about " };
            let by = percent(changed.change.abs());
            format!("{they_are} {about}{by} {how} than {they_were} until {until}{}", ci.unwrap_or_default())
        }
    };
    format!("{} on {nodes}{in_class}; {change}", facts.join(" and "))
}
