//! The state of a node, as `scontrol show node` prints it.
//!
//! pmmpi reads the form with many lines. In the form with one line (`--oneliner`), a comment with the text
//! ` Reason=pmmpi: x` looks like a reason. pmmpi rejects output that it could misread: a field that comes twice or in
//! another order, a missing field, or output that was cut.

use crate::features;
use crate::reason::OURS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Ends the record of each node. If it is missing after the last record, the output was cut.
const END: &str = "\n\n";
/// Begins each line of a record except the first line.
const INDENT: &str = "   ";
/// The base states in which a node is in service.
const IN_SERVICE: [&str; 3] = ["IDLE", "ALLOCATED", "MIXED"];
/// Flags of a node that is in service. A reservation is a plan for jobs; maintenance has a flag of its own.
const HARMLESS: [&str; 6] = ["COMPLETING", "PLANNED", "RESERVED", "CLOUD", "DYNAMIC_NORM", "DYNAMIC_FUTURE"];
const DRAIN: &str = "DRAIN";

/// What pmmpi needs to know of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeState {
    /// Its name in Slurm.
    pub name: String,
    /// The name of its host (NodeHostName), if Slurm shows one. The journal does not need it.
    #[serde(skip)]
    pub host_name: Option<String>,
    /// The base state and its flags, for example `IDLE` and `DRAIN`.
    pub state: Vec<String>,
    /// Why the node is not in service; an operator may also have set a reason on a node in service.
    pub reason: Option<Reason>,
    /// Empty if there is none.
    pub comment: String,
    /// The features that jobs may ask for.
    pub available_features: Vec<String>,
    /// The features that the node has now.
    pub active_features: Vec<String>,
}

/// The reason of a node's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The text, without the user and the time.
    pub text: String,
    /// The user and the time, for example `root@2026-11-26T02:09:12`, if Slurm shows them.
    pub set_by: Option<String>,
}

/// Whether Slurm gives jobs to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// Slurm gives jobs to the node.
    In,
    /// Only the flag DRAIN keeps jobs away.
    Drained,
    /// Slurm gives no jobs to the node, or pmmpi does not know the state.
    Out,
}

impl NodeState {
    pub(crate) fn service(&self) -> Service {
        let (base, flags) = self.state.split_first().map_or(("", &[][..]), |(base, flags)| (base, flags));
        let is_known = |flag: &String| HARMLESS.contains(&flag.as_str()) || flag == DRAIN;
        match IN_SERVICE.contains(&base) && flags.iter().all(is_known) {
            false => Service::Out,
            true if self.has_drain() => Service::Drained,
            true => Service::In,
        }
    }

    /// True also for a node that is down and drained.
    pub(crate) fn has_drain(&self) -> bool {
        self.state.iter().any(|flag| flag == DRAIN)
    }

    pub(crate) fn has_our_reason(&self) -> bool {
        self.reason.as_ref().is_some_and(Reason::is_ours)
    }

    /// The state as Slurm writes it.
    pub(crate) fn state_text(&self) -> String {
        self.state.join("+")
    }
}

impl Reason {
    /// True if pmmpi wrote this reason. A reason of pmmpi has one line.
    pub fn is_ours(&self) -> bool {
        self.text.starts_with(OURS) && !self.text.contains('\n')
    }

    /// `text [user@time]`
    fn read(shown: &str) -> Self {
        let split = shown.strip_suffix(']').and_then(|shown| shown.rsplit_once(" ["));
        match split.filter(|(_, set_by)| set_by.contains('@')) {
            Some((text, set_by)) => Self { text: text.to_owned(), set_by: Some(set_by.to_owned()) },
            None => Self { text: shown.to_owned(), set_by: None },
        }
    }
}

/// All nodes of an output by name, or for a record the text that says what is wrong with it. The error of the
/// function is about the whole output.
pub(crate) fn read_all(output: &str) -> Result<BTreeMap<String, Result<NodeState, String>>, String> {
    let rest = output.strip_suffix(END).ok_or_else(|| not_a_record(output))?;
    let mut nodes = BTreeMap::new();
    for record in rest.split("\n\nNodeName=").enumerate() {
        let record = match record {
            (0, first) => first.strip_prefix("NodeName=").ok_or_else(|| not_a_record(output))?,
            (_, other) => other,
        };
        let name = record.split([' ', '\n']).next().unwrap_or_default();
        let node = read(name, record);
        let twice = || Err(format!("two records have the name {name}"));
        nodes.entry(name.to_owned()).and_modify(|known| *known = twice()).or_insert(node);
    }
    Ok(nodes)
}

fn not_a_record(output: &str) -> String {
    let start: String = output.trim().chars().take(80).collect();
    match start.is_empty() {
        true => "it printed nothing".to_owned(),
        false => format!("it printed no complete record of a node: {start:?}"),
    }
}

/// A record without `NodeName=`.
fn read(name: &str, record: &str) -> Result<NodeState, String> {
    let mut fields = Fields::default();
    for line in record.split('\n').skip(1) {
        fields.add(line)?;
    }
    let [state, address, available, active, reason, comment] = fields.values;
    let required = |value: Option<String>, field| value.ok_or_else(|| format!("the record has no {field}"));
    let state = required(state, "State")?;
    // Other fields follow on the same line.
    let state = state.split(' ').next().unwrap_or_default().split('+').map(str::to_owned).collect();
    Ok(NodeState {
        name: name.to_owned(),
        host_name: address.and_then(|line| line.split(' ').find_map(host_name)),
        state,
        reason: reason.map(|text| Reason::read(&text)),
        comment: comment.unwrap_or_default(),
        available_features: features::read(&required(available, "AvailableFeatures")?),
        active_features: features::read(&required(active, "ActiveFeatures")?),
    })
}

/// `NodeHostName=n1`: follows the address on the same line.
fn host_name(word: &str) -> Option<String> {
    word.strip_prefix("NodeHostName=").filter(|name| !name.is_empty()).map(str::to_owned)
}

const STATE: usize = 0;
const ADDRESS: usize = 1;
const REASON: usize = 4;
const COMMENT: usize = 5;
/// The fields that pmmpi reads. pmmpi looks for each field only at the start of a line, because some values contain
/// spaces. The texts of users come last, here and in a record.
const NAMES: [&str; 6] =
    ["State=", "NodeAddr=", "AvailableFeatures=", "ActiveFeatures=", "Reason=", "Comment="];
/// A text that Slurm prints after the comment.
const EXTRA: &str = "Extra=";

#[derive(Default)]
struct Fields {
    values: [Option<String>; 6],
    /// A line without the name of a field continues this field; `None` outside reason and comment.
    open: Option<usize>,
    /// True after a comment or extra text: a line may then be part of this text.
    are_over: bool,
}

impl Fields {
    fn add(&mut self, line: &str) -> Result<(), String> {
        let field = line.strip_prefix(INDENT).filter(|field| is_field(field));
        let Some(field) = field else {
            if let Some(value) = self.open.and_then(|open| self.values[open].as_mut()) {
                value.push('\n');
                value.push_str(line);
            } else if !self.are_over {
                return Err(format!("the output of scontrol has an unexpected line: {line:?}"));
            }
            return Ok(());
        };
        self.open = None;
        let known = NAMES.iter().position(|name| field.starts_with(name));
        if let Some(at) = known {
            let is_late = matches!(at, STATE | ADDRESS) && self.values[REASON].is_some();
            if self.values[at].is_some() || self.are_over || is_late {
                return Err(format!("the line {line:?} may be part of a comment or of a reason"));
            }
            self.values[at] = Some(field[NAMES[at].len()..].to_owned());
            self.open = (at >= REASON).then_some(at);
        }
        self.are_over |= known == Some(COMMENT) || field.starts_with(EXTRA);
        Ok(())
    }
}

/// True for `Name=...`
fn is_field(line: &str) -> bool {
    let name = line.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

#[cfg(test)]
mod tests;
