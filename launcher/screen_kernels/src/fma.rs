//! Peak floating-point speed: independent chains of multiply-adds.
//!
//! Each lane of each chain computes x = x x + c again and again. For these c the numbers stay between -2 and 2, and an
//! error grows with almost every step: one wrong bit changes the end completely. Only an error in the last bits of a
//! small x can vanish, if the next step rounds it away. The end after a fixed number of steps is the same on every
//! processor, and is known from a computation without vector instructions.

#[cfg(target_arch = "aarch64")]
#[path = "fma/aarch64.rs"]
mod machine;
#[cfg(target_arch = "x86_64")]
#[path = "fma/x86_64.rs"]
mod machine;

use crate::error::{Error, Wrong, double};
use crate::kernel::{Measure, Repetition, ScreenKernel, rate};
use crate::team::{PerThread, Span, Team};

const MEASURES: [Measure; 1] = [Measure { name: "fma", unit: "GFLOP/s", larger_is_better: true }];
/// Steps of each chain in a call; a multiple of [`TRIP_STEPS`].
const STEPS: u64 = 1 << 20;
/// Steps of each chain in a trip of the loop. A trip has two more instructions: one counts, and one jumps.
const TRIP_STEPS: u64 = 4;
const TRIP_INSTRUCTIONS: u64 = 2;
/// The longest vectors have this many doubles.
const MOST_LANES: usize = 8;
const MOST_CHAINS: usize = 16;
/// The start of each lane.
const STARTS: [f64; MOST_LANES] = [0.11, 0.12, 0.13, 0.14, 0.15, 0.16, 0.17, 0.18];
/// The addend c of each lane.
const ADDENDS: [f64; MOST_LANES] = [-1.91, -1.92, -1.93, -1.94, -1.95, -1.96, -1.97, -1.98];

/// How a processor rounds a multiply-add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rounding {
    /// Once.
    Fused,
    /// After the multiplication, and after the addition.
    #[cfg_attr(target_arch = "aarch64", allow(dead_code))]
    Split,
}

/// The chains for one kind of vector registers.
#[derive(Clone, Copy, Debug)]
struct Chains {
    instructions: &'static str,
    /// The arguments are the steps, [`STARTS`] and [`ADDENDS`], and the end of each lane of each chain.
    run: unsafe extern "C" fn(u64, *const f64, *mut f64),
    chains: usize,
    lanes: usize,
    /// Instructions of a chain's step.
    step_instructions: u64,
    rounding: Rounding,
}

/// Settings of [`Fma`].
#[derive(Clone, Copy, Debug)]
pub struct FmaSettings {
    /// Calls in a repetition; in each call, each chain has 2^20 steps.
    pub calls: u32,
}

impl Default for FmaSettings {
    fn default() -> Self {
        Self { calls: 30 }
    }
}

/// Peak floating-point speed.
pub struct Fma {
    settings: FmaSettings,
    chains: Chains,
    threads: Option<PerThread<()>>,
}

impl Fma {
    /// With the widest vectors of this processor.
    pub fn new(settings: FmaSettings) -> Result<Self, Error> {
        if settings.calls == 0 {
            return Err(Error::Setting("fma needs at least 1 call per repetition".to_owned()));
        }
        let chains = machine::all_here().into_iter().next();
        let chains = chains.ok_or_else(|| {
            Error::Internal("The kernel `fma` has no instructions for this processor".to_owned())
        })?;
        Ok(Self { settings, chains, threads: None })
    }

    /// The vector instructions of the chains, for example `AVX2`.
    pub fn instructions(&self) -> &'static str {
        self.chains.instructions
    }

    /// Multiply-add instructions of a thread in a repetition (with SSE2: pairs of a multiplication and an addition).
    pub fn instruction_count(&self) -> u64 {
        u64::from(self.settings.calls) * STEPS * self.chains.chains as u64
    }
}

impl ScreenKernel for Fma {
    fn name(&self) -> &'static str {
        "fma"
    }

    fn measures(&self) -> &'static [Measure] {
        &MEASURES
    }

    fn prepare(&mut self, team: &Team) -> Result<(), Error> {
        self.threads = Some(team.create(|_| Ok(()))?);
        Ok(())
    }

    fn run(&mut self, team: &Team) -> Result<Repetition, Error> {
        let threads = self.threads.as_ref();
        let threads = threads.ok_or_else(|| Error::Internal("fma ran before it was prepared".to_owned()))?;
        let (chains, calls) = (self.chains, self.settings.calls);
        // The check of a call takes less than 0.01 % of the call's time.
        let work = move |_: &mut ()| (0..calls).find_map(|_| chains.first_wrong(&chains.ends(STEPS)));
        let (wrong, spans) = team.timed(threads, work)?;
        for (wrong, hardware_thread) in wrong.into_iter().zip(team.hardware_threads()) {
            if let Some(wrong) = wrong {
                return Err(Wrong { hardware_thread: *hardware_thread, ..wrong }.into());
            }
        }
        let operations = 2 * self.instruction_count() * self.chains.lanes as u64;
        let value = rate(MEASURES[0], operations as f64, &spans);
        Ok(Repetition { elapsed_ns: Span::of_all(&spans).elapsed_ns(), values: vec![value] })
    }

    /// [`ScreenKernel::run`] has checked each call.
    fn check(&mut self, _team: &Team) -> Result<(), Error> {
        Ok(())
    }

    fn expected_instructions(&self) -> Option<u64> {
        let trips = u64::from(self.settings.calls) * (STEPS / TRIP_STEPS);
        Some(self.instruction_count() * self.chains.step_instructions + trips * TRIP_INSTRUCTIONS)
    }

    fn notes(&self) -> Vec<String> {
        let Chains { instructions, chains, .. } = self.chains;
        vec![format!(
            "{instructions}: {chains} dependency chains per thread, {} multiply-adds per thread and repetition",
            self.instruction_count()
        )]
    }
}

/// The end of each lane of each chain.
type Ends = [f64; MOST_CHAINS * MOST_LANES];

impl Chains {
    fn ends(&self, steps: u64) -> Ends {
        let (constants, mut ends) = ([STARTS, ADDENDS], [0.0; MOST_CHAINS * MOST_LANES]);
        // SAFETY: the function reads 16 doubles, writes a vector per chain, and the processor has its instructions.
        unsafe { (self.run)(steps, constants.as_ptr().cast(), ends.as_mut_ptr()) };
        ends
    }

    /// The ends after [`STEPS`] steps.
    fn first_wrong(&self, ends: &Ends) -> Option<Wrong> {
        let expected = match self.rounding {
            Rounding::Fused => &ENDS_FUSED,
            Rounding::Split => &ENDS_SPLIT,
        };
        let used = &ends[..self.chains * self.lanes];
        let differs = |(at, end): &(usize, &f64)| end.to_bits() != expected[at % self.lanes];
        let (at, end) = used.iter().enumerate().find(differs)?;
        let wrong_count = used.iter().enumerate().filter(differs).count() as u64;
        let (of, element) =
            (format!("chain {} ({})", at / self.lanes, self.instructions), (at % self.lanes) as u64);
        let (expected, found) = (double(f64::from_bits(expected[at % self.lanes])), double(*end));
        Some(Wrong { hardware_thread: 0, of, element, expected, found, wrong_count })
    }
}

/// The bits of the ends of all lanes after [`STEPS`] steps; a test computes them one by one.
const ENDS_FUSED: [u64; MOST_LANES] = [
    0xbff3_de7e_0904_3711,
    0xbffa_a61e_de2c_6b25,
    0xbffc_cbc2_45fe_f6c0,
    0x3fe8_530b_509e_7e15,
    0x3ff4_9190_8801_649f,
    0x3ffc_c06a_1a7b_bced,
    0x3feb_2f11_e6ae_7542,
    0xbfef_d64e_f031_c795,
];
/// The same, without fused multiply-adds.
const ENDS_SPLIT: [u64; MOST_LANES] = [
    0xbff2_718f_0a32_1c0a,
    0xbffc_d490_85f5_fd24,
    0xbff9_2845_3799_b215,
    0x3feb_497d_e660_b190,
    0x3ffd_641b_0714_d407,
    0xbffd_eca0_979e_9bdf,
    0x3fc5_c393_a98b_8e88,
    0x3fe8_bd30_260f_01d8,
];

#[cfg(test)]
mod tests;
