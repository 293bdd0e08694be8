//! A Slurm for tests, in which anything may happen between two calls.

use crate::error::{ScontrolFailure, ToolError};
use crate::features;
use crate::node_state::{NodeState, Reason};
use crate::scontrol::{ListedNodes, Slurm};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;

/// A call, before or after it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SlurmCall {
    ReadAll,
    Read(String),
    BeforeUpdate(String),
    AfterUpdate(String),
}

type Nodes = BTreeMap<String, NodeState>;
type Hook = Box<dyn FnMut(SlurmCall, &mut Nodes) -> Option<ScontrolFailure>>;

pub(crate) struct Fake {
    nodes: RefCell<Nodes>,
    /// The arguments of each update.
    updates: RefCell<Vec<Vec<String>>>,
    /// Nodes whose records in the list cannot be read.
    unreadable: RefCell<Vec<String>>,
    cluster: RefCell<Option<String>>,
    /// May change nodes, and fail the call.
    hook: RefCell<Hook>,
}

/// A node without comment and features.
pub(crate) fn node(name: &str, state: &str, reason: Option<&str>) -> NodeState {
    let set_by = Some("eva@2026-11-26T02:09:12".to_owned());
    NodeState {
        name: name.to_owned(),
        host_name: Some(name.to_owned()),
        state: state.split('+').map(str::to_owned).collect(),
        reason: reason.map(|text| Reason { text: text.to_owned(), set_by }),
        comment: String::new(),
        available_features: Vec::new(),
        active_features: Vec::new(),
    }
}

/// The answer of a Slurm that does not tell the name of its cluster.
pub(crate) fn unknown_cluster() -> Result<String, ToolError> {
    let why = ScontrolFailure::Failed("no answer".to_owned());
    Err(ToolError { command: "scontrol show config".to_owned(), why })
}

impl Fake {
    pub(crate) fn new(nodes: impl IntoIterator<Item = NodeState>) -> Self {
        let nodes = nodes.into_iter().map(|node| (node.name.clone(), node)).collect();
        Self {
            nodes: RefCell::new(nodes),
            updates: RefCell::default(),
            unreadable: RefCell::default(),
            cluster: RefCell::default(),
            hook: RefCell::new(Box::new(|_, _| None)),
        }
    }

    /// Calls this at each moment from now on.
    pub(crate) fn with(
        self,
        hook: impl FnMut(SlurmCall, &mut Nodes) -> Option<ScontrolFailure> + 'static,
    ) -> Self {
        self.hook(hook);
        self
    }

    pub(crate) fn hook(&self, hook: impl FnMut(SlurmCall, &mut Nodes) -> Option<ScontrolFailure> + 'static) {
        *self.hook.borrow_mut() = Box::new(hook);
    }

    /// From now on, the list has no readable record of these nodes.
    pub(crate) fn cannot_read(&self, names: &[&str]) {
        *self.unreadable.borrow_mut() = names.iter().map(|name| (*name).to_owned()).collect();
    }

    /// From now on, the cluster has this name; `None`: it is unknown.
    pub(crate) fn is_cluster(&self, name: Option<&str>) {
        *self.cluster.borrow_mut() = name.map(str::to_owned);
    }

    pub(crate) fn of(&self, name: &str) -> NodeState {
        self.nodes.borrow()[name].clone()
    }

    pub(crate) fn all(&self) -> Nodes {
        self.nodes.borrow().clone()
    }

    /// The arguments of each update so far, joined by spaces.
    pub(crate) fn updates(&self) -> Vec<String> {
        self.updates.borrow().iter().map(|arguments| arguments.join(" ")).collect()
    }

    fn at(&self, moment: SlurmCall) -> Result<(), ToolError> {
        let why = (self.hook.borrow_mut())(moment, &mut self.nodes.borrow_mut());
        why.map_or(Ok(()), |why| Err(ToolError { command: "scontrol".to_owned(), why }))
    }
}

impl Slurm for Fake {
    fn cluster(&self) -> Result<String, ToolError> {
        self.cluster.borrow().clone().map_or_else(unknown_cluster, Ok)
    }

    fn nodes(&self) -> Result<ListedNodes, ToolError> {
        self.at(SlurmCall::ReadAll)?;
        let unreadable = self.unreadable.borrow();
        let read = |name: &String, node| match unreadable.contains(name) {
            true => Err("cut".to_owned()),
            false => Ok(node),
        };
        Ok(self.all().into_iter().map(|(name, node)| (name.clone(), read(&name, node))).collect())
    }

    fn node(&self, name: &str) -> Result<NodeState, ToolError> {
        self.at(SlurmCall::Read(name.to_owned()))?;
        let missing = ScontrolFailure::Failed(format!("Node {name} not found"));
        self.all().remove(name).ok_or(ToolError { command: "scontrol".to_owned(), why: missing })
    }

    /// As Slurm 22.05 does it.
    fn update(&self, arguments: &[String], _: &File) -> Result<(), ToolError> {
        let name = arguments[1].strip_prefix("NodeName=").expect("a name").to_owned();
        self.at(SlurmCall::BeforeUpdate(name.clone()))?;
        self.updates.borrow_mut().push(arguments.to_vec());
        let mut nodes = self.nodes.borrow_mut();
        let node = nodes.get_mut(&name).expect("a known node");
        for argument in &arguments[2..] {
            match argument.split_once('=').expect("a field") {
                ("State", "DRAIN") if !node.has_drain() => node.state.push("DRAIN".to_owned()),
                ("State", "DRAIN") => {}
                ("State", "UNDRAIN") => {
                    node.state.retain(|flag| flag != "DRAIN");
                    node.reason = None;
                }
                ("Reason", text) => node.reason = Some(Reason { text: text.to_owned(), set_by: None }),
                ("Comment", text) => node.comment = text.to_owned(),
                ("AvailableFeatures", list) => node.available_features = features::read(list),
                ("ActiveFeatures", list) => node.active_features = features::read(list),
                other => panic!("{other:?}"),
            }
        }
        drop(nodes);
        self.at(SlurmCall::AfterUpdate(name))
    }
}
