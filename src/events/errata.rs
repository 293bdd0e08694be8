//! Known errata of events: a table made from the vendors' lists (docs/validate.md).
//!
//! The look-up uses an event's code, under whatever name the user asks for it. Microcode may correct an erratum,
//! and some errata hold only for some steppings; the lists do not show either. So an erratum is information, not a
//! verdict.

use pmmpi::counters::event::{Event, kind};
use pmmpi::node::Hardware;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::OnceLock;

/// Vendor, family, first and last model, perf's raw code, the vendor's name of the event, errata, effect, source.
/// Codes have only the bits that [`Maker::form`] keeps.
const TABLE: &str = include_str!("errata.csv");

/// A known error of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erratum {
    /// The vendor's numbers, separated by spaces.
    pub ids: &'static str,
    /// What goes wrong; empty if no document at hand describes it.
    pub effect: &'static str,
    /// The document that lists it.
    pub source: &'static str,
    /// The vendor's name of the event.
    pub name: &'static str,
}

impl fmt::Display for Erratum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ids, effect, .. } = self;
        if effect.is_empty() { write!(f, "{ids}") } else { write!(f, "{ids}: {effect}") }
    }
}

/// The known erratum of this event on this processor.
///
/// Compares raw codes, and events by the kernel's names by the codes to which the kernel maps them. An event with
/// modifiers (edge, any, inv, cmask) has the errata of the plain event, unless the table has a line for it. Ignores
/// extended configurations. Finds nothing for cache events, events of other PMUs and of a hybrid processor's
/// efficient cores.
pub fn of(hardware: &Hardware, event: &Event) -> Option<&'static Erratum> {
    let maker = Maker::of(hardware.cpu_vendor.as_deref()?)?;
    let (family, model) = (hardware.cpu_family?, hardware.cpu_model?);
    let [config, ..] = event.encoding.config;
    let code = match event.encoding.kind {
        // The processor's PMU has this number on x86; on a hybrid processor, the PMU of the performance cores has
        // it.
        kind::RAW => config,
        kind::HARDWARE => maker.generic(config)?,
        _ => return None,
    };
    let here = |row: &&ErrataLine| row.maker == maker && row.family == family && row.models.contains(&model);
    let find = |code: u64| rows().iter().filter(here).find(|row| row.code == code);
    find(maker.form(code)).or_else(|| find(maker.event(code))).map(|row| &row.erratum)
}

/// The vendor that defines the codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Intel,
    Amd,
}

/// One line of the table.
#[derive(Debug)]
struct ErrataLine {
    maker: Maker,
    family: u32,
    models: RangeInclusive<u32>,
    code: u64,
    erratum: Erratum,
}

impl Maker {
    fn of(vendor: &str) -> Option<Self> {
        match vendor {
            "GenuineIntel" => Some(Maker::Intel),
            "AuthenticAMD" => Some(Maker::Amd),
            _ => None,
        }
    }

    /// The bits of a code that the vendor's errata tell apart: event, unit mask, edge, any, inv, cmask; for AMD
    /// only the event, because its errata name no unit masks.
    fn form(self, code: u64) -> u64 {
        match self {
            Maker::Intel => code & 0xffa4_ffff,
            Maker::Amd => self.event(code),
        }
    }

    /// The same bits without modifiers.
    fn event(self, code: u64) -> u64 {
        match self {
            Maker::Intel => code & 0xffff,
            Maker::Amd => code & 0xf_0000_00ff,
        }
    }

    /// The code that the kernel counts for its own names: cycles, instructions, cache references and misses,
    /// branches and branch misses (arch/x86/events/intel/core.c, intel_perfmon_event_map; amd/core.c,
    /// amd_f17h_perfmon_event_map). On processors with several kinds of cores, the upper half of `config` is the
    /// PMU's number.
    fn generic(self, config: u64) -> Option<u64> {
        let codes: [u64; 6] = match self {
            Maker::Intel => [0x3c, 0xc0, 0x4f2e, 0x412e, 0xc4, 0xc5],
            Maker::Amd => [0x76, 0xc0, 0xff60, 0x0964, 0xc2, 0xc3],
        };
        let (pmu, id) = (config >> 32, config & 0xffff_ffff);
        let is_core = pmu == 0 || pmu == u64::from(kind::RAW);
        codes.get(usize::try_from(id).ok()?).copied().filter(|_| is_core)
    }
}

fn rows() -> &'static [ErrataLine] {
    static ROWS: OnceLock<Vec<ErrataLine>> = OnceLock::new();
    ROWS.get_or_init(|| TABLE.lines().skip(1).filter_map(row).collect())
}

fn row(line: &'static str) -> Option<ErrataLine> {
    let [vendor, family, first, last, code, name, ids, effect, source] =
        <[&'static str; 9]>::try_from(line.split(',').collect::<Vec<_>>()).ok()?;
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let short = |text: &str| u32::try_from(number(text)?).ok();
    Some(ErrataLine {
        maker: Maker::of(vendor)?,
        family: short(family)?,
        models: short(first)?..=short(last)?,
        code: number(code)?,
        erratum: Erratum { ids, effect, source, name },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmmpi::counters::event::Encoding;
    use proptest::prelude::*;

    fn processor(vendor: &str, family: u32, model: u32) -> Hardware {
        Hardware {
            cpu_vendor: Some(vendor.into()),
            cpu_family: Some(family),
            cpu_model: Some(model),
            ..Hardware::default()
        }
    }

    fn intel(model: u32) -> Hardware {
        processor("GenuineIntel", 6, model)
    }

    fn found(hardware: &Hardware, kind: u32, config: u64) -> Option<(&'static str, &'static str)> {
        let event = Event::counted("whatever", Encoding::new(kind, config));
        of(hardware, &event).map(|erratum| (erratum.name, erratum.ids))
    }

    #[test]
    fn every_line_is_understood() {
        assert_eq!(rows().len(), TABLE.lines().count() - 1);
        for (at, row) in rows().iter().enumerate() {
            let Erratum { ids, source, name, .. } = row.erratum;
            assert!(!ids.is_empty() && !source.is_empty() && !name.is_empty(), "{row:?}");
            assert!(row.models.start() <= row.models.end(), "{row:?}");
            assert_eq!(row.code, row.maker.form(row.code), "{row:?}");
            let same = |other: &ErrataLine| {
                (other.maker, other.family, other.code) == (row.maker, row.family, row.code)
                    && other.models.start() <= row.models.end()
                    && row.models.start() <= other.models.end()
            };
            assert!(!rows()[..at].iter().any(same), "{row:?}");
        }
    }

    #[test]
    fn makers_lists_are_found_by_code() {
        let (haswell, skylake) = (intel(0x3f), intel(0x55));
        let loads = found(&haswell, kind::RAW, 0x81d0);
        assert_eq!(loads, Some(("MEM_UOPS_RETIRED.ALL_LOADS", "HSD29 HSM30")));
        let instructions = Some(("INST_RETIRED.ANY_P", "SKL091 SKL044"));
        assert_eq!(found(&skylake, kind::RAW, 0xc0), instructions);
        assert_eq!(found(&skylake, kind::HARDWARE, 1), instructions);
        assert_eq!(found(&skylake, kind::HARDWARE, 4), Some(("BR_INST_RETIRED.ALL_BRANCHES", "SKL091")));
        assert_eq!(found(&skylake, kind::HARDWARE, 3), Some(("LONGEST_LAT_CACHE.MISS", "SKL057")));
        assert_eq!(found(&skylake, kind::HARDWARE, 0), None);
        let milan = processor("AuthenticAMD", 0x19, 0x01);
        assert_eq!(found(&milan, kind::HARDWARE, 1), Some(("ex_ret_instr", "1292")));
        assert_eq!(found(&milan, kind::HARDWARE, 4), Some(("ex_ret_brn", "1292")));
        assert_eq!(found(&milan, kind::RAW, 0x1_0000_02d0), Some(("ex_ret_fused_instr", "1292")));
        assert_eq!(found(&milan, kind::RAW, 0xd0), None);
    }

    #[test]
    fn another_processor_or_pmu_has_none() {
        for hardware in [intel(0x8f), processor("GenuineIntel", 0x12, 0x55), processor("0x41", 6, 0x55)] {
            assert_eq!(found(&hardware, kind::HARDWARE, 1), None, "{hardware:?}");
        }
        assert_eq!(found(&processor("AuthenticAMD", 0x19, 0x11), kind::RAW, 0xc0), None);
        assert_eq!(found(&Hardware::default(), kind::RAW, 0xc0), None);
        let skylake = intel(0x55);
        for kind in [kind::SOFTWARE, kind::TRACEPOINT, kind::CACHE, 10] {
            assert_eq!(found(&skylake, kind, 0xc0), None);
        }
        assert_eq!(found(&skylake, kind::HARDWARE, 1 | 4 << 32), found(&skylake, kind::RAW, 0xc0));
        assert_eq!(found(&skylake, kind::HARDWARE, 1 | 10 << 32), None);
    }

    #[test]
    fn a_modified_event_has_its_own_errata_or_the_plain_ones() {
        let haswell = intel(0x3c);
        let stalls = found(&haswell, kind::RAW, 0x0180_01b1).map(|(name, _)| name);
        assert_eq!(stalls, Some("UOPS_EXECUTED.STALL_CYCLES"));
        assert_eq!(found(&haswell, kind::RAW, 0x01b1), None);
        assert_eq!(found(&haswell, kind::RAW, 0x0400_019c), found(&haswell, kind::RAW, 0x019c));
    }

    #[test]
    fn an_erratum_is_said_with_its_effect_where_that_is_known() {
        let erratum = Erratum { ids: "1292", effect: "may overcount", source: "", name: "" };
        assert_eq!(erratum.to_string(), "1292: may overcount");
        assert_eq!(Erratum { effect: "", ..erratum }.to_string(), "1292");
    }

    proptest! {
        #[test]
        fn any_code_of_any_processor_is_looked_up(
            vendor in prop::sample::select(vec!["GenuineIntel", "AuthenticAMD", "", "0x41"]),
            [family, model, kind] in prop::array::uniform3(any::<u32>()),
            config: u64,
        ) {
            let hardware = processor(vendor, family, model);
            found(&hardware, kind, config);
            found(&hardware, kind % 5, config);
            // Bits that do not select an event (user and kernel mode, interrupts) change nothing.
            let skylake = intel(0x55);
            let code = config & 0xffff;
            let modes = config & 0x0013_0000;
            prop_assert_eq!(found(&skylake, kind::RAW, code | modes), found(&skylake, kind::RAW, code));
        }
    }
}
