//! Decides which nodes ought to be equally fast. The records or the user declare a class; timing never decides it,
//! because a fast node with a fault looks like a slow healthy one.

mod parts;

pub use parts::Parts;

use crate::table::MAINTENANCE_LABEL;
use crate::table::facts::FactsText;
use crate::table::run_settings;
use pmmpi::node::{CpuSet, FACTS, NodeFacts};
use pmmpi::record::{NodeRecord, Run};
use pmmpi::text::shell_line;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

/// The label that names the session of a run.
pub const SESSION_LABEL: &str = "session";
/// Labels whose value may differ within a class.
const NO_CLASS: [&str; 3] = [SESSION_LABEL, "run", MAINTENANCE_LABEL];

/// Labels of a screen that say how it ran: a hot node is slower than a cold one, and one core is slower than all.
const OF_SCREEN: [&str; 2] = ["soak", "cores"];

/// A property that nodes of a class share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Model, family and stepping of the processor.
    Cpu,
    /// Version of its microcode.
    Microcode,
    /// Memory in GiB.
    Memory,
    /// Version of the Linux kernel.
    Kernel,
    /// Another fact of the node, one of [`FACTS`]; or a setting of the run (see [`run_settings`]).
    Fact(String),
    /// Program and arguments.
    Command,
    /// Number of ranks on the node, and number of all ranks.
    Ranks,
    /// All labels except `session`, `run` and `maintenance`.
    Labels,
    /// The class that results of other tools name.
    Class,
    /// A label, or a column of other tools' results.
    Named(String),
}

/// The prefix of archive columns that say what classes consist of.
const COLUMN: &str = "class.";
/// The prefix of archive columns with facts that make up classes.
const FACT_COLUMN: &str = "class.fact.";
/// The prefix of those archive columns that hold labels, or columns of other tools' results.
const LABEL_COLUMN: &str = "class.label.";

impl Key {
    /// The name in `--class-by`.
    pub fn name(&self) -> &str {
        match self {
            Self::Cpu => "cpu",
            Self::Microcode => "microcode",
            Self::Memory => "memory",
            Self::Kernel => "kernel",
            Self::Command => "command",
            Self::Ranks => "ranks",
            Self::Labels => "labels",
            Self::Class => "class",
            Self::Fact(name) | Self::Named(name) => name,
        }
    }

    /// True for what a node is, in contrast to what it does.
    pub fn is_fact(&self) -> bool {
        match self {
            Self::Cpu | Self::Microcode | Self::Memory | Self::Kernel => true,
            Self::Fact(name) => !run_settings::is_setting(name),
            _ => false,
        }
    }

    /// The key of `name=value`: a fact, a part of the work, a setting of the run, or else a label.
    pub fn of_name(name: &str) -> Self {
        const KNOWN: [Key; 6] =
            [Key::Cpu, Key::Microcode, Key::Memory, Key::Kernel, Key::Command, Key::Ranks];
        let known = KNOWN.into_iter().find(|key| key.name().eq_ignore_ascii_case(name));
        let fact = || FACTS.iter().find(|(fact, _)| fact.eq_ignore_ascii_case(name));
        let fact = || fact().map(|(fact, _)| Self::Fact((*fact).to_owned()));
        let setting = || run_settings::is_setting(name).then(|| Self::Fact(name.to_owned()));
        known.or_else(fact).or_else(setting).unwrap_or_else(|| Self::Named(name.to_owned()))
    }

    /// The archive column of this key; `None` for `Labels`, which stands for several.
    pub fn column(&self) -> Option<String> {
        match self {
            Self::Named(name) => return Some(format!("{LABEL_COLUMN}{name}")),
            Self::Fact(name) => return Some(format!("{FACT_COLUMN}{name}")),
            _ => {}
        }
        SINGLE.iter().find(|(_, key)| key == self).map(|(name, _)| format!("{COLUMN}{name}"))
    }

    /// True if this key means that column of other tools' results. Capital and small letters are equal in column
    /// names. A label or column may have the name of a fact.
    pub(crate) fn names(&self, column: &Self) -> bool {
        match (self, column) {
            (Self::Named(name) | Self::Fact(name), Self::Named(column)) => name.eq_ignore_ascii_case(column),
            _ => self == column,
        }
    }

    /// The key of an archive column.
    pub fn of_column(column: &str) -> Option<Self> {
        if let Some(name) = column.strip_prefix(LABEL_COLUMN) {
            return Some(Self::Named(name.to_owned()));
        }
        if let Some(name) = column.strip_prefix(FACT_COLUMN) {
            return Some(Self::Fact(name.to_owned()));
        }
        let name = column.strip_prefix(COLUMN)?;
        SINGLE.iter().find(|(known, _)| *known == name).map(|(_, key)| key.clone())
    }
}

/// Names of the other keys in archive columns.
const SINGLE: [(&str, Key); 7] = [
    ("cpu", Key::Cpu),
    ("microcode", Key::Microcode),
    ("memory", Key::Memory),
    ("kernel", Key::Kernel),
    ("command", Key::Command),
    ("ranks", Key::Ranks),
    ("declared", Key::Class),
];

/// True for a name that only an archive column can have.
pub(crate) fn is_column(name: &str) -> bool {
    name.get(..COLUMN.len()).is_some_and(|head| head.eq_ignore_ascii_case(COLUMN))
}

/// The keys that make up a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassBy {
    keys: Vec<Key>,
    /// How many of the first keys are the usual ones, in contrast to keys that the user asked for.
    usual: usize,
    /// Keys that readers keep, although they do not make up a class.
    kept: Vec<Key>,
}

impl Default for ClassBy {
    fn default() -> Self {
        use Key::{Class, Command, Cpu, Kernel, Labels, Memory, Microcode, Ranks};
        let keys = vec![Cpu, Microcode, Memory, Kernel, Command, Ranks, Labels, Class];
        Self { usual: keys.len(), ..Self::of(keys) }
    }
}

impl FromStr for ClassBy {
    type Err = String;

    /// Reads `cpu,memory,sku`; `none` puts all rows in one class.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().eq_ignore_ascii_case("none") {
            return Ok(Self::of(Vec::new()));
        }
        let keys = text.split(',').map(|key| match key.trim().to_ascii_lowercase().as_str() {
            "" => Err("a key is empty: expected keys separated by commas, or the word `none`".to_owned()),
            "labels" => Ok(Key::Labels),
            "class" => Ok(Key::Class),
            "none" => Err("`none` puts all runs in one class: do not give other keys".to_owned()),
            _ => Ok(Key::of_name(key.trim())),
        });
        let mut keys = keys.collect::<Result<Vec<_>, _>>()?;
        let all = keys.clone();
        let mut at = 0..;
        keys.retain(|key| at.next().is_none_or(|at| !all[..at].contains(key)));
        Ok(Self::of(keys))
    }
}

impl ClassBy {
    fn of(keys: Vec<Key>) -> Self {
        Self { keys, usual: 0, kept: Vec::new() }
    }

    /// The same classes; readers also keep these keys.
    pub fn keeping(self, kept: impl Iterator<Item = Key>) -> Self {
        Self { kept: kept.collect(), ..self }
    }

    /// True if the user chose other keys than the usual ones.
    pub(crate) fn is_chosen(&self) -> bool {
        self.keys != Self::default().keys
    }

    /// The same keys without the facts of the node: the keys of the work.
    pub(crate) fn without_facts(&self) -> Self {
        Self::of(self.keys.iter().filter(|key| !key.is_fact()).cloned().collect())
    }

    /// The keys of what a screen did: the command, the ranks, its own labels ([`OF_SCREEN`]), and the settings of runs
    /// among these keys. Facts of nodes and other labels are no work.
    pub(crate) fn of_work(&self) -> Self {
        let settings = self.keys.iter().filter(|key| matches!(key, Key::Fact(_)) && !key.is_fact());
        let work = Self::of(settings.cloned().collect()).and(Key::Command).and(Key::Ranks);
        OF_SCREEN.iter().fold(work, |work, label| work.and(Key::Named((*label).to_owned())))
    }

    /// True if the key makes up the class of a row.
    pub(crate) fn makes_up(&self, part: &Key, is_own: bool) -> bool {
        match part.is_fact() {
            true => self.has(part),
            false if is_own => self.counts_of_own(part),
            false => self.columns().any(|(key, _)| key.names(part)),
        }
    }

    pub(crate) fn has(&self, key: &Key) -> bool {
        self.keys.contains(key)
    }

    /// These keys and one more.
    pub fn and(mut self, key: Key) -> Self {
        self.keys.extend((!self.keys.contains(&key)).then_some(key));
        self
    }

    /// The keys that the user asked for, also beside the usual ones. Keys that the user typed count, whatever they are.
    pub(crate) fn asked(&self) -> &[Key] {
        &self.keys[self.usual..]
    }

    /// All keys that readers keep.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter().chain(&self.kept)
    }

    /// True if the class of other tools' results is the declared class alone.
    pub(crate) fn is_as_declared(&self) -> bool {
        self.read_columns().map(|(key, _)| key).eq([&Key::Class])
    }

    /// True if this part may matter for the class of other tools' results.
    pub(crate) fn wants_of_others(&self, part: &Key) -> bool {
        self.read_columns().any(|(key, _)| key.names(part))
    }

    /// True if this part may matter for the class of a run of pmmpi, or is kept.
    pub(crate) fn wants_of_own(&self, part: &Key) -> bool {
        let is_fact = |key: &Key| matches!((key, part), (Key::Fact(_), Key::Named(_))) && key.names(part);
        self.counts_of_own(part) || self.kept.contains(part) || self.keys().any(is_fact)
    }

    fn counts_of_own(&self, part: &Key) -> bool {
        match part {
            Key::Named(name) => {
                self.has(part) || (self.has(&Key::Labels) && !NO_CLASS.contains(&name.as_str()))
            }
            // Without the processor, the hardware of the node counts as unknown.
            Key::Cpu => self.keys.iter().any(Key::is_fact),
            // A file that has lost the other parts may still have this one.
            Key::Class => true,
            single => self.has(single),
        }
    }

    /// The keys that may be columns of other tools' results, with the names of these columns, in order. Facts of nodes
    /// are columns only if the user asked for them: a column `memory` may be the memory that a run used.
    pub fn columns(&self) -> impl Iterator<Item = (&Key, &str)> {
        let is_asked = self.usual == 0;
        self.keys.iter().filter_map(move |key| match key {
            Key::Class => Some((key, "class")),
            Key::Named(name) => Some((key, name.as_str())),
            // A column may also have the name of a setting.
            Key::Fact(name) if is_asked => Some((key, name.as_str())),
            fact if is_asked && fact.is_fact() => Some((fact, fact.name())),
            _ => None,
        })
    }

    /// The columns of other tools' results that readers read: those of [`Self::columns`], and those of kept keys.
    pub fn read_columns(&self) -> impl Iterator<Item = (&Key, &str)> {
        let is_new = |key: &&Key| !self.columns().any(|(column, _)| column == *key);
        self.columns().chain(self.kept.iter().filter(is_new).map(|key| (key, key.name())))
    }
}

/// The class of a node in a run, or of a result of another tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Class {
    /// The text for the requested keys.
    pub name: String,
    /// All known parts.
    pub parts: Parts,
    /// All facts of the node, also those that make up no class.
    pub facts: FactsText,
}

/// The class of each node record in `run`. Nodes with the same parts share one object.
pub fn of_nodes(run: &Run, by: &ClassBy) -> Vec<Arc<Class>> {
    let mut allowed: Vec<Vec<&CpuSet>> = vec![Vec::new(); run.nodes.len()];
    run.ranks.iter().for_each(|rank| allowed[rank.node.index()].push(&rank.allowed));
    let work = parts::of_work(run);
    let asked: Vec<&str> = by.keys().filter(|key| matches!(key, Key::Fact(_))).map(Key::name).collect();
    let settings = run_settings::of_run(run);
    let mut known: HashMap<(Parts, FactsText), Arc<Class>> = HashMap::new();
    // Most nodes of a cluster are like the node before.
    let mut last: Option<(&NodeRecord, Vec<&CpuSet>, Arc<Class>)> = None;
    let mut class = |node: &NodeRecord, allowed: &[&CpuSet]| {
        let mut facts = node.facts.as_ref().map(NodeFacts::named).unwrap_or_default();
        facts.extend(settings.iter().map(|(name, value)| (name.as_str(), value.clone())));
        facts.extend(run_settings::allowed_hardware_threads(run, allowed));
        let parts = Parts::of_node(node, allowed.len(), run, &work);
        let asked = asked.iter().map(|name| (name, run_settings::value(&facts, name)));
        let parts =
            asked.fold(parts, |parts, (name, value)| parts.with_fact(name, value.unwrap_or_default()));
        let identity = (parts, FactsText::of(&facts));
        if let Some(class) = known.get(&identity) {
            return class.clone();
        }
        let (parts, facts) = identity.clone();
        let class = Arc::new(Class { name: parts.class_of_own(by), parts, facts });
        known.insert(identity, class.clone());
        class
    };
    let mut classes = Vec::with_capacity(run.nodes.len());
    for (node, allowed) in run.nodes.iter().zip(allowed) {
        let alike = last.as_ref().filter(|(other, with, _)| *with == allowed && are_alike(node, other));
        let class = alike.map_or_else(|| class(node, &allowed), |(.., class)| class.clone());
        last = Some((node, allowed, class.clone()));
        classes.push(class);
    }
    classes
}

/// True if nothing that makes up a class differs between two nodes, and no fact.
pub fn are_alike(one: &NodeRecord, other: &NodeRecord) -> bool {
    match (&one.facts, &other.facts) {
        (Some(one), Some(other)) => {
            let is_same = one.settings == other.settings && one.inventory == other.inventory;
            is_same && parts::are_alike(&one.hardware, &other.hardware)
        }
        (None, None) => true,
        _ => false,
    }
}

/// The command as a shell would show it, with quotes where needed.
pub fn command(run: &Run) -> String {
    shell_line(&run.header.command)
}
