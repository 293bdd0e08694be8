//! The table of fleets that do not fulfil all assumptions, with what docs/method.md states.

use crate::measured_runs::Tool;
use crate::over_time::{self, Change, SlowRuns};
use crate::part_of_class::{self, AGAIN, Again};
use crate::promises::{self, HEALTHY, Rate, Session};
use std::ops::Range;

/// First seed of the table. The methods and their limits were chosen on smaller seeds.
const SEEDS: u64 = 8_000_000;

/// Prints the table; with `part` > 1 with fewer fleets.
pub fn print(part: u64) {
    println!("\n## Fleets that do not fulfil all assumptions\n");
    println!(
        "The code of `pmmpi report` judges simulated runs. In most rows, ln T is the sum of three parts: ln"
    );
    println!(
        "of the time that the row names (or of 10 s), a random part of the node, and a random part of the"
    );
    println!(
        "run. The random parts have normal distributions, with the standard deviation s between nodes, and"
    );
    println!(
        "sigma between the runs of a node. Some rows add slow nodes or slow runs, or make all nodes slower or"
    );
    println!(
        "faster in some rounds, hours or sessions. `analysis/examples/simulate` has the details, for example"
    );
    println!(
        "s and sigma of the rows that do not name them. \"n x k\" means n nodes with k runs each. A row that"
    );
    println!("names no number of nodes has 100 nodes. Most rows have 7 runs per node and session.");
    println!();
    println!("The column \"result\" names what the row shows:");
    println!();
    println!(
        "- Recall, and the results about SLOW nodes: these results count the nodes with the verdict SLOW. In"
    );
    println!(
        "  a class of fewer than 20 nodes, these results also count the nodes with the verdict SLOW-TAIL."
    );
    println!(
        "- \"Suspects that are SLOW\" and \"suspects that are OK\": shares of the suspects. The suspects are the"
    );
    println!("  slow nodes in rows with a second session.");
    println!(
        "- \"`slower_by_at_least` true\": of the nodes that are SLOW or SLOW-TAIL, the share that is really"
    );
    println!("  slower by at least the reported value.");
    println!(
        "- \"Slower by 3 %\": of the nodes that are SLOW or SLOW-TAIL, the share that is really more than 3 %"
    );
    println!("  slower.");
    println!(
        "- \"Pairs of nodes with SLOW-TAIL or more, in the wrong order\": this result counts pairs of SLOW or"
    );
    println!(
        "  SLOW-TAIL nodes that really differ by more than 1 %. The result is the share of these pairs for"
    );
    println!("  which the report lists the less slow node first.");
    println!(
        "- \"Intervals that contain the true value\": of the intervals that the report gives for the medians of"
    );
    println!("  the nodes, the share that contains the true value.");
    println!("- \"`ci_coverage`\": the mean of the probabilities that the report gives for these intervals.");
    println!(
        "- \"Warned\": the share of the fleets for which the report gives the warning that fits the row:"
    );
    println!(
        "  `few-anchors`, `round-effects`, `time-order`, `dependent-runs`, `unequal-runs` or `bimodal-class`."
    );
    println!(
        "- \"Rounding warned\", \"noise warned\", \"round effects warned\", \"composition warned\" and \"class"
    );
    println!("  warned\": the share of the fleets for which the report gives the warning `rounded-times`,");
    println!("  `noise-floor`, `round-effects`, `composition-changed` or `class-moved`.");
    println!("- \"Class moved\": the share of the fleets for which the report finds a change of the class.");
    println!(
        "- \"Drains\": nodes that the report advises you to drain. A drain is false if the node is really at"
    );
    println!("  most 5 % slower than the median of the other nodes.");
    println!();
    println!(
        "\"Stated\" is the limit that pmmpi promises, or the condition for the warning. This column is empty if"
    );
    println!(
        "pmmpi promises nothing. We chose the methods and the limits with other seeds than those of this"
    );
    println!("page.\n");
    println!("| case | fleets | result | stated | measured |\n|---|---|---|---|---|");
    for Case { name, fleets, rates, stated } in cases() {
        let fleets = (fleets / part).max(1);
        let rates = rates(SEEDS..SEEDS + fleets);
        for (what, limit) in stated {
            let (_, rate) = rates.iter().find(|(name, _)| *name == what).expect("a result of this name");
            println!("| {name} | {fleets} | {what} | {limit} | {rate:.4} |");
        }
    }
}

struct Case {
    name: String,
    fleets: u64,
    rates: Box<dyn Fn(Range<u64>) -> Vec<Rate>>,
    /// The results in the table, and their limits.
    stated: Vec<(&'static str, &'static str)>,
}

fn case(
    name: impl Into<String>,
    fleets: u64,
    stated: &[(&'static str, &'static str)],
    rates: impl Fn(Range<u64>) -> Vec<Rate> + 'static,
) -> Case {
    Case { name: name.into(), fleets, rates: Box::new(rates), stated: stated.to_vec() }
}

fn cases() -> Vec<Case> {
    [suspects(), rounding(), few_runs(), noise(), over_time(), compositions(), slow_runs(), kinds()]
        .into_iter()
        .flatten()
        .collect()
}

fn suspects() -> Vec<Case> {
    let stay = [
        ("suspects that are SLOW", ">= 0.99"),
        ("suspects that are OK", "0"),
        ("warned", "with fewer than 3 healthy nodes"),
    ];
    let all = [
        (0, "only these 5 nodes"),
        (2, "these 5 nodes, and 2 healthy nodes"),
        (3, "these 5 nodes, and 3 healthy nodes"),
        (10, "these 5 nodes, and 10 healthy nodes"),
    ];
    let again = |(others, with): (usize, &str)| {
        let name = format!("200 nodes, 5 of them 8 % slow; second session: {with}");
        let of = Again { others, ..AGAIN };
        case(name, 200, &stay, move |seeds| part_of_class::suspects_again(of, seeds))
    };
    let mut cases: Vec<Case> = all.into_iter().map(again).collect();
    let mended = [("suspects that are OK", ">= 0.99")];
    let with_10 = Again { others: 10, ..AGAIN };
    cases.push(case("the same with 10 healthy nodes, after a repair", 200, &mended, move |seeds| {
        part_of_class::suspects_again(Again { is_mended: true, ..with_10 }, seeds)
    }));
    for (unit, slow) in [(0.01, ">= 0.99"), (0.1, "")] {
        let name = format!("the same with 10 healthy nodes, times of 10 s rounded to {unit} s");
        let stated = [("suspects that are SLOW", slow), ("suspects that are OK", "0")];
        cases.push(case(name, 200, &stated, move |seeds| {
            part_of_class::suspects_again(Again { unit, ..with_10 }, seeds)
        }));
    }
    let small = [("suspects that are SLOW", ""), ("suspects that are OK", "<= 0.01"), ("warned", "")];
    for (nodes, others) in [(3, 1), (10, 0), (10, 3), (20, 3)] {
        let name =
            format!("{nodes} nodes, 1 of them 8 % slow; second session: this node and {}", healthy(others));
        let of = Again { nodes, slow: 1, others, ..AGAIN };
        cases.push(case(name, 500, &small, move |seeds| part_of_class::suspects_again(of, seeds)));
    }
    for (nodes, slow, by, others) in
        [(200, 1, 0.06, 1), (200, 1, 0.06, 2), (100, 30, 0.1, 21), (44, 15, 0.1, 9)]
    {
        let slow_nodes = if slow == 1 { "this node".to_owned() } else { format!("these {slow} nodes") };
        let name = format!(
            "{nodes} nodes, {slow} of them {:.0} % slow; second session: {slow_nodes} and {}",
            100.0 * by,
            healthy(others)
        );
        let of = Again { nodes, slow, by, others, ..AGAIN };
        let stated = [("suspects that are OK", "<= 0.01")];
        cases.push(case(name, 200, &stated, move |seeds| part_of_class::suspects_again(of, seeds)));
    }
    let rotating = [
        ("recall", ">= 0.98"),
        ("false SLOW per fleet", "<= 0.05"),
        ("`slower_by_at_least` true", ">= 0.97"),
    ];
    cases.push(case(
        "100 nodes, 5 % of them slow; then 11 sessions, each with about 30 random nodes",
        200,
        &rotating,
        part_of_class::rotating,
    ));
    cases
}

fn healthy(nodes: usize) -> String {
    format!("{nodes} healthy node{}", if nodes == 1 { "" } else { "s" })
}

fn rounding() -> Vec<Case> {
    let none = [
        ("false SLOW per fleet", "0"),
        ("false drains per fleet", "0"),
        ("false slow runs per fleet", "0"),
        ("rounding warned", "1"),
    ];
    let nearly = [&none[..3], &[("rounding warned", ">= 0.99")]].concat();
    let found = [&none[..], &[("recall", ">= 0.99"), ("slow runs found", ">= 0.99")]].concat();
    let fine = [&none[..3], &[("rounding warned", "0")], &found[4..]].concat();
    let small = Session { sigma: 0.002, ..HEALTHY };
    let other = Session { sigma: 0.005, ..HEALTHY };
    let noisy = Session { s: 0.001, sigma: 0.01, ..HEALTHY };
    let slow = Session { slow_nodes: 0.03, slow_by: (0.08, 0.08), slow_runs: 0.01, ..small };
    let session =
        |name: &str, stated: &[(&'static str, &'static str)], time_s: f64, unit: f64, of: Session| {
            case(name, 200, stated, move |seeds| promises::session(Session { time_s, unit, ..of }, seeds))
        };
    // Most times are not rounded, so the share of false slow runs is the usual one.
    let of_tools = [none[0], none[1], ("false slow runs per fleet", "<= 0.05"), none[3]];
    let of_two = |nodes: usize, time_s: f64, unit: f64| {
        let name = format!(
            "100 healthy nodes, times of {time_s} s; the times of {nodes} nodes are rounded to {unit} s"
        );
        case(name, 200, &of_tools, move |seeds| {
            promises::two_tools(Session { time_s, ..other }, nodes, unit, seeds)
        })
    };
    vec![
        of_two(10, 10.42, 1.0),
        of_two(10, 10.6, 1.0),
        of_two(40, 10.42, 1.0),
        of_two(3, 10.26, 0.5),
        session("healthy, times of 10.42 s rounded to 1 s (s 0.5 %, sigma 0.2 %)", &none, 10.42, 1.0, small),
        session("healthy, times of 10.4 s rounded to 1 s (s 0.1 %, sigma 1 %)", &none, 10.4, 1.0, noisy),
        session("healthy, times of 10.2 s rounded to 0.5 s (s 0.5 %, sigma 0.2 %)", &none, 10.2, 0.5, small),
        session(
            "healthy, times of 620 s rounded to 60 s (s 0.5 %, sigma 0.5 %)",
            &nearly,
            620.0,
            60.0,
            other,
        ),
        session(
            "healthy, times of 1500 s rounded to 60 s (s 0.5 %, sigma 0.5 %)",
            &none[..3],
            1500.0,
            60.0,
            other,
        ),
        session("healthy, times of 10 s rounded to 0.25 s (s 0.5 %, sigma 0.5 %)", &none, 10.0, 0.25, other),
        session(
            "3 % of the nodes 8 % slow, 1 % of the runs slow, times of 100.3 s rounded to 1 s",
            &found,
            100.3,
            1.0,
            slow,
        ),
        session("the same, times of 6000 s rounded to 60 s", &found, 6000.0, 60.0, slow),
        session("the same, times of 6000 s rounded to 1 s", &fine, 6000.0, 1.0, slow),
    ]
}

fn few_runs() -> Vec<Case> {
    let all = [
        (2000, 3, 200, "<= 0.02"),
        (2000, 7, 200, "<= 0.02"),
        (20, 3, 2000, "<= 0.06"),
        (10, 3, 2000, "<= 0.07"),
        (1, 7, 2000, "<= 0.03"),
        (1, 3, 2000, "<= 0.03"),
    ];
    let healthy = |(nodes, runs, fleets, limit): (usize, usize, u64, &'static str)| {
        let name = format!("healthy {nodes} x {runs} (s 0.5 %, sigma 2 %)");
        case(name, fleets, &[("classes with a false slow run", limit)], move |seeds| {
            promises::session(Session { nodes, runs, ..HEALTHY }, seeds)
        })
    };
    let mut cases: Vec<Case> = all.into_iter().map(healthy).collect();
    let stated = [("slow runs found", ">= 0.9"), ("share of found slow runs that are false", "<= 0.015")];
    cases.push(case("2000 x 3 (s 0.5 %, sigma 2 %), 1 % of the runs slow", 200, &stated, |seeds| {
        promises::session(Session { nodes: 2000, runs: 3, slow_runs: 0.01, ..HEALTHY }, seeds)
    }));
    cases
}

fn noise() -> Vec<Case> {
    let promised = [
        ("recall", ""),
        ("`slower_by_at_least` true", ">= 0.97"),
        ("slower by 3 %", ">= 0.97"),
        ("false SLOW per fleet", "<= 0.1"),
        ("false drains per fleet", "<= 0.01"),
    ];
    let order = |limit| {
        [&promised[..], &[("pairs of nodes with SLOW-TAIL or more, in the wrong order", limit)]].concat()
    };
    let none =
        [("false SLOW per fleet", "<= 0.005"), ("false drains per fleet", "<= 0.005"), ("noise warned", "1")];
    let some = Session { s: 0.015, slow_nodes: 0.01, slow_runs: 0.01, ..HEALTHY };
    let few = Session { nodes: 200, runs: 5, ..some };
    let mut cases = vec![
        case("500 x 7 (s 1.5 %, sigma 0.3 %), 5 % of nodes slow", 200, &order("<= 0.02"), move |seeds| {
            let of = Session { nodes: 500, sigma: 0.003, slow_nodes: 0.05, slow_runs: 0.0, ..some };
            promises::session(of, seeds)
        }),
        case("200 x 5 (s 1.5 %, sigma 2 %), 1 % of nodes slow", 1000, &order("<= 0.1"), move |seeds| {
            promises::session(few, seeds)
        }),
        case("2000 x 5 (s 1.5 %, sigma 10 %), 1 % of nodes slow", 200, &none, move |seeds| {
            promises::session(Session { nodes: 2000, sigma: 0.1, ..few }, seeds)
        }),
    ];
    let often = Session { s: 0.015, sigma: 0.003, slow_runs: 0.1, nodes: 2000, ..HEALTHY };
    for (runs, limit) in [(5, "<= 2"), (7, "<= 0.5")] {
        let name = format!("healthy 2000 x {runs} (s 1.5 %, sigma 0.3 %), 10 % of runs slow");
        let stated = [("false SLOW per fleet", limit), ("false drains per fleet", limit)];
        cases
            .push(case(name, 200, &stated, move |seeds| promises::session(Session { runs, ..often }, seeds)));
    }
    cases.extend([0.1, 0.2, 0.4].map(|sigma| {
        let name = format!("healthy 19 x 5 (s 1.5 %, sigma {:.0} %)", sigma * 100.0);
        let of = Session { nodes: 19, runs: 5, s: 0.015, sigma, ..HEALTHY };
        case(name, 1000, &none, move |seeds| promises::session(of, seeds))
    }));
    cases
}

fn over_time() -> Vec<Case> {
    let mut cases = Vec::new();
    let some = Session { sigma: 0.003, slow_nodes: 0.05, slow_by: (0.06, 0.12), slow_runs: 0.01, ..HEALTHY };
    for (effect, warned) in [(0.0, "<= 0.01"), (0.05, "1")] {
        let nodes = [("recall", ">= 0.99"), ("false SLOW per fleet", "0"), ("warned", warned)];
        let runs = [("slow runs found", ">= 0.99"), ("false slow runs per fleet", "<= 0.01")];
        let stated = [&nodes[..], &runs].concat();
        let name = format!(
            "rounds differ by {:.0} %, 5 % of 100 nodes slow; another tool measured the runs",
            effect * 100.0
        );
        cases
            .push(case(name, 200, &stated, move |seeds| over_time::rounds(some, effect, Tool::Other, seeds)));
        let name = format!(
            "rounds differ by {:.0} %, 5 % of 100 nodes slow; pmmpi measured the runs, each on one node",
            effect * 100.0
        );
        cases.push(case(name, 200, &nodes, move |seeds| over_time::rounds(some, effect, Tool::Pmmpi, seeds)));
    }
    let few = [("warned", "<= 0.01"), ("false slow runs per fleet", "<= 0.07")];
    for nodes in [5, 10] {
        let of = Session { nodes, ..HEALTHY };
        let name = format!("healthy {nodes} x 7; the rounds do not differ");
        cases.push(case(name, 2000, &few, move |seeds| over_time::rounds(of, 0.0, Tool::Other, seeds)));
    }
    let rounded = Session { unit: 0.1, sigma: 0.005, ..HEALTHY };
    cases.push(case(
        "healthy 100 x 7; the rounds do not differ, times of 10 s rounded to 0.1 s",
        200,
        &few,
        move |seeds| over_time::rounds(rounded, 0.0, Tool::Other, seeds),
    ));
    let in_step =
        [("recall", ">= 0.99"), ("false SLOW per fleet", "0"), ("false slow runs per fleet", "<= 0.1")];
    cases.push(case("rounds differ by 5 %, one node missed a round", 200, &in_step, move |seeds| {
        over_time::missed_round(some, seeds)
    }));
    let apart = [
        ("recall", ""),
        ("false SLOW per fleet", "<= 0.1"),
        ("false slow runs per fleet", "<= 0.1"),
        ("warned", ""),
    ];
    for first in [70, 90, 97] {
        let name = format!(
            "{first} nodes first, the {} other nodes hours later; each group has rounds of its own; all rounds differ \
             by 5 %",
            100 - first
        );
        cases.push(case(name, 200, &apart, move |seeds| over_time::two_groups(some, first, seeds)));
    }
    let of_jobs =
        [("slow runs found", ">= 0.99"), ("false SLOW per fleet", "0"), ("round effects warned", "0")];
    cases.push(case("7 jobs on 50 nodes, one job is 10 % slower", 200, &of_jobs, over_time::jobs));
    for (amplitude, warned) in [(0.0, "<= 0.01"), (0.01, ""), (0.02, ">= 0.99"), (0.08, "1")] {
        let stated = [("SLOW per fleet", "0"), ("drains per fleet", "0"), ("warned", warned)];
        let name = format!(
            "100 healthy nodes, measured one after another; times change by {:.0} % over the day",
            amplitude * 100.0
        );
        cases.push(case(name, 200, &stated, move |seeds| over_time::day(amplitude, 1, seeds)));
    }
    for (amplitude, warned) in [(0.0, "<= 0.01"), (0.08, ">= 0.99")] {
        let stated = [("SLOW per fleet", ""), ("warned", warned)];
        let name = format!(
            "100 healthy nodes, measured in groups of 5; times change by {:.0} % over the day",
            amplitude * 100.0
        );
        cases.push(case(name, 200, &stated, move |seeds| over_time::day(amplitude, 5, seeds)));
    }
    for (amplitude, missing, warned) in [(0.0, 0.0, "<= 0.01"), (0.08, 0.0, "1"), (0.08, 0.1, "1")] {
        let stated = [("false SLOW per fleet", "0"), ("warned", warned)];
        let mut name = format!(
            "100 healthy nodes, measured one after another on seven days; times change by {:.0} % over each day",
            amplitude * 100.0
        );
        if missing > 0.0 {
            name += &format!(", {:.0} % of runs missing", missing * 100.0);
        }
        cases.push(case(name, 200, &stated, move |seeds| over_time::same_hours(amplitude, missing, seeds)));
    }
    for late in [2, 20] {
        let name = format!(
            "{} nodes first, the {late} other nodes a week later, in an hour in which all nodes are 8 % slower",
            200 - late
        );
        let stated = [("false SLOW per fleet", "<= 0.1"), ("recall", ">= 0.95"), ("warned", ">= 0.95")];
        cases.push(case(name, 200, &stated, move |seeds| over_time::late_in_a_slow_hour(late, seeds)));
    }
    for size in [2, 5, 20] {
        let name = format!(
            "200 nodes, measured in groups of {size}; one group in 20 is measured in an hour in which all nodes are 8 % slower"
        );
        let stated = [("false SLOW per fleet", ""), ("recall", ""), ("warned", "")];
        cases.push(case(name, 200, &stated, move |seeds| over_time::groups_in_turn(size, seeds)));
    }
    let racks = [("recall", ">= 0.98"), ("false SLOW per fleet", "<= 0.2"), ("warned", "<= 0.01")];
    let name = "200 nodes in rounds; in a round, the nodes start one after another; racks differ by 1 %";
    cases.push(case(name, 200, &racks, over_time::started_in_turn));
    let late = [("recall", ">= 0.99"), ("false SLOW per fleet", "0"), ("warned", "0")];
    cases.push(case(
        "99 nodes are measured together, one node a week later",
        200,
        &late,
        over_time::straggler,
    ));
    for (correlation, warned) in [(0.0, "<= 0.01"), (0.3, ">= 0.8"), (0.6, "1"), (0.9, "1")] {
        let stated = [
            ("false SLOW per fleet", "0"),
            ("intervals that contain the true value", ""),
            ("`ci_coverage`", ""),
            ("warned", warned),
        ];
        let name = format!("100 x 7 healthy, successive runs with correlation {correlation}");
        cases.push(case(name, 200, &stated, move |seeds| over_time::dependent(correlation, seeds)));
    }
    cases
}

fn compositions() -> Vec<Case> {
    let retire = [("nodes with an alarm", "0"), ("composition warned", "1"), ("class warned", "0")];
    let slower = [("nodes with an alarm", ">= 0.59"), ("class warned", "0"), ("class moved", "0")];
    let all_slower = [("nodes with an alarm", "0"), ("class warned", "1"), ("class moved", "1")];
    let unequal =
        [("fleets with a false UNUSUAL", "<= 0.01"), ("false SLOW per fleet", "0"), ("warned", "1")];
    vec![
        case("20 of 100 nodes are 10 % slow and retire", 200, &retire, |seeds| {
            over_time::composition(Change::Retire, seeds)
        }),
        case("80 of 100 nodes are replaced by nodes that are 4 % slower", 200, &retire, |seeds| {
            over_time::composition(Change::Replaced, seeds)
        }),
        case(
            "3 of 100 nodes are replaced after each session by nodes that are 15 % faster",
            200,
            &retire,
            over_time::generations,
        ),
        case("60 of 100 nodes become 3 % slower", 200, &slower, |seeds| {
            over_time::composition(Change::Slower, seeds)
        }),
        case("100 of 100 nodes become 3 % slower", 200, &all_slower, |seeds| {
            over_time::composition(Change::AllSlower, seeds)
        }),
        case(
            "healthy class: 90 nodes have 101 runs, 10 nodes have 5 runs",
            10_000,
            &unequal,
            promises::unequal,
        ),
    ]
}

fn slow_runs() -> Vec<Case> {
    let kinds = [
        (SlowRuns::Single, 20, "one by one", ">= 0.95"),
        (SlowRuns::Series, 20, "three in succession", ">= 0.85"),
        (
            SlowRuns::BadSessions,
            20,
            "one by one; in three sessions with only 15 nodes, half of all runs are slow",
            ">= 0.95",
        ),
        (SlowRuns::Single, 1, "one by one, all in one session of 40 runs", ">= 0.9"),
        (SlowRuns::Series, 1, "three in succession, in one session of 40 runs", ""),
    ];
    let flaky = |(kind, sessions, name, found): (SlowRuns, usize, &str, &'static str)| {
        let stated = [("flaky nodes found", found), ("fleets with a false flaky node", "<= 0.01")];
        let name = format!("5 % of 200 nodes are flaky; slow runs {name}");
        case(name, 200, &stated, move |seeds| over_time::flaky(kind, sessions, seeds))
    };
    kinds.map(flaky).into()
}

fn kinds() -> Vec<Case> {
    let bimodal = |(slow, warned): (usize, &'static str)| {
        let name = format!("100 nodes, {slow} of them 6 % slow, times of 10 s rounded to 0.01 s");
        case(name, 1000, &[("warned", warned)], move |seeds| promises::bimodal(slow, seeds))
    };
    let mut cases: Vec<Case> = [(0, "<= 0.01"), (1, "<= 0.01"), (40, ">= 0.99")].map(bimodal).into();
    let two = [("slow node found", ">= 0.5"), ("the other node SLOW-TAIL", "<= 0.001")];
    cases.push(case("2 x 7, one node 6 % slow", 2000, &two, promises::two_nodes));
    cases
}
