//! Time and memory of programs, including all processes that they start.

use crate::paired::{Spread, Way, in_turns};
use std::error::Error;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The resources of one process, including its children that it waited for.
pub struct Usage {
    pub elapsed_s: f64,
    /// User and system time.
    pub cpu_s: f64,
    /// Peak memory. It includes the memory that this program had when it started the process, because ru_maxrss
    /// survives execve (getrusage(2)). So this program must create large data in a child.
    pub peak_bytes: u64,
}

/// Runs a command to its end. If it fails, the error contains its last message on stderr.
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
    // SAFETY: an all-zero rusage is valid, and the call fills it.
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
        // Advice and traces are indented, so the last line without indentation is the message.
        let last = said.lines().rfind(|line| line.starts_with(|c: char| !c.is_whitespace()));
        return Err(format!("{name} failed: {}", last.unwrap_or("it printed no message")).into());
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    let cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    Ok(Usage { elapsed_s, cpu_s, peak_bytes: usage.ru_maxrss as u64 * 1024 })
}

/// One of several programs that are compared.
pub struct Program {
    /// What it is and what it does.
    pub name: String,
    /// The command, or why it cannot be measured.
    pub command: Result<Command, String>,
}

impl Program {
    pub fn new(name: impl Into<String>, command: Result<Command, String>) -> Self {
        Self { name: name.into(), command }
    }
}

/// The resources of several programs, round by round.
pub struct Measured {
    /// For each program its column in the table, or why it has none.
    programs: Vec<(String, Result<usize, String>)>,
    table: Vec<Vec<Usage>>,
}

impl Measured {
    /// Runs the programs in turns, after one run of each that is not measured. So all input is in memory, and a
    /// program that fails is left out.
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

    /// A table with one line per program. With `versus`, it also shows times as multiples of that program's time.
    pub fn text(&self, heading: &str, versus: Option<usize>) -> String {
        let versus = versus.and_then(|program| self.programs[program].1.as_ref().ok());
        let multiple = if versus.is_some() { " s, relative to the first row |" } else { "" };
        let mut text = format!("| {heading} | s | CPU time, s | peak memory, MB |{multiple}\n");
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

    /// For each program, how many of its items it processes per second.
    pub fn rates(&self, things: &[f64]) -> Vec<String> {
        let rate = |(column, things): (usize, &f64)| {
            Spread::of(&self.table, |row| things / row[column].elapsed_s).text(1.0, 0)
        };
        let all = self.programs.iter().all(|(_, column)| column.is_ok());
        things.iter().enumerate().filter(|_| all).map(rate).collect()
    }

    /// The exponents with which CPU time and memory grow with the size of the input. Empty if a size was not
    /// measured.
    pub fn growth(&self, sizes: &[f64]) -> String {
        if self.programs.iter().any(|(_, column)| column.is_err()) {
            return String::new();
        }
        let growth = |value: fn(&Usage) -> f64| {
            Spread::of(&self.table, |row| exponent(sizes, &row.iter().map(value).collect::<Vec<_>>()))
        };
        format!(
            "\nCPU time grows with the power {} of the input size, peak memory with the power {:.2} (least-squares \
             fits of the logarithms, one per round).\n",
            growth(|usage| usage.cpu_s).text(1.0, 2),
            growth(|usage| usage.peak_bytes as f64).median,
        )
    }
}

/// The slope of a line through the logarithms, by least squares.
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
