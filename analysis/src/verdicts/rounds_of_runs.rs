//! Which runs of different nodes belong together.

use crate::table::{RunTable, UNDATED};
use std::collections::HashMap;

/// The rounds of a session: runs that were taken in step on several nodes.
pub(super) struct Rounds {
    /// The round of each run, below `count`.
    pub of_run: Vec<u32>,
    pub count: usize,
    /// True if a round is one run of pmmpi on several nodes.
    pub are_jobs: bool,
}

/// A round of fewer nodes cannot be told from its nodes.
const FEW: usize = 5;

/// Runs with equal names on different nodes belong to one round: the same run of a job, or the same number. Runs that all
/// have names of their own are in rounds if their starts are: each node ran once before any node ran again.
pub(super) fn rounds(table: &RunTable, nodes: &[&[u32]]) -> Rounds {
    let rows = || nodes.iter().copied().flatten().map(|row| *row as usize);
    let are_jobs = rows().any(|row| table.is_own[row]);
    let (of_run, count) = numbered(rows().map(|row| table.run[row]));
    let most = rows().count() / count.max(1);
    match nodes.len() >= FEW && most < 2 {
        true => by_start(table, nodes).unwrap_or(Rounds { of_run, count, are_jobs }),
        false => Rounds { of_run, count, are_jobs },
    }
}

/// Numbers from 0 in place of names' numbers, and how many there are.
fn numbered(names: impl Iterator<Item = u32> + Clone) -> (Vec<u32>, usize) {
    let (low, high, length) = names
        .clone()
        .fold((u32::MAX, 0, 0), |(low, high, length), name| (low.min(name), high.max(name), length + 1));
    let mut count = 0u32;
    let mut next = || {
        count += 1;
        count - 1
    };
    let numbers: Vec<u32> = match (high.saturating_sub(low) as usize) < 4 * length {
        true => {
            let mut known = vec![u32::MAX; (high - low) as usize + 1];
            let number = |name: u32| {
                let known = &mut known[(name - low) as usize];
                if *known == u32::MAX {
                    *known = next();
                }
                *known
            };
            names.map(number).collect()
        }
        false => {
            let mut known: HashMap<u32, u32> = HashMap::new();
            names.map(|name| *known.entry(name).or_insert_with(&mut next)).collect()
        }
    };
    (numbers, count as usize)
}

/// The j-th runs of all nodes, if they all began before any node's next run.
fn by_start(table: &RunTable, nodes: &[&[u32]]) -> Option<Rounds> {
    let mut of_run = Vec::new();
    // First and last start of each round.
    let mut rounds: Vec<(i64, i64)> = Vec::new();
    for rows in nodes {
        let starts: Vec<i64> = rows.iter().map(|row| table.started_unix_ns[*row as usize]).collect();
        if starts.contains(&UNDATED) {
            return None;
        }
        let mut order: Vec<usize> = (0..starts.len()).collect();
        order.sort_unstable_by_key(|at| starts[*at]);
        let from = of_run.len();
        of_run.resize(from + rows.len(), 0);
        for (round, at) in order.into_iter().enumerate() {
            of_run[from + at] = round as u32;
            if round == rounds.len() {
                rounds.push((i64::MAX, i64::MIN));
            }
            let (first, last) = &mut rounds[round];
            (*first, *last) = ((*first).min(starts[at]), (*last).max(starts[at]));
        }
    }
    let are_apart = rounds.windows(2).all(|pair| pair[0].1 < pair[1].0);
    are_apart.then_some(Rounds { of_run, count: rounds.len(), are_jobs: false })
}
