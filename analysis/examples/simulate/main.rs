//! Shows how often the statistics are right on simulated fleets with known slow nodes. Prints Markdown.
//!
//! `make simulate` writes docs/simulation.md with it. analysis/tests/simulation.rs checks the rows of the reference.

mod cases;
mod causes;
mod fleet;
mod measured_runs;
mod methods;
mod promises;
mod score;

use fleet::Recipe;
use pmmpi_analysis::stats::verdict_rule::Verdict;
use score::Score;

/// The number of fleets in the reference, and a number large enough to show the uncertainty of these 30.
const FLEETS: u64 = 30;
const MANY: u64 = 600;

fn main() {
    // For a first look: only the cases below, with a fraction of the fleets.
    if let Some(part) = std::env::args().nth(1).and_then(|part| part.parse().ok()) {
        return promises(part);
    }
    println!("# What the statistics find, and how often they are wrong\n");
    println!(
        "`make simulate` writes this page: pmmpi's own code generates fleets from fixed seeds and judges them, so"
    );
    println!("the numbers are the same each time. [method.md](method.md) describes the method.\n");
    reference();
    robustness();
    small();
    bimodal();
    over_time();
    promises(1);
    why();
}

fn reference() {
    println!("## Reference fleets\n");
    println!(
        "2000 nodes, 7 runs per node. ln T has a normal distribution, with a standard deviation of 1.5 % between"
    );
    println!(
        "nodes and of 0.3 % between the runs of a node. The simulation makes 1 % of the runs 10 to 30 % slower,"
    );
    println!(
        "and 1 % of the nodes 3 to 12 % slower (uniformly distributed). Precision and recall count only these"
    );
    println!(
        "runs and nodes as slow. \"Recall of > 5 %\" counts only the nodes that the simulation makes more than 5 %"
    );
    println!("slower.\n");
    for count in [FLEETS, MANY] {
        println!("{count} fleets:\n");
        heading();
        for (name, score) in cases::of_methods(&Recipe::default(), 0..count) {
            row(name, &score);
        }
        let score = cases::of_slow_runs(&Recipe::default(), 0..count);
        row("slow runs, pooled BH 1 % and > 2 %", &score);
        println!();
    }
}

fn robustness() {
    println!("## Other fleets\n");
    println!(
        "{FLEETS} fleets per row. A row that names a verdict counts the nodes with this verdict as found. \"Or more\""
    );
    println!(
        "adds the nodes with a stronger verdict, in the order SUSPECT, SLOW-TAIL, SLOW. With 3 runs a node is at"
    );
    println!("most SUSPECT.\n");
    heading();
    let five = Recipe { slow_node_share: 0.05, ..Recipe::default() };
    for (name, score) in cases::of_methods(&five, 0..FLEETS) {
        if ["mean, z > 3", "SLOW"].contains(&name) {
            row(&format!("5 % slow nodes: {name}"), &score);
        }
    }
    let two = Recipe { other_kind: Some((0.34, 0.15)), ..Recipe::default() };
    for (name, score) in cases::of_methods(&two, 0..FLEETS) {
        if ["fixed > 5 %", "SLOW"].contains(&name) {
            row(&format!("a third of the nodes of another kind, 15 % slower, in one class: {name}"), &score);
        }
    }
    row("the same fleets, two declared classes: SLOW", &cases::of_declared_kinds(&two, 0..FLEETS));
    for (runs, least) in [(3, Verdict::Suspect), (3, Verdict::Slow), (5, Verdict::Slow)] {
        let score = cases::of_verdict(&Recipe { runs, ..Recipe::default() }, 0..FLEETS, least);
        row(
            &format!("{runs} runs: {}{}", least.name(), if least < Verdict::Slow { " or more" } else { "" }),
            &score,
        );
    }
    let (score, runs) = cases::of_adaptive_screening(&Recipe::default(), 0..FLEETS);
    row(&format!("3 runs, then 4 more of each suspect ({runs:.2} runs per node): SLOW"), &score);
    for (name, shape) in cases::shapes().into_iter().skip(1) {
        let recipe = Recipe { shape, ..Recipe::default() };
        for least in [Verdict::Slow, Verdict::SlowTail] {
            let score = cases::of_verdict(&recipe, 0..FLEETS, least);
            let more = if least < Verdict::Slow { " or more" } else { "" };
            row(&format!("nodes {name}: {}{more}", least.name()), &score);
        }
    }
    println!(
        "\nIn fleets with \"nodes t5\", ln T of the nodes has a t distribution with 5 degrees of freedom; with \"nodes"
    );
    println!(
        "skewed\", ln T has an exponential tail of slow nodes. pmmpi assumes a normal distribution, so more findings"
    );
    println!(
        "are false there. These findings are healthy nodes that are slower than their class by more than 3 %.\n"
    );
}

fn small() {
    println!("## Small healthy classes\n");
    println!(
        "Share of 2000 classes in which a node is SLOW-TAIL or SLOW, and in which a run is slow. The simulation"
    );
    println!("makes no nodes and no runs slow here. In classes of fewer than 20 nodes no node is SLOW.\n");
    println!(
        "| nodes | runs | spread of nodes | spread of runs | share with a SLOW-TAIL node | share with a slow run |"
    );
    println!("|---|---|---|---|---|---|");
    for (nodes, runs, node_sd, run_sd) in [
        (1, 7, 0.015, 0.003),
        (1, 7, 0.015, 0.02),
        (3, 7, 0.005, 0.003),
        (3, 7, 0.015, 0.003),
        (3, 7, 0.015, 0.02),
        (10, 7, 0.015, 0.003),
        (20, 7, 0.015, 0.003),
    ] {
        let recipe = Recipe {
            nodes,
            runs,
            node_sd,
            run_sd,
            slow_run_share: 0.0,
            slow_node_share: 0.0,
            ..Recipe::default()
        };
        let (slow, slow_run) = cases::small_class(&recipe, 0..2000);
        let (node_sd, run_sd) = (node_sd * 100.0, run_sd * 100.0);
        println!("| {nodes} | {runs} | {node_sd:.1} % | {run_sd:.1} % | {slow:.3} | {slow_run:.3} |");
    }
    println!();
}

fn bimodal() {
    println!("## Classes that look bimodal\n");
    println!(
        "Share of classes for which the report warns (`bimodal-class`), of 1000 classes per row, or 200 of 2000"
    );
    println!("nodes.\n");
    println!(
        "| nodes | one kind: normal | t5 | skewed | two halves 3 spreads apart | 4 apart | 6 apart | a tenth 6 apart |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for nodes in [20, 100, 500, 2000] {
        let recipe = Recipe { nodes, ..Recipe::default() };
        let seeds = 0..if nodes == 2000 { 200 } else { 1000 };
        let mut cells: Vec<f64> = Vec::new();
        for (_, shape) in cases::shapes() {
            cells.push(cases::bimodal_share(&Recipe { shape, ..recipe.clone() }, seeds.clone()));
        }
        for (share, spreads) in [(0.5, 3.0), (0.5, 4.0), (0.5, 6.0), (0.1, 6.0)] {
            let other_kind = Some((share, f64::exp_m1(spreads * 0.015)));
            cells.push(cases::bimodal_share(&Recipe { other_kind, ..recipe.clone() }, seeds.clone()));
        }
        let cells: Vec<String> = cells.iter().map(|share| format!("{share:.3}")).collect();
        println!("| {nodes} | {} |", cells.join(" | "));
    }
    println!();
}

fn over_time() {
    println!("## Over time\n");
    let score = cases::flaky(0..FLEETS);
    println!(
        "Flaky nodes: a twentieth of 2000 nodes has 30 % slow runs, the other nodes have 1 %; 20 runs per node."
    );
    println!(
        "Precision {:.3}, recall {:.3}, {:.2} false per fleet.\n",
        score.precision(),
        score.recall(),
        score.wrong_per_fleet()
    );
    println!(
        "Drift: 10,000 nodes, 52 sessions whose medians vary by 0.4 %; the nodes are slower from session 31 on."
    );
    println!("The last column is the median number of sessions from session 31 to the alarm.\n");
    println!(
        "| slower by | share with an alarm before | share with the first alarm after | sessions until the alarm |"
    );
    println!("|---|---|---|---|");
    for (seed, step) in [0.0, 0.01, 0.015, 0.02, 0.03, 0.05].into_iter().enumerate() {
        let (early, late, sessions) = cases::drift(step, 10_000, seed as u64);
        let sessions = if late > 0.0 { format!("{sessions:.0}") } else { "-".to_owned() };
        println!("| {:.1} % | {early:.4} | {late:.4} | {sessions} |", step * 100.0);
    }
}

/// Seeds of the cases below; others were used to choose the methods.
const SEEDS: u64 = 1_000_000;

fn promises(part: u64) {
    println!("\n## Fleets that are not textbook\n");
    println!(
        "Rows of simulated runs, judged by the code of the report; y = ln 10 + s N(0, 1) per node + sigma N(0, 1)"
    );
    println!(
        "per run, n nodes with k runs. In a class of 20 or more nodes only SLOW counts as a finding, in a smaller"
    );
    println!("class SLOW-TAIL too. pmmpi's methods were chosen on other seeds.\n");
    println!("| case | fleets | result | measured |\n|---|---|---|---|");
    for (case, fleets, rates) in promised(SEEDS, part) {
        for (what, rate) in rates {
            println!("| {case} | {fleets} | {what} | {rate:.4} |");
        }
    }
}

/// All cases.
fn promised(first: u64, part: u64) -> Vec<(String, u64, Vec<promises::Rate>)> {
    use promises::{Session, SlowRuns};
    let healthy = Session {
        nodes: 100,
        runs: 7,
        s: 0.005,
        sigma: 0.02,
        slow_nodes: 0.0,
        slow_by: (0.03, 0.12),
        slow_runs: 0.0,
    };
    let mut all = Vec::new();
    let mut case = |name: &str,
                    fleets: u64,
                    rates: &dyn Fn(std::ops::Range<u64>) -> Vec<promises::Rate>,
                    kept: &[&str]| {
        let fleets = (fleets / part).max(1);
        let mut rates = rates(first..first + fleets);
        rates.retain(|(what, _)| kept.is_empty() || kept.iter().any(|kept| what.contains(kept)));
        all.push((name.to_owned(), fleets, rates));
    };
    let again = "200 nodes, 5 of them 8 % slow and measured again";
    for (anchors, with) in [(0, "alone"), (2, "with 2 others"), (3, "with 3 others"), (10, "with 10 others")]
    {
        case(&format!("{again} {with}"), 200, &|seeds| promises::suspects_again(anchors, false, seeds), &[]);
    }
    case(
        "the same with 10 others, after a repair",
        200,
        &|seeds| promises::suspects_again(10, true, seeds),
        &[],
    );
    let rounded = Session { s: 0.005, sigma: 0.002, ..healthy };
    let of_rounding = ["SLOW", "drains", "recall", "slow runs", "rounding"];
    case(
        "healthy, 10.42 s rounded to 1 s, s .5 %, sigma .2 %",
        200,
        &|seeds| promises::session(rounded, 1.0, 10.42, seeds),
        &of_rounding,
    );
    let noisy = Session { s: 0.001, sigma: 0.01, ..healthy };
    case(
        "healthy, 10.40 s rounded to 1 s, s .1 %, sigma 1 %",
        200,
        &|seeds| promises::session(noisy, 1.0, 10.4, seeds),
        &of_rounding,
    );
    let some = Session { slow_nodes: 0.03, slow_by: (0.08, 0.08), slow_runs: 0.01, ..rounded };
    case(
        "3 % of nodes 8 % slow, 1 % of runs slow, 100.3 s rounded to 1 s",
        200,
        &|seeds| promises::session(some, 1.0, 100.3, seeds),
        &of_rounding,
    );
    for (nodes, runs, fleets) in
        [(2000, 3, 200), (20, 3, 2000), (10, 3, 2000), (2000, 7, 200), (1, 7, 2000), (1, 3, 2000)]
    {
        let of = Session { nodes, runs, ..healthy };
        case(
            &format!("healthy {nodes} x {runs}, s .5 %, sigma 2 %"),
            fleets,
            &|seeds| promises::session(of, 0.0, 10.0, seeds),
            &["classes with"],
        );
    }
    let of = Session { nodes: 2000, runs: 3, slow_runs: 0.01, ..healthy };
    case(
        "2000 x 3, s .5 %, sigma 2 %, 1 % of runs slow",
        200,
        &|seeds| promises::session(of, 0.0, 10.0, seeds),
        &["slow runs"],
    );
    let of_nodes = ["recall", "least", "slower by", "order", "false SLOW", "drains", "UNUSUAL", "noise"];
    let of =
        Session { nodes: 200, runs: 5, s: 0.015, sigma: 0.02, slow_nodes: 0.01, slow_runs: 0.01, ..healthy };
    case(
        "200 x 5, s 1.5 %, sigma 2 %, 1 % of nodes slow",
        1000,
        &|seeds| promises::session(of, 0.0, 10.0, seeds),
        &of_nodes,
    );
    let noisy = Session { nodes: 2000, sigma: 0.1, ..of };
    case(
        "2000 x 5, s 1.5 %, sigma 10 %, 1 % of nodes slow",
        200,
        &|seeds| promises::session(noisy, 0.0, 10.0, seeds),
        &of_nodes,
    );
    for sigma in [0.1, 0.2, 0.4] {
        let of = Session { nodes: 19, runs: 5, s: 0.015, sigma, ..healthy };
        case(
            &format!("healthy 19 x 5, s 1.5 %, sigma {:.0} %", sigma * 100.0),
            1000,
            &|seeds| promises::session(of, 0.0, 10.0, seeds),
            &["drains", "false SLOW", "noise"],
        );
    }
    for effect in [0.0, 0.05] {
        case(
            &format!("rounds differ by {:.0} %, 5 % of 100 nodes slow", effect * 100.0),
            200,
            &|seeds| promises::rounds(effect, seeds),
            &["recall", "false SLOW", "slow runs per", "slow runs found", "warned"],
        );
    }
    for amplitude in [0.0, 0.01, 0.02, 0.08] {
        case(
            &format!("100 healthy nodes one after another, {:.0} % over the day", amplitude * 100.0),
            200,
            &|seeds| promises::day(amplitude, seeds),
            &[],
        );
    }
    for correlation in [0.0, 0.3, 0.6, 0.9] {
        case(
            &format!("100 x 7 healthy, correlation of runs {correlation}"),
            200,
            &|seeds| promises::dependent(correlation, seeds),
            &["false SLOW", "intervals", "warned"],
        );
    }
    case("20 of 100 nodes, 10 % slow, retire", 200, &|seeds| promises::composition(true, seeds), &[]);
    case("60 of 100 nodes become 3 % slower", 200, &|seeds| promises::composition(false, seeds), &[]);
    let of = Session { s: 0.015, sigma: 0.003, slow_nodes: 0.05, nodes: 500, ..healthy };
    case(
        "500 x 7, s 1.5 %, sigma .3 %, 5 % of nodes slow",
        200,
        &|seeds| promises::session(of, 0.0, 10.0, seeds),
        &of_nodes,
    );
    case(
        "90 nodes with 101 runs and 10 with 5, healthy",
        500,
        &promises::unequal,
        &["UNUSUAL", "false SLOW", "warned"],
    );
    for (kind, name) in [
        (SlowRuns::Single, "one by one"),
        (SlowRuns::Series, "three in succession"),
        (SlowRuns::BadSessions, "three bad sessions of 15 nodes"),
    ] {
        case(
            &format!("5 % of 200 nodes flaky; slow runs {name}"),
            200,
            &|seeds| promises::flaky(kind, seeds),
            &[],
        );
    }
    for slow in [0, 1, 40] {
        case(
            &format!("100 nodes of 10 s rounded to .01 s, {slow} of them 6 % slow"),
            1000,
            &|seeds| promises::bimodal(slow, seeds),
            &[],
        );
    }
    case("2 x 7, one node 6 % slow", 2000, &promises::two_nodes, &[]);
    all
}

fn why() {
    println!("\n## Why\n");
    println!(
        "The tables have the nodes that the simulation makes 3 to 12 % slower for a known cause, and whose"
    );
    println!(
        "verdict is not OK. Healthy nodes vary by 0.2 % in instructions, 0.8 % in cycles per instruction, 1.2 %"
    );
    println!(
        "in frequency and 0.3 % in utilisation. Spinning varies the instructions by a further 0.5 %, but takes no"
    );
    println!(
        "time. The reported cause is right if it is the term that the simulation makes slower, or \"mixed\" if"
    );
    println!("three terms have a third each.\n");
    for (title, nodes, slow, fleets) in [
        ("2000 nodes, 5 % of them slow", 2000, 0.05, FLEETS),
        ("20 nodes, a tenth of them slow", 20, 0.1, 2000),
        ("10 nodes, a tenth of them slow", 10, 0.1, 4000),
        ("5 nodes, a fifth of them slow", 5, 0.2, 4000),
    ] {
        let recipe = causes::Recipe { nodes, slow_node_share: slow };
        let tallies = causes::of_slow(&recipe, 0..fleets);
        println!("{title}; {fleets} fleets:\n");
        println!(
            "| what makes the nodes slow | nodes | right | wrong | \"mixed\" | none |\n|---|---|---|---|---|---|"
        );
        for ((name, _), tally) in causes::TRUTHS.iter().zip(&tallies) {
            let share = |count: usize| count as f64 / tally.all().max(1) as f64;
            println!(
                "| {name} | {} | {:.3} | {:.3} | {:.3} | {:.3} |",
                tally.all(),
                share(tally.right),
                share(tally.wrong),
                share(tally.mixed),
                share(tally.none)
            );
        }
        println!();
    }
    println!(
        "The next table is for healthy fleets, with mean numbers of nodes per fleet. A cause is wrong if its term"
    );
    println!("is less than half of the slowdown that the node itself has.\n");
    println!(
        "| nodes | fleets | nodes with a verdict other than OK | nodes with a cause | nodes with a wrong cause |"
    );
    println!("|---|---|---|---|---|");
    for (nodes, fleets) in [(2000, FLEETS), (20, 4000), (10, 4000), (5, 4000)] {
        let [said, given, wrong] = causes::of_healthy(nodes, 0..fleets);
        println!("| {nodes} | {fleets} | {said:.3} | {given:.3} | {wrong:.4} |");
    }
}

fn heading() {
    println!("| method | precision | recall | recall of > 5 % | false per fleet |\n|---|---|---|---|---|");
}

fn row(name: &str, score: &Score) {
    let (precision, recall, much) = (score.precision(), score.recall(), score.recall_of_much());
    println!("| {name} | {precision:.3} | {recall:.3} | {much:.3} | {:.2} |", score.wrong_per_fleet());
}
