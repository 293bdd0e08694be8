//! Simulated runs as a table, judged by the code of the report.

use pmmpi_analysis::stats::random::Random;
use pmmpi_analysis::table::{Order, RunTable, UNDATED};
use pmmpi_analysis::verdicts::node_report::NodeReport;
use pmmpi_analysis::verdicts::{self, JudgeSettings, Verdicts};
use pmmpi_analysis::warnings::WarningCode;
use std::collections::BTreeMap;

/// Runs of one class.
#[derive(Default)]
pub struct MeasuredRuns {
    table: RunTable,
    /// Who measured them.
    pub by: Tool,
    /// The node and the number of a run that is missing; the node counts the others without a gap.
    pub missed: Option<[usize; 2]>,
    /// Times are rounded to multiples of this (s); 0 for exact times.
    pub unit: f64,
    /// This share of the runs is missing.
    pub missing: f64,
    /// The first nodes, how many, have times rounded to this (s).
    pub coarser: (usize, f64),
}

/// What measures runs.
#[derive(Clone, Copy, Default, PartialEq)]
pub enum Tool {
    /// Another tool: each node has a run 0, 1, ...
    #[default]
    Other,
    /// pmmpi, a run on each node.
    Pmmpi,
    /// pmmpi, runs on all nodes: jobs.
    Jobs,
}

/// One run on one node.
#[derive(Clone, Copy, Default)]
pub struct MeasuredRun {
    pub node: usize,
    pub session: usize,
    /// Number of the run on its node.
    pub run: usize,
    /// Start (s), if known.
    pub start_s: Option<f64>,
    pub ln_time: f64,
}

impl MeasuredRuns {
    pub fn add(&mut self, mut run: MeasuredRun) {
        if let Some([_, missed]) =
            self.missed.filter(|[node, missed]| *node == run.node && run.run >= *missed)
        {
            if run.run == missed {
                return;
            }
            run.run -= 1;
        }
        // A number of its own, so that the other numbers do not depend on it.
        let number = (run.node * 7919 + run.session * 104_729 + run.run * 1_299_709) as u64;
        if self.missing > 0.0 && Random::new(number ^ run.ln_time.to_bits()).uniform() < self.missing {
            return;
        }
        let seconds = run.ln_time.exp();
        let table = &mut self.table;
        table.node.push(table.nodes.number(&format!("n{:04}", run.node)));
        let id = match self.by {
            Tool::Pmmpi => format!("{}-{}", run.node, run.run),
            Tool::Other | Tool::Jobs => run.run.to_string(),
        };
        table.run.push(table.runs.number(&id));
        table.class.push(table.classes.number("simulated"));
        table.session.push(table.sessions.number(&format!("s{:03}", run.session)));
        table.own.push(self.by != Tool::Other);
        let unit = if run.node < self.coarser.0 { self.coarser.1 } else { self.unit };
        table.elapsed_s.push(if unit > 0.0 { (seconds / unit).round() * unit } else { seconds });
        table.started_unix_ns.push(run.start_s.map_or(UNDATED, |start_s| (start_s * 1e9) as i64));
        table.origins.push(0, 0, 1);
    }

    /// Sets a counter of the latest run.
    pub fn count(&mut self, counter: String, value: f64) {
        let rows = self.table.len();
        let values = self.table.counters.entry(counter).or_default();
        values.resize(rows - 1, f64::NAN);
        values.push(value);
    }

    pub fn judged(&self) -> Judged {
        self.judged_by(&JudgeSettings::default())
    }

    pub fn judged_by(&self, settings: &JudgeSettings) -> Judged {
        let order = Order::of(&self.table);
        Judged { verdicts: verdicts::judge(&self.table, &order, settings) }
    }
}

/// What the report says.
pub struct Judged {
    pub verdicts: Verdicts,
}

impl Judged {
    pub fn node(&self, node: usize) -> &NodeReport {
        let name = format!("n{node:04}");
        self.verdicts.nodes.iter().find(|found| *found.node == name).expect("every node has a report")
    }

    /// The report of each node, by number.
    pub fn by_node(&self) -> BTreeMap<usize, &NodeReport> {
        let number = |report: &NodeReport| report.node[1..].parse().expect("a number");
        self.verdicts.nodes.iter().map(|report| (number(report), report)).collect()
    }

    pub fn warns(&self, code: WarningCode) -> bool {
        self.verdicts.warnings.iter().any(|warning| warning.code() == code)
    }
}
