//! The cost of an entry of a probe.

use crate::jobs::mpirun;
use crate::paired::Spread;
use crate::{Folder, must_succeed, pmmpi};
use pmmpi::record::run_file;
use std::error::Error;

const ENTRIES: &str = "1000000";
const ROUNDS: usize = 7;

/// Returns Markdown.
pub fn report(folder: &Folder) -> Result<String, Box<dyn Error>> {
    let (tool, runs, out) = (pmmpi()?, folder.path().join("probes"), folder.path().join("probes.ns"));
    let program = folder.compile("mpicc.openmpi", "probes")?;
    let mut table = Vec::new();
    for measured in [false, true] {
        let mut rows = Vec::new();
        for _ in 0..ROUNDS {
            let mut command = mpirun("1", measured.then_some((tool.as_path(), runs.as_path())));
            must_succeed(command.arg(&program).arg(ENTRIES).arg(&out))?;
            let text = std::fs::read_to_string(&out)?;
            rows.push(text.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?);
        }
        table.push(rows);
    }
    let ns = |rows: &[Vec<f64>], value: fn(&[f64]) -> f64| Spread::of(rows, value).text(1.0, 1);
    let mut text = format!(
        "## {ENTRIES} entries of a probe (bench/programs/probes.c, 1 rank, {ROUNDS} runs)\n\n\
         An entry has no content. The program gives the median of the means, each over 1000 entries. \
         All runs without pmmpi came first.\n\n\
         | variant | one entry, ns | an entry that encloses another one, both together, ns | the first entry of the thread, ns |\n\
         |---|---|---|---|\n"
    );
    for (variant, rows) in ["without pmmpi", "with pmmpi"].into_iter().zip(&table) {
        text += &format!(
            "| {variant} | {} | {} | {} |\n",
            ns(rows, |row| row[0]),
            ns(rows, |row| row[1]),
            ns(rows, |row| row[2])
        );
    }
    let mut files = std::fs::read_dir(&runs)?.flatten().map(|entry| entry.path());
    let file = files.find(|path| path.extension().is_some_and(|e| e == run_file::EXTENSION));
    let run = run_file::read(&file.ok_or_else(|| format!("pmmpi saved no run in {}", runs.display()))?)?;
    let counts = match run.probes.uncounted {
        Some(gap) => format!("Here an entry has no counts: {gap}."),
        None => "An entry includes the reads of two counters at each end.".to_owned(),
    };
    for (name, totals, times) in
        run.probes.over_ranks().filter(|(name, ..)| ["kernel", "outer"].contains(name))
    {
        let median_ns = times.median_ps().unwrap_or(f64::NAN) / 1e3;
        let all = totals.entries + totals.discarded.all();
        text += &format!(
            "\nTime that pmmpi reports for an entry of `{name}`: median {median_ns:.1} ns; {} of {all} entries discarded.\n",
            totals.discarded.all()
        );
    }
    Ok(format!("{text}\n{counts}\n"))
}
