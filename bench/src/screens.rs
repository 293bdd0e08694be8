//! The decision of `pmmpi screen`: from the run files of all rounds to the result. Each rank has the facts, counts and
//! topology of a real run on this machine.

use crate::process::{Measured, Program};
use crate::{Folder, must_succeed, pmmpi, run_file};
use pmmpi::bounds::Stamps;
use pmmpi::counters::counts::CountRow;
use pmmpi::node::NodeKey;
use pmmpi::record::run_file::{read, write};
use pmmpi::record::{KernelMeasure, KernelResult, Mode, RankRecord, Run, RunHeader, Screened, Series};
use pmmpi::{NodeId, RankId};
use std::error::Error;
use std::path::Path;
use std::process::Command;

/// With this argument the program writes the runs of a screen and ends, for the same reason as
/// [`crate::fleet::CHILD`].
pub const CHILD: &str = "--screen";

const NODES: [u32; 3] = [1_000, 10_000, 40_000];
const KERNELS: [&str; 4] = ["dgemm", "latency", "spin", "triad"];
const ROUNDS: u32 = 3;
/// Hardware threads of a node, of which each has a value.
const THREADS: u32 = 64;
const TURNS: usize = 3;

/// Returns Markdown.
pub fn report(folder: &Folder) -> Result<String, Box<dyn Error>> {
    let tool = pmmpi()?.with_file_name("pmmpi-report");
    let place = |nodes: u32| folder.path().join(format!("screen-{nodes}"));
    let real = folder.path().join("screen-real");
    must_succeed(Command::new(pmmpi()?).arg("--out").arg(&real).arg("/bin/true"))?;
    let real = run_file(&real)?;
    let mut programs = Vec::new();
    for nodes in NODES {
        let mut writer = Command::new(std::env::current_exe()?);
        must_succeed(writer.arg(CHILD).arg(nodes.to_string()).arg(place(nodes)).arg(&real))?;
        let mut command = Command::new(&tool);
        command.arg("screen").arg(place(nodes)).args(["-o"]).arg(folder.path().join("screen.txt"));
        programs.push(Program::new(format!("{nodes} nodes"), Ok(command)));
    }
    let measured = Measured::in_turns(programs, TURNS)?;
    for nodes in NODES {
        std::fs::remove_dir_all(place(nodes))?;
    }
    Ok(format!(
        "## Decision of `pmmpi screen` ({} kernels, {ROUNDS} rounds, values of {THREADS} hardware threads per node; \
         {TURNS} rounds)\n\n{}{}",
        KERNELS.len(),
        measured.text("`pmmpi-report screen`", None),
        measured.growth(&NODES.map(f64::from))
    ))
}

/// Executes the arguments after [`CHILD`].
pub fn child(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [nodes, folder, real] = arguments else { return Err("not for use by hand".into()) };
    let (nodes, real) = (nodes.parse()?, read(Path::new(real))?);
    for round in 0..ROUNDS {
        for (kernel, name) in (0..).zip(KERNELS) {
            write(Path::new(folder), &run(nodes, round, kernel, name, &real))?;
        }
    }
    Ok(())
}

/// `real` is a run of one rank.
fn run(nodes: u32, round: u32, kernel: u32, name: &str, real: &Run) -> Run {
    const BEGIN_NS: i64 = 1_000_000;
    let started_unix_ns = i64::from(round * 100 + kernel) * 1_000_000_000;
    let command = ["pmmpi", "screen-kernel", name].map(str::to_owned);
    let header = RunHeader {
        series: Some(Series { id: "screen".into(), round }),
        labels: vec![("session".into(), "s1".into())],
        ..RunHeader::new(format!("{round:03}-{kernel}"), command.into(), Mode::Plain, started_unix_ns)
    };
    let key =
        |node: u32| NodeKey { hostname: format!("n{node:05}"), boot_id: node.to_string(), time_namespace: 1 };
    // Nodes differ by up to 3 %, runs of a node by 0.3 %; one node in a thousand is 8 % slower.
    let part = |number: u32| f64::from(number.wrapping_mul(2_654_435_761) >> 8) / f64::from(1_u32 << 24);
    let seconds = |node: u32| {
        let slow = if node % 1000 == 500 { 1.08 } else { 1.0 };
        (1.0 + 0.03 * part(node * 8 + kernel) + 0.003 * part((node * 64 + round) * 8 + kernel)) * slow
    };
    let ends_ns: Vec<i64> = (0..nodes).map(|node| BEGIN_NS + (seconds(node) * 1e9) as i64).collect();
    let last_ns = ends_ns.iter().max().copied().unwrap_or_default();
    let rank = |(node, t2_ns): (u32, &i64)| {
        let stamps = Stamps::new(0, BEGIN_NS, *t2_ns, last_ns + 1).ok()?;
        let RankRecord { allowed, ran_on, cpu_user_ns, cpu_system_ns, end, .. } = real.ranks.first()?.clone();
        let (rank, of_node) = (RankId(node), NodeId(node));
        let unmeasured = RankRecord::unmeasured(end);
        Some(RankRecord {
            rank,
            node: of_node,
            stamps,
            allowed,
            ran_on,
            cpu_user_ns,
            cpu_system_ns,
            ..unmeasured
        })
    };
    let result = |node: u32| KernelResult {
        rank: RankId(node),
        values: vec![100.0 / seconds(node)],
        work: 1.0,
        threads: (0..THREADS).map(|thread| (thread, (1.0 / seconds(node)) as f32)).collect(),
        notes: vec!["arrays of 1 GB, in huge pages".into()],
        ..KernelResult::default()
    };
    // A node's memory differs from the next one's by some pages, as in a real fleet.
    let record = |number: u32| {
        let mut record = real.nodes.first()?.clone();
        record.key = key(number);
        let bytes = record.facts.as_mut().and_then(|facts| facts.hardware.memory_bytes.as_mut());
        if let Some(bytes) = bytes {
            *bytes -= 4096 * u64::from(number % 97);
        }
        Some(record)
    };
    let mut counts = real.counts.clone();
    let row = |(rank, row): (u32, &CountRow)| CountRow { rank: RankId(rank), ..row.clone() };
    counts.rows =
        (0..nodes).flat_map(|rank| real.counts.rows.iter().map(move |of| (rank, of))).map(row).collect();
    let unit = KernelMeasure { name: name.into(), unit: "GB/s".into(), larger_is_better: true };
    Run {
        nodes: (0..nodes).filter_map(record).collect(),
        topologies: real.topologies.clone(),
        counts,
        ranks: (0..nodes).zip(&ends_ns).filter_map(rank).collect(),
        screened: Some(Screened {
            kernel: Some(name.into()),
            measures: vec![unit],
            results: (0..nodes).map(result).collect(),
            suspects: Vec::new(),
        }),
        ..Run::empty(header, nodes)
    }
}
