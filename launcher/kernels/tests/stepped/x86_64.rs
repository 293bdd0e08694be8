//! Instructions of x86_64, by iced-x86.

use super::Executed;
use iced_x86::{DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess};
use std::mem::MaybeUninit;

const LONGEST_INSTRUCTION: usize = 15;

/// Where a stopped process is.
pub struct Position {
    process: libc::pid_t,
    /// The next instruction.
    pub next: u64,
    stack: u64,
}

impl Position {
    pub fn of(process: libc::pid_t) -> Self {
        let mut registers = MaybeUninit::<libc::user_regs_struct>::uninit();
        // SAFETY: the kernel fills in all of it.
        let registers = unsafe {
            assert_eq!(libc::ptrace(libc::PTRACE_GETREGS, process, 0, registers.as_mut_ptr()), 0);
            registers.assume_init()
        };
        Self { process, next: registers.rip, stack: registers.rsp }
    }

    /// Where a function returns to that has just begun: it lies on the stack.
    pub fn back(&self) -> u64 {
        // SAFETY: reads a word of a stopped child's memory.
        unsafe { libc::ptrace(libc::PTRACE_PEEKDATA, self.process, self.stack, 0) as u64 }
    }
}

pub struct Decoder(InstructionInfoFactory);

impl Decoder {
    pub fn new() -> Self {
        Self(InstructionInfoFactory::new())
    }

    /// # Safety
    /// An instruction is there.
    pub unsafe fn count(&mut self, place: u64, executed: &mut Executed) {
        // SAFETY: the caller's; code goes on beyond it.
        let code = unsafe { std::slice::from_raw_parts(place as *const u8, LONGEST_INSTRUCTION) };
        let instruction = iced_x86::Decoder::with_ip(64, code, place, DecoderOptions::NONE).decode();
        assert!(!instruction.is_invalid());
        let flow = instruction.flow_control();
        if flow == FlowControl::Return {
            return;
        }
        executed.instructions += 1.0;
        // A system call is none: no kernel here calls a function.
        let branches = [FlowControl::ConditionalBranch, FlowControl::UnconditionalBranch];
        executed.branches += f64::from(u8::from(branches.contains(&flow)));
        executed.operations += operations(instruction.mnemonic());
        for memory in self.0.info(&instruction).used_memory() {
            let bytes = memory.memory_size().size() as f64;
            match memory.access() {
                OpAccess::Read => executed.load(bytes),
                OpAccess::Write => executed.store(bytes, instruction.mnemonic() == Mnemonic::Movntpd),
                // lea, whose operand is no access
                OpAccess::None | OpAccess::NoMemAccess => {}
                both => panic!("{instruction:?}: {both:?}"),
            }
        }
    }
}

fn operations(code: Mnemonic) -> f64 {
    match code {
        Mnemonic::Mulpd | Mnemonic::Addpd => 2.0,
        Mnemonic::Vfmadd231pd => 8.0,
        _ => 0.0,
    }
}
