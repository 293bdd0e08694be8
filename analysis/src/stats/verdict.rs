//! R*: which nodes are slower than those of their class, and by how much at least.
//!
//! Two questions, and the verdict needs both answers. A: does the node stand out from its class, when that
//! many nodes are looked at? B: is it slower by more than matters? A alone is no reason to act, and with
//! fleets that are not normal it fires on healthy nodes; B alone is met by the slow tail of any fleet.

use super::median::NodeMedian;
use super::{bh, median, normal, qn, within};

/// What R* is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// B: slower than the class by more than this fraction.
    pub delta: f64,
    /// Slower by more than this fraction: a drain is suggested.
    pub drain_delta: f64,
    /// A: share of false discoveries that is accepted.
    pub q: f64,
    /// Fewer runs make no verdict, only a suspicion.
    pub min_runs: usize,
    /// A smaller class has too little to stand out from: there B alone decides.
    pub min_nodes: usize,
    /// The spread of a class is not taken for smaller (in ln T): nobody's nodes are more equal.
    pub floor: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { delta: 0.03, drain_delta: 0.05, q: 0.01, min_runs: 5, min_nodes: 20, floor: 0.002 }
    }
}

/// What is said of a node. None of them says "broken".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing stands against it.
    Ok,
    /// It stands out, but not by what matters.
    Unusual,
    /// It stands out or is slower by what matters, in too few runs.
    Suspect,
    /// It is slower by at least delta, as the tail of such a class is.
    SlowTail,
    /// It is slower by at least delta, and stands out. In a small class: slower by at least delta.
    Slow,
}

impl Verdict {
    /// As the report has it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "OK",
            Verdict::Unusual => "UNUSUAL",
            Verdict::Suspect => "SUSPECT",
            Verdict::SlowTail => "SLOW-TAIL",
            Verdict::Slow => "SLOW",
        }
    }
}

/// A class and its nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// ln seconds: the median of the nodes' medians. `None` of no node.
    pub centre: Option<f64>,
    /// The nodes' spread in ln T: Qn of their medians, not floored. `None` below two nodes.
    pub spread: Option<f64>,
    /// In the order given.
    pub nodes: Vec<Judgement>,
}

/// What is known of a node next to its class. Everything is `None` in a class of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// Fraction of the class median: 0.05 is 5 % slower.
    pub slowdown: Option<f64>,
    /// The node is slower than its class by at least this fraction, see [`NodeMedian::least`].
    pub slower_by_at_least: Option<f64>,
    /// Its distance from the class in spreads. `None` in a small class.
    pub score: Option<f64>,
    /// A: how probable that is of a healthy node. `None` in a small class.
    pub p: Option<f64>,
    /// The same when that many nodes are looked at (Benjamini-Hochberg); at most q where it stands out.
    pub adjusted_p: Option<f64>,
    /// The verdict.
    pub verdict: Option<Verdict>,
    /// The verdict is SLOW, by more than what suggests a drain.
    pub suggests_drain: bool,
    /// For ranking only: what is left of the slowdown when what the noise of its runs would do is taken
    /// off. `None` where no node of the class has two runs.
    pub shrunken: Option<f64>,
}

/// Judges each node of a class by its runs' medians; `sigma` is that of [`within::sigma`].
///
/// c is the median of the medians m, s = max(Qn(m), floor). A: p = 1 - Phi((m - c) / s), Benjamini-Hochberg
/// at q. B: the r-th smallest run y_(r) satisfies y_(r) - c > ln(1 + delta).
///
/// Shrunken: B (m - c), B = t / (t + v_k sigma_w^2), t = max(s^2 - mean v_k sigma_w^2, 0), the empirical
/// Bayes estimate of normal nodes with normal errors (B. Efron and C. Morris, "Data analysis using Stein's
/// estimator and its generalizations", JASA 70, 1975).
pub fn judge(medians: &[NodeMedian], sigma: Option<f64>, settings: &Settings) -> Judged {
    let mut ascending: Vec<f64> = medians.iter().map(|node| node.median).collect();
    ascending.sort_unstable_by(f64::total_cmp);
    let (centre, spread) = (median::of_ascending(&ascending), qn::qn(&ascending));
    let (Some(c), Some(s)) = (centre, spread) else {
        return Judged { centre, spread, nodes: vec![Judgement::ALONE; medians.len()] };
    };
    let is_small = medians.len() < settings.min_nodes;
    let scores: Vec<f64> = match is_small {
        true => Vec::new(),
        false => medians.iter().map(|node| (node.median - c) / s.max(settings.floor)).collect(),
    };
    let p: Vec<f64> = scores.iter().map(|score| normal::upper(*score)).collect();
    let adjusted = bh::adjusted(&p);
    let error = |node: &NodeMedian| sigma.map(|sigma| within::variance_factor(node.runs) * sigma * sigma);
    let mean_error = medians.iter().filter_map(error).sum::<f64>() / medians.len() as f64;
    let between = (s * s - mean_error).max(0.0);

    let judgement = |(at, node): (usize, &NodeMedian)| {
        let (difference, least) = (node.median - c, node.least - c);
        let adjusted_p = adjusted.get(at).copied();
        let stands_out = adjusted_p.is_some_and(|p| p <= settings.q);
        let matters = least > settings.delta.ln_1p();
        let verdict = match (stands_out, matters) {
            (false, false) => Verdict::Ok,
            _ if node.runs < settings.min_runs => Verdict::Suspect,
            (true, true) => Verdict::Slow,
            (false, true) if is_small => Verdict::Slow,
            (false, true) => Verdict::SlowTail,
            (true, false) => Verdict::Unusual,
        };
        let share = |error: f64| if between > 0.0 { between / (between + error) } else { 0.0 };
        Judgement {
            slowdown: Some(difference.exp_m1()),
            slower_by_at_least: Some(least.exp_m1()),
            score: scores.get(at).copied(),
            p: p.get(at).copied(),
            adjusted_p,
            verdict: Some(verdict),
            suggests_drain: verdict == Verdict::Slow && least > settings.drain_delta.ln_1p(),
            shrunken: error(node).map(|error| (share(error) * difference).exp_m1()),
        }
    };
    Judged { centre, spread, nodes: medians.iter().enumerate().map(judgement).collect() }
}

impl Judgement {
    /// There is nothing to compare it with.
    const ALONE: Self = Self {
        slowdown: None,
        slower_by_at_least: None,
        score: None,
        p: None,
        adjusted_p: None,
        verdict: None,
        suggests_drain: false,
        shrunken: None,
    };
}
