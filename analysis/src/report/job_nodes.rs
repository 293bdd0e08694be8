//! The nodes that the batch system gave to the job of a screen: their names in Slurm, and those that took no part, of which
//! nothing shows whether they are healthy.

use super::host_names::{self, is_host_name, short};
use crate::table::slurm_host_list::HostList;
use pmmpi::record::Run;
use std::collections::{BTreeSet, HashSet};

/// Variables with the list of nodes, the best one first: a step may have only a part of its job's nodes.
const LISTS: [&str; 2] = ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"];

/// The nodes of the job, in Slurm's syntax.
pub fn of(run: &Run) -> Option<String> {
    let value = |name: &&str| run.header.environment.iter().find(|(known, _)| known == name);
    LISTS.iter().find_map(value).map(|(_, list)| list.clone())
}

/// Those of the nodes in `lists` that are not among `hosts`, by name.
pub fn without_part<'a>(lists: impl Iterator<Item = &'a str>, hosts: &[&str]) -> Vec<String> {
    let lists: BTreeSet<&str> = lists.collect();
    let hosts: HashSet<&str> = hosts.iter().map(|host| short(host)).collect();
    let mut without: BTreeSet<String> = BTreeSet::new();
    for list in lists.into_iter().filter_map(|list| list.parse::<HostList>().ok()) {
        let (here, missing): (Vec<&str>, Vec<&str>) =
            list.names().partition(|name| hosts.contains(short(name)));
        // Without a common name, Slurm has other names for these hosts.
        if !here.is_empty() {
            without.extend(missing.into_iter().map(str::to_owned));
        }
    }
    without.into_iter().collect()
}

/// The names of nodes in Slurm.
#[derive(Debug, Default)]
pub struct NamesInSlurm(BTreeSet<String>);

impl NamesInSlurm {
    /// The names in these lists.
    pub fn of<'a>(lists: impl Iterator<Item = &'a str>) -> Self {
        let mut names = BTreeSet::new();
        let lists: BTreeSet<&str> = lists.collect();
        for list in lists.into_iter().filter_map(|list| list.parse::<HostList>().ok()) {
            names.extend(list.names().filter(|name| is_host_name(name)).map(str::to_owned));
        }
        Self(names)
    }

    /// The name of a host in Slurm, as far as the lists show it; otherwise its own name.
    pub fn of_host<'a>(&'a self, host: &'a str) -> &'a str {
        if self.0.contains(host) {
            return host;
        }
        host_names::same(host, self.0.iter().map(String::as_str)).unwrap_or(host)
    }
}
