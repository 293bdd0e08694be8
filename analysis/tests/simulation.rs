//! The operating characteristic: compares the rows of docs/simulation.md with those of the design.

#[path = "../examples/simulate/cases.rs"]
mod cases;
#[path = "../examples/simulate/causes.rs"]
mod causes;
#[path = "../examples/simulate/fleet.rs"]
mod fleet;
#[path = "../examples/simulate/measured_runs.rs"]
mod measured_runs;
#[path = "../examples/simulate/methods.rs"]
mod methods;
#[path = "../examples/simulate/over_time.rs"]
mod over_time;
#[path = "../examples/simulate/own_history.rs"]
mod own_history;
#[path = "../examples/simulate/part_of_class.rs"]
mod part_of_class;
#[path = "../examples/simulate/promises.rs"]
mod promises;
#[path = "../examples/simulate/score.rs"]
mod score;
#[path = "../examples/simulate/screens.rs"]
mod screens;
#[path = "../examples/simulate/slowness.rs"]
mod slowness;

use fleet::{Recipe, Shape};
use measured_runs::Tool;
use over_time::{Change, SlowRuns};
use own_history::Fleet;
use part_of_class::{AGAIN, Again};
use pmmpi_analysis::stats::verdict_rule::Verdict;
use pmmpi_analysis::verdicts::kernels_of_node::ScreenVerdict;
use promises::{HEALTHY, Rate, Session};
use score::Score;
use screens::{ScreenRecipe, ScreenScore};
use slowness::{SC18, Truth};

fn is_near(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() <= tolerance
}

fn row(rows: &[(&str, Score)], name: &str) -> Score {
    rows.iter().find(|(row, _)| *row == name).expect("a row of that name").1
}

#[test]
fn the_reference_rows_come_out() {
    let rows = cases::of_methods(&Recipe::default(), 0..30);
    for (name, precision, recall, wrong) in [
        ("Tukey 1.5 on medians", 0.728, 0.844, 6.3),
        ("MAD z > 3.5", 0.962, 0.714, 0.57),
        ("fixed > 5 %", 0.922, 0.768, 1.3),
        ("SLOW", 0.984, 0.65, 0.2),
    ] {
        let found = row(&rows, name);
        assert!(is_near(found.precision(), precision, 0.02), "{name}: {found:?}");
        assert!(is_near(found.recall(), recall, 0.02), "{name}: {found:?}");
        assert!(is_near(found.wrong_per_fleet(), wrong, 0.5), "{name}: {found:?}");
    }
    let found = row(&rows, "SLOW");
    assert!(
        is_near(found.wrong_per_fleet(), 0.2, 0.3) && is_near(found.recall_of_much(), 0.785, 0.03),
        "{found:?}"
    );
    let runs = cases::of_slow_runs(&Recipe::default(), 0..30);
    assert!(runs.precision() > 0.999 && runs.recall() > 0.999 && runs.wrong_per_fleet() < 0.05, "{runs:?}");
}

/// 30 fleets have 600 slow nodes, so their recall is uncertain by 0.02. These 300 fleets are more precise.
#[test]
fn many_fleets_are_like_thirty() {
    let score = cases::of_verdict(&Recipe::default(), 100..400, Verdict::Slow);
    assert!(score.precision() > 0.985 && is_near(score.recall(), 0.675, 0.015), "{score:?}");
    assert!(score.wrong_per_fleet() < 0.2, "{score:?}");
}

#[test]
fn many_bad_nodes_mask_none() {
    let rows = cases::of_methods(&Recipe { slow_node_share: 0.05, ..Recipe::default() }, 0..30);
    let (mean, slow) = (row(&rows, "mean, z > 3"), row(&rows, "SLOW"));
    assert!(is_near(mean.recall(), 0.474, 0.02), "{mean:?}");
    assert!(slow.precision() > 0.99 && slow.recall() > 0.64, "{slow:?}");
}

#[test]
fn two_kinds_need_two_classes() {
    let two = Recipe { other_kind: Some((0.34, 0.15)), ..Recipe::default() };
    let pooled = row(&cases::of_methods(&two, 0..10), "fixed > 5 %");
    assert!(is_near(pooled.wrong_per_fleet(), 678.0, 20.0), "{pooled:?}");
    assert_eq!(cases::bimodal_share(&two, 0..10), 1.0);
    let declared = cases::of_declared_kinds(&two, 0..30);
    assert!(declared.wrong_per_fleet() < 0.4 && declared.precision() > 0.98, "{declared:?}");
}

#[test]
fn few_runs_make_suspects() {
    let three = Recipe { runs: 3, ..Recipe::default() };
    let slow = cases::of_verdict(&three, 0..10, Verdict::SlowTail);
    assert_eq!((slow.found, slow.wrong), (0, 0));
    let suspects = cases::of_verdict(&three, 0..10, Verdict::Suspect);
    assert!(suspects.recall() > 0.85, "{suspects:?}");
    let five = cases::of_verdict(&Recipe { runs: 5, ..Recipe::default() }, 0..30, Verdict::Slow);
    assert!(five.precision() > 0.98 && five.recall() > 0.62, "{five:?}");
    let (adaptive, runs) = cases::of_adaptive_screening(&Recipe::default(), 0..30);
    assert!(
        is_near(runs, 3.1, 0.05) && adaptive.precision() > 0.98 && adaptive.recall() > 0.61,
        "{adaptive:?} {runs}"
    );
}

#[test]
fn small_classes_are_judged_with_care() {
    let healthy = Recipe { slow_run_share: 0.0, slow_node_share: 0.0, ..Recipe::default() };
    assert_eq!(cases::small_class(&Recipe { nodes: 1, ..healthy.clone() }, 0..500), (0.0, 0.0));
    let three = Recipe { nodes: 3, node_sd: 0.005, ..healthy.clone() };
    assert_eq!(cases::small_class(&three, 0..500), (0.0, 0.0));
    let slow = Session { nodes: 3, sigma: 0.003, slow_nodes: 0.2, slow_by: (0.08, 0.08), ..HEALTHY };
    let rates = promises::session(slow, SEEDS..SEEDS + 500);
    holds(&rates, &[("recall", 0.6..=1.0), ("false SLOW per fleet", 0.0..=0.01)]);
}

#[test]
fn equal_nodes_are_no_riddle() {
    let equal =
        Recipe { node_sd: 0.0, run_sd: 0.0, slow_run_share: 0.0, slow_node_share: 0.0, ..Recipe::default() };
    let score = cases::of_verdict(&equal, 0..3, Verdict::Unusual);
    assert_eq!((score.found, score.wrong), (0, 0));
    // Zero variance, with some slow nodes and runs: these are found, and nothing else. A node that is 3.01 % slower is
    // not certain to be 3 % slower.
    let but_some = Recipe { slow_node_share: 0.01, slow_run_share: 0.01, ..equal };
    let nodes = cases::of_verdict(&but_some, 0..3, Verdict::Slow);
    assert!(nodes.much > 0 && (nodes.much_found, nodes.wrong) == (nodes.much, 0), "{nodes:?}");
    assert!(nodes.recall() > 0.97, "{nodes:?}");
    let runs = cases::of_slow_runs(&but_some, 0..3);
    assert!(runs.slow > 0 && (runs.found, runs.wrong) == (runs.slow, 0), "{runs:?}");
}

/// With other distributions some healthy nodes are SLOW; they are indeed slower by 3 %. The docs state their number,
/// and this test fails if it grows.
#[test]
fn other_shapes_have_their_caveat() {
    let of = |shape| cases::of_verdict(&Recipe { shape, ..Recipe::default() }, 0..30, Verdict::Slow);
    let (t5, skewed) = (of(Shape::T5), of(Shape::Skewed));
    assert!((4.0..14.0).contains(&t5.wrong_per_fleet()) && t5.recall() > 0.7, "{t5:?}");
    assert!((60.0..130.0).contains(&skewed.wrong_per_fleet()) && skewed.recall() > 0.9, "{skewed:?}");
}

/// The table of the design: precision and recall of SLOWED, and "since" of steps above 3 %.
#[test]
fn nodes_that_became_slower_are_found() {
    let reference = own_history::REFERENCE;
    let small = Fleet { nodes: 5, changed: 0.0, ..reference };
    for (fleet, fleets, limits) in [
        (Fleet { sessions: 2, ..reference }, 20, vec![("precision", 0.963..=1.0), ("recall", 0.883..=1.0)]),
        (Fleet { sessions: 3, ..reference }, 20, vec![("precision", 0.974..=1.0), ("recall", 0.91..=1.0)]),
        (Fleet { sessions: 6, ..reference }, 20, vec![("precision", 0.975..=1.0), ("recall", 0.936..=1.0)]),
        (Fleet { sessions: 12, ..reference }, 10, vec![("precision", 0.975..=1.0), ("recall", 0.937..=1.0)]),
        (
            Fleet { sessions: 6, runs: 3, ..reference },
            20,
            vec![("precision", 0.965..=1.0), ("recall", 0.936..=1.0)],
        ),
        (
            Fleet { sessions: 6, changed: 0.1, ..reference },
            5,
            vec![("precision", 0.98..=1.0), ("recall", 0.914..=1.0), ("at least true", 0.98..=1.0)],
        ),
        (
            Fleet { sessions: 6, has_bad_sessions: true, ..reference },
            20,
            vec![("precision", 0.6..=1.0), ("recall", 0.93..=1.0)],
        ),
        (
            Fleet { sessions: 6, by: (-0.12, -0.01), ..reference },
            10,
            vec![("precision", 0.97..=1.0), ("recall", 0.9..=1.0)],
        ),
        (small, 500, vec![("false SLOWED", 0.0..=0.03), ("false FASTER", 0.0..=0.03)]),
    ] {
        let seeds = SEEDS..SEEDS + fleets;
        let rates = own_history::of(fleet, seeds);
        holds(&rates, &limits);
        if fleet.changed > 0.0 {
            holds(&rates, &[("since right", 0.95..=1.0)]);
        }
    }
}

/// A lasting step, a single bad session, an unsteady node and a slow change are told apart.
#[test]
fn the_course_of_a_change_is_told() {
    let of =
        |course| own_history::of(Fleet { sessions: 12, course, ..own_history::REFERENCE }, SEEDS..SEEDS + 10);
    holds(&of(own_history::Truth::Step), &[("STEP or LATEST", 0.97..=1.0)]);
    holds(&of(own_history::Truth::Unsteady), &[("UNSTEADY", 0.6..=1.0)]);
    holds(&of(own_history::Truth::Creep), &[("CREEP", 0.8..=1.0)]);
    let one = of(own_history::Truth::OneSession);
    holds(&one, &[("recall", 0.0..=0.02), ("bad session named", 0.85..=1.0)]);
    holds(&one, &[("healthy with a bad session", 0.0..=0.001)]);
}

#[test]
fn only_two_kinds_look_bimodal() {
    for (_, shape) in cases::shapes() {
        for nodes in [20, 200] {
            assert_eq!(cases::bimodal_share(&Recipe { nodes, shape, ..Recipe::default() }, 0..200), 0.0);
        }
    }
    let halves = Recipe { nodes: 500, other_kind: Some((0.5, 0.095)), ..Recipe::default() };
    assert_eq!(cases::bimodal_share(&halves, 0..30), 1.0);
}

#[test]
fn what_happens_over_time_is_found() {
    let flaky = cases::flaky(0..5);
    assert!(flaky.precision() > 0.99 && flaky.recall() > 0.65, "{flaky:?}");
    assert_eq!(cases::drift(0.0, 2000, 1).0, 0.0);
    let (early, late, sessions) = cases::drift(0.02, 2000, 2);
    assert!(early == 0.0 && late > 0.99 && sessions <= 7.0);
}

#[test]
fn causes_are_named_rightly() {
    let share = |part: usize, tally: &causes::Tally| part as f64 / tally.all() as f64;
    let of = |nodes, slow_node_share, fleets| {
        causes::of_slow(&causes::Recipe { nodes, slow_node_share }, 0..fleets)
    };
    for ((name, truth), tally) in causes::TRUTHS.iter().zip(of(2000, 0.05, 30)) {
        assert!(tally.all() > 100 && tally.none == 0, "{name}: {tally:?}");
        let (right, wrong) = if *truth == causes::Truth::Mixed { (0.85, 0.15) } else { (0.95, 0.005) };
        assert!(
            share(tally.right, &tally) > right && share(tally.wrong, &tally) < wrong,
            "{name}: {tally:?}"
        );
    }
    // In small classes more causes are mixed, and hardly more are wrong.
    for (nodes, right) in [(20, 0.75), (10, 0.5), (5, 0.45)] {
        for ((name, truth), tally) in causes::TRUTHS.iter().zip(of(nodes, 0.2, 1000)) {
            let wrong = if *truth == causes::Truth::Mixed { 0.2 } else { 0.01 };
            let found = (share(tally.right, &tally), share(tally.wrong, &tally));
            assert!(tally.all() > 100 && found.0 > right && found.1 < wrong, "{nodes}, {name}: {tally:?}");
        }
    }
}

/// A healthy node that is slow by chance has a cause by chance; the tool names the right one.
#[test]
fn healthy_nodes_are_given_no_wrong_cause() {
    for (nodes, fleets) in [(2000, 10), (10, 1000)] {
        let [said, given, wrong] = causes::of_healthy(nodes, 0..fleets);
        assert!(given < 0.12 * said && wrong < 0.01 * said, "{nodes}: {said} {given} {wrong}");
    }
}

/// The seeds of docs/simulation.md begin at 8,000,000; these are others.
const SEEDS: u64 = 3_000_000;

fn rate(rates: &[Rate], what: &str) -> f64 {
    rates.iter().find(|(name, _)| *name == what).unwrap_or_else(|| panic!("{what}: {rates:?}")).1
}

/// Compares results with the largest or least value that docs/method.md states; the numbers are those of few fleets.
fn holds(rates: &[Rate], limits: &[(&str, std::ops::RangeInclusive<f64>)]) {
    for (what, limits) in limits {
        assert!(limits.contains(&rate(rates, what)), "{what} not in {limits:?}: {rates:?}");
    }
}

#[test]
fn suspects_measured_again_are_not_acquitted_by_each_other() {
    for (anchors, warned) in [(0, 1.0), (2, 1.0), (3, 0.0), (10, 0.0)] {
        let rates = part_of_class::suspects_again(Again { others: anchors, ..AGAIN }, SEEDS..SEEDS + 20);
        holds(&rates, &[("suspects that are SLOW", 0.99..=1.0), ("warned", warned..=warned)]);
    }
    let mended = Again { others: 10, is_mended: true, ..AGAIN };
    holds(&part_of_class::suspects_again(mended, SEEDS..SEEDS + 20), &[("suspects that are OK", 0.99..=1.0)]);
    for (nodes, others, unit) in [(200, 10, 0.1), (3, 1, 0.0), (10, 3, 0.0), (20, 3, 0.0)] {
        let small = Again { nodes, slow: 1, others, unit, ..AGAIN };
        let rates = part_of_class::suspects_again(small, SEEDS..SEEDS + 50);
        holds(&rates, &[("suspects that are OK", 0.0..=0.02)]);
    }
    for (nodes, slow, by, others) in
        [(200, 1, 0.06, 1), (200, 1, 0.06, 2), (100, 30, 0.1, 21), (44, 15, 0.1, 9)]
    {
        let of = Again { nodes, slow, by, others, ..AGAIN };
        let rates = part_of_class::suspects_again(of, SEEDS..SEEDS + 20);
        holds(&rates, &[("suspects that are OK", 0.0..=0.01)]);
    }
    let rotating = part_of_class::rotating(SEEDS..SEEDS + 20);
    holds(&rotating, &[("recall", 0.97..=1.0), ("false SLOW per fleet", 0.0..=0.1)]);
}

#[test]
fn rounding_makes_no_finding() {
    let none = [("false SLOW per fleet", 0.0..=0.0), ("false drains per fleet", 0.0..=0.0)];
    let no_run = [("false slow runs per fleet", 0.0..=0.0), ("rounding warned", 1.0..=1.0)];
    for (s, sigma, time_s, unit) in [
        (0.005, 0.002, 10.42, 1.0),
        (0.001, 0.01, 10.40, 1.0),
        (0.005, 0.002, 10.2, 0.5),
        (0.005, 0.005, 620.0, 60.0),
        (0.005, 0.005, 1500.0, 60.0),
    ] {
        let rates = promises::session(Session { s, sigma, time_s, unit, ..HEALTHY }, SEEDS..SEEDS + 50);
        holds(&rates, &none);
        holds(&rates, &no_run);
    }
    for (nodes, time_s, unit) in [(10, 10.42, 1.0), (10, 10.6, 1.0), (40, 10.42, 1.0), (3, 10.26, 0.5)] {
        let of = Session { sigma: 0.005, time_s, ..HEALTHY };
        let rates = promises::two_tools(of, nodes, unit, SEEDS..SEEDS + 50);
        holds(&rates, &none);
        holds(&rates, &no_run);
    }
    let slow = Session { sigma: 0.002, slow_nodes: 0.03, slow_by: (0.08, 0.08), slow_runs: 0.01, ..HEALTHY };
    for (time_s, unit, warned) in [(100.3, 1.0, 1.0), (6000.0, 60.0, 1.0), (6000.0, 1.0, 0.0)] {
        let rates = promises::session(Session { time_s, unit, ..slow }, SEEDS..SEEDS + 50);
        holds(&rates, &none);
        holds(&rates, &[("recall", 0.99..=1.0), ("slow runs found", 0.99..=1.0)]);
        holds(&rates, &[("rounding warned", warned..=warned)]);
    }
}

#[test]
fn few_runs_give_few_false_slow_runs() {
    for (nodes, runs, fleets, most) in
        [(2000, 3, 20, 0.05), (20, 3, 500, 0.08), (10, 3, 500, 0.08), (1, 7, 500, 0.05)]
    {
        let of = Session { nodes, runs, ..HEALTHY };
        let rates = promises::session(of, SEEDS..SEEDS + fleets);
        holds(&rates, &[("classes with a false slow run", 0.0..=most)]);
    }
    let some = Session { nodes: 2000, runs: 3, slow_runs: 0.01, ..HEALTHY };
    let rates = promises::session(some, SEEDS..SEEDS + 20);
    holds(&rates, &[("slow runs found", 0.9..=1.0), ("share of found slow runs that are false", 0.0..=0.02)]);
}

#[test]
fn flagged_nodes_are_as_slow_as_promised() {
    let of = Session { nodes: 200, runs: 5, s: 0.015, slow_nodes: 0.01, slow_runs: 0.01, ..HEALTHY };
    let rates = promises::session(of, SEEDS..SEEDS + 200);
    holds(&rates, &[("`slower_by_at_least` true", 0.96..=1.0), ("recall", 0.45..=1.0)]);
    let order = Session { nodes: 500, sigma: 0.003, s: 0.015, slow_nodes: 0.05, ..HEALTHY };
    let rates = promises::session(order, SEEDS..SEEDS + 20);
    holds(
        &rates,
        &[
            ("pairs of nodes with SLOW-TAIL or more, in the wrong order", 0.0..=0.02),
            ("`slower_by_at_least` true", 0.97..=1.0),
        ],
    );
    // So many slow runs that they are most runs of some nodes.
    let often = Session { nodes: 2000, s: 0.015, sigma: 0.003, slow_runs: 0.1, ..HEALTHY };
    for (runs, most) in [(5, 3.0), (7, 0.5)] {
        let rates = promises::session(Session { runs, ..often }, SEEDS..SEEDS + 10);
        holds(&rates, &[("false SLOW per fleet", 0.0..=most), ("false drains per fleet", 0.0..=most)]);
    }
    // Noise that no verdict survives.
    for (nodes, sigma, fleets) in [(2000, 0.1, 10), (19, 0.1, 200), (19, 0.4, 200)] {
        let rates = promises::session(Session { nodes, sigma, ..of }, SEEDS..SEEDS + fleets);
        holds(&rates, &[("false drains per fleet", 0.0..=0.01), ("noise warned", 1.0..=1.0)]);
    }
}

#[test]
fn what_depends_on_time_is_corrected_or_said() {
    let some = Session { sigma: 0.003, slow_nodes: 0.05, slow_by: (0.06, 0.12), slow_runs: 0.01, ..HEALTHY };
    for (effect, warned) in [(0.0, 0.0..=0.05), (0.05, 1.0..=1.0)] {
        let rates = over_time::rounds(some, effect, Tool::Other, SEEDS..SEEDS + 20);
        holds(&rates, &[("recall", 0.99..=1.0), ("false slow runs per fleet", 0.0..=0.0)]);
        holds(&rates, &[("warned", warned.clone())]);
        let rates = over_time::rounds(some, effect, Tool::Pmmpi, SEEDS..SEEDS + 20);
        holds(&rates, &[("recall", 0.99..=1.0), ("warned", warned)]);
    }
    let few = over_time::rounds(Session { nodes: 5, ..HEALTHY }, 0.0, Tool::Other, SEEDS..SEEDS + 200);
    holds(&few, &[("warned", 0.0..=0.02)]);
    let missed = over_time::missed_round(some, SEEDS..SEEDS + 20);
    holds(&missed, &[("recall", 0.99..=1.0), ("false slow runs per fleet", 0.0..=0.2)]);
    for (first, recall) in [(70, 0.5..=1.0), (90, 0.8..=1.0), (97, 0.9..=1.0)] {
        let groups = over_time::two_groups(some, first, SEEDS..SEEDS + 20);
        holds(&groups, &[("false SLOW per fleet", 0.0..=0.1), ("false slow runs per fleet", 0.0..=0.2)]);
        holds(&groups, &[("recall", recall), ("warned", 0.8..=1.0)]);
    }
    let jobs = over_time::jobs(SEEDS..SEEDS + 20);
    holds(&jobs, &[("slow runs found", 0.99..=1.0), ("round effects warned", 0.0..=0.0)]);
    let late = over_time::straggler(SEEDS..SEEDS + 20);
    holds(&late, &[("recall", 0.99..=1.0), ("warned", 0.0..=0.0)]);
    for (amplitude, warned) in [(0.0, 0.0..=0.05), (0.08, 1.0..=1.0)] {
        let rates = over_time::day(amplitude, 1, SEEDS..SEEDS + 20);
        holds(&rates, &[("SLOW per fleet", 0.0..=0.0), ("drains per fleet", 0.0..=0.0), ("warned", warned)]);
    }
    for (amplitude, warned) in [(0.0, 0.0..=0.05), (0.08, 1.0..=1.0)] {
        for missing in [0.0, 0.1] {
            let rates = over_time::same_hours(amplitude, missing, SEEDS..SEEDS + 20);
            holds(&rates, &[("false SLOW per fleet", 0.0..=0.0), ("warned", warned.clone())]);
        }
    }
    for late in [2, 20] {
        let rates = over_time::late_in_a_slow_hour(late, SEEDS..SEEDS + 20);
        holds(&rates, &[("false SLOW per fleet", 0.0..=0.1), ("recall", 0.9..=1.0), ("warned", 0.95..=1.0)]);
    }
    for (size, warned) in [(2, 0.5..=1.0), (20, 0.1..=0.8)] {
        let rates = over_time::groups_in_turn(size, SEEDS..SEEDS + 20);
        holds(&rates, &[("false SLOW per fleet", 0.0..=2.0), ("warned", warned)]);
    }
    let racks = over_time::started_in_turn(SEEDS..SEEDS + 20);
    holds(&racks, &[("recall", 0.99..=1.0), ("warned", 0.0..=0.05)]);
    for (correlation, warned) in [(0.0, 0.0..=0.05), (0.6, 1.0..=1.0)] {
        let rates = over_time::dependent(correlation, SEEDS..SEEDS + 20);
        let [stated, true_share] =
            ["`ci_coverage`", "intervals that contain the true value"].map(|what| rate(&rates, what));
        assert!((stated - true_share).abs() < 0.04, "{correlation}: {stated} {true_share}");
        holds(&rates, &[("false SLOW per fleet", 0.0..=0.0), ("warned", warned)]);
    }
}

#[test]
fn a_class_may_change_and_its_nodes_are_not_equal() {
    holds(
        &over_time::composition(Change::Retire, SEEDS..SEEDS + 5),
        &[("nodes with an alarm", 0.0..=0.0), ("composition warned", 1.0..=1.0)],
    );
    // Most nodes, but not all: these nodes became slower, and not the class.
    holds(
        &over_time::composition(Change::Slower, SEEDS..SEEDS + 5),
        &[("nodes with an alarm", 0.6..=0.61), ("class warned", 0.0..=0.0), ("class moved", 0.0..=0.0)],
    );
    holds(
        &over_time::composition(Change::AllSlower, SEEDS..SEEDS + 5),
        &[("nodes with an alarm", 0.0..=0.0), ("class warned", 1.0..=1.0), ("class moved", 1.0..=1.0)],
    );
    holds(
        &over_time::composition(Change::Replaced, SEEDS..SEEDS + 5),
        &[("class warned", 0.0..=0.0), ("class moved", 0.0..=0.0)],
    );
    let few = over_time::generations(SEEDS..SEEDS + 3);
    holds(&few, &[("nodes with an alarm", 0.0..=0.0), ("composition warned", 1.0..=1.0)]);
    let unequal = [("fleets with a false UNUSUAL", 0.0..=0.03), ("warned", 1.0..=1.0)];
    holds(&promises::unequal(SEEDS..SEEDS + 100), &unequal);
    for (kind, sessions) in
        [(SlowRuns::Single, 20), (SlowRuns::Series, 20), (SlowRuns::BadSessions, 20), (SlowRuns::Single, 1)]
    {
        let rates = over_time::flaky(kind, sessions, SEEDS..SEEDS + 20);
        holds(&rates, &[("fleets with a false flaky node", 0.0..=0.05), ("flaky nodes found", 0.7..=1.0)]);
    }
    for (slow, warned) in [(1, 0.0..=0.0), (40, 1.0..=1.0)] {
        holds(&promises::bimodal(slow, SEEDS..SEEDS + 50), &[("warned", warned)]);
    }
    let two = [("slow node found", 0.5..=1.0), ("the other node SLOW-TAIL", 0.0..=0.01)];
    holds(&promises::two_nodes(SEEDS..SEEDS + 200), &two);
}

/// A counter that rises in few slow runs is found within nodes, a fact between nodes, and nothing where nothing is.
#[test]
fn what_goes_with_slowness_is_found() {
    let of = |fleet, fleets| slowness::of(fleet, SEEDS..SEEDS + fleets);
    let fact = |found| [("fact found between nodes", found), ("fact found within nodes", 0.0..=0.0)];
    for (fleet, found) in [
        (SC18, 0.85..=1.0),
        (slowness::Fleet { truth: Truth::Falls, ..SC18 }, 0.85..=1.0),
        (slowness::Fleet { truth: Truth::AllRuns, slow_runs: 0.0, ..SC18 }, 0.99..=1.0),
    ] {
        let rates = of(fleet, 60);
        holds(&rates, &[("found within nodes", found), ("share of findings that are false", 0.0..=0.02)]);
        holds(&rates, &[("intervals that contain the true value", 0.85..=1.0)]);
        holds(&rates, &[("only counts longer", 0.0..=0.1)]);
    }
    let background = slowness::Fleet { truth: Truth::PerSecond, slow_runs: 0.03, ..SC18 };
    holds(&of(background, 40), &[("only counts longer", 0.9..=1.0)]);
    holds(&of(slowness::Fleet { truth: Truth::Fact, ..SC18 }, 40), &fact(0.95..=1.0));
    let none = slowness::Fleet { truth: Truth::Nothing, ..SC18 };
    for (fleet, fleets) in [
        (none, 100),
        (slowness::Fleet { nodes: 20, slow_runs: 0.1, ..none }, 400),
        (slowness::Fleet { nodes: 10, runs: 3, ..none }, 400),
        (slowness::Fleet { rounds: 0.05, ..none }, 100),
        (slowness::Fleet { runs: 40, slow_runs: 0.05, by: Tool::Jobs, ..none }, 40),
    ] {
        holds(&of(fleet, fleets), &[("classes with a false finding", 0.0..=0.04)]);
    }
}

/// Most runs per node and kernel that suspects may cost.
const MOST_RUNS: f64 = 3.2;

/// Checks precision and recall, that each found node is slow in the kernel that the report names, and the cost.
fn assert_screens(score: &ScreenScore, precision: f64, recall: f64) {
    let share = |part: usize, all: usize| part as f64 / all as f64;
    assert!(share(score.found, score.found + score.wrong) >= precision, "{score:?}");
    assert!(share(score.found, score.slow) >= recall, "{score:?}");
    assert_eq!(score.wrong_kernel, 0, "{score:?}");
    assert!(score.runs / score.fleets as f64 <= MOST_RUNS, "{score:?}");
}

/// The limits of one kernel are those of the design. The seeds are a part of those of docs/simulation.md. So few fleets
/// differ from others by chance: with other seeds, a limit may not hold.
#[test]
fn a_first_screen_finds_slow_nodes() {
    let one = ScreenRecipe::default();
    let slow = |verdict| verdict == ScreenVerdict::Slow;
    assert_screens(&screens::of(one, 4100..4200, slow), 0.99, 0.66);
    // Of four kernels, each gets a part of the rate of false findings.
    let four = ScreenRecipe { kernels: 4, ..one };
    assert_screens(&screens::of(four, 4000..4003, slow), 0.99, 0.55);
}

#[test]
fn a_screen_after_five_others_finds_slowed_nodes() {
    let past =
        ScreenRecipe { sessions: 6, session_sd: 0.003, slow_by: (0.02, 0.12), ..ScreenRecipe::default() };
    let slowed = |verdict| matches!(verdict, ScreenVerdict::Slow | ScreenVerdict::Slowed);
    assert_screens(&screens::of(past, 4020..4028, slowed), 0.99, 0.95);
}

/// The rate of false findings (1 %) holds for all kernels together: of these few fleets, none has one.
#[test]
fn four_kernels_find_no_healthy_node() {
    let healthy = ScreenRecipe { kernels: 4, slow_share: 0.0, ..ScreenRecipe::default() };
    let score = screens::of(healthy, 4030..4042, |verdict| verdict == ScreenVerdict::Slow);
    assert_eq!((score.fleets, score.slow, score.wrong_fleets), (12, 0, 0), "{score:?}");
    assert!(score.runs / score.fleets as f64 <= MOST_RUNS, "{score:?}");
}
