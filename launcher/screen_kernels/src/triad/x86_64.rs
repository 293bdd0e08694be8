//! STREAM's loops for x86_64 (System V: elements in rdi, the addresses of `to`, `from` and `and` in rsi, rdx and rcx,
//! the scalar in xmm0).
//!
//! A trip works on one vector, because longer trips are not faster. On a Sapphire Rapids, trips with two or four
//! non-temporal stores of 64 bytes reached 70 to 90 % of the bandwidth of trips with one store. With other stores and
//! vectors, longer trips made no difference.

use super::{Loop, Loops};
use std::arch::{is_x86_feature_detected, naked_asm};

/// Makes a loop from the code before the loop, the instructions of a trip, and the code after the loop. Loops with
/// non-temporal stores end with a fence, because their data must be in memory when the time ends.
macro_rules! stream {
    ($name:ident, $width:literal, $before:expr, [$($line:expr),+], $after:literal) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(
            _elements: usize,
            _to: *mut f64,
            _from: *const f64,
            _and: *const f64,
            _scalar: f64,
        ) {
            naked_asm!(
                "lea rsi, [rsi + rdi*8]", "lea rdx, [rdx + rdi*8]", "lea rcx, [rcx + rdi*8]", "neg rdi",
                $before,
                ".p2align 6",
                "2:",
                $($line,)+
                concat!("add rdi, ", $width, "/8"), "jnz 2b",
                $after, "ret",
            )
        }
    };
}

/// The four loops with AVX or AVX-512. Triad uses no fused multiply-add, because the last bits of the result would
/// differ from those of processors without this instruction.
macro_rules! vex {
    ([$copy:ident, $scale:ident, $add:ident, $triad:ident], $v:literal, $width:literal, $store:literal, $after:literal) => {
        vex!($copy, $v, $width, $store, $after, concat!("vmovupd ", $v, "1, [rdx + rdi*8]"));
        vex!($scale, $v, $width, $store, $after, concat!("vmulpd ", $v, "1, ", $v, "7, [rdx + rdi*8]"));
        vex!(
            $add, $v, $width, $store, $after,
            concat!("vmovupd ", $v, "1, [rdx + rdi*8]"),
            concat!("vaddpd ", $v, "1, ", $v, "1, [rcx + rdi*8]")
        );
        vex!(
            $triad, $v, $width, $store, $after,
            concat!("vmulpd ", $v, "1, ", $v, "7, [rcx + rdi*8]"),
            concat!("vaddpd ", $v, "1, ", $v, "1, [rdx + rdi*8]")
        );
    };
    ($name:ident, $v:literal, $width:literal, $store:literal, $after:literal, $($line:expr),+) => {
        stream!(
            $name, $width, concat!("vbroadcastsd ", $v, "7, xmm0"),
            [$($line,)+ concat!($store, " [rsi + rdi*8], ", $v, "1")],
            $after
        );
    };
}

/// The four loops with SSE2.
macro_rules! sse2 {
    ([$copy:ident, $scale:ident, $add:ident, $triad:ident], $store:literal, $after:literal) => {
        sse2!($copy, $store, $after, "movapd xmm1, [rdx + rdi*8]");
        sse2!($scale, $store, $after, "movapd xmm1, [rdx + rdi*8]", "mulpd xmm1, xmm7");
        sse2!($add, $store, $after, "movapd xmm1, [rdx + rdi*8]", "addpd xmm1, [rcx + rdi*8]");
        sse2!(
            $triad, $store, $after,
            "movapd xmm1, [rcx + rdi*8]", "mulpd xmm1, xmm7", "addpd xmm1, [rdx + rdi*8]"
        );
    };
    ($name:ident, $store:literal, $after:literal, $($line:expr),+) => {
        stream!(
            $name, 16, "movapd xmm7, xmm0\nunpcklpd xmm7, xmm7",
            [$($line,)+ concat!($store, " [rsi + rdi*8], xmm1")],
            $after
        );
    };
}

vex!([copy_512, scale_512, add_512, triad_512], "zmm", 64, "vmovupd", "vzeroupper");
vex!([copy_512_nt, scale_512_nt, add_512_nt, triad_512_nt], "zmm", 64, "vmovntpd", "vzeroupper\nsfence");
vex!([copy_256, scale_256, add_256, triad_256], "ymm", 32, "vmovupd", "vzeroupper");
vex!([copy_256_nt, scale_256_nt, add_256_nt, triad_256_nt], "ymm", 32, "vmovntpd", "vzeroupper\nsfence");
sse2!([copy_128, scale_128, add_128, triad_128], "movapd", "");
sse2!([copy_128_nt, scale_128_nt, add_128_nt, triad_128_nt], "movntpd", "sfence");

const fn loops(instructions: &'static str, ordinary: [Loop; 4], non_temporal: [Loop; 4]) -> Loops {
    Loops { instructions, ordinary, non_temporal }
}

/// The loops that this processor can run, widest vectors first.
pub(super) fn all_here() -> Vec<Loops> {
    let mut found = Vec::new();
    if is_x86_feature_detected!("avx512f") {
        let non_temporal = [copy_512_nt as Loop, scale_512_nt, add_512_nt, triad_512_nt];
        found.push(loops("AVX-512", [copy_512, scale_512, add_512, triad_512], non_temporal));
    }
    if is_x86_feature_detected!("avx2") {
        let non_temporal = [copy_256_nt as Loop, scale_256_nt, add_256_nt, triad_256_nt];
        found.push(loops("AVX2", [copy_256, scale_256, add_256, triad_256], non_temporal));
    }
    let non_temporal = [copy_128_nt as Loop, scale_128_nt, add_128_nt, triad_128_nt];
    found.push(loops("SSE2", [copy_128, scale_128, add_128, triad_128], non_temporal));
    found
}
