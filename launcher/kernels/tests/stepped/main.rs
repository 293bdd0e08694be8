//! Compares the expected counts with the machine: the test runs each kernel one instruction at a time (ptrace(2)) and
//! decodes each executed instruction. It uses no performance counters.

#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
mod machine;

use machine::{Decoder, Position};
use pmmpi_kernels::{Body, Caches, EMPTY, Function, Memory, PreparedMemory, all};

/// Sizes of an AMD EPYC 7003's caches.
const CACHES: Caches = Caches { l1_bytes: 32 << 10, l2_bytes: 512 << 10, l3_bytes: 32 << 20 };
/// No test needs more steps; a kernel that exceeds them does not end.
const MOST_STEPS: u64 = 1_000_000;

/// Counts of the executed instructions, without the return.
#[derive(Debug, Default, PartialEq)]
struct Executed {
    instructions: f64,
    branches: f64,
    loads: f64,
    stores: f64,
    /// Floating-point operations on doubles; a multiply-add counts as two.
    operations: f64,
    loaded_bytes: f64,
    stored_bytes: f64,
    /// The part of `stored_bytes` from non-temporal stores.
    streamed_bytes: f64,
    returns: f64,
    /// Loads from two lines.
    split_loads: f64,
}

impl Executed {
    /// `offset` is the distance from an address that a line begins at: base registers of kernels hold such addresses.
    fn load(&mut self, bytes: f64, offset: u64) {
        self.loads += 1.0;
        self.loaded_bytes += bytes;
        self.split_loads += if (offset % 64) as f64 + bytes > 64.0 { 1.0 } else { 0.0 };
    }

    fn store(&mut self, bytes: f64, past_the_caches: bool) {
        self.stores += 1.0;
        self.stored_bytes += bytes;
        self.streamed_bytes += if past_the_caches { bytes } else { 0.0 };
    }
}

struct Child(libc::pid_t);

impl Child {
    /// Starts a copy of this process that stops and then calls `run`.
    fn start(run: Function, trips: u64, memory: &PreparedMemory) -> Self {
        let (start, stride) = (memory.start(), memory.stride());
        // SAFETY: the child only makes system calls and runs the kernel; neither needs a lock.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            // SAFETY: as above; the memory is a copy of the parent's prepared memory.
            unsafe {
                libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                libc::raise(libc::SIGSTOP);
                run(trips, start, stride);
                libc::_exit(0);
            }
        }
        let child = Self(child);
        child.wait();
        child
    }

    fn wait(&self) {
        let mut status = 0;
        // SAFETY: the status is a live local.
        assert_eq!(unsafe { libc::waitpid(self.0, &mut status, 0) }, self.0);
        assert!(libc::WIFSTOPPED(status), "the kernel ended with {status:#x}");
        let signal = libc::WSTOPSIG(status);
        assert!(signal == libc::SIGTRAP || signal == libc::SIGSTOP, "signal {signal}");
    }

    fn step(&self) {
        // SAFETY: a stopped child of this process.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.0, 0, 0) }, 0);
        self.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: a child of this process for which no other code waits.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

fn step_through(run: Function, trips: u64, memory: &PreparedMemory) -> Executed {
    let child = Child::start(run, trips, memory);
    let mut steps = 0;
    let mut step = || {
        steps += 1;
        assert!(steps < MOST_STEPS);
        child.step();
        Position::of(child.0)
    };
    let mut position = Position::of(child.0);
    while position.next != run as *const () as u64 {
        position = step();
    }
    let back = position.back();
    let mut executed = Executed::default();
    let mut decoder = Decoder::new();
    while position.next != back {
        let place = position.next;
        position = step();
        // After a system call, Linux on Arm stops twice; the second stop executes nothing.
        // The last return is no part of the kernel.
        if position.next != place && position.next != back {
            // SAFETY: both processes have the same image, so the address is code here, too.
            unsafe { decoder.count(place, &mut executed) };
        }
    }
    executed
}

fn cpus() -> [u32; 2] {
    // SAFETY: reads the current CPU.
    let here = unsafe { libc::sched_getcpu() } as u32;
    [here, here]
}

#[test]
fn each_kernel_does_what_its_table_says() {
    for kernel in all().iter().filter(|kernel| (kernel.body.runs_here)()) {
        for trips in [1, 2, 29] {
            let memory = kernel.memory.prepare(trips, cpus(), &CACHES).unwrap();
            let executed = step_through(kernel.body.run, trips, &memory);
            let Body { instructions, branches, loads, stores, .. } = kernel.body;
            let paper = [instructions, branches, loads, stores].map(|count| count.of(trips));
            let Executed { instructions, branches, loads, stores, .. } = executed;
            assert_eq!([instructions, branches, loads, stores], paper, "{} of {trips} trips", kernel.name);
            for expected in kernel.expected(&CACHES) {
                let bytes_read = executed.loaded_bytes + executed.stored_bytes - executed.streamed_bytes;
                let counted = match expected.event {
                    "fp_ret_sse_avx_ops.all" => executed.operations,
                    "fp_arith_inst_retired.128b_packed_double" => executed.operations / 2.0,
                    "fp_arith_inst_retired.256b_packed_double" => executed.operations / 4.0,
                    "dram_read_bytes" => bytes_read,
                    "dram_write_bytes" => executed.stored_bytes,
                    "page_faults" => executed.stores,
                    "L1-dcache-loads" => executed.loads,
                    "L1-dcache-stores" => executed.stores,
                    "near_returns" => executed.returns,
                    "split_loads" => executed.split_loads,
                    _ => continue,
                };
                // The count of the code is the middle of the range, or 0 if only other code causes the event.
                let [low, high] = [expected.low.of(trips), expected.high.of(trips)];
                let middle = if low == 0.0 { 0.0 } else { (low + high) / 2.0 };
                assert!((counted - middle).abs() < 1e-6, "{} {expected:?}: {counted}", kernel.name);
            }
        }
    }
}

#[test]
fn an_empty_one_does_nothing() {
    let memory = Memory::None.prepare(0, cpus(), &CACHES).unwrap();
    assert_eq!(step_through(EMPTY, 1, &memory), Executed::default());
}

#[test]
fn kernels_run_to_their_end_in_full_size() {
    for kernel in all().iter().filter(|kernel| (kernel.body.runs_here)()) {
        let memory = kernel.memory.prepare(kernel.trips, cpus(), &CACHES).unwrap();
        // SAFETY: the memory was prepared for this kernel and these trips.
        unsafe { (kernel.body.run)(kernel.trips, memory.start(), memory.stride()) };
    }
}
