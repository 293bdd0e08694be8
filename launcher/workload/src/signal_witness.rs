//! The witness: a process in the same groups and trees as this process and its child, which gets the same signals
//! as the child.
//!
//! The witness gets a signal to the process group or to each process of a job, but not a signal to this process
//! only. It blocks all signals, sleeps, has no open descriptor and ends with this process. It decides with
//! [`crate::signal_ledger`] which signals to pass on, and sends them to the child itself, so that no handler waits.

use crate::held_signals::HeldSignals;
use crate::signal_ledger::{Got, KERNEL, Ledger, Signal};
use libc::{c_int, c_long, c_void, pid_t};
use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// The witness's PID; 0 if there is none.
static WITNESS: AtomicI32 = AtomicI32::new(0);
/// The PID of a killed witness for which [`end`] must wait; 0 if there is none.
static DISMISSED: AtomicI32 = AtomicI32::new(0);
/// The start of the part of the heap that the witness does not need; 0 before [`note_heap`].
static HEAP: AtomicUsize = AtomicUsize::new(0);

/// The signal by which the handler tells the witness about a signal. It is the last in order, so the witness first gets
/// all other pending signals.
const WORD: c_int = 64;
/// The si_code of a signal that carries a [`Word`]; no other sender uses it.
const WORD_CODE: c_int = -1789;
/// The signal at the end of the parent; the witness then has another parent. The default action ignores this signal,
/// but because it is blocked, it stays pending. It is never passed on.
const PARENT_ENDED: c_int = libc::SIGCHLD;
/// Size of the kernel's signal mask: one bit per signal.
const MASK_BYTES: c_long = 8;

/// The kernel's struct siginfo on 64-bit machines, for SI_QUEUE and similar codes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Word {
    signo: c_int,
    errno: c_int,
    code: c_int,
    padding: c_int,
    sender: pid_t,
    user: u32, // the kernel may change it, so it carries no data
    child: pid_t,
    number: c_int,
    rest: [u64; 12],
}

const _: () = assert!(size_of::<Word>() == size_of::<libc::siginfo_t>());

/// Notes the start of the part of the heap that the witness does not need. Call it before any other allocation. If the
/// witness had this part, the kernel would copy each page to which either process writes. The C library's own
/// allocations are before this part; in a static program, they contain the thread's variables.
pub(crate) fn note_heap() {
    // SAFETY: allocates and frees the same memory.
    let first = unsafe {
        let first = libc::malloc(1);
        libc::free(first);
        first
    };
    HEAP.store(first as usize, Ordering::Release);
}

fn heap_end() -> usize {
    // SAFETY: only reads the end of the heap.
    unsafe { libc::sbrk(0) as usize }
}

/// Tells the kernel whether a new process gets a copy of the heap. This affects only speed.
fn advise_on_heap(advice: c_int) {
    // SAFETY: reads a constant.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let begin = HEAP.load(Ordering::Acquire).next_multiple_of(page);
    let end = heap_end() / page * page;
    if begin != 0 && begin < end {
        // SAFETY: whole pages of the heap; the thread's own variables are before them.
        unsafe { libc::madvise(begin as *mut c_void, end - begin, advice) };
    }
}

/// Starts the witness. Call it once, while this process has one thread. If no process can start (a limit), there is no
/// witness.
pub(crate) fn start() {
    if WITNESS.load(Ordering::Acquire) != 0 {
        return;
    }
    // The witness starts with all signals blocked.
    let held = HeldSignals::back();
    advise_on_heap(libc::MADV_DONTFORK);
    // SAFETY: like fork(2), but this process gets no signal at the child's end. So other code that waits for any child,
    // such as an MPI library, does not see the witness (wait(2), __WCLONE).
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

/// Lets the witness decide whether to pass this signal on to the child. False if no witness can decide.
/// Async-signal-safe.
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
    // SAFETY: an all-zero siginfo is valid, and waitid fills it in; the word has the size that the kernel reads.
    unsafe {
        let mut info: libc::siginfo_t = zeroed();
        let options = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        // A witness that is killed, stopped or already waited for by other code cannot answer.
        libc::waitid(libc::P_PID, witness as libc::id_t, &mut info, options) == 0
            && info.si_pid() == 0
            && libc::syscall(libc::SYS_rt_sigqueueinfo, witness, WORD, &raw const word) == 0
    }
}

/// Kills the witness, because no child is left to pass signals on to. Does not wait for its end.
pub(crate) fn dismiss() {
    let witness = WITNESS.swap(0, Ordering::AcqRel);
    if witness != 0 {
        // SAFETY: the witness is a child for which only this process waits.
        unsafe { libc::kill(witness, libc::SIGKILL) };
        DISMISSED.store(witness, Ordering::Release);
    }
}

/// Kills the witness and waits for its end.
pub(crate) fn end() {
    dismiss();
    let dismissed = DISMISSED.swap(0, Ordering::AcqRel);
    if dismissed != 0 {
        // SAFETY: as above; the witness was killed.
        unsafe { libc::waitpid(dismissed, ptr::null_mut(), libc::__WALL) };
    }
}

/// The sender of a signal, as [`Ledger`] distinguishes senders.
pub(crate) fn sender(info: &libc::siginfo_t) -> pid_t {
    match info.si_code {
        // SAFETY: with these codes, the sender's PID is valid.
        libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL => unsafe { info.si_pid() },
        _ => KERNEL,
    }
}

/// The witness's work while `parent` lives. It must not use the heap.
fn watch(parent: pid_t) -> ! {
    // SAFETY: the calls change this process only.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, PARENT_ENDED);
        be_nobody();
    }
    close_all();
    let mut ledger = Ledger::new();
    loop {
        // SAFETY: reads the current parent.
        let is_orphan = unsafe { libc::getppid() } != parent;
        let wait_ns = match ledger.wait_ns(now_ns()) {
            // The last messages of the parent may still be pending.
            None if is_orphan => Some(0),
            wait_ns => wait_ns,
        };
        match next_signal(wait_ns) {
            Some(info) if info.si_code == WORD_CODE => {
                // SAFETY: the same size, and every bit pattern is valid.
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
            // Now the witness knows all signals sent until now.
            None => {
                if is_orphan && ledger.wait_ns(0).is_none() {
                    // SAFETY: ends this process, which has nothing to clean up.
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

/// Hides the witness from a search by program name (pkill, killall, pidof): such a search is meant for its parent. A
/// signal to both would look as if the child got it, too.
unsafe fn be_nobody() {
    unsafe extern "C" {
        /// From glibc and musl: argv[0] in the kernel's place.
        static mut program_invocation_name: *mut libc::c_char;
    }
    // SAFETY: argv[0] is a C string in this process's own memory, which its parent does not share.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"signal-witness".as_ptr());
        libc::prctl(libc::PR_SET_DUMPABLE, 0); // hides /proc/PID/exe
        let name = program_invocation_name;
        if !name.is_null() {
            libc::memset(name.cast(), 0, libc::strlen(name));
        }
    }
}

/// Closes all descriptors: a pipe ends when its last writer closes it, so the witness must not keep it open.
fn close_all() {
    // SAFETY: the witness uses no descriptor.
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

/// The next pending signal, or `None` after `wait_ns` without one.
fn next_signal(wait_ns: Option<i64>) -> Option<libc::siginfo_t> {
    let all = u64::MAX;
    let wait = wait_ns.map(|ns| libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 });
    loop {
        // SAFETY: all pointers are to live values. The C library's own call would leave out two signals.
        let (number, info) = unsafe {
            let mut info: libc::siginfo_t = zeroed();
            let wait = wait.as_ref().map_or(ptr::null(), ptr::from_ref);
            let all = (&raw const all).cast::<c_void>();
            (libc::syscall(libc::SYS_rt_sigtimedwait, all, &raw mut info, wait, MASK_BYTES), info)
        };
        if number > 0 {
            return Some(info);
        }
        // A stop interrupts the wait: start it again.
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return None;
        }
    }
}

fn is_in_group(child: pid_t) -> bool {
    // SAFETY: the calls access no memory.
    unsafe { libc::getpgid(child) == libc::getpgrp() }
}

fn pass_on(got: Got) {
    // SAFETY: the call accesses no memory. The number stays the child's while the signal waits here, unless the
    // kernel has meanwhile used every other number.
    unsafe { libc::kill(got.child, got.signal.number) };
}

fn now_ns() -> i64 {
    pmmpi::clock::monotonic_ns()
}
