//! `pmmpi report` on an archive of 98 million runs: one month, and the history of all nodes from medians.

use crate::peers::Peers;
use crate::process::{Measured, Program};
use crate::{Folder, must_succeed, pmmpi};
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

const ROUNDS: usize = 3;
const WORKLOADS: u32 = 27;
const NODES: u32 = 10_000;
const RUNS: u32 = 7;
const SESSIONS: u32 = 52;
/// Sessions in the last month.
const LATEST: u32 = 4;
const LAST_MONTH: &str = "2026-12";

/// Returns Markdown.
pub fn report(folder: &Folder) -> Result<String, Box<dyn Error>> {
    let title = format!(
        "## {} million runs in an archive: {NODES} nodes, {RUNS} runs, {SESSIONS} sessions, {WORKLOADS} workloads\n",
        u64::from(WORKLOADS * NODES) * u64::from(RUNS * SESSIONS) / 1_000_000
    );
    let peers = match Peers::find() {
        Ok(peers) => peers,
        Err(why) => return Ok(format!("{title}\nNot measured: {why}.\n")),
    };
    let archive = folder.path().join("years");
    let mut years = peers.script("years.py", &archive, WORKLOADS.to_string().as_ref());
    must_succeed(years.args([NODES, RUNS].map(|number| number.to_string())))?;
    let month = archive.join(format!("month={LAST_MONTH}/runs.parquet"));
    let tool: PathBuf = pmmpi()?;
    let report = |name: &str, path: PathBuf, options: &[&str]| {
        let mut command = Command::new(&tool);
        command.arg("report").arg(path).args(options).arg("-o").arg(folder.path().join("report.txt"));
        Program::new(name, Ok(command))
    };
    let since = format!("{LAST_MONTH}-01");
    let programs = vec![
        report(
            "`pmmpi report --since --no-history`: one month",
            archive.clone(),
            &["--since", &since, "--no-history"],
        ),
        Program::new(
            format!("{}: only the medians of this month", peers.duckdb),
            Ok(peers.script("duckdb_month.py", &month, &folder.path().join("month.csv"))),
        ),
        Program::new(
            format!("{}: only the medians of this month, by a lazy scan of the archive", peers.polars),
            Ok({
                let mut polars = peers.script("polars_month.py", &archive, &folder.path().join("month.csv"));
                polars.arg(&since);
                polars
            }),
        ),
        report(
            "`pmmpi report --since`: the same, and each node's own history",
            archive.clone(),
            &["--since", &since],
        ),
        report("`pmmpi report`: medians alone", archive.join("_medians"), &[]),
    ];
    let measured = Measured::in_turns(programs, ROUNDS)?;
    std::fs::remove_dir_all(&archive)?;
    Ok(format!(
        "{title}\nThe last month has {} million runs, and the medians have {} million rows. {ROUNDS} rounds.\n\n{}",
        f64::from(WORKLOADS * NODES * RUNS * LATEST) / 1e6,
        f64::from(WORKLOADS * NODES * SESSIONS) / 1e6,
        measured.text("", Some(0))
    ))
}
