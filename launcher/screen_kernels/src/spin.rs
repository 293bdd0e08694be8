//! Noise of the operating system, as the benchmark FWQ (fixed work quanta) measures it.
//!
//! Each thread repeats the same short work (a quantum), and reads the clock after each quantum. A quantum that takes
//! longer than the median quantum by more than a threshold contains a detour: an interrupt, another process, a stop
//! of the processor. FWQ compares with the shortest quantum. This kernel compares with the median, so that a change
//! of the frequency does not look like detours. The time of the median quantum itself shows a slow core.

use crate::error::{Error, Wrong};
use crate::kernel::{Measure, MeasureValue, Repetition, ScreenKernel};
use crate::pages::Pages;
use crate::team::{PerThread, Span, Team, now_ns};
use std::arch::naked_asm;

/// A trip of the loop has this many steps, so that the loop counter costs almost no time.
const STEPS_PER_TRIP: u64 = 16;
/// x = x MULTIPLIER + ADDEND (Knuth's MMIX), modulo 2^64. No step forgets an earlier error, because two different
/// numbers never have the same successor.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
const ADDEND: u64 = 1_442_695_040_888_963_407;

const MEASURES: [Measure; 4] = [
    Measure { name: "noise", unit: "%", larger_is_better: false },
    Measure { name: "detours", unit: "1/s", larger_is_better: false },
    Measure { name: "longest-detour", unit: "us", larger_is_better: false },
    Measure { name: "quantum", unit: "us", larger_is_better: false },
];

/// Settings of [`Spin`].
#[derive(Clone, Copy, Debug)]
pub struct SpinSettings {
    /// Steps of a quantum; each step takes about 4 cycles. The kernel rounds up to a multiple of 16.
    pub steps: u64,
    /// Quanta in a repetition.
    pub quanta: u32,
    /// A quantum has a detour if it takes longer than the median quantum by more than this.
    pub threshold_ns: u64,
}

impl Default for SpinSettings {
    /// Quanta of about 10 us, for about 1 s.
    fn default() -> Self {
        Self { steps: 8192, quanta: 100_000, threshold_ns: 1000 }
    }
}

/// Noise of the operating system.
pub struct Spin {
    settings: SpinSettings,
    trips: u64,
    threads: Option<PerThread<Quanta>>,
}

/// The times of one thread.
struct Quanta {
    /// When the first quantum starts, and when each quantum ends.
    stamps: Pages,
    number: u64,
}

/// The results from the times of one thread.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Noise {
    /// The time of all detours divided by the time of all quanta.
    share: f64,
    detours: u64,
    longest_ns: u64,
    median_ns: u64,
    all_ns: u64,
}

impl Spin {
    /// Refuses a repetition without work.
    pub fn new(settings: SpinSettings) -> Result<Self, Error> {
        let trips = settings.steps.div_ceil(STEPS_PER_TRIP);
        if trips == 0 || settings.quanta == 0 {
            return Err(Error::Setting("spin needs at least 1 quantum of at least 1 step".to_owned()));
        }
        Ok(Self { settings, trips, threads: None })
    }
}

impl ScreenKernel for Spin {
    fn name(&self) -> &'static str {
        "spin"
    }

    fn measures(&self) -> &'static [Measure] {
        &MEASURES
    }

    fn prepare(&mut self, team: &Team) -> Result<(), Error> {
        let quanta = self.settings.quanta as usize;
        self.threads = Some(team.create(move |member| {
            let mut stamps = Pages::map((quanta + 1) * size_of::<u64>(), true)?;
            stamps.words::<u64>().fill(0); // a page fault would be a detour
            Ok(Quanta { stamps, number: member.number as u64 })
        })?);
        Ok(())
    }

    fn run(&mut self, team: &Team) -> Result<Repetition, Error> {
        let threads = self.threads.as_ref().ok_or_else(not_prepared)?;
        let (trips, threshold_ns) = (self.trips, self.settings.threshold_ns);
        let (numbers, spans) = team.timed(threads, move |quanta: &mut Quanta| quanta.run(trips))?;
        let steps = trips * STEPS_PER_TRIP;
        let noises = team.with(threads, move |member, quanta| {
            quanta.check(numbers[member.number], steps, member.hardware_thread)?;
            Ok(noise(quanta.stamps.words::<u64>(), threshold_ns))
        })?;
        let per_second = |noise: &Noise| noise.detours as f64 * 1e9 / noise.all_ns.max(1) as f64;
        let threads: [Vec<f64>; 4] = [
            noises.iter().map(|noise| 100.0 * noise.share).collect(),
            noises.iter().map(per_second).collect(),
            noises.iter().map(|noise| noise.longest_ns as f64 / 1e3).collect(),
            noises.iter().map(|noise| noise.median_ns as f64 / 1e3).collect(),
        ];
        let (sum, most) =
            (|of: &[f64]| of.iter().sum::<f64>(), |of: &[f64]| of.iter().copied().fold(0.0, f64::max));
        let [share, detours, longest, quantum] = &threads;
        let nodes = [sum(share) / share.len() as f64, sum(detours), most(longest), most(quantum)];
        let values = MEASURES.into_iter().zip(nodes).zip(threads);
        let values = values.map(|((measure, node), threads)| MeasureValue { measure, node, threads });
        Ok(Repetition { elapsed_ns: Span::of_all(&spans).elapsed_ns(), values: values.collect() })
    }

    /// [`ScreenKernel::run`] has checked each repetition.
    fn check(&mut self, _team: &Team) -> Result<(), Error> {
        self.threads.as_ref().map(|_| ()).ok_or_else(not_prepared)
    }

    fn notes(&self) -> Vec<String> {
        let SpinSettings { quanta, threshold_ns, .. } = self.settings;
        let steps = self.trips * STEPS_PER_TRIP;
        vec![format!(
            "{quanta} quanta (repetitions of a fixed loop) of {steps} steps; a quantum has a detour if it takes more than \
             {threshold_ns} ns longer than the median quantum"
        )]
    }
}

fn not_prepared() -> Error {
    Error::Internal("spin ran before it was prepared".to_owned())
}

impl Quanta {
    /// Returns the last number.
    fn run(&mut self, trips: u64) -> u64 {
        let mut number = self.number;
        let (first, ends) = self.stamps.words::<u64>().split_at_mut(1);
        first[0] = now_ns();
        for end in ends {
            // SAFETY: it only computes.
            number = unsafe { work(trips, number, MULTIPLIER, ADDEND) };
            *end = now_ns();
        }
        number
    }

    fn check(&mut self, found: u64, steps: u64, hardware_thread: u32) -> Result<(), Wrong> {
        let quanta = self.stamps.words::<u64>().len() as u64 - 1;
        let expected = after(self.number, steps.wrapping_mul(quanta));
        if found == expected {
            return Ok(());
        }
        let (expected, found) = (format!("0x{expected:x}"), format!("0x{found:x}"));
        let (of, element) = ("the results of the repetitions of the fixed loop".to_owned(), quanta - 1);
        Err(Wrong { hardware_thread, of, element, expected, found, wrong_count: 1 })
    }
}

/// The number `steps` steps after `number`. This function uses squaring, so it shares no code with the loop.
fn after(number: u64, mut steps: u64) -> u64 {
    let (mut multiplier, mut addend) = (MULTIPLIER, ADDEND);
    let (mut all_multiplier, mut all_addend) = (1u64, 0u64);
    while steps > 0 {
        if steps & 1 == 1 {
            all_addend = all_addend.wrapping_mul(multiplier).wrapping_add(addend);
            all_multiplier = all_multiplier.wrapping_mul(multiplier);
        }
        addend = addend.wrapping_mul(multiplier).wrapping_add(addend);
        multiplier = multiplier.wrapping_mul(multiplier);
        steps >>= 1;
    }
    number.wrapping_mul(all_multiplier).wrapping_add(all_addend)
}

/// The noise of one thread, from at least two stamps.
fn noise(stamps: &[u64], threshold_ns: u64) -> Noise {
    let mut quanta: Vec<u64> = stamps.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let all_ns: u64 = quanta.iter().sum();
    let middle = quanta.len() / 2;
    let (_, median, longer) = quanta.select_nth_unstable(middle);
    let median_ns = *median;
    // All detours are longer than the median.
    let detours = longer.iter().map(|quantum| quantum - median_ns).filter(|detour| *detour > threshold_ns);
    let (count, longest_ns, sum) =
        detours.fold((0, 0, 0), |(count, longest, sum), one| (count + 1, one.max(longest), sum + one));
    Noise { share: sum as f64 / all_ns.max(1) as f64, detours: count, longest_ns, median_ns, all_ns }
}

/// 16 steps per trip, each of which needs the one before it.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn work(_trips: u64, _number: u64, _multiplier: u64, _addend: u64) -> u64 {
    naked_asm!(
        "mov rax, rsi",
        ".p2align 6",
        "2:",
        ".rept 16",
        "imul rax, rdx",
        "add rax, rcx",
        ".endr",
        "dec rdi",
        "jnz 2b",
        "ret"
    )
}

/// 16 steps per trip, each of which needs the one before it.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn work(_trips: u64, _number: u64, _multiplier: u64, _addend: u64) -> u64 {
    naked_asm!(
        ".p2align 6",
        "2:",
        ".rept 16",
        "mul x1, x1, x2",
        "add x1, x1, x3",
        ".endr",
        "subs x0, x0, #1",
        "b.ne 2b",
        "mov x0, x1",
        "ret"
    )
}

#[cfg(test)]
mod tests;
