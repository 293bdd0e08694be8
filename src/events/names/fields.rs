//! Fields of a PMU's events, and the bits that they are written to.

use super::error::NameError;
use super::pmu::Pmu;
use super::syntax::{self, EventTerm};

/// Where a field's value goes, as a file in `format` says: "config:0-7,32-35".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// 0 for config, 1 for config1, 2 for config2.
    word: usize,
    /// Its bits, the lowest of the value in the lowest of these.
    mask: u64,
}

/// What terms come to.
#[derive(Debug, PartialEq)]
pub struct Encoded {
    pub config: [u64; 3],
    pub scale: f64,
    pub unit: String,
    /// What `name=` says.
    pub label: Option<String>,
}

/// The fields of every PMU, for those who know the code.
const WORDS: [&str; 3] = ["config", "config1", "config2"];

impl Field {
    /// From the text of a file in `format`.
    pub fn parse(text: &str) -> Option<Self> {
        let (word, ranges) = text.split_once(':')?;
        let word = WORDS.iter().position(|name| *name == word)?;
        let range = |item: &str| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last && last < 64).then(|| u64::MAX >> (63 - (last - first)) << first)
        };
        let mask = ranges.split(',').try_fold(0, |mask, item| Some(mask | range(item)?))?;
        Some(Self { word, mask })
    }

    /// Writes a value into its bits, in place of what was there; false where it needs more bits.
    fn set(self, config: &mut [u64; 3], value: u64) -> bool {
        let bits = self.mask.count_ones();
        if bits < 64 && value >> bits != 0 {
            return false;
        }
        let (mut left, mut value, mut placed) = (self.mask, value, 0);
        while left != 0 {
            let lowest = left & left.wrapping_neg();
            placed |= if value & 1 == 1 { lowest } else { 0 };
            (left, value) = (left ^ lowest, value >> 1);
        }
        config[self.word] = config[self.word] & !self.mask | placed;
        true
    }

    fn largest(self) -> u64 {
        u64::MAX.checked_shr(64 - self.mask.count_ones()).unwrap_or(0)
    }
}

/// Terms in the order in which they are written: a later one has the last word. An event's name stands for
/// the fields that the PMU gives for it.
pub fn encode(pmu: &Pmu, terms: &[EventTerm]) -> Result<Encoded, NameError> {
    let mut encoded = Encoded { config: [0; 3], scale: 1.0, unit: String::new(), label: None };
    let mut named = false;
    // Fields that an event leaves to the user ("ldlat=?").
    let mut open: Vec<String> = Vec::new();
    for term in terms {
        match &term.value {
            None if pmu.has_event(&term.name) => {
                if std::mem::replace(&mut named, true) {
                    return Err(NameError::term(pmu, term, "a second event of this PMU"));
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
            Err(NameError::term(pmu, &term, "the event needs a value for it"))
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
            let (bits, largest) = (field.mask.count_ones(), field.largest());
            Err(NameError::term(pmu, term, &format!("does not fit {bits} bits (at most {largest:#x})")))
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
            None => Err(NameError::unknown_term(pmu, name)),
        },
        (name, _) => Err(NameError::unknown_term(pmu, name)),
    }
}

fn number(pmu: &Pmu, term: &EventTerm, text: &str) -> Result<u64, NameError> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = hex.unwrap_or(text);
    // from_str_radix takes a sign.
    let value = if digits.starts_with(['+', '-']) {
        None
    } else {
        u64::from_str_radix(digits, if hex.is_some() { 16 } else { 10 }).ok()
    };
    value.ok_or_else(|| NameError::term(pmu, term, "expected a number of 64 bits, such as 192 or 0xc0"))
}

fn is_label(text: &str) -> bool {
    super::sysfs::is_name(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(format: &str, value: u64) -> Option<[u64; 3]> {
        let mut config = [0; 3];
        Field::parse(format).unwrap().set(&mut config, value).then_some(config)
    }

    #[test]
    fn bits_are_where_the_format_says() {
        assert_eq!(written("config:0-7", 0xc0), Some([0xc0, 0, 0]));
        // Event select 0x4E0 of the AMD note: four of its bits lie 24 bits higher.
        assert_eq!(written("config:0-7,32-35", 0x4e0), Some([0x4_0000_00e0, 0, 0]));
        assert_eq!(written("config1:0-63", u64::MAX), Some([0, u64::MAX, 0]));
        assert_eq!(written("config2:63", 1), Some([0, 0, 1 << 63]));
        assert_eq!(written("config:0-7", 0x100), None);
        for bad in
            ["", "config", "config:", "config:8-7", "config:0-64", "config3:0", "config:a", "config:0-7-8"]
        {
            assert_eq!(Field::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_value_that_fits_changes_its_own_bits_and_no_other(
            mask in any::<u64>(), before in any::<u64>(), value in any::<u64>()
        ) {
            let field = Field { word: 1, mask };
            let value = value & field.largest();
            let mut config = [before; 3];
            prop_assert!(field.set(&mut config, value));
            prop_assert_eq!((config[0], config[2], config[1] & !mask), (before, before, before & !mask));
            // Read back bit by bit, by the definition.
            let bits = (0..64).filter(|bit| mask >> bit & 1 == 1);
            let read = bits.enumerate().fold(0, |read, (at, bit)| read | (config[1] >> bit & 1) << at);
            prop_assert_eq!(read, value);
        }

        #[test]
        fn no_format_is_too_strange(text in "(config[0-3]?:)?[0-9,:-]{0,20}|.*") {
            let _ = Field::parse(&text);
        }
    }
}
