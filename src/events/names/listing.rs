//! All events that the user can ask for by name on this machine.

use super::pmu::Pmu;
use super::syntax::{EventTerm, NameOrTerms, WantedEvent};
use super::{EventNames, Resolved, generic, pmu_family};

/// An event that can be asked for by name.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedEvent {
    /// What to type.
    pub name: String,
    /// Other names of it.
    pub aliases: Vec<String>,
    /// Where the name comes from.
    pub origin: Origin,
    /// The resolved events: more than one if several PMUs count it.
    pub events: Vec<Resolved>,
}

/// Where an event's name comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Every kernel knows it: an event of the processor or of the kernel.
    Kernel,
    /// A PMU, by its name without the number of an instance.
    Pmu(String),
}

impl ListedEvent {
    pub(super) fn into_names(self) -> Vec<String> {
        std::iter::once(self.name).chain(self.aliases).collect()
    }
}

impl EventNames {
    /// All events that the kernel has names for, except those that cannot be read.
    pub fn listed(&self) -> Vec<ListedEvent> {
        let mut all = Vec::new();
        for known in generic::all() {
            let mut names = known.names.into_iter();
            let Some(name) = names.next() else { continue };
            let events = self.everywhere(known.event);
            all.push(ListedEvent { name, aliases: names.collect(), origin: Origin::Kernel, events });
        }
        for (family, pmus) in self.families() {
            let mut names: Vec<String> = Vec::new();
            for pmu in &pmus {
                names.extend(pmu.events());
            }
            names.sort();
            names.dedup();
            for event in names {
                let name = format!("{family}/{event}/");
                let terms = [EventTerm { name: event, value: None }];
                let what = NameOrTerms::Terms { pmu: family.to_owned(), terms: terms.to_vec() };
                let wanted = WantedEvent { text: name.clone(), what, modes: None };
                if let Ok(events) = self.encode(pmus.clone(), &terms, &wanted) {
                    let origin = Origin::Pmu(family.to_owned());
                    all.push(ListedEvent { name, aliases: Vec::new(), origin, events });
                }
            }
        }
        all
    }

    /// PMUs whose events can be written field by field, each with its fields.
    pub fn fields(&self) -> Vec<(String, Vec<String>)> {
        let of = |(family, pmus): (&str, Vec<Pmu>)| {
            let fields = pmus.first().map(Pmu::fields).unwrap_or_default();
            (!fields.is_empty()).then(|| (family.to_owned(), fields))
        };
        self.families().into_iter().filter_map(of).collect()
    }

    /// The instances of each PMU, by their common name.
    fn families(&self) -> Vec<(&str, Vec<Pmu>)> {
        let mut families: Vec<(&str, Vec<Pmu>)> = Vec::new();
        for name in &self.pmus {
            let Ok(pmu) = Pmu::read(&self.devices, name) else { continue };
            // If one PMU has exactly the common name, the numbered PMUs are not its instances.
            let family = match pmu_family(name) {
                family if self.pmus.iter().any(|pmu| pmu == family) => name.as_str(),
                family => family,
            };
            match families.last_mut() {
                Some((known, pmus)) if *known == family => pmus.push(pmu),
                _ => families.push((family, vec![pmu])),
            }
        }
        families
    }
}
