//! What the user wants counted.

use crate::options::{Measurement, Scope};
use pmmpi::counters::default;
use pmmpi::counters::probe;
use pmmpi::counters::selection::{Selection, Wanted};
use pmmpi::node::CpuSet;
use pmmpi_rounds::Failure;

/// The default set of each rank's own threads, and what the options add.
pub fn select(typed: &Measurement) -> Result<Selection, Failure> {
    let mut selection = Selection::default();
    match typed.scope {
        Scope::Task => {}
        Scope::Core => selection.sets.push(Wanted {
            scope: probe::Scope::Core,
            groups: default::groups_of_a_core(),
            cpus: online()?,
        }),
        Scope::Socket => return Err(Failure::own("--scope socket: name events with --events")),
    }
    Ok(selection)
}

/// The hardware threads of this node that are online.
fn online() -> Result<Vec<u32>, Failure> {
    const FILE: &str = "/sys/devices/system/cpu/online";
    let text = std::fs::read_to_string(FILE).map_err(|e| Failure::own(format_args!("{FILE}: {e}")))?;
    let set =
        CpuSet::parse(&text).ok_or_else(|| Failure::own(format_args!("{FILE}: not a list of numbers")))?;
    Ok(set.0.into_iter().flat_map(|(first, last)| first..=last).collect())
}
