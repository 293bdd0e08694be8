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
        assert!(found_name == name && (found - expected).abs() < 1e-12, "{name}: {found}, not {expected}");
    }
}

/// By hand: a tenth more instructions, equal cycles per instruction, 7/8 of the frequency, longer halts.
#[test]
fn four_factors_make_the_time() {
    let slow = changed(&[("tsc", 1.6), ("instructions", 1.1), ("cycles", 1.1), ("ref_cycles", 1.1 / 0.875)]);
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
    let user =
        || Some(Counted::new(["instructions_user", "cycles_user", "task_clock_ns"].map(|name| (name, 1.0))));
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
