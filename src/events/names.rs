//! Resolves what a user writes into events that the kernel takes: perf's names, a PMU's own names
//! (`power/energy-pkg/`), its fields (`cpu/event=0xc0,umask=1/`), raw codes (`r1c0`), pmmpi's own names
//! (`cycles_kernel`), and the names of a vendor's manual. For a vendor's names, the caller asks
//! `pmmpi-names`, which has libpfm4.
//!
//! This module reads the kernel's description of its PMUs under a root path (sysfs-bus-event_source-devices of the
//! kernel's ABI documents), so that tests can bring their own /sys. It does not trust this description: it treats
//! an unexpected file as missing, or returns an error that names the file.
//!
//! On a processor with several kinds of cores, the name of a processor's event becomes one event per kind. If a PMU
//! exists several times (memory controllers), a name becomes one event per instance. [`family`] shows which events
//! belong to one sum.

mod error;
mod fields;
mod generic;
mod grouping;
mod listing;
mod places;
mod pmu;
mod pmu_terms;
mod resolve;
mod syntax;
mod sysfs;
mod tracepoints;
mod vendor;

pub use error::NameError;
pub use grouping::{Capacity, CounterPlan, plan};
pub use listing::{ListedEvent, Origin};
pub use places::Places;
pub use vendor::{Vendor, VendorAnswer, VendorEvent, closest};

use pmmpi::counters::event::{Event, kind};
use pmu::Pmu;
use std::path::PathBuf;

/// A requested event, and where it can be counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// Its name contains the PMU if several PMUs count it.
    pub event: Event,
    /// Where it can be counted.
    pub places: Places,
    /// The number of the PMU that counts it: events of one PMU share its counters, and may share a group.
    pub pmu: u32,
}

/// One element of a list of names. It becomes several events if several PMUs count it.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// A name.
    Event(Vec<Resolved>),
    /// Names in braces, to be counted at the same instants.
    Together(Vec<Vec<Resolved>>),
}

/// Names that this machine knows.
#[derive(Clone, Debug)]
pub struct EventNames {
    root: PathBuf,
    devices: PathBuf,
    /// The names of all PMUs, ascending.
    pmus: Vec<String>,
    /// The PMUs in cores: more than one if the cores differ.
    cores: Vec<Pmu>,
}

/// The name under which counts are summed. It lacks the number of an instance, and for events that every kernel
/// knows also the kind of core. "uncore_imc_3/cas_count_read/" belongs to "uncore_imc/cas_count_read/",
/// "cpu_atom/cycles/" to "cycles". PMUs' own events of equal names may differ between kinds of cores:
/// "cpu_core/mem-loads/" stays alone.
pub fn family(event: &Event) -> String {
    let Some((pmu, rest)) = event.name.split_once('/') else { return event.name.clone() };
    let of_every_kernel = matches!(event.encoding.kind, kind::HARDWARE | kind::CACHE);
    let parts = rest.rsplit_once('/').filter(|_| of_every_kernel);
    match parts.and_then(|(terms, modes)| Some((generic::of_the_processor(terms)?, modes))) {
        Some((event, "")) => event.name,
        Some((event, modes)) => format!("{}:{modes}", event.name),
        None => format!("{}/{rest}", pmu_family(pmu)),
    }
}

/// The name that all instances of a PMU share: "uncore_imc_3" -> "uncore_imc".
pub fn pmu_family(pmu: &str) -> &str {
    match pmu.rsplit_once('_') {
        Some((family, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => family,
        _ => pmu,
    }
}
