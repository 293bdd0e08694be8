//! The names by which Slurm knows hosts.
//!
//! A host calls itself `n1.cluster.example`, where Slurm's node is `n1`, or a node with another name whose
//! `NodeHostName` is the host's name.

use crate::decide::Skip;
use crate::scontrol::Listed;
use std::collections::{BTreeMap, BTreeSet};

/// For each NodeName and each NodeHostName the names of the nodes that have it.
pub(crate) struct SlurmNames(BTreeMap<String, BTreeSet<String>>);

impl SlurmNames {
    /// The names of all nodes.
    pub(crate) fn of(listed: &Listed) -> Self {
        let mut nodes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (node, state) in listed {
            let host_name = state.as_ref().ok().and_then(|state| state.host_name.as_ref());
            for name in std::iter::once(node).chain(host_name) {
                nodes.entry(name.clone()).or_default().insert(node.clone());
            }
        }
        Self(nodes)
    }

    /// The node of a host: the node with the host's name, or else the node with this name without the domain. If several
    /// nodes have the name, pmmpi takes none.
    pub(crate) fn of_host(&self, host: &str) -> Result<&str, Skip> {
        let short = host.split('.').next().unwrap_or_default();
        let nodes = self.0.get(host).or_else(|| self.0.get(short)).ok_or(Skip::Unknown)?;
        match nodes.first() {
            Some(node) if nodes.len() == 1 => Ok(node.as_str()),
            _ => Err(Skip::Ambiguous(nodes.iter().map(String::as_str).collect::<Vec<_>>().join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::node;

    fn names(nodes: &[(&str, Option<&str>)]) -> SlurmNames {
        let mut listed = Listed::new();
        for (name, host_name) in nodes {
            let mut state = node(name, "IDLE", None);
            state.host_name = host_name.map(str::to_owned);
            listed.insert((*name).to_owned(), Ok(state));
        }
        SlurmNames::of(&listed)
    }

    #[test]
    fn a_host_has_the_name_of_its_node() {
        let names = names(&[
            ("n1", Some("n1")),
            ("n2.cluster", Some("n2")),
            ("blue3", Some("n3.cluster")),
            ("blue4", Some("n4")),
            ("n5", None),
        ]);
        for (host, node) in [
            ("n1", "n1"),
            ("n1.cluster", "n1"),
            ("n2.cluster", "n2.cluster"),
            ("n2", "n2.cluster"),
            ("n3.cluster", "blue3"),
            ("n4.cluster", "blue4"),
            ("n5.cluster", "n5"),
            ("blue3", "blue3"),
        ] {
            assert_eq!(names.of_host(host), Ok(node), "{host}");
        }
        for host in ["n3", "n9", "n9.cluster", "", ".cluster"] {
            assert_eq!(names.of_host(host), Err(Skip::Unknown), "{host}");
        }
    }

    /// Several slurmd on one host.
    #[test]
    fn a_name_of_several_nodes_is_no_name() {
        let names = names(&[("a", Some("vm")), ("b", Some("vm")), ("c", Some("d")), ("d", Some("d2"))]);
        assert_eq!(names.of_host("a"), Ok("a"));
        assert_eq!(names.of_host("vm"), Err(Skip::Ambiguous("a, b".to_owned())));
        assert_eq!(names.of_host("vm.cluster"), Err(Skip::Ambiguous("a, b".to_owned())));
        assert_eq!(names.of_host("d"), Err(Skip::Ambiguous("c, d".to_owned())));
    }
}
