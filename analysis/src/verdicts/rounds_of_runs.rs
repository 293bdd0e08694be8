//! The runs of different nodes that belong to one round, and the effect of the round.

use crate::stats::class_runs::ClassRuns;
use crate::stats::node_median::NodeMedian;
use crate::stats::{rounds, within_nodes};
use crate::table::{RunTable, UNDATED};
use hashbrown::HashMap;

/// What the rounds of a session add to the times of their runs.
#[derive(Default)]
pub(super) struct RoundEffects {
    /// ln T: how much slower each round is than the median round; empty if rounds do not differ.
    pub effects: Vec<f64>,
    /// The round of each run; empty if rounds do not differ.
    pub of_run: Vec<u32>,
    /// Number of runs in each round.
    sizes: Vec<usize>,
    /// Starts show the rounds, and not the runs' numbers.
    have_starts: bool,
}

impl RoundEffects {
    /// The effects of rounds with enough nodes.
    fn known(&self) -> impl Iterator<Item = f64> {
        self.effects.iter().zip(&self.sizes).filter(|(_, size)| **size >= FEW).map(|(effect, _)| *effect)
    }

    /// Standard deviation of the effects, from their median absolute deviation: the first round is often an exception. 0
    /// without effects, or if starts do not show the rounds.
    pub fn spread(&self) -> f64 {
        let mut distances: Vec<f64> = self.known().map(f64::abs).collect();
        let median = within_nodes::median_of(&mut distances).filter(|_| self.have_starts);
        1.4826 * median.unwrap_or_default()
    }

    /// True if the round may be the reason why a run is slower by `difference` (ln T): the effect of a round with few nodes
    /// is not known, but other rounds have effects.
    pub fn may_explain(&self, run: usize, difference: f64) -> bool {
        const MARGIN: f64 = 1.5;
        let is_known = self.of_run.get(run).is_none_or(|round| self.sizes[*round as usize] >= FEW);
        let (low, high) =
            self.known().fold((0.0f64, 0.0f64), |(low, high), effect| (low.min(effect), high.max(effect)));
        !is_known && difference < MARGIN * (high - low)
    }
}

/// Differences of seven rounds that are not significant with so many nodes are smaller than 15 % of the standard deviation
/// of runs.
const MANY: usize = 250;

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
        let Some(Rounds { of_run, count, have_starts }) = rounds(table, nodes, rows) else {
            return RoundEffects::default();
        };
        let (mut settings, mut ignored) = (rounds::RoundSettings::default(), Vec::new());
        if are_of_a_screen(table, rows) {
            // The suspects of further rounds were slower than usual in the first rounds, also by chance. So these rounds
            // would seem to be fast ones.
            ignored.extend((0..rows.len()).filter(|run| is_suspect(table, rows[*run] as usize)));
            settings.min_nodes = FEW_IN_STEP;
            // All nodes are in step, so a correction changes no comparison of nodes in the same rounds. Without it, an effect
            // that the few nodes of a small class do not prove makes successive runs look alike.
            settings.alpha = 1.0;
        }
        let effects = rounds::effects(class, medians, &of_run, count, &ignored, sigma, &settings);
        if effects.is_empty() {
            return RoundEffects::default();
        }
        let mut sizes = vec![0; count];
        of_run.iter().for_each(|round| sizes[*round as usize] += 1);
        RoundEffects { effects, of_run, sizes, have_starts }
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
    /// The starts of runs show them.
    have_starts: bool,
}

/// A round of fewer nodes cannot be told from its nodes.
const FEW: usize = 5;
/// The same for rounds of a screen without its suspects: `pmmpi screen` always adds other nodes to the suspects.
const FEW_IN_STEP: usize = 3;

/// The starts of runs show the rounds, if they are known: see [`by_start`]. Otherwise runs with equal names on different
/// nodes belong to one round: the same number.
///
/// `None` if these are jobs on several nodes: there, a slow node makes all nodes slow, so its effect is no property of the
/// round.
fn rounds(table: &RunTable, nodes: &[&[u32]], rows: &[u32]) -> Option<Rounds> {
    let (of_run, count) = numbered(rows.iter().map(|row| table.run.at(*row as usize)));
    if are_of_a_screen(table, rows) {
        return Some(Rounds { of_run, count, have_starts: true });
    }
    if are_jobs(table, rows, &of_run, count) {
        return None;
    }
    let starts: Vec<i64> = rows.iter().map(|row| table.started_unix_ns[*row as usize]).collect();
    if nodes.len() < FEW || !tell_runs_apart(nodes, &starts) {
        return Some(Rounds { of_run, count, have_starts: false });
    }
    let seconds: Vec<f64> = rows.iter().map(|row| table.elapsed_s[*row as usize]).collect();
    Some(by_start(nodes, &starts, &seconds))
}

/// True if the node looked slow before it ran this round of a screen.
fn is_suspect(table: &RunTable, row: usize) -> bool {
    !table.suspects.is_empty() && table.suspects.contains(&[table.run.at(row), table.node.at(row)])
}

/// True if all runs are rounds of screens, in which each node works for itself.
pub(super) fn are_of_a_screen(table: &RunTable, rows: &[u32]) -> bool {
    !table.screens.is_empty() && rows.iter().all(|row| table.screens.contains(&table.run.at(*row as usize)))
}

/// True if runs are jobs on several nodes: see [`are_jobs`].
pub(super) fn has_jobs(table: &RunTable, nodes: &[&[u32]]) -> bool {
    let rows = nodes.concat();
    let (of_run, count) = numbered(rows.iter().map(|row| table.run.at(*row as usize)));
    are_jobs(table, &rows, &of_run, count)
}

/// True if a run of pmmpi was on several nodes, or if most runs on several nodes have one time for all of them.
fn are_jobs(table: &RunTable, rows: &[u32], of_run: &[u32], count: usize) -> bool {
    // Nodes, and the range of times.
    let mut rounds = vec![(0u32, f64::INFINITY, f64::NEG_INFINITY); count];
    for (row, round) in rows.iter().zip(of_run) {
        let time = table.elapsed_s[*row as usize];
        let (nodes, low, high) = &mut rounds[*round as usize];
        (*nodes, *low, *high) = (*nodes + 1, low.min(time), high.max(time));
    }
    let is_shared = |round: &u32| rounds[*round as usize].0 > 1;
    let (mut shared, mut equal) = (0, 0);
    for (_, low, high) in rounds.iter().filter(|(nodes, ..)| *nodes > 1) {
        (shared, equal) = (shared + 1, equal + usize::from(low == high));
    }
    2 * equal > shared
        || rows.iter().zip(of_run).any(|(row, round)| {
            let row = *row as usize;
            table.is_own(row) && is_shared(round) && !table.screens.contains(&table.run.at(row))
        })
}

/// True if all starts are known, and the runs of a node have different ones.
fn tell_runs_apart(nodes: &[&[u32]], starts: &[i64]) -> bool {
    let mut in_order = Vec::new();
    let mut first = 0;
    !starts.contains(&UNDATED)
        && nodes.iter().all(|rows| {
            in_order.clear();
            in_order.extend_from_slice(&starts[first..first + rows.len()]);
            first += rows.len();
            in_order.sort_unstable();
            in_order.windows(2).all(|pair| pair[0] < pair[1])
        })
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

/// Rounds in the order of starts: a round ends where a node begins its next run, or with a long pause. So a node may miss
/// a round, or have an additional run.
fn by_start(nodes: &[&[u32]], starts: &[i64], seconds: &[f64]) -> Rounds {
    const PAUSE_GAPS: i64 = 10;
    const PAUSE_RUNS: f64 = 3.0;
    let of_node = nodes.iter().enumerate().flat_map(|(node, rows)| std::iter::repeat_n(node, rows.len()));
    let mut runs: Vec<(i64, usize, usize)> =
        starts.iter().zip(of_node).enumerate().map(|(run, (start, node))| (*start, node, run)).collect();
    runs.sort_unstable();
    let mut gaps: Vec<i64> = runs.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).collect();
    let middle = gaps.len() / 2;
    let usual = if gaps.is_empty() { 0 } else { *gaps.select_nth_unstable(middle).1 };
    let pause = usual.saturating_mul(PAUSE_GAPS);
    let mut of_run = vec![0; starts.len()];
    let mut latest = vec![u32::MAX; nodes.len()];
    let (mut round, mut before, mut longest_s) = (0, i64::MAX, 0f64);
    for (start, node, run) in runs {
        let is_pause = start.saturating_sub(before) > pause.max((PAUSE_RUNS * longest_s * 1e9) as i64);
        if latest[node] == round || is_pause {
            round += 1;
            longest_s = 0.0;
        }
        latest[node] = round;
        of_run[run] = round;
        (before, longest_s) = (start, longest_s.max(seconds[run]));
    }
    Rounds { of_run, count: round as usize + 1, have_starts: true }
}
