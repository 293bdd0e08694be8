//! `pmmpi list`: prints the events, groups, metrics and test loops of this machine.
//!
//! What a list shows, and its formats, belong here. Names of events and metrics are in `pmmpi_events`, test loops in
//! `pmmpi_kernels`.

mod events;
mod groups;
mod kernels;
mod metrics;

use crate::cli::options::{FormatArg, List, Listing};
use pmmpi::record::End;
use pmmpi::text::folded;
use pmmpi_workload::Failure;
use serde::Serialize;
use std::io::{ErrorKind, Write};

/// Prints a list to stdout.
pub fn run(typed: &List) -> Result<End, Failure> {
    let filter = typed.filter.as_deref();
    let text = match typed.what {
        Listing::Events => formatted(&events::matching(filter)?, typed.format)?,
        Listing::Groups => formatted(&groups::matching(filter), typed.format)?,
        Listing::Metrics => formatted(&metrics::matching(filter), typed.format)?,
        Listing::Kernels => formatted(&kernels::matching(filter), typed.format)?,
    };
    // In a pipe or a file lines stay whole, for grep and awk.
    let width = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    let text = match width.filter(|width| *width > 0 && matches!(typed.format, FormatArg::Text)) {
        Some(width) => folded(&text, width),
        None => text,
    };
    // A reader that closes the pipe early (`| head`) is not an error.
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::own(format_args!("pmmpi cannot write to stdout: {e}")))
        }
        _ => Ok(End::Exited(0)),
    }
}

/// A list that prints as text and as JSON.
trait Listable: Serialize {
    fn text(&self) -> String;
}

/// True if one of `texts` contains `filter`, ignoring case, or if there is no filter.
fn has(filter: Option<&str>, texts: &[&str]) -> bool {
    filter.is_none_or(|filter| {
        let filter = filter.to_lowercase();
        texts.iter().any(|text| text.to_lowercase().contains(&filter))
    })
}

fn formatted(list: &impl Listable, format: FormatArg) -> Result<String, Failure> {
    match format {
        FormatArg::Text => Ok(list.text()),
        FormatArg::Json => serde_json::to_string_pretty(list).map(|json| json + "\n").map_err(Failure::own),
    }
}
