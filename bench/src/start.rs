//! The time that pmmpi adds to a program that does nothing.

use crate::paired::{Spread, Way, time};
use crate::{Folder, must_succeed, pmmpi};
use std::error::Error;
use std::process::Command;

const ROUNDS: usize = 300;
const PROGRAM: &str = "/bin/true";

/// Alone, under a bare fork + exec + wait, under pmmpi, and under perf stat.
pub fn report(folder: &Folder) -> Result<String, Box<dyn Error>> {
    let bare = folder.compile("cc", "bare")?;
    let (pmmpi, out) = (pmmpi()?, folder.path().join("runs"));
    let mut folders = 0;
    let mut ways = vec![
        Way::new("alone", || must_succeed(&mut Command::new(PROGRAM))),
        Way::new("bare fork + exec + wait", || must_succeed(Command::new(&bare).arg(PROGRAM))),
        Way::new("pmmpi", || must_succeed(Command::new(&pmmpi).arg("--out").arg(&out).arg(PROGRAM))),
        // In a new folder, pmmpi must read facts that an earlier run would have stored for this boot.
        Way::new("pmmpi, first run in a folder", || {
            folders += 1;
            let new = out.join(folders.to_string());
            must_succeed(Command::new(&pmmpi).arg("--out").arg(new).arg(PROGRAM))
        }),
        Way::new("pmmpi --no-save", || must_succeed(Command::new(&pmmpi).args(["--no-save", PROGRAM]))),
    ];
    let perf_works = must_succeed(Command::new("perf").args(["stat", PROGRAM])).is_ok();
    if perf_works {
        ways.push(Way::new("perf stat", || must_succeed(Command::new("perf").args(["stat", PROGRAM]))));
    }
    let table = time(&mut ways, ROUNDS)?;
    let bare_adds = Spread::of(&table, |row| row[1] - row[0]).median;
    let mut text = format!(
        "## A program that does nothing ({PROGRAM}, {ROUNDS} rounds)\n\n\
         | variant | ms | added ms | added time, relative to bare fork + exec + wait |\n|---|---|---|---|\n"
    );
    for (i, way) in ways.iter().enumerate() {
        let whole = Spread::of(&table, |row| row[i]).text(1e3, 2);
        let added = Spread::of(&table, |row| row[i] - row[0]);
        let (adds, multiple) = match i {
            0 => (String::new(), String::new()),
            _ => (added.text(1e3, 2), format!("{:.2}", added.median / bare_adds)),
        };
        text += &format!("| {} | {whole} | {adds} | {multiple} |\n", way.name);
    }
    if !perf_works {
        text += "\n`perf stat` is not installed or does not work here.\n";
    }
    Ok(text)
}
