//! Signals between whoever sends them, this process and its child: the child gets what it would get if
//! the tool were not there, once.

use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering};

/// Not passed on: KILL and STOP cannot be; TSTP, TTIN and TTOU must stop this process for the shell; CHLD
/// is about the child; PIPE and XFSZ are ignored ([`prepare`]).
const KEPT: [libc::c_int; 8] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGCHLD,
    libc::SIGPIPE,
    libc::SIGXFSZ,
];
/// Passed on if somebody sent them; else it is this process that failed.
const FAULTS: [libc::c_int; 7] =
    [libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV, libc::SIGSYS];
/// What a terminal sends, to the whole foreground group: the child has it already.
const OF_TERMINALS: [libc::c_int; 5] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGCONT, libc::SIGWINCH];
const ENDING: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
const WRITE_SIGNALS: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

static CHILD: AtomicI32 = AtomicI32::new(0);
/// Signals that came while there was no child, a bit each.
static PENDING: AtomicU64 = AtomicU64::new(0);
static ASKED_TO_END: AtomicI32 = AtomicI32::new(0);
/// Where another process looks for that, if one does.
static NOTED_IN: AtomicPtr<AtomicI32> = AtomicPtr::new(ptr::null_mut());
static UNDER_A_LAUNCHER: AtomicBool = AtomicBool::new(false);
/// Those of [`WRITE_SIGNALS`] that had their default action, a bit each.
static WERE_DEADLY: AtomicU64 = AtomicU64::new(0);
/// The two signals that glibc's threads use.
const OF_THREADS: [libc::c_int; 2] = [32, 33];
/// Those of [`OF_THREADS`] that were ignored before there was a thread, a bit each.
static WERE_IGNORED: AtomicU64 = AtomicU64::new(0);

fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

/// Signals that reach this process are passed on to the child, now or as soon as there is one.
///
/// Not those that the child got as well: from the terminal, and from a job launcher, which signals the
/// whole process group (Open MPI's orted, MPICH's proxy and slurmstepd all do). Such a launcher is this
/// process's parent and in another group.
pub fn forward() {
    // Where SIGCHLD is ignored the kernel forgets how a child ended. The child itself then starts with
    // the default action, as under timeout(1).
    // SAFETY: sets a disposition; no handler is involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    for signal in (1..=libc::SIGRTMAX()).filter(|signal| !KEPT.contains(signal)) {
        // SAFETY: installs a handler that calls async-signal-safe functions only. The C library refuses
        // the signals that are its own.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            let mut before: libc::sigaction = zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &action, &mut before);
            // What was ignored (nohup) stays so.
            if before.sa_sigaction == libc::SIG_IGN {
                libc::sigaction(signal, &before, ptr::null_mut());
            }
        }
    }
}

/// Tells [`forward`] that an MPI or batch launcher started this process.
pub fn started_by_launcher() {
    UNDER_A_LAUNCHER.store(true, Ordering::Release);
}

/// The last signal that asked this process to end, if one did.
pub fn asked_to_end() -> Option<i32> {
    let signal = ASKED_TO_END.load(Ordering::Acquire);
    (signal != 0).then_some(signal)
}

/// A signal that asks this process to end is to be noted in memory that it shares, too.
pub fn note_in(place: &'static AtomicI32) {
    NOTED_IN.store(ptr::from_ref(place).cast_mut(), Ordering::Release);
}

/// To be called before there is a second thread: notes the dispositions that the child is to inherit and
/// that change here. A reader of stderr that has gone away, or a limit on file sizes, must not end this
/// process: its child's end is still to be reported.
pub fn prepare() {
    for signal in OF_THREADS.into_iter().filter(|signal| is_ignored(*signal)) {
        WERE_IGNORED.fetch_or(bit(signal), Ordering::AcqRel);
    }
    for signal in WRITE_SIGNALS {
        // SAFETY: sets a disposition; no handler is involved.
        let before = unsafe { libc::signal(signal, libc::SIG_IGN) };
        if before == libc::SIG_DFL {
            WERE_DEADLY.fetch_or(bit(signal), Ordering::AcqRel);
        }
    }
}

extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo; the calls are async-signal-safe (signal-safety(7)).
    unsafe {
        let sent = (*info).si_code <= 0;
        let sender = if sent { (*info).si_pid() } else { 0 };
        if FAULTS.contains(&signal) && (!sent || sender == libc::getpid()) {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal); // delivered on return
            return;
        }
        if ENDING.contains(&signal) {
            ASKED_TO_END.store(signal, Ordering::Release);
            if let Some(place) = NOTED_IN.load(Ordering::Acquire).as_ref() {
                place.store(signal, Ordering::Release);
            }
        }
        let child = CHILD.load(Ordering::Acquire);
        if child == 0 {
            PENDING.fetch_or(bit(signal), Ordering::AcqRel);
            return;
        }
        let parent = libc::getppid();
        let from_launcher = UNDER_A_LAUNCHER.load(Ordering::Acquire)
            && sender == parent
            && libc::getpgid(parent) != libc::getpgrp();
        let from_terminal = !sent && OF_TERMINALS.contains(&signal);
        if !from_terminal && !from_launcher {
            let errno = *libc::__errno_location();
            libc::kill(child, signal);
            *libc::__errno_location() = errno;
        }
    }
}

/// All signals held back while a child is started.
pub(crate) struct Held {
    before: libc::sigset_t,
}

impl Held {
    pub(crate) fn back() -> Self {
        // SAFETY: both sets are initialised before they are used.
        unsafe {
            let mut all: libc::sigset_t = zeroed();
            let mut before: libc::sigset_t = zeroed();
            libc::sigfillset(&mut all);
            libc::sigprocmask(libc::SIG_BLOCK, &all, &mut before);
            Self { before }
        }
    }

    /// The mask from before: the child's.
    pub(crate) fn mask(&self) -> &libc::sigset_t {
        &self.before
    }

    /// From now on signals go to this child, and those first that came before it.
    pub(crate) fn hand_to(&self, child: libc::pid_t) {
        CHILD.store(child, Ordering::Release);
        let pending = PENDING.swap(0, Ordering::AcqRel);
        for signal in (1..=libc::SIGRTMAX()).filter(|signal| pending & bit(*signal) != 0) {
            // SAFETY: no memory is involved.
            unsafe { libc::kill(child, signal) };
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: `before` is what the kernel stored.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}

/// The child has ended: its number may become another process's.
pub(crate) fn no_child() {
    CHILD.store(0, Ordering::Release);
}

/// Signals that must have their default action in a child, beyond those that exec resets.
pub(crate) fn defaults() -> libc::sigset_t {
    // SAFETY: an all-zero set is the empty one on Linux, and sigaddset takes a live set.
    let mut set: libc::sigset_t = unsafe { zeroed() };
    let deadly = WERE_DEADLY.load(Ordering::Acquire);
    for signal in WRITE_SIGNALS.into_iter().filter(|signal| deadly & bit(*signal) != 0) {
        // SAFETY: as above.
        unsafe { libc::sigaddset(&mut set, signal) };
    }
    // glibc's posix_spawn leaves these two ignored, unless they are in this set; its sigaddset refuses to
    // put them there. The set is one bit a signal from 1 on.
    let ignored = WERE_IGNORED.load(Ordering::Acquire);
    for signal in OF_THREADS.into_iter().filter(|signal| ignored & bit(*signal) == 0) {
        // SAFETY: the first word of a sigset_t is valid memory of its own.
        unsafe { *(&raw mut set).cast::<u64>() |= bit(signal) };
    }
    set
}

/// Asks the kernel: the C library answers nothing about its own signals.
fn is_ignored(signal: libc::c_int) -> bool {
    // struct kernel_sigaction: handler, flags, restorer, mask; the handler is its first word.
    let mut action = [u64::MAX; 4];
    let mask_bytes = 8;
    // SAFETY: the buffer is as long as the kernel's structure, of which the mask has 8 bytes.
    let code = unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, ptr::null::<u64>(), action.as_mut_ptr(), mask_bytes)
    };
    code == 0 && action[0] == libc::SIG_IGN as u64
}
