//! The bytes that the test loops of STREAM read and write at the memory controllers.
//!
//! Of all counters of memory traffic, only those of memory controllers must agree with counts known in advance. Counts
//! of a cache depend on prefetches, retries and other requests for the same line (McCalpin 2013). But a line that is in
//! no cache crosses a controller once, whichever core asks for it. A modified line that leaves the caches also crosses
//! a controller once.

mod controllers;
mod room;
mod traffic;

pub use controllers::socket;
pub use room::{cache_size, caches_of, free_bytes, limit_bytes, mebibytes};

use super::events::Mapping;
use super::findings::{self, EventCheck};
use super::measure_kernel::{EventValue, median};
use super::{Reference, kernel};
use controllers::Controllers;
use pmmpi::counters::count_and_quality::Quality;
use pmmpi::counters::open_counters::OpenCounters;
use pmmpi::counters::perf_event_open::Target;
use pmmpi::counters::selection::Selection;
use pmmpi::node::Hardware;
use pmmpi_events::metrics::{CpuKind, MetricInputs, MetricValue, evaluate};
use pmmpi_events::validation::EventVerdict;
use pmmpi_kernels::{Caches, Count, Expected, Kernel, PreparedMemory};
use room::ArraySize;
use std::path::{Path, PathBuf};
use traffic::{Clock, Moved};

/// An expected count of kernels for the controllers, and the metric that computes it.
struct Bytes {
    event: &'static str,
    /// Name of the metric, in bytes per second.
    metric: &'static str,
}

const READ: usize = 0;
const WRITTEN: usize = 1;
const BYTES: [Bytes; 3] = [
    Bytes { event: "dram_read_bytes", metric: "dram_read_bandwidth" },
    Bytes { event: "dram_write_bytes", metric: "dram_write_bandwidth" },
    // For controllers that do not separate reads and writes.
    Bytes { event: "dram_bytes", metric: "dram_bandwidth" },
];
const LINE_BYTES: u64 = 64;

/// There is no verdict if the uncertainty of the background exceeds this fraction of the expected value.
const UNSTEADY: f64 = 0.05;

/// The memory controllers of the socket of the pinned thread.
pub struct MemoryControllers {
    cpu: CpuKind,
    claims: Claims,
    found: Result<Controllers, String>,
    room: Result<ArraySize, String>,
    root: PathBuf,
    hardware_thread: u32,
    /// Three arrays. The pinned thread touches them first, so they are in the memory of its own socket.
    arrays: Option<PreparedMemory>,
    clock: Clock,
}

/// Which stores may fill a line without reading it first ("claim" it), or may read it although they should not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claims {
    Never,
    /// Plain stores may claim a line: from Ice Lake on, SpecI2M (Laukemann, Gruber, Hager, Oryspayev, Wellein:
    /// CloverLeaf on Intel Multi-Core CPUs: A Case Study in Write-Allocate Evasion, 2023).
    Plain,
    /// Plain stores may claim a line (Arm's write streaming mode, in the cores' technical reference manuals), and
    /// non-temporal stores may read it (STNP is a hint).
    Any,
}

impl Claims {
    fn of(cpu: &CpuKind) -> Self {
        match (cpu.vendor.as_str(), cpu.model) {
            ("AuthenticAMD", _) => Claims::Never,
            // Sandy Bridge to Cascade Lake, servers and clients (Linux, arch/x86/include/asm/intel-family.h).
            (
                "GenuineIntel",
                0x2a | 0x2d | 0x3a | 0x3c | 0x3d | 0x3e | 0x3f | 0x45 | 0x46 | 0x47 | 0x4e | 0x4f | 0x55
                | 0x56 | 0x5e | 0x8e | 0x9e | 0xa5 | 0xa6,
            ) => Claims::Never,
            ("GenuineIntel", _) => Claims::Plain,
            _ => Claims::Any,
        }
    }
}

impl MemoryControllers {
    /// Finds the controllers for a hardware thread of the machine whose files are below `root`. Opens no counters and
    /// allocates no memory yet.
    pub fn new(root: &Path, hardware: &Hardware, hardware_thread: u32) -> Self {
        let cpu = CpuKind::of_node(hardware);
        let found = Controllers::find(root, hardware, hardware_thread).ok_or_else(|| why_none(hardware));
        let room = ArraySize::find(root, hardware_thread);
        let (claims, clock) = (Claims::of(&cpu), pmmpi::clock::monotonic_ns as Clock);
        Self { cpu, claims, found, room, root: root.to_owned(), hardware_thread, arrays: None, clock }
    }

    pub fn mappings(&self) -> Vec<Mapping> {
        self.found.as_ref().map(|found| found.mappings.clone()).unwrap_or_default()
    }

    /// The arrays and caches of the measurement.
    pub fn found(&self) -> findings::MemoryFindings {
        let room = self.room.as_ref().ok();
        findings::MemoryFindings {
            cache_bytes: room.map(|room| room.cache_bytes),
            array_bytes: room.map(|room| room.array_bytes),
            reason: self.found.as_ref().err().or(self.room.as_ref().err()).cloned(),
        }
    }

    /// Runs a STREAM kernel `times` times between snapshots of the controllers.
    pub fn checks(&mut self, kernel: &Kernel, times: usize) -> Vec<EventCheck> {
        let nothing = |quality, why: &str| {
            let of_controllers =
                |expected: &Expected| BYTES.iter().any(|bytes| bytes.event == expected.event);
            let expected = kernel.expected(&Caches::default()).into_iter().filter(of_controllers);
            expected.map(|expected| EventCheck::missing(&expected, kernel.trips, quality, why)).collect()
        };
        let (controllers, room) = match (&self.found, &self.room) {
            (Err(why), _) => return nothing(Quality::Unsupported, why),
            (_, Err(why)) => return nothing(Quality::Unavailable, why),
            (Ok(controllers), Ok(room)) => (controllers, room),
        };
        let trips = room.array_bytes / LINE_BYTES;
        let open = |pass: &Selection| pass.open(Target::ThisThread, None);
        let mut moved = vec![Moved::default(); times];
        // Only one pass is open at a time, because its events may use all counters of a PMU.
        if controllers.passes.iter().all(|pass| open(pass).opened().handles.is_empty()) {
            controllers.passes.iter().for_each(|pass| traffic::leave_out(open(pass).opened(), &mut moved));
            return self.judged(kernel, trips, &moved);
        }
        if self.arrays.is_none() {
            match pmmpi_kernels::Memory::Arrays.prepare(trips, [self.hardware_thread; 2], &Caches::default())
            {
                Ok(arrays) => self.arrays = Some(arrays),
                Err(error) => {
                    return nothing(
                        Quality::Unavailable,
                        &format!("pmmpi cannot allocate the arrays: {error}"),
                    );
                }
            }
        }
        let Some(arrays) = &self.arrays else { return Vec::new() };
        let bytes = room.array_bytes.saturating_mul(room::ARRAYS);
        if let Some(node) = room::elsewhere(&self.root, self.hardware_thread, arrays.start(), bytes) {
            let why = format!(
                "a part of the arrays lies on NUMA node {node}, which does not belong to the measured \
                 socket: check `numactl --membind`"
            );
            return nothing(Quality::Unavailable, &why);
        }
        for pass in &controllers.passes {
            traffic::measure(&mut open(pass), self.clock, &mut moved, || {
                // SAFETY: the arrays were prepared for this number of trips of such kernels.
                unsafe { (kernel.body.run)(trips, arrays.start(), arrays.stride()) };
            });
        }
        self.judged(kernel, trips, &moved)
    }

    fn judged(&self, of: &Kernel, trips: u64, moved: &[Moved]) -> Vec<EventCheck> {
        let mut checks = Vec::new();
        for (at, bytes) in BYTES.iter().enumerate() {
            let value = |inputs: &MetricInputs| self.evaluate(inputs, bytes.metric);
            let known = |at: usize| {
                moved.iter().all(|one| {
                    self.evaluate(&one.net, BYTES[at].metric).is_some_and(|v| v.quality().has_value())
                })
            };
            if at > WRITTEN && (known(READ) || !known(at)) {
                continue;
            }
            let Some(expected) = self.expected(of, at) else { continue };
            let range = [expected.low.of(trips), expected.high.of(trips)];
            let measured: Vec<EventValue> = moved
                .iter()
                .filter_map(|one| value(&one.net))
                .map(|net| EventValue {
                    quality: net.quality(),
                    running_share: net.result.as_ref().ok().and_then(|value| value.running_share),
                    reason: reason(&net),
                    value: net.value(),
                    expected: Some(range),
                })
                .collect();
            let all = |inputs: fn(&Moved) -> &MetricInputs| {
                median(moved.iter().filter_map(|one| value(inputs(one))?.value()).collect())
            };
            let background = all(|one| &one.background);
            let mut check = EventCheck::of(bytes.event, &Reference::Paper(expected), &measured, background);
            check.trips = Some(trips);
            let unsteady = all(|one| &one.unsteady).unwrap_or(0.0);
            if check.deviation.is_some() && unsteady > UNSTEADY * range[0] {
                (check.deviation, check.verdict) = (None, EventVerdict::Unknown.name());
                check.reason = Some(
                    "other work uses this socket's memory at a varying rate: run `pmmpi validate` on an \
                     idle node"
                        .to_owned(),
                );
            }
            checks.push(check);
        }
        checks
    }

    fn evaluate(&self, inputs: &MetricInputs, metric: &str) -> Option<MetricValue> {
        // The controllers are those of one socket. With an elapsed time of one second, bytes per second are bytes.
        let inputs = inputs.clone().with_quantity("elapsed_s", 1.0).with_quantity("sockets", 1.0);
        evaluate(&self.cpu, &inputs).into_iter().find(|value| value.metric.name == metric)
    }

    /// The bytes that a kernel reads, writes or both, by the index `at` in [`BYTES`].
    fn expected(&self, of: &Kernel, at: usize) -> Option<Expected> {
        let of_kernel = |of: &Kernel, at: usize| {
            of.expected(&Caches::default()).into_iter().find(|expected| expected.event == BYTES[at].event)
        };
        let read = || {
            let own = of_kernel(of, READ)?;
            let name = of.name.strip_suffix("-nt").map_or_else(|| format!("{}-nt", of.name), str::to_owned);
            let other = kernel(&name).and_then(|other| of_kernel(other, READ));
            let widens = match self.claims {
                Claims::Never => false,
                Claims::Plain => !of.name.ends_with("-nt"),
                Claims::Any => true,
            };
            let other = other.filter(|_| widens).unwrap_or(own);
            let (low, high) = (least(own.low, other.low), most(own.high, other.high));
            Some(Expected { low, high, ..own })
        };
        match at {
            READ => read(),
            WRITTEN => of_kernel(of, WRITTEN),
            _ => {
                let (read, written) = (read()?, of_kernel(of, WRITTEN)?);
                let sum = |a: Count, b: Count| Count::new(a.once + b.once, a.per_trip + b.per_trip);
                let (low, high) = (sum(read.low, written.low), sum(read.high, written.high));
                Some(Expected { event: BYTES[at].event, low, high })
            }
        }
    }
}

fn least(a: Count, b: Count) -> Count {
    if b.per_trip < a.per_trip { b } else { a }
}

fn most(a: Count, b: Count) -> Count {
    if b.per_trip > a.per_trip { b } else { a }
}

fn reason(net: &MetricValue) -> Option<String> {
    let why = net.reason()?;
    Some(match net.quality() {
        Quality::Denied => {
            format!("{why}; for counters of memory controllers, set kernel.perf_event_paranoid to 0")
        }
        _ => why,
    })
}

/// The same advice as in `pmmpi doctor`.
fn why_none(hardware: &Hardware) -> String {
    let mend = match hardware.cpu_vendor.as_deref() {
        _ if hardware.hypervisor => "this virtual machine has none",
        Some("AuthenticAMD") => "load the driver: modprobe amd_uncore",
        Some("GenuineIntel") => "load the driver: modprobe intel_uncore",
        _ => "pmmpi knows no such PMU for this processor",
    };
    format!("no PMU of memory controllers in /sys/bus/event_source/devices ({mend})")
}

#[cfg(test)]
pub(super) mod tests;
