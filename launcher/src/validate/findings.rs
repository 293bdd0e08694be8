//! The findings and the verdicts.

use super::Reference;
use super::ceiling_values::SocketCeilings;
use super::documents::{self, Document};
use super::events::Mapping;
use super::measure_kernel::{EventValue, median};
use pmmpi::counters::count_and_quality::Quality;
use pmmpi::node::NodeFacts;
use pmmpi_events::validation::{self, EventVerdict};
use pmmpi_kernels::{Expected, Kernel};
use serde::Serialize;
use std::path::PathBuf;

/// The whole result, as `--format json` prints it and as pmmpi stores it (docs/schema/validate.schema.json).
#[derive(Debug, Serialize)]
pub struct ValidationFindings {
    pub schema_version: u32,
    pub pmmpi: &'static str,
    pub validated_unix_s: i64,
    pub cpu: Cpu,
    /// uname -r
    pub os_release: Option<String>,
    /// The hardware thread on which the kernels ran; on a hybrid processor, the first one.
    pub hardware_thread: u32,
    /// On a hybrid processor, one entry per kind of core.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<OnKind>,
    pub repeats: usize,
    pub mappings: Vec<Mapping>,
    pub documents: Vec<Document>,
    /// The arrays and caches of the STREAM kernels; null if none of these kernels ran.
    pub memory: Option<MemoryFindings>,
    pub kernels: Vec<KernelFindings>,
    pub events: Vec<EventFinding>,
    /// Attainable bandwidth and latency of each socket, with `--ceilings`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ceilings: Vec<SocketCeilings>,
    #[serde(skip)]
    pub kept: StoredAt,
    /// False if some kinds of cores are missing.
    #[serde(skip)]
    pub is_all: bool,
}

/// The kernels on one kind of core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OnKind {
    /// The prefix of its events' names.
    pub pmu: String,
    pub hardware_thread: u32,
}

/// Arrays that are too large for the caches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryFindings {
    /// Size of the hardware thread's caches from the second level on.
    pub cache_bytes: Option<u64>,
    /// Size of each of the three arrays.
    pub array_bytes: Option<u64>,
    /// Why the traffic was not measured.
    pub reason: Option<String>,
}

/// Where pmmpi stored the findings.
#[derive(Debug)]
pub enum StoredAt {
    /// Nowhere, because only some kernels ran, or not on all kinds of cores.
    NotAll,
    In(PathBuf),
    Not(String),
}

/// The processor in detail (step 1 of the procedure).
#[derive(Debug, Serialize)]
pub struct Cpu {
    /// The properties below that change what counters count, as one name.
    pub name: String,
    pub vendor: Option<String>,
    pub model_name: Option<String>,
    pub family: Option<u32>,
    pub model: Option<u32>,
    pub stepping: Option<u32>,
    pub microcode: Option<String>,
    pub hypervisor: bool,
}

/// One kernel, and the events compared with it.
#[derive(Debug, Serialize)]
pub struct KernelFindings {
    pub name: &'static str,
    pub about: &'static str,
    pub trips: u64,
    /// Why it did not run.
    pub skipped: Option<String>,
    pub checks: Vec<EventCheck>,
}

/// One event compared with one kernel.
#[derive(Clone, Debug, Serialize)]
pub struct EventCheck {
    pub event: String,
    /// Trips of the kernel's loop, if their number differs from the kernel's usual number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trips: Option<u64>,
    /// "paper", or the clock read beside the counter.
    pub against: &'static str,
    /// Lower and upper limit; for a clock, its value in the section of the median.
    pub expected: Option<[f64; 2]>,
    /// The median, minus the overhead of the snapshots.
    pub measured: Option<f64>,
    /// The count that two snapshots add; for memory controllers, the traffic of other programs.
    pub overhead: Option<f64>,
    /// As a fraction of the expected value.
    pub deviation: Option<f64>,
    pub quality: Quality,
    pub running_share: Option<f64>,
    pub verdict: &'static str,
    /// Why there is no verdict, or what limits it.
    pub reason: Option<String>,
}

/// One event over all kernels: the worst of its checks decides.
#[derive(Debug, Serialize)]
pub struct EventFinding {
    pub name: String,
    pub verdict: &'static str,
    /// The largest deviation.
    pub deviation: Option<f64>,
    /// The kernel with this deviation.
    pub kernel: Option<&'static str>,
    pub reason: Option<String>,
}

impl EventCheck {
    /// The result of several sections: their median.
    pub fn of(event: &str, reference: &Reference, measured: &[EventValue], overhead: Option<f64>) -> Self {
        let (against, paper) = match reference {
            Reference::Paper(_) => ("paper", true),
            Reference::Beside(beside) => (beside.name(), false),
        };
        let worst = measured.iter().max_by_key(|one| one.quality);
        let quality = worst.map_or(Quality::Unavailable, |worst| worst.quality);
        let mut check = Self {
            event: event.to_owned(),
            trips: None,
            against,
            expected: None,
            measured: median(measured.iter().filter_map(|one| one.value).collect()),
            overhead,
            deviation: None,
            quality,
            running_share: worst.and_then(|worst| worst.running_share),
            verdict: EventVerdict::Unknown.name(),
            reason: worst.and_then(|worst| worst.reason.clone()),
        };
        if paper {
            check.expected = measured.first().and_then(|one| one.expected);
        }
        // A scaled count tests the kernel's extrapolation as much as the counter.
        if !matches!(quality, Quality::Exact | Quality::Partial) {
            return check;
        }
        let Some(deviation) = median(measured.iter().filter_map(EventValue::deviation).collect()) else {
            // The clock is not invariant, or other threads took the core in each repeat.
            check.reason = Some(
                "pmmpi has no valid clock reading to compare this count with: if the core is busy, \
                      choose another hardware thread with --cpu"
                    .to_owned(),
            );
            return check;
        };
        if let Some(one) = measured.iter().find(|one| one.deviation() == Some(deviation)) {
            (check.measured, check.expected) = (one.value, one.expected);
        }
        check.deviation = Some(deviation);
        check.verdict = EventVerdict::of_deviation(deviation).name();
        check
    }

    /// For an event that could not be tried.
    pub fn missing(expected: &Expected, trips: u64, quality: Quality, why: &str) -> Self {
        Self {
            event: expected.event.to_owned(),
            trips: None,
            against: "paper",
            expected: Some([expected.low.of(trips), expected.high.of(trips)]),
            measured: None,
            overhead: None,
            deviation: None,
            quality,
            running_share: None,
            verdict: EventVerdict::Unknown.name(),
            reason: Some(why.to_owned()),
        }
    }
}

impl KernelFindings {
    pub fn new(kernel: &'static Kernel) -> Self {
        let Kernel { name, about, trips, .. } = *kernel;
        Self { name, about, trips, skipped: None, checks: Vec::new() }
    }
}

impl ValidationFindings {
    /// Findings without any kernel yet.
    pub fn new(facts: &NodeFacts, hardware_thread: u32, repeats: usize) -> Self {
        let hardware = &facts.hardware;
        Self {
            schema_version: validation::SCHEMA_VERSION,
            pmmpi: env!("CARGO_PKG_VERSION"),
            validated_unix_s: pmmpi::clock::realtime_ns() / 1_000_000_000,
            cpu: Cpu {
                name: validation::cpu_name(hardware),
                vendor: hardware.cpu_vendor.clone(),
                model_name: hardware.cpu_model_name.clone(),
                family: hardware.cpu_family,
                model: hardware.cpu_model,
                stepping: hardware.cpu_stepping,
                microcode: hardware.microcode.clone(),
                hypervisor: hardware.hypervisor,
            },
            os_release: hardware.kernel.clone(),
            hardware_thread,
            cores: Vec::new(),
            repeats,
            mappings: Vec::new(),
            documents: documents::of(hardware),
            memory: None,
            kernels: Vec::new(),
            events: Vec::new(),
            ceilings: Vec::new(),
            kept: StoredAt::NotAll,
            is_all: true,
        }
    }

    /// Adds mappings that are new: the Linux kernel's own events repeat on each kind of core.
    pub fn add_mappings(&mut self, mappings: Vec<Mapping>) {
        let known = |all: &[Mapping], one: &Mapping| {
            all.iter().any(|known| known.event == one.event && known.counted_as == one.counted_as)
        };
        for mapping in mappings {
            if !known(&self.mappings, &mapping) {
                self.mappings.push(mapping);
            }
        }
    }

    /// Adds the result of a kernel on one kind of core to its results on the others.
    pub fn add(&mut self, held: KernelFindings) {
        match self.kernels.iter_mut().find(|known| known.name == held.name) {
            Some(known) => {
                known.checks.extend(held.checks);
                known.skipped = known.skipped.take().or(held.skipped);
            }
            None => self.kernels.push(held),
        }
    }

    /// Judges each event by the worst of its checks (step 7 of the procedure).
    pub fn judge(&mut self) {
        let mut events: Vec<EventFinding> = Vec::new();
        for (kernel, check) in self.kernels.iter().flat_map(|held| held.checks.iter().map(|c| (held.name, c)))
        {
            let judged = EventFinding {
                name: check.event.clone(),
                verdict: check.verdict,
                deviation: check.deviation,
                kernel: check.deviation.map(|_| kernel),
                reason: check.reason.clone(),
            };
            match events.iter_mut().find(|event| event.name == check.event) {
                Some(known) if check.deviation > known.deviation => *known = judged, // None is less than any
                Some(_) => {}
                None => events.push(judged),
            }
        }
        self.events = events;
    }

    pub fn is_unusable(&self) -> bool {
        self.events.iter().any(|event| event.verdict == EventVerdict::Unusable.name())
    }

    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::measure_kernel::Beside;
    use pmmpi::counters::count_and_quality::{Gap, Reading};

    const PAPER: Reference = Reference::Paper(Expected::exactly("x", 0.0, 1.0));

    fn measured(count: u64, running_ns: u64, expected: f64) -> EventValue {
        let reading = Reading { count, enabled_ns: 100, running_ns, gap: None };
        EventValue::of(&reading, reading.value().map(|value| value as f64), Some([expected; 2]))
    }

    fn check(measured: &[EventValue]) -> EventCheck {
        EventCheck::of("x", &PAPER, measured, Some(0.0))
    }

    #[test]
    fn a_counter_is_as_good_as_its_median() {
        let all = [measured(100, 100, 100.0), measured(500, 100, 100.0), measured(100, 100, 100.0)];
        assert_eq!((check(&all).verdict, check(&all).measured), ("trusted", Some(100.0)));
        let near = check(&[measured(90, 100, 100.0)]);
        assert_eq!((near.verdict, near.deviation), ("within", Some(0.1)));
        assert_eq!(check(&[measured(0, 100, 100.0)]).verdict, "unusable");
        assert_eq!(check(&[measured(3, 100, 0.0)]).verdict, "unusable");
    }

    #[test]
    fn what_was_shared_is_no_basis_for_trust() {
        let scaled = check(&[measured(100, 100, 100.0), measured(50, 50, 100.0)]);
        assert_eq!((scaled.verdict, scaled.quality), ("not counted here", Quality::Scaled));
        assert_eq!((scaled.deviation, scaled.running_share), (None, Some(0.5)));
        assert!(scaled.reason.unwrap().contains("50.0 % of the time"));
        let reading = Reading::missing(Gap::of_errno(libc::ENOENT));
        let missing = check(&[EventValue::of(&reading, None, Some([5.0, 6.0]))]);
        assert_eq!((missing.verdict, missing.measured), ("not counted here", None));
        assert_eq!((missing.expected, missing.deviation), (Some([5.0, 6.0]), None));
        assert!(missing.reason.unwrap().starts_with("not counted by this processor"));
    }

    #[test]
    fn a_clock_is_compared_section_by_section() {
        let clock = Reference::Beside(Beside::CpuTime);
        let all = [measured(100, 100, 100.0), measured(900, 100, 900.0), measured(50, 100, 50.0)];
        let check = EventCheck::of("x", &clock, &all, None);
        assert_eq!((check.verdict, check.against), ("trusted", "CPU time of the thread"));
        assert_eq!(check.measured, check.expected.map(|expected| expected[0]));
    }

    #[test]
    fn an_event_is_as_good_as_its_worst_kernel() {
        let mut findings = ValidationFindings::new(&NodeFacts::default(), 0, 3);
        for (at, counts) in [[100, 100], [90, 90], [99, 99]].iter().enumerate() {
            let mut held = KernelFindings::new(&pmmpi_kernels::all()[at]);
            held.checks.push(check(&counts.map(|count| measured(count, 100, 100.0))));
            findings.kernels.push(held);
        }
        findings.judge();
        assert_eq!(findings.events.len(), 1);
        let event = &findings.events[0];
        assert_eq!((event.verdict, event.kernel), ("within", Some(pmmpi_kernels::all()[1].name)));
        assert!(!findings.is_unusable());
        findings.kernels[0].checks[0] = check(&[measured(0, 100, 100.0)]);
        findings.judge();
        assert!(findings.is_unusable());
    }
}
