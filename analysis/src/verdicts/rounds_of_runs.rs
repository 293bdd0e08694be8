//! Which runs of different nodes belong together, and what they have in common.

use crate::stats::class_runs::ClassRuns;
use crate::stats::median::NodeMedian;
use crate::stats::rounds;
use crate::table::{RunTable, UNDATED};
use std::collections::HashMap;

/// What the rounds of a session add to the times of their runs.
#[derive(Default)]
pub(super) struct RoundEffects {
    /// ln T: how much slower each round is than the median round; empty if rounds do not differ.
    pub effects: Vec<f64>,
    /// The round of each run; empty if rounds do not differ.
    pub of_run: Vec<u32>,
}

/// Differences that are not significant with so many nodes are smaller than a fifth of the standard deviation of runs.
const MANY: usize = 1000;

/// The effects of rounds. `rows` has the rows of all nodes, `class` their times, and `sigma` is the standard deviation of
/// runs.
pub(super) fn effects(
    table: &RunTable,
    nodes: &[&[u32]],
    rows: &[u32],
    class: &ClassRuns,
    medians: &[NodeMedian],
    sigma: f64,
) -> RoundEffects {
    let of = |nodes: &[&[u32]], rows: &[u32], class: &ClassRuns, medians: &mut dyn Iterator<Item = f64>| {
        let Some(Rounds { of_run, count }) = rounds(table, nodes, rows) else {
            return RoundEffects::default();
        };
        let effects =
            rounds::effects(class, medians, &of_run, count, sigma, &rounds::RoundSettings::default());
        RoundEffects { of_run: if effects.is_empty() { Vec::new() } else { of_run }, effects }
    };
    let step = nodes.len().div_ceil(MANY);
    if step > 1 {
        let some: Vec<&[u32]> = nodes.iter().copied().step_by(step).collect();
        let times: Vec<&[f64]> = class.nodes().step_by(step).collect();
        let ends = ends(&some);
        let times = times.concat();
        let middles = &mut medians.iter().step_by(step).map(|node| node.median);
        let found = ClassRuns::new(&times, &ends).map(|class| of(&some, &some.concat(), &class, middles));
        if found.is_none_or(|found| found.effects.is_empty()) {
            return RoundEffects::default();
        }
    }
    of(nodes, rows, class, &mut medians.iter().map(|node| node.median))
}

/// The end of each node's rows.
pub(super) fn ends(nodes: &[&[u32]]) -> Vec<usize> {
    let mut end = 0;
    let of = |rows: &&[u32]| {
        end += rows.len();
        end
    };
    nodes.iter().map(of).collect()
}

/// The rounds of a session: runs that were taken in step on several nodes.
struct Rounds {
    /// The round of each run, below `count`.
    of_run: Vec<u32>,
    count: usize,
}

/// A round of fewer nodes cannot be told from its nodes.
const FEW: usize = 5;

/// Runs with equal names on different nodes belong to one round: the same run of a job, or the same number. Runs that all
/// have names of their own are in rounds if their starts are: each node ran once before any node ran again.
///
/// `None` if pmmpi measured jobs on several nodes: there, a slow node makes all nodes slow, so its effect is no property
/// of the round.
fn rounds(table: &RunTable, nodes: &[&[u32]], rows: &[u32]) -> Option<Rounds> {
    let (of_run, count) = numbered(rows.iter().map(|row| table.run[*row as usize]));
    let mut sizes = vec![0u32; count];
    of_run.iter().for_each(|round| sizes[*round as usize] += 1);
    if rows.iter().zip(&of_run).any(|(row, round)| table.is_own[*row as usize] && sizes[*round as usize] > 1)
    {
        return None;
    }
    let most = rows.len() / count.max(1);
    let by_start = if nodes.len() >= FEW && most < 2 { by_start(table, nodes) } else { None };
    Some(by_start.unwrap_or(Rounds { of_run, count }))
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
    are_apart.then_some(Rounds { of_run, count: rounds.len() })
}
