//! Shows how often the statistics are right on simulated fleets with known slow nodes. Prints Markdown.
//!
//! `make simulate` writes docs/simulation.md with it. analysis/tests/simulation.rs checks the rows of the reference.

mod cases;
mod causes;
mod fleet;
mod history_table;
mod measured_runs;
mod methods;
mod over_time;
mod own_history;
mod part_of_class;
mod promise_table;
mod promises;
mod score;
mod screen_table;
mod screens;
mod slowness;
mod slowness_table;
mod two_sets;

use fleet::Recipe;
use pmmpi_analysis::stats::verdict_rule::Verdict;
use score::Score;

/// The number of fleets in the reference, and a number large enough to show the uncertainty of these 30.
const FLEETS: u64 = 30;
const MANY: u64 = 600;

fn main() {
    // For a first look: one table; or only the cases below, with a fraction of the fleets.
    if std::env::args().nth(1).as_deref() == Some("history") {
        return history_table::print();
    }
    if std::env::args().nth(1).as_deref() == Some("screen") {
        let part = std::env::args().nth(2).and_then(|part| part.parse().ok());
        return screen_table::print(part.unwrap_or(1));
    }
    if std::env::args().nth(1).as_deref() == Some("compare") {
        return two_sets::print();
    }
    if std::env::args().nth(1).as_deref() == Some("slowness") {
        return slowness_table::print();
    }
    if let Some(part) = std::env::args().nth(1).and_then(|part| part.parse().ok()) {
        return promise_table::print(part);
    }
    println!("# What the statistics find, and how often they are wrong\n");
    println!(
        "`make simulate` writes this page. The simulation generates fleets (sets of simulated nodes) from"
    );
    println!(
        "fixed seeds, so the numbers are the same each time. pmmpi's own code judges the fleets. T is the"
    );
    println!(
        "elapsed time of a run. Precision: of all findings, the share that is right. Recall: of all slow"
    );
    println!(
        "nodes (or slow runs), the share that is found. In phrases such as \"runs vary by 2 %\" or \"rounds"
    );
    println!(
        "differ by 2 %\", the percentage is the standard deviation of the logarithm. [method.md](method.md)"
    );
    println!("describes the method of pmmpi.\n");
    reference();
    robustness();
    small();
    bimodal();
    drift();
    history_table::print();
    screen_table::print(1);
    two_sets::print();
    slowness_table::print();
    promise_table::print(1);
    why();
}

fn reference() {
    println!("## Reference fleets\n");
    println!(
        "Each fleet has 2000 nodes, with 7 runs per node. ln T has a normal distribution, with a standard"
    );
    println!(
        "deviation of 1.5 % between nodes and of 0.3 % between the runs of a node. The simulation makes 1 %"
    );
    println!(
        "of the runs 10 to 30 % slower, and 1 % of the nodes 3 to 12 % slower (both uniformly distributed)."
    );
    println!(
        "Precision and recall count only these runs and nodes as slow. \"Recall, nodes > 5 % slower\" counts"
    );
    println!(
        "only those slow nodes that the simulation makes more than 5 % slower. \"False per fleet\" is the mean"
    );
    println!(
        "number of false findings. In the row \"SLOW\", the nodes to which pmmpi gives the verdict SLOW count"
    );
    println!(
        "as found. The rows \"mean, z > 3\", \"Tukey 1.5 on medians\", \"MAD z > 3.5\" and \"fixed > 5 %\" show"
    );
    println!(
        "simple rules for comparison (`analysis/examples/simulate/methods.rs`). The last row counts runs, not"
    );
    println!(
        "nodes. A run is found if two conditions hold: pmmpi's test finds the run slow, and the run is more"
    );
    println!(
        "than 2 % slower than the median of its node. The test uses Benjamini-Hochberg (BH) at 1 % over all"
    );
    println!("runs of the class.\n");
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
        "{FLEETS} fleets per row. If a row names a verdict, the nodes with this verdict count as found. In rows"
    );
    println!(
        "with \"or more\", nodes with a stronger verdict count, too. From weak to strong, the verdicts are"
    );
    println!(
        "SUSPECT, SLOW-TAIL, SLOW. With 3 runs, no node is SLOW-TAIL or SLOW. If a method finds nothing, the"
    );
    println!(
        "table shows a precision of 1.000. In rows with \"two kinds of nodes\", a third of the nodes are of a"
    );
    println!(
        "slower kind: healthy nodes of this kind are 15 % slower than healthy nodes of the other kind. A node"
    );
    println!(
        "counts as slow only if the simulation makes it slower than the healthy nodes of its own kind.\n"
    );
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
            row(&format!("two kinds of nodes in one class: {name}"), &score);
        }
    }
    row("two kinds of nodes in two declared classes: SLOW", &cases::of_declared_kinds(&two, 0..FLEETS));
    for (runs, least) in [(3, Verdict::Suspect), (3, Verdict::Slow), (5, Verdict::Slow)] {
        let score = cases::of_verdict(&Recipe { runs, ..Recipe::default() }, 0..FLEETS, least);
        row(
            &format!("{runs} runs: {}{}", least.name(), if least < Verdict::Slow { " or more" } else { "" }),
            &score,
        );
    }
    let (score, runs) = cases::of_adaptive_screening(&Recipe::default(), 0..FLEETS);
    row(&format!("3 runs, then 4 more of each SUSPECT node ({runs:.2} runs per node): SLOW"), &score);
    for (name, shape) in cases::shapes().into_iter().skip(1) {
        let recipe = Recipe { shape, ..Recipe::default() };
        for least in [Verdict::Slow, Verdict::SlowTail] {
            let score = cases::of_verdict(&recipe, 0..FLEETS, least);
            let more = if least < Verdict::Slow { " or more" } else { "" };
            row(&format!("nodes {name}: {}{more}", least.name()), &score);
        }
    }
    println!(
        "\nIn fleets with \"nodes t5\", ln T of the nodes has a t distribution with 5 degrees of freedom. In"
    );
    println!(
        "fleets with \"nodes skewed\", ln T of the nodes has an exponential tail on the slow side. pmmpi"
    );
    println!(
        "assumes a normal distribution, so more findings are false in these fleets than in the reference"
    );
    println!(
        "fleets. Nearly all of these false findings are healthy nodes that are slower than their class by"
    );
    println!("more than 3 %.\n");
}

fn small() {
    println!("## Small healthy classes\n");
    println!(
        "Each row comes from 2000 classes. The last two columns show in which share of these classes pmmpi"
    );
    println!(
        "finds a SLOW-TAIL or SLOW node, and in which share pmmpi finds a slow run. All nodes and runs are"
    );
    println!(
        "healthy here, so all of these findings are false. The spread of nodes is the standard deviation of"
    );
    println!(
        "ln T between nodes. The spread of runs is the standard deviation of ln T between the runs of a node."
    );
    println!("In a class of fewer than 20 nodes, the strongest possible verdict is SLOW-TAIL.\n");
    println!(
        "| nodes | runs | spread of nodes | spread of runs | share with a SLOW-TAIL or SLOW node | share with a slow run |"
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
        "The table shows the share of classes for which the report warns (`bimodal-class`). In the columns"
    );
    println!(
        "\"normal\", \"t5\" and \"skewed\", a class has one kind of nodes, so the warning is false. In the other"
    );
    println!(
        "columns, a class has two kinds of nodes. The slower kind makes up half or a tenth of the nodes, and"
    );
    println!(
        "is slower by 3, 4 or 6 spreads. A spread is the standard deviation of ln T between the nodes of one"
    );
    println!(
        "kind. All classes also have slow nodes and slow runs, as in the reference fleets. Each share comes"
    );
    println!("from 1000 classes; in the row with 2000 nodes, each share comes from 200 classes.\n");
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

fn drift() {
    println!("## Over time\n");
    let score = cases::flaky(0..FLEETS);
    println!("Flaky nodes: {FLEETS} fleets of 2000 nodes, 20 runs per node. A twentieth of the nodes are");
    println!(
        "flaky: 30 % of their runs are slow. Of the runs of the other nodes, 1 % are slow. The result for"
    );
    println!(
        "flaky nodes: precision {:.3}, recall {:.3}, {:.2} false findings per fleet.\n",
        score.precision(),
        score.recall(),
        score.wrong_per_fleet()
    );
    println!(
        "Drift: 10,000 nodes, 52 sessions. The median of a node varies by 0.4 % from session to session."
    );
    println!(
        "From session 31 on, each node is slower than before, relative to its class; the first column shows"
    );
    println!(
        "by how much. An alarm means that pmmpi finds a drift of the node. The next two columns are shares of"
    );
    println!(
        "all nodes. \"Before\" means in sessions 1 to 30, \"after\" in session 31 or later. The last column is"
    );
    println!("the median number of sessions until the first alarm; session 31 is number 1.\n");
    println!(
        "| slower by | nodes with an alarm before | nodes with the first alarm after | sessions until the alarm |"
    );
    println!("|---|---|---|---|");
    for (seed, step) in [0.0, 0.01, 0.015, 0.02, 0.03, 0.05].into_iter().enumerate() {
        let (early, late, sessions) = cases::drift(step, 10_000, seed as u64);
        let sessions = if late > 0.0 { format!("{sessions:.0}") } else { "-".to_owned() };
        println!("| {:.1} % | {early:.4} | {late:.4} | {sessions} |", step * 100.0);
    }
}

fn why() {
    println!("\n## Why\n");
    println!(
        "The simulation makes some nodes 3 to 12 % slower: with a lower frequency, with stolen time (a lower"
    );
    println!(
        "utilisation), with more instructions, or with more cycles per instruction (CPI). In addition, all"
    );
    println!(
        "nodes differ by chance: by 0.2 % in instructions, 0.8 % in CPI, 1.2 % in frequency and 0.3 % in"
    );
    println!(
        "utilisation. To imitate ranks that spin while they wait, the number of instructions varies by a"
    );
    println!(
        "further 0.5 % from run to run. This has no effect on the time. The first four tables count those"
    );
    println!(
        "slow nodes that pmmpi judges UNUSUAL, SUSPECT, SLOW-TAIL or SLOW. The reported cause is right if it"
    );
    println!(
        "is the quantity that the simulation makes worse. The column \"mixed\" shows the share of nodes for"
    );
    println!(
        "which the report names the cause \"mixed\", although only one quantity is worse. The column \"none\""
    );
    println!(
        "shows the share of nodes for which the report names no cause. In rows with three causes, each of"
    );
    println!(
        "three quantities makes up a third of the slowdown; in these rows, the cause \"mixed\" counts as right.\n"
    );
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
        "The next table shows fleets without slow nodes: their nodes differ only by chance. The last three"
    );
    println!(
        "columns are mean numbers of nodes per fleet. The cause \"mixed\" does not count as a cause here. A"
    );
    println!(
        "cause is wrong if it makes up less than half of the slowdown that the simulation gave the node by"
    );
    println!("chance.\n");
    println!(
        "| nodes | fleets | nodes judged UNUSUAL, SUSPECT, SLOW-TAIL or SLOW | nodes with a cause | nodes with a wrong cause |"
    );
    println!("|---|---|---|---|---|");
    for (nodes, fleets) in [(2000, FLEETS), (20, 4000), (10, 4000), (5, 4000)] {
        let [said, given, wrong] = causes::of_healthy(nodes, 0..fleets);
        println!("| {nodes} | {fleets} | {said:.3} | {given:.3} | {wrong:.4} |");
    }
}

fn heading() {
    println!(
        "| method | precision | recall | recall, nodes > 5 % slower | false per fleet |\n|---|---|---|---|---|"
    );
}

fn row(name: &str, score: &Score) {
    let (precision, recall, much) = (score.precision(), score.recall(), score.recall_of_much());
    println!("| {name} | {precision:.3} | {recall:.3} | {much:.3} | {:.2} |", score.wrong_per_fleet());
}
