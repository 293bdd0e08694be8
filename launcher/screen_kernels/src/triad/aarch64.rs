//! STREAM's loops for aarch64 (AAPCS64: elements in x0, the addresses of `to`, `from` and `and` in x1, x2 and x3, the
//! scalar in d0). A trip of a loop works on 8 elements. `stnp` only asks the processor for non-temporal stores; some
//! processors make ordinary stores instead.

use super::{Loop, Loops};
use std::arch::naked_asm;

macro_rules! stream {
    ($name:ident: $($line:expr),+ $(,)?) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(
            _elements: usize,
            _to: *mut f64,
            _from: *const f64,
            _and: *const f64,
            _scalar: f64,
        ) {
            naked_asm!(
                "dup v0.2d, v0.d[0]",
                ".p2align 6",
                "2:",
                "ldp q1, q2, [x2]", "ldp q3, q4, [x2, #32]", "add x2, x2, #64",
                $($line,)+
                "add x1, x1, #64",
                "subs x0, x0, #8", "b.ne 2b",
                "ret",
            )
        }
    };
}

/// The four loops with this instruction for stores.
macro_rules! four {
    ([$copy:ident, $scale:ident, $add:ident, $triad:ident], $store:literal) => {
        stream!($copy:
            concat!($store, " q1, q2, [x1]"), concat!($store, " q3, q4, [x1, #32]"),
        );
        stream!($scale:
            "fmul v1.2d, v1.2d, v0.2d", "fmul v2.2d, v2.2d, v0.2d",
            "fmul v3.2d, v3.2d, v0.2d", "fmul v4.2d, v4.2d, v0.2d",
            concat!($store, " q1, q2, [x1]"), concat!($store, " q3, q4, [x1, #32]"),
        );
        stream!($add:
            "ldp q16, q17, [x3]", "ldp q18, q19, [x3, #32]", "add x3, x3, #64",
            "fadd v1.2d, v1.2d, v16.2d", "fadd v2.2d, v2.2d, v17.2d",
            "fadd v3.2d, v3.2d, v18.2d", "fadd v4.2d, v4.2d, v19.2d",
            concat!($store, " q1, q2, [x1]"), concat!($store, " q3, q4, [x1, #32]"),
        );
        // Not a fused multiply-add, because the last bits of its result would differ from those on x86_64.
        stream!($triad:
            "ldp q16, q17, [x3]", "ldp q18, q19, [x3, #32]", "add x3, x3, #64",
            "fmul v16.2d, v16.2d, v0.2d", "fmul v17.2d, v17.2d, v0.2d",
            "fmul v18.2d, v18.2d, v0.2d", "fmul v19.2d, v19.2d, v0.2d",
            "fadd v1.2d, v1.2d, v16.2d", "fadd v2.2d, v2.2d, v17.2d",
            "fadd v3.2d, v3.2d, v18.2d", "fadd v4.2d, v4.2d, v19.2d",
            concat!($store, " q1, q2, [x1]"), concat!($store, " q3, q4, [x1, #32]"),
        );
    };
}

four!([copy, scale, add, triad], "stp");
four!([copy_nt, scale_nt, add_nt, triad_nt], "stnp");

/// The loops that this processor can run.
pub(super) fn all_here() -> Vec<Loops> {
    let non_temporal = [copy_nt as Loop, scale_nt, add_nt, triad_nt];
    vec![Loops { instructions: "NEON", ordinary: [copy, scale, add, triad], non_temporal }]
}
