//! Decodes the A64 instructions that the kernels use: Arm Architecture Reference Manual, "A64 instruction set
//! encoding".

use super::Executed;
use std::mem::MaybeUninit;

/// The position of a stopped process.
pub struct Position {
    /// Address of the next instruction.
    pub next: u64,
    link: u64,
}

impl Position {
    pub fn of(process: libc::pid_t) -> Self {
        let mut registers = MaybeUninit::<libc::user_regs_struct>::uninit();
        let bytes = size_of_val(&registers);
        let mut place = libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: bytes };
        // SAFETY: the kernel fills in the whole structure; `iov_len` confirms this.
        let registers = unsafe {
            assert_eq!(libc::ptrace(libc::PTRACE_GETREGSET, process, libc::NT_PRSTATUS, &mut place), 0);
            assert_eq!(place.iov_len, bytes);
            registers.assume_init()
        };
        Self { next: registers.pc, link: registers.regs[30] }
    }

    /// The return address of a function that has just begun: it is in the link register.
    pub fn back(&self) -> u64 {
        self.link
    }
}

const RETURN: u32 = 0xd65f_03c0;

pub struct Decoder;

impl Decoder {
    pub fn new() -> Self {
        Self
    }

    /// # Safety
    /// `place` must be the address of an instruction.
    pub unsafe fn count(&mut self, place: u64, executed: &mut Executed) {
        // SAFETY: the caller guarantees an instruction; instructions are aligned to 4 bytes.
        let code = unsafe { (place as *const u32).read() };
        executed.instructions += 1.0;
        executed.returns += f64::from(u8::from(code == RETURN));
        match code >> 25 & 0xf {
            // Branches, exceptions, system instructions; of the latter two, kernels have only SVC.
            0b1010 | 0b1011 => executed.branches += f64::from(u8::from(code & 0xffe0_001f != SVC)),
            0b0100 | 0b0110 | 0b1100 | 0b1110 => access(code, executed),
            _ => executed.operations += operations(code),
        }
    }
}

const SVC: u32 = 0xd400_0001;

/// Counts loads and stores of one register at an offset, and of pairs.
fn access(code: u32, executed: &mut Executed) {
    let is_vector = code >> 26 & 1 == 1;
    let is_load = code >> 22 & 1 == 1;
    let size = code >> 30;
    let scaled = u64::from(code >> 10 & 0xfff);
    let (bytes, past_the_caches, offset) = match (code >> 27 & 0b111, code >> 23 & 0b111) {
        (0b111, 0b010) => (1 << size, false, scaled << size),
        // LDUR, STUR: an offset in bytes; no kernel has a negative one.
        (0b111, 0b000) if code >> 10 & 0b11 == 0 && code >> 21 & 1 == 0 => {
            (1 << size, false, u64::from(code >> 12 & 0x1ff))
        }
        // Whole vector registers.
        (0b111, 0b011) if is_vector => (16, false, scaled << 4),
        // LDNP, STNP of vector registers
        (0b101, 0b000) if is_vector => (2 * (4 << size), true, 0),
        _ => panic!("no kernel has {code:#010x}"),
    };
    match is_load {
        true => executed.load(bytes.into(), offset),
        false => executed.store(bytes.into(), past_the_caches),
    }
}

/// Operations of FADD, FMUL and FMLA on two doubles.
fn operations(code: u32) -> f64 {
    match code & 0xffe0_fc00 {
        0x4e60_d400 | 0x6e60_dc00 => 2.0,
        0x4e60_cc00 => 4.0,
        _ => 0.0,
    }
}
