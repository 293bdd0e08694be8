//! `pmmpi list kernels`: the built-in test loops whose counts are known in advance.

use super::{Listable, has};
use serde::Serialize;
use std::path::Path;

/// Kernels, with the counts that `pmmpi validate` expects.
#[derive(Serialize)]
pub struct Kernels {
    schema_version: u32,
    kernels: Vec<Kernel>,
}

#[derive(Serialize)]
struct Kernel {
    name: &'static str,
    description: &'static str,
    /// Iterations of its loop.
    trips: u64,
    /// False if this processor lacks its instructions.
    runs_here: bool,
    expected: Vec<Expected>,
}

#[derive(Serialize)]
struct Expected {
    event: &'static str,
    low: f64,
    high: f64,
}

/// The kernels whose name or description contains `filter`.
pub fn matching(filter: Option<&str>) -> Kernels {
    // SAFETY: no arguments.
    let cpu = u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0);
    let caches = crate::validate::caches_of(Path::new("/"), cpu);
    let kernels = pmmpi_kernels::all().iter().filter(|kernel| has(filter, &[kernel.name, kernel.about]));
    let kernel = |kernel: &pmmpi_kernels::Kernel| Kernel {
        name: kernel.name,
        description: kernel.about,
        trips: kernel.trips,
        runs_here: (kernel.body.runs_here)(),
        expected: kernel
            .expected(&caches)
            .into_iter()
            .map(|expected| Expected {
                event: expected.event,
                low: expected.low.of(kernel.trips),
                high: expected.high.of(kernel.trips),
            })
            .collect(),
    };
    Kernels { schema_version: 1, kernels: kernels.map(kernel).collect() }
}

impl Listable for Kernels {
    fn is_empty(&self) -> bool {
        self.kernels.is_empty()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for Kernel { name, description, trips, runs_here, expected } in &self.kernels {
            let here = if *runs_here { "" } else { " (not on this processor)" };
            text += &format!("{name}: {description}{here}\n");
            for Expected { event, low, high } in expected {
                let range = if low == high { format!("{low:.0}") } else { format!("{low:.0} to {high:.0}") };
                text += &format!("  {event:<28} {range}\n");
            }
            text += &format!("  in {trips} trips of the loop\n\n");
        }
        text
    }
}
