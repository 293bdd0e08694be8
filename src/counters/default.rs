//! The default events of a run.
//!
//! They form two groups. On Intel, the processor's events take the fixed counters (cycles, reference cycles,
//! instructions) and two programmable ones; on AMD Zen and Arm they take at most five of six counters. So
//! nothing multiplexes, with the NMI watchdog on or off. The Linux kernel's events are a group of their own because
//! they also count without a PMU.

use super::event::{Encoding, Event, Group, Modes, kind};

// linux/perf_event.h: enum perf_hw_id.
const CPU_CYCLES: u64 = 0;
const INSTRUCTIONS: u64 = 1;
const REF_CPU_CYCLES: u64 = 9;
// enum perf_sw_ids.
const TASK_CLOCK: u64 = 1;
const PAGE_FAULTS: u64 = 2;
const CONTEXT_SWITCHES: u64 = 3;
const CPU_MIGRATIONS: u64 = 4;

/// The default set of a hardware thread, whatever program runs there.
pub fn groups_of_a_core() -> Vec<Group> {
    let [hardware, _] = both();
    let switches = Event::counted("context_switches", Encoding::new(kind::SOFTWARE, CONTEXT_SWITCHES));
    let migrations = Event::counted("migrations", Encoding::new(kind::SOFTWARE, CPU_MIGRATIONS));
    vec![hardware, vec![switches, migrations]]
}

/// The default set: the processor's events, and the kernel's.
pub fn groups() -> Vec<Group> {
    both().into()
}

fn both() -> [Group; 2] {
    let hardware = |name, id| Event::counted(name, Encoding::new(kind::HARDWARE, id));
    let kernel = |name, id| Event::counted(name, Encoding::new(kind::HARDWARE, id).in_modes(Modes::Kernel));
    let software = |name, id| Event::counted(name, Encoding::new(kind::SOFTWARE, id));
    [
        vec![
            hardware("cycles", CPU_CYCLES),
            hardware("instructions", INSTRUCTIONS),
            hardware("ref_cycles", REF_CPU_CYCLES),
            kernel("cycles_kernel", CPU_CYCLES),
            kernel("instructions_kernel", INSTRUCTIONS),
        ],
        vec![
            Event { unit: "ns".into(), ..software("task_clock_ns", TASK_CLOCK) },
            software("page_faults", PAGE_FAULTS),
            software("context_switches", CONTEXT_SWITCHES),
            software("migrations", CPU_MIGRATIONS),
        ],
    ]
}
