//! The cost of a snapshot of the default set, in addition to the system calls that it needs.

use crate::paired::{Spread, Way, time};
use pmmpi::counters::default;
use pmmpi::counters::event::{Encoding, Event, kind};
use pmmpi::counters::open_counters::{OpenCounters, Scope};
use pmmpi::counters::perf_event_open::{Counters, Inherited, Target};
use pmmpi::counters::thread_counter::ThreadCounter;
use std::error::Error;
use std::fmt::Write;
use std::sync::atomic::AtomicU64;

const ROUNDS: usize = 301;
/// Repetitions of each way in a round.
const TIMES: usize = 1000;
const LARGEST_GROUP_BYTES: usize = 256;

type Failed = Box<dyn Error>;

/// Returns Markdown.
pub fn report() -> Result<String, Failed> {
    let mut text = format!("## Counters ({ROUNDS} rounds of {TIMES} repetitions, one thread)\n\n");
    text += &default_set()?;
    text += &four_events()?;
    text += &registers();
    Ok(text)
}

fn default_set() -> Result<String, Failed> {
    let mut counters = Counters::default();
    counters.add(Scope::Task, &default::groups(), &[Target::ThisThread]);
    let handles = counters.opened().handles.clone();
    let (events, groups) = (events_of(&counters), handles.len());
    let words = words(counters.opened().words());
    let handed = counters.hand_down()?;
    let mut inherited = Inherited::take(handed.opened, &handed.descriptors);
    let table = time(
        &mut [
            Way::new("bare", || {
                (0..TIMES).try_for_each(|_| handles.iter().try_for_each(|h| bare_read(h.descriptor)))
            }),
            Way::new("snapshot", || {
                (0..TIMES).for_each(|_| counters.snapshot(&words));
                Ok(())
            }),
            Way::new("look", || {
                (0..TIMES).for_each(|_| inherited.verify(usize::MAX));
                Ok(())
            }),
        ],
        ROUNDS,
    )?;
    let mut text = format!(
        "The default set on this machine: {events} events in {groups} group(s).\n\n\
         | operation | us | relative to the bare reads |\n|---|---|---|\n"
    );
    row(&mut text, "bare read(2) of each group", &table, 0);
    row(&mut text, "a snapshot of the default set", &table, 1);
    row(
        &mut text,
        "a check that the descriptors are still pmmpi's (in regions, at most once per 0.1 ms)",
        &table,
        2,
    );
    Ok(text)
}

/// Four of the Linux kernel's own events, which every machine has. They show the gain from a group.
fn four_events() -> Result<String, Failed> {
    let software = |id: u64| Event::counted(&id.to_string(), Encoding::new(kind::SOFTWARE, id));
    let events: Vec<Event> = (1..=4).map(software).collect();
    let grouped = Counters::open(std::slice::from_ref(&events), Target::ThisThread);
    let single = events.into_iter().map(|event| vec![event]).collect::<Vec<_>>();
    let single = Counters::open(&single, Target::ThisThread);
    let mut ways = [(grouped, 7), (single, 16)].map(|(counters, most)| (words(most), counters));
    let [(of_group, group), (of_single, single)] = &mut ways;
    let table = time(
        &mut [
            Way::new("group", || {
                (0..TIMES).for_each(|_| group.snapshot(of_group));
                Ok(())
            }),
            Way::new("single", || {
                (0..TIMES).for_each(|_| single.snapshot(of_single));
                Ok(())
            }),
        ],
        ROUNDS,
    )?;
    let mut text =
        "\n| four events of the Linux kernel | us | relative to the group |\n|---|---|---|\n".to_owned();
    row(&mut text, "in one group: one system call", &table, 0);
    row(&mut text, "without a group: four system calls", &table, 1);
    Ok(text)
}

/// A count that the program reads itself, if processor and Linux kernel allow it.
fn registers() -> String {
    const INSTRUCTIONS: u64 = 1;
    let counter = ThreadCounter::open(Encoding::new(kind::HARDWARE, INSTRUCTIONS));
    match counter.map_err(|gap| gap.to_string()).and_then(|counter| time_registers(&counter)) {
        Ok(text) => text,
        Err(why) => format!(
            "\nCounts cannot be read without a system call on this machine (event: instructions): {why}.\n"
        ),
    }
}

fn time_registers(counter: &ThreadCounter) -> Result<String, String> {
    let nothing = || "no register that this thread may read has the count".to_owned();
    let register = counter.register().ok_or_else(nothing)?;
    let failed = || Failed::from("the count is no longer in the register");
    let table = time(
        &mut [
            // SAFETY: `counter` confirmed that this thread may read it, and it stays open.
            Way::new("bare", || {
                (0..TIMES).try_for_each(|_| {
                    unsafe { register.read() }.map(|count| _ = std::hint::black_box(count)).ok_or_else(failed)
                })
            }),
            Way::new("count", || {
                (0..TIMES).try_for_each(|_| {
                    counter.read_register().map(|count| _ = std::hint::black_box(count)).ok_or_else(failed)
                })
            }),
        ],
        ROUNDS,
    );
    let table = table.map_err(|e| e.to_string())?;
    let mut text =
        "\n| a count without a system call | us | relative to the instruction |\n|---|---|---|\n".to_owned();
    row(&mut text, "the bare instruction", &table, 0);
    row(
        &mut text,
        "a count: read the page of the Linux kernel, execute the instruction, read the page again",
        &table,
        1,
    );
    Ok(text)
}

fn events_of(counters: &Counters) -> usize {
    counters.opened().sets.iter().flat_map(|set| &set.groups).map(Vec::len).sum()
}

fn words(count: usize) -> Vec<AtomicU64> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

fn bare_read(descriptor: i32) -> Result<(), Failed> {
    let mut bytes = [0u8; LARGEST_GROUP_BYTES];
    // SAFETY: the kernel writes at most as many bytes as fit.
    let read = unsafe { libc::read(descriptor, bytes.as_mut_ptr().cast(), bytes.len()) };
    std::hint::black_box(&bytes);
    if read > 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
}

fn row(text: &mut String, name: &str, table: &[Vec<f64>], which: usize) {
    let us = Spread::of(table, |row| row[which]).text(1e6 / TIMES as f64, 3);
    let times = Spread::of(table, |row| row[which] / row[0]).text(1.0, 2);
    let _ = writeln!(text, "| {name} | {us} | {times} |"); // a String never fails
}
