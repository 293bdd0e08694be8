//! Which event of this machine each name stands for.

use pmmpi::counters::default;
use pmmpi::counters::errata;
use pmmpi::counters::event::{Encoding, Event, kind};
use pmmpi::node::Hardware;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Events of one group: as many as any processor counts at once, with the NMI watchdog on.
pub const GROUP_EVENTS: usize = 3;

/// Of a processor's own events, by its maker's name: event, vendor, family, first and last model, perf's raw code.
const VENDORS: &str = include_str!("vendors.csv");

// linux/perf_event.h: perf_hw_id, and the caches' id | operation << 8 | result << 16.
const GENERIC: [(&str, u32, u64); 5] = [
    ("branches", kind::HARDWARE, 4),
    ("branch-misses", kind::HARDWARE, 5),
    ("L1-dcache-loads", kind::CACHE, 0),
    ("L1-dcache-stores", kind::CACHE, 0x100),
    ("L1-dcache-load-misses", kind::CACHE, 0x1_0000),
];

/// What sysfs calls the event that the kernel maps its own name to: on x86 by that name, on Arm by the architecture's
/// (drivers/perf/arm_pmuv3.c, armv8_pmuv3_perf_map; of two the first that is there).
const ALIASES: [(&str, &[&str]); 4] = [
    ("cycles", &["cpu-cycles", "cpu_cycles"]),
    ("instructions", &["instructions", "inst_retired"]),
    ("branches", &["branch-instructions", "pc_write_retired", "br_retired"]),
    ("branch-misses", &["branch-misses", "br_mis_pred"]),
];

/// The msr PMU's.
const TSC: &str = "tsc";

/// Events that have a name here.
pub struct Known {
    events: Vec<Event>,
    hardware: Hardware,
    root: PathBuf,
}

/// What a name stands for (step 2 of the procedure).
#[derive(Clone, Debug, Serialize)]
pub struct Mapping {
    pub event: String,
    /// attr.type
    pub kind: u32,
    /// attr.config
    pub config: String,
    /// The processor's own code, where the kernel shows it; who maps it, where it does not.
    pub stands_for: String,
    /// What the maker knows to be wrong with it on this processor (step 4).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errata: Vec<String>,
    /// Whose `config` is, where `kind` is another one after each boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmu: Option<String>,
    /// The name of this part of the event, where `--group` counts it under one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_as: Option<String>,
}

impl Known {
    /// On this processor.
    pub fn new(hardware: &Hardware, root: &Path) -> Self {
        let generic = GENERIC.map(|(name, kind, config)| Event::counted(name, Encoding::new(kind, config)));
        let vendors = VENDORS.lines().skip(1).filter_map(|line| vendor_event(line, hardware));
        let tsc = tsc_event(root);
        let events = default::groups().into_iter().flatten().chain(generic).chain(vendors).chain(tsc);
        Self { events: events.collect(), hardware: hardware.clone(), root: root.to_owned() }
    }

    /// By its name.
    pub fn find(&self, name: &str) -> Option<Event> {
        self.events.iter().find(|event| event.name == name).cloned()
    }

    /// Events of one of these may share a group.
    pub fn pmu(&self, event: &Event) -> u32 {
        match event.encoding.kind {
            kind::CACHE | kind::RAW => kind::HARDWARE,
            kind => kind,
        }
    }

    /// What each name stands for.
    pub fn mappings(&self) -> Vec<Mapping> {
        let mapping = |event: &Event| Mapping {
            event: event.name.clone(),
            kind: event.encoding.kind,
            config: format!("{:#x}", event.encoding.config[0]),
            stands_for: self.stands_for(event),
            errata: errata::of(&self.hardware, event).iter().map(ToString::to_string).collect(),
            pmu: (event.name == TSC).then(|| "msr".to_owned()),
            counted_as: None,
        };
        self.events.iter().map(mapping).collect()
    }

    fn stands_for(&self, event: &Event) -> String {
        let kind = event.encoding.kind;
        let alias = ALIASES.iter().find(|(name, _)| *name == event.name.trim_end_matches("_kernel"));
        let code = alias.filter(|_| kind == kind::HARDWARE).and_then(|(_, aliases)| {
            // The processor's PMU is called cpu on x86, and after its kind elsewhere.
            let pmus = ["cpu", "armv8_pmuv3_0", "armv8_pmuv3"];
            let mut places = pmus.into_iter().flat_map(|pmu| aliases.iter().map(move |alias| (pmu, alias)));
            places.find_map(|(pmu, alias)| Some((pmu, self.sysfs(&format!("{pmu}/events/{alias}"))?)))
        });
        match (code, kind) {
            (Some((pmu, code)), _) => format!("{pmu}/{code}/"),
            (None, kind::SOFTWARE) => "the kernel's own count".to_owned(),
            (None, kind::RAW) => "the processor's own code".to_owned(),
            (None, kind::HARDWARE | kind::CACHE) => "as the kernel's driver maps it".to_owned(),
            (None, _) => "msr/tsc/".to_owned(),
        }
    }

    fn sysfs(&self, path: &str) -> Option<String> {
        read_sysfs(&self.root, path)
    }
}

fn read_sysfs(root: &Path, path: &str) -> Option<String> {
    let text = std::fs::read_to_string(root.join("sys/bus/event_source/devices").join(path)).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn tsc_event(root: &Path) -> Option<Event> {
    let kind = read_sysfs(root, "msr/type")?.parse().ok()?;
    let config = read_sysfs(root, "msr/events/tsc")?;
    let config = u64::from_str_radix(config.strip_prefix("event=0x")?, 16).ok()?;
    Some(Event::counted(TSC, Encoding::new(kind, config)))
}

fn vendor_event(line: &str, hardware: &Hardware) -> Option<Event> {
    let [name, vendor, family, first, last, code] =
        <[&str; 6]>::try_from(line.split(',').collect::<Vec<_>>()).ok()?;
    let number = |text: &str| text.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let is_this = hardware.cpu_vendor.as_deref() == Some(vendor)
        && hardware.cpu_family.map(u64::from) == number(family)
        && (number(first)?..=number(last)?).contains(&u64::from(hardware.cpu_model?));
    is_this.then_some(Event::counted(name, Encoding::new(kind::RAW, number(code)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processor(vendor: &str, family: u32, model: u32) -> Known {
        let hardware = Hardware {
            cpu_vendor: Some(vendor.into()),
            cpu_family: Some(family),
            cpu_model: Some(model),
            ..Hardware::default()
        };
        Known::new(&hardware, Path::new("/nonexistent"))
    }

    #[test]
    fn every_line_of_the_vendors_is_understood() {
        for line in VENDORS.lines().skip(1) {
            let [_, vendor, family, first, ..] = line.split(',').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let number = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
            let hardware = Hardware {
                cpu_vendor: Some(vendor.into()),
                cpu_family: Some(number(family)),
                cpu_model: Some(number(first)),
                ..Hardware::default()
            };
            assert!(vendor_event(line, &hardware).is_some(), "{line}");
        }
    }

    #[test]
    fn one_name_is_another_code_on_another_processor() {
        let code = |known: Known| known.find("fp_ret_sse_avx_ops.all").map(|event| event.encoding.config[0]);
        assert_eq!(code(processor("AuthenticAMD", 0x17, 0x01)), Some(0xff03));
        assert_eq!(code(processor("AuthenticAMD", 0x17, 0x31)), Some(0x0f03));
        assert_eq!(code(processor("AuthenticAMD", 0x19, 0x11)), Some(0x0f03));
        assert_eq!(code(processor("GenuineIntel", 0x06, 0x55)), None);
    }

    #[test]
    fn a_name_has_the_errata_of_what_it_stands_for() {
        let errata = |known: Known, name: &str| {
            let mappings = known.mappings();
            let mapping = mappings.iter().find(|mapping| mapping.event == name);
            mapping.map(|mapping| mapping.errata.clone()).unwrap()
        };
        let skylake = || processor("GenuineIntel", 0x06, 0x55);
        assert_eq!(errata(skylake(), "instructions"), ["SKL091 SKL044"]);
        assert_eq!(errata(skylake(), "page_faults"), [""; 0]);
        assert_eq!(errata(processor("AuthenticAMD", 0x19, 0x01), "branches"), ["1292: may overcount"]);
        assert_eq!(errata(processor("AuthenticAMD", 0x19, 0x11), "branches"), [""; 0]);
    }

    #[test]
    fn whatever_a_kernel_says_something_of_has_a_name_or_is_a_memory_controllers() {
        let here = [processor("AuthenticAMD", 0x19, 0x11), processor("GenuineIntel", 0x06, 0x55)];
        for kernel in pmmpi_kernels::all() {
            for expected in kernel.expected() {
                let name = expected.event;
                let known = here.iter().any(|known| known.find(name).is_some() || name.starts_with("dram_"));
                assert!(known, "{}: {name}", kernel.name);
            }
        }
    }

    #[test]
    fn the_kernel_shows_what_it_maps_a_name_to() {
        let root = std::env::temp_dir().join(format!("pmmpi-events-{}", std::process::id()));
        let put = |path: &str, text: &str| {
            let path = root.join("sys/bus/event_source/devices").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("cpu/events/branch-instructions", "event=0xc2\n");
        put("armv8_pmuv3_0/events/inst_retired", "event=0x0008\n");
        put("msr/type", "9\n");
        put("msr/events/tsc", "event=0x00\n");
        let known = Known::new(&Hardware::default(), &root);
        let mappings = known.mappings();
        std::fs::remove_dir_all(&root).unwrap();
        let of =
            |name: &str| mappings.iter().find(|mapping| mapping.event == name).unwrap().stands_for.clone();
        assert_eq!(of("branches"), "cpu/event=0xc2/");
        assert_eq!(of("instructions"), "armv8_pmuv3_0/event=0x0008/");
        assert_eq!(of("page_faults"), "the kernel's own count");
        assert_eq!(known.find("tsc").unwrap().encoding, Encoding::new(9, 0));
    }
}
