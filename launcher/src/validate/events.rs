//! Which event of this machine each name stands for.

use pmmpi::counters::default;
use pmmpi::counters::event::{Encoding, Event, kind};
use pmmpi::node::{CpuSet, Hardware};
use pmmpi_events::errata;
use pmmpi_events::metrics::{CpuKind, Meaning, catalogue};
use pmmpi_events::names::{Asked, EventNames, Places, Resolved};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Events per group: as many as any processor can count at once, even with the NMI watchdog on.
pub const GROUP_EVENTS: usize = 3;

/// Events with vendors' names. Columns: event, vendor, family, first and last model, perf's raw code.
const VENDORS: &str = include_str!("vendors.csv");

// linux/perf_event.h: perf_hw_id; for caches, id | operation << 8 | result << 16.
const GENERIC: [(&str, u32, u64); 6] = [
    ("branches", kind::HARDWARE, 4),
    ("branch-misses", kind::HARDWARE, 5),
    ("L1-dcache-loads", kind::CACHE, 0),
    ("L1-dcache-stores", kind::CACHE, 0x100),
    ("L1-dcache-load-misses", kind::CACHE, 0x1_0000),
    ("dTLB-load-misses", kind::CACHE, 0x1_0003),
];

/// Events of pmmpi's tables that test loops have counts for; the name is the one in formulas and in `--group`.
const OF_TABLES: [&str; 8] = [
    "near_returns",
    "near_returns_mispredicted",
    "split_loads",
    "misaligned_accesses",
    "dc_refills_l2",
    "dc_refills_system",
    "dtlb_load_walks",
    "dtlb_l1_miss_l2_miss",
];

/// Names in sysfs of the events to which the kernel maps its generic names; the first that exists is used. On x86
/// sysfs has the generic name, on Arm the architecture's name (drivers/perf/arm_pmuv3.c, armv8_pmuv3_perf_map).
const ALIASES: [(&str, &[&str]); 4] = [
    ("cycles", &["cpu-cycles", "cpu_cycles"]),
    ("instructions", &["instructions", "inst_retired"]),
    ("branches", &["branch-instructions", "pc_write_retired", "br_retired"]),
    ("branch-misses", &["branch-misses", "br_mis_pred"]),
];

/// An event of the PMU `msr`.
const TSC: &str = "tsc";

/// The events that pmmpi can name on this machine.
pub struct KnownEvents {
    /// Each with the name that the test kernels use.
    events: Vec<(String, Event)>,
    hardware: Hardware,
    root: PathBuf,
    /// PMUs in whose sysfs folder the event of a name may be.
    pmus: Vec<String>,
}

/// A kind of core on a hybrid processor.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreKind {
    pub pmu: String,
    /// perf_event_attr.type of its own events.
    number: u32,
    pub cpus: CpuSet,
}

impl CoreKind {
    /// All kinds of cores; empty if all cores are of one kind.
    pub fn all(root: &Path) -> Vec<Self> {
        let cycles = EventNames::of(root).resolve("cycles", |_| Err(String::new())).unwrap_or_default();
        let kind = |Resolved { event, places, pmu }| match (event.name.split_once('/'), places) {
            (Some((name, _)), Places::Threads(Some(cpus))) => {
                Some(Self { pmu: name.to_owned(), number: pmu, cpus })
            }
            _ => None,
        };
        let events = cycles.into_iter().flat_map(|asked| match asked {
            Asked::Event(events) => events,
            Asked::Together(_) => Vec::new(),
        });
        events.filter_map(kind).collect()
    }

    /// Restricts a generic event to this kind of core, with the name and encoding of `--events` (linux/perf_event.h,
    /// PERF_PMU_TYPE_SHIFT).
    fn own(&self, mut event: Event) -> Event {
        if matches!(event.encoding.kind, kind::HARDWARE | kind::CACHE) {
            event.name = format!("{}/{}/", self.pmu, event.name);
            event.encoding.config[0] |= u64::from(self.number) << 32;
        }
        event
    }
}

/// The event that a name stands for (step 2 of the procedure).
#[derive(Clone, Debug, Serialize)]
pub struct Mapping {
    pub event: String,
    /// perf_event_attr.type
    pub kind: u32,
    /// perf_event_attr.config
    pub config: String,
    /// The processor's own code if the kernel shows it, else who maps the name.
    pub stands_for: String,
    /// The vendor's errata for the event on this processor (step 4).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errata: Vec<String>,
    /// The PMU, if its `kind` may change with each boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmu: Option<String>,
    /// The name under which `--group` counts this part of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_as: Option<String>,
}

impl KnownEvents {
    /// For this processor; on a hybrid processor, for the kind of core `of`.
    pub fn new(hardware: &Hardware, root: &Path, of: Option<&CoreKind>) -> Self {
        let generic = GENERIC.map(|(name, kind, config)| Event::counted(name, Encoding::new(kind, config)));
        // A raw code is valid for one kind of core only, and the table does not say for which.
        let vendors = VENDORS.lines().skip(1).filter(|_| of.is_none());
        let vendors = vendors.filter_map(|line| vendor_event(line, hardware));
        let of_table = OF_TABLES.iter().filter(|_| of.is_none());
        let of_table = of_table.filter_map(|name| table_event(name, hardware));
        let tsc = tsc_event(root);
        let events = default::groups().into_iter().flatten().chain(generic).chain(vendors);
        let events = events.chain(of_table).chain(tsc);
        let named = |event: Event| match of {
            Some(kind) => (event.name.clone(), kind.own(event)),
            None => (event.name.clone(), event),
        };
        // The processor's PMU has the name "cpu" on x86 and the name of its kind elsewhere.
        let pmus = of.map_or(vec!["cpu", "armv8_pmuv3_0", "armv8_pmuv3"], |kind| vec![kind.pmu.as_str()]);
        let pmus = pmus.into_iter().map(str::to_owned).collect();
        Self { events: events.map(named).collect(), hardware: hardware.clone(), root: root.to_owned(), pmus }
    }

    pub fn find(&self, name: &str) -> Option<Event> {
        self.events.iter().find(|(known, _)| known == name).map(|(_, event)| event.clone())
    }

    /// The PMU of the event; events of one PMU may share a group.
    pub fn pmu(&self, event: &Event) -> u32 {
        match event.encoding.kind {
            kind::CACHE | kind::RAW => kind::HARDWARE,
            kind => kind,
        }
    }

    pub fn mappings(&self) -> Vec<Mapping> {
        let mapping = |(name, event): &(String, Event)| Mapping {
            event: event.name.clone(),
            kind: event.encoding.kind,
            config: format!("{:#x}", event.encoding.config[0]),
            stands_for: self.stands_for(name, event),
            errata: errata::of(&self.hardware, event).iter().map(ToString::to_string).collect(),
            pmu: (name == TSC).then(|| "msr".to_owned()),
            counted_as: None,
        };
        self.events.iter().map(mapping).collect()
    }

    fn stands_for(&self, name: &str, event: &Event) -> String {
        let kind = event.encoding.kind;
        let alias = ALIASES.iter().find(|(known, _)| *known == name.trim_end_matches("_kernel"));
        let code = alias.filter(|_| kind == kind::HARDWARE).and_then(|(_, aliases)| {
            let mut places = self.pmus.iter().flat_map(|pmu| aliases.iter().map(move |alias| (pmu, alias)));
            places.find_map(|(pmu, alias)| Some((pmu, self.sysfs(&format!("{pmu}/events/{alias}"))?)))
        });
        match (code, kind) {
            (Some((pmu, code)), _) => format!("{pmu}/{code}/"),
            (None, kind::SOFTWARE) => "the Linux kernel's own count".to_owned(),
            (None, kind::RAW) => "the processor's own code".to_owned(),
            (None, kind::HARDWARE | kind::CACHE) => "the Linux kernel's mapping".to_owned(),
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

/// The event that the processor's table has for a name. `None` for formulas and for names that the processor lacks.
fn table_event(name: &str, hardware: &Hardware) -> Option<Event> {
    let Meaning::Event(event) = catalogue().table(&CpuKind::of_node(hardware))?.meaning(name)? else {
        return None;
    };
    Some(Event::counted(name, Encoding::new(kind::RAW, event.raw_code()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processor(vendor: &str, family: u32, model: u32) -> KnownEvents {
        let hardware = Hardware {
            cpu_vendor: Some(vendor.into()),
            cpu_family: Some(family),
            cpu_model: Some(model),
            ..Hardware::default()
        };
        KnownEvents::new(&hardware, Path::new("/nonexistent"), None)
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
        let code =
            |known: KnownEvents| known.find("fp_ret_sse_avx_ops.all").map(|event| event.encoding.config[0]);
        assert_eq!(code(processor("AuthenticAMD", 0x17, 0x01)), Some(0xff03));
        assert_eq!(code(processor("AuthenticAMD", 0x17, 0x31)), Some(0x0f03));
        assert_eq!(code(processor("AuthenticAMD", 0x19, 0x11)), Some(0x0f03));
        assert_eq!(code(processor("GenuineIntel", 0x06, 0x55)), None);
    }

    #[test]
    fn events_of_tables_have_their_codes() {
        let code = |known: KnownEvents, name: &str| known.find(name).map(|event| event.encoding.config[0]);
        let intel = |model| processor("GenuineIntel", 0x06, model);
        assert_eq!(code(intel(0x55), "near_returns"), Some(0x08c4));
        assert_eq!(code(intel(0x55), "split_loads"), Some(0x41d0));
        // On Intel's processors this name is a sum of two events.
        assert_eq!(code(intel(0x55), "misaligned_accesses"), None);
        assert_eq!(code(processor("AuthenticAMD", 0x19, 0x11), "misaligned_accesses"), Some(0x0147));
        assert_eq!(code(processor("AuthenticAMD", 0x19, 0x11), "dtlb_l1_miss_l2_miss"), Some(0xf045));
        assert_eq!(code(processor("", 0, 0), "near_returns"), None);
    }

    #[test]
    fn a_name_has_the_errata_of_what_it_stands_for() {
        let errata = |known: KnownEvents, name: &str| {
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
            for expected in kernel.expected(&CACHES) {
                let name = expected.event;
                let known = here.iter().any(|known| known.find(name).is_some() || name.starts_with("dram_"));
                assert!(known, "{}: {name}", kernel.name);
            }
        }
    }

    const CACHES: pmmpi_kernels::Caches =
        pmmpi_kernels::Caches { l1_bytes: 32 << 10, l2_bytes: 1 << 20, l3_bytes: 32 << 20 };

    #[test]
    fn the_kernel_shows_what_it_maps_a_name_to() {
        let root = std::env::temp_dir().join(format!("test-events-{}", std::process::id()));
        let put = |path: &str, text: &str| {
            let path = root.join("sys/bus/event_source/devices").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("cpu/events/branch-instructions", "event=0xc2\n");
        put("armv8_pmuv3_0/events/inst_retired", "event=0x0008\n");
        put("msr/type", "9\n");
        put("msr/events/tsc", "event=0x00\n");
        let known = KnownEvents::new(&Hardware::default(), &root, None);
        let mappings = known.mappings();
        std::fs::remove_dir_all(&root).unwrap();
        let of =
            |name: &str| mappings.iter().find(|mapping| mapping.event == name).unwrap().stands_for.clone();
        assert_eq!(of("branches"), "cpu/event=0xc2/");
        assert_eq!(of("instructions"), "armv8_pmuv3_0/event=0x0008/");
        assert_eq!(of("page_faults"), "the Linux kernel's own count");
        assert_eq!(known.find("tsc").unwrap().encoding, Encoding::new(9, 0));
    }

    #[test]
    fn each_kind_of_core_has_names_and_codes_of_its_own() {
        let root = std::env::temp_dir().join(format!("test-kinds-{}", std::process::id()));
        for (pmu, number, cpus) in [("cpu_core", 4, "0-3"), ("cpu_atom", 10, "4-5")] {
            let folder = root.join("sys/bus/event_source/devices").join(pmu);
            std::fs::create_dir_all(folder.join("events")).unwrap();
            std::fs::write(folder.join("type"), number.to_string()).unwrap();
            std::fs::write(folder.join("cpus"), cpus).unwrap();
            std::fs::write(folder.join("events/instructions"), "event=0xc0").unwrap();
        }
        let kinds = CoreKind::all(&root);
        let known = |kind| KnownEvents::new(&Hardware::default(), &root, Some(kind));
        let [atom, core] = kinds.as_slice() else { panic!("{kinds:?}") };
        let event = known(atom).find("instructions").unwrap();
        assert_eq!((event.name.as_str(), event.encoding.config[0]), ("cpu_atom/instructions/", 10 << 32 | 1));
        // A run that counts the default set on each kind has the same events.
        let asked = EventNames::of(&root).resolve("instructions", |_| Err(String::new())).unwrap();
        let [Asked::Event(resolved)] = asked.as_slice() else { panic!("{asked:?}") };
        assert_eq!(
            resolved.iter().map(|one| &one.event).collect::<Vec<_>>(),
            [&event, &known(core).find("instructions").unwrap()]
        );
        let loads = known(core).find("L1-dcache-loads").unwrap();
        assert_eq!((loads.name.as_str(), loads.encoding.config[0]), ("cpu_core/L1-dcache-loads/", 4 << 32));
        assert_eq!(known(core).find("page_faults").unwrap().name, "page_faults");
        let mappings = known(atom).mappings();
        let mapping = mappings.iter().find(|mapping| mapping.event == "cpu_atom/instructions/").unwrap();
        assert_eq!(mapping.stands_for, "cpu_atom/event=0xc0/");
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(CoreKind::all(&root), []);
    }
}
