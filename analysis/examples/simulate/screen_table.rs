//! The table of simulated screens.

use crate::screens::{self, ScreenRecipe, ScreenScore};
use pmmpi_analysis::verdicts::kernels_of_node::ScreenVerdict;

const FIRST_SEED: u64 = 4000;

/// `part`: a fraction of the fleets is 1 / part.
pub fn print(part: u64) {
    println!("\n## Screens\n");
    for line in [
        "Each fleet has 2000 nodes and one screen; in rows with \"after five screens\", each fleet has six",
        "screens. In each screen, all nodes run each kernel in three rounds. In the last (or only) screen,",
        "the suspects of a kernel then run this kernel in four more rounds, together with five other nodes.",
        "The simulation makes run records, and the code of `pmmpi screen` judges them. For each kernel,",
        "independently of the other kernels, ln T has a normal distribution with a standard deviation of",
        "1.5 % between nodes and of 0.3 % between runs. 1 % of the runs are 10 to 30 % slower. 1 % of the",
        "nodes are slow in one kernel (none in rows with \"no slow node\"). SLOW nodes count as found; in rows",
        "with \"after five screens\", SLOWED nodes count, too. In the rows with \"after five screens\", a node",
        "varies by 0.3 % from screen to screen, and a slow node is slow only in the last screen. \"Right",
        "kernel\": of the found slow nodes, the share for which the report names the slow kernel. If there is",
        "no slow node, each finding is false, and the precision is 0. A dash means that there is nothing to",
        "count. The last column counts the runs of the last (or only) screen, and no earlier runs.\n",
    ] {
        println!("{line}");
    }
    println!(
        "| screens | fleets | precision | recall | right kernel | false per fleet | fleets with a false node | runs per \
         node and kernel |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let slow = |verdict| verdict == ScreenVerdict::Slow;
    let slowed = |verdict| matches!(verdict, ScreenVerdict::Slow | ScreenVerdict::Slowed);
    let one = ScreenRecipe::default();
    let four = ScreenRecipe { kernels: 4, ..one };
    let healthy = ScreenRecipe { slow_share: 0.0, ..four };
    let rounds = ScreenRecipe { round_sd: 0.02, ..one };
    let healthy_rounds = ScreenRecipe { round_sd: 0.02, ..healthy };
    let past = ScreenRecipe { sessions: 6, session_sd: 0.003, slow_by: (0.02, 0.12), ..one };
    let past_four = ScreenRecipe { kernels: 4, ..past };
    let healthy_past = ScreenRecipe { slow_share: 0.0, ..past_four };
    for (name, recipe, fleets) in [
        ("1 kernel, 1 % of the nodes 3 to 12 % slower", one, 200),
        ("4 kernels, 1 % of the nodes 3 to 12 % slower", four, 60),
        ("4 kernels, no slow node", healthy, 60),
        ("1 kernel, rounds differ by 2 %, 1 % of the nodes 3 to 12 % slower", rounds, 60),
        ("4 kernels, rounds differ by 2 %, no slow node", healthy_rounds, 60),
    ] {
        row(name, &screens::of(recipe, seeds(fleets, part), slow));
    }
    for (name, recipe, fleets) in [
        ("1 kernel after five screens, 1 % of the nodes 2 to 12 % slower", past, 40),
        ("4 kernels after five screens, 1 % of the nodes 2 to 12 % slower", past_four, 20),
        ("4 kernels after five screens, no slow node", healthy_past, 20),
    ] {
        row(name, &screens::of(recipe, seeds(fleets, part), slowed));
    }
}

fn seeds(fleets: u64, part: u64) -> std::ops::Range<u64> {
    FIRST_SEED..FIRST_SEED + (fleets / part).max(1)
}

fn row(name: &str, score: &ScreenScore) {
    let share = |part: usize, all: usize| match all {
        0 => "-".to_owned(),
        all => format!("{:.3}", part as f64 / all as f64),
    };
    let fleets = score.fleets as f64;
    println!(
        "| {name} | {} | {} | {} | {} | {:.2} | {} | {:.2} |",
        score.fleets,
        share(score.found, score.found + score.wrong),
        share(score.found, score.slow),
        share(score.found - score.wrong_kernel, score.found),
        score.wrong as f64 / fleets,
        share(score.wrong_fleets, score.fleets),
        score.runs / fleets
    );
}
