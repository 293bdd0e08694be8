//! The events of memory controllers that give the bytes read and written, and the hardware threads to open them on.

use super::BYTES;
use pmmpi::counters::event::Event;
use pmmpi::counters::open_counters::Scope;
use pmmpi::counters::selection::{Selection, WantedSet};
use pmmpi::node::{CpuSet, Hardware};
use pmmpi_events::errata;
use pmmpi_events::metrics::{CpuKind, EventSpec, catalogue};
use pmmpi_events::names::{Asked, EventNames, Places, Resolved, pmu_family};
use std::fs;
use std::path::Path;

use crate::validate::events::Mapping;

/// The memory controllers of one socket.
pub struct Controllers {
    /// Each pass contains the events that can be counted at once.
    pub passes: Vec<Selection>,
    pub mappings: Vec<Mapping>,
}

/// An event of a formula, or one of [`BYTES`], on each PMU that has it.
struct Counted {
    name: String,
    encoding: String,
    instances: Vec<Instance>,
}

struct Instance {
    event: Event,
    pmu: u32,
    /// The hardware thread on which to open the event for the socket.
    cpus: Vec<u32>,
}

/// The kernel's own names for bytes read and bytes written, for processors without a table
/// (arch/x86/events/intel/uncore_snbep.c and uncore_snb.c).
const KERNELS: [[&str; 2]; 3] = [
    ["uncore_imc/cas_count_read/", "uncore_imc/cas_count_write/"],
    ["uncore_imc/data_reads/", "uncore_imc/data_writes/"],
    ["uncore_imc_free_running/data_read/", "uncore_imc_free_running/data_write/"],
];

/// Counters per controller: four on Intel (uncore_snbep.c, num_counters) and AMD (amd_uncore's NUM_COUNTERS_NB). Each
/// can count any event.
const COUNTERS: usize = 4;

impl Controllers {
    /// Finds the controllers of the socket of hardware thread `cpu`, on the machine whose files are below `root`.
    pub fn find(root: &Path, hardware: &Hardware, cpu: u32) -> Option<Self> {
        let (names, online) = (EventNames::of(root), online(root)?);
        let near = |other: &u32| match (socket(root, cpu), socket(root, *other)) {
            (Some(own), Some(other)) => own == other,
            // Without information about sockets, assume one.
            _ => true,
        };
        let counted = |name: &str, encoding: &str| {
            let asked = names.resolve(encoding, |_| Err(String::new())).ok()?;
            let instances: Vec<Instance> = asked
                .into_iter()
                .flat_map(|asked| if let Asked::Event(events) = asked { events } else { Vec::new() })
                .filter_map(|resolved| Instance::on(resolved, name, &online, near))
                .collect();
            let (name, encoding) = (name.to_owned(), encoding.to_owned());
            (!instances.is_empty()).then_some(Counted { name, encoding, instances })
        };
        let kernels = || {
            KERNELS.iter().find_map(|names| {
                let pair = BYTES.iter().zip(names).map(|(bytes, name)| counted(bytes.event, name));
                let pair: Vec<Counted> = pair.collect::<Option<_>>()?;
                let is_bytes =
                    |counted: &Counted| counted.instances.iter().all(|one| one.event.unit == "bytes");
                pair.iter().all(is_bytes).then_some(pair)
            })
        };
        let of_table = || {
            specs(hardware)?
                .iter()
                .map(|spec| counted(&spec.name, &spec.encoding))
                .collect::<Option<Vec<_>>>()
        };
        let all = of_table().filter(|all| !all.is_empty()).or_else(kernels)?;
        let mappings = all.iter().map(|counted| counted.mapping(hardware)).collect();
        Some(Self { passes: passes(all), mappings })
    }
}

/// The events of memory controllers in the table of this processor: reads and writes separately, or else their sum.
fn specs(hardware: &Hardware) -> Option<Vec<&'static EventSpec>> {
    let catalogue = catalogue();
    let table = catalogue.table(&CpuKind::of_node(hardware))?;
    let events = |at: &[usize]| {
        let metrics = at.iter().map(|at| catalogue.metric(BYTES[*at].metric));
        let metrics: Vec<_> = metrics.collect::<Option<_>>()?;
        let computed = metrics.iter().all(|metric| table.computes(metric));
        let mut specs: Vec<&EventSpec> = Vec::new();
        for spec in metrics.into_iter().flat_map(|metric| table.events_of(metric)) {
            if !specs.contains(&spec) {
                specs.push(spec);
            }
        }
        (computed && specs.iter().all(|spec| spec.scope == Scope::Socket)).then_some(specs)
    };
    events(&[0, 1]).or_else(|| events(&[2]))
}

impl Instance {
    /// `None` for a PMU of a core or of another socket.
    fn on(resolved: Resolved, name: &str, online: &CpuSet, near: impl Fn(&u32) -> bool) -> Option<Self> {
        let Places::Socket(_) = resolved.places else { return None };
        let mut cpus = resolved.places.cpus(online);
        cpus.retain(near);
        (!cpus.is_empty()).then(|| Self {
            event: Event { name: name.to_owned(), ..resolved.event },
            pmu: resolved.pmu,
            cpus,
        })
    }
}

impl Counted {
    fn mapping(&self, hardware: &Hardware) -> Mapping {
        let first = &self.instances[0].event;
        let of = |bytes: &&super::Bytes| {
            let metric = catalogue().metric(bytes.metric);
            let table = catalogue().table(&CpuKind::of_node(hardware));
            let events = metric.zip(table).map(|(metric, table)| table.events_of(metric)).unwrap_or_default();
            events.iter().any(|spec| spec.name == self.name)
        };
        // An event from `KERNELS` already has the name of the bytes.
        let bytes = BYTES.iter().find(of).map_or(self.name.as_str(), |bytes| bytes.event);
        let several = match self.instances.len() {
            1 => String::new(),
            more => format!(" on {more} PMUs"),
        };
        Mapping {
            event: bytes.to_owned(),
            kind: first.encoding.kind,
            config: format!("{:#x}", first.encoding.config[0]),
            stands_for: format!("{}{several}", self.encoding),
            errata: errata::of(hardware, first).iter().map(ToString::to_string).collect(),
            pmu: self.encoding.split_once('/').map(|(pmu, _)| pmu_family(pmu).to_owned()),
            counted_as: (bytes != self.name).then(|| self.name.clone()),
        }
    }
}

/// Divides the events into passes that fit into the counters, because multiplexed counts would give no verdict.
fn passes(all: Vec<Counted>) -> Vec<Selection> {
    let mut passes: Vec<Vec<Counted>> = Vec::new();
    for counted in all {
        let taken = |pass: &[Counted], pmu: u32| {
            pass.iter().flat_map(|counted| &counted.instances).filter(|instance| instance.pmu == pmu).count()
        };
        let fits =
            |pass: &&mut Vec<Counted>| counted.instances.iter().all(|one| taken(pass, one.pmu) < COUNTERS);
        match passes.iter_mut().find(fits) {
            Some(pass) => pass.push(counted),
            None => passes.push(vec![counted]),
        }
    }
    passes.into_iter().map(selection).collect()
}

/// One group per controller, so that reads and writes count over the same time.
fn selection(pass: Vec<Counted>) -> Selection {
    let mut sets: Vec<(u32, WantedSet)> = Vec::new();
    for Instance { event, pmu, cpus } in pass.into_iter().flat_map(|counted| counted.instances) {
        match sets.iter_mut().find(|(of, wanted)| *of == pmu && wanted.cpus == cpus) {
            Some((_, wanted)) => wanted.groups[0].push(event),
            None => sets.push((pmu, WantedSet::new(Scope::Socket, vec![vec![event]], cpus))),
        }
    }
    Selection::of(sets.into_iter().map(|(_, wanted)| wanted).collect())
}

fn online(root: &Path) -> Option<CpuSet> {
    CpuSet::parse(&fs::read_to_string(root.join("sys/devices/system/cpu/online")).ok()?)
}

pub fn socket(root: &Path, cpu: u32) -> Option<u32> {
    let file = root.join(format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"));
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Root, processor};
    use super::*;

    /// For each pass and set: the hardware threads, and the name, PMU number and code of each event.
    type Found = Vec<Vec<(Vec<u32>, Vec<(String, u32, u64)>)>>;

    fn found(root: &Root, hardware: &Hardware, cpu: u32) -> Found {
        let event = |event: &Event| (event.name.clone(), event.encoding.kind, event.encoding.config[0]);
        let set = |wanted: &WantedSet| (wanted.cpus.clone(), wanted.groups[0].iter().map(event).collect());
        let controllers = Controllers::find(root.path(), hardware, cpu);
        let passes = controllers.map(|controllers| controllers.passes).unwrap_or_default();
        passes.iter().map(|pass| pass.sets.iter().map(set).collect()).collect()
    }

    fn named(events: &[(&str, u32, u64)]) -> Vec<(String, u32, u64)> {
        events.iter().map(|(name, kind, config)| ((*name).to_owned(), *kind, *config)).collect()
    }

    const FORMAT: [(&str, &str); 2] = [("event", "config:0-7"), ("umask", "config:8-15")];

    #[test]
    fn a_sockets_own_controllers_are_counted_by_the_processors_table() {
        let root = Root::sockets(&[&[0, 1], &[2, 3]]);
        for channel in 0..2 {
            root.pmu(&format!("uncore_imc_{channel}"), 20 + channel, "0,2", &FORMAT, &[]);
        }
        root.pmu("uncore_imc_free_running_0", 30, "0,2", &FORMAT, &[]);
        let skylake = processor("GenuineIntel", 6, 0x55);
        for (cpu, place) in [(1, 0), (2, 2)] {
            let set =
                |kind| (vec![place], named(&[("dram_reads", kind, 0x304), ("dram_writes", kind, 0xc04)]));
            assert_eq!(found(&root, &skylake, cpu), [[set(20), set(21)]]);
        }
        let mappings = Controllers::find(root.path(), &skylake, 1).unwrap().mappings;
        assert_eq!(
            (&mappings[1].event[..], mappings[1].counted_as.as_deref()),
            ("dram_write_bytes", Some("dram_writes"))
        );
        assert_eq!((mappings[1].pmu.as_deref(), &mappings[1].config[..]), (Some("uncore_imc"), "0xc04"));
        assert_eq!(mappings[0].stands_for, "uncore_imc/event=0x04,umask=0x03/ on 2 PMUs");
    }

    #[test]
    fn each_makers_controllers_are_found() {
        // Two subchannels need two events for reads and two for writes.
        let root = Root::sockets(&[&[0, 1]]);
        root.pmu("uncore_imc_0", 20, "0", &FORMAT, &[]);
        let names = ["dram_reads_0", "dram_reads_1", "dram_writes_0", "dram_writes_1"];
        let codes = [0xcf05, 0xcf06, 0xf005, 0xf006];
        let events: Vec<(&str, u32, u64)> =
            names.into_iter().zip(codes).map(|(name, code)| (name, 20, code)).collect();
        assert_eq!(found(&root, &processor("GenuineIntel", 6, 0xad), 0), [[(vec![0], named(&events))]]);
        // Zen 4: the mask of each controller names a hardware thread of its own socket.
        let root = Root::sockets(&[&[0, 1], &[2, 3]]);
        let format = [("event", "config:0-7"), ("rdwrmask", "config:8-9")];
        for (number, mask) in [(15, "0"), (16, "2")] {
            root.pmu(&format!("amd_umc_{number}"), number, mask, &format, &[]);
        }
        let events = named(&[("dram_reads", 16, 0x10a), ("dram_writes", 16, 0x20a)]);
        assert_eq!(found(&root, &processor("AuthenticAMD", 0x19, 0x11), 3), [[(vec![2], events)]]);
        // Zen 2 has eight channels and four counters, and does not count reads and writes separately.
        let root = Root::sockets(&[&[0, 1]]);
        let format = [("event", "config:0-7,32-35,59-60"), ("umask", "config:8-15")];
        root.pmu("amd_df", 13, "0", &format, &[]);
        let zen2 = processor("AuthenticAMD", 0x17, 0x31);
        let passes = found(&root, &zen2, 0);
        assert_eq!(passes.iter().map(|pass| pass[0].1.len()).collect::<Vec<_>>(), [4, 4]);
        let mappings = Controllers::find(root.path(), &zen2, 0).unwrap().mappings;
        assert!(mappings.iter().all(|mapping| mapping.event == "dram_bytes") && mappings.len() == 8);
    }

    #[test]
    fn without_a_table_the_kernels_own_names_tell() {
        let root = Root::sockets(&[&[0, 1]]);
        let bytes = |name: &str, code: &str| {
            let scale = (format!("{name}.scale"), "6.103515625e-5".to_owned());
            vec![(name.to_owned(), code.to_owned()), scale, (format!("{name}.unit"), "MiB".to_owned())]
        };
        let own = [bytes("data_reads", "event=0x01"), bytes("data_writes", "event=0x02")].concat();
        let events: Vec<(&str, &str)> =
            own.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        root.pmu("uncore_imc", 14, "0", &FORMAT, &events);
        let client = processor("GenuineIntel", 6, 0x9e);
        let expected = named(&[("dram_read_bytes", 14, 1), ("dram_write_bytes", 14, 2)]);
        assert_eq!(found(&root, &client, 0), [[(vec![0], expected)]]);
        let mappings = Controllers::find(root.path(), &client, 0).unwrap().mappings;
        assert_eq!((&mappings[0].event[..], &mappings[0].counted_as), ("dram_read_bytes", &None));
        // An event without a unit of bytes counts something else.
        let root = Root::sockets(&[&[0, 1]]);
        root.pmu(
            "uncore_imc",
            14,
            "0",
            &FORMAT,
            &[("data_reads", "event=0x01"), ("data_writes", "event=0x02")],
        );
        assert!(found(&root, &client, 0).is_empty());
    }

    #[test]
    fn where_there_are_none_none_is_found() {
        let root = Root::sockets(&[&[0, 1]]);
        let skylake = processor("GenuineIntel", 6, 0x55);
        assert!(found(&root, &skylake, 0).is_empty());
        // A PMU of a core, and a controller of another socket only.
        root.pmu("cpu", 4, "", &FORMAT, &[]);
        assert!(found(&root, &skylake, 0).is_empty());
        let root = Root::sockets(&[&[0], &[1]]);
        root.pmu("uncore_imc_0", 20, "1", &FORMAT, &[]);
        assert!(found(&root, &skylake, 0).is_empty());
        // This processor counts memory events in the PMU of a core, not in the scope socket.
        root.pmu("cpu", 4, "", &FORMAT, &[]);
        assert!(found(&root, &processor("AuthenticAMD", 0x10, 2), 0).is_empty());
        assert!(Controllers::find(Path::new("/nonexistent"), &skylake, 0).is_none());
    }
}
