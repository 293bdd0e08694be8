//! What the agent takes from its process's environment, and what it leaves there.

use pmmpi::spool::SPOOL_VARIABLE;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

static SPOOL: OnceLock<PathBuf> = OnceLock::new();
const OWN_NAME: &str = "libpmmpi_agent.so";

/// At load time, before the program's main. An MPI program gets the environment that it would have had
/// without the tool; a wrapper (bash, numactl) keeps the agent for the program that it will start.
pub fn take() {
    let Some(spool) = std::env::var_os(SPOOL_VARIABLE) else { return };
    die_with_launcher(Path::new(&spool));
    let _ = SPOOL.set(spool.into()); // set once: a library is loaded once
    if crate::resolve::mpi_is_loaded() {
        // SAFETY: the loader runs constructors before main, when the process has one thread.
        unsafe { scrub() };
    }
}

/// For whoever kills the launcher means the rank. Only its child: what a wrapper starts is the wrapper's.
fn die_with_launcher(spool: &Path) {
    let launcher =
        spool.strip_prefix("/proc").ok().and_then(|path| path.iter().next()?.to_str()?.parse().ok());
    // SAFETY: no memory is involved.
    unsafe {
        if launcher == Some(libc::getppid()) {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // It may have died in between, and then sends nothing any more.
            if launcher != Some(libc::getppid()) {
                libc::raise(libc::SIGKILL);
            }
        }
    }
}

/// The spool that the launcher made for this rank.
pub fn spool() -> Option<&'static Path> {
    SPOOL.get().map(PathBuf::as_path)
}

/// # Safety
/// No other thread may use the environment.
unsafe fn scrub() {
    // SAFETY: the caller promises one thread.
    unsafe { std::env::remove_var(SPOOL_VARIABLE) };
    let Some(preloaded) = std::env::var_os("LD_PRELOAD") else { return };
    let is_separator = |b: &u8| *b == b':' || *b == b' ';
    let others = preloaded
        .as_bytes()
        .split(is_separator)
        .filter(|path| !path.is_empty() && !path.ends_with(OWN_NAME.as_bytes()));
    let others = OsString::from_vec(others.collect::<Vec<_>>().join(&b':'));
    // SAFETY: as above.
    unsafe {
        if others.is_empty() {
            std::env::remove_var("LD_PRELOAD");
        } else {
            std::env::set_var("LD_PRELOAD", others);
        }
    }
}

/// One line on stderr. The workload's own output comes first: a failing write is not reported.
pub fn say(message: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "pmmpi: {message}");
}
