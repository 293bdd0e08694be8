//! The variables that the agent takes from the environment, and the state in which it leaves the environment.

use crate::loaded_objects;
use pmmpi::session::launch_origin;
use pmmpi::session::shared_memory::SHARED_MEMORY_VARIABLE;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What the launcher passed in the environment.
struct Handed {
    shared: PathBuf,
    /// True if this process belongs to the same launch as the launcher's rank.
    same_launch: bool,
}

static HANDED: OnceLock<Handed> = OnceLock::new();
const OWN_NAME: &str = "libpmmpi_agent.so";
const PRELOAD: &CStr = c"LD_PRELOAD";

/// Reads the variables at load time, before the program's main. A wrapper (bash, numactl) must keep the agent in the
/// environment for the program that it starts, even if another preloaded library (Darshan) loads an MPI library into
/// it. A program that itself needs an MPI library gets an environment without the agent: the processes that it starts
/// before MPI_Init are not the rank.
pub fn take() {
    let Some(value) = std::env::var_os(SHARED_MEMORY_VARIABLE) else { return };
    let value = value.to_string_lossy();
    let at = value.find(';').unwrap_or(value.len());
    let (shared, origin) = value.split_at(at);
    die_with_launcher(Path::new(shared));
    let same_launch = launch_origin::is_same(origin, |name| std::env::var_os(name));
    let _ = HANDED.set(Handed { shared: shared.into(), same_launch }); // cannot fail: the library loads once
    if loaded_objects::program_needs_mpi() {
        leave();
    }
}

/// Makes the rank die with its launcher, because a kill of the launcher is meant for the rank. This applies only to a
/// direct child of the launcher: a wrapper is responsible for the processes that it starts.
fn die_with_launcher(shared: &Path) {
    let launcher =
        shared.strip_prefix("/proc").ok().and_then(|path| path.iter().next()?.to_str()?.parse().ok());
    // SAFETY: these calls access no memory.
    unsafe {
        if launcher == Some(libc::getppid()) {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // If the launcher died before the prctl, no signal comes.
            if launcher != Some(libc::getppid()) {
                libc::raise(libc::SIGKILL);
            }
        }
    }
}

/// The path of the shared memory that the launcher made for this rank.
pub fn shared() -> Option<&'static Path> {
    HANDED.get().map(|handed| handed.shared.as_path())
}

/// True if another launcher, below the rank, started this process.
pub fn is_of_another_launch() -> bool {
    HANDED.get().is_some_and(|handed| !handed.same_launch)
}

/// Restores the environment as it would be without pmmpi: processes that this process starts are not the rank.
///
/// Threads of other libraries may already run and read the environment. So this function does not move or free its
/// strings: the C library removes a variable by moving pointers, under its own lock, and the shorter LD_PRELOAD
/// overwrites the old one in place.
pub fn leave() {
    // SAFETY: the arguments are C strings. getenv gives memory of this process, writable up to the string's end.
    unsafe {
        libc::unsetenv(SPOOL_NAME.as_ptr());
        let preloaded = libc::getenv(PRELOAD.as_ptr());
        if preloaded.is_null() {
            return;
        }
        let others = others(CStr::from_ptr(preloaded).to_bytes());
        if others.is_empty() {
            libc::unsetenv(PRELOAD.as_ptr());
        } else {
            preloaded.cast::<u8>().copy_from_nonoverlapping(others.as_ptr(), others.len());
            *preloaded.add(others.len()) = 0;
        }
    }
}

const SPOOL_NAME: &CStr = c"PMMPI_SPOOL";
const _: () = assert!(SPOOL_NAME.count_bytes() == SHARED_MEMORY_VARIABLE.len());

/// The other preloaded libraries.
fn others(preloaded: &[u8]) -> Vec<u8> {
    let is_own = |path: &[u8]| Path::new(OsStr::from_bytes(path)).file_name() == Some(OsStr::new(OWN_NAME));
    let is_separator = |b: &u8| *b == b':' || *b == b' ';
    let others = preloaded.split(is_separator).filter(|path| !path.is_empty() && !is_own(path));
    others.collect::<Vec<_>>().join(&b':')
}

/// Prints one line on stderr. Ignores a failed write, because it must not disturb the program.
pub fn say(message: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "pmmpi: {message}");
}
