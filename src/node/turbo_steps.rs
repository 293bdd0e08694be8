//! Turbo steps: how fast the cores of a socket may run, by the number of active cores.
//!
//! "With Turbo mode enabled, Intel processors will change their frequency based on how many cores are active"
//! (McCalpin, Comments on timing short code sections, 2018). Intel's processors have the steps in registers, which only
//! root may read (Linux's module msr). Which register means what: Intel SDM volume 4, MSR_TURBO_RATIO_LIMIT; Linux,
//! tools/power/x86/turbostat, trl_msrs of each processor.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::str::FromStr;

/// MSR_TURBO_RATIO_LIMIT, MSR_TURBO_RATIO_LIMIT1 and MSR_TURBO_RATIO_LIMIT2.
const LIMIT: u64 = 0x1ad;
const LIMIT1: u64 = 0x1ae;
const LIMIT2: u64 = 0x1af;

/// Active cores of a socket and their highest frequency (Hz); more cores with each step. Without wide vector
/// instructions: those have lower steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurboSteps(Vec<(u32, u64)>);

/// What the registers of a processor mean.
#[derive(Clone, Copy)]
struct Registers {
    layout: Layout,
    /// The clock that the ratios multiply.
    bus_hz: f64,
}

#[derive(Clone, Copy)]
enum Layout {
    /// Each byte is the ratio for one more active core; so many registers have such bytes.
    PerCore(&'static [u64]),
    /// The second register has the number of cores for each ratio of the first register.
    Groups,
}

impl Registers {
    /// `read` gives the bytes of the register at an address, the lowest first.
    fn steps(self, read: impl Fn(u64) -> Option<[u8; 8]>) -> Option<TurboSteps> {
        let steps: Vec<(u32, u8)> = match self.layout {
            Layout::Groups => read(LIMIT1)?.map(u32::from).into_iter().zip(read(LIMIT)?).collect(),
            Layout::PerCore(addresses) => {
                let ratios: Option<Vec<[u8; 8]>> = addresses.iter().map(|at| read(*at)).collect();
                (1..).zip(ratios?.into_iter().flatten()).collect()
            }
        };
        let hz = |ratio: u8| (f64::from(ratio) * self.bus_hz) as u64;
        let known = steps.into_iter().filter(|(cores, ratio)| *cores > 0 && *ratio > 0);
        TurboSteps::new(known.map(|(cores, ratio)| (cores, hz(ratio))).collect())
    }
}

impl TurboSteps {
    /// Those of the first hardware thread's socket, below `root` (normally "/"). `None` if the processor shows none, or
    /// if this process may not read them.
    pub fn read(root: &Path, vendor: &str, family: u32, model: u32) -> Option<Self> {
        let registers = registers_of(vendor, family, model)?;
        let file = File::open(root.join("dev/cpu/0/msr")).ok()?;
        registers.steps(|address| {
            let mut word = [0; 8];
            file.read_exact_at(&mut word, address).ok()?;
            Some(u64::from_ne_bytes(word).to_le_bytes())
        })
    }

    /// `None` if there are none, or if they contradict one another: more cores are never faster.
    fn new(mut steps: Vec<(u32, u64)>) -> Option<Self> {
        let is_order = steps.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1);
        // One step for each run of equal frequencies: the one with the most cores.
        steps.reverse();
        steps.dedup_by_key(|(_, hz)| *hz);
        steps.reverse();
        (!steps.is_empty() && is_order).then_some(Self(steps))
    }

    /// The highest frequency of so many active cores of a socket (Hz). `None` for more cores than the registers know.
    pub fn of(&self, active_cores: u32) -> Option<u64> {
        self.0.iter().find(|(cores, _)| *cores >= active_cores).map(|(_, hz)| *hz)
    }
}

fn registers_of(vendor: &str, family: u32, model: u32) -> Option<Registers> {
    if (vendor, family) != ("GenuineIntel", 6) {
        return None;
    }
    let per_core = |registers, bus_hz| Registers { layout: Layout::PerCore(registers), bus_hz };
    match model {
        // Nehalem and Westmere; those of the EX line have no such register.
        0x1a | 0x1e | 0x1f | 0x25 | 0x2c => Some(per_core(&[LIMIT], 400e6 / 3.0)),
        // Sandy Bridge, Ivy Bridge and Haswell (client), Broadwell: the first eight cores.
        0x2a | 0x2d | 0x3a | 0x3c | 0x45 | 0x46 | 0x3d | 0x47 | 0x4f | 0x56 => {
            Some(per_core(&[LIMIT], 100e6))
        }
        // Ivy Bridge-EP
        0x3e => Some(per_core(&[LIMIT, LIMIT1], 100e6)),
        // Haswell-EP
        0x3f => Some(per_core(&[LIMIT, LIMIT1, LIMIT2], 100e6)),
        // Skylake-SP, Ice Lake-SP, Sapphire Rapids, Emerald Rapids
        0x55 | 0x6a | 0x6c | 0x8f | 0xcf => Some(Registers { layout: Layout::Groups, bus_hz: 100e6 }),
        _ => None,
    }
}

/// For example "2: 3.70 GHz, 4: 3.50 GHz".
impl fmt::Display for TurboSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (cores, hz)) in self.0.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{cores}: {:.2} GHz", *hz as f64 / 1e9)?;
        }
        Ok(())
    }
}

/// The text of a fact is not as steps are displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTurboSteps;

impl FromStr for TurboSteps {
    type Err = NoTurboSteps;

    fn from_str(text: &str) -> Result<Self, NoTurboSteps> {
        let step = |step: &str| {
            let (cores, ghz) = step.strip_suffix(" GHz")?.split_once(": ")?;
            let ghz: f64 = ghz.parse().ok().filter(|ghz| (0.1..100.0).contains(ghz))?;
            Some((cores.parse().ok()?, (ghz * 1e9).round() as u64))
        };
        let steps: Option<Vec<(u32, u64)>> = text.split(", ").map(step).collect();
        steps.and_then(Self::new).ok_or(NoTurboSteps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(model: u32, registers: &[(u64, [u8; 8])]) -> Option<TurboSteps> {
        let read = |address| registers.iter().find(|(at, _)| *at == address).map(|(_, bytes)| *bytes);
        registers_of("GenuineIntel", 6, model)?.steps(read)
    }

    #[test]
    fn skylake_has_groups_of_cores() {
        let ratios = [37, 35, 34, 34, 31, 28, 28, 28];
        let cores = [2, 4, 8, 12, 16, 20, 24, 28];
        let steps = steps(0x55, &[(LIMIT1, cores), (LIMIT, ratios)]).unwrap();
        assert_eq!(steps.to_string(), "2: 3.70 GHz, 4: 3.50 GHz, 12: 3.40 GHz, 16: 3.10 GHz, 28: 2.80 GHz");
        let of = |cores| steps.of(cores);
        assert_eq!([of(1), of(2), of(3)], [Some(3_700_000_000), Some(3_700_000_000), Some(3_500_000_000)]);
        assert_eq!([of(12), of(24), of(29)], [Some(3_400_000_000), Some(2_800_000_000), None]);
        assert_eq!(steps.to_string().parse(), Ok(steps));
    }

    #[test]
    fn older_processors_have_a_byte_per_core() {
        let sandy_bridge = steps(0x2d, &[(LIMIT, [35, 35, 34, 32, 32, 32, 31, 31])]).unwrap();
        assert_eq!(sandy_bridge.to_string(), "2: 3.50 GHz, 3: 3.40 GHz, 6: 3.20 GHz, 8: 3.10 GHz");
        // A core more than the register knows.
        assert_eq!(sandy_bridge.of(9), None);
        let ten = [(LIMIT, [34; 8]), (LIMIT1, [33, 33, 0, 0, 0, 0, 0, 0])];
        assert_eq!(steps(0x3e, &ten).unwrap().to_string(), "8: 3.40 GHz, 10: 3.30 GHz");
        // Nehalem's bus has 133 MHz.
        let nehalem = steps(0x1a, &[(LIMIT, [24, 23, 23, 23, 0, 0, 0, 0])]).unwrap();
        assert_eq!(nehalem.to_string(), "1: 3.20 GHz, 4: 3.07 GHz");
    }

    #[test]
    fn the_register_is_read_at_its_address() {
        let root = std::env::temp_dir().join(format!("turbo-{}", std::process::id()));
        std::fs::create_dir_all(root.join("dev/cpu/0")).unwrap();
        let file = File::create(root.join("dev/cpu/0/msr")).unwrap();
        file.write_all_at(&[36; 8], LIMIT).unwrap();
        let steps = |vendor, family| TurboSteps::read(&root, vendor, family, 0x2d);
        assert_eq!(steps("GenuineIntel", 6).unwrap().to_string(), "8: 3.60 GHz");
        assert_eq!(steps("AuthenticAMD", 0x19), None);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(steps("GenuineIntel", 6), None);
    }

    #[test]
    fn nothing_is_known_of_other_processors_or_of_contradictions() {
        let some = [(LIMIT, [30; 8])];
        assert_eq!(steps(0x57, &some), None);
        assert_eq!(steps(0x3f, &some), None); // a register is missing
        // More cores that are faster, no ratio at all, and a text of something else.
        assert_eq!(steps(0x2d, &[(LIMIT, [30, 31, 0, 0, 0, 0, 0, 0])]), None);
        assert_eq!(steps(0x2d, &[(LIMIT, [0; 8])]), None);
        for text in ["", "2", "2: x GHz", "2: 3.70 GHz, 1: 3.50 GHz", "2: 1e300 GHz", "-1: 3 GHz"] {
            assert_eq!(text.parse::<TurboSteps>(), Err(NoTurboSteps), "{text}");
        }
    }
}
