//! Memory latency: each load needs the address that the load before it returned.
//!
//! Each thread has its own lines, linked to one ring in a random order. Sattolo's shuffle would also make a random
//! ring through all lines. This kernel makes the ring from a shuffled order, because the check needs the order: it
//! shows where each line must point, and where a number of loads must end.

use crate::error::{Error, Wrong};
use crate::kernel::{Measure, MeasureValue, Repetition, ScreenKernel};
use crate::pages::{Pages, in_huge_pages, require_available, size};
use crate::random::Random;
use crate::team::{PerThread, Span, Team};
use std::arch::naked_asm;

const LINE_BYTES: usize = 64;
const LINE_WORDS: usize = LINE_BYTES / size_of::<u64>();
/// The loop has this many loads per trip, so that the loop counter costs almost no time.
const LOADS_PER_TRIP: u64 = 16;
const MEASURES: [Measure; 1] = [Measure { name: "latency", unit: "ns", larger_is_better: false }];
/// Bytes per line for the order of the lines, and for the next line of each line while the kernel prepares the ring.
const ORDER_BYTES: u64 = 2 * size_of::<u32>() as u64;

/// Settings of [`Latency`].
#[derive(Clone, Copy, Debug)]
pub struct LatencySettings {
    /// The lines of all threads together.
    pub bytes: u64,
    /// Loads of each thread in a repetition; the kernel rounds up to a multiple of 16.
    pub loads: u64,
    /// Asks for huge pages. Without huge pages, the value contains TLB misses.
    pub huge_pages: bool,
    /// The size of all last-level caches together, if known.
    pub last_level_caches_bytes: Option<u64>,
}

impl LatencySettings {
    /// Eight times the size of all last-level caches together: at most one load in eight finds its line there.
    pub fn for_caches(last_level_caches_bytes: u64) -> Self {
        let bytes = last_level_caches_bytes.saturating_mul(8);
        Self { last_level_caches_bytes: Some(last_level_caches_bytes), ..Self::for_memory(bytes) }
    }

    /// Lines that use this many bytes together, on a node whose caches have an unknown size.
    pub fn for_memory(bytes: u64) -> Self {
        Self { bytes, loads: 1 << 20, huge_pages: true, last_level_caches_bytes: None }
    }

    /// A note if more than a quarter of the loads may find their lines in the caches.
    fn note_of_caches(&self) -> Option<String> {
        let caches = self.last_level_caches_bytes?;
        (self.bytes < caches.saturating_mul(4)).then(|| {
            format!(
                "the chains together have less than four times the size of the last-level caches ({:.3} GB): \
                 the values may be those of the caches, not of memory",
                caches as f64 / 1e9
            )
        })
    }
}

/// Nanoseconds per dependent load.
pub struct Latency {
    settings: LatencySettings,
    trips: u64,
    rings: Option<PerThread<Ring>>,
    notes: Vec<String>,
}

/// The lines of one thread.
struct Ring {
    pages: Pages,
    /// Line `order[k]` points to line `order[k + 1]`.
    order: Vec<u32>,
    /// The line at which the next repetition starts, as its place in the order and as its address.
    place: usize,
    at: *const u64,
}

// SAFETY: `at` points into `pages`, which moves with it.
unsafe impl Send for Ring {}

impl Latency {
    /// Refuses sizes that it cannot use when it knows the number of threads, in [`ScreenKernel::prepare`].
    pub fn new(settings: LatencySettings) -> Result<Self, Error> {
        let trips = settings.loads.div_ceil(LOADS_PER_TRIP);
        if trips == 0 {
            return Err(Error::Setting("latency needs at least 1 load per repetition".to_owned()));
        }
        Ok(Self { settings, trips, rings: None, notes: Vec::new() })
    }
}

impl ScreenKernel for Latency {
    fn name(&self) -> &'static str {
        "latency"
    }

    fn measures(&self) -> &'static [Measure] {
        &MEASURES
    }

    fn prepare(&mut self, team: &Team) -> Result<(), Error> {
        self.rings = None; // free the memory of an earlier call first
        let lines = lines_per_thread(self.settings.bytes, team.len())?;
        let all = u64::from(lines) * team.len() as u64;
        require_available(all * (LINE_BYTES as u64 + ORDER_BYTES), "latency")?;
        let huge_pages = self.settings.huge_pages;
        let rings = team.create(move |member| Ring::new(lines, huge_pages, member.number as u64))?;
        let huge = team.with(&rings, |_, ring| Ok(ring.pages.huge_pages_bytes()))?;
        self.notes = vec![format!(
            "chains of pointers, {} in all, {}",
            size(all * LINE_BYTES as u64),
            in_huge_pages(huge.into_iter().sum())
        )];
        self.notes.extend(self.settings.note_of_caches());
        self.rings = Some(rings);
        Ok(())
    }

    fn run(&mut self, team: &Team) -> Result<Repetition, Error> {
        let rings = self.rings.as_ref().ok_or_else(not_prepared)?;
        let trips = self.trips;
        // SAFETY: every line points to a line of the ring. After a flipped bit, a load may read other memory, or raise a
        // signal: the caller of the kernel must take that for a wrong result.
        let (_, spans) = team.timed(rings, move |ring| ring.at = unsafe { chase(trips, ring.at) })?;
        let loads = trips * LOADS_PER_TRIP;
        team.with(rings, move |member, ring| {
            ring.arrive(loads, member.hardware_thread).map_err(Error::from)
        })?;
        let per_load = |span: &Span| span.elapsed_ns() as f64 / loads as f64;
        let (node, threads) = (Span::of_all(&spans), spans.iter().map(per_load).collect());
        let value = MeasureValue { measure: MEASURES[0], node: per_load(&node), threads };
        Ok(Repetition { elapsed_ns: node.elapsed_ns(), values: vec![value] })
    }

    fn check(&mut self, team: &Team) -> Result<(), Error> {
        let rings = self.rings.as_ref().ok_or_else(not_prepared)?;
        team.with(rings, |member, ring| ring.check(member.hardware_thread).map_err(Error::from))?;
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

fn not_prepared() -> Error {
    Error::Internal("latency ran before it was prepared".to_owned())
}

fn lines_per_thread(bytes: u64, threads: usize) -> Result<u32, Error> {
    let lines = bytes / (LINE_BYTES * threads) as u64;
    u32::try_from(lines).ok().filter(|lines| *lines >= 2).ok_or_else(|| {
        let (least, most) = (2 * LINE_BYTES * threads, (u64::from(u32::MAX) * LINE_BYTES as u64) >> 30);
        Error::Setting(format!(
            "latency cannot use {bytes} bytes; use at least {least} bytes, and at most {most} GiB per hardware thread"
        ))
    })
}

impl Ring {
    fn new(lines: u32, huge_pages: bool, seed: u64) -> Result<Self, Error> {
        let mut order: Vec<u32> = (0..lines).collect();
        let mut random = Random(seed);
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at as u64 + 1) as usize);
        }
        let mut next = vec![0u32; order.len()];
        for (place, line) in order.iter().enumerate() {
            // A flipped bit in the order may show a line that does not exist: `check` finds it.
            if let Some(next) = next.get_mut(*line as usize) {
                *next = order[(place + 1) % order.len()];
            }
        }
        let mut pages = Pages::map(order.len() * LINE_BYTES, huge_pages)?;
        let start = pages.start() as u64;
        // In the order of addresses, which is much faster than in the order of the ring.
        for (line, next) in pages.words::<u64>().chunks_exact_mut(LINE_WORDS).zip(next) {
            line[0] = start + u64::from(next) * LINE_BYTES as u64;
        }
        let at = (start + u64::from(order[0]) * LINE_BYTES as u64) as *const u64;
        Ok(Self { pages, order, place: 0, at })
    }

    fn address(&self, place: usize) -> u64 {
        self.pages.start() as u64 + u64::from(self.order[place]) * LINE_BYTES as u64
    }

    /// Compares the end of `loads` loads with the line where they must end.
    fn arrive(&mut self, loads: u64, hardware_thread: u32) -> Result<(), Wrong> {
        let lines = self.order.len() as u64;
        self.place = ((self.place as u64 + loads % lines) % lines) as usize;
        let (expected, found) = (self.address(self.place), self.at as u64);
        let of = "the line at the end of the loads";
        if found == expected {
            Ok(())
        } else {
            Err(self.wrong(of, self.place, expected, found, hardware_thread))
        }
    }

    /// Compares each line with the line to which it must point: the ring then visits all lines.
    fn check(&mut self, hardware_thread: u32) -> Result<(), Wrong> {
        let (mut first, mut wrong_count) = (None, 0);
        for place in 0..self.order.len() {
            let expected = self.address((place + 1) % self.order.len());
            let line = self.order[place] as usize;
            // A line that does not exist comes from a flipped bit in the order.
            let found = self.pages.words::<u64>().get(line * LINE_WORDS).copied().unwrap_or_default();
            if found != expected {
                wrong_count += 1;
                first = first.or(Some((line, expected, found)));
            }
        }
        let Some((line, expected, found)) = first else { return Ok(()) };
        Err(Wrong { wrong_count, ..self.wrong("the thread's lines", line, expected, found, hardware_thread) })
    }

    fn wrong(&self, of: &str, element: usize, expected: u64, found: u64, hardware_thread: u32) -> Wrong {
        let (expected, found) = (format!("0x{expected:x}"), format!("0x{found:x}"));
        let (of, element) = (of.to_owned(), element as u64);
        Wrong { hardware_thread, of, element, expected, found, wrong_count: 1 }
    }
}

/// Follows the pointers 16 times per trip and returns where it arrives.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn chase(_trips: u64, _at: *const u64) -> *const u64 {
    naked_asm!(
        "mov rax, rsi",
        ".p2align 6",
        "2:",
        ".rept 16",
        "mov rax, [rax]",
        ".endr",
        "dec rdi",
        "jnz 2b",
        "ret"
    )
}

/// Follows the pointers 16 times per trip and returns where it arrives.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn chase(_trips: u64, _at: *const u64) -> *const u64 {
    naked_asm!(
        ".p2align 6",
        "2:",
        ".rept 16",
        "ldr x1, [x1]",
        ".endr",
        "subs x0, x0, #1",
        "b.ne 2b",
        "mov x0, x1",
        "ret"
    )
}

#[cfg(test)]
mod tests;
