//! What the agent takes from its process's environment, and what it leaves there.

use crate::loaded_objects;
use pmmpi::session::launch_origin;
use pmmpi::session::shared_memory::SHARED_MEMORY_VARIABLE;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What the launcher handed down.
struct Handed {
    shared: PathBuf,
    /// That this process is of the launch that the launcher is a rank of.
    same_launch: bool,
}

static HANDED: OnceLock<Handed> = OnceLock::new();
const OWN_NAME: &str = "libpmmpi_agent.so";
const PRELOAD: &CStr = c"LD_PRELOAD";

/// At load time, before the program's main. A wrapper (bash, numactl) keeps the agent for the program that it will
/// start, also where another preloaded library (Darshan) brings an MPI library into it. A program that needs one
/// itself has none of the agent in its environment: what it starts before MPI_Init is not the rank.
pub fn take() {
    let Some(value) = std::env::var_os(SHARED_MEMORY_VARIABLE) else { return };
    let value = value.to_string_lossy();
    let at = value.find(';').unwrap_or(value.len());
    let (shared, origin) = value.split_at(at);
    die_with_launcher(Path::new(shared));
    let same_launch = launch_origin::is_same(origin, |name| std::env::var_os(name));
    let _ = HANDED.set(Handed { shared: shared.into(), same_launch }); // set once: a library is loaded once
    if loaded_objects::program_needs_mpi() {
        leave();
    }
}

/// For whoever kills the launcher means the rank. Only its child: what a wrapper starts is the wrapper's.
fn die_with_launcher(shared: &Path) {
    let launcher =
        shared.strip_prefix("/proc").ok().and_then(|path| path.iter().next()?.to_str()?.parse().ok());
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

/// The shared memory that the launcher made for this rank.
pub fn shared() -> Option<&'static Path> {
    HANDED.get().map(|handed| handed.shared.as_path())
}

/// True where another launcher started this process, below the rank that the agent was given to.
pub fn is_of_another_launch() -> bool {
    HANDED.get().is_some_and(|handed| !handed.same_launch)
}

/// From here on the environment is what it would have been without the tool: what the process starts is not the rank.
///
/// Other libraries' threads may run already, and read the environment. So nothing is allocated, moved to another
/// place or freed: the C library takes a variable out by moving pointers up, under its own lock, and a list that
/// gets shorter stays where it is.
pub fn leave() {
    // SAFETY: C strings. What getenv gives is this process's own and may be written to as far as it reaches.
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

/// What else is preloaded.
fn others(preloaded: &[u8]) -> Vec<u8> {
    let is_own = |path: &[u8]| Path::new(OsStr::from_bytes(path)).file_name() == Some(OsStr::new(OWN_NAME));
    let is_separator = |b: &u8| *b == b':' || *b == b' ';
    let others = preloaded.split(is_separator).filter(|path| !path.is_empty() && !is_own(path));
    others.collect::<Vec<_>>().join(&b':')
}

/// One line on stderr. The workload's own output comes first: a failing write is not reported.
pub fn say(message: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "pmmpi: {message}");
}
