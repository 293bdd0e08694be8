//! Ways of doing the same thing, timed in turns.

use std::error::Error;
use std::io::IsTerminal;
use std::time::Instant;

/// One way: its name and what does it once.
pub struct Way<'a> {
    pub name: &'a str,
    pub once: Box<dyn FnMut() -> Result<(), Box<dyn Error>> + 'a>,
}

impl<'a> Way<'a> {
    pub fn new(name: &'a str, once: impl FnMut() -> Result<(), Box<dyn Error>> + 'a) -> Self {
        Self { name, once: Box::new(once) }
    }
}

/// Seconds of each way, a row a round; an unmeasured round goes before.
pub fn time(ways: &mut [Way], rounds: usize) -> Result<Vec<Vec<f64>>, Box<dyn Error>> {
    for way in ways.iter_mut() {
        (way.once)()?;
    }
    let mut table = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let mut row = vec![0.0; ways.len()];
        for turn in 0..ways.len() {
            let which = (round + turn) % ways.len();
            let start = Instant::now();
            (ways[which].once)()?;
            row[which] = start.elapsed().as_secs_f64();
        }
        table.push(row);
        if std::io::stderr().is_terminal() {
            let end = if round + 1 == rounds { "\n" } else { "" };
            eprint!("\r{} of {rounds} rounds{end}", round + 1);
        }
    }
    Ok(table)
}

/// Median and quartiles.
pub struct Spread {
    pub median: f64,
    pub quartiles: [f64; 2],
}

impl Spread {
    /// Of a value computed from each round's row.
    pub fn of(table: &[Vec<f64>], value: impl Fn(&[f64]) -> f64) -> Self {
        let mut values: Vec<f64> = table.iter().map(|row| value(row)).collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
        Self { median: at(0.5), quartiles: [at(0.25), at(0.75)] }
    }

    /// "1.234 (1.200 .. 1.300)", scaled.
    pub fn text(&self, scale: f64, decimals: usize) -> String {
        let [low, high] = self.quartiles;
        format!(
            "{:.decimals$} ({:.decimals$} .. {:.decimals$})",
            self.median * scale,
            low * scale,
            high * scale
        )
    }
}
