//! What a class consists of, before [`ClassBy`] selects the keys that count.

use super::{ClassBy, Key, NO_CLASS};
use crate::table::run_settings;
use pmmpi::node::Hardware;
use pmmpi::record::{NodeRecord, Run};
use pmmpi::text::count;
use std::sync::Arc;

/// What is known about where and how a run was made: one text per key, never empty. An archive has a column for each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Parts(Vec<(Key, Arc<str>)>);

impl FromIterator<(Key, Arc<str>)> for Parts {
    fn from_iter<T: IntoIterator<Item = (Key, Arc<str>)>>(parts: T) -> Self {
        let mut parts: Vec<_> = parts.into_iter().filter(|(_, text)| !text.is_empty()).collect();
        parts.sort_unstable();
        parts.dedup_by(|(key, _), (first, _)| key == first);
        Self(parts)
    }
}

impl Parts {
    /// The parts of a class that was declared as a whole; none if the text is empty.
    pub fn declared(class: &str) -> Self {
        [(Key::Class, class.into())].into_iter().collect()
    }

    /// The parts of a node with `ranks` ranks in a run of pmmpi. `work` is the result of [`of_work`] for this run.
    pub(super) fn of_node(node: &NodeRecord, ranks: usize, run: &Run, work: &[(Key, Arc<str>)]) -> Self {
        let facts = node.facts.as_ref().map(|facts| &facts.hardware);
        let known = |key: Key, text: Option<String>| text.map(|text| (key, text.into()));
        let hardware = [
            known(Key::Cpu, facts.map(processor)),
            known(Key::Microcode, facts.and_then(|facts| facts.microcode.clone())),
            known(Key::Memory, facts.and_then(|facts| facts.memory_bytes).map(gibibytes)),
            known(Key::Kernel, facts.and_then(|facts| facts.kernel.clone())),
            known(Key::Ranks, Some(ranks_of(ranks, run))),
        ];
        hardware.into_iter().flatten().chain(work.iter().cloned()).collect()
    }

    /// Adds a part if there is none with this key.
    pub fn add(&mut self, key: &Key, text: &str) {
        if !text.is_empty()
            && let Err(place) = self.0.binary_search_by(|(known, _)| known.cmp(key))
        {
            self.0.insert(place, (key.clone(), text.into()));
        }
    }

    /// The same with a fact or a setting, if there is no label of this name.
    pub(crate) fn with_fact(mut self, name: &str, value: &str) -> Self {
        if self.get(&Key::Named(name.to_owned())).is_none() {
            self.add(&Key::Fact(name.to_owned()), value);
        }
        self
    }

    /// All parts.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &str)> {
        self.0.iter().map(|(key, text)| (key, &**text))
    }

    /// The text of a key.
    pub fn get(&self, key: &Key) -> Option<&str> {
        self.iter().find(|(known, _)| *known == key).map(|(_, text)| text)
    }

    /// True for a round of `pmmpi screen`, also in an archive.
    pub(crate) fn are_of_screen(&self) -> bool {
        self.get(&Key::Ranks).is_some_and(|ranks| ranks.ends_with(PER_NODE))
    }

    /// The text of [`Key::Ranks`] in the name of a class.
    pub(crate) fn described_ranks(ranks: &str) -> String {
        match ranks.ends_with(PER_NODE) {
            true => format!("({ranks})"),
            false => format!("({ranks} ranks)"),
        }
    }

    /// The parts that make up a class.
    pub(crate) fn making_up(&self, by: &ClassBy, is_own: bool) -> Self {
        let parts = self.0.iter().filter(|(key, _)| by.makes_up(key, is_own));
        Self(parts.cloned().collect())
    }

    /// For a run of pmmpi, the names of its requested labels. For other tools' results, the requested names that
    /// match a column.
    pub(crate) fn names<'a>(&'a self, by: &'a ClassBy, is_own: bool) -> impl Iterator<Item = &'a str> {
        let asked = by.keys().filter(move |key| match is_own {
            true => self.get(key).is_some(),
            false => self.iter().any(|(known, _)| key.names(known)),
        });
        asked.map(Key::name)
    }

    /// The class of a run of pmmpi. Missing parts appear as "unknown". If there is a declared class, it is used as it
    /// is: then the file was part of an archive and has lost the parts.
    pub fn class_of_own(&self, by: &ClassBy) -> String {
        if let Some(class) = self.get(&Key::Class) {
            return if by.has(&Key::Class) { class.to_owned() } else { String::new() };
        }
        let asked = |key: Key| by.has(&key).then(|| self.get(&key));
        let command = asked(Key::Command).flatten().map(str::to_owned);
        let ranks = asked(Key::Ranks).flatten().map(Self::described_ranks);
        let setting = |key: &Key| match key {
            Key::Fact(name) if !key.is_fact() => {
                let label = || self.get(&Key::Named(name.clone()));
                self.get(key).or_else(label).map(|value| run_settings::described(name, value))
            }
            _ => None,
        };
        let settings = by.keys.iter().filter_map(setting);
        let how: Vec<String> = command.into_iter().chain(ranks).chain(settings).collect();
        let texts = [self.hardware(by), how.join(" "), self.labels(by)];
        texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
    }

    fn hardware(&self, by: &ClassBy) -> String {
        let asked = |key: Key, before: &str, unknown: &str| {
            let text =
                |text: Option<&str>| text.map_or_else(|| unknown.into(), |text| format!("{before}{text}"));
            by.has(&key).then(|| text(self.get(&key)))
        };
        let texts = [
            asked(Key::Cpu, "", ""),
            asked(Key::Microcode, "microcode ", "microcode unknown"),
            asked(Key::Memory, "", "unknown memory"),
            asked(Key::Kernel, "Linux ", "Linux unknown"),
        ];
        let fact = |key: &Key| match key {
            Key::Fact(name) if key.is_fact() => {
                let label = self.get(&Key::Named(name.clone()));
                Some(format!("{name} {}", self.get(key).or(label).unwrap_or("unknown")))
            }
            _ => None,
        };
        let texts: Vec<String> = texts.into_iter().flatten().chain(by.keys.iter().filter_map(fact)).collect();
        // A node whose hardware is known always has this part.
        if self.get(&Key::Cpu).is_none() && !texts.is_empty() {
            return "unknown node".to_owned();
        }
        texts.join(", ")
    }

    fn labels(&self, by: &ClassBy) -> String {
        let all = by.has(&Key::Labels);
        let label = |(key, text): (&Key, &str)| match key {
            Key::Named(name) if by.has(key) || (all && !NO_CLASS.contains(&name.as_str())) => {
                Some(format!("{name}={text}"))
            }
            _ => None,
        };
        let mut labels: Vec<String> = self.iter().filter_map(label).collect();
        labels.sort();
        labels.join(" ")
    }

    /// The class of a result of another tool, for example `sku=a, HPL N=1000`, in the order of the keys. Capital and
    /// small letters are equal in column names.
    pub fn class_of_others(&self, by: &ClassBy) -> String {
        let text = |(key, name): (&Key, &str)| {
            let (_, text) = self.iter().find(|(known, _)| key.names(known))?;
            Some(if *key == Key::Class { text.to_owned() } else { format!("{name}={text}") })
        };
        by.columns().filter_map(text).collect::<Vec<_>>().join(", ")
    }
}

/// The command and the labels.
pub(super) fn of_work(run: &Run) -> Vec<(Key, Arc<str>)> {
    let labels = run.header.labels.iter();
    let labels = labels.map(|(name, text)| (Key::Named(name.clone()), text.as_str().into()));
    labels.chain([(Key::Command, super::command(run).into())]).collect()
}

/// The end of the number of ranks in a screen.
const PER_NODE: &str = "per node";

/// In a screen, the number of all ranks plays no part: each node works for itself, and suspects run more rounds.
fn ranks_of(ranks: usize, run: &Run) -> String {
    match run.screened {
        Some(_) => format!("{} {PER_NODE}", count(ranks, "rank")),
        None => format!("{ranks} of {}", run.size),
    }
}

fn processor(facts: &Hardware) -> String {
    let number = |value: Option<u32>| value.map_or_else(|| "?".into(), |v| v.to_string());
    format!(
        "{} ({}/{}/{})",
        facts.cpu_model_name.as_deref().unwrap_or("unknown"),
        number(facts.cpu_family),
        number(facts.cpu_model),
        number(facts.cpu_stepping),
    )
}

/// Whole GiB: the part that the kernel reserves differs by some MiB from boot to boot.
fn gibibytes(bytes: u64) -> String {
    format!("{} GiB", rounded(bytes))
}

/// Bytes in GiB.
fn rounded(bytes: u64) -> u64 {
    bytes.saturating_add(1 << 29) >> 30
}

/// True if the parts of a class that describe hardware are the same.
pub(super) fn are_alike(one: &Hardware, other: &Hardware) -> bool {
    let of = |hardware: &Hardware| {
        let numbers = [hardware.cpu_family, hardware.cpu_model, hardware.cpu_stepping];
        (numbers, hardware.memory_bytes.map(rounded))
    };
    let is_same_text = |text: fn(&Hardware) -> &Option<String>| text(one) == text(other);
    of(one) == of(other)
        && is_same_text(|hardware| &hardware.cpu_model_name)
        && is_same_text(|hardware| &hardware.microcode)
        && is_same_text(|hardware| &hardware.kernel)
}
