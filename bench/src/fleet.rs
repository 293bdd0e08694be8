//! A simulated fleet: the reference fleet of docs/simulation.md, in sessions.
//!
//! A value is a function of its node, session and run. So the rows may be written in any order, and a smaller fleet
//! consists of the first nodes of a larger one.

use crate::{must_succeed, run_file};
use pmmpi::bounds::Stamps;
use pmmpi::node::NodeKey;
use pmmpi::record::{Run, run_file};
use std::error::Error;
use std::f64::consts::TAU;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

/// With this argument the program writes a fleet and ends. Otherwise its memory would count as memory of the
/// processes that it starts later (getrusage(2), ru_maxrss).
pub const CHILD: &str = "--fleet";

/// Time of the faster class (s).
const TYPICAL_S: f64 = 100.0;
/// From the start of a run to the start of the node's next run (s).
const BETWEEN_RUNS_S: u32 = 200;

/// The size of a fleet.
#[derive(Clone, Copy)]
pub struct Fleet {
    pub nodes: u32,
    /// Runs per node in each session.
    pub runs: u32,
    /// With several sessions the nodes are in two classes, and each row has start, session and class.
    pub sessions: u32,
}

/// Executes the arguments after [`CHILD`].
pub fn child(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [form, nodes, runs, sessions, out] = arguments else { return Err("not for use by hand".into()) };
    let fleet = Fleet { nodes: nodes.parse()?, runs: runs.parse()?, sessions: sessions.parse()? };
    match form.as_str() {
        "csv" => fleet.write_csv(Path::new(out)),
        "superbench" => fleet.write_superbench(Path::new(out)),
        pmmpi => fleet.write_runs(Path::new(pmmpi), Path::new(out)),
    }
}

/// The purpose of a random value.
#[derive(Clone, Copy)]
enum Value {
    NodeSpeed,
    IsSlowNode,
    HowSlowNode,
    SlowSince,
    RunNoise,
    IsSlowRun,
    HowSlowRun,
}

impl Fleet {
    pub const fn rows(self) -> u64 {
        self.nodes as u64 * self.runs as u64 * self.sessions as u64
    }

    /// Writes `node,run,elapsed_s`, and with several sessions also `session,started,class`, session after session.
    pub fn csv(self, file: &Path) -> Result<(), Box<dyn Error>> {
        self.in_child("csv".as_ref(), file)
    }

    /// Writes SuperBench's results-summary.jsonl: each run is one rank, and its time is that of HPL.
    pub fn superbench(self, file: &Path) -> Result<(), Box<dyn Error>> {
        self.in_child("superbench".as_ref(), file)
    }

    /// Writes one file per run and node into a new folder. Each is a run that `pmmpi` measures here, with another
    /// node name and another elapsed time.
    pub fn runs(self, pmmpi: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
        self.in_child(pmmpi, folder)
    }

    fn in_child(self, form: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
        let numbers = [self.nodes, self.runs, self.sessions].map(|number| number.to_string());
        let mut command = Command::new(std::env::current_exe()?);
        must_succeed(command.arg(CHILD).arg(form).args(numbers).arg(out))
    }

    /// Standard deviation 1.5 % between nodes and 0.3 % between a node's runs. 1 % of the nodes are 3 to 12 % slow
    /// from some session on; 1 % of the runs are 10 to 30 % slow.
    fn elapsed_s(self, node: u32, session: u32, run: u32) -> f64 {
        let of_node = |value| uniform(node, 0, 0, value);
        let of_run = |value| uniform(node, session, run, value);
        let mut log = 0.015 * normal(node, 0, 0, Value::NodeSpeed);
        log += 0.003 * normal(node, session, run, Value::RunNoise);
        let since = (of_node(Value::SlowSince) * f64::from(self.sessions)) as u32;
        if of_node(Value::IsSlowNode) < 0.01 && session >= since {
            log += (0.03 + 0.09 * of_node(Value::HowSlowNode)).ln_1p();
        }
        if of_run(Value::IsSlowRun) < 0.01 {
            log += (0.1 + 0.2 * of_run(Value::HowSlowRun)).ln_1p();
        }
        let class = if self.sessions > 1 && is_second_class(node) { 1.08 } else { 1.0 };
        TYPICAL_S * class * log.exp()
    }

    fn write_csv(self, file: &Path) -> Result<(), Box<dyn Error>> {
        let mut out = BufWriter::new(File::create(file)?);
        let several = self.sessions > 1;
        writeln!(out, "node,run,elapsed_s{}", if several { ",session,started,class" } else { "" })?;
        for session in 0..self.sessions {
            for node in 0..self.nodes {
                for run in 0..self.runs {
                    let elapsed_s = self.elapsed_s(node, session, run);
                    let number = session * self.runs + run;
                    write!(out, "n{node:05},{number},{elapsed_s:.6}")?;
                    if several {
                        let class = if is_second_class(node) { "b" } else { "a" };
                        write!(out, ",s{session:03},{},{class}", started(session, run))?;
                    }
                    writeln!(out)?;
                }
            }
        }
        Ok(out.flush()?)
    }

    fn write_superbench(self, file: &Path) -> Result<(), Box<dyn Error>> {
        let mut out = BufWriter::new(File::create(file)?);
        for node in 0..self.nodes {
            write!(out, "{{\"node\": \"n{node:05}\"")?;
            for run in 0..self.runs {
                write!(out, ", \"cpu-hpl/time:{run}\": {:.6}", self.elapsed_s(node, 0, run))?;
            }
            writeln!(out, "}}")?;
        }
        Ok(out.flush()?)
    }

    fn write_runs(self, pmmpi: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
        let mut command = Command::new(pmmpi);
        must_succeed(command.arg("--out").arg(folder).arg("/bin/true"))?;
        let file = run_file(folder)?;
        let measured = run_file::read(&file)?;
        std::fs::remove_file(file)?;
        for node in 0..self.nodes {
            for run in 0..self.runs {
                run_file::write(folder, &self.run(&measured, node, run)?)?;
            }
        }
        Ok(())
    }

    fn run(self, measured: &Run, node: u32, number: u32) -> Result<Run, Box<dyn Error>> {
        let mut run = measured.clone();
        run.header.run_id = format!("20260101T000000Z-{number:04}-n{node:05}");
        run.header.started_unix_ns += i64::from(number * BETWEEN_RUNS_S) * 1_000_000_000;
        for record in &mut run.nodes {
            record.key = NodeKey { hostname: format!("n{node:05}"), ..record.key.clone() };
        }
        let elapsed_ns = (self.elapsed_s(node, 0, number) * 1e9) as i64;
        for rank in &mut run.ranks {
            let [t0, t1, _, _] = <[i64; 4]>::from(rank.stamps);
            rank.stamps = Stamps::try_from([t0, t1, t1 + elapsed_ns, t1 + elapsed_ns + 10_000])?;
        }
        Ok(run)
    }
}

/// In the form of RFC 3339: four sessions per month, seven days apart.
fn started(session: u32, run: u32) -> String {
    let (year, month, day) = (2026 + session / 48, 1 + session / 4 % 12, 1 + session % 4 * 7);
    let of_day = run * BETWEEN_RUNS_S;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// True for two of five nodes.
fn is_second_class(node: u32) -> bool {
    node % 5 > 2
}

/// Between 0 and 1, exclusive: the last step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), twice.
fn uniform(node: u32, session: u32, run: u32, value: Value) -> f64 {
    let mix = |mut z: u64| {
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let step = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let place = u64::from(node) << 32 | u64::from(session) << 16 | u64::from(run);
    let mixed = mix(mix(step(place + 1)) ^ step(value as u64 + 1));
    ((mixed >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Mean 0, standard deviation 1: Box and Muller (1958).
fn normal(node: u32, session: u32, run: u32, value: Value) -> f64 {
    const SECOND: u32 = 1 << 31;
    let angle = TAU * uniform(node | SECOND, session, run, value);
    (-2.0 * uniform(node, session, run, value).ln()).sqrt() * angle.cos()
}
