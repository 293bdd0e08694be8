//! The witness: a process that is wherever this process and its child are, and so gets what the child gets.
//!
//! A signal to the process group, or to each process of a job in turn, comes to the witness as well; one to this
//! process alone does not. It blocks all signals, sleeps, holds no descriptor, and ends with this process. What it is
//! told of is in [`crate::signal_ledger`]; what the child is owed it sends itself, so that no handler ever waits.

use crate::held_signals::HeldSignals;
use crate::signal_ledger::{Got, KERNEL, Ledger, Signal};
use libc::{c_int, c_long, c_void, pid_t};
use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// 0 where there is none.
static WITNESS: AtomicI32 = AtomicI32::new(0);
/// One that was told to end, and not waited for; 0 where there is none.
static DISMISSED: AtomicI32 = AtomicI32::new(0);
/// From where on the heap is not for the witness; 0 before [`note_heap`].
static HEAP: AtomicUsize = AtomicUsize::new(0);

/// What the handler tells comes as the last of all signals: what is pending with it is known before.
const WORD: c_int = 64;
/// A code that no other sender uses, for a signal that carries a [`Word`].
const WORD_CODE: c_int = -1789;
/// It has ended when this comes and the witness has another parent. Pending though it is ignored by default, since it is
/// blocked, and never passed on.
const PARENT_ENDED: c_int = libc::SIGCHLD;
/// The mask of the kernel's: a bit a signal.
const MASK_BYTES: c_long = 8;

/// struct siginfo as the kernel has it on 64-bit machines, for SI_QUEUE and codes like it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Word {
    signo: c_int,
    errno: c_int,
    code: c_int,
    padding: c_int,
    sender: pid_t,
    user: u32, // the kernel may translate it: nothing can be carried there
    child: pid_t,
    number: c_int,
    rest: [u64; 12],
}

const _: () = assert!(size_of::<Word>() == size_of::<libc::siginfo_t>());

/// To be called before anything else allocates: notes from where on the heap is not for the witness. It would be copied
/// page by page, whichever process writes to it. Before that lies what the C library allocated when it started: a static
/// program's variables of the thread are among it.
pub(crate) fn note_heap() {
    // SAFETY: allocates, and frees the same.
    let first = unsafe {
        let first = libc::malloc(1);
        libc::free(first);
        first
    };
    HEAP.store(first as usize, Ordering::Release);
}

fn heap_end() -> usize {
    // SAFETY: asks where it is.
    unsafe { libc::sbrk(0) as usize }
}

/// Says what becomes of the heap in a process that begins now. Nothing but time depends on it.
fn advise_on_heap(advice: c_int) {
    // SAFETY: asks the C library for a number that it knows.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let begin = HEAP.load(Ordering::Acquire).next_multiple_of(page);
    let end = heap_end() / page * page;
    if begin != 0 && begin < end {
        // SAFETY: whole pages of the heap; what has the thread's own variables lies before its begin.
        unsafe { libc::madvise(begin as *mut c_void, end - begin, advice) };
    }
}

/// To be called once, while there is one thread. Where no process can be made (a limit), there is no witness.
pub(crate) fn start() {
    if WITNESS.load(Ordering::Acquire) != 0 {
        return;
    }
    // The witness begins with all signals blocked.
    let held = HeldSignals::back();
    advise_on_heap(libc::MADV_DONTFORK);
    // SAFETY: as fork(2), with no signal to this process when the child ends: it is of no interest to whoever waits
    // for any child here, an MPI library for example (wait(2), __WCLONE).
    let pid = unsafe {
        let parent = libc::getpid();
        let pid =
            libc::syscall(libc::SYS_clone, 0 as c_long, 0 as c_long, 0 as c_long, 0 as c_long, 0 as c_long);
        if pid == 0 {
            watch(parent);
        }
        pid
    };
    advise_on_heap(libc::MADV_DOFORK);
    WITNESS.store(pid.max(0) as pid_t, Ordering::Release);
    drop(held);
}

/// Leaves it to the witness whether the child is to get this signal. False where there is no witness that could
/// decide. Async-signal-safe.
pub(crate) fn tell(signal: Signal, child: pid_t) -> bool {
    let witness = WITNESS.load(Ordering::Acquire);
    if witness == 0 {
        return false;
    }
    let word = Word {
        signo: WORD,
        errno: 0,
        code: WORD_CODE,
        padding: 0,
        sender: signal.sender,
        user: 0,
        child,
        number: signal.number,
        rest: [0; 12],
    };
    // SAFETY: an all-zero siginfo is valid and waitid fills it in, and the word is as long as the kernel reads.
    unsafe {
        let mut info: libc::siginfo_t = zeroed();
        let options = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        // Killed, stopped, or taken away by who waits for everybody: it would not answer.
        libc::waitid(libc::P_PID, witness as libc::id_t, &mut info, options) == 0
            && info.si_pid() == 0
            && libc::syscall(libc::SYS_rt_sigqueueinfo, witness, WORD, &raw const word) == 0
    }
}

/// Tells the witness to end, since no child is left to pass signals on to, and does not wait for that.
pub(crate) fn dismiss() {
    let witness = WITNESS.swap(0, Ordering::AcqRel);
    if witness != 0 {
        // SAFETY: a child that only this process waits for.
        unsafe { libc::kill(witness, libc::SIGKILL) };
        DISMISSED.store(witness, Ordering::Release);
    }
}

/// Nothing is left of the witness.
pub(crate) fn end() {
    dismiss();
    let dismissed = DISMISSED.swap(0, Ordering::AcqRel);
    if dismissed != 0 {
        // SAFETY: as above; it was killed.
        unsafe { libc::waitpid(dismissed, ptr::null_mut(), libc::__WALL) };
    }
}

/// Who sent a signal, as [`Ledger`] tells senders apart.
pub(crate) fn sender(info: &libc::siginfo_t) -> pid_t {
    match info.si_code {
        // SAFETY: these codes come with the sender's number.
        libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL => unsafe { info.si_pid() },
        _ => KERNEL,
    }
}

/// What the witness does for as long as `parent` lives. It has no heap.
fn watch(parent: pid_t) -> ! {
    // SAFETY: calls about this process alone.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, PARENT_ENDED);
        be_nobody();
    }
    close_all();
    let mut ledger = Ledger::new();
    loop {
        // SAFETY: asks who the parent is now.
        let is_orphan = unsafe { libc::getppid() } != parent;
        let wait_ns = match ledger.wait_ns(now_ns()) {
            // What its parent told last may still be pending.
            None if is_orphan => Some(0),
            wait_ns => wait_ns,
        };
        match next_signal(wait_ns) {
            Some(info) if info.si_code == WORD_CODE => {
                // SAFETY: as long, and all its bits are valid.
                let word: Word = unsafe { std::mem::transmute(info) };
                let signal = Signal { number: word.number, sender: word.sender };
                let got = Got { signal, child: word.child, in_group: is_in_group(word.child) };
                if let Some(at_once) = ledger.got(got, now_ns()) {
                    pass_on(at_once);
                }
            }
            Some(info) => {
                let signal = Signal { number: info.si_signo, sender: sender(&info) };
                ledger.witnessed(signal, now_ns());
            }
            // Only now is everything known that was sent until now.
            None => {
                if is_orphan && ledger.wait_ns(0).is_none() {
                    // SAFETY: ends this process, which has nothing to undo.
                    unsafe { libc::_exit(0) };
                }
                let now_ns = now_ns();
                while let Some(got) = ledger.due(now_ns) {
                    pass_on(got);
                }
            }
        }
    }
}

/// Whoever looks for this program by its name (pkill, killall, pidof) means the process that started this one, and
/// not the child: the witness must not be found.
unsafe fn be_nobody() {
    unsafe extern "C" {
        /// glibc's and musl's: argv[0] where the kernel put it.
        static mut program_invocation_name: *mut libc::c_char;
    }
    // SAFETY: argv[0] is a C string of this process's own, which its parent does not see.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"signal-witness".as_ptr());
        libc::prctl(libc::PR_SET_DUMPABLE, 0); // hides /proc/PID/exe
        let name = program_invocation_name;
        if !name.is_null() {
            libc::memset(name.cast(), 0, libc::strlen(name));
        }
    }
}

/// A pipe ends when the last of its writers closes it: the witness must not be one.
fn close_all() {
    // SAFETY: nothing here uses a descriptor.
    if unsafe { libc::syscall(libc::SYS_close_range, 0, c_int::MAX, 0) } == 0 {
        return;
    }
    // Before Linux 5.9.
    // SAFETY: as above, and the limit is a live local.
    unsafe {
        let mut limit: libc::rlimit = zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        for fd in 0..limit.rlim_cur.min(1 << 16) as c_int {
            libc::close(fd);
        }
    }
}

/// The next signal that is pending here, or `None` after `wait_ns` without one.
fn next_signal(wait_ns: Option<i64>) -> Option<libc::siginfo_t> {
    let all = u64::MAX;
    let wait = wait_ns.map(|ns| libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 });
    loop {
        // SAFETY: all pointers are to live values. The C library's own call would leave two signals out.
        let (number, info) = unsafe {
            let mut info: libc::siginfo_t = zeroed();
            let wait = wait.as_ref().map_or(ptr::null(), ptr::from_ref);
            let all = (&raw const all).cast::<c_void>();
            (libc::syscall(libc::SYS_rt_sigtimedwait, all, &raw mut info, wait, MASK_BYTES), info)
        };
        if number > 0 {
            return Some(info);
        }
        // After a stop the wait begins anew.
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return None;
        }
    }
}

fn is_in_group(child: pid_t) -> bool {
    // SAFETY: no memory is involved.
    unsafe { libc::getpgid(child) == libc::getpgrp() }
}

fn pass_on(got: Got) {
    // SAFETY: no memory is involved. Its number is the child's for longer than a signal waits here, unless every
    // other number was used meanwhile.
    unsafe { libc::kill(got.child, got.signal.number) };
}

fn now_ns() -> i64 {
    pmmpi::clock::monotonic_ns()
}
