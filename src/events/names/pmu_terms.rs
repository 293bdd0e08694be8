//! Turns the terms of a name into the configuration that the kernel takes.

use super::error::{NameError, closest};
use super::fields::WORDS;
use super::pmu::Pmu;
use super::syntax::{self, EventTerm};

/// The result of encoding terms.
#[derive(Debug, PartialEq)]
pub struct Encoded {
    pub config: [u64; 3],
    pub scale: f64,
    pub unit: String,
    /// The value of `name=`.
    pub label: Option<String>,
}

/// Encodes terms in the order in which they are written; a later term overrides an earlier one. An event's name
/// stands for the fields that the PMU gives for it.
pub fn encode(pmu: &Pmu, terms: &[EventTerm]) -> Result<Encoded, NameError> {
    let mut encoded = Encoded { config: [0; 3], scale: 1.0, unit: String::new(), label: None };
    let mut named = false;
    // Fields that an event leaves to the user ("ldlat=?").
    let mut open: Vec<String> = Vec::new();
    for term in terms {
        match &term.value {
            None if pmu.has_event(&term.name) => {
                if std::mem::replace(&mut named, true) {
                    return Err(wrong_term(
                        pmu,
                        term,
                        "the text already names an event of this PMU: name only one event between the \
                         slashes",
                    ));
                }
                let Some(event) = pmu.event(&term.name)? else { continue };
                for own in syntax::terms(&event.terms)? {
                    if own.value.as_deref() == Some("?") {
                        open.push(own.name);
                    } else {
                        set(pmu, &own, &mut encoded)?;
                    }
                }
                (encoded.scale, encoded.unit) = (event.scale, event.unit);
            }
            _ => {
                open.retain(|name| *name != term.name);
                set(pmu, term, &mut encoded)?;
            }
        }
    }
    match open.first() {
        Some(name) => {
            let term = EventTerm { name: name.clone(), value: Some("?".to_owned()) };
            Err(wrong_term(pmu, &term, "the event needs a value for this field"))
        }
        None => Ok(encoded),
    }
}

fn set(pmu: &Pmu, term: &EventTerm, encoded: &mut Encoded) -> Result<(), NameError> {
    if let Some(field) = pmu.field(&term.name)? {
        // A field without a value is a flag.
        let value = number(pmu, term, term.value.as_deref().unwrap_or("1"))?;
        return if field.set(&mut encoded.config, value) {
            Ok(())
        } else {
            let (bits, largest) = (field.bits(), field.largest());
            Err(wrong_term(
                pmu,
                term,
                &format!("the value does not fit into {bits} bits (at most {largest:#x})"),
            ))
        };
    }
    match (term.name.as_str(), &term.value) {
        (name, Some(value)) if WORDS.contains(&name) => {
            let word = WORDS.iter().position(|word| *word == name).unwrap_or(0);
            encoded.config[word] = number(pmu, term, value)?;
            Ok(())
        }
        ("name", Some(value)) if is_label(value) => {
            encoded.label = Some(value.clone());
            Ok(())
        }
        (name, None) => match syntax::raw(name)? {
            Some(config) => {
                encoded.config[0] = config;
                Ok(())
            }
            None => Err(unknown_term(pmu, name)),
        },
        (name, _) => Err(unknown_term(pmu, name)),
    }
}

fn number(pmu: &Pmu, term: &EventTerm, text: &str) -> Result<u64, NameError> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = hex.unwrap_or(text);
    // from_str_radix would accept a sign.
    let value = if digits.starts_with(['+', '-']) {
        None
    } else {
        u64::from_str_radix(digits, if hex.is_some() { 16 } else { 10 }).ok()
    };
    value.ok_or_else(|| wrong_term(pmu, term, "expected a number of at most 64 bits, such as 192 or 0xc0"))
}

fn is_label(text: &str) -> bool {
    super::sysfs::is_name(text)
}

/// The PMU's own event with this code.
pub fn known_as(pmu: &Pmu, config: [u64; 3]) -> Option<Encoded> {
    let own = |name: String| encode(pmu, &[EventTerm { name, value: None }]).ok();
    pmu.events().into_iter().filter_map(own).find(|own| own.config == config)
}

fn wrong_term(pmu: &Pmu, term: &EventTerm, problem: &str) -> NameError {
    NameError::Term { pmu: pmu.name.clone(), term: term.to_string(), problem: problem.to_owned() }
}

fn unknown_term(pmu: &Pmu, term: &str) -> NameError {
    let events = pmu.events();
    let like = closest(term, events.iter().map(String::as_str));
    NameError::UnknownTerm { pmu: pmu.name.clone(), term: term.to_owned(), fields: pmu.fields(), like }
}
