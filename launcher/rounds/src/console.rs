//! Everything that is said on stderr: stdout belongs to the workload.

use crate::plan::RoundsPlan;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use pmmpi::record::Run;
use pmmpi::text::printable;
use pmmpi_events::summary_line::Summary;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// One line, in one write, so that lines of several ranks do not mix. Nothing is left to do about a
/// stderr that cannot be written.
pub fn say(message: impl Display) {
    let _ = std::io::stderr().write_all(line(message).as_bytes());
}

fn line(message: impl Display) -> String {
    format!("pmmpi: {}\n", printable(&message.to_string()))
}

/// Something that the user should know and that does not stop the tool.
pub fn warn(message: impl Display) {
    say(format_args!("warning: {message}"));
}

/// Progress through several rounds: a bar where stderr is a terminal, else a line a round.
pub struct Console {
    quiet: bool,
    /// Rounds that are kept.
    runs: u32,
    /// These and the warm-ups.
    rounds: u32,
    bar: Option<ProgressBar>,
}

impl Console {
    /// For one rank to speak for all.
    pub fn new(plan: &RoundsPlan) -> Self {
        let wanted = !plan.quiet && plan.rounds() > 1 && std::io::stderr().is_terminal();
        Self {
            quiet: plan.quiet,
            runs: plan.runs,
            rounds: plan.rounds(),
            bar: wanted.then(|| bar(plan.rounds())),
        }
    }

    /// For a rank that leaves the talking to another.
    pub fn silent() -> Self {
        Self { quiet: true, runs: 1, rounds: 1, bar: None }
    }

    /// Round `number` (from 0) begins. Drawn before t0: nothing of the tool's runs beside the work.
    pub fn begin(&self, number: u32, warmup: bool) {
        if let Some(bar) = &self.bar {
            bar.set_position(number.into());
            let doing = if warmup { "warm-up" } else { "measuring" };
            let left = bar.elapsed().checked_div(number).map(|round| round * (self.rounds - number));
            bar.set_message(match left {
                Some(left) => format!("{doing}, about {} left", HumanDuration(left)),
                None => doing.to_owned(),
            });
            bar.tick();
        }
    }

    /// Run `number` (from 0) was kept, in `file` if it was saved.
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

    /// No round follows.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// The rounds end early; `kept` of those wanted were measured.
    pub fn stopped(&self, signal: i32, kept: u32) {
        if !self.quiet {
            self.say(format_args!("stopped by signal {signal} after {kept} of {} runs", self.runs));
        }
    }

    /// Above the bar, if there is one.
    pub fn say(&self, message: impl Display) {
        match &self.bar {
            Some(bar) => bar.println(line(message).trim_end()),
            None => say(message),
        }
    }
}

fn bar(rounds: u32) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(rounds.into()), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("pmmpi: [{bar:30}] {pos}/{len} {msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
