//! `pmmpi report` on run files: one large file, and many small files.

use crate::fleet::Fleet;
use crate::process::{Measured, Program};
use crate::{Folder, bounds, must_succeed, pmmpi};
use pmmpi::bounds::RawClock;
use pmmpi::node::{CpuSet, NodeKey};
use pmmpi::record::{End, Mode, NodeRecord, RankRecord, Run, RunHeader, run_file};
use pmmpi::{NodeId, RankId};
use std::error::Error;
use std::path::Path;
use std::process::Command;

/// With this argument the program writes the large run and ends, for the same reason as [`crate::fleet::CHILD`].
pub const CHILD: &str = "--large-run";

/// Numbers of files. They are read from memory, as if they were just written.
const FILES: [u32; 3] = [2_500, 10_000, 40_000];
const RUNS_PER_NODE: u32 = 10;

/// Returns Markdown. The time includes reading the file.
pub fn large(folder: &Folder) -> Result<String, Box<dyn Error>> {
    const ROUNDS: usize = 5;
    let file = folder.path().join("large").with_extension(run_file::EXTENSION);
    must_succeed(Command::new(std::env::current_exe()?).arg(CHILD).arg(folder.path()))?;
    let bytes = std::fs::metadata(&file)?.len();
    let mut command = Command::new(pmmpi()?);
    command.arg("report").arg(&file);
    let measured = Measured::in_turns(vec![Program::new("`pmmpi report`", Ok(command))], ROUNDS)?;
    std::fs::remove_file(file)?;
    Ok(format!(
        "## One run of {} ranks on {} nodes ({:.0} MB; {ROUNDS} rounds)\n\n{}",
        bounds::RANKS,
        bounds::NODES,
        bytes as f64 / 1e6,
        measured.text("", None)
    ))
}

/// Returns Markdown.
pub fn many(folder: &Folder) -> Result<String, Box<dyn Error>> {
    const ROUNDS: usize = 3;
    let tool = pmmpi()?;
    let mut programs = Vec::new();
    let place = |files: u32| folder.path().join(format!("{files}-files"));
    for files in FILES {
        let fleet = Fleet { nodes: files / RUNS_PER_NODE, runs: RUNS_PER_NODE, sessions: 1 };
        fleet.runs(&tool, &place(files))?;
        let mut command = Command::new(&tool);
        command.arg("report").arg(place(files)).args(["--format", "json", "-o"]);
        command.arg(folder.path().join("report.json"));
        programs.push(Program::new(format!("{files} files"), Ok(command)));
    }
    let measured = Measured::in_turns(programs, ROUNDS)?;
    for files in FILES {
        std::fs::remove_dir_all(place(files))?;
    }
    let rates = measured.rates(&FILES.map(f64::from));
    Ok(format!(
        "## Run files of one run each ({RUNS_PER_NODE} per node, {ROUNDS} rounds)\n\n{}{}\n\
         Files per second, in the order of the rows: {}.\n",
        measured.text("`pmmpi report`", None),
        measured.growth(&FILES.map(f64::from)),
        rates.join(", ")
    ))
}

/// Writes `large.pmr` in a folder.
pub fn write_large(folder: Option<&String>) -> Result<(), Box<dyn Error>> {
    run_file::write(Path::new(folder.ok_or("not for use by hand")?), &run())?;
    Ok(())
}

fn run() -> Run {
    let node = |number: u32| {
        let (hostname, boot_id) = (format!("n{number:05}"), number.to_string());
        NodeRecord::new(NodeKey { hostname, boot_id, time_namespace: 1 })
    };
    let rank = |rank: u32| {
        Some(RankRecord {
            rank: RankId(rank),
            node: NodeId(rank % bounds::NODES),
            stamps: bounds::stamps_of(rank)?,
            raw: RawClock::default(),
            real_ns: [0, 1],
            tsc: None,
            cpu_user_ns: 1,
            cpu_system_ns: 1,
            allowed: CpuSet::default(),
            ran_on: [None, None],
            end: End::Finalized,
            setup_ns: 0,
        })
    };
    let header = RunHeader::new("large".into(), vec!["large".into()], Mode::Mpi, 0);
    Run {
        nodes: (0..bounds::NODES).map(node).collect(),
        ranks: (0..bounds::RANKS).filter_map(rank).collect(),
        ..Run::empty(header, bounds::RANKS)
    }
}
