//! What the PMU of a core counts at once.
//!
//! The Linux kernel refuses a group of events that never fits (perf_event_open(2), EINVAL). So this module asks the
//! Linux kernel, and not the processor (Intel: CPUID 0AH, AMD: CPUID 8000_0022H, Arm: PMCR_EL0.N). The Linux kernel
//! has read these registers, and knows which events fit which counters. In a virtual machine, it also knows which
//! counters the hypervisor gives.

use super::core_pmus::kinds_of_cores;
use super::event::{Encoding, Event, Group, kind};
use super::open_counters::{OpenCounters, Set};
use super::perf_event_open::{Counters, Target};
use crate::node::kernel_text;
use std::collections::BTreeMap;
use std::path::Path;

/// No processor has more general counters.
const MOST: usize = 24;
const CYCLES: u64 = 0;
/// Events that no fixed counter counts (linux/perf_event.h, enum perf_hw_id): branches; on Arm, where a processor may
/// lack them, instructions.
const GENERAL: u64 = if cfg!(target_arch = "aarch64") { 1 } else { 4 };

/// How many events that need a general counter a core of this machine counts at once, on the kind of core that counts
/// fewest. `None` if the kernel opens no such event, for example in a virtual machine without a PMU.
pub fn general_counters() -> Option<usize> {
    let kinds = kinds_of_cores(Path::new("/"));
    let of_kind = |kind: Option<&(String, u32)>| {
        let group = (0..MOST).map(|number| {
            let event = Event::counted(&format!("general{number}"), Encoding::new(kind::HARDWARE, GENERAL));
            match kind {
                Some((name, number)) => event.on_core_pmu(name, Some(*number)),
                None => event,
            }
        });
        opened(&[group.collect()]).groups.first().map(Vec::len)
    };
    match &kinds[..] {
        [] | [_] => of_kind(None),
        several => several.iter().filter_map(|kind| of_kind(Some(kind))).min(),
    }
}

/// True if the kernel counts all of these events of a program's threads at once. Events that it does not count at all, and
/// its own software events, need no counter.
pub fn fit_at_once<'a>(groups: impl Iterator<Item = &'a Group>) -> bool {
    let kinds = kinds_of_cores(Path::new("/")).len();
    let needs_counter =
        |event: &&Event| !matches!(event.encoding.kind, kind::SOFTWARE | kind::TRACEPOINT | kind::BREAKPOINT);
    // Each kind of core has counters of its own, and a group holds the events of one PMU.
    let mut by_pmu: BTreeMap<u64, Group> = BTreeMap::new();
    for event in groups.flatten().filter(needs_counter) {
        let pmu = if kinds > 1 { pmu_of(event.encoding) } else { 0 };
        by_pmu.entry(pmu).or_default().push(event.clone());
    }
    // With several kinds of cores, the watchdog's event belongs to one of their PMUs, and cannot join the group of another.
    let watchdog = (kinds <= 1 && watchdog_takes_one(Path::new("/")))
        .then(|| Event::counted("watchdog", Encoding::new(kind::HARDWARE, CYCLES)));
    by_pmu.into_values().all(|group| {
        let group: Group = group.into_iter().chain(watchdog.clone()).collect();
        opened(&[group]).groups.len() <= 1
    })
}

/// On a processor with several kinds of cores, the PMU that counts an event.
fn pmu_of(encoding: Encoding) -> u64 {
    match encoding.kind {
        // linux/perf_event.h, PERF_PMU_TYPE_SHIFT.
        kind::HARDWARE | kind::CACHE => encoding.config[0] >> 32,
        other => u64::from(other),
    }
}

/// True if the kernel's NMI watchdog keeps a counter for cycles on every core.
pub fn watchdog_takes_one(root: &Path) -> bool {
    kernel_text(root, "proc/sys/kernel/nmi_watchdog").is_some_and(|text| text == "1")
}

/// What the kernel opens of these groups, for a program that never starts: the events count nothing.
fn opened(groups: &[Group]) -> Set {
    let counters = Counters::open(groups, Target::NextProgram);
    counters.opened().sets.first().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::default;

    #[test]
    fn software_events_need_no_counter() {
        let software: Vec<Group> =
            default::groups().into_iter().filter(|group| group[0].encoding.kind == kind::SOFTWARE).collect();
        assert!(!software.is_empty() && fit_at_once(software.iter()));
    }

    #[test]
    fn what_fits_agrees_with_the_number_of_counters() {
        // Without a PMU nothing is counted, so nothing needs a counter.
        let general = general_counters();
        let events = |number: usize| -> Group {
            let event = |at| Event::counted(&format!("e{at}"), Encoding::new(kind::HARDWARE, GENERAL));
            (0..number).map(event).collect()
        };
        let fits = |number: usize| fit_at_once([events(number)].iter());
        let watchdog = usize::from(watchdog_takes_one(Path::new("/")));
        let is_one_kind = kinds_of_cores(Path::new("/")).len() <= 1;
        match general {
            // Intel's watchdog has a counter of its own; another kind of core may have more counters.
            Some(counters) => {
                let too_many = if is_one_kind { counters + 1 } else { MOST };
                assert!(counters >= 2 && fits(counters - watchdog) && !fits(too_many), "{counters}");
            }
            None => assert!(fits(MOST)),
        }
    }
}
