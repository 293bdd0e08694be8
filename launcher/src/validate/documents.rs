//! The documents that a human must read: the vendors' documentation of events and their errata.

use pmmpi::node::Hardware;
use serde::Serialize;

/// Columns: step of the procedure, vendor, family, first and last model (hexadecimal), title, address. An empty family
/// or model matches all.
const DOCUMENTS: &str = include_str!("documents.csv");

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Document {
    /// "documentation" (step 3) or "errata" (step 4).
    pub step: &'static str,
    pub title: &'static str,
    pub url: &'static str,
}

/// The documents for this processor; those for specific models come first.
pub fn of(hardware: &Hardware) -> Vec<Document> {
    let mut found: Vec<(bool, Document)> =
        DOCUMENTS.lines().skip(1).filter_map(|line| document(line, hardware)).collect();
    found.sort_by_key(|(general, _)| *general);
    found.into_iter().map(|(_, document)| document).collect()
}

fn document(line: &'static str, hardware: &Hardware) -> Option<(bool, Document)> {
    let [step, vendor, family, first, last, title, url] =
        <[&str; 7]>::try_from(line.split(',').collect::<Vec<_>>()).ok()?;
    let number = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let within = |first: &str, last: &str, value: Option<u32>| {
        let bounds = number(first).zip(number(last));
        bounds.is_none_or(|(first, last)| value.is_some_and(|value| (first..=last).contains(&value)))
    };
    let is_this = hardware.cpu_vendor.as_deref() == Some(vendor)
        && within(family, family, hardware.cpu_family)
        && within(first, last, hardware.cpu_model);
    is_this.then_some((first.is_empty(), Document { step, title, url }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processor(vendor: &str, family: u32, model: u32) -> Vec<Document> {
        of(&Hardware {
            cpu_vendor: Some(vendor.into()),
            cpu_family: Some(family),
            cpu_model: Some(model),
            ..Hardware::default()
        })
    }

    #[test]
    fn every_line_is_one_document() {
        for line in DOCUMENTS.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!(fields.len(), 7, "{line}");
            assert!(["documentation", "errata"].contains(&fields[0]), "{line}");
            assert!(fields[6].starts_with("https://"), "{line}");
            assert_eq!(fields[3].is_empty(), fields[4].is_empty(), "{line}");
        }
    }

    #[test]
    fn each_maker_has_both_kinds_and_a_model_its_own_first() {
        for (vendor, family, model) in
            [("AuthenticAMD", 0x19, 0x11), ("GenuineIntel", 6, 0x8f), ("0x41", 8, 0xd0c)]
        {
            let documents = processor(vendor, family, model);
            for step in ["documentation", "errata"] {
                assert!(documents.iter().any(|document| document.step == step), "{vendor} {step}");
            }
        }
        assert!(processor("AuthenticAMD", 0x19, 0x11)[0].title.contains("19h Models 10h-1Fh"));
        assert!(!processor("AuthenticAMD", 0x19, 0x01).iter().any(|d| d.title.contains("10h-1Fh")));
        assert_eq!(processor("unknown", 1, 1), []);
    }
}
