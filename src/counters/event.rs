//! Resolved events: the numbers that the Linux kernel takes. No event name needs a look-up any more.

use serde::{Deserialize, Serialize};

/// One event, resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The name in `pmmpi list events` and in options.
    pub name: String,
    /// What is counted, and when.
    pub encoding: Encoding,
    /// The unit of a value: "", "ns", "bytes", "J".
    pub unit: String,
    /// A value is count x scale; 1 for plain counts.
    pub scale: f64,
}

/// The part of a perf_event_attr that tells events apart (perf_event_open(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Encoding {
    /// attr.type: PERF_TYPE_HARDWARE, .. or a PMU's own number in sysfs.
    pub kind: u32,
    /// attr.config, config1, config2. For a breakpoint: bp_type, bp_addr, bp_len.
    pub config: [u64; 3],
    /// The modes in which it counts.
    pub modes: Modes,
}

/// The modes of the processor in which an event is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Modes {
    /// All modes that this user may count. If the user may not count the kernel, the count is partial.
    All,
    /// User mode.
    User,
    /// Kernel mode.
    Kernel,
}

/// Events that the kernel counts at the same instants or not at all.
pub type Group = Vec<Event>;

/// perf_event_attr.type of events that every kernel knows.
pub mod kind {
    /// PERF_TYPE_HARDWARE: events of the processor, by the kernel's names.
    pub const HARDWARE: u32 = 0;
    /// PERF_TYPE_SOFTWARE: events of the kernel.
    pub const SOFTWARE: u32 = 1;
    /// PERF_TYPE_TRACEPOINT.
    pub const TRACEPOINT: u32 = 2;
    /// PERF_TYPE_HW_CACHE.
    pub const CACHE: u32 = 3;
    /// PERF_TYPE_RAW: events of the processor, by its own codes.
    pub const RAW: u32 = 4;
    /// PERF_TYPE_BREAKPOINT.
    pub const BREAKPOINT: u32 = 5;
}

impl Encoding {
    /// Counts in all modes.
    pub const fn new(kind: u32, config: u64) -> Self {
        Self { kind, config: [config, 0, 0], modes: Modes::All }
    }

    /// Counts in these modes.
    pub const fn in_modes(self, modes: Modes) -> Self {
        Self { modes, ..self }
    }
}

impl Event {
    /// An event whose values are plain counts.
    pub fn counted(name: &str, encoding: Encoding) -> Self {
        Self { name: name.to_owned(), encoding, unit: String::new(), scale: 1.0 }
    }

    /// Binds an event that every kernel knows to one kind of core, given by its PMU: "cycles:u" ->
    /// "cpu_core/cycles/u". If there are several kinds, the PMU's `number` goes into the upper half of the
    /// configuration (linux/perf_event.h, PERF_PMU_TYPE_SHIFT).
    pub fn on_core_pmu(mut self, pmu: &str, number: Option<u32>) -> Self {
        self.encoding.config[0] |= number.map_or(0, |number| u64::from(number) << 32);
        let (name, modes) = self.name.split_once(':').unwrap_or((&self.name, ""));
        self.name = format!("{pmu}/{name}/{modes}");
        self
    }
}
