//! Nodes of a class with different numbers of hardware threads. On nodes with more threads, a kernel of `pmmpi screen` has
//! more work, or more room in the caches, so these nodes are no peers. The number makes up no class, because results of
//! other tools and older archives lack it.

use crate::warnings::of_classes::NodesWithThreads;
use crate::warnings::{ClassWarning, FirstFew};
use hashbrown::{HashMap, HashSet};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A warning names at most this many numbers of threads, and at most this many nodes for each number.
const NAMED: usize = 3;

/// The number of threads on a host, with the class and, if it matters, the kernel.
pub type HostThreads<'a> = ([&'a str; 2], &'a str, usize);

/// Warns of classes whose kernels used different numbers of hardware threads; if there is none, of those with different
/// numbers that are online. Kernels of the same nodes have one warning.
pub fn warnings<'a>(
    used: impl Iterator<Item = HostThreads<'a>>,
    online: impl Iterator<Item = HostThreads<'a>>,
) -> Vec<ClassWarning> {
    let of_used = differing(used);
    let are_used = !of_used.is_empty();
    let found = if are_used { of_used } else { differing(online) };
    let warning = |numbers| ClassWarning::CoresDiffer { are_used, numbers };
    found.into_iter().map(warning).collect()
}

/// The numbers of threads in each class with several numbers, the most frequent ones first.
fn differing<'a>(threads: impl Iterator<Item = HostThreads<'a>>) -> BTreeSet<FirstFew<NodesWithThreads>> {
    // Most classes have one number: no set of their many hosts is needed.
    let threads: Vec<HostThreads> = threads.collect();
    let mut first: HashMap<[&str; 2], usize> = HashMap::new();
    let mut differ: HashSet<[&str; 2]> = HashSet::new();
    for (class, _, threads) in &threads {
        if first.entry(*class).or_insert(*threads) != threads {
            differ.insert(*class);
        }
    }
    let mut classes: BTreeMap<[&str; 2], BTreeMap<usize, BTreeSet<&str>>> = BTreeMap::new();
    for (class, host, threads) in threads.into_iter().filter(|(class, ..)| differ.contains(class)) {
        classes.entry(class).or_default().entry(threads).or_default().insert(host);
    }
    let of = |hosts: &BTreeMap<usize, BTreeSet<&str>>| {
        let mut values: Vec<(&usize, &BTreeSet<&str>)> = hosts.iter().collect();
        values.sort_by_key(|(threads, hosts)| (Reverse(hosts.len()), Reverse(**threads)));
        let of_value = |(place, (threads, hosts)): (usize, &(&usize, &BTreeSet<&str>))| {
            // The first are the usual ones.
            let most = if place == 0 { 0 } else { NAMED };
            let nodes = FirstFew::of(hosts.iter(), most, |host| (*host).to_owned());
            NodesWithThreads { threads: **threads, nodes }
        };
        FirstFew::of(values.iter().enumerate(), NAMED, of_value)
    };
    classes.values().map(of).collect()
}
