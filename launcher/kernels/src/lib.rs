//! Kernels whose counts are known on paper.
//!
//! A kernel is a function written instruction by instruction, so that no compiler changes what it does, and a
//! table of what it does: how much once, and how much each trip of its loop. A test runs each of them one
//! instruction at a time (ptrace(2), PTRACE_SINGLESTEP) and counts: the paper is held by the machine itself,
//! without its counters.
//!
//! All counts are those of the function without its return, which an [`EMPTY`] one has, too.

#![warn(missing_docs)]

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod machine;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod machine;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("kernels are written for x86_64 and aarch64: write them for this processor, too");

mod memory;
mod table;

pub use memory::{Memory, Prepared};
pub use table::all;

/// A kernel's code: trips of its loop, its memory, and a distance in it.
pub type Function = unsafe extern "C" fn(trips: u64, memory: *mut u8, stride: u64);

/// What a section costs that does nothing.
pub const EMPTY: Function = machine::empty;

/// Work with counts that are known.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// As users type it.
    pub name: &'static str,
    /// In a line.
    pub about: &'static str,
    /// Trips of its loop when counters are held against it.
    pub trips: u64,
    /// What it works on.
    pub memory: Memory,
    /// Its code, and what that does in user mode.
    pub body: Body,
    /// True where nothing but interrupts takes it into the kernel: what is counted in all modes is then what the
    /// code does.
    pub stays_in_user_mode: bool,
    /// What is known of other events.
    pub others: &'static [Expected],
}

/// Code, and what it does in user mode.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    /// The code.
    pub run: Function,
    /// Whether this processor has the instructions.
    pub runs_here: fn() -> bool,
    /// Instructions retired.
    pub instructions: Count,
    /// Branches among them, taken or not.
    pub branches: Count,
    /// Instructions that load.
    pub loads: Count,
    /// Instructions that store.
    pub stores: Count,
}

/// A count that grows with the trips of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    /// Around the loop.
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

/// What is known of one event: a count that lies between two others, which are the same where it is exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// As `pmmpi list events` has it, or its vendor.
    pub event: &'static str,
    /// No fewer.
    pub low: Count,
    /// No more.
    pub high: Count,
}

impl Expected {
    /// A count without any doubt.
    pub const fn exactly(event: &'static str, once: f64, per_trip: f64) -> Self {
        Self { event, low: Count::new(once, per_trip), high: Count::new(once, per_trip) }
    }

    /// A count in each trip between two others.
    pub const fn between(event: &'static str, low: f64, high: f64) -> Self {
        Self { event, low: Count::new(0.0, low), high: Count::new(0.0, high) }
    }
}

impl Kernel {
    /// All that is known of a call: first what its code says, where that is all there is.
    pub fn expected(&self) -> Vec<Expected> {
        let Body { instructions, branches, loads, stores, .. } = self.body;
        let code = [
            ("instructions", instructions),
            ("branches", branches),
            ("L1-dcache-loads", loads),
            ("L1-dcache-stores", stores),
        ];
        // A counter that always reads 0 agrees with a kernel that does nothing of its kind.
        let code =
            code.into_iter().filter(|(_, count)| self.stays_in_user_mode && *count != Count::default());
        let code = code.map(|(event, count)| Expected { event, low: count, high: count });
        code.chain(self.others.iter().copied()).collect()
    }
}
