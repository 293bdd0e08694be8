//! Checks kernels with known counts by counting every instruction.

use crate::{Check, instructions, unless};
use pmmpi::counters::perf_event_open::Target;
use pmmpi_kernels::{Caches, EMPTY, Function, Memory, PreparedMemory};
use rig::counting::Counted;
use std::process::Command;

/// The counted instructions of each kernel in user mode equal those of its table.
pub fn on_paper() -> Check {
    let (mut counted, mut wrong) = (0, Vec::new());
    // One hardware thread is enough: a thread that already is where it should be makes the same calls.
    let prepared =
        |memory: Memory, trips| memory.prepare(trips, [0, 0], &Caches::default()).map_err(|e| e.to_string());
    let nothing = user_instructions(EMPTY, 0, &prepared(Memory::None, 0)?)?;
    for kernel in pmmpi_kernels::all().iter().filter(|kernel| (kernel.body.runs_here)()) {
        for trips in [1, kernel.trips / 10] {
            let found = user_instructions(kernel.body.run, trips, &prepared(kernel.memory, trips)?)?;
            let (found, paper) = (found.wrapping_sub(nothing) as f64, kernel.body.instructions.of(trips));
            counted += 1;
            if found != paper {
                wrong.push(format!("{} of {trips} trips: {found}, not {paper}", kernel.name));
            }
        }
    }
    let found = if wrong.is_empty() { format!("{counted} calls") } else { wrong.join("; ") };
    unless(counted == 0 || !wrong.is_empty(), found)
}

fn user_instructions(run: Function, trips: u64, memory: &PreparedMemory) -> Result<u64, String> {
    let (start, stride) = (memory.start(), memory.stride());
    // SAFETY: the memory was prepared for this kernel and this number of trips.
    let call = || unsafe { std::hint::black_box(run)(trips, start, stride) };
    Counted::during(&instructions(), Target::ThisThread, call).value("instructions:u")
}

/// The same kernels, one instruction at a time: runs the test of their own crate, if it was built for this machine.
pub fn stepped() -> Check {
    let program = std::env::current_exe().map_err(|e| e.to_string())?.with_file_name("stepped");
    let output = Command::new(&program).output().map_err(|e| format!("{}: {e}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let result =
        text.lines().rfind(|line| line.starts_with("test result")).unwrap_or("it did not come to its end");
    let told = if output.status.success() { result.to_owned() } else { text.replace('\n', " ") };
    unless(!output.status.success(), told)
}
