//! What must be true before pmmpi removes a mark from a node that passed: the log has the mark, and the gate measured what
//! the reason of the mark names. A node with bad memory passes if only its cores are measured.

use crate::reason;
use crate::settings::MeasuredKernel;

/// What pmmpi knows of the mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// The reason of the mark that pmmpi set last; `None` if the log has none.
    pub reason: Option<String>,
    /// True if a kernel of the gate measures what the reason names.
    pub is_measured: bool,
}

impl Proof {
    /// From the reason in the log, and the kernels of the gate.
    pub(crate) fn new(reason: Option<&str>, kernels: &[MeasuredKernel]) -> Self {
        let measures = |reason: &str| kernels.iter().any(|kernel| is_named(reason, kernel));
        Self { reason: reason.map(str::to_owned), is_measured: reason.is_some_and(measures) }
    }
}

/// True for `pmmpi: slow-AREA: ...` with the area of this kernel, and `pmmpi: wrong-result: KERNEL ...` with its name.
fn is_named(reason: &str, MeasuredKernel { kernel, area }: &MeasuredKernel) -> bool {
    let begins = |begin: String| {
        let rest = reason.strip_prefix(&reason::cleaned(&begin));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    begins(format!("slow-{area}:")) || begins(format!("wrong-result: {kernel}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice;

    fn kernel(kernel: &str, area: &str) -> MeasuredKernel {
        MeasuredKernel { kernel: kernel.to_owned(), area: area.to_owned() }
    }

    #[test]
    fn the_gate_must_measure_what_the_reason_names() {
        let is_measured = |reason, kernels: &[MeasuredKernel]| Proof::new(Some(reason), kernels).is_measured;
        let (triad, latency) = (kernel("triad", "memory"), kernel("latency", "memory"));
        let (fma, own) = (kernel("fma", "compute"), kernel("my \"program\"", "my \"program\""));
        let memory = "pmmpi: slow-memory: +8.1 % (at least 7.4 %) 20261126-xyz";
        assert!(
            is_measured(memory, &[fma.clone(), latency.clone()])
                && is_measured(memory, slice::from_ref(&triad))
        );
        assert!(!is_measured(memory, slice::from_ref(&fma)) && !is_measured(memory, &[]));
        // A wrong result of triad is one of the memory that triad uses.
        let wrong = "pmmpi: wrong-result: triad 20261126-xyz";
        assert!(is_measured(wrong, &[fma.clone(), triad.clone()]) && !is_measured(wrong, &[latency]));
        // The reason has the name of a program as Slurm can show it.
        assert!(is_measured("pmmpi: slow-my 'program': +8.1 % xyz", &[own]));
        for odd in ["pmmpi: slow-memory", "pmmpi: slow-memory:x", "pmmpi: wrong-result: triads x", "pmmpi: x"]
        {
            assert!(!is_measured(odd, &[triad.clone(), fma.clone()]), "{odd}");
        }
    }

    #[test]
    fn without_a_mark_in_the_log_nothing_is_measured() {
        assert_eq!(Proof::new(None, &[kernel("fma", "compute")]), Proof { reason: None, is_measured: false });
    }
}
