//! MPI jobs with and without pmmpi.

use crate::paired::{Spread, Way, time};
use crate::{Folder, must_succeed, pmmpi};
use std::error::Error;
use std::path::Path;
use std::process::Command;

/// 16 ranks on few cores: ranks that wait must not slow down ranks that still work.
pub fn oversubscribed(folder: &Folder) -> Result<String, Box<dyn Error>> {
    const RANKS: &str = "16";
    const ROUNDS: usize = 31;
    let program = folder.compile("mpicc.openmpi", "steps")?;
    let runs = folder.path().join("runs");
    let command = |pmmpi: Option<&Path>| {
        let mut command = mpirun(RANKS, pmmpi.map(|tool| (tool, runs.as_path())));
        command.arg(&program).arg("150");
        command
    };
    let heading = format!("16 ranks, oversubscribed (bench/programs/steps.c, Open MPI, {ROUNDS} rounds)");
    compare(&heading, ROUNDS, command)
}

/// Debian's HPC Challenge, which includes HPL, on 2 ranks.
pub fn hpcc(folder: &Folder) -> Result<String, Box<dyn Error>> {
    const ROUNDS: usize = 31;
    let place = folder.path().join("hpcc");
    std::fs::create_dir_all(&place)?;
    let example = std::fs::read_to_string("/usr/share/doc/hpcc/examples/_hpccinf.txt")?;
    let input: Vec<String> = example.lines().enumerate().map(|(i, line)| input_line(i, line)).collect();
    std::fs::write(place.join("hpccinf.txt"), input.join("\n") + "\n")?;
    let runs = folder.path().join("runs");
    let command = |pmmpi: Option<&Path>| {
        let mut command = mpirun("2", pmmpi.map(|tool| (tool, runs.as_path())));
        command.current_dir(&place).arg("hpcc");
        command
    };
    compare(&format!("hpcc on 2 ranks (N = 400, Open MPI, {ROUNDS} rounds)"), ROUNDS, command)
}

/// The problem of the example input, but small and on a 1 x 2 grid.
fn input_line(number: usize, line: &str) -> String {
    let value = match number {
        5 => "400",
        10 => "1",
        11 => "2",
        _ => return line.to_owned(),
    };
    format!("{value} {}", line.split_once(' ').map_or("", |(_, comment)| comment))
}

/// Open MPI's mpirun; with `pmmpi`, the path of the tool and its folder for runs, the job is measured.
pub fn mpirun(ranks: &str, pmmpi: Option<(&Path, &Path)>) -> Command {
    let mut command = Command::new("mpirun.openmpi");
    command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", ranks]);
    command.args(["--mca", "mpi_yield_when_idle", "1"]);
    if let Some((pmmpi, runs)) = pmmpi {
        command.arg(pmmpi).arg("--out").arg(runs);
    }
    command
}

fn compare(
    heading: &str,
    rounds: usize,
    command: impl Fn(Option<&Path>) -> Command,
) -> Result<String, Box<dyn Error>> {
    let pmmpi = pmmpi()?;
    let mut ways = [
        Way::new("without", || must_succeed(&mut command(None))),
        Way::new("with", || must_succeed(&mut command(Some(&pmmpi)))),
    ];
    let table = time(&mut ways, rounds)?;
    let seconds = |i: usize| Spread::of(&table, |row| row[i]).text(1.0, 3);
    let added = Spread::of(&table, |row| row[1] / row[0] - 1.0).text(100.0, 2);
    Ok(format!(
        "## {heading}\n\n| variant | s, from start to end of mpirun |\n|---|---|\n\
         | without pmmpi | {} |\n| with pmmpi | {} |\n\n\
         pmmpi adds {added} % (each round compares both variants).\n",
        seconds(0),
        seconds(1)
    ))
}
