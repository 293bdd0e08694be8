//! Screens as `pmmpi screen` stores them, on nodes n00, n01, ... that take about a second for a kernel.

use super::common::report;
use super::runs::node;
use pmmpi::bounds::Stamps;
use pmmpi::record::{
    End, KernelMeasure, KernelResult, Mode, RankRecord, Run, RunHeader, Screened, Series, run_file,
};
use pmmpi::{NodeId, RankId};
use pmmpi_analysis::stats::random::Random;
use std::ops::Range;
use std::path::Path;
use std::process::Output;

const BEGIN_NS: i64 = 1_000_000;
const DAY_NS: i64 = 86_400_000_000_000;
/// Standard deviation of a run, and of what all nodes of a screen have in common (ln T).
const NOISE: [f64; 2] = [0.001, 0.001];

/// What is measured.
#[derive(Clone)]
pub struct Screen {
    /// Screens of different days are different series, and different sessions without a label of the user's.
    pub day: i64,
    /// The user's label `session`.
    pub session: Option<&'static str>,
    pub kernels: Vec<&'static str>,
    pub nodes: Range<u32>,
    pub rounds: Range<u32>,
}

/// A kernel in a round on a node.
#[derive(Clone, Copy)]
pub struct At<'a> {
    pub day: i64,
    pub node: u32,
    pub kernel: &'a str,
    pub round: u32,
}

/// The outcome of a kernel.
pub enum Outcome {
    /// It takes this multiple of its usual time.
    Times(f64),
    /// It fails.
    Fails,
    /// Its result is wrong.
    IsWrong,
}

impl Screen {
    /// Three rounds of the kernel triad on all nodes.
    pub fn of(day: i64, nodes: u32) -> Self {
        Self { day, session: None, kernels: vec!["triad"], nodes: 0..nodes, rounds: 0..3 }
    }

    /// Writes one run file per round and kernel, and gives their names.
    pub fn write(&self, folder: &Path, outcome: impl Fn(At<'_>) -> Outcome) -> Vec<String> {
        self.write_changed(folder, outcome, |_| {})
    }

    /// The same; `change` changes each run before it is written.
    pub fn write_changed(
        &self,
        folder: &Path,
        outcome: impl Fn(At<'_>) -> Outcome,
        change: impl Fn(&mut Run),
    ) -> Vec<String> {
        std::fs::create_dir_all(folder).unwrap();
        let mut random = Random::new(self.day as u64 + 1);
        let in_common = NOISE[1] * random.normal();
        let mut files = Vec::new();
        for round in self.rounds.clone() {
            for (place, kernel) in self.kernels.iter().enumerate() {
                let results: Vec<Outcome> = self
                    .nodes
                    .clone()
                    .map(|node| match outcome(At { day: self.day, node, kernel, round }) {
                        Outcome::Times(times) => {
                            Outcome::Times(times * (in_common + NOISE[0] * random.normal()).exp())
                        }
                        failed => failed,
                    })
                    .collect();
                let mut run = self.run(round, place, &results);
                change(&mut run);
                files.push(run_file::write(folder, &run).unwrap().display().to_string());
            }
        }
        files
    }

    fn run(&self, round: u32, place: usize, outcomes: &[Outcome]) -> Run {
        let kernel = self.kernels[place];
        let seconds = i64::from(round) * 60 + 5 * place as i64;
        let header = RunHeader {
            series: Some(Series { id: format!("series{}", self.day), round }),
            labels: vec![(
                "session".to_owned(),
                self.session.map_or_else(|| format!("day{}", self.day), str::to_owned),
            )],
            ..RunHeader::new(
                format!("day{}-{round}-{kernel}", self.day),
                ["pmmpi", "screen-kernel", kernel].map(str::to_owned).to_vec(),
                Mode::Plain,
                1_780_000_000_000_000_000 + self.day * DAY_NS + seconds * 1_000_000_000,
            )
        };
        let mut run = Run::empty(header, outcomes.len() as u32);
        let unit = KernelMeasure { name: kernel.to_owned(), unit: "GB/s".to_owned(), larger_is_better: true };
        let name = Some(kernel.to_owned());
        let mut screened = Screened { kernel: name, measures: vec![unit], ..Screened::default() };
        let seconds_of = |outcome: &Outcome| if let Outcome::Times(times) = outcome { *times } else { 0.1 };
        let end_ns = |outcome: &Outcome| BEGIN_NS + (seconds_of(outcome) * 1e9) as i64;
        let last_ns = outcomes.iter().map(end_ns).max().unwrap();
        for ((rank, number), outcome) in (0..).zip(self.nodes.clone()).zip(outcomes) {
            run.nodes.push(node(&format!("n{number:02}")));
            let stamps = Stamps::new(0, BEGIN_NS, end_ns(outcome), last_ns + 1).unwrap();
            let record = RankRecord::unmeasured(End::Exited(0));
            run.ranks.push(RankRecord { rank: RankId(rank), node: NodeId(rank), stamps, ..record });
            let result = match outcome {
                Outcome::Times(times) => {
                    KernelResult { values: vec![100.0 / times], work: 1.0, ..KernelResult::default() }
                }
                Outcome::Fails => {
                    KernelResult { failed: Some("no memory".to_owned()), ..KernelResult::default() }
                }
                Outcome::IsWrong => {
                    KernelResult { wrong: Some("element 3 is wrong".to_owned()), ..KernelResult::default() }
                }
            };
            screened.results.push(KernelResult { rank: RankId(rank), ..result });
        }
        run.screened = Some(screened);
        run
    }
}

/// The arguments and these files.
pub fn words<'a>(args: &[&'a str], files: &'a [String]) -> Vec<&'a str> {
    args.iter().copied().chain(files.iter().map(String::as_str)).collect()
}

/// What `pmmpi screen` starts in the end.
pub fn screen_report(files: &[String], args: &[&str]) -> Output {
    report(&words(&[&["screen"], args].concat(), files))
}
