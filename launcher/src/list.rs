//! `pmmpi list`: prints the events, groups and metrics of this machine, the kernels of screens and the test loops.
//!
//! What a list shows, and its formats, belong here. Names of events and metrics are in `pmmpi_events`, test loops in
//! `pmmpi_kernels`.

mod events;
mod groups;
mod kernels;
mod metrics;

use crate::cli::options::{FormatArg, List, Listing};
use crate::stdout;
use pmmpi::record::End;
use pmmpi_workload::Failure;
use serde::Serialize;

/// Prints a list to stdout.
pub fn run(typed: &List) -> Result<End, Failure> {
    let filter = typed.filter.as_deref();
    let text = match typed.what {
        Listing::Events => formatted("events", &events::matching(filter)?, typed)?,
        Listing::Groups => formatted("groups", &groups::matching(filter), typed)?,
        Listing::Metrics => formatted("metrics", &metrics::matching(filter), typed)?,
        Listing::Kernels => formatted("kernels", &kernels::matching(filter), typed)?,
    };
    stdout::write(&text)?;
    Ok(End::Exited(0))
}

/// A list that prints as text and as JSON.
trait Listable: Serialize {
    fn text(&self) -> String;
    /// True if nothing is in the list.
    fn is_empty(&self) -> bool;
}

/// True if one of `texts` contains `filter`, ignoring case, or if there is no filter.
fn has(filter: Option<&str>, texts: &[&str]) -> bool {
    filter.is_none_or(|filter| {
        let filter = filter.to_lowercase();
        texts.iter().any(|text| text.to_lowercase().contains(&filter))
    })
}

/// The list of `what` as the user asked for it. A filter that matches nothing is probably misspelt.
fn formatted(what: &str, list: &impl Listable, typed: &List) -> Result<String, Failure> {
    if let Some(filter) = typed.filter.as_deref().filter(|_| list.is_empty()) {
        return Err(Failure::usage(format_args!(
            "none of the {what} matches {filter}. To see all {what}, type: pmmpi list {what}"
        )));
    }
    match typed.format {
        FormatArg::Text => Ok(stdout::folded(list.text())),
        FormatArg::Json => serde_json::to_string_pretty(list).map(|json| json + "\n").map_err(Failure::own),
    }
}
