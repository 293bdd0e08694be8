//! Events that an Arm processor lacks, but that the Linux kernel opens.
//!
//! The registers PMCEID0_EL0 and PMCEID1_EL0 list the architectural events that a processor counts (Arm
//! Architecture Reference Manual, "The Performance Monitors Extension"). If an event has one of the Linux kernel's
//! own names, the Linux kernel checks these registers. It does not check them for a raw code: such an event opens,
//! but always reads 0. In sysfs, a PMU lists only those of its named events that the registers have.

use super::event::{Encoding, kind};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::OnceLock;

/// Codes of the architecture that PMCEID0 and PMCEID1 cover.
const COMMON: RangeInclusive<u64> = 0x01..=0x3f;
/// Every kernel with these sysfs files names all codes up to this one. Later kernels name more: a kernel that names
/// a higher code also names all codes below it.
const ALWAYS_NAMED: u64 = 0x30;
/// CHAIN: the processor has it, but only the kernel uses it.
const CHAIN: u64 = 0x1e;
/// Bits of an event's code (`format/event` in sysfs).
const CODE: u64 = 0xffff;

/// The Arm PMUs of a machine's cores.
#[derive(Clone, Debug, Default)]
pub struct Processor(Vec<Pmu>);

/// The PMU of one kind of core, and the codes of its events.
#[derive(Clone, Debug)]
struct Pmu {
    kind: u32,
    codes: BTreeSet<u64>,
}

/// True for an event that always reads 0 on this machine.
pub fn lacks(encoding: Encoding) -> bool {
    static THIS: OnceLock<Processor> = OnceLock::new();
    let may_lack = cfg!(target_arch = "aarch64") && encoding.kind >= kind::RAW;
    may_lack
        && THIS.get_or_init(|| Processor::read(Path::new("/sys/bus/event_source/devices"))).lacks(encoding)
}

impl Processor {
    /// Reads sysfs. Skips a PMU that names no event: what it lacks is unknown.
    pub fn read(devices: &Path) -> Self {
        let folders = std::fs::read_dir(devices).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_core = |name: &str| ["armv8", "armv9"].iter().any(|start| name.starts_with(start));
        let folders =
            folders.filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_core));
        let pmu = |path: std::path::PathBuf| {
            let kind = std::fs::read_to_string(path.join("type")).ok()?.trim().parse().ok()?;
            let events = std::fs::read_dir(path.join("events")).ok()?.flatten();
            let texts = events.filter_map(|event| std::fs::read_to_string(event.path()).ok());
            Some(Pmu { kind, codes: texts.filter_map(|text| code(&text)).collect() })
        };
        Self(folders.filter_map(pmu).filter(|pmu| !pmu.codes.is_empty()).collect())
    }

    /// True for an event that opens but never counts.
    pub fn lacks(&self, encoding: Encoding) -> bool {
        let code = encoding.config[0] & CODE;
        let mut counting =
            self.0.iter().filter(|pmu| [kind::RAW, pmu.kind].contains(&encoding.kind)).peekable();
        let may_lack = counting.peek().is_some() && COMMON.contains(&code) && code != CHAIN;
        may_lack && !counting.any(|pmu| pmu.codes.contains(&code) || !pmu.would_name(code))
    }
}

impl Pmu {
    fn would_name(&self, code: u64) -> bool {
        code <= ALWAYS_NAMED || self.codes.last().is_some_and(|last| *last > code && COMMON.contains(last))
    }
}

/// Parses "event=0x0011".
fn code(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim().strip_prefix("event=0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const PMU: u32 = 8;

    fn of_processor(codes: &[u64]) -> Processor {
        Processor(vec![Pmu { kind: PMU, codes: codes.iter().copied().collect() }])
    }

    #[test]
    fn what_sysfs_does_not_name_is_lacking_where_it_would_name_it() {
        let processor = of_processor(&[0x08, 0x11]);
        for kind in [kind::RAW, PMU] {
            for (code, lacking) in [
                (0x08, false),
                (0x11, false),
                (0x21, true),
                (0x06, true),
                (0x00, false),
                // CHAIN, a vendor's event, a code that older kernels do not name, and a code outside `COMMON`.
                (0x1e, false),
                (0xc3, false),
                (0x3a, false),
                (0x4024, false),
            ] {
                assert_eq!(processor.lacks(Encoding::new(kind, code)), lacking, "{kind} {code:#x}");
            }
        }
        // A kernel that names 0x3f also names 0x3a.
        assert!(of_processor(&[0x08, 0x3f]).lacks(Encoding::new(PMU, 0x3a)));
        // Another PMU, and a kernel that names nothing.
        assert!(!processor.lacks(Encoding::new(9, 0x21)));
        assert!(!Processor::default().lacks(Encoding::new(kind::RAW, 0x21)));
    }

    #[test]
    fn sysfs_says_what_a_processor_counts() {
        let root = TempDir::with_prefix("test-arm-").unwrap();
        let root = root.path();
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("armv8_pmuv3_0/type", "8\n");
        put("armv8_pmuv3_0/events/inst_retired", "event=0x0008\n");
        put("armv8_pmuv3_0/events/odd", "x=y\n");
        put("armv8_cortex_a53/type", "9\n");
        put("software/type", "1\n");
        put("software/events/x", "event=0x0021\n");
        let Processor(pmus) = Processor::read(root);
        assert_eq!((pmus.len(), pmus[0].kind), (1, 8), "{pmus:?}");
        assert_eq!(pmus[0].codes, BTreeSet::from([8]));
    }
}
