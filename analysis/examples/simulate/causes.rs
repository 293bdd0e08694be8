//! Fleets whose slow nodes have a known cause, and the causes that the tool finds.

use crate::fleet::SLOW_NODE;
use crate::methods;
use pmmpi_analysis::stats::cause::{self, explain};
use pmmpi_analysis::stats::class_runs::ClassRuns;
use pmmpi_analysis::stats::node_counts::Counted;
use pmmpi_analysis::stats::node_median;
use pmmpi_analysis::stats::random::Random;
use pmmpi_analysis::stats::resolution::Units;
use pmmpi_analysis::stats::verdict_rule::{self, Verdict};
use std::ops::Range;

/// The cause of a slow node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    Frequency,
    Stolen,
    Instructions,
    Cpi,
    /// Three causes, with a third of the slowdown each.
    Mixed,
}

pub const TRUTHS: [(&str, Truth); 5] = [
    ("frequency", Truth::Frequency),
    ("stolen time", Truth::Stolen),
    ("more instructions", Truth::Instructions),
    ("worse CPI", Truth::Cpi),
    ("three causes, a third each", Truth::Mixed),
];

/// A fleet with 7 runs per node and 48 hardware threads per node.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    pub nodes: usize,
    /// Share of slow nodes; their slowdown is in the range [`SLOW_NODE`].
    pub slow_node_share: f64,
}

/// How often the found cause is right, over slow nodes with a verdict worse than OK: SUSPECT counts, too.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    pub right: usize,
    pub wrong: usize,
    /// The tool finds a mixed cause, but there is a single one.
    pub mixed: usize,
    /// The tool gives no cause.
    pub none: usize,
}

impl Tally {
    pub fn all(&self) -> usize {
        self.right + self.wrong + self.mixed + self.none
    }

    fn add(&mut self, name: Option<&str>, truth: Truth) {
        let term = name.map(|name| name.split('/').next().unwrap_or(name));
        let right = match truth {
            Truth::Frequency => "frequency",
            Truth::Stolen => "utilisation",
            Truth::Instructions => "instructions",
            Truth::Cpi => "cpi",
            Truth::Mixed => "mixed",
        };
        match term {
            None => self.none += 1,
            Some(term) if term == right => self.right += 1,
            Some("mixed") => self.mixed += 1,
            Some(_) => self.wrong += 1,
        }
    }
}

/// The results for slow nodes, by true cause.
pub fn of_slow(recipe: &Recipe, seeds: Range<u64>) -> [Tally; TRUTHS.len()] {
    let mut tallies = [Tally::default(); TRUTHS.len()];
    for said in seeds.flat_map(|seed| fleet(recipe, seed)) {
        if let Some(at) = said.truth {
            tallies[at].add(said.name.as_deref(), TRUTHS[at].1);
        }
    }
    tallies
}

/// Per fleet of healthy nodes: nodes with a verdict worse than OK, nodes with a cause, and nodes whose cause is less
/// than half of their slowdown.
pub fn of_healthy(nodes: usize, seeds: Range<u64>) -> [f64; 3] {
    let (fleets, recipe) = ((seeds.end - seeds.start) as f64, Recipe { nodes, slow_node_share: 0.0 });
    let mut counts = [0u32; 3];
    for said in seeds.flat_map(|seed| fleet(&recipe, seed)) {
        let term = said.name.as_deref().and_then(|name| name.split('/').next());
        let at = term.and_then(|term| TERMS.iter().position(|known| *known == term));
        let slower: f64 = said.factors.iter().sum();
        counts[0] += 1;
        counts[1] += u32::from(at.is_some());
        counts[2] += u32::from(at.is_some_and(|at| said.factors[at] < 0.5 * slower));
    }
    counts.map(|count| f64::from(count) / fleets)
}

/// What the tool finds for a node.
struct Said {
    truth: Option<usize>,
    name: Option<String>,
    /// How much slower the node itself is, by [`TERMS`].
    factors: [f64; 4],
}

const TERMS: [&str; 4] = ["instructions", "cpi", "frequency", "utilisation"];

const RUNS: usize = 7;

/// Standard deviations of ln I, ln CPI, -ln f, -ln U: between nodes (1.5 % together), and between the runs of a node
/// (0.3 %).
const NODES: [f64; 4] = [0.002, 0.008, 0.012, 0.003];
const OF_RUNS: [f64; 4] = [0.0005, 0.002, 0.0015, 0.0015];
/// Spinning: more instructions by this fraction, and fewer cycles per instruction by the same fraction. It takes no
/// time.
const SPIN: f64 = 0.005;

/// The findings for each node with a verdict worse than OK.
fn fleet(recipe: &Recipe, seed: u64) -> Vec<Said> {
    let mut random = Random::new(seed);
    let (mut truths, mut times, mut counted) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..recipe.nodes {
        let is_slow = random.uniform() < recipe.slow_node_share;
        let truth = is_slow.then(|| (random.uniform() * TRUTHS.len() as f64) as usize);
        let by = SLOW_NODE.0 + (SLOW_NODE.1 - SLOW_NODE.0) * random.uniform();
        let shares = truth.map_or([0.0; 4], |at| shares(TRUTHS[at].1, &mut random));
        let node = NODES.map(|sd| sd * random.normal());
        for _ in 0..RUNS {
            let run = OF_RUNS.map(|sd| sd * random.normal());
            let factors = [0, 1, 2, 3].map(|at| node[at] + run[at] + shares[at] * by.ln_1p());
            times.push(factors.iter().sum::<f64>());
            counted.push(counters(factors, SPIN * random.normal()));
        }
        truths.push((truth, node));
    }
    let ends: Vec<usize> = (1..=recipe.nodes).map(|node| node * RUNS).collect();
    let Some(class) = ClassRuns::new(&times, &ends) else { return Vec::new() };
    let medians = node_median::of_nodes(&class);
    let judged = verdict_rule::judge(
        &methods::measured(&class, &medians),
        &Units::default(),
        &verdict_rule::VerdictSettings::default(),
    );
    let middle: Vec<usize> =
        medians.iter().enumerate().map(|(at, node)| at * RUNS + node.median_run).collect();
    let of_class: Vec<Option<Counted>> = middle.iter().map(|run| Some(counted[*run].clone())).collect();
    let ln_times: Vec<f64> = middle.iter().map(|run| times[*run]).collect();
    let explained = explain(&of_class, &ln_times, &cause::CauseSettings::default());
    let said = judged.iter().zip(truths).zip(explained);
    said.filter(|((node, _), _)| node.verdict > Some(Verdict::Ok))
        .map(|((_, (truth, factors)), said)| Said {
            truth,
            name: said.cause.ok().map(|cause| cause.kind.name().to_owned()),
            factors,
        })
        .collect()
}

fn shares(truth: Truth, random: &mut Random) -> [f64; 4] {
    match truth {
        Truth::Instructions => [1.0, 0.0, 0.0, 0.0],
        Truth::Cpi => [0.0, 1.0, 0.0, 0.0],
        Truth::Frequency => [0.0, 0.0, 1.0, 0.0],
        Truth::Stolen => [0.0, 0.0, 0.0, 1.0],
        Truth::Mixed => {
            let mut shares = [1.0 / 3.0; 4];
            shares[(random.uniform() * 4.0) as usize] = 0.0;
            shares
        }
    }
}

/// The counts of 48 hardware threads that work for one second, 0.98 of the time, at 3 GHz with a TSC of 2.1 GHz.
fn counters([instructions, cpi, frequency, utilisation]: [f64; 4], spin: f64) -> Counted {
    let seconds = (instructions + cpi + frequency + utilisation).exp();
    let i = 2e11 * (instructions + spin).exp();
    let c = i * 0.7056 * (cpi - spin).exp();
    let r = c * 0.7 * frequency.exp();
    let on_cpu_ns = 48e9 * seconds * 0.995;
    Counted::new([
        ("cpus", 48.0),
        ("tsc", 2.1e9 * seconds),
        ("instructions", i),
        ("cycles", c),
        ("ref_cycles", r),
        ("task_clock_ns", on_cpu_ns),
        ("instructions_kernel", 0.002 * i),
        ("cycles_kernel", 0.004 * c),
    ])
}
