//! What programs take, with all that they start: time and memory.

use crate::paired::{Spread, Way, in_turns};
use std::error::Error;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What one process took, those included that it waited for.
pub struct Usage {
    pub elapsed_s: f64,
    /// User and system.
    pub cpu_s: f64,
    /// The most that it ever had. What this program had when it started the process counts, too
    /// (getrusage(2), ru_maxrss is kept across execve): let a child make what is large.
    pub peak_bytes: u64,
}

/// Runs a command to its end; what it says on stderr is the reason if it fails.
pub fn usage(command: &mut Command) -> Result<Usage, Box<dyn Error>> {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default().display().to_string();
    let start = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("{name}: {e}"))?;
    let mut said = Vec::new();
    if let Some(stderr) = &mut child.stderr {
        stderr.read_to_end(&mut said)?;
    }
    let mut status = 0;
    // SAFETY: an all-zero rusage is valid, and the call fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::wait4(child.id() as i32, &mut status, 0, &mut usage) < 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        usage
    };
    let elapsed_s = start.elapsed().as_secs_f64();
    if status != 0 {
        let said = String::from_utf8_lossy(&said);
        // Advice and traces are indented.
        let last = said.lines().rfind(|line| line.starts_with(|c: char| !c.is_whitespace()));
        return Err(format!("{name} failed: {}", last.unwrap_or("it does not say why")).into());
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    let cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    Ok(Usage { elapsed_s, cpu_s, peak_bytes: usage.ru_maxrss as u64 * 1024 })
}

/// One of those that are measured side by side.
pub struct Program {
    /// What it is and does.
    pub name: String,
    /// Or why it cannot be measured.
    pub command: Result<Command, String>,
}

impl Program {
    pub fn new(name: impl Into<String>, command: Result<Command, String>) -> Self {
        Self { name: name.into(), command }
    }
}

/// What some programs took, round for round.
pub struct Measured {
    /// Of each program its column in the table, or why it has none.
    programs: Vec<(String, Result<usize, String>)>,
    table: Vec<Vec<Usage>>,
}

impl Measured {
    /// In turns, each once before that: so what all read is in memory, and a program that fails is left out.
    pub fn in_turns(programs: Vec<Program>, rounds: usize) -> Result<Self, Box<dyn Error>> {
        let (mut named, mut ways) = (Vec::new(), Vec::new());
        for Program { name, command } in programs {
            let tried = command.and_then(|mut command| {
                usage(&mut command).map_err(|e| e.to_string())?;
                Ok(command)
            });
            let column = tried.map(|mut command| {
                ways.push(Way::new("", move || usage(&mut command)));
                ways.len() - 1
            });
            named.push((name, column));
        }
        Ok(Self { table: in_turns(&mut ways, rounds)?, programs: named })
    }

    /// A table with a line a program. `versus` is the program that the others' times are multiples of.
    pub fn text(&self, heading: &str, versus: Option<usize>) -> String {
        let versus = versus.and_then(|program| self.programs[program].1.as_ref().ok());
        let multiple = if versus.is_some() { " times the first's |" } else { "" };
        let mut text = format!("| {heading} | s | process time, s | peak memory, MB |{multiple}\n");
        text += if versus.is_some() { "|---|---|---|---|---|\n" } else { "|---|---|---|---|\n" };
        for (name, column) in &self.programs {
            let column = match column {
                Ok(column) => *column,
                Err(why) => {
                    text += &format!("| {name} | not measured: {} |\n", why.replace('|', "/"));
                    continue;
                }
            };
            let spread = |value: fn(&Usage) -> f64| Spread::of(&self.table, |row| value(&row[column]));
            text += &format!(
                "| {name} | {} | {} | {:.0} |",
                spread(|usage| usage.elapsed_s).text(1.0, 2),
                spread(|usage| usage.cpu_s).text(1.0, 2),
                spread(|usage| usage.peak_bytes as f64 / 1e6).median,
            );
            text += &match versus {
                Some(first) => {
                    let ratio = Spread::of(&self.table, |row| row[column].elapsed_s / row[*first].elapsed_s);
                    format!(" {} |\n", ratio.text(1.0, 2))
                }
                None => "\n".to_owned(),
            };
        }
        text
    }

    /// How many of its things each program does in a second.
    pub fn rates(&self, things: &[f64]) -> Vec<String> {
        let rate = |(column, things): (usize, &f64)| {
            Spread::of(&self.table, |row| things / row[column].elapsed_s).text(1.0, 0)
        };
        let all = self.programs.iter().all(|(_, column)| column.is_ok());
        things.iter().enumerate().filter(|_| all).map(rate).collect()
    }

    /// The powers of a program's size that its process time and its memory grow by; empty where a size was
    /// not measured.
    pub fn growth(&self, sizes: &[f64]) -> String {
        if self.programs.iter().any(|(_, column)| column.is_err()) {
            return String::new();
        }
        let growth = |value: fn(&Usage) -> f64| {
            Spread::of(&self.table, |row| exponent(sizes, &row.iter().map(value).collect::<Vec<_>>()))
        };
        format!(
            "\nGrows with the power {} in process time, {:.2} in memory (least squares of logarithms, by \
             round).\n",
            growth(|usage| usage.cpu_s).text(1.0, 2),
            growth(|usage| usage.peak_bytes as f64).median,
        )
    }
}

/// The slope of the line through the logarithms, by least squares.
fn exponent(sizes: &[f64], values: &[f64]) -> f64 {
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
    let (x, y) = (logs(sizes), logs(values));
    let (x_mean, y_mean) = (mean(&x), mean(&y));
    let sum = |product: &dyn Fn(f64, f64) -> f64| {
        x.iter().zip(&y).map(|(x, y)| product(x - x_mean, y - y_mean)).sum::<f64>()
    };
    sum(&|x, y| x * y) / sum(&|x, _| x * x)
}
