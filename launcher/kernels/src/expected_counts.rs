//! The test loops, and those of their expected counts that do not follow from their code alone. docs/validate.md
//! explains each count.

use crate::machine as code;
use crate::{Body, Count, Expected, Kernel, Memory, Ring, RingEvent};

const MISSES_NOTHING: Expected =
    Expected { event: "branch-misses", low: Count::new(0.0, 0.0), high: Count::new(100.0, 0.001) };
/// Interrupts execute a few thousand instructions of the Linux kernel each.
const LITTLE_OF_THE_KERNEL: Expected =
    Expected { event: "instructions_kernel", low: Count::new(0.0, 0.0), high: Count::new(20_000.0, 0.4) };

/// For events that the code never causes and interrupts cause rarely: a counter of loads must not count stores.
const fn next_to_none(event: &'static str) -> Expected {
    Expected { event, low: Count::new(0.0, 0.0), high: Count::new(10_000.0, 0.01) }
}

const LOADS: &str = "L1-dcache-loads";
const STORES: &str = "L1-dcache-stores";
const L1_MISSES: &str = "L1-dcache-load-misses";
/// Several times around each ring.
const RING_TRIPS: u64 = 300_000;
const BEYOND_L1: Memory = Memory::Ring(Ring::BeyondL1);
const BEYOND_L2: Memory = Memory::Ring(Ring::BeyondL2);
const BEYOND_TLB: Memory = Memory::Ring(Ring::BeyondTlb);
/// An array of 16 MiB: larger than the second-level cache of any core.
const READ_TRIPS: u64 = 1 << 18;

/// Vendors' events for vector instructions on doubles.
#[cfg(target_arch = "x86_64")]
const FP_256: &str = "fp_arith_inst_retired.256b_packed_double";
const FP_128: &str = "fp_arith_inst_retired.128b_packed_double";
const FP_OPERATIONS: &str = "fp_ret_sse_avx_ops.all";
/// Bytes at the memory controllers. They may be less because the last part is still in caches, or more because of page
/// tables and prefetches.
const READ: &str = "dram_read_bytes";
const WRITTEN: &str = "dram_write_bytes";

/// Bytes per line; each trip works on one line of each array.
const LINE: f64 = 64.0;
const DOUBLES: f64 = 8.0;

const fn moved(event: &'static str, lines: f64) -> Expected {
    Expected::between(event, 0.95 * LINE * lines, 1.05 * LINE * lines)
}

const fn kernel(name: &'static str, about: &'static str, trips: u64, memory: Memory, body: Body) -> Kernel {
    Kernel {
        name,
        about,
        trips,
        memory,
        body,
        stays_in_user_mode: true,
        others: &[],
        ring_events: &[],
        not_compared: &[],
        without_prefetch: false,
    }
}

const fn stream(name: &'static str, about: &'static str, body: Body, others: &'static [Expected]) -> Kernel {
    Kernel { others, ..kernel(name, about, Memory::ARRAY_LINES, Memory::Arrays, body) }
}

const COPY: &[Expected] = &[moved(READ, 2.0), moved(WRITTEN, 1.0)];
const COPY_NT: &[Expected] = &[moved(READ, 1.0), moved(WRITTEN, 1.0)];
const SCALE: &[Expected] = &[flops(1.0), packed(1.0), moved(READ, 2.0), moved(WRITTEN, 1.0)];
const SCALE_NT: &[Expected] = &[flops(1.0), packed(1.0), moved(READ, 1.0), moved(WRITTEN, 1.0)];
const ADD: &[Expected] = &[flops(1.0), packed(1.0), moved(READ, 3.0), moved(WRITTEN, 1.0)];
const ADD_NT: &[Expected] = &[flops(1.0), packed(1.0), moved(READ, 2.0), moved(WRITTEN, 1.0)];
const TRIAD: &[Expected] = &[flops(2.0), packed(2.0), moved(READ, 3.0), moved(WRITTEN, 1.0)];
const TRIAD_NT: &[Expected] = &[flops(2.0), packed(2.0), moved(READ, 2.0), moved(WRITTEN, 1.0)];

const fn flops(each: f64) -> Expected {
    Expected::exactly(FP_OPERATIONS, 0.0, each * DOUBLES)
}

/// Instructions on two doubles each.
const fn packed(each: f64) -> Expected {
    Expected::exactly(FP_128, 0.0, each * DOUBLES / 2.0)
}

const ALL: &[Kernel] = &[
    Kernel {
        others: &[LITTLE_OF_THE_KERNEL, MISSES_NOTHING],
        ..kernel("instructions", "independent adds", 500_000, Memory::None, code::INSTRUCTIONS)
    },
    Kernel {
        others: &[Expected::between("cycles", 64.0, 66.0)],
        ..kernel(
            "cycles",
            "adds, each of which needs the result of the previous add",
            200_000,
            Memory::None,
            code::CYCLES,
        )
    },
    Kernel {
        others: &[MISSES_NOTHING],
        ..kernel("branches", "branches that the processor can predict", 500_000, Memory::None, code::BRANCHES)
    },
    Kernel {
        others: &[Expected::between("branch-misses", 0.45, 0.55)],
        ..kernel(
            "branches-random",
            "branches that the processor cannot predict",
            200_000,
            Memory::None,
            code::RANDOM,
        )
    },
    Kernel {
        others: &[next_to_none("L1-dcache-stores")],
        ..kernel("loads", "loads from one cache line", 300_000, Memory::Line, code::LOADS)
    },
    Kernel {
        others: &[next_to_none("L1-dcache-loads")],
        ..kernel("stores", "stores to one cache line", 300_000, Memory::Line, code::STORES)
    },
    Kernel {
        others: &[Expected::between("L1-dcache-load-misses", 0.95, 1.05)],
        ..kernel("chase", "loads, each from a new cache line", 100_000, Memory::Chain, code::CHASE)
    },
    Kernel {
        ring_events: &[RingEvent::Misses(L1_MISSES), RingEvent::ServedByNext("dc_refills_l2")],
        ..kernel(
            "chase-l2",
            "loads of lines that are in the second-level cache, but not in the first-level cache",
            RING_TRIPS,
            BEYOND_L1,
            code::CHASE,
        )
    },
    Kernel {
        ring_events: &[RingEvent::Misses(L1_MISSES), RingEvent::Misses("dc_refills_system")],
        ..kernel(
            "chase-l3",
            "loads of lines that are not in the second-level cache",
            RING_TRIPS,
            BEYOND_L2,
            code::CHASE,
        )
    },
    Kernel {
        ring_events: &[
            RingEvent::Misses("dTLB-load-misses"),
            RingEvent::Misses("dtlb_load_walks"),
            RingEvent::Misses("dtlb_l1_miss_l2_miss"),
        ],
        ..kernel(
            "page-stride",
            "loads, each from a page that is in no TLB",
            RING_TRIPS,
            BEYOND_TLB,
            code::CHASE,
        )
    },
    Kernel {
        others: &[
            Expected::exactly("near_returns", 0.0, 1.0),
            Expected { event: "near_returns_mispredicted", ..MISSES_NOTHING },
            MISSES_NOTHING,
        ],
        // A processor may keep the return address in a register, and access no cache.
        not_compared: &[LOADS, STORES],
        ..kernel("calls", "calls of a function that returns at once", 300_000, Memory::None, code::CALLS)
    },
    Kernel {
        others: &[
            Expected::exactly("split_loads", 0.0, 4.0),
            Expected::exactly("misaligned_accesses", 0.0, 4.0),
        ],
        // A processor may access the cache once for each of the two lines.
        not_compared: &[LOADS],
        ..kernel("loads-split", "loads, each from two cache lines", 300_000, Memory::Line, code::SPLIT_LOADS)
    },
    Kernel {
        others: &[next_to_none("split_loads")],
        ..kernel(
            "loads-misaligned",
            "misaligned loads from one cache line",
            300_000,
            Memory::Line,
            code::MISALIGNED_LOADS,
        )
    },
    Kernel {
        // Prefetches may bring each line before its load, or just too late.
        others: &[Expected::between(L1_MISSES, 0.0, 1.05), Expected::between("dc_refills_system", 0.0, 1.05)],
        ..kernel("read", "loads, one from each line of an array", READ_TRIPS, Memory::Lines, code::READ)
    },
    Kernel {
        others: &[
            Expected::between(L1_MISSES, 0.95, 1.05),
            Expected::between("dc_refills_system", 0.95, 1.05),
        ],
        without_prefetch: true,
        ..kernel(
            "read-no-prefetch",
            "loads, one per line of an array, prefetchers off",
            READ_TRIPS,
            Memory::Lines,
            code::READ,
        )
    },
    #[cfg(target_arch = "x86_64")]
    Kernel {
        // An instruction multiplies and adds 4 doubles: this is 8 operations, and Intel's event counts it twice.
        others: &[Expected::exactly(FP_OPERATIONS, 0.0, 64.0), Expected::exactly(FP_256, 0.0, 16.0)],
        ..kernel("fma", "fused multiply-adds of 4 doubles", 200_000, Memory::None, code::FMA)
    },
    #[cfg(target_arch = "aarch64")]
    kernel("fma", "fused multiply-adds of 2 doubles", 200_000, Memory::None, code::FMA),
    Kernel {
        stays_in_user_mode: false,
        others: &[
            Expected::exactly("page_faults", 0.0, 1.0),
            Expected::between("instructions_kernel", 50.0, 100_000.0),
        ],
        ..kernel("page-touch", "the first store to each page", 256, Memory::FreshPages, code::TOUCH)
    },
    Kernel {
        stays_in_user_mode: false,
        others: &[Expected::between("instructions_kernel", 20.0, 20_000.0)],
        ..kernel("system-calls", "calls of getppid(2)", 20_000, Memory::None, code::SYSTEM_CALLS)
    },
    Kernel {
        stays_in_user_mode: false,
        others: &[Expected::exactly("context_switches", 0.0, 1.0)],
        ..kernel("sleeps", "sleeps of 50 us with nanosleep(2)", 20, Memory::Time, code::SLEEPS)
    },
    Kernel {
        stays_in_user_mode: false,
        others: &[Expected::exactly("migrations", 0.0, 2.0)],
        ..kernel(
            "migrations",
            "moves to another hardware thread and back",
            20,
            Memory::Masks,
            code::MIGRATIONS,
        )
    },
    stream("copy", "STREAM: c = a", code::COPY, COPY),
    stream("copy-nt", "STREAM: c = a, with non-temporal stores", code::COPY_NT, COPY_NT),
    stream("scale", "STREAM: b = s c", code::SCALE, SCALE),
    stream("scale-nt", "STREAM: b = s c, with non-temporal stores", code::SCALE_NT, SCALE_NT),
    stream("add", "STREAM: c = a + b", code::ADD, ADD),
    stream("add-nt", "STREAM: c = a + b, with non-temporal stores", code::ADD_NT, ADD_NT),
    stream("triad", "STREAM: a = b + s c", code::TRIAD, TRIAD),
    stream("triad-nt", "STREAM: a = b + s c, with non-temporal stores", code::TRIAD_NT, TRIAD_NT),
];

/// All kernels of this processor's architecture.
pub fn all() -> &'static [Kernel] {
    ALL
}
