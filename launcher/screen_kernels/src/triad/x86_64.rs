//! STREAM's loops for x86_64 (System V: elements in rdi, the addresses of `to`, `from` and `and` in rsi, rdx and rcx,
//! the scalar in xmm0). A trip of a loop works on four vectors, k = 0 to 3.

use super::{Loop, Loops};
use std::arch::{is_x86_feature_detected, naked_asm};

/// A loop from its instructions for vector k of a trip. `$fence` ends the function: non-temporal stores must be in
/// memory when the time ends.
macro_rules! stream {
    ($name:ident, $width:literal, $broadcast:expr, $fence:literal, $($line:expr),+) => {
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
                $broadcast,
                ".p2align 6",
                "2:",
                $(".irp k,0,1,2,3", $line, ".endr",)+
                concat!("add rdi, ", $width, "/2"), "jnz 2b",
                $fence, "ret",
            )
        }
    };
}

/// The four loops with AVX or AVX-512.
macro_rules! vex {
    ([$copy:ident, $scale:ident, $add:ident, $triad:ident], $v:literal, $width:literal, $store:literal, $fence:literal) => {
        stream!(
            $copy,
            $width,
            "",
            $fence,
            concat!("vmovupd ", $v, "\\k, [rdx + rdi*8 + ", $width, "*\\k]"),
            concat!($store, " [rsi + rdi*8 + ", $width, "*\\k], ", $v, "\\k")
        );
        stream!(
            $scale,
            $width,
            concat!("vbroadcastsd ", $v, "7, xmm0"),
            $fence,
            concat!("vmulpd ", $v, "\\k, ", $v, "7, [rdx + rdi*8 + ", $width, "*\\k]"),
            concat!($store, " [rsi + rdi*8 + ", $width, "*\\k], ", $v, "\\k")
        );
        stream!(
            $add,
            $width,
            "",
            $fence,
            concat!("vmovupd ", $v, "\\k, [rdx + rdi*8 + ", $width, "*\\k]"),
            concat!("vaddpd ", $v, "\\k, ", $v, "\\k, [rcx + rdi*8 + ", $width, "*\\k]"),
            concat!($store, " [rsi + rdi*8 + ", $width, "*\\k], ", $v, "\\k")
        );
        // Not a fused multiply-add: its result would have other last bits than that of processors without it.
        stream!(
            $triad,
            $width,
            concat!("vbroadcastsd ", $v, "7, xmm0"),
            $fence,
            concat!("vmulpd ", $v, "\\k, ", $v, "7, [rcx + rdi*8 + ", $width, "*\\k]"),
            concat!("vaddpd ", $v, "\\k, ", $v, "\\k, [rdx + rdi*8 + ", $width, "*\\k]"),
            concat!($store, " [rsi + rdi*8 + ", $width, "*\\k], ", $v, "\\k")
        );
    };
}

/// The four loops with SSE2.
macro_rules! sse2 {
    ([$copy:ident, $scale:ident, $add:ident, $triad:ident], $store:literal, $fence:literal) => {
        stream!(
            $copy,
            16,
            "",
            $fence,
            "movapd xmm\\k, [rdx + rdi*8 + 16*\\k]",
            concat!($store, " [rsi + rdi*8 + 16*\\k], xmm\\k")
        );
        stream!(
            $scale,
            16,
            "movapd xmm7, xmm0\nunpcklpd xmm7, xmm7",
            $fence,
            "movapd xmm\\k, [rdx + rdi*8 + 16*\\k]",
            "mulpd xmm\\k, xmm7",
            concat!($store, " [rsi + rdi*8 + 16*\\k], xmm\\k")
        );
        stream!(
            $add,
            16,
            "",
            $fence,
            "movapd xmm\\k, [rdx + rdi*8 + 16*\\k]",
            "addpd xmm\\k, [rcx + rdi*8 + 16*\\k]",
            concat!($store, " [rsi + rdi*8 + 16*\\k], xmm\\k")
        );
        stream!(
            $triad,
            16,
            "movapd xmm7, xmm0\nunpcklpd xmm7, xmm7",
            $fence,
            "movapd xmm\\k, [rcx + rdi*8 + 16*\\k]",
            "mulpd xmm\\k, xmm7",
            "addpd xmm\\k, [rdx + rdi*8 + 16*\\k]",
            concat!($store, " [rsi + rdi*8 + 16*\\k], xmm\\k")
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
