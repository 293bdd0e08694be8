//! Signals between whoever sends them, this process and its child: the child gets what it would get if
//! the tool were not there, once.

use crate::held_signals::HeldSignals;
use crate::signal_ledger::Signal;
use crate::signal_witness;
use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering};

/// Not passed on: KILL and STOP cannot be; TTIN and TTOU come from the kernel to the whole group; CHLD is about the
/// child.
const KEPT: [libc::c_int; 5] = [libc::SIGKILL, libc::SIGSTOP, libc::SIGTTIN, libc::SIGTTOU, libc::SIGCHLD];
/// Passed on if somebody sent them; else it is this process that failed.
const FAULTS: [libc::c_int; 7] =
    [libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV, libc::SIGSYS];
/// What a terminal sends, to the whole foreground group: the child has it already, also where no witness says so.
const TYPED: [libc::c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGWINCH];
const ENDING: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
const WRITE_SIGNALS: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

static CHILD: AtomicI32 = AtomicI32::new(0);
/// Signals that came while there was no child, a bit each.
static PENDING: AtomicU64 = AtomicU64::new(0);
static ASKED_TO_END: AtomicI32 = AtomicI32::new(0);
/// Where another process looks for that, if one does.
static NOTED_IN: AtomicPtr<AtomicI32> = AtomicPtr::new(ptr::null_mut());
/// [`forward`] was called.
static FORWARDS: AtomicBool = AtomicBool::new(false);
/// Those of [`WRITE_SIGNALS`] that had their default action, a bit each.
static WERE_DEADLY: AtomicU64 = AtomicU64::new(0);
/// The two signals that glibc's threads use.
const OF_THREADS: [libc::c_int; 2] = [32, 33];
/// Those of [`OF_THREADS`] that were ignored before there was a thread, a bit each.
static WERE_IGNORED: AtomicU64 = AtomicU64::new(0);

fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

/// Signals that reach this process are passed on to the child, now or as soon as there is one; not those that the
/// child got as well (see witness.rs).
pub fn forward() {
    FORWARDS.store(true, Ordering::Release);
    // Where SIGCHLD is ignored the kernel forgets how a child ended. The child itself then starts with
    // the default action, as under timeout(1).
    // SAFETY: sets a disposition; no handler is involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let made_harmless = WERE_DEADLY.load(Ordering::Acquire);
    for signal in passed_on() {
        let before = handle(signal);
        // What was ignored (nohup) stays so.
        if before == libc::SIG_IGN && made_harmless & bit(signal) == 0 {
            // SAFETY: sets a disposition; no handler is involved.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }
}

fn passed_on() -> impl Iterator<Item = libc::c_int> {
    (1..=libc::SIGRTMAX()).filter(|signal| !KEPT.contains(signal))
}

/// Installs the handler, and gives the disposition from before. Async-signal-safe.
fn handle(signal: libc::c_int) -> libc::sighandler_t {
    // SAFETY: the handler calls async-signal-safe functions only. The C library refuses the signals that are its own.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        let mut before: libc::sigaction = zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(signal, &action, &mut before);
        before.sa_sigaction
    }
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

/// To be called before anything allocates.
pub fn begin() {
    signal_witness::note_heap();
}

/// The last child has ended: signals are for this process alone.
pub fn no_more_children() {
    signal_witness::dismiss();
}

/// To be called before there is a second thread or a counter of this process: the witness is a child of its own.
/// Notes the dispositions that the child is to inherit and that change here. A reader of stderr that has gone away, or
/// a limit on file sizes, must not end this process: its child's end is still to be reported.
pub fn prepare() {
    signal_witness::start();
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
        let errno = *libc::__errno_location();
        let sent = (*info).si_code <= 0;
        let is_own = !sent || (*info).si_pid() == libc::getpid();
        if FAULTS.contains(&signal) && is_own {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal); // delivered on return
            return;
        }
        if WRITE_SIGNALS.contains(&signal) && is_own {
            return; // the write fails, and that is all
        }
        note(signal);
        let child = CHILD.load(Ordering::Acquire);
        let is_decided =
            signal_witness::tell(Signal { number: signal, sender: signal_witness::sender(&*info) }, child);
        if child == 0 {
            keep_for_the_child(signal);
        } else if !is_decided && (sent || !TYPED.contains(&signal)) {
            libc::kill(child, signal);
        }
        if signal == libc::SIGTSTP {
            stop();
        }
        *libc::__errno_location() = errno;
    }
}

/// Notes whether a signal asks this process to end.
fn note(signal: libc::c_int) {
    if ENDING.contains(&signal) {
        ASKED_TO_END.store(signal, Ordering::Release);
        // SAFETY: null, or what `note_in` was given.
        if let Some(place) = unsafe { NOTED_IN.load(Ordering::Acquire).as_ref() } {
            place.store(signal, Ordering::Release);
        }
    }
}

fn keep_for_the_child(signal: libc::c_int) {
    PENDING.fetch_or(bit(signal), Ordering::AcqRel);
    // Another thread may have started the child meanwhile, and looked for signals that are pending.
    let child = CHILD.load(Ordering::Acquire);
    if child != 0 && PENDING.fetch_and(!bit(signal), Ordering::AcqRel) & bit(signal) != 0 {
        // SAFETY: no memory is involved.
        unsafe { libc::kill(child, signal) };
    }
}

/// As SIGTSTP does by default: a shell is to see that its job has stopped, and an orphaned group does not stop.
unsafe fn stop() {
    // SAFETY: the set is initialised before it is used, and the calls are async-signal-safe.
    unsafe {
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTSTP);
        libc::signal(libc::SIGTSTP, libc::SIG_DFL);
        libc::raise(libc::SIGTSTP);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, ptr::null_mut()); // here, until somebody says SIGCONT
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
    }
    handle(libc::SIGTSTP);
}

/// From now on signals go to this child, and those first that came before it. What came since it is there waits until
/// signals are no longer held back, and goes the way of all others.
pub(crate) fn hand_to(_: &HeldSignals, child: libc::pid_t) {
    CHILD.store(child, Ordering::Release);
    let pending = PENDING.swap(0, Ordering::AcqRel);
    for signal in passed_on().filter(|signal| pending & bit(*signal) != 0) {
        // SAFETY: no memory is involved.
        unsafe { libc::kill(child, signal) };
    }
}

/// To be called just before the child is made. What came to this process since [`HeldSignals::back`] the child is to get,
/// though the witness may have it as well. In the microseconds between this and the child one to the whole group is
/// taken for one that the child has; after it, for what it is.
pub(crate) fn take_pending(_: &HeldSignals) {
    if !FORWARDS.load(Ordering::Acquire) {
        return;
    }
    // SAFETY: all is initialised before it is used.
    unsafe {
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&mut set);
        for signal in passed_on().filter(|signal| *signal != libc::SIGTSTP) {
            libc::sigaddset(&mut set, signal);
        }
        let mut info: libc::siginfo_t = zeroed();
        let now: libc::timespec = zeroed();
        loop {
            let signal = libc::sigtimedwait(&set, &mut info, &now);
            if signal <= 0 {
                return;
            }
            note(signal);
            signal_witness::tell(Signal { number: signal, sender: signal_witness::sender(&info) }, 0);
            PENDING.fetch_or(bit(signal), Ordering::AcqRel);
        }
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
