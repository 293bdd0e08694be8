//! Causes of slow nodes and slow runs in English, with a likely reason for each.

use super::percent;
use crate::stats::cause::{Cause, CauseKind, Unusual};
use crate::stats::terms::Term;
use crate::verdicts::named_cause::{Among, NamedCause};
use crate::verdicts::unusual_health::UnusualHealth;
use std::fmt::{Display, Formatter, Result};

impl Display for NamedCause {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (counted, unusual, among) = self.parts();
        let of_counters = counted.into_iter().map(of_cause);
        let of_kernel = unusual.iter().map(|unusual| of_health(unusual, among));
        f.write_str(&of_counters.chain(of_kernel).collect::<Vec<String>>().join("; "))
    }
}

/// For example "thermal throttling of sockets: 214 times during the median run, usually 0".
fn of_health(unusual: &UnusualHealth, among: Among) -> String {
    let what = match unusual.name {
        "socket_throttles" => "thermal throttling of sockets",
        "core_throttles" => "thermal throttling of cores",
        "socket_throttled_ms" => "sockets throttled by heat",
        "memory_errors_corrected" => "corrected memory errors",
        "memory_errors_uncorrected" => "uncorrected memory errors",
        "huge_page_fallbacks" => {
            "small pages instead of huge pages, because the Linux kernel had no huge page"
        }
        "numa_spills" => "memory from another NUMA node, because the preferred NUMA node was full",
        "pages_swapped" => "pages written to swap space or read from it",
        "link_downs" => "a network link went down",
        "link_errors" => "errors on network links",
        "network_drops" => "dropped packets",
        "network_waits" => "ports waited to send",
        "pcie_errors_corrected" => "corrected PCIe errors",
        "gpu_throttled_ms" => "GPUs throttled by heat or power",
        "gpu_memory_errors_corrected" => "corrected errors of GPU memory",
        "gpu_memory_errors_uncorrected" => "uncorrected errors of GPU memory",
        other => other,
    };
    let unit = match unusual.name {
        name if name.ends_with("_ms") => "ms",
        "network_waits" => "ticks",
        _ => "times",
    };
    let during = match among {
        Among::NodesOfClass => "the median run",
        Among::RunsOfNode => "this run",
    };
    format!("{what}: {:.0} {unit} during {during}, usually {:.0}", unusual.own, unusual.usual)
}

/// What made the node slow.
fn of_cause(cause: &Cause) -> String {
    let more = percent(cause.difference.exp_m1());
    let less = percent(-(-cause.difference).exp_m1());
    match &cause.kind {
        CauseKind::Frequency => {
            format!(
                "its cores ran at a {less} lower frequency than usual; suspect a thermal limit, a power limit, or a \
                 frequency setting of this node"
            )
        }
        CauseKind::NetFrequency => format!(
            "its threads got {less} fewer cycles per second on the processor than usual; suspect a thermal or power \
             limit, halted time, or stolen time (only reference cycles can show which one)"
        ),
        CauseKind::OnCpu => format!(
            "its threads needed {more} more time on the processor than usual; suspect a slower core, stolen \
             time, or more work (only counters of the processor can show which one)"
        ),
        CauseKind::OffCpu(unusual) => format!(
            "its threads spent a smaller share of the time on a processor ({less} less than usual); suspect other \
             programs on the node, or waiting{}",
            in_parentheses(unusual)
        ),
        CauseKind::Utilisation(unusual) => format!(
            "its hardware threads worked for a smaller share of the time ({less} less than usual); suspect halts, \
             waiting, or other programs{}",
            in_parentheses(unusual)
        ),
        CauseKind::Stolen => {
            format!(
                "its hardware threads worked for a smaller share of the time ({less} less than usual), because the \
                 hypervisor gave time to other virtual machines"
            )
        }
        CauseKind::Halted { or_in_kernel } => format!(
            "while the Linux kernel let the program run, the node's hardware threads worked for a smaller share of \
             this time ({less} less than usual); suspect {}",
            match or_in_kernel {
                true => "work in the Linux kernel (not counted), halts by the hardware, or a hypervisor",
                false => "halts by the hardware, or a hypervisor",
            }
        ),
        CauseKind::Instructions => {
            format!(
                "{more} more instructions than usual; suspect busy waiting, or another path through the code"
            )
        }
        CauseKind::KernelInstructions(unusual) => {
            format!(
                "{more} more instructions than usual; most of the additional instructions are in the Linux kernel{}",
                in_parentheses(unusual)
            )
        }
        CauseKind::Cpi => format!(
            "{more} more cycles per instruction than usual; suspect caches, memory, TLBs, or a shared core (to \
             find out, measure with --group memory)"
        ),
        CauseKind::KernelCpi => {
            format!(
                "{more} more cycles per instruction than usual; most of the additional cycles are in the Linux \
                 kernel"
            )
        }
        CauseKind::Cache { fills } => {
            format!(
                "{more} more cycles per instruction than usual; the node's L2 caches read {} more bytes",
                percent(*fills)
            )
        }
        CauseKind::CacheAndMemory { fills, bytes } => format!(
            "{more} more cycles per instruction than usual; the node's L2 caches read {} more bytes, and the \
             node read and wrote {} more bytes of memory",
            percent(*fills),
            percent(*bytes)
        ),
        CauseKind::SnoopFilter { fills, reads, evictions } => {
            // The lines that came back need not be more than the L2 caches of usual runs read.
            let fills = match *fills > 0.0 {
                true => format!("the node's L2 caches read {} more bytes; ", percent(*fills)),
                false => String::new(),
            };
            let reads = reads.map(|by| format!("the node read {} more bytes from memory; ", percent(by)));
            let evictions = evictions.map_or_else(
                || "a snoop filter may evict lines that cores still use".to_owned(),
                |by| format!("the snoop filters evicted {} more lines", percent(by)),
            );
            format!(
                "{more} more cycles per instruction than usual; {fills}{}{evictions} (huge pages of 1 GiB help)",
                reads.unwrap_or_default()
            )
        }
        CauseKind::MemoryTraffic { bytes } => format!(
            "{more} more cycles per instruction than usual; the node read and wrote {} more bytes of memory; its L2 \
             caches read a usual number of bytes or fewer (or these bytes were not counted); suspect another \
             program on the node, or fewer hits in the last cache",
            percent(*bytes)
        ),
        CauseKind::Memory => format!(
            "{more} more cycles per instruction than usual; the node read and wrote about as many bytes of \
             memory as usual, but at a lower bandwidth; if memory is the limit, suspect a DIMM, its channel or \
             the uncore's frequency"
        ),
        CauseKind::Imbalance => {
            format!(
                "the ratio of the busiest rank's work to the mean work of the node's ranks is {more} higher \
                 than usual"
            )
        }
        CauseKind::Cpus => format!("its ranks had {less} fewer hardware threads than usual"),
        CauseKind::Uncounted => {
            format!(
                "the ratio of the elapsed time to the counted time is {more} higher than usual: the node spent time \
                 before or after the work, or the node's clocks disagree"
            )
        }
        CauseKind::Mixed(largest) => {
            let largest: Vec<String> = largest.iter().map(term).collect();
            let largest = largest.join(", ");
            format!(
                "the largest term makes up less than half of the slowdown, or is not unusual; the largest \
                 terms: {largest}"
            )
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::cause::NoCause;
    use crate::verdicts::unusual_health::HealthKind;

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
    fn the_kernels_counts_are_told_with_the_term_or_alone() {
        let told = |counted, among| {
            let unusual = vec![UnusualHealth {
                kind: HealthKind::Throttling,
                name: "socket_throttles",
                own: 214.0,
                usual: 0.0,
            }];
            NamedCause::of(counted, unusual, among).unwrap().to_string()
        };
        let throttled = "thermal throttling of sockets: 214 times during the median run, usually 0";
        let cause = Cause { kind: CauseKind::Frequency, difference: 0.1, share: 0.9, score: 9.0 };
        let of_cause = of_cause(&cause);
        assert!(of_cause.contains("lower frequency"), "{of_cause}");
        assert_eq!(told(Ok(cause), Among::NodesOfClass), format!("{of_cause}; {throttled}"));
        assert_eq!(told(Err(NoCause::NothingCounted), Among::NodesOfClass), throttled);
        assert_eq!(
            told(Err(NoCause::NothingCounted), Among::RunsOfNode),
            throttled.replace("the median run", "this run")
        );
    }

    #[test]
    fn the_largest_terms_are_named() {
        let mixed = text(CauseKind::Mixed(vec![(Term::Cpi, 0.1), (Term::OffCpu, 0.05)]));
        assert!(mixed.ends_with("the largest terms: cpi 10.5 %, off cpu 5.1 %"), "{mixed}");
    }
}
