//! `pmmpi validate`: finds out which counters are correct on this machine.
//!
//! It implements the procedure of McCalpin ("Notes on the mystery of hardware cache performance counters", 2013, "A
//! Recommended Procedure"): identify the processor, show which event each name stands for, link the documents that a
//! human must read, run test loops whose counts are known in advance, compare, judge.

mod ceiling_values;
mod ceilings;
mod documents;
mod events;
mod findings;
mod measure_kernel;
mod memory;
mod pin;
mod prefetchers;
mod text;

pub use ceilings::last_level_caches;
pub use memory::{caches_of, limit_bytes};

use crate::cli::options::{FormatArg, Validation};
use crate::stdout;
use findings::{EventCheck, OnKind, StoredAt, ValidationFindings};
use measure_kernel::{EventValue, KernelPlace, Repeats, repeat};
use memory::MemoryControllers;
use pin::Pinned;
use pmmpi::counters::event::{Event, Group};
use pmmpi::counters::perf_event_open::{Counters, Target};
use pmmpi::node::{CpuSet, NodeFacts};
use pmmpi_events::validation;
use pmmpi_kernels::{Caches, Expected, Kernel};
use pmmpi_workload::Failure;
use pmmpi_workload::console::warn;
use prefetchers::Prefetchers;
use std::path::Path;

/// The exit status if an event that counts is unusable.
const UNUSABLE: i32 = 1;
/// Repeats of each kernel; the verdict uses the median.
const REPEATS: usize = 7;

/// Validates, prints and stores the result; gives the exit status.
pub fn run(typed: &Validation) -> Result<i32, Failure> {
    let mut findings = find(typed, Path::new("/"))?;
    if typed.ceilings {
        findings.ceilings = ceilings::measure(Path::new("/"));
    }
    // A partial result must not replace a stored result that covers more events.
    findings.kept =
        if typed.kernels.is_empty() && findings.is_all { keep(&findings) } else { StoredAt::NotAll };
    let rendered = match typed.format {
        FormatArg::Text => stdout::folded(text::render(&findings)),
        FormatArg::Json => findings.json().map_err(Failure::own)? + "\n",
    };
    stdout::write(&rendered)?;
    if let StoredAt::Not(why) = &findings.kept {
        warn(format_args!("pmmpi did not save the validation results: {why}"));
    }
    Ok(if findings.is_unusable() { UNUSABLE } else { 0 })
}

/// Validates this machine on one hardware thread, or on one thread per kind of core. Reads the files below `root`.
fn find(typed: &Validation, root: &Path) -> Result<ValidationFindings, Failure> {
    let kernels = chosen(&typed.kernels)?;
    let facts = NodeFacts::read(root);
    let kinds = events::CoreKind::all(root);
    let several = kinds.len() > 1;
    let mut threads: Vec<(Option<&events::CoreKind>, Option<u32>)> = Vec::new();
    for kind in kinds.iter().filter(|_| several) {
        let own = CpuSet::allowed().numbers().find(|cpu| kind.cpus.contains(*cpu));
        let cpu = typed.cpu.map_or(own, |cpu| kind.cpus.contains(cpu).then_some(cpu));
        threads.extend(cpu.map(|cpu| (Some(kind), Some(cpu))));
    }
    let is_all = !several || threads.len() == kinds.len();
    if threads.is_empty() {
        threads.push((None, typed.cpu));
    }
    let mut findings: Option<ValidationFindings> = None;
    for (kind, cpu) in threads {
        let known = events::KnownEvents::new(&facts.hardware, root, kind);
        let pinned = Pinned::to(cpu)?;
        let first = findings.is_none();
        let all = findings.get_or_insert_with(|| ValidationFindings::new(&facts, pinned.cpu(), REPEATS));
        all.is_all = is_all;
        all.add_mappings(known.mappings());
        all.cores.extend(kind.map(|kind| OnKind { pmu: kind.pmu.clone(), hardware_thread: pinned.cpu() }));
        let mut memory = first.then(|| MemoryControllers::new(root, &facts.hardware, pinned.cpu()));
        let core = Core {
            known,
            caches: caches_of(root, pinned.cpu()),
            prefetchers: match typed.prefetchers_off {
                true => Prefetchers::of(root, &facts.hardware, pinned.cpu()),
                false => Err(prefetchers::NOT_ASKED.to_owned()),
            },
            pinned,
        };
        for kernel in &kernels {
            let mut held = held(kernel, &core);
            // All cores of a socket share its controllers, so one kind of core is enough.
            if let Some(memory) = memory.as_mut().filter(|_| kernel.memory == pmmpi_kernels::Memory::Arrays)
                && held.skipped.is_none()
            {
                held.checks.extend(memory.checks(kernel, REPEATS));
                all.memory = Some(memory.found());
            }
            all.add(held);
        }
        memory.into_iter().for_each(|memory| all.add_mappings(memory.mappings()));
    }
    let mut findings = findings.ok_or_else(|| Failure::own("there is no hardware thread to run on"))?;
    findings.judge();
    Ok(findings)
}

fn kernel(name: &str) -> Option<&'static Kernel> {
    pmmpi_kernels::all().iter().find(|kernel| kernel.name == name)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Kernel>, Failure> {
    let all = pmmpi_kernels::all();
    let find = |name: &String| {
        kernel(name).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|kernel| kernel.name).collect();
            Failure::usage(format_args!(
                "--kernel {name}: there is no test loop of this name; choose one of {}",
                names.join(", ")
            ))
        })
    };
    if names.is_empty() { Ok(all.iter().collect()) } else { names.iter().map(find).collect() }
}

/// The core that the kernels run on.
struct Core {
    known: events::KnownEvents,
    pinned: Pinned,
    caches: Caches,
    /// Or why pmmpi does not switch them off.
    prefetchers: Result<Prefetchers, String>,
}

/// Compares every event that has an expected count with one kernel.
fn held(kernel: &'static Kernel, core: &Core) -> findings::KernelFindings {
    let Core { known, pinned, caches, prefetchers } = core;
    let mut held = findings::KernelFindings::new(kernel);
    let wanted = expectations(kernel, known, caches);
    let why = match ((kernel.body.runs_here)(), pinned.another()) {
        (false, _) => Some("this processor lacks instructions that this test loop uses".to_owned()),
        (_, None) if kernel.memory == pmmpi_kernels::Memory::Masks => {
            Some("this test loop needs two hardware threads, and pmmpi may use only one here".to_owned())
        }
        _ => None,
    };
    if let Some(why) = why {
        held.skipped = Some(why);
        return held;
    }
    let off = || prefetchers.as_ref().map_err(String::clone).and_then(Prefetchers::off);
    let _off = match kernel.without_prefetch.then(off) {
        Some(Err(why)) => {
            held.skipped = Some(why);
            return held;
        }
        // They are off until this value is dropped.
        off => off,
    };
    let cpus = [pinned.cpu(), pinned.another().unwrap_or(pinned.cpu())];
    for (group, expected) in groups(wanted, known) {
        let mut counters = Counters::open(std::slice::from_ref(&group), Target::ThisThread);
        match repeat(kernel, KernelPlace { cpus, caches }, REPEATS, &mut counters) {
            Ok(repeats) => held.checks.extend(checks(kernel, &group, &expected, &repeats)),
            Err(error) => held.skipped = Some(error.to_string()),
        }
    }
    held
}

/// The expected count of an event: known in advance ("on paper"), or from another clock read beside the counter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reference {
    Paper(Expected),
    Beside(measure_kernel::Beside),
}

fn expectations(kernel: &Kernel, known: &events::KnownEvents, caches: &Caches) -> Vec<(Event, Reference)> {
    let paper = kernel.expected(caches).into_iter().map(Reference::Paper);
    let beside =
        measure_kernel::Beside::ALL.into_iter().filter(|_| kernel.name == measure_kernel::CLOCKS_KERNEL);
    let all = paper.chain(beside.map(Reference::Beside));
    all.filter_map(|reference| Some((known.find(reference.event())?, reference))).collect()
}

impl Reference {
    fn event(&self) -> &'static str {
        match self {
            Reference::Paper(expected) => expected.event,
            Reference::Beside(beside) => beside.event(),
        }
    }
}

/// Makes groups to count one after the other. Each is small enough for any processor, to avoid multiplexing.
fn groups(wanted: Vec<(Event, Reference)>, known: &events::KnownEvents) -> Vec<(Group, Vec<Reference>)> {
    let mut groups: Vec<(u32, Group, Vec<Reference>)> = Vec::new();
    for (event, reference) in wanted {
        let pmu = known.pmu(&event);
        let room = groups.iter_mut().find(|(of, group, _)| *of == pmu && group.len() < events::GROUP_EVENTS);
        match room {
            Some((_, group, references)) => {
                group.push(event);
                references.push(reference);
            }
            None => groups.push((pmu, vec![event], vec![reference])),
        }
    }
    groups.into_iter().map(|(_, group, references)| (group, references)).collect()
}

fn checks(kernel: &Kernel, group: &Group, references: &[Reference], repeats: &Repeats) -> Vec<EventCheck> {
    let each = group.iter().zip(references).enumerate();
    each.map(|(at, (event, reference))| {
        let measured: Vec<EventValue> = repeats.of(at, *reference, kernel.trips);
        EventCheck::of(&event.name, reference, &measured, repeats.overhead(at))
    })
    .collect()
}

fn keep(findings: &ValidationFindings) -> StoredAt {
    let Some(folder) = validation::folder() else {
        return StoredAt::Not(format!(
            "pmmpi does not know your home folder (HOME); set {} to a folder",
            validation::FOLDER_VARIABLE
        ));
    };
    let json = match findings.json() {
        Ok(json) => json,
        Err(error) => return StoredAt::Not(error.to_string()),
    };
    match validation::keep(&folder, &findings.cpu.name, json.as_bytes()) {
        Ok(path) => StoredAt::In(path),
        Err(error) => StoredAt::Not(format!(
            "pmmpi cannot write to {}: {error}; set {} to another folder",
            folder.display(),
            validation::FOLDER_VARIABLE
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::memory::tests::Root;
    use super::*;
    use pmmpi_events::validation::EventVerdict;

    /// Two fake kinds of cores. Their PMUs do not exist, so only the kernel's own events count on each.
    #[test]
    fn each_kind_of_core_runs_the_kernels_and_has_its_own_verdicts() {
        let allowed: Vec<u32> = CpuSet::allowed().numbers().take(2).collect();
        let [first, second] = allowed[..] else { return };
        let root = Root::new();
        for (pmu, number, cpu) in [("cpu_atom", 1010, second), ("cpu_core", 1004, first)] {
            root.pmu(pmu, number, "", &[], &[]);
            root.put(&format!("sys/bus/event_source/devices/{pmu}/cpus"), &cpu.to_string());
        }
        let typed = |cpu| Validation {
            cpu,
            kernels: vec!["page-touch".into(), "triad".into()],
            ceilings: false,
            prefetchers_off: false,
            format: FormatArg::Json,
        };
        let found = |cpu| find(&typed(cpu), root.path()).map_err(|failure| failure.message).unwrap();
        let both = found(None);
        let on: Vec<(&str, u32)> =
            both.cores.iter().map(|one| (one.pmu.as_str(), one.hardware_thread)).collect();
        assert_eq!(on, [("cpu_atom", second), ("cpu_core", first)]);
        assert!(both.is_all && both.kernels.len() == 2);
        let touch: Vec<&str> = both.kernels[0].checks.iter().map(|check| check.event.as_str()).collect();
        let [atom, core] = ["cpu_atom", "cpu_core"].map(|pmu| format!("{pmu}/instructions_kernel/"));
        assert_eq!(touch.iter().filter(|event| **event == "page_faults").count(), 2);
        assert!(touch.contains(&atom.as_str()) && touch.contains(&core.as_str()), "{touch:?}");
        let faults = both.events.iter().find(|event| event.name == "page_faults").unwrap();
        assert_eq!(faults.verdict, EventVerdict::Trusted.name());
        // Events of a socket appear once, not once per kind of core.
        let bytes = both.kernels[1].checks.iter().filter(|check| check.event == "dram_read_bytes").count();
        assert_eq!(bytes, 1);
        assert_eq!(both.mappings.iter().filter(|mapping| mapping.event == "page_faults").count(), 1);
        let text = text::render(&both);
        assert!(
            text.contains(&format!("on hardware thread {second} (cpu_atom) and {first} (cpu_core)")),
            "{text}"
        );
        // A hardware thread that the user names belongs to one kind of core; the result does not cover the other kind.
        let one = found(Some(first));
        assert!(!one.is_all && one.cores.len() == 1 && one.cores[0].pmu == "cpu_core");
    }
}
