//! How much the runs of a class differ, in words.

use super::cells::{seconds, shortened};
use crate::render::sentences::percent;
use crate::report::Report;
use crate::verdicts::class_report::{ClassReport, RunSpread};
use std::collections::BTreeMap;

/// Of fewer runs, the slowest hundredth is one run or none: the slowest one says as much.
const RUNS_OF_A_HUNDREDTH: usize = 200;

/// The words for each class that has enough runs, by class name.
pub fn of_classes(report: &Report) -> BTreeMap<&str, String> {
    let of = |class: &ClassReport| class.run_spread.as_ref().map(of_spread);
    report.classes.iter().filter_map(|class| Some((class.class.as_str(), of(class)?))).collect()
}

/// For example "1900 runs: the fastest took 98.3 s; 50 % are slower than the fastest by at least 1.9 %, 10 % by at
/// least 4.2 %, 1 % by at least 8.3 %, the slowest by 12.1 %".
fn of_spread(spread: &RunSpread) -> String {
    let by = |part: &str| percent(spread.slowdown.get(part).copied().unwrap_or_default());
    let session =
        spread.session.as_deref().map(|name| format!(" of {}", shortened(name))).unwrap_or_default();
    let hundredth = match spread.runs >= RUNS_OF_A_HUNDREDTH {
        true => format!(", 1 % by at least {}", by("p99")),
        false => String::new(),
    };
    format!(
        "{} runs{session}: the fastest took {} s; 50 % are slower than the fastest by at least {}, 10 % by at \
         least {}{hundredth}, the slowest by {}",
        spread.runs,
        seconds(spread.fastest_s),
        by("p50"),
        by("p90"),
        by("max")
    )
}
