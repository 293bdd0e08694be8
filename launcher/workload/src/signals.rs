//! Passes signals on to the child. The child gets each signal that it would get without pmmpi, exactly once.

use crate::held_signals::HeldSignals;
use crate::signal_ledger::Signal;
use crate::signal_witness;
use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering};

/// Signals that are not passed on: KILL and STOP cannot be caught, the kernel sends TTIN and TTOU to the whole group,
/// and CHLD is about the child.
const KEPT: [libc::c_int; 5] = [libc::SIGKILL, libc::SIGSTOP, libc::SIGTTIN, libc::SIGTTOU, libc::SIGCHLD];
/// Passed on only if another process sent them; otherwise this process itself has failed.
const FAULTS: [libc::c_int; 7] =
    [libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV, libc::SIGSYS];
/// A terminal sends these to the whole foreground group: the child has them already, even without a witness.
const TYPED: [libc::c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGWINCH];
const ENDING: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
const WRITE_SIGNALS: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

static CHILD: AtomicI32 = AtomicI32::new(0);
/// Signals that came while there was no child, one bit each.
static PENDING: AtomicU64 = AtomicU64::new(0);
static ASKED_TO_END: AtomicI32 = AtomicI32::new(0);
/// Shared memory in which to note `ASKED_TO_END` as well; null if there is none.
static NOTED_IN: AtomicPtr<AtomicI32> = AtomicPtr::new(ptr::null_mut());
/// True after [`forward`].
static FORWARDS: AtomicBool = AtomicBool::new(false);
/// Signals of [`WRITE_SIGNALS`] that had their default action, one bit each.
static WERE_DEADLY: AtomicU64 = AtomicU64::new(0);
/// The two signals that glibc's threads use.
const OF_THREADS: [libc::c_int; 2] = [32, 33];
/// Signals of [`OF_THREADS`] that were ignored before the first thread started, one bit each.
static WERE_IGNORED: AtomicU64 = AtomicU64::new(0);

fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

/// Passes signals of this process on to the child, or to the next child if there is none yet. Leaves out signals that
/// the child got, too (see signal_witness.rs).
pub fn forward() {
    FORWARDS.store(true, Ordering::Release);
    // If SIGCHLD is ignored, the kernel discards the child's exit status. With this change, the child itself starts
    // with the default action, as under timeout(1).
    // SAFETY: sets a disposition; no handler is involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let made_harmless = WERE_DEADLY.load(Ordering::Acquire);
    for signal in passed_on() {
        let before = handle(signal);
        // Signals that were ignored (nohup) stay ignored.
        if before == libc::SIG_IGN && made_harmless & bit(signal) == 0 {
            // SAFETY: sets a disposition; no handler is involved.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }
}

fn passed_on() -> impl Iterator<Item = libc::c_int> {
    (1..=libc::SIGRTMAX()).filter(|signal| !KEPT.contains(signal))
}

/// Installs the handler and gives the old disposition. Async-signal-safe.
fn handle(signal: libc::c_int) -> libc::sighandler_t {
    // SAFETY: the handler calls only async-signal-safe functions. The C library refuses its own signals.
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

/// Forgets the signal that asked this process to end, if it goes on.
pub(crate) fn forget_request() {
    ASKED_TO_END.store(0, Ordering::Release);
}

/// The running child, if there is one.
pub fn child() -> Option<libc::pid_t> {
    let child = CHILD.load(Ordering::Acquire);
    (child != 0).then_some(child)
}

/// Also notes in `place`, in shared memory, each signal that asks this process to end.
pub fn note_in(place: &'static AtomicI32) {
    NOTED_IN.store(ptr::from_ref(place).cast_mut(), Ordering::Release);
}

/// Call this before any allocation.
pub fn begin() {
    signal_witness::note_heap();
}

/// Call this after the last child has ended: signals are then for this process only.
pub fn no_more_children() {
    signal_witness::dismiss();
}

/// Starts the witness and notes the dispositions that the child inherits but that change here. Call this before this
/// process has a second thread or a counter, because the witness is a child of this process. Afterwards SIGPIPE and
/// SIGXFSZ are ignored: a closed stderr or a file size limit must not end this process before it reports its child's
/// end.
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
            libc::raise(signal); // takes effect when the handler returns
            return;
        }
        if WRITE_SIGNALS.contains(&signal) && is_own {
            return; // only the write fails
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
        // SAFETY: null, or the reference that `note_in` got.
        if let Some(place) = unsafe { NOTED_IN.load(Ordering::Acquire).as_ref() } {
            place.store(signal, Ordering::Release);
        }
    }
}

fn keep_for_the_child(signal: libc::c_int) {
    PENDING.fetch_or(bit(signal), Ordering::AcqRel);
    // Another thread may have started the child and read `PENDING` meanwhile.
    let child = CHILD.load(Ordering::Acquire);
    if child != 0 && PENDING.fetch_and(!bit(signal), Ordering::AcqRel) & bit(signal) != 0 {
        // SAFETY: the call accesses no memory.
        unsafe { libc::kill(child, signal) };
    }
}

/// Stops this process as SIGTSTP does by default: the shell sees that its job has stopped, and an orphaned group does
/// not stop.
unsafe fn stop() {
    // SAFETY: the set is initialised before it is used, and the calls are async-signal-safe.
    unsafe {
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTSTP);
        libc::signal(libc::SIGTSTP, libc::SIG_DFL);
        libc::raise(libc::SIGTSTP);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, ptr::null_mut()); // stops here until SIGCONT
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
    }
    handle(libc::SIGTSTP);
}

/// Makes `child` the receiver of signals, and first sends it the signals from before its start. Signals that come while
/// signals are blocked wait, and then the handler passes them on.
pub(crate) fn hand_to(_: &HeldSignals, child: libc::pid_t) {
    CHILD.store(child, Ordering::Release);
    let pending = PENDING.swap(0, Ordering::AcqRel);
    for signal in passed_on().filter(|signal| pending & bit(*signal) != 0) {
        // SAFETY: the call accesses no memory.
        unsafe { libc::kill(child, signal) };
    }
}

/// Takes the signals that came since [`HeldSignals::back`]; the child gets them when it starts, even if the witness has
/// them, too. Call this directly before the child starts. A signal to the whole group in the microseconds between this
/// call and the child's start is lost for the child, because it looks as if the child got it.
pub(crate) fn take_pending(_: &HeldSignals) {
    if !FORWARDS.load(Ordering::Acquire) {
        return;
    }
    // SAFETY: all values are initialised before use.
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

/// Forgets the ended child, because another process may get its number.
pub(crate) fn no_child() {
    CHILD.store(0, Ordering::Release);
}

/// Signals that must have their default action in a child, in addition to those that exec resets.
pub(crate) fn defaults() -> libc::sigset_t {
    // SAFETY: an all-zero set is empty on Linux, and sigaddset gets a live set.
    let mut set: libc::sigset_t = unsafe { zeroed() };
    let deadly = WERE_DEADLY.load(Ordering::Acquire);
    for signal in WRITE_SIGNALS.into_iter().filter(|signal| deadly & bit(*signal) != 0) {
        // SAFETY: as above.
        unsafe { libc::sigaddset(&mut set, signal) };
    }
    // glibc's posix_spawn leaves these two signals ignored unless they are in this set, but its sigaddset refuses them.
    // The set has one bit per signal, starting with signal 1.
    let ignored = WERE_IGNORED.load(Ordering::Acquire);
    for signal in OF_THREADS.into_iter().filter(|signal| ignored & bit(*signal) == 0) {
        // SAFETY: the first word of a sigset_t is valid memory.
        unsafe { *(&raw mut set).cast::<u64>() |= bit(signal) };
    }
    set
}

/// Asks the kernel, because the C library gives no answer about its own signals.
fn is_ignored(signal: libc::c_int) -> bool {
    // struct kernel_sigaction has handler, flags, restorer and mask; the handler is the first word.
    let mut action = [u64::MAX; 4];
    let mask_bytes = 8;
    // SAFETY: the buffer has the size of the kernel's structure; its mask has 8 bytes.
    let code = unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, ptr::null::<u64>(), action.as_mut_ptr(), mask_bytes)
    };
    code == 0 && action[0] == libc::SIG_IGN as u64
}
