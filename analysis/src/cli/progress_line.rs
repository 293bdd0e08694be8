//! The line on a terminal that says how far reading has come. Nothing of it stays when reading ends, or Ctrl-C ends it.

use pmmpi_analysis::input::progress::Progress;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Reading that takes no longer is not reported.
const PATIENCE: Duration = Duration::from_secs(1);
/// To the begin of the line, and what is there goes.
pub const CLEAR: &str = "\r\x1b[K";

static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// A line on stderr, where that is a terminal and reading takes its time.
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
            // Nothing is left to do about a terminal that is gone.
            let _ = write!(io::stderr(), "\rreading: {done} of {all} MiB");
        }
    })
}

/// Something else is to be shown.
pub fn clear() {
    if IS_SHOWN.swap(false, Relaxed) {
        let _ = write!(io::stderr(), "{CLEAR}");
    }
}

/// Ctrl-C ends this process as it would without the line.
fn clear_when_interrupted() {
    extern "C" fn on_signal(signal: libc::c_int) {
        // SAFETY: all three are async-signal-safe (signal-safety(7)), and the bytes live for ever.
        unsafe {
            if IS_SHOWN.load(Relaxed) {
                libc::write(libc::STDERR_FILENO, CLEAR.as_ptr().cast(), CLEAR.len());
            }
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal); // delivered on return
        }
    }
    // SAFETY: the handler is as described; where the signal was ignored it stays so.
    unsafe {
        if libc::signal(libc::SIGINT, on_signal as *const () as libc::sighandler_t) == libc::SIG_IGN {
            libc::signal(libc::SIGINT, libc::SIG_IGN);
        }
    }
}
