//! Which nodes ought to be equal. A class is read from the records or declared, never inferred from timing: a
//! faulty fast node looks like a healthy slow one.

mod parts;

pub use parts::Parts;

use pmmpi::record::{NodeRecord, Run};
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

/// A label of this name says at which sitting a run was made.
pub const SESSION_LABEL: &str = "session";
/// Labels that tell runs of one class apart.
const NO_CLASS: [&str; 2] = [SESSION_LABEL, "run"];

/// Something that nodes of a class have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// What columns of an archive begin with that tell what classes are made of.
const COLUMN: &str = "class.";
/// And those of labels, and of columns of others' results.
const LABEL_COLUMN: &str = "class.label.";

impl Key {
    /// The column of an archive that has it; `None` of several together.
    pub fn column(&self) -> Option<String> {
        if let Self::Named(name) = self {
            return Some(format!("{LABEL_COLUMN}{name}"));
        }
        SINGLE.iter().find(|(_, key)| key == self).map(|(name, _)| format!("{COLUMN}{name}"))
    }

    /// True where this key asks for that column of others' results: these are the same in small and capital letters.
    fn names(&self, column: &Self) -> bool {
        match (self, column) {
            (Self::Named(name), Self::Named(column)) => name.eq_ignore_ascii_case(column),
            _ => self == column,
        }
    }

    /// The key of a column of an archive.
    pub fn of_column(column: &str) -> Option<Self> {
        if let Some(name) = column.strip_prefix(LABEL_COLUMN) {
            return Some(Self::Named(name.to_owned()));
        }
        let name = column.strip_prefix(COLUMN)?;
        SINGLE.iter().find(|(known, _)| *known == name).map(|(_, key)| key.clone())
    }
}

/// Names of single parts in columns of an archive.
const SINGLE: [(&str, Key); 7] = [
    ("cpu", Key::Cpu),
    ("microcode", Key::Microcode),
    ("memory", Key::Memory),
    ("kernel", Key::Kernel),
    ("command", Key::Command),
    ("ranks", Key::Ranks),
    ("declared", Key::Class),
];

/// True of a name that only a column of an archive can have.
pub(crate) fn is_column(name: &str) -> bool {
    name.get(..COLUMN.len()).is_some_and(|head| head.eq_ignore_ascii_case(COLUMN))
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
        if text.trim().eq_ignore_ascii_case("none") {
            return Ok(Self(Vec::new()));
        }
        let keys = text.split(',').map(|key| match key.trim().to_ascii_lowercase().as_str() {
            "" => Err("a key is empty: expected are keys separated by commas, or none".to_owned()),
            "cpu" => Ok(Key::Cpu),
            "microcode" => Ok(Key::Microcode),
            "memory" => Ok(Key::Memory),
            "kernel" => Ok(Key::Kernel),
            "command" => Ok(Key::Command),
            "ranks" => Ok(Key::Ranks),
            "labels" => Ok(Key::Labels),
            "class" => Ok(Key::Class),
            "none" => Err("`none` makes one class of all and stands alone".to_owned()),
            _ => Ok(Key::Named(key.trim().to_owned())),
        });
        let mut keys = keys.collect::<Result<Vec<_>, _>>()?;
        let all = keys.clone();
        let mut at = 0..;
        keys.retain(|key| at.next().is_none_or(|at| !all[..at].contains(key)));
        Ok(Self(keys))
    }
}

impl ClassBy {
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.0.contains(key)
    }

    /// All of them.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.iter()
    }

    /// True where the class of others' results is the one that they declare.
    pub(crate) fn is_as_declared(&self) -> bool {
        self.columns().map(|(key, _)| key).eq([&Key::Class])
    }

    /// Whether this part can matter in the class of others' results.
    pub(crate) fn wants_of_others(&self, part: &Key) -> bool {
        self.columns().any(|(key, _)| key.names(part))
    }

    /// Whether this part can matter in the class of a run of pmmpi's own.
    pub(crate) fn wants_of_own(&self, part: &Key) -> bool {
        match part {
            Key::Named(name) => {
                self.has(part) || (self.has(&Key::Labels) && !NO_CLASS.contains(&name.as_str()))
            }
            // Without it nothing is known of the node.
            Key::Cpu => [Key::Cpu, Key::Microcode, Key::Memory, Key::Kernel].iter().any(|key| self.has(key)),
            // Of a file that has lost the others.
            Key::Class => true,
            single => self.has(single),
        }
    }

    /// Keys that columns of others' results may have, with the names of these, in order.
    pub fn columns(&self) -> impl Iterator<Item = (&Key, &str)> {
        self.0.iter().filter_map(|key| match key {
            Key::Class => Some((key, "class")),
            Key::Named(name) => Some((key, name.as_str())),
            _ => None,
        })
    }
}

/// What ought to be equal to what: a node of a run, or what another tool measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Class {
    /// By the keys that were asked for.
    pub name: String,
    /// By any others, too.
    pub parts: Parts,
}

/// The class of each node record in `run`. Nodes that have the same in common share one.
pub fn of_nodes(run: &Run, by: &ClassBy) -> Vec<Arc<Class>> {
    let mut ranks = vec![0; run.nodes.len()];
    for rank in &run.ranks {
        ranks[rank.node as usize] += 1;
    }
    let work = parts::of_work(run);
    let mut known: HashMap<Parts, Arc<Class>> = HashMap::new();
    let class = |(node, ranks): (&NodeRecord, usize)| {
        let parts = Parts::of_node(node, ranks, run, &work);
        if let Some(class) = known.get(&parts) {
            return class.clone();
        }
        let class = Arc::new(Class { name: parts.class_of_own(by), parts: parts.clone() });
        known.insert(parts, class.clone());
        class
    };
    run.nodes.iter().zip(ranks).map(class).collect()
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
