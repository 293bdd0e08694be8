//! Which nodes ought to be equal. A class is read from the records or declared, never inferred from timing: a
//! faulty fast node looks like a healthy slow one.

use pmmpi::node::Hardware;
use pmmpi::record::{NodeRecord, Run};
use std::collections::HashSet;
use std::str::FromStr;
use std::sync::Arc;

/// A label of this name says at which sitting a run was made.
pub const SESSION_LABEL: &str = "session";
/// Labels that tell runs of one class apart.
const NO_CLASS: [&str; 2] = [SESSION_LABEL, "run"];

/// Something that nodes of a class have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// Model, family and stepping of the processor.
    Cpu,
    /// Its microcode.
    Microcode,
    /// Memory, in GiB.
    Memory,
    /// The kernel's version.
    Kernel,
    /// Program and arguments.
    Command,
    /// How many ranks were on the node, of how many.
    Ranks,
    /// All labels but `session` and `run`.
    Labels,
    /// The class that others' results name.
    Class,
    /// A label, or a column of others' results.
    Named(String),
}

/// What makes a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassBy(Vec<Key>);

impl Default for ClassBy {
    fn default() -> Self {
        use Key::{Class, Command, Cpu, Kernel, Labels, Memory, Microcode, Ranks};
        Self(vec![Cpu, Microcode, Memory, Kernel, Command, Ranks, Labels, Class])
    }
}

impl FromStr for ClassBy {
    type Err = String;

    /// `cpu,memory,sku`; `none` makes one class of all.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "none" {
            return Ok(Self(Vec::new()));
        }
        let keys = text.split(',').map(|key| match key.trim() {
            "" => Err("a key is empty: expected are keys separated by commas, or none".to_owned()),
            "cpu" => Ok(Key::Cpu),
            "microcode" => Ok(Key::Microcode),
            "memory" => Ok(Key::Memory),
            "kernel" => Ok(Key::Kernel),
            "command" => Ok(Key::Command),
            "ranks" => Ok(Key::Ranks),
            "labels" => Ok(Key::Labels),
            "class" => Ok(Key::Class),
            name => Ok(Key::Named(name.to_owned())),
        });
        let mut keys = keys.collect::<Result<Vec<_>, _>>()?;
        let all = keys.clone();
        let mut at = 0..;
        keys.retain(|key| at.next().is_none_or(|at| !all[..at].contains(key)));
        Ok(Self(keys))
    }
}

impl ClassBy {
    fn has(&self, key: &Key) -> bool {
        self.0.contains(key)
    }

    /// All of them.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.iter()
    }

    /// Columns of others' results that make a class, in order.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|key| match key {
            Key::Class => Some("class"),
            Key::Named(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// The class of each node record in `run`. What a record does not say is "unknown". Nodes of one class share one
/// string.
pub fn of_nodes(run: &Run, by: &ClassBy) -> Vec<Arc<str>> {
    let mut ranks = vec![0; run.nodes.len()];
    for rank in &run.ranks {
        ranks[rank.node as usize] += 1;
    }
    let work = [by.has(&Key::Command).then(|| command(run)), labels(run, by)];
    let mut known: HashSet<Arc<str>> = HashSet::new();
    let class = |(node, here): (&NodeRecord, usize)| {
        let [command, labels] = &work;
        let ranks = by.has(&Key::Ranks).then(|| format!("({here} of {} ranks)", run.size));
        let how: Vec<&str> = command.iter().chain(&ranks).map(String::as_str).collect();
        let how = (!how.is_empty()).then(|| how.join(" "));
        let parts = [hardware(node, by), how, labels.clone()];
        let class: Arc<str> = parts.into_iter().flatten().collect::<Vec<_>>().join("; ").into();
        known.get(&class).cloned().unwrap_or_else(|| {
            known.insert(class.clone());
            class
        })
    };
    run.nodes.iter().zip(ranks).map(class).collect()
}

fn hardware(node: &NodeRecord, by: &ClassBy) -> Option<String> {
    let Some(facts) = node.facts.as_ref().map(|facts| &facts.hardware) else {
        let asked = [Key::Cpu, Key::Microcode, Key::Memory, Key::Kernel].iter().any(|key| by.has(key));
        return asked.then(|| "unknown node".to_owned());
    };
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    let parts = [
        by.has(&Key::Cpu).then(|| processor(facts)),
        by.has(&Key::Microcode).then(|| format!("microcode {}", or_unknown(&facts.microcode))),
        by.has(&Key::Memory).then(|| facts.memory_bytes.map_or_else(|| "unknown memory".into(), gibibytes)),
        by.has(&Key::Kernel).then(|| format!("Linux {}", or_unknown(&facts.kernel))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
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

/// In the order in which they are kept.
fn labels(run: &Run, by: &ClassBy) -> Option<String> {
    let named = |label: &str| by.has(&Key::Named(label.to_owned()));
    let all = by.has(&Key::Labels);
    let wanted =
        run.header.labels.iter().filter(|(key, _)| named(key) || (all && !NO_CLASS.contains(&key.as_str())));
    let mut wanted: Vec<String> = wanted.map(|(key, value)| format!("{key}={value}")).collect();
    wanted.sort();
    (!wanted.is_empty()).then(|| wanted.join(" "))
}

/// Whole GiB: the kernel's own share differs by some MiB from boot to boot.
fn gibibytes(bytes: u64) -> String {
    format!("{} GiB", (bytes + (1 << 29)) >> 30)
}

/// The command as a shell would show it, quoted where it must be.
pub fn command(run: &Run) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let quote = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    run.header.command.iter().map(quote).collect::<Vec<_>>().join(" ")
}
