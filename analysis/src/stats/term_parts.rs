//! The parts of a term, if further counts are known. The parts of a term add up to it exactly.

use super::node_counts::Counted;
use super::terms::{Decomposition, Identity, Term, TermColumn, logarithmic_mean, middle_and_spread};

/// A part of a term, for all nodes of a decomposition.
#[derive(Clone, Debug, PartialEq)]
pub struct TermPart {
    /// The name in the report.
    pub name: &'static str,
    /// The term that it is a part of.
    pub of: Term,
    /// The value for each node (in ln T); `None` if the node lacks a count.
    pub differences: Vec<Option<f64>>,
    /// How much nodes differ: Qn, without a floor; infinite if fewer than two nodes have a value.
    pub spread: f64,
}

/// All parts for a class and one of its decompositions.
pub fn parts(class: &[Option<Counted>], whole: &Decomposition) -> Vec<TermPart> {
    let nodes: Vec<Option<&Counted>> =
        whole.nodes.iter().map(|node| class.get(*node).and_then(Option::as_ref)).collect();
    let mut parts = Vec::new();
    let kernel = [
        (Term::Instructions, ["instructions_kernel", "instructions"], KERNEL_INSTRUCTIONS),
        (Term::Cpi, ["cycles_kernel", "cycles"], KERNEL_CPI),
    ];
    for (term, [part, all], names) in kernel {
        if let Some(column) = whole.term(term).filter(|_| !whole.identity.is_of_user_mode()) {
            let share = |node: &Option<&Counted>| {
                Some((*node)?.get(part)? / (*node)?.positive(all)?).filter(|share| *share <= 1.0)
            };
            parts.extend(by_share(column, &nodes.iter().map(share).collect::<Vec<_>>(), names));
        }
    }
    if let Some(column) = whole.term(Term::Utilisation) {
        parts.extend(of_utilisation(column, &nodes, whole.identity));
    }
    parts
}

/// Name of the part in the kernel, and of the part outside the kernel.
const KERNEL_INSTRUCTIONS: [&str; 2] = ["d_instructions_kernel", "d_instructions_user"];
const KERNEL_CPI: [&str; 2] = ["d_cpi_kernel", "d_cpi_user"];
/// Time not on a processor.
pub const OFF_CPU: &str = "d_off_cpu";
/// Time that a hypervisor took; belongs to the same term as [`OFF_CPU`].
pub const STOLEN: &str = "d_stolen";
/// Time on a processor in which the reference cycles did not count; belongs to the same term as [`OFF_CPU`].
pub const HALTED: &str = "d_halted";

/// A sum x = k + u of which k is a `share`. With logarithmic means,
/// dln x = (k - k0) / L(x, x0) + (u - u0) / L(x, x0). This is exact, and a part may be 0, because L(k, k0) ln(k / k0)
/// is k - k0. Source: B. W. Ang, "The LMDI approach to decomposition analysis: a practical guide", Energy Policy 33
/// (2005). k0 is the median.
fn by_share(column: &TermColumn, shares: &[Option<f64>], [name, rest]: [&'static str; 2]) -> Vec<TermPart> {
    // In units of x0.
    let part = |(share, difference): (&Option<f64>, &f64)| share.map(|share| share * difference.exp());
    let values: Vec<Option<f64>> = shares.iter().zip(&column.differences).map(part).collect();
    let Some((reference, _)) = middle_and_spread(values.iter().copied().flatten()) else { return Vec::new() };
    let difference = |(value, difference): (&Option<f64>, &f64)| {
        let mean = logarithmic_mean(difference.exp(), 1.0);
        value.map(|value| (value - reference) / mean).filter(|part| part.is_finite())
    };
    let own: Vec<Option<f64>> = values.iter().zip(&column.differences).map(difference).collect();
    with_rest(column, vec![TermPart::new(name, column.term, own)], rest)
}

/// U = off the processor x stolen x halted: K / (n T) x (K - S) / K x R / (K - S), with the task clock K and the
/// stolen time S, if S is known.
fn of_utilisation(column: &TermColumn, nodes: &[Option<&Counted>], identity: Identity) -> Vec<TermPart> {
    let reference_cycles = if identity.is_of_user_mode() { "ref_cycles_user" } else { "ref_cycles" };
    let steal_is_known = nodes.iter().flatten().all(|node| node.get("steal_ns").is_some());
    let own = |node: &Counted| {
        let on = node.positive("task_clock_ns")?;
        let left = if steal_is_known { on - node.get("steal_ns")? } else { on };
        let cycles = node.positive(reference_cycles)?;
        (left > 0.0).then(|| [left.ln() - cycles.ln(), on.ln() - left.ln()])
    };
    let own: Vec<Option<[f64; 2]>> = nodes.iter().map(|node| node.and_then(own)).collect();
    let part = |name, at: usize| {
        let (reference, _) = middle_and_spread(own.iter().flatten().map(|both| both[at]))?;
        let differences = own.iter().map(|both| both.map(|both| both[at] - reference));
        Some(TermPart::new(name, column.term, differences.collect()))
    };
    let Some(halted) = part(HALTED, 0) else { return Vec::new() };
    let stolen = part(STOLEN, 1).filter(|_| steal_is_known);
    with_rest(column, [Some(halted), stolen].into_iter().flatten().collect(), OFF_CPU)
}

/// Adds the rest of the term as one more part.
fn with_rest(column: &TermColumn, mut parts: Vec<TermPart>, name: &'static str) -> Vec<TermPart> {
    let rest = |(at, difference): (usize, &f64)| {
        let known: Option<f64> = parts.iter().map(|part| part.differences[at]).sum();
        known.map(|known| difference - known)
    };
    let rest = column.differences.iter().enumerate().map(rest).collect();
    parts.push(TermPart::new(name, column.term, rest));
    parts
}

impl TermPart {
    fn new(name: &'static str, of: Term, differences: Vec<Option<f64>>) -> Self {
        let spread = middle_and_spread(differences.iter().copied().flatten());
        Self { name, of, differences, spread: spread.map_or(f64::INFINITY, |(_, spread)| spread) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::terms::decompose;
    use super::*;
    use proptest::prelude::*;

    const NAMES: [&str; 7] = [
        "instructions",
        "instructions_kernel",
        "cycles",
        "cycles_kernel",
        "ref_cycles",
        "task_clock_ns",
        "steal_ns",
    ];

    fn counted(values: &[f64]) -> Option<Counted> {
        Some(Counted::new(NAMES.into_iter().zip(values.iter().copied())))
    }

    fn of(class: &[Option<Counted>], times: &[f64]) -> Vec<TermPart> {
        parts(class, &decompose(class, &times.iter().map(|time| time.ln()).collect::<Vec<_>>(), 0.002)[0])
    }

    fn value(parts: &[TermPart], name: &str, node: usize) -> f64 {
        parts.iter().find(|part| part.name == name).and_then(|part| part.differences[node]).unwrap()
    }

    /// By hand: 10 of 100 instructions in the kernel, and 60 of 150: 50 more there, none in user mode.
    #[test]
    fn a_part_is_its_difference_over_the_logarithmic_mean() {
        let usual = [100.0, 10.0, 200.0, 40.0, 200.0, 100.0, 0.0];
        let slow = [150.0, 60.0, 300.0, 60.0, 300.0, 150.0, 30.0];
        let parts = of(&[counted(&usual), counted(&usual), counted(&slow)], &[1.0, 1.0, 2.0]);
        assert!((value(&parts, "d_instructions_kernel", 2) - 1.5f64.ln()).abs() < 1e-12);
        assert!(value(&parts, "d_instructions_user", 2).abs() < 1e-12);
        assert!((value(&parts, "d_cpi_kernel", 2) + value(&parts, "d_cpi_user", 2)).abs() < 1e-12);
        // On the processor for 150 of 200; the hypervisor took 30 of them, and none was halted.
        assert!((value(&parts, OFF_CPU, 2) - (100.0f64 / 75.0).ln()).abs() < 1e-12);
        assert!((value(&parts, STOLEN, 2) - 1.25f64.ln()).abs() < 1e-12);
        assert!((value(&parts, HALTED, 2) - 0.8f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn what_was_not_counted_has_no_parts() {
        let only = |names: &[&'static str]| Some(Counted::new(names.iter().map(|name| (*name, 1.0))));
        let plain = || only(&["instructions", "cycles", "ref_cycles"]);
        assert_eq!(of(&[plain(), plain()], &[1.0, 2.0]), []);
        // More in the kernel than in total, and more stolen time than time on the processor.
        let odd = [1.0, 2.0, 1.0, 2.0, 1.0, 1.0, 1.0];
        assert_eq!(of(&[counted(&odd), counted(&odd)], &[1.0, 2.0]), []);
        let user = || {
            only(&["instructions_user", "cycles_user", "ref_cycles_user", "cycles_kernel", "task_clock_ns"])
        };
        let names: Vec<&str> = of(&[user(), user()], &[1.0, 2.0]).iter().map(|part| part.name).collect();
        assert_eq!(names, [HALTED, OFF_CPU]);
    }

    fn three(low: f64, high: f64) -> impl Strategy<Value = Vec<f64>> {
        proptest::collection::vec(low..high, 3)
    }

    proptest! {
        #[test]
        fn parts_add_up(nodes in proptest::collection::vec((three(1e3, 1e12), three(0.0, 0.99), 0.1..9.0f64), 2..20)) {
            let class: Vec<_> = nodes.iter().map(|(counts, shares, time)| {
                let [instructions, cycles, busy] = [counts[0], counts[1], counts[2]];
                let clock = busy * time;
                let kernel = [instructions * shares[0], cycles * shares[1]];
                counted(&[instructions, kernel[0], cycles, kernel[1], busy, clock, clock * shares[2]])
            }).collect();
            let times: Vec<f64> = nodes.iter().map(|(_, _, time)| time.ln()).collect();
            let whole = &decompose(&class, &times, 0.002)[0];
            let parts = parts(&class, whole);
            prop_assert_eq!(parts.len(), 7);
            for term in [Term::Instructions, Term::Cpi, Term::Utilisation] {
                for (at, difference) in whole.term(term).unwrap().differences.iter().enumerate() {
                    let of_term = parts.iter().filter(|part| part.of == term);
                    let sum: f64 = of_term.map(|part| part.differences[at].unwrap()).sum();
                    prop_assert!((sum - difference).abs() < 1e-11, "{sum} {difference}");
                }
            }
        }
    }
}
