//! The progress bar. It appears only if stderr is a terminal.

use crate::messages::{line, say};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt::Display;
use std::io::IsTerminal;
use std::time::Duration;

/// Progress through parts of about equal length.
pub(crate) struct RoundsProgress {
    bar: Option<ProgressBar>,
}

impl RoundsProgress {
    /// Of `parts` parts. Without a bar if `quiet`, or if there is only one part.
    pub fn new(parts: u32, quiet: bool) -> Self {
        let wanted = !quiet && parts > 1 && std::io::stderr().is_terminal();
        Self { bar: wanted.then(|| bar(parts)) }
    }

    /// Without a bar.
    pub fn silent() -> Self {
        Self { bar: None }
    }

    /// True if the user sees a bar.
    pub fn is_bar(&self) -> bool {
        self.bar.is_some()
    }

    /// Shows that part `number` (from 0) begins, and what it is.
    pub fn show(&self, number: u32, doing: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(number.into());
            let parts = u32::try_from(bar.length().unwrap_or_default()).unwrap_or(u32::MAX);
            bar.set_message(format!("{doing}{}", time_left(bar.elapsed(), number, parts)));
            bar.tick();
        }
    }

    /// From now on there are `parts` parts.
    pub fn lengthen(&self, parts: u32) {
        if let Some(bar) = &self.bar {
            bar.set_length(parts.into());
        }
    }

    /// Prints a message, above the bar if there is one.
    pub fn say(&self, message: impl Display) {
        match &self.bar {
            Some(bar) => bar.println(line(message).trim_end()),
            None => say(message),
        }
    }

    /// Removes the bar.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// ", about 20 seconds left": the time that the rest of `all` equal parts needs, if `done` of them took `elapsed`. Empty
/// before the end of the first part.
pub fn time_left(elapsed: Duration, done: u32, all: u32) -> String {
    let left = elapsed.checked_div(done).map(|part| part.saturating_mul(all.saturating_sub(done)));
    left.map_or(String::new(), |left| format!(", about {} left", HumanDuration(left)))
}

fn bar(parts: u32) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(parts.into()), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("pmmpi: [{bar:30}] {pos}/{len} {msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
