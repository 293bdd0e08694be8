//! Hardware exceptions in the process of a kernel of `pmmpi screen`.
//!
//! A flipped bit in a pointer seldom ends in a wrong number: the load fails, and a signal ends the kernel. An uncorrected
//! memory error always ends so. Both are wrong results. So a handler of these signals tells the measuring process, and
//! ends the kernel as after any other wrong result. A signal that another process sent has another `si_code`: it ends the
//! kernel as without the handler.

use std::fmt;
use std::mem::zeroed;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The word before a fault on the socket between the two processes.
pub(crate) const FAULT: u8 = b'f';

const EXCEPTIONS: [libc::c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];
const NUMBERS: usize = 4;
const NUMBER_BYTES: usize = size_of::<i64>();
const MESSAGE_BYTES: usize = 1 + NUMBERS * NUMBER_BYTES;

static SOCKET: AtomicI32 = AtomicI32::new(-1);
static USES_LIBRARY: AtomicBool = AtomicBool::new(false);

/// A hardware exception that is a wrong result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelFault {
    signal: i32,
    /// `si_code` of the signal.
    code: i32,
    /// Of the memory or of the instruction.
    address: u64,
    hardware_thread: i32,
}

/// From now on, this process sends its hardware exceptions on `socket`, and then ends. A library of the user may itself be
/// the cause of an exception, unless this is an uncorrected memory error.
pub(crate) fn send_on(socket: RawFd, uses_library: bool) {
    SOCKET.store(socket, Ordering::Release);
    USES_LIBRARY.store(uses_library, Ordering::Release);
    for signal in EXCEPTIONS {
        // SAFETY: the handler calls only async-signal-safe functions.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = on_exception as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
}

extern "C" fn on_exception(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the Linux kernel passes a valid siginfo; the calls are async-signal-safe (signal-safety(7)).
    unsafe {
        let (code, address) = ((*info).si_code, (*info).si_addr() as u64);
        let fault = KernelFault { signal, code, address, hardware_thread: libc::sched_getcpu() };
        if fault.is_wrong_result(USES_LIBRARY.load(Ordering::Acquire)) {
            let message = fault.message();
            libc::write(SOCKET.load(Ordering::Acquire), message.as_ptr().cast(), message.len());
            libc::_exit(0);
        }
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal); // takes effect when the handler returns
    }
}

impl KernelFault {
    /// What follows [`FAULT`] on the socket; `None` if it is too short.
    pub(crate) fn of_message(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = bytes.get(at * NUMBER_BYTES..(at + 1) * NUMBER_BYTES)?;
            Some(i64::from_le_bytes(bytes.try_into().ok()?))
        };
        Some(Self {
            signal: number(0)? as i32,
            code: number(1)? as i32,
            address: number(2)? as u64,
            hardware_thread: number(3)? as i32,
        })
    }

    /// The message after other bytes, if they end with one.
    pub(crate) fn at_end_of(bytes: &[u8]) -> Option<Self> {
        let message = bytes.last_chunk::<MESSAGE_BYTES>().filter(|message| message[0] == FAULT)?;
        Self::of_message(&message[1..]).filter(|fault| EXCEPTIONS.contains(&fault.signal))
    }

    /// [`FAULT`] and the numbers, without an allocation.
    fn message(self) -> [u8; MESSAGE_BYTES] {
        let Self { signal, code, address, hardware_thread } = self;
        let numbers = [i64::from(signal), i64::from(code), address as i64, i64::from(hardware_thread)];
        let mut message = [FAULT; MESSAGE_BYTES];
        for (place, number) in message[1..].chunks_exact_mut(NUMBER_BYTES).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        message
    }

    fn is_wrong_result(self, uses_library: bool) -> bool {
        let is_sent = self.code <= 0; // by a process
        // The file of the program cannot be read, for example because its file server is away.
        let is_of_file = self.signal == libc::SIGBUS && self.code == libc::BUS_ADRERR;
        self.is_memory_error() || !(is_sent || is_of_file || uses_library)
    }

    /// Memory has lost data, and the processor knows it. On aarch64, the code is often BUS_OBJERR.
    fn is_memory_error(self) -> bool {
        self.signal == libc::SIGBUS
            && matches!(self.code, libc::BUS_OBJERR | libc::BUS_MCEERR_AR | libc::BUS_MCEERR_AO)
    }
}

impl fmt::Display for KernelFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { signal, code, address, hardware_thread } = *self;
        write!(f, "wrong result on hardware thread {hardware_thread}: ")?;
        if self.is_memory_error() {
            return write!(
                f,
                "uncorrected memory error at address 0x{address:x}; take this node out of service and find the memory \
                 module in the system log of the node (machine checks, ECC)"
            );
        }
        write!(f, "a wrong pointer or instruction: signal {signal}")?;
        // Of an address that cannot exist, the processor does not give the value.
        if code != libc::SI_KERNEL {
            write!(f, " at address 0x{address:x}")?;
        }
        write!(f, "; take this node out of service and test its processor and memory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    const ADDRESS: u64 = 0x7f12_3456_7000;
    const SEGV_MAPERR: i32 = 1;

    /// What a process sends that gets this signal, and the signal that ends it (0 if none does).
    fn sent(signal: i32, code: i32, uses_library: bool) -> (Vec<u8>, i32) {
        let (mut here, there) = UnixStream::pair().unwrap();
        // SAFETY: the child calls only async-signal-safe functions. A process may send itself any code; the address is
        // the word after the three numbers and a gap.
        let child = unsafe {
            let child = libc::fork();
            if child == 0 {
                send_on(there.as_raw_fd(), uses_library);
                let mut info: libc::siginfo_t = zeroed();
                info.si_signo = signal;
                info.si_code = code;
                (&raw mut info).cast::<u64>().add(2).write(ADDRESS);
                libc::syscall(libc::SYS_rt_sigqueueinfo, libc::getpid(), signal, &raw const info);
                libc::_exit(1);
            }
            child
        };
        assert!(child > 0);
        drop(there);
        let (mut bytes, mut status) = (Vec::new(), 0);
        here.read_to_end(&mut bytes).unwrap();
        // SAFETY: waits for the child into a live number.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFSIGNALED(status) || libc::WEXITSTATUS(status) == 0, "{status}");
        (bytes, if libc::WIFSIGNALED(status) { libc::WTERMSIG(status) } else { 0 })
    }

    #[test]
    fn an_exception_is_a_wrong_result() {
        for (signal, code, uses_library, told) in [
            (libc::SIGBUS, libc::BUS_MCEERR_AR, false, "uncorrected memory error at address 0x7f1234567000;"),
            (libc::SIGBUS, libc::BUS_MCEERR_AO, true, "uncorrected memory error at address"),
            (libc::SIGBUS, libc::BUS_OBJERR, false, "uncorrected memory error at address"),
            (libc::SIGSEGV, SEGV_MAPERR, false, "signal 11 at address 0x7f1234567000;"),
            (libc::SIGSEGV, libc::SI_KERNEL, false, "signal 11; take"),
            (libc::SIGILL, 1, false, "signal 4 at address"),
            (libc::SIGFPE, 1, false, "signal 8 at address"),
        ] {
            let (bytes, ended_by) = sent(signal, code, uses_library);
            assert_eq!((bytes.first(), ended_by), (Some(&FAULT), 0), "{signal} {code}");
            let fault = KernelFault::of_message(&bytes[1..]).unwrap();
            assert!(fault.to_string().starts_with("wrong result on hardware thread "), "{fault}");
            assert!(fault.to_string().contains(told), "{fault}");
            assert_eq!(KernelFault::of_message(&bytes[2..]), None);
            assert_eq!(KernelFault::at_end_of(&[&b"results"[..], &bytes].concat()), Some(fault));
            assert_eq!(KernelFault::at_end_of(&bytes[1..]), None);
        }
    }

    #[test]
    fn other_signals_end_the_kernel() {
        for (signal, code, uses_library) in [
            (libc::SIGSEGV, libc::SI_USER, false),
            (libc::SIGBUS, libc::SI_TKILL, false),
            (libc::SIGBUS, libc::BUS_ADRERR, false),
            (libc::SIGSEGV, SEGV_MAPERR, true),
            (libc::SIGILL, 1, true),
        ] {
            assert_eq!(sent(signal, code, uses_library), (Vec::new(), signal), "{signal} {code}");
        }
    }
}
