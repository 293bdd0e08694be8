//! Shows on a terminal how many bytes are read. The line disappears when reading ends or Ctrl-C ends the process.

use pmmpi_analysis::input::progress::Progress;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The line appears only if reading takes longer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Moves the cursor to the begin of the line and erases the line.
pub const CLEAR: &str = "\r\x1b[K";

static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Shows progress on stderr if stderr is a terminal.
pub fn show() -> Progress {
    if !io::stderr().is_terminal() {
        return Progress::default();
    }
    clear_when_interrupted();
    let (began, mut last) = (Instant::now(), Instant::now());
    Progress::new(move |done, all| {
        if done >= all {
            return clear();
        }
        if began.elapsed() > PATIENCE && last.elapsed() > PATIENCE / 10 {
            last = Instant::now();
            let [done, all] = [done, all].map(|bytes| bytes.div_ceil(1 << 20));
            IS_SHOWN.store(true, Relaxed);
            // A write error means that the terminal is gone; there is nothing to do.
            let _ = write!(io::stderr(), "\rreading: {done} of {all} MiB");
        }
    })
}

/// Removes the line; call this before other output.
pub fn clear() {
    if IS_SHOWN.swap(false, Relaxed) {
        let _ = write!(io::stderr(), "{CLEAR}");
    }
}

/// Removes the line on Ctrl-C. The process then ends as it would without the line.
fn clear_when_interrupted() {
    extern "C" fn on_signal(signal: libc::c_int) {
        // SAFETY: all three are async-signal-safe (signal-safety(7)), and the bytes have the lifetime `'static`.
        unsafe {
            if IS_SHOWN.load(Relaxed) {
                libc::write(libc::STDERR_FILENO, CLEAR.as_ptr().cast(), CLEAR.len());
            }
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal); // delivered on return
        }
    }
    // SAFETY: see the handler for its safety. If the process ignored SIGINT before, it still does.
    unsafe {
        if libc::signal(libc::SIGINT, on_signal as *const () as libc::sighandler_t) == libc::SIG_IGN {
            libc::signal(libc::SIGINT, libc::SIG_IGN);
        }
    }
}
