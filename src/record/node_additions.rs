//! What schema 6 of run files adds to the nodes: their inventories, and what their Linux kernels counted. Nodes of a
//! cluster are alike, so the file has each inventory and each name once.

use super::run::Run;
use crate::ids::NodeId;
use crate::node::{CountName, HealthCount, Inventory, count_name};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Default, Serialize, Deserialize)]
pub(super) struct NodeAdditions {
    /// Each once; the first one is empty.
    inventories: Vec<Inventory>,
    /// Names of counts.
    names: Vec<String>,
    nodes: Vec<NodeAddition>,
}

#[derive(Serialize, Deserialize)]
struct NodeAddition {
    node: NodeId,
    /// Index into the inventories.
    inventory: u32,
    health: Vec<NumberedCount>,
}

/// A [`HealthCount`] with the number of its name.
#[derive(Serialize, Deserialize)]
struct NumberedCount {
    name: u32,
    places: u32,
    before: u64,
    added: Option<u64>,
    added_at: Vec<(String, u64)>,
}

impl NodeAdditions {
    /// Those of the nodes that have some.
    pub fn of(run: &Run) -> Self {
        let none = Inventory::default();
        let mut all = Self { inventories: vec![none.clone()], ..Self::default() };
        let mut inventories = HashMap::from([(none.clone(), 0)]);
        let mut names: HashMap<CountName, u32> = HashMap::new();
        for (node, record) in (0..).map(NodeId).zip(&run.nodes) {
            let inventory = record.facts.as_ref().map_or(&none, |facts| &facts.inventory);
            if inventory.is_empty() && record.health.is_empty() {
                continue;
            }
            let inventory = *inventories.entry(inventory.clone()).or_insert_with_key(|inventory| {
                all.inventories.push(inventory.clone());
                all.inventories.len() as u32 - 1
            });
            let numbered = |HealthCount { name, places, before, added, added_at }: &HealthCount| {
                let name = *names.entry(name.clone()).or_insert_with_key(|name| {
                    all.names.push(name.to_string());
                    all.names.len() as u32 - 1
                });
                NumberedCount {
                    name,
                    places: *places,
                    before: *before,
                    added: *added,
                    added_at: added_at.clone(),
                }
            };
            let health = record.health.iter().map(numbered).collect();
            all.nodes.push(NodeAddition { node, inventory, health });
        }
        all
    }

    /// Adds them to the nodes; `None` if they contradict the run.
    pub fn add_to(self, run: &mut Run) -> Option<()> {
        let names: Vec<CountName> = self.names.iter().map(|name| count_name(name)).collect();
        for NodeAddition { node, inventory, health } in self.nodes {
            let record = run.nodes.get_mut(node.index())?;
            let mut counts = Vec::with_capacity(health.len());
            for NumberedCount { name, places, before, added, added_at } in health {
                let name = names.get(name as usize)?.clone();
                counts.push(HealthCount { name, places, before, added, added_at });
            }
            // A file that has a node twice does not have both counts.
            record.health = counts;
            let inventory = self.inventories.get(inventory as usize)?;
            match record.facts.as_mut() {
                Some(facts) => facts.inventory = inventory.clone(),
                None if inventory.is_empty() => {}
                None => return None,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeKey;
    use crate::record::{Mode, NodeRecord, RunHeader};

    #[test]
    fn the_last_counts_of_a_node_are_its_counts() {
        let header = RunHeader::new("run".to_owned(), Vec::new(), Mode::Plain, 0);
        let mut run = Run::empty(header, 1);
        let key = NodeKey { hostname: "n0".to_owned(), boot_id: String::new(), time_namespace: 0 };
        run.nodes.push(NodeRecord::new(key));
        let of = |before| NodeAddition {
            node: NodeId(0),
            inventory: 0,
            health: vec![NumberedCount { name: 0, places: 1, before, added: None, added_at: Vec::new() }],
        };
        let additions = NodeAdditions {
            inventories: vec![Inventory::default()],
            names: vec!["memory_errors_corrected".to_owned()],
            nodes: vec![of(3), of(5)],
        };
        assert_eq!(additions.add_to(&mut run), Some(()));
        let before: Vec<u64> = run.nodes[0].health.iter().map(|count| count.before).collect();
        assert_eq!(before, [5]);
    }
}
