//! The names by which Slurm knows hosts.
//!
//! A host calls itself `n1.cluster.example`, where Slurm's node is `n1`, or a node with another name whose
//! `NodeHostName` is the host's name.

use crate::decide::Skip;
use crate::scontrol::ListedNodes;
use std::collections::{BTreeMap, BTreeSet};

/// The nodes of Slurm by their names.
pub(crate) struct SlurmNames {
    /// For each NodeName and each NodeHostName the names of the nodes that have it.
    nodes: BTreeMap<String, BTreeSet<String>>,
    /// The NodeHostName of each node that has one.
    host_names: BTreeMap<String, String>,
}

impl SlurmNames {
    /// The names of all nodes.
    pub(crate) fn of(listed: &ListedNodes) -> Self {
        let mut nodes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut host_names = BTreeMap::new();
        for (node, state) in listed {
            let host_name = state.as_ref().ok().and_then(|state| state.host_name.as_ref());
            for name in std::iter::once(node).chain(host_name) {
                nodes.entry(name.clone()).or_default().insert(node.clone());
            }
            if let Some(host_name) = host_name {
                host_names.insert(node.clone(), host_name.clone());
            }
        }
        Self { nodes, host_names }
    }

    /// The node of a host: the node with the host's name, or else the node with this name without the domain. If several
    /// nodes have the name, or if Slurm knows the host of the node by another name with a domain, pmmpi takes none.
    pub(crate) fn of_host(&self, host: &str) -> Result<&str, Skip> {
        let short = host.split('.').next().unwrap_or_default();
        let exact = self.nodes.get(host);
        let nodes = exact.or_else(|| self.nodes.get(short)).ok_or(Skip::Unknown)?;
        match nodes.first() {
            Some(node) if nodes.len() == 1 && exact.is_some() => Ok(node.as_str()),
            Some(node) if nodes.len() == 1 => self.unless_other_host(node, host),
            _ => Err(Skip::Ambiguous(nodes.iter().map(String::as_str).collect::<Vec<_>>().join(", "))),
        }
    }

    /// This node, which has the host's name without the domain, unless it is a host of another domain.
    fn unless_other_host<'a>(&self, node: &'a str, host: &str) -> Result<&'a str, Skip> {
        match self.host_names.get(node) {
            Some(name) if name.contains('.') && host.contains('.') && !is_same_host(name, host) => {
                Err(Skip::OtherHost { node: node.to_owned(), host_name: name.clone() })
            }
            _ => Ok(node),
        }
    }
}

/// True if the names are equal, or if one of them lacks the end of the domain: n1.cluster and n1.cluster.example.org.
fn is_same_host(name: &str, host: &str) -> bool {
    let [name, host] = [name, host].map(|name| name.to_ascii_lowercase() + ".");
    name.starts_with(&host) || host.starts_with(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::node;

    fn names(nodes: &[(&str, Option<&str>)]) -> SlurmNames {
        let mut listed = ListedNodes::new();
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

    /// mpirun over ssh may start pmmpi on hosts of another cluster.
    #[test]
    fn a_host_of_another_domain_is_not_the_node() {
        let names = names(&[("n1", Some("n1.clusterA")), ("n2", Some("n2")), ("n3", Some("x3.clusterB"))]);
        let other = |node: &str, host_name: &str| -> Result<&'static str, Skip> {
            Err(Skip::OtherHost { node: node.to_owned(), host_name: host_name.to_owned() })
        };
        assert_eq!(names.of_host("n1.clusterB"), other("n1", "n1.clusterA"));
        assert_eq!(names.of_host("n3.clusterB"), other("n3", "x3.clusterB"));
        let said = names.of_host("n1.clusterB").unwrap_err().to_string();
        assert!(said.starts_with("Slurm's node n1 is another host (NodeHostName=n1.clusterA); "), "{said}");
        // The same host, or a host whose domain Slurm does not know.
        for host in ["n1", "n1.clusterA", "n1.ClusterA", "n1.clusterA.example.org"] {
            assert_eq!(names.of_host(host), Ok("n1"), "{host}");
        }
        assert_eq!((names.of_host("n2.clusterB"), names.of_host("n3")), (Ok("n2"), Ok("n3")));
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
