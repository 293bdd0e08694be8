//! Checks counts of threads and children.

use crate::{AROUND, Check, INSTRUCTIONS, LOOP, TURNS, cpu_ns, hardware, is_near, unless};
use pmmpi::counters::event::{Encoding, Event, Modes, kind};
use pmmpi::counters::perf_event_open::Target;
use rig::counting::{Counted, alone, handed_down};
use rig::known_counts::{Watched, turns};
use std::process::Command;
use std::thread;

/// Runs the loop on this thread, on other threads, and in children.
pub fn work(threads: u64, children: u64, count: u64) -> Result<(), String> {
    thread::scope(|scope| {
        (0..threads).for_each(|_| drop(scope.spawn(|| turns(count))));
        turns(count);
        (0..children).try_for_each(|_| run(&["0".into(), "0".into(), count.to_string()]))
    })
}

/// Starts this program again with the command `work`.
fn run(args: &[String]) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let status = Command::new(own).arg("work").args(args).status().map_err(|e| e.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("a child ended with {status}")) }
}

const THREADS: u64 = 4;
const CHILDREN: u64 = 2;

/// The counts of the loop on all threads and in all children, without the cost of starting them.
fn followed(target: Target, run: fn(u64) -> Result<(), String>) -> Check {
    let groups = vec![
        vec![Event::counted("instructions:u", hardware(INSTRUCTIONS, Modes::User))],
        vec![Event::counted("task-clock", Encoding::new(kind::SOFTWARE, 1))],
    ];
    let count = |turns| -> Result<(u64, u64, u64), String> {
        let before = cpu_ns()?;
        let mut result = Ok(());
        let counted = Counted::during(&groups, target, || result = run(turns));
        result?;
        Ok((counted.value("instructions:u")?, counted.value("task-clock")?, cpu_ns()? - before))
    };
    let (bare, ..) = count(0)?;
    let (value, clock_ns, cpu_ns) = count(TURNS)?;
    let loops = (1 + THREADS + CHILDREN) * LOOP;
    let found = format!(
        "{} instructions in {} loops; task clock {clock_ns} ns, getrusage {cpu_ns} ns",
        value - bare,
        1 + THREADS + CHILDREN
    );
    unless(!is_near(value - bare, loops, 200) || !is_near(clock_ns, cpu_ns, 20_000), found)
}

pub fn this_thread() -> Check {
    followed(Target::ThisThread, |turns| work(THREADS, CHILDREN, turns))
}

pub fn next_program() -> Check {
    followed(Target::NextProgram, |turns| run(&[THREADS, CHILDREN, turns].map(|number| number.to_string())))
}

/// Reads a counter that the launcher opened, like the preloaded library.
pub fn handed() -> Check {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let told = handed_down(&own, hardware(INSTRUCTIONS, Modes::User), "turns")?;
    let value: u64 = told.parse().map_err(|_| told.clone())?;
    unless(!(LOOP..LOOP + AROUND).contains(&value), told)
}

/// Counts with the processor's watchpoints on all threads.
pub fn watched() -> Check {
    static WATCHED: Watched = Watched::new();
    const WRITES: u64 = 1000;
    let counted = Counted::during(&alone("writes", WATCHED.event()), Target::ThisThread, || {
        thread::scope(|scope| {
            (0..THREADS).for_each(|_| drop(scope.spawn(|| WATCHED.write(WRITES))));
            WATCHED.write(WRITES);
        });
    });
    let value = counted.value("writes")?;
    unless(value != (1 + THREADS) * WRITES, value.to_string())
}
