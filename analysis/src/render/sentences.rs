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

use crate::warnings::FirstFew;
pub use suggestions::drain_command;
pub use warnings::sort as sort_warnings;

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
