//! A name in the syntax of `--events` becomes an event of the kernel: [`EventNames::resolve`].

use super::error::{self, NameError};
use super::pmu::{self, Pmu};
use super::pmu_terms::{self, Encoded};
use super::syntax::{self, EventTerm, Item, NameOrTerms, WantedEvent};
use super::tracepoints::{self, Tracepoint};
use super::{
    Asked, EventNames, ListedEvent, Places, Resolved, Vendor, VendorAnswer, generic, pmu_family, sysfs,
};
use pmmpi::counters::core_pmus::{DEVICES, is_core_pmu};
use pmmpi::counters::event::{Encoding, Event, Modes, kind};
use std::path::Path;

impl EventNames {
    /// The names of the machine whose files are below `root`, normally "/". Reads only which PMUs exist.
    pub fn of(root: &Path) -> Self {
        let devices = root.join(DEVICES);
        let pmus = sysfs::names(&devices);
        let is_core = |name: &&String| is_core_pmu(&devices, name);
        let cores = pmus.iter().filter(is_core).filter_map(|name| Pmu::read(&devices, name).ok());
        // All cores of one kind may be offline.
        let cores = cores.filter(|core| !core.places.is_nowhere()).collect();
        Self { root: root.to_owned(), devices, pmus, cores }
    }

    /// Resolves a list in the syntax of `--events`. Calls `vendor` once, and only for names that nothing here
    /// knows. An error of `vendor` says why there are no vendor names.
    pub fn resolve(
        &self,
        list: &str,
        vendor: impl FnOnce(&[String]) -> Result<Vec<VendorAnswer>, String>,
    ) -> Result<Vec<Asked>, NameError> {
        let items = syntax::list(list)?;
        let wanted = items.iter().flat_map(Item::wanted);
        let known = wanted.map(|wanted| self.known(wanted)).collect::<Result<Vec<_>, _>>()?;
        let names = items.iter().flat_map(Item::wanted).zip(&known);
        let unknown: Vec<String> = names
            .filter(|(_, known)| known.is_none())
            .filter_map(|(wanted, _)| wanted.name().map(str::to_owned))
            .collect();
        let mut answers =
            if unknown.is_empty() { Ok(Vec::new()) } else { vendor(&unknown) }.map(Vec::into_iter);
        let mut all = items.iter().flat_map(Item::wanted).zip(known).map(|(wanted, known)| match known {
            Some(events) => Ok(events),
            None => match &mut answers {
                Ok(answers) => self.vendors(wanted, answers.next().unwrap_or_default()),
                Err(why) => Err(self.unknown(wanted, Vec::new(), Some(why.clone()))),
            },
        });
        let missing = || NameError::syntax(list, "more names than events");
        let mut next = || all.next().unwrap_or_else(|| Err(missing()));
        items
            .iter()
            .map(|item| match item {
                Item::One(_) => next().map(Asked::Event),
                Item::Group(group) => {
                    group.iter().map(|_| next()).collect::<Result<_, _>>().map(Asked::Together)
                }
            })
            .collect()
    }

    /// `None` if only a vendor's table may know the name.
    fn known(&self, wanted: &WantedEvent) -> Result<Option<Vec<Resolved>>, NameError> {
        match &wanted.what {
            NameOrTerms::Terms { pmu, terms } => self.of_pmus(pmu, terms, wanted).map(Some),
            NameOrTerms::Name(name) => match generic::named(name) {
                Some(event) => in_modes(event, wanted).map(|event| Some(self.everywhere(event))),
                None => match syntax::raw(name)? {
                    Some(config) => Ok(Some(self.raw(name, config, wanted.modes))),
                    None if is_known_but_for_modes(name) => {
                        Err(NameError::syntax(&wanted.text, syntax::MODES_UNDERSTOOD))
                    }
                    None => match tracepoints::find(&self.root, name)? {
                        Tracepoint::Known(number) => tracepoint(name, number, wanted).map(Some),
                        Tracepoint::Unknown | Tracepoint::Hidden(_) => self.bare(name, wanted),
                    },
                },
            },
        }
    }

    /// An event that every kernel knows, on each kind of core.
    pub(super) fn everywhere(&self, event: Event) -> Vec<Resolved> {
        if event.encoding.kind == kind::SOFTWARE {
            return vec![Resolved { event, places: Places::Threads(None), pmu: kind::SOFTWARE }];
        }
        match &self.cores[..] {
            [] => vec![Resolved { event, places: Places::Threads(None), pmu: kind::RAW }],
            [core] => vec![Resolved { event, places: core.places.clone(), pmu: core.kind }],
            cores => cores.iter().map(|core| self.on(core, &event)).collect(),
        }
    }

    /// A name that every kernel knows, on one kind of core.
    fn on(&self, core: &Pmu, event: &Event) -> Resolved {
        let number = (self.cores.len() > 1).then_some(core.kind);
        let event = event.clone().on_core_pmu(&core.name, number);
        Resolved { event, places: core.places.clone(), pmu: core.kind }
    }

    fn raw(&self, name: &str, config: u64, modes: Option<Modes>) -> Vec<Resolved> {
        let modes = modes.unwrap_or(Modes::All);
        let of = |name: String, kind| Event::counted(&name, Encoding::new(kind, config).in_modes(modes));
        match &self.cores[..] {
            [] => vec![Resolved {
                event: of(with_modes(name, modes), kind::RAW),
                places: Places::Threads(None),
                pmu: kind::RAW,
            }],
            [core] => vec![Resolved {
                event: of(with_modes(name, modes), kind::RAW),
                places: core.places.clone(),
                pmu: core.kind,
            }],
            cores => cores
                .iter()
                .map(|core| Resolved {
                    event: of(format!("{}/{name}/{}", core.name, suffix(modes)), core.kind),
                    places: core.places.clone(),
                    pmu: core.kind,
                })
                .collect(),
        }
    }

    /// Resolves the name of a PMU's event that is written without the PMU.
    fn bare(&self, name: &str, wanted: &WantedEvent) -> Result<Option<Vec<Resolved>>, NameError> {
        if !sysfs::is_name(name) {
            return Ok(None);
        }
        let has = |pmu: &&String| pmu::has_event(&self.devices, pmu, name);
        let having: Vec<&String> = self.pmus.iter().filter(has).collect();
        let Some(first) = having.first() else { return Ok(None) };
        let is_core = |pmu: &str| self.cores.iter().any(|core| core.name == pmu);
        let one = |pmu: &&String| pmu_family(pmu) == pmu_family(first) || is_core(pmu) && is_core(first);
        if !having.iter().all(one) {
            let mut pmus: Vec<String> = having.iter().map(|pmu| pmu_family(pmu).to_owned()).collect();
            pmus.dedup();
            return Err(NameError::Ambiguous { name: name.to_owned(), pmus });
        }
        let terms = [EventTerm { name: name.to_owned(), value: None }];
        let pmus =
            having.into_iter().map(|pmu| Pmu::read(&self.devices, pmu)).collect::<Result<Vec<_>, _>>()?;
        self.encode(pmus, &terms, wanted).map(Some)
    }

    /// Resolves `pmu/terms/` on each PMU that `name` stands for.
    fn of_pmus(
        &self,
        name: &str,
        terms: &[EventTerm],
        wanted: &WantedEvent,
    ) -> Result<Vec<Resolved>, NameError> {
        let exact = self.pmus.iter().any(|pmu| pmu == name);
        let meant = |pmu: &&String| match exact {
            true => *pmu == name,
            false => pmu_family(pmu) == name && *pmu != name || name.contains('*') && matches_glob(name, pmu),
        };
        let pmus: Vec<&String> = self.pmus.iter().filter(meant).collect();
        if pmus.is_empty() {
            return Err(self.unknown_pmu(name));
        }
        let pmus =
            pmus.into_iter().map(|pmu| Pmu::read(&self.devices, pmu)).collect::<Result<Vec<_>, _>>()?;
        self.encode(pmus, terms, wanted)
    }

    pub(super) fn encode(
        &self,
        pmus: Vec<Pmu>,
        terms: &[EventTerm],
        wanted: &WantedEvent,
    ) -> Result<Vec<Resolved>, NameError> {
        let several = pmus.len() > 1;
        let counting: Vec<Pmu> = pmus.into_iter().filter(|pmu| !pmu.places.is_nowhere()).collect();
        if counting.is_empty() {
            return Err(NameError::Nowhere { event: wanted.text.clone() });
        }
        // It is enough that some instances of a PMU have the event.
        let (mut events, mut first_error) = (Vec::new(), None);
        for pmu in &counting {
            match self.encode_on(pmu, terms, wanted) {
                Ok(event) => events.push(event),
                Err(error) if several => first_error = first_error.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        match (events.is_empty(), first_error) {
            (true, Some(error)) => Err(error),
            _ => Ok(events),
        }
    }

    fn encode_on(&self, pmu: &Pmu, terms: &[EventTerm], wanted: &WantedEvent) -> Result<Resolved, NameError> {
        let is_core = self.cores.iter().any(|core| core.name == pmu.name);
        if let ([EventTerm { name, value: None }], true) = (terms, is_core)
            // With several kinds of cores, each counts a name that every kernel knows by the kernel's code, not by
            // the PMU's own.
            && (self.cores.len() > 1 || !pmu.has_event(name))
            && let Some(event) = generic::of_the_processor(name)
        {
            return Ok(self.on(pmu, &in_modes(event, wanted)?));
        }
        if wanted.modes.is_some() && matches!(pmu.places, Places::Socket(_)) {
            return Err(NameError::Modes { event: wanted.text.clone(), problem: IN_ALL_MODES });
        }
        let modes = wanted.modes.unwrap_or(Modes::All);
        let Encoded { config, scale, unit, label } = pmu_terms::encode(pmu, terms)?;
        let written: Vec<String> = terms.iter().map(EventTerm::to_string).collect();
        let name = format!("{}/{}/{}", pmu.name, written.join(","), suffix(modes));
        let encoding = Encoding { kind: pmu.kind, config, modes };
        let event = Event { name: label.unwrap_or(name), encoding, unit, scale };
        Ok(Resolved { event, places: pmu.places.clone(), pmu: pmu.kind })
    }

    /// Resolves an answer from a vendor's tables.
    fn vendors(&self, wanted: &WantedEvent, answer: VendorAnswer) -> Result<Vec<Resolved>, NameError> {
        match answer {
            VendorAnswer::Unknown { like } => Err(self.unknown(wanted, like, None)),
            VendorAnswer::Refused { why } => Err(NameError::Vendor { name: wanted.text.clone(), why }),
            VendorAnswer::Found(vendor) => {
                let encoding = vendor.encoding;
                let event = self.of_vendor(Vendor {
                    encoding: wanted.modes.map_or(encoding, |modes| encoding.in_modes(modes)),
                    ..vendor
                })?;
                if wanted.modes.is_some()
                    && event.iter().any(|event| matches!(event.places, Places::Socket(_)))
                {
                    return Err(NameError::Modes { event: wanted.text.clone(), problem: IN_ALL_MODES });
                }
                Ok(event)
            }
        }
    }

    /// Resolves an event by a vendor's name, with the places where it can be counted.
    pub fn of_vendor(&self, vendor: Vendor) -> Result<Vec<Resolved>, NameError> {
        let encoding = vendor.encoding;
        let mut event = Event::counted(&with_modes(&vendor.name, encoding.modes), encoding);
        let read =
            |name: &String| Pmu::read(&self.devices, name).ok().filter(|pmu| pmu.kind == encoding.kind);
        let (places, pmu) = match encoding.kind {
            kind::SOFTWARE => (Places::Threads(None), kind::SOFTWARE),
            kind::HARDWARE | kind::CACHE | kind::RAW => match &self.cores[..] {
                [core] => (core.places.clone(), core.kind),
                _ => (Places::Threads(None), kind::RAW),
            },
            number => match self.pmus.iter().find_map(read) {
                Some(pmu) => {
                    // Vendors' tables have no units. The kernel may have one for the same event.
                    if let Some(own) = pmu_terms::known_as(&pmu, encoding.config) {
                        (event.scale, event.unit) = (own.scale, own.unit);
                    }
                    (pmu.places, number)
                }
                None => (Places::Threads(None), number),
            },
        };
        if places.is_nowhere() {
            return Err(NameError::Nowhere { event: event.name });
        }
        Ok(vec![Resolved { event, places, pmu }])
    }

    fn unknown(&self, wanted: &WantedEvent, mut like: Vec<String>, vendor: Option<String>) -> NameError {
        let name = wanted.name().unwrap_or(&wanted.text).to_owned();
        if like.is_empty() {
            like = self.listed().into_iter().flat_map(ListedEvent::into_names).collect();
            like = error::closest(&name, like.iter().map(String::as_str));
        }
        let tracepoints = match tracepoints::find(&self.root, &name) {
            Ok(Tracepoint::Hidden(why)) => Some(why),
            _ => None,
        };
        NameError::Unknown { name, like, vendor, tracepoints }
    }

    fn unknown_pmu(&self, name: &str) -> NameError {
        let mut pmus: Vec<String> = self.pmus.iter().map(|pmu| pmu_family(pmu).to_owned()).collect();
        pmus.dedup();
        let like = error::closest(name, pmus.iter().map(String::as_str));
        NameError::UnknownPmu { name: name.to_owned(), like, pmus }
    }
}

/// A tracepoint of the kernel, on any hardware thread.
fn tracepoint(name: &str, number: u64, wanted: &WantedEvent) -> Result<Vec<Resolved>, NameError> {
    let modes = wanted.modes.unwrap_or(Modes::All);
    if modes == Modes::User {
        return Err(NameError::Modes {
            event: wanted.text.clone(),
            problem: "the event always happens in the Linux kernel",
        });
    }
    let encoding = Encoding::new(kind::TRACEPOINT, number).in_modes(modes);
    let event = Event::counted(&with_modes(name, modes), encoding);
    Ok(vec![Resolved { event, places: Places::Threads(None), pmu: kind::TRACEPOINT }])
}

/// True for names such as "cycles:p": the event exists, but pmmpi does not know the modifier.
fn is_known_but_for_modes(name: &str) -> bool {
    let event = name.split_once(':').map(|(event, _)| event);
    event.is_some_and(|event| generic::named(event).is_some() || matches!(syntax::raw(event), Ok(Some(_))))
}

const IN_ALL_MODES: &str = "the event's PMU is outside the cores and counts all modes";

/// A pattern with `*` for any text.
fn matches_glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let (Some(first), Some(last)) = (parts.next(), parts.next_back()) else { return pattern == name };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The event in the requested modes, with its name in these modes.
fn in_modes(mut event: Event, wanted: &WantedEvent) -> Result<Event, NameError> {
    let Some(modes) = wanted.modes else { return Ok(event) };
    if event.encoding.modes != Modes::All && event.encoding.modes != modes {
        return Err(NameError::Modes {
            event: wanted.text.clone(),
            problem: "the event's name already sets another mode",
        });
    }
    event.encoding.modes = modes;
    event.name = generic::own_name(event.encoding).unwrap_or_else(|| with_modes(&event.name, modes));
    Ok(event)
}

fn with_modes(name: &str, modes: Modes) -> String {
    match suffix(modes) {
        "" => name.to_owned(),
        suffix => format!("{name}:{suffix}"),
    }
}

fn suffix(modes: Modes) -> &'static str {
    match modes {
        Modes::All => "",
        Modes::User => "u",
        Modes::Kernel => "k",
    }
}
