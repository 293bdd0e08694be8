//! All messages of pmmpi. They go to stderr, because stdout belongs to the program.

use crate::plan::RoundsPlan;
use crate::series_summary::SeriesSummary;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use pmmpi::record::Run;
use pmmpi::text::{count, printable};
use pmmpi_events::summary_line::Summary;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

/// Prints a message in one write, so that messages of several ranks do not mix. Ignores a failed write.
pub fn say(message: impl Display) {
    let _ = std::io::stderr().write_all(line(message).as_bytes());
}

fn line(message: impl Display) -> String {
    format!("pmmpi: {}\n", printable(&message.to_string()))
}

/// Prints a warning: something that the user should know but that does not stop pmmpi.
pub fn warn(message: impl Display) {
    say(format_args!("warning: {message}"));
}

/// Shows the progress through several rounds: a bar if stderr is a terminal, else one line per round.
pub struct Console {
    quiet: bool,
    /// Measured rounds.
    runs: u32,
    /// Measured and warm-up rounds.
    rounds: u32,
    bar: Option<ProgressBar>,
}

impl Console {
    /// The console of the one rank that prints for all.
    pub fn new(plan: &RoundsPlan) -> Self {
        let wanted = !plan.quiet && plan.rounds() > 1 && std::io::stderr().is_terminal();
        Self {
            quiet: plan.quiet,
            runs: plan.runs,
            rounds: plan.rounds(),
            bar: wanted.then(|| bar(plan.rounds())),
        }
    }

    /// The console of the other ranks: it prints no progress.
    pub fn silent() -> Self {
        Self { quiet: true, runs: 1, rounds: 1, bar: None }
    }

    /// Shows that round `number` (from 0) begins. Call it before t0, so that it does not disturb the measurement.
    pub fn begin(&self, number: u32, warmup: bool) {
        if let Some(bar) = &self.bar {
            bar.set_position(number.into());
            let doing = if warmup { "warm-up" } else { "measuring" };
            bar.set_message(format!("{doing}{}", time_left(bar.elapsed(), number, self.rounds)));
            bar.tick();
        }
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
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
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
        match &self.bar {
            Some(bar) => bar.println(line(message).trim_end()),
            None => say(message),
        }
    }
}

/// ", about 20 seconds left": the time that the rest of `all` equal parts needs, if `done` of them took `elapsed`. Empty
/// before the end of the first part.
pub fn time_left(elapsed: Duration, done: u32, all: u32) -> String {
    let left = elapsed.checked_div(done).map(|part| part.saturating_mul(all.saturating_sub(done)));
    left.map_or(String::new(), |left| format!(", about {} left", HumanDuration(left)))
}

fn bar(rounds: u32) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(rounds.into()), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("pmmpi: [{bar:30}] {pos}/{len} {msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
