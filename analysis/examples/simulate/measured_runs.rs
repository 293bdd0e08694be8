//! Simulated runs as a table, judged by the code of the report.

use pmmpi_analysis::table::{Order, RunTable, UNDATED};
use pmmpi_analysis::verdicts::node_report::NodeReport;
use pmmpi_analysis::verdicts::{self, JudgeSettings, Verdicts};
use pmmpi_analysis::warning_codes::WarningCode;

/// Runs of one class.
#[derive(Default)]
pub struct MeasuredRuns {
    table: RunTable,
}

/// One run on one node.
#[derive(Clone, Copy)]
pub struct MeasuredRun {
    pub node: usize,
    pub session: usize,
    /// Number of the run on its node.
    pub run: usize,
    /// Start (s); negative if unknown.
    pub start_s: f64,
    pub ln_time: f64,
}

impl MeasuredRuns {
    pub fn add(&mut self, run: MeasuredRun) {
        self.add_seconds(run, run.ln_time.exp());
    }

    /// Rounds the time to multiples of `unit` seconds.
    pub fn add_rounded(&mut self, run: MeasuredRun, unit: f64) {
        self.add_seconds(run, (run.ln_time.exp() / unit).round() * unit);
    }

    fn add_seconds(&mut self, run: MeasuredRun, seconds: f64) {
        let table = &mut self.table;
        table.node.push(table.nodes.number(&format!("n{:04}", run.node)));
        table.run.push(table.runs.number(&run.run.to_string()));
        table.class.push(table.classes.number("simulated"));
        table.session.push(table.sessions.number(&format!("s{:03}", run.session)));
        table.is_own.push(false);
        table.elapsed_s.push(seconds);
        table.started_unix_ns.push(if run.start_s < 0.0 { UNDATED } else { (run.start_s * 1e9) as i64 });
        table.source.push(0);
        table.line.push(0);
        table.lack.push(table.lacks.number(""));
    }

    pub fn judged(&self) -> Judged {
        let order = Order::of(&self.table);
        Judged { verdicts: verdicts::judge(&self.table, &order, &JudgeSettings::default()) }
    }
}

/// What the report says.
pub struct Judged {
    pub verdicts: Verdicts,
}

impl Judged {
    pub fn node(&self, node: usize) -> &NodeReport {
        let name = format!("n{node:04}");
        self.verdicts.nodes.iter().find(|found| found.node == name).expect("every node has a report")
    }

    pub fn warns(&self, code: WarningCode) -> bool {
        self.verdicts.warnings.iter().any(|warning| warning.code == code)
    }
}
