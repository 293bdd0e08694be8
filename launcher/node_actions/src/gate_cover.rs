//! Whether a gate covers a mark: it ran all that found the node slow or wrong, with the same options. A node with bad memory
//! passes if only its cores are measured, and possibly also if only a part of its memory is measured.

use crate::cause::MarkCause;
use crate::measurement::Measurement;
use crate::own_marks::OwnMark;
use crate::reason;
use crate::settings::MeasuredKernel;

/// What a gate measured of the findings of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GateCover {
    /// The reason of the mark that pmmpi set last; `None` if the log has none.
    pub reason: Option<String>,
    /// The findings of the mark that the gate did not measure.
    pub not_measured: Vec<String>,
    /// What a gate must run to measure all findings of the mark, in words.
    pub needed: Vec<String>,
}

impl GateCover {
    /// From the mark in the log, and the kernels of the gate.
    pub(crate) fn new(mark: Option<&OwnMark>, kernels: &[MeasuredKernel]) -> Self {
        let causes = mark.map_or(&[][..], |mark| mark.causes.as_slice());
        let not_measured = causes.iter().filter(|cause| !is_measured(cause, kernels));
        let mut needed: Vec<String> = Vec::new();
        for words in causes.iter().flat_map(needed_for) {
            if !needed.contains(&words) {
                needed.push(words);
            }
        }
        Self {
            reason: mark.and_then(OwnMark::reason).map(str::to_owned),
            not_measured: not_measured.map(|cause| cause.reason.clone()).collect(),
            needed,
        }
    }
}

/// True if the gate ran all that found this. Older logs only have the reason.
fn is_measured(cause: &MarkCause, kernels: &[MeasuredKernel]) -> bool {
    match cause.found_by.is_empty() {
        true => kernels.iter().any(|kernel| is_named(&cause.reason, kernel)),
        false => {
            cause.found_by.iter().all(|found| kernels.iter().any(|kernel| found.is_repeated_by(&kernel.ran)))
        }
    }
}

/// True for `pmmpi: slow-AREA: ...` with the area of this kernel, and `pmmpi: wrong-result: KERNEL ...` with its name.
fn is_named(reason: &str, MeasuredKernel { ran, area }: &MeasuredKernel) -> bool {
    let begins = |begin: String| {
        let rest = reason.strip_prefix(&reason::cleaned(&begin));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    begins(format!("slow-{area}:")) || begins(format!("{} {}", reason::WRONG, ran.kernel))
}

fn needed_for(cause: &MarkCause) -> Vec<String> {
    match cause.found_by.is_empty() {
        true => vec![format!("the kernels and options of the screen that found `{}`", cause.reason)],
        false => cause.found_by.iter().map(Measurement::needed).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::one_change::Act;
    use std::slice;

    const MEMORY: &str = "pmmpi: slow-memory: +8.1 % (at least 7.4 %) 20261126-xyz";
    const WRONG: &str = "pmmpi: wrong-result: triad 20261126-xyz";

    fn ran(kernel: &str, options: &[&str]) -> Measurement {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        Measurement { kernel: kernel.to_owned(), options, ..Measurement::default() }
    }

    fn kernel(kernel: &str, area: &str) -> MeasuredKernel {
        MeasuredKernel { ran: ran(kernel, &[]), area: area.to_owned() }
    }

    fn with(options: &[&str]) -> MeasuredKernel {
        MeasuredKernel { ran: ran("triad", options), area: "memory".to_owned() }
    }

    fn mark(causes: &[(&str, Vec<Measurement>)]) -> OwnMark {
        let cause = |(reason, found_by): &(&str, Vec<Measurement>)| MarkCause {
            reason: (*reason).to_owned(),
            found_by: found_by.clone(),
        };
        let causes: Vec<MarkCause> = causes.iter().map(cause).collect();
        OwnMark { act: Act::Drain(causes[0].reason.clone()), causes }
    }

    /// The findings that are not measured, and what is needed.
    fn missing(mark: &OwnMark, kernels: &[MeasuredKernel]) -> (Vec<String>, Vec<String>) {
        let cover = GateCover::new(Some(mark), kernels);
        (cover.not_measured, cover.needed)
    }

    fn is_measured(mark: &OwnMark, kernels: &[MeasuredKernel]) -> bool {
        missing(mark, kernels).0.is_empty()
    }

    #[test]
    fn the_gate_must_run_the_kernel_that_found_the_node() {
        let slow = mark(&[(MEMORY, vec![ran("triad", &[])])]);
        let (triad, latency) = (kernel("triad", "memory"), kernel("latency", "memory"));
        assert!(is_measured(&slow, &[latency.clone(), triad.clone()]));
        // A chain of loads does not measure the bandwidth.
        assert!(!is_measured(&slow, &[kernel("fma", "compute"), latency]) && !is_measured(&slow, &[]));
        let both = mark(&[(MEMORY, vec![ran("triad", &[]), ran("fma", &[])])]);
        assert!(!is_measured(&both, slice::from_ref(&triad)));
        assert!(is_measured(&both, &[triad, kernel("fma", "compute")]));
    }

    #[test]
    fn the_gate_must_have_the_options_that_found_the_node() {
        let large = ["--memory", "85%"];
        let wrong = mark(&[(WRONG, vec![ran("triad", &large)])]);
        assert!(is_measured(&wrong, &[with(&large)]));
        for options in [&[][..], &["--memory", "1G"], &["--memory", "85%", "--stores", "non-temporal"]] {
            let needed = vec!["`--kernels triad --memory 85%`".to_owned()];
            assert_eq!(missing(&wrong, &[with(options)]), (vec![WRONG.to_owned()], needed), "{options:?}");
        }
        // A program of the same name is something else.
        let program = Measurement { is_program: true, ..ran("triad", &large) };
        let program = MeasuredKernel { ran: program, area: "triad".to_owned() };
        assert!(!is_measured(&wrong, &[program]));
    }

    #[test]
    fn the_gate_must_warm_the_nodes_up_as_long() {
        let hot = |soak_s| Measurement { soak_s, soaked: ["fma".to_owned()].into(), ..ran("fma", &[]) };
        let slow = "pmmpi: slow-compute: +9.0 % 20261126-abc";
        let found = mark(&[(slow, vec![hot(1200)])]);
        let gate = |soak_s| [MeasuredKernel { ran: hot(soak_s), area: "compute".to_owned() }];
        let needed = vec!["`--kernels fma --soak 1200s`".to_owned()];
        assert_eq!(missing(&found, &gate(0)), (vec![slow.to_owned()], needed));
        assert!(is_measured(&found, &gate(1200)) && is_measured(&found, &gate(3600)));
    }

    #[test]
    fn the_gate_must_measure_every_finding() {
        let compute = "pmmpi: slow-compute: +9.0 % 20261126-abc";
        let twice = mark(&[(compute, vec![ran("fma", &[])]), (WRONG, vec![ran("triad", &[])])]);
        let (fma, triad) = (kernel("fma", "compute"), kernel("triad", "memory"));
        let needed = || vec!["`--kernels fma`".to_owned(), "`--kernels triad`".to_owned()];
        assert_eq!(missing(&twice, slice::from_ref(&fma)), (vec![WRONG.to_owned()], needed()));
        assert_eq!(missing(&twice, slice::from_ref(&triad)), (vec![compute.to_owned()], needed()));
        assert_eq!(missing(&twice, &[fma, triad]), (Vec::new(), needed()));
    }

    #[test]
    fn without_the_kernel_in_the_log_the_gate_must_measure_what_the_reason_names() {
        let is_measured =
            |reason, kernels: &[MeasuredKernel]| is_measured(&mark(&[(reason, Vec::new())]), kernels);
        let (triad, latency) = (kernel("triad", "memory"), kernel("latency", "memory"));
        let (fma, own) = (kernel("fma", "compute"), kernel("my \"program\"", "my \"program\""));
        assert!(
            is_measured(MEMORY, &[fma.clone(), latency.clone()])
                && is_measured(MEMORY, slice::from_ref(&triad))
        );
        assert!(!is_measured(MEMORY, slice::from_ref(&fma)) && !is_measured(MEMORY, &[]));
        // A wrong result of triad is one of the memory that triad uses.
        assert!(is_measured(WRONG, &[fma.clone(), triad.clone()]) && !is_measured(WRONG, &[latency]));
        // The reason has the name of a program as Slurm can show it.
        assert!(is_measured("pmmpi: slow-my 'program': +8.1 % xyz", &[own]));
        for odd in ["pmmpi: slow-memory", "pmmpi: slow-memory:x", "pmmpi: wrong-result: triads x", "pmmpi: x"]
        {
            assert!(!is_measured(odd, &[triad.clone(), fma.clone()]), "{odd}");
        }
        let (_, needed) = missing(&mark(&[(MEMORY, Vec::new())]), &[]);
        assert_eq!(needed, [format!("the kernels and options of the screen that found `{MEMORY}`")]);
    }

    #[test]
    fn without_a_mark_in_the_log_there_is_no_reason() {
        assert_eq!(GateCover::new(None, &[kernel("fma", "compute")]).reason, None);
    }
}
