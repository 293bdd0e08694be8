//! Flips bits in the memory of running processes, as a faulty memory module does.

use crate::tool::processes_of;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Mappings of this size hold the arrays of a kernel (bytes).
const LARGE: u64 = 4 << 20;
/// A mapping may hold the arrays of several threads.
const PLACES: u64 = 64;
/// A cache line (bytes).
const LINE: u64 = 64;

/// Until `is_over`, flips bits of all processes that have this variable in their environment ("NAME=value") and this word in
/// their command line: every 2 ms one bit in each of 64 places of each large mapping, each time in another cache line.
pub fn flip_until(is_over: &AtomicBool, variable: &str, word: &str) {
    for turn in 0.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        for process in processes_of(variable, word) {
            // The process may end at any moment.
            let _ = flip(process, turn);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn flip(process: i32, turn: u64) -> std::io::Result<()> {
    let memory = File::options().read(true).write(true).open(format!("/proc/{process}/mem"))?;
    for line in fs::read_to_string(format!("/proc/{process}/maps"))?.lines() {
        let Some([from, to]) = large_anonymous(line) else { continue };
        for place in 0..PLACES {
            let middle = (to - from) / PLACES * (2 * place + 1) / 2;
            // The kernel `latency` has one pointer in each line, at its begin, where these places often are. After the
            // end of the mapping, nothing can be written.
            let further = LINE * turn % ((to - from) / PLACES / 2);
            // Of a floating-point number, this is the highest bit of the fraction. A pointer is then invalid.
            let at = ((from + middle) & !7) + further + 6;
            let mut byte = [0];
            memory.read_exact_at(&mut byte, at)?;
            memory.write_all_at(&[byte[0] ^ 0x08], at)?;
        }
    }
    Ok(())
}

/// The addresses of a large mapping without a file.
fn large_anonymous(line: &str) -> Option<[u64; 2]> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [range, rights, _, _, "0"] = words[..] else { return None };
    let (from, to) = range.split_once('-')?;
    let [from, to] = [from, to].map(|hex| u64::from_str_radix(hex, 16).ok());
    Some([from?, to?]).filter(|[from, to]| rights.starts_with("rw") && to - from >= LARGE)
}
