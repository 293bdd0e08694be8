//! Causes in English, with a likely reason for each.

use crate::stats::cause::{Cause, CauseKind, NoCause, Unusual};
use crate::stats::terms::Term;
use std::borrow::Cow;

/// What made the node slow.
pub(super) fn of_cause(cause: &Cause) -> String {
    let more = percent(cause.difference.exp_m1());
    let less = percent(-(-cause.difference).exp_m1());
    match &cause.kind {
        CauseKind::Frequency => {
            format!(
                "its cores ran at a {less} lower frequency; suspect a thermal limit, a power limit, or a \
                 frequency setting of this node"
            )
        }
        CauseKind::NetFrequency => format!(
            "its threads got {less} fewer cycles per second on the processor; suspect a thermal or power \
             limit, halted time, or stolen time (only reference cycles can show which of them it is)"
        ),
        CauseKind::OnCpu => format!(
            "its threads needed {more} more time on the processor; suspect a slower core, stolen time, or \
             more work (only counters of the processor can tell which)"
        ),
        CauseKind::OffCpu(unusual) => format!(
            "its threads were on a processor for {less} less of the time; suspect other programs on the \
             node, or waiting{}",
            in_parentheses(unusual)
        ),
        CauseKind::Utilisation(unusual) => format!(
            "its hardware threads worked {less} less of the time; suspect halts, waiting, or other \
             programs{}",
            in_parentheses(unusual)
        ),
        CauseKind::Stolen => {
            format!(
                "its hardware threads worked {less} less of the time, because the hypervisor gave the time to other \
                 virtual machines"
            )
        }
        CauseKind::Halted { or_in_kernel } => format!(
            "its hardware threads worked {less} less of the time in which the kernel scheduled the program \
             on them; suspect {}",
            match or_in_kernel {
                true => "work in the kernel (not counted), halts by the hardware, or a hypervisor",
                false => "halts by the hardware, or a hypervisor",
            }
        ),
        CauseKind::Instructions => {
            format!("{more} more instructions; suspect busy waiting, or another path through the code")
        }
        CauseKind::KernelInstructions(unusual) => {
            format!("{more} more instructions, most of these in the kernel{}", in_parentheses(unusual))
        }
        CauseKind::Cpi => format!(
            "{more} more cycles per instruction; suspect caches, memory, TLBs, or a shared core (--group \
             memory tells more)"
        ),
        CauseKind::KernelCpi => format!("{more} more cycles per instruction, most of these in the kernel"),
        CauseKind::Cache { fills } => {
            format!(
                "{more} more cycles per instruction; the node's L2 caches read {} more bytes",
                percent(*fills)
            )
        }
        CauseKind::SnoopFilter { fills, bytes } => format!(
            "{more} more cycles per instruction; the node's L2 caches read {} more bytes, and the node read from and \
             wrote to memory {} more bytes; a snoop filter may evict lines that cores still use (huge pages \
             of 1 GiB help)",
            percent(*fills),
            percent(*bytes)
        ),
        CauseKind::Memory => format!(
            "{more} more cycles per instruction, with about the usual number of bytes read from and written to memory, \
             at a lower bandwidth; if memory is the limit, suspect a DIMM, its channel or the uncore's \
             frequency"
        ),
        CauseKind::Imbalance => {
            format!(
                "relative to the mean of the node's ranks, the busiest rank worked {more} longer than is usual in \
                 the class"
            )
        }
        CauseKind::Cpus => format!("its ranks had {less} fewer hardware threads"),
        CauseKind::Uncounted => {
            format!(
                "compared with the counted time, the elapsed time is {more} longer than usual: the node spent time \
                 before or after the work, or the node's clocks disagree"
            )
        }
        CauseKind::Mixed(largest) => {
            let largest: Vec<String> = largest.iter().map(term).collect();
            let largest = largest.join(", ");
            format!(
                "no term both makes up half of the slowdown and is unusual for the class; the largest terms: \
                 {largest}"
            )
        }
    }
}

/// Why no cause is known.
pub(super) fn of_no_cause(none: &NoCause) -> Cow<'static, str> {
    let text = match none {
        NoCause::Alone => "no other node of the class was measured",
        NoCause::OnlySuspects => {
            "most nodes of the session are suspects of earlier sessions, so their counts are \
                                  no reference"
        }
        NoCause::NotSlow => "the verdict is OK",
        NoCause::NothingCounted => "the run has no counts",
        NoCause::Missing { name, reason } => return format!("{name}: {reason}").into(),
        NoCause::NoTerms => "the run counted neither instructions and cycles nor a task clock",
        NoCause::NoReference => {
            "fewer than half of the nodes of the class have the same counters, or the node's time is not \
             above zero"
        }
        NoCause::FewNodes { nodes, needed } => {
            let text =
                format!("{nodes} nodes of the class have the same counters, but a cause needs {needed}");
            return text.into();
        }
        NoCause::NoSlower => {
            "compared with the nodes of the class that counted the same events, the node is \
                              not slower"
        }
    };
    text.into()
}

fn in_parentheses(unusual: &Option<Unusual>) -> String {
    unusual.as_ref().map_or_else(String::new, |Unusual { name, own, usual }| {
        format!(" ({own:.0} {}, usually {usual:.0})", name.replace('_', " "))
    })
}

fn term((term, difference): &(Term, f64)) -> String {
    let name = term.name().trim_start_matches("d_").replace('_', " ");
    format!("{name} {}", percent(difference.exp_m1()))
}

fn percent(fraction: f64) -> String {
    format!("{:.1} %", fraction * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: CauseKind) -> String {
        of_cause(&Cause { kind, difference: 1.1f64.ln(), share: 1.0, score: 9.0 })
    }

    #[test]
    fn a_text_has_the_size_of_the_term() {
        assert!(text(CauseKind::Cpi).starts_with("10.0 % more cycles"));
        // 10 % more time for the same cycles is a frequency lower by 1 - 1 / 1.1.
        assert!(text(CauseKind::Frequency).contains("9.1 % lower"));
    }

    #[test]
    fn an_unusual_count_is_added() {
        let switches = Unusual { name: "context_switches", own: 700.0, usual: 100.0 };
        let with = text(CauseKind::OffCpu(Some(switches)));
        assert!(with.ends_with("(700 context switches, usually 100)"), "{with}");
        assert!(with.starts_with(&text(CauseKind::OffCpu(None))));
    }

    #[test]
    fn the_largest_terms_are_named() {
        let mixed = text(CauseKind::Mixed(vec![(Term::Cpi, 0.1), (Term::OffCpu, 0.05)]));
        assert!(mixed.ends_with("the largest terms: cpi 10.5 %, off cpu 5.1 %"), "{mixed}");
        assert_eq!(of_no_cause(&NoCause::FewNodes { nodes: 3, needed: 5 }).split(' ').next(), Some("3"));
    }
}
