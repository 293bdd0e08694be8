//! Simulated screens: run records of whole fleets, judged by the code of `pmmpi screen`.

use crate::fleet::{SLOW_NODE, SLOW_RUN};
use pmmpi::bounds::Stamps;
use pmmpi::node::NodeKey;
use pmmpi::record::{
    End, KernelMeasure, KernelResult, Mode, NodeRecord, RankRecord, Run, RunHeader, Screened, Series,
};
use pmmpi::{NodeId, RankId};
use pmmpi_analysis::input::importers::ImportOptions;
use pmmpi_analysis::report::screen::ScreenReport;
use pmmpi_analysis::report::{self, PlaceSettings, Report};
use pmmpi_analysis::stats::random::Random;
use pmmpi_analysis::verdicts::JudgeSettings;
use pmmpi_analysis::verdicts::kernels_of_node::ScreenVerdict;
use pmmpi_events::validation::Trust;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Rounds of all nodes, and further ones of suspects.
const ROUNDS: [u32; 2] = [3, 4];
/// t1 of all nodes.
const BEGIN_NS: i64 = 1_000_000;
/// Nodes that run beside the suspects.
const BESIDE: usize = 5;

/// A simulated fleet and its screens.
#[derive(Clone, Copy)]
pub struct ScreenRecipe {
    pub nodes: usize,
    pub kernels: usize,
    /// Screens; the last one is judged.
    pub sessions: usize,
    /// Standard deviation between nodes, for each kernel on its own.
    pub node_sd: f64,
    /// Between the sessions of a node.
    pub session_sd: f64,
    /// Between runs.
    pub run_sd: f64,
    /// Of what all runs of a kernel in a round have in common.
    pub round_sd: f64,
    /// Share of nodes that are slow in one kernel, from the last session on.
    pub slow_share: f64,
    /// Their slowdown as a fraction.
    pub slow_by: (f64, f64),
}

impl Default for ScreenRecipe {
    fn default() -> Self {
        Self {
            nodes: 2000,
            kernels: 1,
            sessions: 1,
            node_sd: 0.015,
            session_sd: 0.0,
            run_sd: 0.003,
            round_sd: 0.0,
            slow_share: 0.01,
            slow_by: SLOW_NODE,
        }
    }
}

/// What the screens of several fleets found.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScreenScore {
    pub fleets: usize,
    /// Slow nodes, and those that were found.
    pub slow: usize,
    pub found: usize,
    /// Found nodes whose kernel is not the slow one.
    pub wrong_kernel: usize,
    /// Healthy nodes that were found.
    pub wrong: usize,
    /// Fleets with a healthy node that was found.
    pub wrong_fleets: usize,
    /// Runs per node and kernel, added up over the fleets.
    pub runs: f64,
}

/// A node, and the time of a kernel on it in all runs.
struct Simulated {
    /// ln seconds by kernel and node.
    level: Vec<Vec<f64>>,
    /// The slow kernel of each slow node, and by how much (ln).
    slow: BTreeMap<usize, (usize, f64)>,
    random: Random,
    recipe: ScreenRecipe,
}

impl Simulated {
    fn new(recipe: ScreenRecipe, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut level = || (0..recipe.nodes).map(|_| recipe.node_sd * random.normal()).collect::<Vec<f64>>();
        let level = (0..recipe.kernels).map(|_| level()).collect();
        let mut slow = BTreeMap::new();
        for node in 0..recipe.nodes {
            if random.uniform() < recipe.slow_share {
                let kernel = (random.uniform() * recipe.kernels as f64) as usize;
                let (low, high) = recipe.slow_by;
                slow.insert(node, (kernel, (low + (high - low) * random.uniform()).ln_1p()));
            }
        }
        Self { level, slow, random, recipe }
    }

    /// One kernel in one round on these nodes, some of them suspects. `shift` is the effect of the session on each node.
    fn run(
        &mut self,
        at: [usize; 2],
        round: u32,
        nodes: &[usize],
        suspects: &BTreeSet<usize>,
        shift: &[f64],
    ) -> Run {
        let [session, kernel] = at;
        let is_last = session + 1 == self.recipe.sessions;
        let id = format!("{session:03}-{round:02}-{kernel}");
        let started = (session as i64 * 100_000 + i64::from(round) * 100 + kernel as i64) * 1_000_000_000;
        let header = RunHeader {
            series: Some(Series { id: format!("s{session:03}"), round }),
            labels: vec![("session".to_owned(), format!("s{session:03}"))],
            ..RunHeader::new(id, vec!["pmmpi".to_owned(), format!("kernel-{kernel}")], Mode::Plain, started)
        };
        let mut run = Run::empty(header, nodes.len() as u32);
        let unit = KernelMeasure { name: "rate".to_owned(), unit: "GB/s".to_owned(), larger_is_better: true };
        let name = Some(format!("kernel-{kernel}"));
        let mut screened = Screened { kernel: name, measures: vec![unit], ..Screened::default() };
        screened.suspects =
            (0..).zip(nodes).filter(|(_, node)| suspects.contains(node)).map(|of| RankId(of.0)).collect();
        let of_round = self.recipe.round_sd * self.random.normal();
        let mut ends_ns = Vec::with_capacity(nodes.len());
        for (rank, node) in (0..).zip(nodes) {
            let hostname = format!("n{node:05}");
            run.nodes.push(NodeRecord::new(NodeKey { hostname, ..NodeKey::own().clone() }));
            let slow =
                self.slow.get(node).filter(|(of, _)| is_last && *of == kernel).map_or(0.0, |(_, by)| *by);
            let is_slow_run = self.random.uniform() < 0.01;
            let (low, high) = SLOW_RUN;
            let hit = if is_slow_run { (low + (high - low) * self.random.uniform()).ln_1p() } else { 0.0 };
            let noise = self.recipe.run_sd * self.random.normal() + hit;
            let seconds = (self.level[kernel][*node] + shift[*node] + slow + noise + of_round).exp();
            ends_ns.push(BEGIN_NS + (seconds * 1e9) as i64);
            let rank = RankId(rank);
            let values = vec![1.0 / seconds];
            screened.results.push(KernelResult { rank, values, work: 1.0, ..KernelResult::default() });
        }
        run.screened = Some(screened);
        // The end barrier lets all nodes go after the last one has come.
        let last_ns = ends_ns.iter().max().copied().unwrap_or_default();
        for (rank, t2_ns) in (0..).zip(ends_ns) {
            let stamps = Stamps::new(0, BEGIN_NS, t2_ns, last_ns + 1).expect("stamps in range");
            let end = RankRecord::unmeasured(End::Exited(0));
            run.ranks.push(RankRecord { rank: RankId(rank), node: NodeId(rank), stamps, ..end });
        }
        run
    }
}

/// The report of the screens.
pub fn judged(runs: &[Run]) -> Report {
    let trust = Trust::default();
    let input = report::of_runs(runs, &ImportOptions::default(), &trust);
    Report::new(input, &trust, &JudgeSettings::default(), &PlaceSettings::default())
}

/// All runs of the fleet's screens. Suspects run more rounds, as in `pmmpi screen`. Also the runs per node and kernel of the
/// last screen.
fn screens(fleet: &mut Simulated) -> (Vec<Run>, f64) {
    let recipe = fleet.recipe;
    let all: Vec<usize> = (0..recipe.nodes).collect();
    let (mut runs, mut of_last) = (Vec::new(), 0);
    for session in 0..recipe.sessions {
        let shift: Vec<Vec<f64>> = (0..recipe.kernels)
            .map(|_| all.iter().map(|_| recipe.session_sd * fleet.random.normal()).collect())
            .collect();
        for round in 0..ROUNDS[0] {
            for (kernel, shift) in shift.iter().enumerate() {
                runs.push(fleet.run([session, kernel], round, &all, &BTreeSet::new(), shift));
            }
        }
        // Of earlier screens, only the rounds of all nodes matter here.
        if session + 1 < recipe.sessions {
            continue;
        }
        of_last = recipe.nodes * recipe.kernels * ROUNDS[0] as usize;
        let report = judged(&runs);
        let suspects = report.screen.as_ref().map(ScreenReport::suspects).unwrap_or_default();
        let mut by_kernel: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (kernel, node) in suspects {
            let number = |name: &str, skip: usize| name[skip..].parse::<usize>().expect("a number");
            by_kernel.entry(number(kernel, 7)).or_default().insert(number(node, 1));
        }
        for (kernel, mut nodes) in by_kernel {
            let suspects = nodes.clone();
            let mut beside = 0;
            while beside < BESIDE {
                let node = (fleet.random.uniform() * recipe.nodes as f64) as usize;
                beside += usize::from(nodes.insert(node));
            }
            let nodes: Vec<usize> = nodes.into_iter().collect();
            of_last += nodes.len() * ROUNDS[1] as usize;
            for round in ROUNDS[0]..ROUNDS[0] + ROUNDS[1] {
                runs.push(fleet.run([session, kernel], round, &nodes, &suspects, &shift[kernel]));
            }
        }
    }
    (runs, of_last as f64 / (recipe.nodes * recipe.kernels) as f64)
}

/// Screens fleets. `is_found` decides from the verdict on a node.
pub fn of(recipe: ScreenRecipe, seeds: Range<u64>, is_found: impl Fn(ScreenVerdict) -> bool) -> ScreenScore {
    let mut score = ScreenScore::default();
    for seed in seeds {
        let mut fleet = Simulated::new(recipe, seed);
        let (runs, per_node) = screens(&mut fleet);
        let report = judged(&runs);
        let screen = report.screen.expect("a screen");
        let mut wrong = 0;
        for node in &screen.screened {
            let number: usize = node.node[1..].parse().expect("a number");
            let slow = fleet.slow.get(&number);
            let is_found = node.verdict.is_some_and(&is_found);
            score.slow += usize::from(slow.is_some());
            score.found += usize::from(slow.is_some() && is_found);
            let of_kernel = slow.map(|(kernel, _)| format!("kernel-{kernel}"));
            score.wrong_kernel += usize::from(slow.is_some() && is_found && of_kernel != node.kernel);
            wrong += usize::from(slow.is_none() && is_found);
        }
        score.fleets += 1;
        score.wrong += wrong;
        score.wrong_fleets += usize::from(wrong > 0);
        score.runs += per_node;
    }
    score
}
