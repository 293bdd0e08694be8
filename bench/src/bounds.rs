//! Bounds of a large job: time and memory.

use pmmpi::NodeId;
use pmmpi::bounds::{JobStamps, MaxDrift, Stamps};
use std::error::Error;
use std::process::Command;
use std::time::Instant;

/// With this argument the program measures memory in a process of its own.
pub const CHILD: &str = "--bounds-child";

pub const RANKS: u32 = 1_000_000;
pub const NODES: u32 = 20_000;

/// Measures in processes of their own. Returns Markdown.
pub fn report() -> Result<String, Box<dyn Error>> {
    const ROUNDS: usize = 7;
    let mut text =
        format!("## Bounds of {RANKS} ranks on {NODES} nodes ({ROUNDS} processes, one per row)\n\n");
    text += "| time for the bounds, ms | peak memory, MB |\n|---|---|\n";
    for _ in 0..ROUNDS {
        let output = Command::new(std::env::current_exe()?).arg(CHILD).output()?;
        text += &String::from_utf8(output.stdout)?;
    }
    Ok(text)
}

/// One row: the time from stamps in memory to the bounds, and the peak memory of the process.
pub fn measure() -> String {
    let stamps: Vec<(NodeId, Stamps)> =
        (0..RANKS).filter_map(|rank| Some((NodeId(rank % NODES), stamps_of(rank)?))).collect();
    let start = Instant::now();
    let mut job = JobStamps::new();
    for (node, stamps) in &stamps {
        job.add(*node, *stamps);
    }
    let bounds = job.elapsed(MaxDrift::DEFAULT);
    let seconds = start.elapsed().as_secs_f64();
    let sound =
        bounds.is_some_and(|b| b.consistent && b.lower_ns <= b.upper_ns) && stamps.len() == RANKS as usize;
    let peak = peak_bytes().map_or("unknown".to_owned(), |bytes| format!("{:.0}", bytes as f64 / 1e6));
    if sound { format!("| {:.1} | {peak} |", seconds * 1e3) } else { "| the bounds are wrong | |".to_owned() }
}

/// A rank of a job whose barriers take 1 ms. The clock of each node is off by the node's number of hours.
pub fn stamps_of(rank: u32) -> Option<Stamps> {
    let node = i64::from(rank % NODES);
    let clock = 10_000_000_000_000 + node * 3_600_000_000_000;
    let jitter = i64::from(rank.wrapping_mul(2_654_435_761) % 1_000_000);
    let enter = clock + jitter;
    let work = 1_000_000_000 + jitter;
    let released = clock + 1_000_000;
    Stamps::try_from([enter, released, released + work, clock + 1_003_000_000]).ok()
}

fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}
