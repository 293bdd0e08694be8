//! Memory bandwidth with the four loops of STREAM (McCalpin 1995): copy, scale, add and triad.
//!
//! Each thread has its own part of STREAM's arrays a, b and c. STREAM starts all elements of an array with one value.
//! Here the start values of neighbours differ, so that a line at a wrong place is also a wrong result. The loops use
//! no fused multiply-add, so every processor must produce the same bits, and the check needs no tolerance.

#[cfg(target_arch = "aarch64")]
#[path = "triad/aarch64.rs"]
mod machine;
#[cfg(target_arch = "x86_64")]
#[path = "triad/x86_64.rs"]
mod machine;

use crate::error::{Error, Wrong, double};
use crate::kernel::{Measure, MeasureValue, Repetition, ScreenKernel, rate};
use crate::pages::{Pages, in_huge_pages, require_available, size};
use crate::team::{PerThread, Span, Team};

/// The arguments are the number of elements (a multiple of [`STEP`], not 0), the array that the loop writes, the two
/// arrays that it reads (some loops ignore the second array), and STREAM's scalar.
type Loop = unsafe extern "C" fn(usize, *mut f64, *const f64, *const f64, f64);

/// The loops for one kind of vector registers, in STREAM's order: copy, scale, add, triad.
#[derive(Clone, Copy, Debug)]
struct Loops {
    instructions: &'static str,
    ordinary: [Loop; 4],
    non_temporal: [Loop; 4],
}

/// Every loop works on a multiple of this many elements.
const STEP: usize = 64;
const SCALAR: f64 = 3.0;
/// An element grows by a factor of 15 in each repetition. Long before it is infinite, the arrays start again.
const MOST_REPETITIONS: u32 = 100;
/// Start values repeat after this many elements: a prime, so that no two lines of a page, and no two pages near one
/// another, have the same values.
const PERIOD: usize = 1021;
/// The gap between two arrays of a thread, so that their elements are not in the same sets of the caches.
const GAP_ELEMENTS: usize = 2 * STEP;
/// STREAM's default, for machines with small caches.
const LEAST_ARRAY_BYTES: u64 = 80_000_000;

/// How the loops store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Ordinary stores: before the processor writes a line, it reads the line from memory.
    Ordinary,
    /// Stores that write to memory without reading.
    NonTemporal,
}

/// Settings of [`Triad`].
#[derive(Clone, Copy, Debug)]
pub struct TriadSettings {
    /// The size of one of the three arrays, of the whole node.
    pub array_bytes: u64,
    /// How the loops store.
    pub stores: Stores,
    /// Asks for huge pages.
    pub huge_pages: bool,
    /// The size of all last-level caches together, if known.
    pub last_level_caches_bytes: Option<u64>,
}

impl TriadSettings {
    /// STREAM's rule: each array has at least four times the size of all last-level caches together.
    pub fn for_caches(last_level_caches_bytes: u64, stores: Stores) -> Self {
        let array_bytes = last_level_caches_bytes.saturating_mul(4).max(LEAST_ARRAY_BYTES);
        let last_level_caches_bytes = Some(last_level_caches_bytes);
        Self { array_bytes, stores, huge_pages: true, last_level_caches_bytes }
    }

    /// Arrays that use this many bytes together.
    pub fn for_memory(bytes: u64, stores: Stores, last_level_caches_bytes: Option<u64>) -> Self {
        Self { array_bytes: bytes / 3, stores, huge_pages: true, last_level_caches_bytes }
    }

    /// A note if the loops may find much of the arrays in the caches. STREAM asks for four times the caches in each array;
    /// a loop that passes over all arrays needs this size only for all of them together.
    fn note_of_caches(&self) -> Option<String> {
        let caches = self.last_level_caches_bytes?;
        let all = self.array_bytes.saturating_mul(3);
        // An array is a third of --memory, rounded down.
        (all.saturating_add(2) < caches.saturating_mul(4)).then(|| {
            format!(
                "the arrays together have less than four times the size of the last-level caches ({:.3} GB): the \
                 values may be those of the caches, not of memory",
                caches as f64 / 1e9
            )
        })
    }
}

/// The bytes that one loop moves per element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bytes {
    /// As STREAM counts: the elements that the loop reads and writes.
    stream: u64,
    /// The bytes that memory moves. An ordinary store also reads the line. Some processors do not read a line if
    /// ordinary stores fill the whole line; then memory moves fewer bytes.
    memory: u64,
}

/// One of STREAM's loops.
struct Operation {
    rate: Measure,
    memory_rate: Measure,
    arrays_read: u64,
}

const fn gigabytes(name: &'static str) -> Measure {
    Measure { name, unit: "GB/s", larger_is_better: true }
}

const fn operation(name: &'static str, memory_name: &'static str, arrays_read: u64) -> Operation {
    Operation { rate: gigabytes(name), memory_rate: gigabytes(memory_name), arrays_read }
}

/// In STREAM's order.
const OPERATIONS: [Operation; 4] = [
    operation("copy", "copy-memory", 1),
    operation("scale", "scale-memory", 1),
    operation("add", "add-memory", 2),
    operation("triad", "triad-memory", 2),
];

/// Triad comes first, because it stands for the kernel.
const REPORTED: [usize; 4] = [3, 0, 1, 2];

const MEASURES: [Measure; 8] = {
    let mut measures = [OPERATIONS[0].rate; 8];
    let mut at = 0;
    while at < 4 {
        measures[at] = OPERATIONS[REPORTED[at]].rate;
        measures[at + 4] = OPERATIONS[REPORTED[at]].memory_rate;
        at += 1;
    }
    measures
};

impl Operation {
    fn bytes_per_element(&self, stores: Stores) -> Bytes {
        let stream = (self.arrays_read + 1) * size_of::<f64>() as u64;
        match stores {
            Stores::Ordinary => Bytes { stream, memory: stream + size_of::<f64>() as u64 },
            Stores::NonTemporal => Bytes { stream, memory: stream },
        }
    }
}

/// Memory bandwidth with STREAM's loops.
pub struct Triad {
    settings: TriadSettings,
    loops: Loops,
    arrays: Option<PerThread<Arrays>>,
    /// Repetitions since the arrays had their start values.
    repetitions: u32,
    notes: Vec<String>,
}

/// A thread's part of a, b and c.
struct Arrays {
    pages: Pages,
    elements: usize,
}

impl Triad {
    /// With the widest vectors of this processor.
    pub fn new(settings: TriadSettings) -> Result<Self, Error> {
        let loops = machine::all_here().into_iter().next();
        let loops = loops.ok_or_else(|| {
            Error::Internal("The kernel `triad` has no instructions for this processor".to_owned())
        })?;
        Ok(Self { settings, loops, arrays: None, repetitions: 0, notes: Vec::new() })
    }

    /// The vector instructions of the loops, for example `AVX2`.
    pub fn instructions(&self) -> &'static str {
        self.loops.instructions
    }
}

impl ScreenKernel for Triad {
    fn name(&self) -> &'static str {
        match self.settings.stores {
            Stores::Ordinary => "triad",
            Stores::NonTemporal => "triad-nt",
        }
    }

    fn measures(&self) -> &'static [Measure] {
        &MEASURES
    }

    fn prepare(&mut self, team: &Team) -> Result<(), Error> {
        self.arrays = None; // free the memory of an earlier call first
        let huge_pages = self.settings.huge_pages;
        let elements = elements_per_thread(self.settings.array_bytes, team.len())?;
        require_available((elements * team.len() * 3 * size_of::<f64>()) as u64, self.name())?;
        let arrays = team.create(move |_| Arrays::new(elements, huge_pages))?;
        let huge = team.with(&arrays, |_, arrays| Ok(arrays.pages.huge_pages_bytes()))?;
        self.notes = vec![format!(
            "{}: {} stores, 3 arrays of {}, {}",
            self.loops.instructions,
            if self.settings.stores == Stores::Ordinary { "ordinary" } else { "non-temporal" },
            size((elements * team.len() * size_of::<f64>()) as u64),
            in_huge_pages(huge.into_iter().sum())
        )];
        self.notes.extend(self.settings.note_of_caches());
        (self.arrays, self.repetitions) = (Some(arrays), 0);
        Ok(())
    }

    fn run(&mut self, team: &Team) -> Result<Repetition, Error> {
        let full = self.repetitions == MOST_REPETITIONS;
        if full {
            self.check(team)?;
        }
        let arrays = self.arrays.as_ref().ok_or_else(not_prepared)?;
        if full {
            team.with(arrays, |_, arrays| {
                arrays.fill();
                Ok(())
            })?;
            self.repetitions = 0;
        }
        let loops = match self.settings.stores {
            Stores::Ordinary => self.loops.ordinary,
            Stores::NonTemporal => self.loops.non_temporal,
        };
        let mut spans = Vec::new();
        for (operation, code) in loops.into_iter().enumerate() {
            let (_, one) = team.timed(arrays, move |arrays: &mut Arrays| arrays.run(operation, code))?;
            spans.push(one);
        }
        self.repetitions += 1;
        let elements = elements_per_thread(self.settings.array_bytes, team.len())? as u64;
        let value = |operation: usize, in_memory: bool| -> MeasureValue {
            let bytes = OPERATIONS[operation].bytes_per_element(self.settings.stores);
            let (measure, bytes) = match in_memory {
                false => (OPERATIONS[operation].rate, bytes.stream),
                true => (OPERATIONS[operation].memory_rate, bytes.memory),
            };
            rate(measure, (bytes * elements) as f64, &spans[operation])
        };
        let values =
            [false, true].into_iter().flat_map(|in_memory| REPORTED.map(|one| value(one, in_memory)));
        Ok(Repetition { elapsed_ns: Span::of_all(&spans.concat()).elapsed_ns(), values: values.collect() })
    }

    fn check(&mut self, team: &Team) -> Result<(), Error> {
        let arrays = self.arrays.as_ref().ok_or_else(not_prepared)?;
        let expected = Expected::after(self.repetitions);
        team.with(arrays, move |member, arrays| {
            arrays.check(&expected, member.hardware_thread).map_err(Error::from)
        })?;
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

fn not_prepared() -> Error {
    Error::Internal("triad ran before it was prepared".to_owned())
}

fn elements_per_thread(array_bytes: u64, threads: usize) -> Result<usize, Error> {
    let step = (STEP * size_of::<f64>() * threads) as u64;
    let steps =
        usize::try_from(array_bytes / step).ok().filter(|steps| (1..usize::MAX >> 16).contains(steps));
    steps.map(|steps| steps * STEP).ok_or_else(|| {
        Error::Setting(format!("triad cannot use arrays of {array_bytes} bytes; use at least {step} bytes"))
    })
}

/// The start value of element `at % PERIOD` of the array a.
fn start_value(place: usize) -> f64 {
    1.0 + place as f64 / 1024.0
}

impl Arrays {
    fn new(elements: usize, huge_pages: bool) -> Result<Self, Error> {
        let bytes = (3 * elements + 2 * GAP_ELEMENTS) * size_of::<f64>();
        let mut arrays = Self { pages: Pages::map(bytes, huge_pages)?, elements };
        arrays.fill();
        Ok(arrays)
    }

    /// The arrays a, b and c.
    fn all(&mut self) -> [&mut [f64]; 3] {
        let (a, rest) = self.pages.words::<f64>().split_at_mut(self.elements);
        let (b, rest) = rest[GAP_ELEMENTS..].split_at_mut(self.elements);
        [a, b, &mut rest[GAP_ELEMENTS..]]
    }

    /// Start values: those of [`start_value`] in a, 2 in b, 0 in c.
    fn fill(&mut self) {
        let values: Vec<f64> = (0..PERIOD).map(start_value).collect();
        let [a, b, c] = self.all();
        a.chunks_mut(PERIOD).for_each(|part| part.copy_from_slice(&values[..part.len()]));
        b.fill(2.0);
        c.fill(0.0);
    }

    fn run(&mut self, operation: usize, code: Loop) {
        let elements = self.elements;
        let [a, b, c] = self.all().map(<[f64]>::as_mut_ptr);
        let (to, from, and) = match operation {
            0 => (c, a, a),
            1 => (b, c, c),
            2 => (c, a, b),
            _ => (a, b, c),
        };
        // SAFETY: the arrays have this many elements, a multiple of STEP and not 0, at multiples of 64 bytes; `to` is
        // not one of the others; the processor has the instructions.
        unsafe { code(elements, to, from, and, SCALAR) }
    }

    fn check(&mut self, expected: &Expected, hardware_thread: u32) -> Result<(), Wrong> {
        let (mut first, mut wrong_count) = (None, 0);
        for ((name, array), values) in ["a", "b", "c"].into_iter().zip(self.all()).zip(&expected.0) {
            for (part, start) in array.chunks(PERIOD).zip((0..).step_by(PERIOD)) {
                let differ = |(found, value): &(&f64, &f64)| found.to_bits() != value.to_bits();
                let count = part.iter().zip(values).filter(differ).count() as u64;
                wrong_count += count;
                if count > 0 && first.is_none() {
                    let at = part.iter().zip(values).position(|pair| differ(&pair));
                    first = at.map(|at| (name, start + at as u64, values[at], part[at]));
                }
            }
        }
        let Some((name, element, expected, found)) = first else { return Ok(()) };
        let (expected, found, of) =
            (double(expected), double(found), format!("the thread's part of array {name}"));
        Err(Wrong { hardware_thread, of, element, expected, found, wrong_count })
    }
}

/// The expected elements of a, b and c, by their place in the period.
struct Expected([Vec<f64>; 3]);

impl Expected {
    /// STREAM computes the expected values in this way, for one element.
    fn after(repetitions: u32) -> Self {
        let mut expected = [Vec::new(), Vec::new(), Vec::new()];
        for place in 0..PERIOD {
            let (mut a, mut b, mut c) = (start_value(place), 2.0, 0.0);
            for _ in 0..repetitions {
                c = a;
                b = SCALAR * c;
                c = a + b;
                a = b + SCALAR * c;
            }
            [a, b, c].into_iter().zip(&mut expected).for_each(|(value, values)| values.push(value));
        }
        Self(expected)
    }
}

#[cfg(test)]
mod tests;
