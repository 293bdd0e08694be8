//! Times several ways to do the same thing, in turns.

use std::error::Error;
use std::io::IsTerminal;
use std::time::Instant;

/// One way: its name, and a function that does it once.
pub struct Way<'a, T = ()> {
    pub name: &'a str,
    pub once: Box<dyn FnMut() -> Result<T, Box<dyn Error>> + 'a>,
}

impl<'a, T> Way<'a, T> {
    pub fn new(name: &'a str, once: impl FnMut() -> Result<T, Box<dyn Error>> + 'a) -> Self {
        Self { name, once: Box::new(once) }
    }
}

/// Seconds of each way, one row per round, after one round that is not measured.
pub fn time(ways: &mut [Way], rounds: usize) -> Result<Vec<Vec<f64>>, Box<dyn Error>> {
    for way in ways.iter_mut() {
        (way.once)()?;
    }
    let timed = |way| {
        let Way { name, once }: &mut Way = way;
        Way::new(name, || {
            let start = Instant::now();
            once()?;
            Ok(start.elapsed().as_secs_f64())
        })
    };
    in_turns(&mut ways.iter_mut().map(timed).collect::<Vec<_>>(), rounds)
}

/// Results of each way, one row per round.
pub fn in_turns<T>(ways: &mut [Way<T>], rounds: usize) -> Result<Vec<Vec<T>>, Box<dyn Error>> {
    let mut table = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let mut row: Vec<Option<T>> = ways.iter().map(|_| None).collect();
        for turn in 0..ways.len() {
            let which = (round + turn) % ways.len();
            row[which] = Some((ways[which].once)()?);
        }
        table.push(row.into_iter().flatten().collect());
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
    /// The spread of a value that `value` computes from each round's row.
    pub fn of<T>(table: &[Vec<T>], value: impl Fn(&[T]) -> f64) -> Self {
        let mut values: Vec<f64> = table.iter().map(|row| value(row)).collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| (values.len() - 1) as f64 * share;
        // With few values the interval is rather too wide.
        let quartiles = [at(0.25).floor(), at(0.75).ceil()];
        Self { median: values[at(0.5).round() as usize], quartiles: quartiles.map(|i| values[i as usize]) }
    }

    /// For example "1.234 (1.200 .. 1.300)", multiplied by `scale`.
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
