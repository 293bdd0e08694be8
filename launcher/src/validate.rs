//! `pmmpi validate`: which counters can be trusted on this machine.
//!
//! The procedure of McCalpin ("Notes on the mystery of hardware cache performance counters", 2013, "A
//! Recommended Procedure") as a command: identify the processor, say which event each name stands for, link what a
//! human must read, run kernels whose counts are known on paper, compare, judge.

mod documents;
mod events;
mod findings;
mod memory;
mod pin;
mod section;
mod text;

use crate::options::{Format, Validation};
use findings::{Check, Findings, Kept, Measured};
use memory::Memory;
use pin::Pinned;
use pmmpi::counters::event::{Event, Group};
use pmmpi::counters::linux::{Counters, Target};
use pmmpi::node::NodeFacts;
use pmmpi::trust;
use pmmpi_kernels::{Expected, Kernel};
use pmmpi_rounds::Failure;
use pmmpi_rounds::console::warn;
use section::{Repeats, repeat};
use std::io::Write;
use std::path::Path;

/// Something that could be counted is unusable.
const UNUSABLE: i32 = 1;
/// Of each kernel; the median is judged.
const REPEATS: usize = 7;

/// Validates, prints, keeps; gives the exit status.
pub fn run(typed: &Validation) -> Result<i32, Failure> {
    let kernels = chosen(&typed.kernels)?;
    let root = Path::new("/");
    let facts = NodeFacts::read(root);
    let known = events::Known::new(&facts.hardware, root);
    let pinned = Pinned::to(typed.cpu)?;
    let mut findings = Findings::new(&facts, &known, pinned.cpu(), REPEATS);
    let mut memory = Memory::new(root, &facts.hardware, pinned.cpu());
    for kernel in kernels {
        let mut held = held(kernel, &known, &pinned);
        if held.skipped.is_none() && kernel.memory == pmmpi_kernels::Memory::Arrays {
            held.checks.extend(memory.checks(kernel, REPEATS));
            findings.memory = Some(memory.found());
        }
        findings.kernels.push(held);
    }
    findings.mappings.extend(memory.mappings());
    drop(pinned);
    findings.judge();
    // Some kernels only: what is known of other events is not to be forgotten.
    findings.kept = if typed.kernels.is_empty() { keep(&findings) } else { Kept::NotAll };
    let rendered = match typed.format {
        Format::Text => text::render(&findings),
        Format::Json => findings.json().map_err(Failure::own)? + "\n",
    };
    let mut stdout = std::io::stdout();
    let written = stdout.write_all(rendered.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|e| Failure::own(format_args!("stdout cannot be written: {e}")))?;
    if let Kept::Not(why) = &findings.kept {
        warn(format_args!("what was found is not kept: {why}"));
    }
    Ok(if findings.is_unusable() { UNUSABLE } else { 0 })
}

/// The kernel of this name.
fn kernel(name: &str) -> Option<&'static Kernel> {
    pmmpi_kernels::all().iter().find(|kernel| kernel.name == name)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Kernel>, Failure> {
    let all = pmmpi_kernels::all();
    let find = |name: &String| {
        kernel(name).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|kernel| kernel.name).collect();
            Failure::own(format_args!("there is no kernel `{name}`, but {}", names.join(", ")))
        })
    };
    if names.is_empty() { Ok(all.iter().collect()) } else { names.iter().map(find).collect() }
}

/// Every event of which something is known, against one kernel.
fn held(kernel: &'static Kernel, known: &events::Known, pinned: &Pinned) -> findings::Held {
    let mut held = findings::Held::new(kernel);
    let wanted = expectations(kernel, known);
    let why = match ((kernel.body.runs_here)(), pinned.another()) {
        (false, _) => Some("this processor does not have its instructions".to_owned()),
        (_, None) if kernel.memory == pmmpi_kernels::Memory::Masks => {
            Some("it needs two hardware threads, and this process may use one".to_owned())
        }
        _ => None,
    };
    if let Some(why) = why {
        held.skipped = Some(why);
        return held;
    }
    let cpus = [pinned.cpu(), pinned.another().unwrap_or(pinned.cpu())];
    for (group, expected) in groups(wanted, known) {
        let mut counters = Counters::open(std::slice::from_ref(&group), Target::ThisThread);
        match repeat(kernel, cpus, REPEATS, &mut counters) {
            Ok(repeats) => held.checks.extend(checks(kernel, &group, &expected, &repeats)),
            Err(error) => held.skipped = Some(error.to_string()),
        }
    }
    held
}

/// What is known of an event: on paper, or by another clock that is read beside the counter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reference {
    Paper(Expected),
    Beside(section::Beside),
}

fn expectations(kernel: &Kernel, known: &events::Known) -> Vec<(Event, Reference)> {
    let paper = kernel.expected().into_iter().map(Reference::Paper);
    let beside = section::Beside::ALL.into_iter().filter(|_| kernel.name == section::CLOCKS_KERNEL);
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

/// Counted one group after the other, each small enough for any processor: nothing multiplexes that need not.
fn groups(wanted: Vec<(Event, Reference)>, known: &events::Known) -> Vec<(Group, Vec<Reference>)> {
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

fn checks(kernel: &Kernel, group: &Group, references: &[Reference], repeats: &Repeats) -> Vec<Check> {
    let each = group.iter().zip(references).enumerate();
    each.map(|(at, (event, reference))| {
        let measured: Vec<Measured> = repeats.of(at, *reference, kernel.trips);
        Check::of(&event.name, reference, &measured, repeats.overhead(at))
    })
    .collect()
}

fn keep(findings: &Findings) -> Kept {
    let Some(folder) = trust::folder() else {
        return Kept::Not(format!("there is no home (set {} to a folder)", trust::FOLDER_VARIABLE));
    };
    let json = match findings.json() {
        Ok(json) => json,
        Err(error) => return Kept::Not(error.to_string()),
    };
    match trust::keep(&folder, &findings.cpu.name, json.as_bytes()) {
        Ok(path) => Kept::In(path),
        Err(error) => Kept::Not(format!(
            "{}: {error} (set {} to another folder)",
            folder.display(),
            trust::FOLDER_VARIABLE
        )),
    }
}
