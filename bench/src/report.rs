//! `pmmpi report` of one large run: time and memory.

use crate::{Folder, bounds, pmmpi};
use pmmpi::node::{CpuSet, NodeKey};
use pmmpi::record::{End, Mode, NodeRecord, RankRecord, Run, RunHeader};
use pmmpi::runfile;
use pmmpi::slew::RawClock;
use std::error::Error;
use std::process::{Command, Stdio};
use std::time::Instant;

/// As Markdown. Reading the file is part of it.
pub fn report(folder: &Folder) -> Result<String, Box<dyn Error>> {
    const ROUNDS: usize = 5;
    let file = runfile::write(&folder.0, &run())?;
    let bytes = std::fs::metadata(&file)?.len();
    let mut text = format!(
        "## `pmmpi report` of one run of {} ranks on {} nodes ({:.0} MB; {ROUNDS} processes)\n\n",
        bounds::RANKS,
        bounds::NODES,
        bytes as f64 / 1e6
    );
    text += "| s | peak memory, MB |\n|---|---|\n";
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut command = Command::new(pmmpi()?);
        let child = command.arg("report").arg(&file).stdout(Stdio::null()).spawn()?;
        let peak_bytes = wait(child.id())?;
        text += &format!("| {:.2} | {:.0} |\n", start.elapsed().as_secs_f64(), peak_bytes as f64 / 1e6);
    }
    std::fs::remove_file(file)?;
    Ok(text)
}

fn run() -> Run {
    let node = |number: u32| NodeRecord {
        key: NodeKey { hostname: format!("n{number:05}"), boot_id: number.to_string(), time_namespace: 1 },
        facts: None,
        topology: None,
    };
    let rank = |rank: u32| {
        Some(RankRecord {
            rank,
            node: rank % bounds::NODES,
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

/// The most memory that the process ever had, once it has ended well.
fn wait(process: u32) -> Result<u64, Box<dyn Error>> {
    let mut status = 0;
    // SAFETY: an all-zero rusage is valid, and the call fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::wait4(process as i32, &mut status, 0, &mut usage) < 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        usage
    };
    if status != 0 { Err("pmmpi report failed".into()) } else { Ok(usage.ru_maxrss as u64 * 1024) }
}
