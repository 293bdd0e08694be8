//! Names that every kernel knows (linux/perf_event.h), spelt as in perf-list(1), and pmmpi's own names.

use pmmpi::counters::default;
use pmmpi::counters::event::{Encoding, Event, kind};

/// perf_hw_id: pmmpi lists the first name.
const HARDWARE: [&[&str]; 10] = [
    &["cycles", "cpu-cycles"],
    &["instructions"],
    &["cache-references"],
    &["cache-misses"],
    &["branches", "branch-instructions"],
    &["branch-misses"],
    &["bus-cycles"],
    &["stalled-cycles-frontend", "idle-cycles-frontend"],
    &["stalled-cycles-backend", "idle-cycles-backend"],
    &["ref-cycles"],
];

/// perf_sw_ids with their numbers. Those that count nothing are left out.
const SOFTWARE: [(u64, &[&str]); 10] = [
    (0, &["cpu-clock"]),
    (1, &["task-clock"]),
    (2, &["page-faults", "faults"]),
    (3, &["context-switches", "cs"]),
    (4, &["cpu-migrations", "migrations"]),
    (5, &["minor-faults"]),
    (6, &["major-faults"]),
    (7, &["alignment-faults"]),
    (8, &["emulation-faults"]),
    (11, &["cgroup-switches"]),
];

const CPU_CLOCK: u64 = 0;

/// perf_hw_cache_id, with its operations: loads, stores, prefetches.
const CACHES: [(&str, [bool; 3]); 7] = [
    ("L1-dcache", [true, true, true]),
    ("L1-icache", [true, false, true]),
    ("LLC", [true, true, true]),
    ("dTLB", [true, true, true]),
    ("iTLB", [true, false, false]),
    ("branch", [true, false, false]),
    ("node", [true, true, true]),
];
/// perf_hw_cache_op_id: plural and singular.
const OPERATIONS: [(&str, &str); 3] = [("loads", "load"), ("stores", "store"), ("prefetches", "prefetch")];

/// An event that every kernel knows. The first name is pmmpi's, the others are aliases.
pub struct GenericEvent {
    pub names: Vec<String>,
    pub event: Event,
}

/// All events that every kernel knows, and pmmpi's own.
pub fn all() -> Vec<GenericEvent> {
    let mut all = Vec::new();
    let mut add = |names: &[&str], encoding: Encoding, unit: &str| {
        let own = default_event(encoding);
        let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let event = own.unwrap_or_else(|| Event {
            unit: unit.to_owned(),
            ..Event::counted(names.first().map_or("", String::as_str), encoding)
        });
        names.retain(|name| *name != event.name);
        names.insert(0, event.name.clone());
        all.push(GenericEvent { names, event });
    };
    for (id, names) in HARDWARE.iter().enumerate() {
        add(names, Encoding::new(kind::HARDWARE, id as u64), "");
    }
    for (id, names) in SOFTWARE {
        add(names, Encoding::new(kind::SOFTWARE, id), if id == CPU_CLOCK { "ns" } else { "" });
    }
    for (cache, (cache_name, has)) in CACHES.iter().enumerate() {
        for (operation, ((several, one), _)) in
            OPERATIONS.iter().zip(has).enumerate().filter(|(_, (_, has))| **has)
        {
            for (result, name) in
                [format!("{cache_name}-{several}"), format!("{cache_name}-{one}-misses")].iter().enumerate()
            {
                let config = cache as u64 | (operation as u64) << 8 | (result as u64) << 16;
                add(&[name], Encoding::new(kind::CACHE, config), "");
            }
        }
    }
    for event in default::groups().into_iter().flatten() {
        if !all.iter().any(|known| known.names.contains(&event.name)) {
            all.push(GenericEvent { names: vec![event.name.clone()], event });
        }
    }
    all
}

/// The event of this name. Ignores case, and does not distinguish hyphens and underscores.
pub fn named(name: &str) -> Option<Event> {
    let plain = |name: &str| name.to_ascii_lowercase().replace('_', "-");
    let wanted = plain(name);
    all()
        .into_iter()
        .find(|known| known.names.iter().any(|name| plain(name) == wanted))
        .map(|known| known.event)
}

/// Like [`named`], but only events that the processor counts.
pub fn of_the_processor(name: &str) -> Option<Event> {
    named(name).filter(|event| event.encoding.kind != kind::SOFTWARE)
}

/// pmmpi's name of an event of the default set.
pub fn own_name(encoding: Encoding) -> Option<String> {
    default_event(encoding).map(|event| event.name)
}

fn default_event(encoding: Encoding) -> Option<Event> {
    default::groups().into_iter().flatten().find(|event| event.encoding == encoding)
}

/// The fixed counter for instructions (0), cycles (1) or reference cycles (2); `None` for other events. Modes do
/// not matter.
pub fn fixed_counter(encoding: Encoding, is_core_pmu: bool) -> Option<u8> {
    match (encoding.kind, encoding.config) {
        (kind::HARDWARE, [id, 0, 0]) => match id & u64::from(u32::MAX) {
            0 => Some(1),
            1 => Some(0),
            9 => Some(2),
            _ => None,
        },
        // Intel's manual (volume 3, 20.2.1): INST_RETIRED.ANY_P, CPU_CLK_UNHALTED.THREAD_P, and the kernel's
        // code for CPU_CLK_UNHALTED.REF_TSC.
        (kind, [code, 0, 0]) if kind == kind::RAW || is_core_pmu => match code {
            0xc0 => Some(0),
            0x3c => Some(1),
            0x300 => Some(2),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmmpi::counters::event::Modes;

    fn encoding(name: &str) -> (u32, u64, Modes) {
        let encoding = named(name).unwrap().encoding;
        (encoding.kind, encoding.config[0], encoding.modes)
    }

    /// The codes are those of linux/perf_event.h, typed again.
    #[test]
    fn names_have_the_kernels_codes() {
        for (name, kind, config) in [
            ("cycles", 0, 0),
            ("cpu-cycles", 0, 0),
            ("instructions", 0, 1),
            ("cache-references", 0, 2),
            ("cache-misses", 0, 3),
            ("branches", 0, 4),
            ("branch-instructions", 0, 4),
            ("branch-misses", 0, 5),
            ("bus-cycles", 0, 6),
            ("stalled-cycles-frontend", 0, 7),
            ("stalled-cycles-backend", 0, 8),
            ("ref-cycles", 0, 9),
            ("cpu-clock", 1, 0),
            ("task-clock", 1, 1),
            ("page-faults", 1, 2),
            ("cs", 1, 3),
            ("cpu-migrations", 1, 4),
            ("minor-faults", 1, 5),
            ("major-faults", 1, 6),
            ("alignment-faults", 1, 7),
            ("emulation-faults", 1, 8),
            ("L1-dcache-load-misses", 3, 0x1_0000),
            ("L1-dcache-stores", 3, 0x100),
            ("L1-icache-load-misses", 3, 0x1_0001),
            ("LLC-loads", 3, 2),
            ("LLC-store-misses", 3, 0x1_0102),
            ("dTLB-load-misses", 3, 0x1_0003),
            ("iTLB-load-misses", 3, 0x1_0004),
            ("branch-load-misses", 3, 0x1_0005),
            ("node-prefetch-misses", 3, 0x1_0206),
        ] {
            assert_eq!(encoding(name), (kind, config, Modes::All), "{name}");
        }
        assert_eq!(encoding("cycles_kernel"), (0, 0, Modes::Kernel));
        assert_eq!(named("l1_DCACHE_loads").unwrap().name, "L1-dcache-loads");
        assert_eq!(named("ref-cycles").unwrap().name, "ref_cycles");
        assert!(named("iTLB-stores").is_none());
    }

    #[test]
    fn no_two_events_share_a_name() {
        let mut names: Vec<String> = all().into_iter().flat_map(|known| known.names).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
