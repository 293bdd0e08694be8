//! The cost of a region entry in addition to its two barriers.

use crate::jobs::mpirun;
use crate::paired::Spread;
use crate::{Folder, must_succeed, pmmpi};
use std::error::Error;
use std::process::Command;

const ENTRIES: &str = "10000";
const ROUNDS: usize = 7;

/// Returns Markdown.
pub fn report(folder: &Folder) -> Result<String, Box<dyn Error>> {
    let mut text = format!(
        "## {ENTRIES} entries of a region (bench/programs/regions.c, 2 ranks, {ROUNDS} runs)\n\n\
         Each run alternates between 100 pairs of barriers and 100 entries, and gives the median of the means \
         over 100. The table shows the median and the quartiles of the runs.\n\n\
         | MPI | two MPI_Barrier, us | one entry, us | one entry minus two MPI_Barrier, us |\n|---|---|---|---|\n"
    );
    let (tool, runs, out) = (pmmpi()?, folder.path().join("runs"), folder.path().join("regions.ns"));
    for (name, compiler) in [("Open MPI", "mpicc.openmpi"), ("MPICH", "mpicc.mpich")] {
        let program = folder.compile(compiler, "regions")?;
        let mut table = Vec::new();
        for _ in 0..ROUNDS {
            let mut command = match name {
                "Open MPI" => mpirun("2", Some((&tool, &runs))),
                _ => {
                    let mut command = Command::new("mpiexec.hydra");
                    command.args(["-n", "2"]).arg(&tool).arg("--out").arg(&runs);
                    command
                }
            };
            must_succeed(command.arg(&program).arg(ENTRIES).arg(&out))?;
            let measured = std::fs::read_to_string(&out)?;
            table.push(measured.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?);
        }
        let microseconds = |value: fn(&[f64]) -> f64| Spread::of(&table, value).text(1e-3, 2);
        text += &format!(
            "| {name} | {} | {} | {} |\n",
            microseconds(|row| row[0]),
            microseconds(|row| row[1]),
            microseconds(|row| row[1] - row[0])
        );
    }
    Ok(text)
}
