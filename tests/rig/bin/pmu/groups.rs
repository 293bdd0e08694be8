//! Checks groups, and more events than counters.

use crate::{Check, INSTRUCTIONS, LOOP, TURNS, hardware, instructions, is_near, unless};
use pmmpi::counters::count_and_quality::Quality;
use pmmpi::counters::counters_per_pmu::{fit_at_once, general_counters};
use pmmpi::counters::event::{Event, Group, Modes};
use pmmpi::counters::perf_event_open::Target;
use rig::counting::Counted;
use rig::known_counts::turns;
use rig::users::pin;

/// Long compared with the few milliseconds after which the kernel switches to other events.
const LONG: u64 = 20;
const EVENTS: usize = 24;

fn group_of(events: usize, first: usize) -> Group {
    let event = |at| Event::counted(&format!("i{at}"), hardware(INSTRUCTIONS, Modes::User));
    (first..first + events).map(event).collect()
}

/// For each opened group, the counts of its events, and how long they were counted.
fn rows(counted: &Counted) -> Vec<(Vec<u64>, u64, u64)> {
    let groups = counted.counts.rows.iter().flat_map(|row| &row.groups).flatten();
    groups.map(|group| (group.counts.clone(), group.enabled_ns, group.running_ns)).collect()
}

fn differences(groups: &[(Vec<u64>, u64, u64)]) -> u64 {
    let of = |(counts, ..): &(Vec<u64>, u64, u64)| {
        counts.iter().max().zip(counts.iter().min()).map_or(0, |(most, least)| most - least)
    };
    groups.iter().map(of).max().unwrap_or(0)
}

pub fn group() -> Check {
    let counted = Counted::during(&[group_of(4, 0)], Target::ThisThread, || turns(TURNS));
    let groups = rows(&counted);
    let whole =
        matches!(groups.as_slice(), [(counts, enabled, running)] if counts.len() == 4 && enabled == running);
    unless(!whole || differences(&groups) > 0, format!("{groups:?}"))
}

fn scaled(groups: &[Group]) -> Result<(Counted, String), String> {
    let counted = Counted::during(groups, Target::ThisThread, || turns(LONG * TURNS));
    let all = counted.all();
    let values: Vec<u64> = all.iter().filter_map(|(_, reading)| reading.value()).collect();
    let (least, most) = (values.iter().min().unwrap_or(&0), values.iter().max().unwrap_or(&0));
    let shares = all.iter().filter_map(|(_, reading)| reading.running_share());
    let (low, high) = shares.fold((1.0f64, 0.0f64), |(low, high), share| (low.min(share), high.max(share)));
    let found = format!("{} events, {least} to {most}, running share {low:.3} to {high:.3}", values.len());
    for (event, reading) in &all {
        let value = reading.value().unwrap_or(0);
        if reading.quality() != Quality::Scaled || !is_near(value, LONG * LOOP, 10_000) {
            return Err(format!("{} is {value}, {}: {found}", event.name, reading.quality().name()));
        }
    }
    if values.len() != EVENTS {
        return Err(found);
    }
    Ok((counted, found))
}

pub fn shared() -> Check {
    let groups: Vec<Group> = (0..EVENTS).map(|at| group_of(1, at)).collect();
    scaled(&groups).map(|(_, found)| found)
}

pub fn shared_groups() -> Check {
    const EACH: usize = 3;
    let groups: Vec<Group> = (0..EVENTS).step_by(EACH).map(|at| group_of(EACH, at)).collect();
    let (counted, found) = scaled(&groups)?;
    let rows = rows(&counted);
    let differ = differences(&rows);
    let found = format!("{found}, at most {differ} apart in a group");
    unless(rows.len() != EVENTS / EACH || differ > 0, found)
}

pub fn too_large_a_group() -> Check {
    let (counted, found) = scaled(&[group_of(EVENTS, 0)])?;
    let sizes: Vec<usize> = rows(&counted).iter().map(|(counts, ..)| counts.len()).collect();
    unless(sizes.len() < 2, format!("{found}, in groups of {sizes:?}"))
}

/// The kernel tells how many events count at once, without counting any.
pub fn at_once() -> Check {
    let general = general_counters().ok_or("the kernel opens no event")?;
    let counted =
        |events: usize| Counted::during(&[group_of(events, 0)], Target::ThisThread, || turns(TURNS));
    let sizes =
        |events: usize| rows(&counted(events)).iter().map(|(counts, ..)| counts.len()).collect::<Vec<_>>();
    let is_exact = counted(general).all().iter().all(|(_, reading)| reading.quality() == Quality::Exact);
    let fit = [general, general + 1].map(|events| fit_at_once([group_of(events, 0)].iter()));
    let found =
        format!("{general} general counters; groups of {:?} and {:?}", sizes(general), sizes(general + 1));
    let wrong = sizes(general) != [general]
        || sizes(general + 1) != [general, 1]
        || !is_exact
        || fit != [true, false];
    unless(wrong, found)
}

pub fn hardware_thread() -> Check {
    let cpu = pin().map_err(|e| format!("sched_setaffinity: {e}"))?;
    let counted = Counted::during(&instructions(), Target::Cpu(cpu), || turns(TURNS));
    let reading = counted.of("instructions:u")?;
    let value = reading.value().unwrap_or(0);
    let cpus: Vec<Option<u32>> = counted.counts.rows.iter().map(|row| row.cpu).collect();
    // Other processes may also work there.
    let wrong = reading.quality() != Quality::Exact || value < LOOP || cpus != [Some(cpu)];
    unless(wrong, format!("{value} {} on {cpus:?}", reading.quality().name()))
}
