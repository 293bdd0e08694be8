//! All messages of pmmpi. They go to stderr, because stdout belongs to the program.

pub use crate::messages::{say, warn};
pub use crate::progress::time_left;

use crate::plan::RoundsPlan;
use crate::progress::RoundsProgress;
use crate::series_summary::SeriesSummary;
use pmmpi::record::Run;
use pmmpi::text::count;
use pmmpi_events::summary_line::Summary;
use std::fmt::Display;
use std::path::Path;

/// Shows the progress through several rounds: a bar if stderr is a terminal, else one line per round.
pub struct Console {
    quiet: bool,
    /// Measured rounds.
    runs: u32,
    progress: RoundsProgress,
}

impl Console {
    /// The console of the one rank that prints for all.
    pub fn new(plan: &RoundsPlan) -> Self {
        Self { quiet: plan.quiet, runs: plan.runs, progress: RoundsProgress::new(plan.rounds(), plan.quiet) }
    }

    /// The console of the other ranks: it prints no progress.
    pub fn silent() -> Self {
        Self { quiet: true, runs: 1, progress: RoundsProgress::silent() }
    }

    /// Shows that round `number` (from 0) begins. Call it before t0, so that it does not disturb the measurement.
    pub fn begin(&self, number: u32, warmup: bool) {
        self.progress.show(number, if warmup { "warm-up" } else { "measuring" });
    }

    /// Prints the summary of run `number` (from 0). `file` is its run file, if it was saved.
    pub fn kept(&self, number: u32, run: &Run, file: Option<&Path>) {
        if self.quiet {
            return;
        }
        let summary = Summary { run, file };
        if self.runs > 1 {
            self.say(format_args!("[{}/{}] {summary}", number + 1, self.runs));
        } else {
            say(summary);
        }
    }

    /// Removes the bar after the last round.
    pub fn end(&self) {
        self.progress.end();
    }

    /// Prints what the measured rounds show together, after the last one.
    pub fn summary(&self, series: &SeriesSummary) {
        if !self.quiet && self.runs > 1 {
            series.lines().iter().for_each(say);
        }
    }

    /// Prints that the rounds end early, after `kept` measured rounds.
    pub fn stopped(&self, signal: i32, kept: u32) {
        if !self.quiet {
            let all = count(self.runs as usize, "run");
            self.say(format_args!("stopped by signal {signal} after {kept} of {all}"));
        }
    }

    /// Prints a message, above the bar if there is one.
    pub fn say(&self, message: impl Display) {
        self.progress.say(message);
    }
}
