//! Nodes that the batch system gave to the job of a screen, but that took no part: nothing shows whether they are healthy.

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

/// The name without its domain: a host may have one, where Slurm has none.
fn short(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}
