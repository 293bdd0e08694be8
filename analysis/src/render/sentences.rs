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

pub use suggestions::drain_command;
pub use warnings::sort as sort_warnings;

/// For example "12.3 %"; very large values as a power of ten.
pub(crate) fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent.abs() < 1e6 { format!("{percent:.1} %") } else { format!("{percent:.1e} %") }
}
