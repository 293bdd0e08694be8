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
mod tests {
    use super::*;
    use proptest::num::f64::ANY;
    use proptest::prelude::*;

    const FLOOR: f64 = 0.002;

    /// Two hardware threads of a 2.1 GHz processor for one second.
    fn healthy() -> Vec<(&'static str, f64)> {
        vec![
            ("cpus", 2.0),
            ("tsc", 2.1e9),
            ("instructions", 2.8e9),
            ("cycles", 5.6e9),
            ("ref_cycles", 3.36e9),
            ("task_clock_ns", 1.7e9),
        ]
    }

    fn changed(by: &[(&str, f64)]) -> Option<Counted> {
        let factor = |name: &str| by.iter().find(|(changed, _)| *changed == name).map_or(1.0, |(_, by)| *by);
        Some(Counted::new(healthy().into_iter().map(|(name, value)| (name, value * factor(name)))))
    }

    fn terms(decomposition: &Decomposition, node: usize) -> Vec<(&'static str, f64)> {
        let of = |column: &TermColumn| (column.term.name(), column.differences[node]);
        decomposition.terms.iter().map(of).collect()
    }

    fn assert_near(found: &[(&str, f64)], expected: &[(&str, f64)]) {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for ((found_name, found), (name, expected)) in found.iter().zip(expected) {
            assert!(
                found_name == name && (found - expected).abs() < 1e-12,
                "{name}: {found}, not {expected}"
            );
        }
    }

    /// By hand: a tenth more instructions, equal cycles per instruction, 7/8 of the frequency, longer halts.
    #[test]
    fn four_factors_make_the_time() {
        let slow =
            changed(&[("tsc", 1.6), ("instructions", 1.1), ("cycles", 1.1), ("ref_cycles", 1.1 / 0.875)]);
        let class = [changed(&[]), slow, changed(&[]), changed(&[]), None];
        let times = [1.0, 1.6, 1.0, 1.0, 9.0].map(f64::ln);
        let all = decompose(&class, &times, FLOOR);
        assert_eq!((all.len(), all[0].identity), (1, Identity::Cycles));
        assert_eq!(all[0].nodes, [0, 1, 2, 3]);
        assert_near(
            &terms(&all[0], 1),
            &[
                ("d_instructions", 1.1f64.ln()),
                ("d_cpi", 0.0),
                ("d_frequency", -(0.875f64.ln())),
                ("d_utilisation", 1.6f64.ln() - (1.1f64 / 0.875).ln()),
            ],
        );
        let none = ["d_instructions", "d_cpi", "d_frequency", "d_utilisation"].map(|name| (name, 0.0));
        assert_near(&terms(&all[0], 0), &none);
    }

    #[test]
    fn terms_that_nodes_do_not_differ_in_are_left_out() {
        let class = [changed(&[]), changed(&[("cpus", 0.5)]), changed(&[])];
        let times = [1.0f64, 2.0, 1.0].map(f64::ln);
        let all = decompose(&class, &times, FLOOR);
        // Elapsed time and TSC disagree: one second was not counted.
        assert_near(
            &terms(&all[0], 1),
            &[
                ("d_instructions", 0.0),
                ("d_cpi", 0.0),
                ("d_frequency", 0.0),
                ("d_cpus", 2f64.ln()),
                ("d_utilisation", -(2f64.ln())),
                ("d_uncounted", 2f64.ln()),
            ],
        );
    }

    /// One of four ranks works all the time, the others half of it.
    #[test]
    fn imbalance_is_apart_from_utilisation() {
        let node = |most: f64, sum: f64| {
            let mut counted = changed(&[("ref_cycles", sum)])?;
            counted.set("ranks", 4.0);
            counted.set("ref_cycles_most", most * 3.36e9 / 4.0);
            Some(counted)
        };
        let class = [node(1.0, 1.0), node(1.6, 1.0), node(1.0, 1.0)];
        let all = decompose(&class, &[1.0, 1.6, 1.0].map(f64::ln), FLOOR);
        let slow = terms(&all[0], 1);
        assert_near(&slow[3..4], &[("d_imbalance", 1.6f64.ln())]);
        assert_near(&slow[4..5], &[("d_utilisation", -(1.6f64.ln()))]);
    }

    #[test]
    fn what_few_nodes_have_is_not_compared() {
        let clock = || Some(Counted::new([("task_clock_ns", 1e9)]));
        let class = [changed(&[]), changed(&[]), clock(), clock(), clock()];
        let all = decompose(&class, &[0.0; 5], FLOOR);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].identity, all[0].nodes.len()), (Identity::TaskClock, 5));
        let some = |count: usize| decompose(&class[..count], &[0.0; 5], FLOOR);
        assert_eq!(some(4).iter().map(|one| one.nodes.len()).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(some(2).len(), 1);
        assert_eq!(decompose(&class[..1], &[0.0], FLOOR), []);
        assert_eq!(decompose(&[], &[], FLOOR), []);
        let user = || {
            Some(Counted::new(["instructions_user", "cycles_user", "task_clock_ns"].map(|name| (name, 1.0))))
        };
        assert_eq!(decompose(&[user(), user()], &[0.0, 0.1], FLOOR)[0].identity, Identity::NetCyclesUser);
    }

    #[test]
    fn logarithmic_means_lie_between() {
        assert_eq!(logarithmic_mean(3.0, 3.0), 3.0);
        assert!((logarithmic_mean(1.0, std::f64::consts::E) - (std::f64::consts::E - 1.0)).abs() < 1e-15);
        assert!(logarithmic_mean(1e308, 1e-308) > 1e304);
        let mean = logarithmic_mean(1.0 + 1e-12, 1.0);
        assert!((1.0..=1.0 + 1e-12).contains(&mean));
    }

    const NAMES: [&str; 8] =
        ["cpus", "tsc", "instructions", "cycles", "ref_cycles", "task_clock_ns", "ranks", "ref_cycles_most"];

    fn node() -> impl Strategy<Value = (Vec<f64>, f64)> {
        (proptest::collection::vec(-30.0..40.0f64, NAMES.len()), -10.0..10.0f64)
    }

    fn counted(values: &[f64]) -> Option<Counted> {
        Some(Counted::new(NAMES.into_iter().zip(values.iter().map(|value| value.exp()))))
    }

    fn sums(all: &[Decomposition]) -> Vec<(f64, f64)> {
        let of_one = |one: &Decomposition| -> Vec<(f64, f64)> {
            let sum = |at: usize| one.terms.iter().map(|column| column.differences[at]).sum();
            one.slower.iter().enumerate().map(|(at, slower)| (sum(at), *slower)).collect()
        };
        all.iter().flat_map(of_one).collect()
    }

    proptest! {
        #[test]
        fn terms_add_up(nodes in proptest::collection::vec(node(), 2..40), lacks in 0usize..3) {
            let class = nodes.iter().map(|(values, _)| {
                let mut counted = counted(values)?;
                ["ref_cycles", "cycles"][..lacks].iter().for_each(|name| counted.lack(*name, "denied"));
                Some(counted)
            });
            let times: Vec<f64> = nodes.iter().map(|(_, time)| *time).collect();
            let all = decompose(&class.collect::<Vec<_>>(), &times, FLOOR);
            prop_assert_eq!(all.len(), 1);
            let expected = [Identity::Cycles, Identity::NetCycles, Identity::TaskClock][lacks];
            prop_assert_eq!(all[0].identity, expected);
            for (sum, slower) in sums(&all) {
                prop_assert!((sum - slower).abs() < 1e-12, "{sum} {slower}");
            }
        }

        /// Units of counters and of times, and the order of nodes, change nothing.
        #[test]
        fn units_and_order_do_not_matter(
            nodes in proptest::collection::vec(node(), 3..20),
            units in proptest::collection::vec(-5.0..5.0f64, NAMES.len()), by in 0usize..20
        ) {
            let all = |nodes: &[(Vec<f64>, f64)]| {
                let class: Vec<_> = nodes.iter().map(|(values, _)| counted(values)).collect();
                decompose(&class, &nodes.iter().map(|(_, time)| *time).collect::<Vec<_>>(), FLOOR)
            };
            let before = all(&nodes);
            // The number of ranks has no unit.
            let unit = |(name, by): (&&str, f64)| if *name == "ranks" { 0.0 } else { by };
            let units: Vec<f64> = NAMES.iter().zip(units).map(unit).collect();
            let scaled: Vec<(Vec<f64>, f64)> = nodes.iter()
                .map(|(values, time)| (values.iter().zip(&units).map(|(v, u)| v + u).collect(), time + 0.7))
                .collect();
            let mut turned = nodes.clone();
            let by = by % nodes.len();
            turned.rotate_left(by);
            let (scaled, turned) = (all(&scaled), all(&turned));
            for ((before, scaled), turned) in before.iter().zip(&scaled).zip(&turned) {
                for ((a, b), c) in before.terms.iter().zip(&scaled.terms).zip(&turned.terms) {
                    for (at, difference) in a.differences.iter().enumerate() {
                        prop_assert!((difference - b.differences[at]).abs() < 1e-10);
                        let place = (at + nodes.len() - by) % nodes.len();
                        prop_assert_eq!(*difference, c.differences[place]);
                    }
                }
            }
        }

        #[test]
        fn no_number_is_a_panic(
            nodes in proptest::collection::vec((proptest::collection::vec(ANY, NAMES.len()), ANY), 0..12),
            floor in ANY
        ) {
            let node = |values: &[f64]| Some(Counted::new(NAMES.into_iter().zip(values.iter().copied())));
            let class: Vec<_> = nodes.iter().map(|(values, _)| node(values)).collect();
            let times: Vec<f64> = nodes.iter().map(|(_, time)| time.ln()).collect();
            for one in decompose(&class, &times, floor) {
                prop_assert!(one.terms.iter().all(|column| column.differences.len() == one.nodes.len()));
            }
        }

        #[test]
        fn a_logarithmic_mean_is_symmetric(a in 1e-300..1e300f64, b in 1e-300..1e300f64) {
            let mean = logarithmic_mean(a, b);
            prop_assert!((mean / logarithmic_mean(b, a) - 1.0).abs() < 1e-9);
            prop_assert!(mean >= a.min(b) * (1.0 - 1e-9) && mean <= a.max(b) * (1.0 + 1e-9));
        }
    }
}
