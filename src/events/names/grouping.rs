//! Decides which events are counted at the same instants.

use super::error::NameError;
use super::generic;
use super::places::Places;
use super::{Asked, Resolved};
use pmmpi::counters::event::{Group, kind};
use pmmpi::counters::open_counters::Scope;

/// How many events a PMU counts at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Counters of a core for any event: [`pmmpi::counters::counters_per_pmu::general_counters`].
    pub of_a_core: usize,
    /// Whether instructions, cycles and reference cycles have counters of their own in addition: Intel.
    pub fixed: [bool; 3],
}

/// The fewest counters of a server processor's core in the last fifteen years, while both hardware threads of the core are
/// in use; and those of most units outside the cores.
const FEWEST: usize = 4;

/// Groups that are counted at the same places.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterPlan {
    /// The scope of these events.
    pub scope: Scope,
    /// Where they are counted.
    pub places: Places,
    /// What is counted.
    pub groups: Vec<Group>,
}

impl Capacity {
    /// The capacity of a processor by its vendor_id. `general` is `None` if it is unknown; `watchdog`: the kernel's NMI
    /// watchdog counts cycles all the time.
    pub fn new(vendor_id: Option<&str>, general: Option<usize>, watchdog: bool) -> Self {
        let of_a_core = general.unwrap_or(FEWEST);
        match vendor_id {
            Some("GenuineIntel") => Self { of_a_core, fixed: [true, !watchdog, true] },
            _ => {
                Self { of_a_core: of_a_core.saturating_sub(usize::from(watchdog)).max(1), fixed: [false; 3] }
            }
        }
    }

    /// The general counters of the PMU of such events.
    fn general(self, event: &Resolved) -> usize {
        if matches!(event.places, Places::Threads(_)) { self.of_a_core } else { FEWEST }
    }
}

/// Packs the requested events into few groups that fit the counters, in the order of the request. Events in braces
/// stay together, even if they do not fit. An event that is requested twice is counted once, except in braces.
///
/// Events of cores are counted in `scope`; the scope of sockets is an error for them. Events that belong to no core
/// are counted where it is possible.
pub fn plan(asked: Vec<Asked>, scope: Scope, capacity: Capacity) -> Result<Vec<CounterPlan>, NameError> {
    let mut making: Vec<Making> = Vec::new();
    for asked in asked {
        match asked {
            Asked::Event(events) => {
                for event in events {
                    Making::at(&mut making, &event, scope)?.add(event, capacity);
                }
            }
            Asked::Together(members) => {
                for group in together(members)? {
                    // A group may contain software events; the places of a PMU's events are narrower.
                    let Some(event) = group.iter().find(|event| !is_software(event)).or(group.first()) else {
                        continue;
                    };
                    let place = Making::at(&mut making, event, scope)?;
                    place.groups.push(Packed { pmu: event.pmu, events: group, closed: true });
                }
            }
        }
    }
    let group = |packed: Packed| packed.events.into_iter().map(|resolved| resolved.event).collect();
    let plan = |made: Making| CounterPlan {
        scope: made.scope,
        places: made.places,
        groups: made.groups.into_iter().map(group).collect(),
    };
    Ok(making.into_iter().map(plan).collect())
}

/// An unfinished plan.
struct Making {
    scope: Scope,
    places: Places,
    groups: Vec<Packed>,
}

struct Packed {
    pmu: u32,
    events: Vec<Resolved>,
    /// From braces: takes no further event.
    closed: bool,
}

impl Making {
    fn at<'a>(all: &'a mut Vec<Self>, event: &Resolved, scope: Scope) -> Result<&'a mut Self, NameError> {
        let scope = match &event.places {
            Places::Socket(_) => Scope::Socket,
            Places::Threads(_) if scope == Scope::Socket => {
                let event = event.event.name.clone();
                return Err(NameError::Scope { event, instead: "task or core" });
            }
            Places::Threads(_) => scope,
        };
        // Counters of a program follow it to every hardware thread.
        let places = if scope == Scope::Task { Places::Threads(None) } else { event.places.clone() };
        let known = all.iter().position(|made| made.scope == scope && made.places == places);
        let at = known.unwrap_or_else(|| {
            all.push(Self { scope, places, groups: Vec::new() });
            all.len() - 1
        });
        Ok(&mut all[at])
    }

    fn add(&mut self, event: Resolved, capacity: Capacity) {
        if self.groups.iter().any(|group| group.events.contains(&event)) {
            return;
        }
        let fits = |group: &&mut Packed| {
            let all = group.events.iter().chain([&event]);
            !group.closed && group.pmu == event.pmu && general(all, capacity) <= capacity.general(&event)
        };
        match self.groups.iter_mut().find(fits) {
            Some(group) => group.events.push(event),
            None => self.groups.push(Packed { pmu: event.pmu, events: vec![event], closed: false }),
        }
    }
}

/// How many general counters these events need together. The first event of each fixed counter takes that counter
/// instead.
fn general<'a>(events: impl Iterator<Item = &'a Resolved>, capacity: Capacity) -> usize {
    let mut taken = [false; 3];
    let mut general = 0;
    for resolved in events.filter(|event| !is_software(event)) {
        let encoding = resolved.event.encoding;
        let in_core = matches!(resolved.places, Places::Threads(_)) && resolved.pmu == encoding.kind;
        let fixed = generic::fixed_counter(encoding, in_core).filter(|at| capacity.fixed[usize::from(*at)]);
        match fixed.map(|counter| &mut taken[usize::from(counter)]) {
            Some(taken) if !*taken => *taken = true,
            _ => general += 1,
        }
    }
    general
}

fn is_software(resolved: &Resolved) -> bool {
    matches!(resolved.pmu, kind::SOFTWARE | kind::TRACEPOINT)
}

/// Turns the members of braces into groups: one per PMU if several PMUs count every member.
fn together(members: Vec<Vec<Resolved>>) -> Result<Vec<Vec<Resolved>>, NameError> {
    let (software, counted): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|member| member.iter().all(is_software));
    let Some(first) = counted.first() else {
        return Ok(vec![software.into_iter().flatten().collect()]);
    };
    let pmus: Vec<u32> = first.iter().map(|event| event.pmu).collect();
    let name = |member: &[Resolved]| member.first().map_or(String::new(), |event| event.event.name.clone());
    let apart =
        |one: &[Resolved], other: &[Resolved]| NameError::Apart { one: name(one), other: name(other) };
    for member in &counted {
        if !member.iter().map(|event| event.pmu).eq(pmus.iter().copied()) {
            return Err(apart(first, member));
        }
    }
    if let Some(member) = software.first()
        && first.iter().any(|event| matches!(event.places, Places::Socket(_)))
    {
        return Err(apart(first, member));
    }
    let mut groups: Vec<Vec<Resolved>> = vec![Vec::new(); pmus.len()];
    for member in counted {
        groups.iter_mut().zip(member).for_each(|(group, event)| group.push(event));
    }
    let software: Vec<Resolved> = software.into_iter().flatten().collect();
    match &mut groups[..] {
        [only] => only.extend(software),
        // In the group of one kind of core, a software event would count only there.
        _ if !software.is_empty() => groups.push(software),
        _ => {}
    }
    Ok(groups)
}
