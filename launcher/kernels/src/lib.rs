//! Test loops whose event counts are known in advance.
//!
//! A test loop (in the code: a kernel) is a function in assembly language, so that no compiler changes it, and a table
//! of its counts: those of a call, and those of each trip of the loop. A test runs each kernel one instruction at a
//! time (ptrace(2), PTRACE_SINGLESTEP) and counts: so the machine itself confirms the table, without its counters.
//!
//! All counts leave out the function's return instruction, because the function [`EMPTY`] has it, too.

#![warn(missing_docs)]

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod machine;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod machine;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the test loops are written for x86_64 and aarch64 only: write them for this processor, too");

mod expected_counts;
mod memory;
mod rings;

pub use expected_counts::all;
pub use memory::{Memory, PreparedMemory, page_bytes};
pub use rings::{Caches, Ring, RingEvent};

/// A kernel's code. The arguments are the trips of its loop, its memory, and a distance in the memory.
pub type Function = unsafe extern "C" fn(trips: u64, memory: *mut u8, stride: u64);

/// A function without work, to measure the overhead of a section.
pub const EMPTY: Function = machine::empty;

/// A loop with known counts.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The name that users type.
    pub name: &'static str,
    /// A short description.
    pub about: &'static str,
    /// Trips of its loop in a validation.
    pub trips: u64,
    /// The memory that it works on.
    pub memory: Memory,
    /// Its code, and the counts of the code in user mode.
    pub body: Body,
    /// True if it enters the Linux kernel only through interrupts: the counts of all modes are then the counts of the
    /// code.
    pub stays_in_user_mode: bool,
    /// The expected counts of other events.
    pub others: &'static [Expected],
    /// Events that count the loads of its ring that miss. Only for [`Memory::Ring`].
    pub ring_events: &'static [RingEvent],
    /// Events of its code that processors may count in other ways, so that they are no test of the counter.
    pub not_compared: &'static [&'static str],
    /// True if the expected counts hold only while the hardware does not prefetch.
    pub without_prefetch: bool,
}

/// Code, and its counts in user mode.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    /// The code.
    pub run: Function,
    /// True if this processor has the instructions.
    pub runs_here: fn() -> bool,
    /// Instructions retired.
    pub instructions: Count,
    /// Branch instructions, taken or not.
    pub branches: Count,
    /// Instructions that load.
    pub loads: Count,
    /// Instructions that store.
    pub stores: Count,
}

/// A count that grows with the trips of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    /// Outside the loop.
    pub once: f64,
    /// In each trip.
    pub per_trip: f64,
}

impl Count {
    /// `once + per_trip * trips`
    pub const fn new(once: f64, per_trip: f64) -> Self {
        Self { once, per_trip }
    }

    /// The count of a whole call.
    pub fn of(&self, trips: u64) -> f64 {
        self.once + self.per_trip * trips as f64
    }
}

/// The expected range of one event's count; both limits are the same for an exact count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// The event's name in `pmmpi list events`, or its vendor's name.
    pub event: &'static str,
    /// The lower limit.
    pub low: Count,
    /// The upper limit.
    pub high: Count,
}

impl Expected {
    /// An exact count.
    pub const fn exactly(event: &'static str, once: f64, per_trip: f64) -> Self {
        Self { event, low: Count::new(once, per_trip), high: Count::new(once, per_trip) }
    }

    /// A range of the count per trip.
    pub const fn between(event: &'static str, low: f64, high: f64) -> Self {
        Self { event, low: Count::new(0.0, low), high: Count::new(0.0, high) }
    }
}

impl Kernel {
    /// All expected counts of a call on a processor with these caches. Those of its code come first, if the kernel stays
    /// in user mode.
    pub fn expected(&self, caches: &Caches) -> Vec<Expected> {
        let Body { instructions, branches, loads, stores, .. } = self.body;
        let code = [
            ("instructions", instructions),
            ("branches", branches),
            ("L1-dcache-loads", loads),
            ("L1-dcache-stores", stores),
        ];
        // Leave out expected counts of 0: a broken counter that always reads 0 would agree with them.
        let code =
            code.into_iter().filter(|(_, count)| self.stays_in_user_mode && *count != Count::default());
        let code = code.filter(|(event, _)| !self.not_compared.contains(event));
        let code = code.map(|(event, count)| Expected { event, low: count, high: count });
        let least = match self.memory {
            Memory::Ring(ring) => ring.least_misses(caches, page_bytes()),
            _ => None,
        };
        let of_ring = least.into_iter().flat_map(|least| {
            self.ring_events.iter().map(move |event| {
                let (event, [low, high]) = event.range(least);
                Expected::between(event, low, high)
            })
        });
        code.chain(self.others.iter().copied()).chain(of_ring).collect()
    }
}
