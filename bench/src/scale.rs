//! The tool's own time on many ranks, compared with two barriers and a gather by hand in the same run.

use crate::jobs::mpirun;
use crate::paired::Spread;
use crate::{Folder, must_succeed, pmmpi, run_file};
use pmmpi::record::run_file;
use std::error::Error;
use std::path::Path;

const RANKS: &str = "256";
const ROUNDS: usize = 5;

/// Returns Markdown.
pub fn report(folder: &Folder) -> Result<String, Box<dyn Error>> {
    let (tool, runs, by_hand) = (pmmpi()?, folder.path().join("scale"), folder.path().join("by_hand.ns"));
    let program = folder.compile("mpicc.openmpi", "by_hand")?;
    let mut table = Vec::new();
    for _ in 0..ROUNDS {
        let mut command = mpirun(RANKS, Some((&tool, &runs)));
        must_succeed(command.arg(&program).arg(&by_hand))?;
        let mut row = row(&runs, &by_hand)?;
        must_succeed(mpirun(RANKS, None).arg(&program).arg(&by_hand))?;
        row.push(nanoseconds(&by_hand)?);
        table.push(row);
    }
    let milliseconds = |column: usize| Spread::of(&table, |row| row[column]).text(1e-6, 1);
    let ratio = Spread::of(&table, |row| (row[0] + row[1] + row[2]) / row[3]).text(1.0, 2);
    Ok(format!(
        "## {RANKS} ranks, oversubscribed (bench/programs/by_hand.c, Open MPI, {ROUNDS} runs)\n\n\
         | part (for the start and for barriers: the time of the rank that came last) | ms |\n|---|---|\n\
         | pmmpi, from the end of MPI_Init to t1: settings from rank 0, setup, a barrier | {} |\n\
         | pmmpi, from t2 to t3: a barrier | {} |\n\
         | pmmpi, from t3 until rank 0 has every record | {} |\n\
         | the program itself, in the same run: two MPI_Barrier and one MPI_Gatherv of 200 bytes per rank | {} |\n\
         | the program itself, in a run without pmmpi: the same three operations | {} |\n\n\
         The three parts of pmmpi took {ratio} times as long as the operations of the program in the same run.\n",
        milliseconds(0),
        milliseconds(1),
        milliseconds(2),
        milliseconds(3),
        milliseconds(4),
    ))
}

/// The overhead of the only run in the folder, part by part, and the time by hand (ns). Removes the run.
fn row(runs: &Path, by_hand: &Path) -> Result<Vec<f64>, Box<dyn Error>> {
    let file = run_file(runs)?;
    let overhead = run_file::read(&file)?.overhead().ok_or("no rank in the run file reached t3")?;
    std::fs::remove_file(file)?;
    Ok(vec![
        overhead.starting_ns as f64,
        overhead.end_barrier_ns as f64,
        overhead.gather_ns as f64,
        nanoseconds(by_hand)?,
    ])
}

fn nanoseconds(file: &Path) -> Result<f64, Box<dyn Error>> {
    Ok(std::fs::read_to_string(file)?.trim().parse()?)
}
