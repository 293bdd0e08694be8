//! What the user wants counted: names, resolved on this node.

use crate::options::{self, Measurement};
use crate::vendor;
use pmmpi::counters::default;
use pmmpi::counters::names::{Asked, Capacity, Names, Plan, plan};
use pmmpi::counters::probe::Scope;
use pmmpi::counters::selection::{Selection, Wanted};
use pmmpi::metrics::{CpuKind, EventSpec, catalogue};
use pmmpi::node::{CpuSet, NodeFacts};
use pmmpi_rounds::Failure;
use std::path::Path;

/// The default set of each rank's own threads, and what the options add.
pub fn select(typed: &Measurement) -> Result<Selection, Failure> {
    let mut selection = default_selection();
    if typed.scope == options::Scope::Task && typed.events.is_none() && typed.group.is_none() {
        return Ok(selection);
    }
    let (scope, machine) = (typed.scope.into(), Machine::look()?);
    if let Some(list) = &typed.events {
        let asked = machine.names.resolve(list, vendor::resolve);
        let asked = asked.map_err(|e| Failure::own(format_args!("--events {list}: {e}")))?;
        let (asked, lacking) = machine.names.countable(asked);
        selection.lacking.extend(lacking.into_iter().map(|event| (Scope::Task, event)));
        if scope == Scope::Core {
            // Where a rank's own threads are watched, too.
            selection.sets.extend(machine.wanted(asked.clone(), Scope::Task).map_err(|e| e.of("--events"))?);
        }
        selection.sets.extend(machine.wanted(asked, scope).map_err(|e| e.of("--events"))?);
    }
    if let Some(name) = &typed.group {
        for (scope, asked) in machine.group(name, scope)? {
            let (asked, lacking) = machine.names.countable(asked);
            selection.lacking.extend(lacking.into_iter().map(|event| (scope, event)));
            selection.sets.extend(machine.wanted(asked, scope).map_err(|e| e.of("--group"))?);
        }
    }
    if scope == Scope::Core {
        let cpus = machine.online.0.iter().flat_map(|(first, last)| *first..=*last).collect();
        selection.sets.push(Wanted { scope, groups: default::groups_of_a_core(), cpus });
    }
    if scope == Scope::Socket && selection.sets.iter().all(|wanted| wanted.scope != Scope::Socket) {
        return Err(Failure::own(
            "--scope socket: name events of PMUs outside the cores with --events (see `pmmpi list events`), \
             or --group memory",
        ));
    }
    Ok(selection.tidied())
}

/// On a processor with several kinds of cores the default set is counted on each.
fn default_selection() -> Selection {
    let groups = Names::of(Path::new("/")).default_groups();
    Selection { sets: vec![Wanted { scope: Scope::Task, groups, cpus: Vec::new() }], lacking: Vec::new() }
}

impl From<options::Scope> for Scope {
    fn from(typed: options::Scope) -> Self {
        match typed {
            options::Scope::Task => Self::Task,
            options::Scope::Core => Self::Core,
            options::Scope::Socket => Self::Socket,
        }
    }
}

/// What is known of this node's counters.
struct Machine {
    names: Names,
    facts: NodeFacts,
    online: CpuSet,
}

/// What cannot be counted in the way that was asked for.
struct Refused(String);

impl Refused {
    fn of(self, option: &str) -> Failure {
        Failure::own(format_args!("{option}: {}", self.0))
    }
}

impl Machine {
    fn look() -> Result<Self, Failure> {
        let facts = NodeFacts::read(Path::new("/"));
        let online = facts.settings.online.clone();
        if online.0.is_empty() {
            return Err(Failure::own(
                "/sys/devices/system/cpu/online cannot be read: nothing can be counted",
            ));
        }
        Ok(Self { names: Names::of(Path::new("/")), facts, online })
    }

    fn wanted(&self, asked: Vec<Asked>, scope: Scope) -> Result<Vec<Wanted>, Refused> {
        let capacity = Capacity::of_vendor(self.facts.hardware.cpu_vendor.as_deref());
        let plans = plan(asked, scope, capacity).map_err(|e| Refused(e.to_string()))?;
        let wanted = |Plan { scope, places, groups }| {
            let cpus = if scope == Scope::Task { Vec::new() } else { places.cpus(&self.online) };
            Wanted { scope, groups, cpus }
        };
        Ok(plans.into_iter().map(wanted).collect())
    }

    /// The events of a group of metrics on this processor, under the names that its formulas have. Those that this
    /// machine has no PMU for are left out: their metrics say so.
    fn group(&self, name: &str, scope: Scope) -> Result<Vec<(Scope, Vec<Asked>)>, Failure> {
        let catalogue = catalogue();
        let groups: Vec<&str> = catalogue.groups.iter().map(|group| group.name.as_str()).collect();
        if !groups.contains(&name) {
            return Err(Failure::own(format_args!(
                "--group {name}: no such group; there are {}",
                groups.join(", ")
            )));
        }
        let table = catalogue.table(&CpuKind::of_node(&self.facts.hardware));
        let events = table.map(|table| catalogue.events_of(name, table)).unwrap_or_default();
        if events.iter().any(|event| event.sibling.is_some()) {
            return Err(Failure::own(format_args!(
                "--group {name}: its events are counted on one of the two hardware threads of each core, which \
                 this version does not do"
            )));
        }
        let places = [Scope::Task, Scope::Core, Scope::Socket];
        let mut asked: Vec<(Scope, Vec<Asked>)> = places.map(|place| (place, Vec::new())).into();
        for event in events {
            let Some(resolved) = self.event(event) else { continue };
            for (place, of_place) in &mut asked {
                // What threads can be asked for is asked of all hardware threads, too, where that is wanted.
                let too = event.scope == Scope::Task && *place == Scope::Core && scope == Scope::Core;
                if event.scope == *place || too {
                    of_place.push(resolved.clone());
                }
            }
        }
        asked.retain(|(_, asked)| !asked.is_empty());
        Ok(asked)
    }

    fn event(&self, spec: &EventSpec) -> Option<Asked> {
        let no_vendor = |_: &[String]| Err("not asked".to_owned());
        let asked = self.names.resolve(&spec.encoding, no_vendor).ok()?;
        let Some(Asked::Event(mut resolved)) = asked.into_iter().next() else { return None };
        for resolved in &mut resolved {
            // Several PMUs of one kind are one event to a formula.
            resolved.event.name.clone_from(&spec.name);
        }
        Some(Asked::Event(resolved))
    }
}
