//! The effects of rounds: what makes all runs of a round slower says nothing about a node.

use super::class_runs::ClassRuns;
use super::{chi_squared, within_nodes};

/// When rounds are corrected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundSettings {
    /// The effect of a round with fewer nodes counts as 0, because its median would depend mainly on its own
    /// nodes.
    pub min_nodes: usize,
    /// Rounds are corrected only if the probability that chance explains their differences is below this
    /// value.
    pub alpha: f64,
}

impl Default for RoundSettings {
    fn default() -> Self {
        Self { min_nodes: 5, alpha: 0.001 }
    }
}

/// The effect of each round on ln T, relative to the median round. Empty if the rounds do not differ more than chance
/// explains. `medians` has the median of each node; `round` the round of each run, below `rounds`; `sigma` is the
/// standard deviation of runs before any correction, see [`within_nodes::sigma`]. `ignored` has, in order, the runs
/// that must not determine the effect of a round, because they were chosen by their times.
///
/// The model is y_ij = a_i + b_r + noise, r the round of run j of node i. a_i is the median of y_ij - b_r
/// over the runs of the node, b_r the median of y_ij - a_i over the runs of the round, computed in turn (J.
/// W. Tukey, "Exploratory Data Analysis", 1977: median polish). Without an effect, the median of n residuals
/// has variance v_n sigma^2, so the sum of b^2 / (v_n sigma^2) is chi^2 with one degree of freedom less than
/// rounds.
pub fn effects(
    class: &ClassRuns,
    medians: impl Iterator<Item = f64>,
    round: &[u32],
    rounds: usize,
    ignored: &[usize],
    sigma: f64,
    settings: &RoundSettings,
) -> Vec<f64> {
    let mut fit = Fit::new(class, round, rounds, ignored, settings.min_nodes);
    if fit.fitted.len() < 2 {
        return Vec::new();
    }
    fit.improve(medians);
    if fit.is_significant(sigma, settings.alpha) { fit.improved().effects } else { Vec::new() }
}

/// The effect of each session on the medians of its nodes, relative to the median session. `class` has the
/// median of each node in each session (ln seconds), and `session` the session of each. The median of the
/// session's nodes is no such effect, because it depends on which nodes the session measured.
pub fn sessions(class: &ClassRuns, session: &[u32], sessions: usize) -> Vec<f64> {
    const TWO: usize = 2;
    Fit::new(class, session, sessions, &[], TWO).improved().effects
}

struct Fit<'a> {
    class: &'a ClassRuns<'a>,
    round: &'a [u32],
    /// Runs that do not determine an effect, in order.
    ignored: &'a [usize],
    /// Where the residuals of each round start.
    starts: Vec<usize>,
    /// Rounds with enough nodes.
    fitted: Vec<usize>,
    effects: Vec<f64>,
}

impl<'a> Fit<'a> {
    fn new(
        class: &'a ClassRuns<'a>,
        round: &'a [u32],
        rounds: usize,
        ignored: &'a [usize],
        min_nodes: usize,
    ) -> Self {
        let mut counts = vec![0usize; rounds];
        round.iter().for_each(|round| counts[*round as usize] += 1);
        ignored.iter().for_each(|run| counts[round[*run] as usize] -= 1);
        let fitted: Vec<usize> = (0..rounds).filter(|round| counts[*round] >= min_nodes).collect();
        let mut starts = vec![0usize; rounds + 1];
        for at in 0..rounds {
            starts[at + 1] = starts[at] + counts[at];
        }
        Self { class, round, ignored, starts, fitted, effects: vec![0.0; rounds] }
    }

    fn improved(mut self) -> Self {
        const MOST: usize = 500;
        const ENOUGH: f64 = 1e-5;
        for _ in 0..MOST {
            let of_nodes = self.of_nodes();
            if self.improve(of_nodes.into_iter()) < ENOUGH {
                break;
            }
        }
        self
    }

    /// The median of each node, without the effects.
    fn of_nodes(&self) -> Vec<f64> {
        let (mut first, mut own) = (0, Vec::new());
        let of_node = |runs: &[f64]| {
            let rounds = &self.round[first..first + runs.len()];
            first += runs.len();
            own.clear();
            own.extend(runs.iter().zip(rounds).map(|(y, round)| y - self.effects[*round as usize]));
            within_nodes::median_of(&mut own).unwrap_or_default()
        };
        self.class.nodes().map(of_node).collect()
    }

    /// Computes new effects from the medians of nodes. Returns the largest change of an effect.
    fn improve(&mut self, of_nodes: impl Iterator<Item = f64>) -> f64 {
        let mut free = self.starts.clone();
        let mut residuals = vec![0.0; self.round.len()];
        let mut round = self.round.iter().enumerate();
        let mut ignored = self.ignored.iter().peekable();
        for (runs, middle) in self.class.nodes().zip(of_nodes) {
            for (y, (run, round)) in runs.iter().zip(&mut round) {
                if ignored.next_if_eq(&&run).is_some() {
                    continue;
                }
                let place = &mut free[*round as usize];
                residuals[*place] = y - middle;
                *place += 1;
            }
        }
        let mut next = vec![0.0; self.effects.len()];
        for at in &self.fitted {
            let of_round = &mut residuals[self.starts[*at]..self.starts[at + 1]];
            next[*at] = within_nodes::median_of(of_round).unwrap_or_default();
        }
        let mut fitted: Vec<f64> = self.fitted.iter().map(|at| next[*at]).collect();
        let middle = within_nodes::median_of(&mut fitted).unwrap_or_default();
        self.fitted.iter().for_each(|at| next[*at] -= middle);
        let change = next.iter().zip(&self.effects).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        self.effects = next;
        change
    }

    fn is_significant(&self, sigma: f64, alpha: f64) -> bool {
        let mean = self.fitted.iter().map(|at| self.effects[*at]).sum::<f64>() / self.fitted.len() as f64;
        let square = |at: &usize| {
            let nodes = self.starts[at + 1] - self.starts[*at];
            (self.effects[*at] - mean).powi(2) / within_nodes::variance_factor(nodes)
        };
        let sum: f64 = self.fitted.iter().map(square).sum();
        sum > 0.0 && chi_squared::upper(sum / (sigma * sigma), self.fitted.len() - 1) < alpha
    }
}
