//! Decodes x86_64 instructions with iced-x86.

use super::Executed;
use iced_x86::{DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess};
use std::mem::MaybeUninit;

const LONGEST_INSTRUCTION: usize = 15;

/// The position of a stopped process.
pub struct Position {
    process: libc::pid_t,
    /// Address of the next instruction.
    pub next: u64,
    stack: u64,
}

impl Position {
    pub fn of(process: libc::pid_t) -> Self {
        let mut registers = MaybeUninit::<libc::user_regs_struct>::uninit();
        // SAFETY: the kernel fills in the whole structure.
        let registers = unsafe {
            assert_eq!(libc::ptrace(libc::PTRACE_GETREGS, process, 0, registers.as_mut_ptr()), 0);
            registers.assume_init()
        };
        Self { process, next: registers.rip, stack: registers.rsp }
    }

    /// The return address of a function that has just begun: it is on the stack.
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
    /// `place` must be the address of an instruction.
    pub unsafe fn count(&mut self, place: u64, executed: &mut Executed) {
        // SAFETY: the caller guarantees an instruction; more code follows it.
        let code = unsafe { std::slice::from_raw_parts(place as *const u8, LONGEST_INSTRUCTION) };
        let instruction = iced_x86::Decoder::with_ip(64, code, place, DecoderOptions::NONE).decode();
        assert!(!instruction.is_invalid());
        let flow = instruction.flow_control();
        executed.instructions += 1.0;
        // A system call is no branch; iced-x86 calls it FlowControl::Call.
        let is_call = flow == FlowControl::Call && instruction.mnemonic() == Mnemonic::Call;
        let is_return = flow == FlowControl::Return;
        let branches = [FlowControl::ConditionalBranch, FlowControl::UnconditionalBranch];
        executed.branches += f64::from(u8::from(branches.contains(&flow) || is_call || is_return));
        executed.returns += f64::from(u8::from(is_return));
        executed.operations += operations(instruction.mnemonic());
        for memory in self.0.info(&instruction).used_memory() {
            let bytes = memory.memory_size().size() as f64;
            match memory.access() {
                OpAccess::Read => executed.load(bytes, memory.displacement()),
                OpAccess::Write => executed.store(bytes, instruction.mnemonic() == Mnemonic::Movntpd),
                // lea does not access its operand.
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
