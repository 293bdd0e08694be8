//! `pmmpi report` on tables, compared with programs that do a part of its work.

use crate::fleet::Fleet;
use crate::peers::{Peers, Superbench};
use crate::process::{Measured, Program};
use crate::{Folder, must_succeed, pmmpi};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROUNDS: usize = 5;
/// For programs that take half a minute.
const FEW_ROUNDS: usize = 3;
const FLEET: Fleet = Fleet { nodes: 10_000, runs: 7, sessions: 1 };
/// The runs of the fleet in one year.
const YEAR: Fleet = Fleet { sessions: 52, ..FLEET };
const MORE_NODES: [u32; 3] = [10_000, 40_000, 160_000];
const LESS_NODES: [u32; 3] = [625, 2_500, 10_000];
const SESSIONS: [u32; 3] = [4, 13, 52];

/// Returns Markdown.
pub fn report(folder: &Folder) -> Result<String, Box<dyn Error>> {
    let tables = Tables { folder: folder.path(), pmmpi: pmmpi()? };
    let beside = match Peers::find() {
        Ok(peers) => [tables.archive(&peers)?, tables.counters(&peers)?].join("\n"),
        Err(why) => format!("## Verdicts from Parquet\n\nNot measured: {why}.\n"),
    };
    Ok([tables.csv()?, beside].join("\n"))
}

struct Tables<'a> {
    folder: &'a Path,
    pmmpi: PathBuf,
}

impl Tables<'_> {
    /// One session, in CSV.
    fn csv(&self) -> Result<String, Box<dyn Error>> {
        let file = |nodes: u32| self.folder.join(format!("{nodes}.csv"));
        let mut programs = Vec::new();
        for nodes in MORE_NODES {
            Fleet { nodes, ..FLEET }.csv(&file(nodes))?;
            programs.push(Program::new(format!("{nodes} nodes"), Ok(self.report(&file(nodes)))));
        }
        let grown = Measured::in_turns(programs, ROUNDS)?;
        let results = self.folder.join("results-summary.jsonl");
        FLEET.superbench(&results)?;
        let (name, command) = match Superbench::find() {
            Ok(found) => (found.name.clone(), Ok(found.diagnosis(&results, self.folder))),
            Err(why) => ("SuperBench".to_owned(), Err(why)),
        };
        let superbench =
            Program::new(format!("{name}: nodes with a run more than 3 % over a baseline"), command);
        let beside = Measured::in_turns(vec![self.ours(&file(FLEET.nodes)), superbench], FEW_ROUNDS)?;
        Ok(format!(
            "## Verdicts on a fleet, {} runs per node (CSV, {ROUNDS} rounds)\n\n{}{}\n\
             With {} nodes, {FEW_ROUNDS} rounds:\n\n{}",
            FLEET.runs,
            grown.text("`pmmpi report`", None),
            grown.growth(&MORE_NODES.map(f64::from)),
            FLEET.nodes,
            beside.text("", Some(0)),
        ))
    }

    /// A year of sessions in Parquet: sorted by session, as an archive grows, and in random order.
    fn archive(&self, peers: &Peers) -> Result<String, Box<dyn Error>> {
        let mut text = format!(
            "## Verdicts on {} nodes, {} runs in each of {} sessions ({} rows, Parquet, {ROUNDS} rounds)\n",
            YEAR.nodes,
            YEAR.runs,
            YEAR.sessions,
            YEAR.rows()
        );
        for (rows, order) in [("sorted", "sorted by session"), ("shuffled", "in random order")] {
            let file = self.parquet(peers, YEAR, rows)?;
            let duckdb = Ok(peers.script("duckdb_verdicts.py", &file, &self.folder.join("duckdb.csv")));
            let what = "medians of nodes and classes, z-scores";
            let duckdb = Program::new(format!("{}: {what}", peers.duckdb), duckdb);
            let measured = Measured::in_turns(vec![self.ours(&file), duckdb], ROUNDS)?;
            text += &format!("\n{}", measured.text(&format!("rows {order}"), Some(0)));
        }
        let nodes = LESS_NODES.map(|nodes| (format!("{nodes} nodes"), Fleet { nodes, ..YEAR }));
        text += &self.grown(peers, &nodes)?;
        let sessions = SESSIONS.map(|sessions| (format!("{sessions} sessions"), Fleet { sessions, ..YEAR }));
        Ok(text + &self.grown(peers, &sessions)?)
    }

    /// `pmmpi report` on fleets of different sizes.
    fn grown(&self, peers: &Peers, fleets: &[(String, Fleet)]) -> Result<String, Box<dyn Error>> {
        let mut programs = Vec::new();
        for (name, fleet) in fleets {
            let file = self.parquet(peers, *fleet, "sorted")?;
            programs.push(Program::new(name, Ok(self.report(&file))));
        }
        let rows: Vec<f64> = fleets.iter().map(|(_, fleet)| fleet.rows() as f64).collect();
        let measured = Measured::in_turns(programs, ROUNDS)?;
        Ok(format!("\n{}{}", measured.text("`pmmpi report`", None), measured.growth(&rows)))
    }

    /// Ten counters on each core in each run, in Parquet.
    fn counters(&self, peers: &Peers) -> Result<String, Box<dyn Error>> {
        let fleet = Fleet { nodes: 5_000, runs: 5, sessions: 1 };
        let file = self.parquet(peers, fleet, "cores")?;
        let peer = |name: &str, script| {
            let command = peers.script(script, &file, &self.folder.join(script).with_extension("csv"));
            let what = "medians per node and event, medians per event, their ratio";
            Program::new(format!("{name}: {what}"), Ok(command))
        };
        let programs = vec![
            self.ours(&file),
            peer(&peers.polars, "polars_cores.py"),
            peer(&peers.duckdb, "duckdb_cores.py"),
        ];
        Ok(format!(
            "## Counters of {} runs on 48 cores, 10 events (12 million rows, Parquet, {ROUNDS} rounds)\n\n{}",
            fleet.rows(),
            Measured::in_turns(programs, ROUNDS)?.text("", Some(0))
        ))
    }

    /// A file with the fleet's rows; reuses a file from an earlier call.
    fn parquet(&self, peers: &Peers, fleet: Fleet, rows: &str) -> Result<PathBuf, Box<dyn Error>> {
        let name = format!("{}-{}-{}-{rows}", fleet.nodes, fleet.runs, fleet.sessions);
        let [csv, parquet] =
            ["csv", "parquet"].map(|extension| self.folder.join(&name).with_extension(extension));
        if !parquet.exists() {
            fleet.csv(&csv)?;
            must_succeed(peers.script("parquet.py", &csv, &parquet).arg(rows))?;
            std::fs::remove_file(csv)?;
        }
        Ok(parquet)
    }

    fn ours(&self, file: &Path) -> Program {
        Program::new("`pmmpi report`: the whole report", Ok(self.report(file)))
    }

    fn report(&self, file: &Path) -> Command {
        let mut command = Command::new(&self.pmmpi);
        command.arg("report").arg(file).args(["--format", "json", "-o"]).arg(self.folder.join("report.json"));
        command
    }
}
