//! An exact decomposition of ln T, which shows the parts of a slowdown.
//!
//! Let n be the number of hardware threads, I the instructions, C the cycles, R the reference cycles, and
//! f_TSC the rate of the reference cycles. Then
//!
//! T = I / n x C / I x R / (f_TSC C) x 1 / U, with U = R / (n f_TSC T).
//!
//! The right side is always T, so the equation holds for any counts in any units. f_TSC is the same for all
//! nodes of a class. As logarithms, minus the logarithms of a reference:
//!
//! ln(T / Tref) = dln I - dln n + dln CPI - dln f - dln U, f = C / R.
//!
//! R counts while the threads are on a processor that is not halted. So U is the fraction of the node's time in which
//! its hardware threads worked for these ranks. If some ranks worked less than others (they waited halted, or they
//! ended earlier), U = U_most / b, with the U_most of the rank that worked most and b = max R_rank / mean R_rank. The
//! imbalance b is a term of its own if there are several ranks.

use super::node_counts::Counted;
use super::{node_median, qn_scale};

/// The logarithm of a factor of the time, minus that of the reference (ln T). A value above 0 makes the node
/// slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Term {
    /// +dln I.
    Instructions,
    /// +dln C / I.
    Cpi,
    /// -dln C / R.
    Frequency,
    /// -dln C / K, with the task clock K; it includes halts.
    NetFrequency,
    /// +dln K: only the duration of the work is known.
    OnCpu,
    /// +dln b.
    Imbalance,
    /// -dln n.
    Cpus,
    /// -dln U.
    Utilisation,
    /// -dln K / (n T).
    OffCpu,
    /// +dln T / TSC: time in which nothing was counted.
    Uncounted,
}

impl Term {
    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Term::Instructions => "d_instructions",
            Term::Cpi => "d_cpi",
            Term::Frequency => "d_frequency",
            Term::NetFrequency => "d_net_frequency",
            Term::OnCpu => "d_on_cpu",
            Term::Imbalance => "d_imbalance",
            Term::Cpus => "d_cpus",
            Term::Utilisation => "d_utilisation",
            Term::OffCpu => "d_off_cpu",
            Term::Uncounted => "d_uncounted",
        }
    }
}

/// The counts of a decomposition, from the most informative to the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Identity {
    /// Instructions, cycles, reference cycles.
    Cycles,
    /// The same in user mode. Nothing was counted in the Linux kernel, so time there lowers the utilisation.
    CyclesUser,
    /// Instructions, cycles, task clock: some processors have no reference cycles.
    NetCycles,
    /// The same in user mode.
    NetCyclesUser,
    /// The task clock, without any counter of the processor.
    TaskClock,
}

/// The counts that an identity needs.
struct Needs {
    /// Instructions and cycles.
    work: Option<[&'static str; 2]>,
    /// A count that advances while a hardware thread works, and its value for the rank with the most.
    busy: [&'static str; 2],
}

impl Identity {
    const ALL: [Self; 5] =
        [Self::Cycles, Self::CyclesUser, Self::NetCycles, Self::NetCyclesUser, Self::TaskClock];

    /// The most informative identity for a node.
    pub fn of(counted: &Counted) -> Option<Self> {
        Self::ALL.into_iter().find(|identity| identity.holds(counted))
    }

    /// True if only user mode was counted.
    pub fn is_of_user_mode(self) -> bool {
        matches!(self, Self::CyclesUser | Self::NetCyclesUser)
    }

    fn needs(self) -> Needs {
        const ALL: Option<[&str; 2]> = Some(["instructions", "cycles"]);
        const USER: Option<[&str; 2]> = Some(["instructions_user", "cycles_user"]);
        const TASK: [&str; 2] = ["task_clock_ns", "task_clock_ns_most"];
        let (work, busy) = match self {
            Self::Cycles => (ALL, ["ref_cycles", "ref_cycles_most"]),
            Self::CyclesUser => (USER, ["ref_cycles_user", "ref_cycles_user_most"]),
            Self::NetCycles => (ALL, TASK),
            Self::NetCyclesUser => (USER, TASK),
            Self::TaskClock => (None, TASK),
        };
        Needs { work, busy }
    }

    fn holds(self, counted: &Counted) -> bool {
        let Needs { work, busy: [busy, _] } = self.needs();
        work.into_iter().flatten().chain([busy]).all(|name| counted.positive(name).is_some())
    }

    /// The imbalance, the CPUs and the uncounted time.
    fn additional(self) -> [AdditionalTerm; 3] {
        let [_, most] = self.needs().busy;
        [
            AdditionalTerm { is_in: |with| with.imbalance, counts: vec!["ranks", most] },
            AdditionalTerm { is_in: |with| with.cpus, counts: vec!["cpus"] },
            AdditionalTerm { is_in: |with| with.uncounted, counts: vec!["tsc"] },
        ]
    }

    /// Terms whose values add up to ln T, in the same order for all nodes of a class. `None` if a count is missing.
    fn terms(self, counted: &Counted, ln_time: f64, with: Additions) -> Option<Vec<(Term, f64)>> {
        let ln = |name: &str| counted.positive(name).map(f64::ln);
        let Needs { work, busy: [busy_name, most] } = self.needs();
        let busy = ln(busy_name)?;
        let (has_reference, mut terms) =
            (matches!(self, Self::Cycles | Self::CyclesUser), Vec::with_capacity(7));
        match work {
            Some([instructions, cycles]) => {
                let (instructions, cycles) = (ln(instructions)?, ln(cycles)?);
                let frequency = if has_reference { Term::Frequency } else { Term::NetFrequency };
                terms.push((Term::Instructions, instructions));
                terms.push((Term::Cpi, cycles - instructions));
                terms.push((frequency, busy - cycles));
            }
            None => terms.push((Term::OnCpu, busy)),
        }
        let mut idle = if with.uncounted { ln("tsc")? } else { ln_time } - busy;
        if with.imbalance {
            let imbalance = ln(most)? + ln("ranks")? - busy;
            terms.push((Term::Imbalance, imbalance));
            idle -= imbalance;
        }
        if with.cpus {
            terms.push((Term::Cpus, -ln("cpus")?));
            idle += ln("cpus")?;
        }
        terms.push((if has_reference { Term::Utilisation } else { Term::OffCpu }, idle));
        if with.uncounted {
            terms.push((Term::Uncounted, ln_time - ln("tsc")?));
        }
        Some(terms)
    }
}

/// A term that only some classes have.
struct AdditionalTerm {
    is_in: fn(&Additions) -> bool,
    /// What it is computed from.
    counts: Vec<&'static str>,
}

/// The additional terms of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Additions {
    imbalance: bool,
    cpus: bool,
    uncounted: bool,
}

/// A larger difference (in ln T) between elapsed time and TSC becomes a term. Smaller differences come from the rates
/// of clocks and crystals.
const CLOCKS_DIFFER: f64 = 1e-3;

impl Additions {
    /// The terms that all of these nodes have and in which they differ.
    fn of(identity: Identity, nodes: &[(usize, &Counted, f64)]) -> Self {
        let [imbalance, cpus, uncounted] = identity.additional();
        let all = |term: &AdditionalTerm| nodes.iter().all(|(_, node, _)| has(node, &term.counts));
        let spans = |value: &dyn Fn(&Counted, f64) -> f64| {
            let values = nodes.iter().map(|(_, node, ln_time)| value(node, *ln_time));
            let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
            high - low
        };
        let ln = |node: &Counted, name: &str| node.positive(name).map_or(0.0, f64::ln);
        Self {
            imbalance: all(&imbalance)
                && nodes.iter().any(|(_, node, _)| node.get("ranks").is_some_and(|ranks| ranks > 1.0)),
            cpus: all(&cpus) && spans(&|node, _| ln(node, "cpus")) > 0.0,
            uncounted: all(&uncounted) && spans(&|node, ln_time| ln_time - ln(node, "tsc")) > CLOCKS_DIFFER,
        }
    }
}

/// The decomposition of the slowdowns of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Decomposition {
    /// The counts that it uses.
    pub identity: Identity,
    /// Indices in the class of the nodes in this decomposition, ascending.
    pub nodes: Vec<usize>,
    /// ln Tref: the median over these nodes.
    pub reference: f64,
    /// ln(T / Tref) for each node.
    pub slower: Vec<f64>,
    /// The terms. For each node, their differences add up to its value in `slower`.
    pub terms: Vec<TermColumn>,
}

/// One term, for all nodes of a decomposition.
#[derive(Clone, Debug, PartialEq)]
pub struct TermColumn {
    /// The term.
    pub term: Term,
    /// The value for each node, minus that of the reference (in ln T).
    pub differences: Vec<f64>,
    /// How much nodes differ: Qn, without a floor.
    pub spread: f64,
}

impl Decomposition {
    /// The term, if this decomposition has it.
    pub fn term(&self, term: Term) -> Option<&TermColumn> {
        self.terms.iter().find(|column| column.term == term)
    }
}

/// The decompositions of a class. If several decompositions contain a node, the first of them is the one for
/// this node. Each decomposition of the result is the one for at least one node. `ln_times` has the ln
/// seconds of each node, and `class` its counts.
///
/// A decomposition covers the nodes that have its counts, if these are at least two nodes and half of the
/// class. (With fewer nodes, the reference could reflect another property that these nodes share.) If only
/// some of these nodes have the counts of an additional term, there is one decomposition for them and one for
/// all. Tref is the median of their times. The reference of each term is based on its median m_j. Medians do
/// not add up to ln Tref, so the terms share the remainder according to their variation: m_j + (ln Tref - sum
/// of m) s_j^2 / (sum of s^2). This is the point of the plane sum = ln Tref that is nearest to the medians,
/// measured in spreads s_j (Qn; at least `floor`).
pub fn decompose(class: &[Option<Counted>], ln_times: &[f64], floor: f64) -> Vec<Decomposition> {
    let timed: Vec<(usize, Option<&Counted>, f64)> = (0..)
        .zip(class)
        .zip(ln_times)
        .map(|((at, counted), ln_time)| (at, counted.as_ref(), *ln_time))
        .filter(|(_, _, ln_time)| ln_time.is_finite())
        .collect();
    let mut is_in = vec![false; class.len()];
    let mut all = Vec::new();
    for identity in Identity::ALL {
        let nodes: Vec<(usize, &Counted, f64)> = timed
            .iter()
            .filter_map(|(at, counted, ln_time)| Some((*at, (*counted)?, *ln_time)))
            .filter(|(_, counted, _)| identity.holds(counted))
            .collect();
        // A node that lacks the count of an additional term must not take this term from all others.
        let mut complete = nodes.clone();
        for term in identity.additional() {
            let having: Vec<_> =
                complete.iter().filter(|(_, node, _)| has(node, &term.counts)).copied().collect();
            let is_enough = having.len() >= MIN_COMPLETE && 2 * having.len() >= timed.len();
            if is_enough && (term.is_in)(&Additions::of(identity, &having)) {
                complete = having;
            }
        }
        for nodes in [complete, nodes] {
            let is_enough = nodes.len() >= 2 && 2 * nodes.len() >= timed.len();
            if is_enough && nodes.iter().any(|(at, ..)| !is_in[*at]) {
                nodes.iter().for_each(|(at, ..)| is_in[*at] = true);
                all.extend(Decomposition::new(identity, &nodes, floor));
            }
        }
    }
    all
}

/// If fewer nodes than this have the count of an additional term, no node gets the term, because a cause
/// needs this many nodes.
const MIN_COMPLETE: usize = 5;

fn has(node: &Counted, names: &[&str]) -> bool {
    names.iter().all(|name| node.positive(name).is_some())
}

impl Decomposition {
    fn new(identity: Identity, nodes: &[(usize, &Counted, f64)], floor: f64) -> Option<Self> {
        let with = Additions::of(identity, nodes);
        let values: Vec<Vec<(Term, f64)>> = nodes
            .iter()
            .map(|(_, counted, ln_time)| identity.terms(counted, *ln_time, with))
            .collect::<Option<_>>()?;
        let terms: Vec<Term> = values.first()?.iter().map(|(term, _)| *term).collect();
        let column = |at: usize| values.iter().map(|node| node[at].1).collect();
        let columns: Vec<Vec<f64>> = (0..terms.len()).map(column).collect();

        let (reference, _) = middle_and_spread(nodes.iter().map(|(.., ln_time)| *ln_time))?;
        let middles: Vec<(f64, f64)> =
            columns.iter().map(|column| middle_and_spread(column.iter().copied())).collect::<Option<_>>()?;
        let left_over = reference - middles.iter().map(|(middle, _)| middle).sum::<f64>();
        let weight = |spread: f64| spread.max(floor).max(f64::MIN_POSITIVE.sqrt()).powi(2);
        let weights: f64 = middles.iter().map(|(_, spread)| weight(*spread)).sum();
        let terms = terms.into_iter().zip(columns).zip(middles);
        let column = |((term, values), (middle, spread)): ((Term, Vec<f64>), (f64, f64))| {
            let own = middle + left_over * (weight(spread) / weights);
            TermColumn { term, differences: values.iter().map(|value| value - own).collect(), spread }
        };
        Some(Self {
            identity,
            nodes: nodes.iter().map(|(at, ..)| *at).collect(),
            reference,
            slower: nodes.iter().map(|(.., ln_time)| ln_time - reference).collect(),
            terms: terms.map(column).collect(),
        })
    }
}

/// Median and Qn of at least two values.
pub(super) fn middle_and_spread(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut ascending: Vec<f64> = values.collect();
    ascending.sort_unstable_by(f64::total_cmp);
    Some((node_median::of_ascending(&ascending)?, qn_scale::qn(&ascending)?))
}

/// L(a, b) = (a - b) / ln(a / b), L(a, a) = a: the logarithmic mean of two positive numbers.
pub fn logarithmic_mean(a: f64, b: f64) -> f64 {
    let relative = (a - b) / b;
    if relative == 0.0 {
        return a;
    }
    // ln(1 + x) is accurate if a and b are close. The difference of logarithms is right even if a / b overflows.
    let ln = if relative.abs() < 1.0 { relative.ln_1p() } else { a.ln() - b.ln() };
    (a - b) / ln
}

#[cfg(test)]
mod tests;
