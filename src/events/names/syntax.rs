//! Parses the text of a list of events as perf does.

use super::error::NameError;
use pmmpi::counters::event::Modes;
use std::fmt;

/// An element of a list.
#[derive(Debug, PartialEq)]
pub enum Item {
    One(WantedEvent),
    /// In braces.
    Group(Vec<WantedEvent>),
}

/// One event, as it is written.
#[derive(Debug, PartialEq)]
pub struct WantedEvent {
    /// As it was typed.
    pub text: String,
    pub what: NameOrTerms,
    /// `None` if the text names no modes.
    pub modes: Option<Modes>,
}

#[derive(Debug, PartialEq)]
pub enum NameOrTerms {
    Name(String),
    Terms { pmu: String, terms: Vec<EventTerm> },
}

/// `name=value` or `name`.
#[derive(Clone, Debug, PartialEq)]
pub struct EventTerm {
    pub name: String,
    pub value: Option<String>,
}

/// Longer than any sensible list (bytes).
const LONGEST: usize = 1 << 16;

impl Item {
    pub fn wanted(&self) -> &[WantedEvent] {
        match self {
            Item::One(wanted) => std::slice::from_ref(wanted),
            Item::Group(group) => group,
        }
    }
}

impl WantedEvent {
    /// Its name; `None` for a PMU's terms.
    pub fn name(&self) -> Option<&str> {
        match &self.what {
            NameOrTerms::Name(name) => Some(name),
            NameOrTerms::Terms { .. } => None,
        }
    }
}

impl fmt::Display for EventTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Events between commas; braces make a group; commas between the slashes of a PMU belong to its terms.
pub fn list(text: &str) -> Result<Vec<Item>, NameError> {
    if text.len() > LONGEST {
        return Err(NameError::syntax("LIST", "the list is longer than 64 KiB"));
    }
    if text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return Err(NameError::syntax("LIST", "the list contains a character that cannot be printed"));
    }
    split(text)?
        .into_iter()
        .map(|part| match part.strip_prefix('{') {
            None => wanted(part, None).map(Item::One),
            Some(rest) => {
                let problem = || NameError::syntax(part, "expected {a,b} or {a,b}:u");
                let not_understood = || NameError::syntax(part, MODES_UNDERSTOOD);
                let (inside, after) = rest.rsplit_once('}').ok_or_else(problem)?;
                if inside.contains(['{', '}']) {
                    return Err(NameError::syntax(part, "an event group cannot contain an event group"));
                }
                let after = match after.strip_prefix(':') {
                    Some(text) => Some(modes(text).ok_or_else(not_understood)?),
                    None if after.is_empty() => None,
                    None => return Err(problem()),
                };
                let events = split(inside)?.into_iter().map(|event| wanted(event, after));
                events.collect::<Result<_, _>>().map(Item::Group)
            }
        })
        .collect()
}

/// Splits at commas outside of slashes and braces. No part is empty.
fn split(text: &str) -> Result<Vec<&str>, NameError> {
    let (mut parts, mut begin, mut in_slashes, mut depth) = (Vec::new(), 0, false, 0u32);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'/' => in_slashes = !in_slashes,
            b'{' if !in_slashes => depth += 1,
            b'}' if !in_slashes => depth = depth.saturating_sub(1),
            b',' if !in_slashes && depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    if in_slashes {
        return Err(NameError::syntax(text, "a slash is missing: expected PMU/TERM=VALUE,.../"));
    }
    if depth > 0 {
        return Err(NameError::syntax(text, "a closing brace is missing: expected {a,b}"));
    }
    parts.push(&text[begin..]);
    let parts: Vec<&str> = parts.into_iter().map(str::trim).collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(NameError::syntax(text, "an event is missing: expected EVENT,EVENT,..."));
    }
    Ok(parts)
}

fn wanted(text: &str, of_group: Option<Modes>) -> Result<WantedEvent, NameError> {
    if text.contains(['{', '}']) {
        return Err(NameError::syntax(text, "braces can only enclose events: expected {a,b}"));
    }
    let (what, modes) = match text.split_once('/') {
        Some((pmu, rest)) => {
            let problem = || NameError::syntax(text, "expected PMU/TERM=VALUE,.../");
            let (inside, after) = rest.split_once('/').ok_or_else(problem)?;
            let after = after.strip_prefix(':').unwrap_or(after);
            let not_understood = || NameError::syntax(text, MODES_UNDERSTOOD);
            let own = if after.is_empty() { None } else { Some(modes(after).ok_or_else(not_understood)?) };
            if pmu.is_empty() {
                return Err(problem());
            }
            (NameOrTerms::Terms { pmu: pmu.to_owned(), terms: terms(inside)? }, own)
        }
        None => match text.rsplit_once(':').map(|(name, after)| (name, modes(after))) {
            Some((name, Some(modes))) if !name.is_empty() && !name.ends_with(':') => {
                (NameOrTerms::Name(name.to_owned()), Some(modes))
            }
            _ => (NameOrTerms::Name(text.to_owned()), None),
        },
    };
    Ok(WantedEvent { text: text.to_owned(), what, modes: modes.or(of_group) })
}

/// Parses some of u, k and h (the hypervisor), each once. h needs k: counting kernel mode includes the hypervisor.
fn modes(text: &str) -> Option<Modes> {
    let mut letters: Vec<u8> = text.bytes().collect();
    letters.sort_unstable();
    match &letters[..] {
        b"u" => Some(Modes::User),
        b"k" | b"hk" => Some(Modes::Kernel),
        b"ku" | b"hku" => Some(Modes::All),
        _ => None,
    }
}

/// The problem with unknown text behind an event.
pub const MODES_UNDERSTOOD: &str = "after an event, pmmpi accepts only a mode: EVENT:u (user mode), EVENT:k or EVENT:kh (Linux kernel and hypervisor), \
     EVENT:uk or EVENT:ukh (all)";

/// Parses the text between a PMU's slashes, or of a file of its `events`.
pub fn terms(text: &str) -> Result<Vec<EventTerm>, NameError> {
    let term = |part: &str| {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name, Some(value.trim().to_owned())),
            None => (part, None),
        };
        let name = name.trim().to_owned();
        if name.is_empty() {
            return Err(NameError::syntax(text, "a term is missing: expected TERM=VALUE,..."));
        }
        Ok(EventTerm { name, value })
    };
    text.split(',').map(term).collect()
}

/// perf's raw codes: r and up to 16 hexadecimal digits. `None` for other names.
pub fn raw(name: &str) -> Result<Option<u64>, NameError> {
    let Some(digits) = name.strip_prefix('r') else { return Ok(None) };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(None);
    }
    let code = u64::from_str_radix(digits, 16);
    code.map(Some).map_err(|_| NameError::syntax(name, "a code has at most 16 hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(text: &str) -> Vec<Vec<String>> {
        let items = list(text).unwrap();
        items.iter().map(|item| item.wanted().iter().map(|wanted| wanted.text.clone()).collect()).collect()
    }

    #[test]
    fn commas_part_events_outside_of_slashes_and_braces() {
        assert_eq!(
            texts("cycles, cpu/event=1,umask=2/u,{a,pmu/x,y/}:k,skx::B:C"),
            [vec!["cycles"], vec!["cpu/event=1,umask=2/u"], vec!["a", "pmu/x,y/"], vec!["skx::B:C"]]
        );
        for bad in [
            "",
            ",",
            "a,",
            "{a",
            "a}",
            "{}",
            "{a,{b}}",
            "cpu/event=1",
            "/x/",
            "cpu/x/p",
            "cpu/,/",
            "{a}x",
            "a\u{7}",
        ] {
            assert!(list(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn modes_stand_behind_the_name() {
        let modes_of = |text: &str| {
            let items = list(text).unwrap();
            let wanted = &items[0].wanted()[0];
            (wanted.name().map(str::to_owned), wanted.modes)
        };
        assert_eq!(modes_of("cycles:u"), (Some("cycles".into()), Some(Modes::User)));
        assert_eq!(modes_of("cycles:ku"), (Some("cycles".into()), Some(Modes::All)));
        assert_eq!(modes_of("cycles:hk"), (Some("cycles".into()), Some(Modes::Kernel)));
        assert_eq!(modes_of("cycles:ukh"), (Some("cycles".into()), Some(Modes::All)));
        assert_eq!(modes_of("cycles:uu"), (Some("cycles:uu".into()), None));
        assert_eq!(modes_of("skx::A:B"), (Some("skx::A:B".into()), None));
        assert_eq!(modes_of("skx::A:B:k"), (Some("skx::A:B".into()), Some(Modes::Kernel)));
        assert_eq!(modes_of("cpu/x/u"), (None, Some(Modes::User)));
        assert_eq!(modes_of("{cycles,instructions:u}:k").1, Some(Modes::Kernel));
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "[a-c{},/:=ukr0-9 ]{0,30}|.*") {
            if let Ok(items) = list(&text) {
                let wanted = items.iter().flat_map(Item::wanted);
                prop_assert!(wanted.into_iter().all(|wanted| text.contains(&wanted.text)));
            }
        }
    }
}
