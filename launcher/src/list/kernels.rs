//! `pmmpi list kernels`: the kernels of `pmmpi screen`, and the test loops of `pmmpi validate`, whose counts are known
//! in advance.

use super::{Listable, has};
use crate::cli::options::SCREEN_KERNELS;
use serde::Serialize;
use std::path::Path;

/// Test loops, with the counts that `pmmpi validate` expects, and kernels of `pmmpi screen`.
#[derive(Serialize)]
pub struct Kernels {
    schema_version: u32,
    /// The test loops.
    kernels: Vec<Kernel>,
    screen_kernels: Vec<ScreenKernel>,
}

#[derive(Serialize)]
struct ScreenKernel {
    name: &'static str,
    description: &'static str,
    /// Of the measure that stands for the kernel.
    unit: &'static str,
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
    let of_screen = SCREEN_KERNELS.into_iter().filter(|(name, about, _)| has(filter, &[name, about]));
    let of_screen = of_screen.map(|(name, description, unit)| ScreenKernel { name, description, unit });
    Kernels { schema_version: 1, kernels: kernels.map(kernel).collect(), screen_kernels: of_screen.collect() }
}

impl Listable for Kernels {
    fn is_empty(&self) -> bool {
        self.kernels.is_empty() && self.screen_kernels.is_empty()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if !self.screen_kernels.is_empty() {
            text += "Kernels of pmmpi screen (--kernels), with their units\n\n";
            for ScreenKernel { name, description, unit } in &self.screen_kernels {
                text += &format!("  {name:<8} {unit:<8} {description}\n");
            }
            text += "\n";
        }
        if !self.kernels.is_empty() {
            text += "Test loops of pmmpi validate (--kernel), with their expected counts\n\n";
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_section_names_the_command_that_runs_its_kernels() {
        let (of_screen, of_validate) =
            ("Kernels of pmmpi screen (--kernels)", "Test loops of pmmpi validate (--kernel)");
        let all = matching(None);
        assert_eq!(all.screen_kernels.len(), SCREEN_KERNELS.len());
        let text = all.text();
        assert!(text.contains(of_screen) && text.contains(of_validate), "{text}");
        assert!(text.contains("  latency  ns       latency of memory"), "{text}");
        // A section without kernels has no title.
        let text = matching(Some("matrix products")).text();
        assert!(text.contains(of_screen) && text.contains("dgemm") && !text.contains(of_validate), "{text}");
        assert!(matching(Some("zzz")).is_empty());
        assert!(!matching(Some("page-touch")).text().contains(of_screen));
    }
}
