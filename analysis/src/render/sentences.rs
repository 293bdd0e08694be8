//! The facts of the answer in English. All formats, also JSON, show the same sentences.

mod causes;
mod flags;
mod gate;
mod null_reasons_of_comparisons;
mod null_reasons_of_nodes;
mod null_reasons_of_places;
mod null_reasons_of_runs;
mod null_reasons_of_slowness;
mod suggestions;
mod warnings;
mod warnings_of_classes;
mod warnings_of_comparisons;
mod warnings_of_input;
mod warnings_of_runs;

use crate::comparison::ComparisonNullReason;
use crate::report::against_baseline::BaselineNullReason;
use crate::report::by_place::PlaceNullReason;
use crate::report::flag_findings::Finding;
use crate::report::null_reasons::RunNullReason;
use crate::report::screen::DrainReason;
use crate::table::place_values::MetricNullReason;
use crate::verdicts::fitness::GateReason;
use crate::verdicts::goes_with_slowness::SlownessNullReason;
use crate::verdicts::named_cause::NamedCause;
use crate::verdicts::null_reasons::NodeNullReason;
use crate::warnings::FirstFew;
use serde::{Serialize, Serializer};
pub use suggestions::drain_command;
pub use warnings::sort as sort_warnings;

/// JSON has the text of [`std::fmt::Display`].
macro_rules! as_text {
    ($($type:ident)*) => {
        $(impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        })*
    };
}

as_text! { NodeNullReason RunNullReason SlownessNullReason ComparisonNullReason BaselineNullReason }
as_text! { PlaceNullReason MetricNullReason NamedCause DrainReason GateReason Finding }

/// For example "12.3 %"; very large values as a power of ten.
pub(crate) fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent.abs() < 1e6 { format!("{percent:.1} %") } else { format!("{percent:.1e} %") }
}

/// For example "n1, n2, n3, ...".
fn listed<T>(few: &FirstFew<T>, text: impl Fn(&T) -> String) -> String {
    joined(few, text, ", ", |_| ", ...".to_owned())
}

/// The first few. If there are more, `others` gets the number of the others, and its text comes last.
fn joined<T>(
    few: &FirstFew<T>,
    text: impl Fn(&T) -> String,
    separator: &str,
    others: impl Fn(usize) -> String,
) -> String {
    let first: Vec<String> = few.first.iter().map(text).collect();
    let others = if few.more() > 0 { others(few.more()) } else { String::new() };
    first.join(separator) + &others
}
