//! Events as the kernel takes them, without names that anybody would have to look up.

use serde::{Deserialize, Serialize};

/// One event, resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// As `pmmpi list events` and the user have it.
    pub name: String,
    /// What is counted, and when.
    pub encoding: Encoding,
    /// What one count is: "", "ns", "bytes", "J".
    pub unit: String,
    /// Multiplies a count into its unit; 1 where counts are what is wanted.
    pub scale: f64,
}

/// The part of a perf_event_attr that tells events apart (perf_event_open(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Encoding {
    /// attr.type: PERF_TYPE_HARDWARE, .. or a PMU's own number in sysfs.
    pub kind: u32,
    /// attr.config, config1, config2. Of a breakpoint: bp_type, bp_addr, bp_len.
    pub config: [u64; 3],
    /// In which modes.
    pub modes: Modes,
}

/// The modes of the processor in which an event is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Modes {
    /// All that the user may see. Where the kernel is none of it, what was counted is a part.
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
    /// PERF_TYPE_HARDWARE: the processor's, by the kernel's names.
    pub const HARDWARE: u32 = 0;
    /// PERF_TYPE_SOFTWARE: the kernel's own.
    pub const SOFTWARE: u32 = 1;
    /// PERF_TYPE_TRACEPOINT.
    pub const TRACEPOINT: u32 = 2;
    /// PERF_TYPE_HW_CACHE.
    pub const CACHE: u32 = 3;
    /// PERF_TYPE_RAW: the processor's, by its own codes.
    pub const RAW: u32 = 4;
    /// PERF_TYPE_BREAKPOINT.
    pub const BREAKPOINT: u32 = 5;
}

impl Encoding {
    /// In all modes.
    pub const fn new(kind: u32, config: u64) -> Self {
        Self { kind, config: [config, 0, 0], modes: Modes::All }
    }

    /// In these modes.
    pub const fn in_modes(self, modes: Modes) -> Self {
        Self { modes, ..self }
    }
}

impl Event {
    /// Whose counts are what is wanted.
    pub fn counted(name: &str, encoding: Encoding) -> Self {
        Self { name: name.to_owned(), encoding, unit: String::new(), scale: 1.0 }
    }

    /// An event that every kernel knows, on one kind of core by its PMU's name: "cycles:u" -> "cpu_core/cycles/u".
    /// Where there are several kinds the PMU's `number` goes into the upper half of the configuration
    /// (linux/perf_event.h, PERF_PMU_TYPE_SHIFT).
    pub fn on_core_pmu(mut self, pmu: &str, number: Option<u32>) -> Self {
        self.encoding.config[0] |= number.map_or(0, |number| u64::from(number) << 32);
        let (name, modes) = self.name.split_once(':').unwrap_or((&self.name, ""));
        self.name = format!("{pmu}/{name}/{modes}");
        self
    }
}
