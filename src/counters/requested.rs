//! Events that the user asks for in addition to the default set. The start of a run and the report show which of
//! them cannot be counted.

use super::open_counters::{Opened, Scope};
use serde::{Deserialize, Serialize};
use std::fmt;

/// An option that asks for events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedFor {
    /// The option as the user typed it: "--group smt".
    pub typed: String,
    /// Its events; empty if the processor's table has none for it.
    pub events: Vec<(Scope, String)>,
}

/// Requested events without a value, all for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncounted {
    /// As in [`AskedFor`].
    pub typed: String,
    /// Their names.
    pub events: Vec<String>,
    /// Where they were not counted, if this is known: "rank 0".
    pub place: Option<String>,
    /// Why.
    pub why: String,
}

/// What to do about events that cannot be counted.
pub const ADVICE: &str = "the measurement goes on without these events; `pmmpi list events` shows the events \
                          of this machine, and `pmmpi doctor` shows what limits counting";

/// The reason for a group without known events.
const NO_EVENTS: &str = "pmmpi knows no event of this processor for this option";

impl fmt::Display for Uncounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { typed, events, place, why } = self;
        let place = place.as_deref().unwrap_or("pmmpi");
        match events.is_empty() {
            true => write!(f, "{typed} counts nothing: {why}"),
            false => write!(f, "{typed}: {place} cannot count {}: {why}", events.join(", ")),
        }
    }
}

/// The events without a value, one entry per option, place and reason. `why` returns the place and the reason
/// for an event; `None` if it has a value.
pub fn uncounted(
    asked: &[AskedFor],
    why: impl Fn(Scope, &str) -> Option<(Option<String>, String)>,
) -> Vec<Uncounted> {
    let mut all: Vec<Uncounted> = Vec::new();
    for AskedFor { typed, events } in asked {
        if events.is_empty() {
            let why = NO_EVENTS.to_owned();
            all.push(Uncounted { typed: typed.clone(), events: Vec::new(), place: None, why });
        }
        for (scope, name) in events {
            let Some((place, why)) = why(*scope, name) else { continue };
            let is_same =
                |known: &&mut Uncounted| known.typed == *typed && known.place == place && known.why == why;
            match all.iter_mut().find(is_same) {
                Some(known) if known.events.contains(name) => {}
                Some(known) => known.events.push(name.clone()),
                None => all.push(Uncounted { typed: typed.clone(), events: vec![name.clone()], place, why }),
            }
        }
    }
    all
}

/// The same for the counters that were opened here.
pub fn unopened(asked: &[AskedFor], opened: &Opened) -> Vec<Uncounted> {
    uncounted(asked, |scope, name| {
        let sets = opened.sets.iter().filter(|set| set.scope == scope);
        let mut gaps = sets.flat_map(|set| &set.events).filter(|(event, _)| event.name == name);
        let first = gaps.next()?.1.filter(|gap| !gap.quality().has_value())?;
        // An event of several PMUs is fine if one of them counts it.
        gaps.all(|(_, gap)| gap.is_some_and(|gap| !gap.quality().has_value()))
            .then(|| (None, first.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::count_and_quality::Gap;
    use super::super::event::{Encoding, Event};
    use super::super::open_counters::Set;
    use super::*;

    fn asked(typed: &str, events: &[&str]) -> AskedFor {
        let events = events.iter().map(|name| (Scope::Task, (*name).to_owned())).collect();
        AskedFor { typed: typed.to_owned(), events }
    }

    fn opened(events: &[(&str, Option<Gap>)]) -> Opened {
        let event = |(name, gap): &(&str, Option<Gap>)| (Event::counted(name, Encoding::new(0, 0)), *gap);
        let set = Set { scope: Scope::Task, events: events.iter().map(event).collect(), groups: Vec::new() };
        Opened { sets: vec![set], handles: Vec::new() }
    }

    #[test]
    fn events_without_a_value_are_told_by_option_and_reason() {
        let (gone, denied) = (Gap::Unsupported(libc::ENOENT), Gap::Denied(libc::EACCES));
        let opened = opened(&[
            ("a", Some(gone)),
            ("b", None),
            ("c", Some(gone)),
            ("d", Some(denied)),
            ("e", Some(gone)),
        ]);
        let all =
            [asked("--group g", &["a", "b", "c", "d"]), asked("--events e", &["e"]), asked("--group h", &[])];
        let said: Vec<String> = unopened(&all, &opened).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                format!("--group g: pmmpi cannot count a, c: {gone}"),
                format!("--group g: pmmpi cannot count d: {denied}"),
                format!("--events e: pmmpi cannot count e: {gone}"),
                "--group h counts nothing: pmmpi knows no event of this processor for this option".to_owned(),
            ]
        );
        assert!(unopened(&[], &opened).is_empty());
    }

    #[test]
    fn a_part_of_an_event_is_counted() {
        let gone = Some(Gap::Unsupported(libc::ENOENT));
        let all = [asked("--events a", &["a"])];
        assert!(unopened(&all, &opened(&[("a", Some(Gap::UserModeOnly))])).is_empty());
        assert!(unopened(&all, &opened(&[("a", gone), ("a", None)])).is_empty());
        assert_eq!(unopened(&all, &opened(&[("a", gone), ("a", gone)]))[0].events, ["a"]);
    }
}
