//! Checks which users may count, and who may read counters without the kernel.

use crate::{AROUND, CYCLES, Check, INSTRUCTIONS, LOOP, TURNS, hardware, unless};
use pmmpi::counters::event::Modes;
use pmmpi::counters::thread_counter::ThreadCounter;
use rig::known_counts::turns;
use rig::perf_rights::{LinuxKernel, wrong_cells};
use std::fs;

pub fn permissions() -> Check {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let (asked, wrong) = wrong_cells(&own, LinuxKernel { has_pmu: true, ..LinuxKernel::running() })?;
    unless(!wrong.is_empty(), if wrong.is_empty() { format!("{asked} cells") } else { wrong.join("; ") })
}

/// Arm's setting; x86 allows it from the start.
const USER_ACCESS: &str = "/proc/sys/kernel/perf_user_access";

/// Allows or forbids that programs read registers. Returns false if the kernel has no such setting.
pub fn user_access(allow: bool) -> Result<bool, String> {
    let has = fs::exists(USER_ACCESS).unwrap_or(false);
    if has {
        fs::write(USER_ACCESS, if allow { "1" } else { "0" }).map_err(|e| format!("{USER_ACCESS}: {e}"))?;
    }
    Ok(has)
}

pub fn registers() -> Check {
    if user_access(false)? {
        let counter = open(INSTRUCTIONS)?;
        if let Some(count) = counter.read_register() {
            return Err(format!("read {count} where it is not allowed"));
        }
        user_access(true)?;
    }
    let mut found = Vec::new();
    for (name, id) in [("instructions", INSTRUCTIONS), ("cycles", CYCLES)] {
        let mut counter = open(id)?;
        let not_there = || format!("{name} is in no register that may be read");
        let kernel_before = counter.read().map_err(|e| e.to_string())?;
        let before = counter.read_register().ok_or_else(not_there)?;
        turns(TURNS);
        let after = counter.read_register().ok_or_else(not_there)?;
        let kernel_after = counter.read().map_err(|e| e.to_string())?;
        let (own, kernel) = (after - before, kernel_after - kernel_before);
        found.push(format!("{name} {own} read here, {kernel} by read(2)"));
        let is_loop = id != INSTRUCTIONS || (LOOP..LOOP + AROUND).contains(&own);
        // Each pair of reads encloses the other: the kernel's count may only be larger, by the cost of the system
        // calls.
        if !is_loop || !(own..own + own / 1000).contains(&kernel) {
            return Err(found.join("; "));
        }
    }
    Ok(found.join("; "))
}

fn open(id: u64) -> Result<ThreadCounter, String> {
    ThreadCounter::open(hardware(id, Modes::User)).map_err(|gap| gap.to_string())
}
