//! Reads what `perf report --stdio --header` prints of a `perf record`: one row, with the count of each event.
//!
//! A sample stands for as many events as its period says, and only counts with the same weight may be compared (AMD,
//! Basic Performance Measurements, 2008, section 3). perf adds up the periods of an event's samples ("Event count
//! (approx.)"), so counts of events with different periods have the same weight.
//!
//! ```text
//! # hostname : n01
//! # cpuid : AuthenticAMD,25,17,1
//! # event : name = cycles, , id = { 8 }, type = 0, size = 136, { sample_period, sample_freq } = 500000, ...
//! # sample duration :   1020.550 ms
//! # Samples: 5K of event 'cycles'
//! # Event count (approx.): 2592000000
//! ```

use super::building::Building;
use super::lines::{LineRead, read_line};
use super::row::ResultRow;
use super::{ImportFault, ImportOptions};
use pmmpi_events::metrics::{CpuKind, CpuTable, catalogue};
use std::collections::HashMap;
use std::io::{BufReader, Read};

/// perf_event_attr.type (linux/perf_event.h).
const HARDWARE: u64 = 0;
const SOFTWARE: u64 = 1;
const RAW: u64 = 4;
/// Names of the Linux kernel's own events: type, config, name.
const GENERIC: [(u64, u64, &str); 9] = [
    (HARDWARE, 0, "cycles"),
    (HARDWARE, 1, "instructions"),
    (HARDWARE, 4, "branches"),
    (HARDWARE, 5, "branches_mispredicted"),
    (HARDWARE, 9, "ref_cycles"),
    (SOFTWARE, 1, "task_clock_ns"),
    (SOFTWARE, 2, "page_faults"),
    (SOFTWARE, 3, "context_switches"),
    (SOFTWARE, 4, "migrations"),
];

/// Reads the row. Rejects it if perf does not say how long the samples lasted.
pub(super) fn read(
    source: impl Read,
    options: &ImportOptions,
    building: &mut Building,
) -> Result<(), ImportFault> {
    let place = options.place(building.path())?;
    let found = Found::read(source)?;
    let node = match (&place.node, &found.hostname) {
        (Some(node), _) => node.clone(),
        (None, Some(hostname)) => hostname.clone(),
        (None, None) => building.guess_node(&["perf", "report"])?,
    };
    let session = place.session.as_deref().unwrap_or_default();
    let run = match &place.run {
        Some(run) => run.clone(),
        None => match building.next_run(&node, session) {
            Ok(run) => run,
            Err(reason) => {
                building.reject(1, reason);
                return Ok(());
            }
        },
    };
    let class = place.class.as_deref().unwrap_or_default();
    let row = ResultRow { line: 1, node: &node, run: &run, class, session, ..ResultRow::default() };
    let Some(elapsed_s) = found.duration_s else {
        building.reject_row(&row, "the duration of the samples is missing (\"sample duration\")".to_owned());
        return Ok(());
    };
    let Some(at) = building.add(&ResultRow { elapsed_s, ..row }) else { return Ok(()) };
    for (name, value) in found.counters() {
        building.set_by_name(&name, at, value);
    }
    for event in &found.groups {
        building.unread(&format!("{event} (a group: use perf report --no-group)"), 1);
    }
    Ok(())
}

/// What the file says.
#[derive(Debug, Default)]
struct Found {
    hostname: Option<String>,
    cpu: CpuKind,
    duration_s: Option<f64>,
    lost_samples: f64,
    events: HashMap<String, Attributes>,
    /// The event of each part of the report, and the sum of its samples' periods.
    counts: Vec<(String, f64)>,
    /// Groups of events, whose counts perf adds.
    groups: Vec<String>,
    /// The event of the part that is being read.
    current: Option<String>,
}

/// What perf_event_attr says of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Attributes {
    kind: u64,
    config: u64,
    without_kernel: bool,
    without_user: bool,
}

impl Found {
    fn read(source: impl Read) -> Result<Self, ImportFault> {
        let mut source = BufReader::new(source);
        let (mut found, mut line, mut has_header) = (Self::default(), Vec::new(), false);
        while !matches!(read_line(&mut source, &mut line)?, LineRead::End) {
            let text = String::from_utf8_lossy(&line);
            let Some(text) = text.trim_end().strip_prefix("# ") else { continue };
            has_header |= text.starts_with("perf version");
            found.line(text);
        }
        if !has_header {
            let how = "the header of perf.data is missing: use perf report --stdio --header";
            return Err(ImportFault::OtherForm(how.to_owned()));
        }
        if found.counts.is_empty() && found.groups.is_empty() {
            return Err(ImportFault::OtherForm("there are no counts of events".to_owned()));
        }
        Ok(found)
    }

    fn line(&mut self, text: &str) {
        if let Some(samples) = text.strip_prefix("Samples:") {
            let event = samples.split_once('\'').and_then(|(_, rest)| rest.rsplit_once('\''));
            self.current = event.map(|(name, _)| name.to_owned());
            return;
        }
        let Some((key, value)) = text.split_once(':') else { return };
        let value = value.trim();
        match key.trim_end() {
            "hostname" if !value.is_empty() => self.hostname = Some(value.to_owned()),
            "cpuid" => self.cpu = cpu(value).unwrap_or_default(),
            "sample duration" => {
                // As decimal digits, so that 1020.550 ms are 1.02055 s.
                let seconds = value.strip_suffix("ms").map(|ms| format!("{}e-3", ms.trim_end()));
                self.duration_s = seconds.and_then(|s| s.parse().ok()).filter(|s: &f64| *s > 0.0);
            }
            "event" => {
                if let Some((name, attributes)) = event(value) {
                    self.events.insert(name, attributes);
                }
            }
            "Total Lost Samples" | "Lost Samples" => {
                self.lost_samples += value.parse::<f64>().unwrap_or_default();
            }
            "Event count (approx.)" => match (self.current.take(), value.parse::<f64>()) {
                (Some(group), _) if group.contains(" { ") => self.groups.push(group),
                (Some(event), Ok(count)) => self.counts.push((event, count)),
                _ => {}
            },
            _ => {}
        }
    }

    /// Each counter once: with pmmpi's name if the event is one of pmmpi's, otherwise with perf's name.
    fn counters(&self) -> Vec<(String, f64)> {
        let table = catalogue().table(&self.cpu);
        let mut counters: Vec<(String, f64)> = Vec::new();
        for (event, count) in &self.counts {
            let known = self.events.get(event).and_then(|attributes| attributes.name(table));
            let is_new = |name: &String| counters.iter().all(|(other, _)| other != name);
            counters.push((known.filter(is_new).unwrap_or_else(|| event.clone()), *count));
        }
        if self.lost_samples > 0.0 {
            counters.push(("lost_samples".to_owned(), self.lost_samples));
        }
        counters
    }
}

impl Attributes {
    /// pmmpi's name of the event, as run files have it: counts of user mode only end with `_user`.
    fn name(&self, table: Option<&CpuTable>) -> Option<String> {
        let generic = GENERIC.iter().find(|(kind, config, _)| (*kind, *config) == (self.kind, self.config));
        let of_table = || table?.event_of_code(self.config).map(|event| event.name.as_str());
        let name = match (generic, self.kind) {
            (Some((.., name)), _) => name,
            (None, RAW) => of_table()?,
            _ => return None,
        };
        match (self.without_kernel, self.without_user) {
            (false, false) => Some(name.to_owned()),
            (true, false) => Some(format!("{name}_user")),
            (false, true) if ["cycles", "instructions"].contains(&name) => Some(format!("{name}_kernel")),
            _ => None,
        }
    }
}

/// `GenuineIntel,6,85,7` or `AuthenticAMD,25,17,1`: vendor, family, model, stepping.
fn cpu(text: &str) -> Option<CpuKind> {
    let [vendor, family, model, ..] = text.split(',').collect::<Vec<_>>()[..] else { return None };
    Some(CpuKind { vendor: vendor.to_owned(), family: family.parse().ok()?, model: model.parse().ok()? })
}

/// `name = cycles:u, , id = { 8 }, type = 0, size = 136, config = 0x1, ..., exclude_kernel = 1`.
fn event(text: &str) -> Option<(String, Attributes)> {
    let (name, rest) = text.strip_prefix("name = ")?.split_once(", , ").or_else(|| {
        // Without ids, perf leaves the empty field out.
        let at = text.find(", type = ")?;
        Some((text.get("name = ".len()..at)?, text.get(at + 2..)?))
    })?;
    let field = |key: &str| {
        let at = rest.split(", ").find_map(|field| field.strip_prefix(key)?.strip_prefix(" = "))?;
        match at.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            // perf 6.3 and later also writes the name: `type = 0 (PERF_TYPE_HARDWARE)`.
            None => at.split_once(' ').map_or(at, |(number, _)| number).parse().ok(),
        }
    };
    let hex = rest.split(", ").find_map(|field| field.strip_prefix("config = "));
    let hex = hex.map(|text| text.split_once(' ').map_or(text, |(number, _)| number));
    let config = hex.map_or(Some(0), |text| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    })?;
    let is_set = |key: &str| field(key) == Some(1);
    let attributes = Attributes {
        // perf leaves out zeros.
        kind: if rest.contains("type = ") { field("type")? } else { HARDWARE },
        config,
        without_kernel: is_set("exclude_kernel"),
        without_user: is_set("exclude_user"),
    };
    Some((name.to_owned(), attributes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lines: &[&str]) -> Found {
        Found::read(lines.join("\n").as_bytes()).unwrap()
    }

    const HEADER: [&str; 4] =
        ["# ========", "# hostname : n07", "# perf version : 6.1.187", "# cpuid : AuthenticAMD,16,2,3"];

    /// AMD-2008 5.3, classic: instructions with ten times the period of the other events. With the weights of the
    /// samples, the rates are those that the note prints; without them, the request rate would be 5.894.
    #[test]
    fn samples_have_the_weight_of_their_period() {
        let part = |event: &str, samples: u64, period: u64| {
            [
                format!("# Samples: {}K of event '{event}'", samples / 1000),
                format!("# Event count (approx.): {}", samples * period),
            ]
        };
        let events = [
            ("instructions", "type = 0, size = 128, config = 0x1", 68_184, 50_000),
            ("cpu/event=0x40/", "type = 4, size = 128, config = 0x40", 401_893, 5_000),
            ("r1e42", "type = 4, size = 128, config = 0x1e42", 45_533, 5_000),
            ("r1e43", "type = 4, size = 128, config = 0x1e43", 12_526, 5_000),
        ];
        let mut lines: Vec<String> = HEADER.map(str::to_owned).into();
        for (name, attributes, _, period) in events {
            lines.push(format!(
                "# event : name = {name}, , id = {{ 1, 2 }}, {attributes}, {{ sample_period, sample_freq }} = {period}"
            ));
        }
        lines.extend(events.into_iter().flat_map(|(name, _, samples, period)| part(name, samples, period)));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let counters = found(&lines).counters();
        let of = |name: &str| counters.iter().find(|(known, _)| known == name).unwrap().1;
        let misses = of("dc_refills_l2") + of("dc_refills_system");
        let printed = |value: f64| format!("{value:.3}");
        assert_eq!(printed(of("dc_accesses") / of("instructions")), "0.589");
        assert_eq!(printed(misses / of("instructions")), "0.085");
        assert_eq!(printed(misses / of("dc_accesses")), "0.144");
    }

    #[test]
    fn modes_are_in_the_name() {
        let name = |text: &str| {
            let (_, attributes) = event(text).unwrap();
            attributes.name(catalogue().table(&CpuKind::default()))
        };
        let of = |rest: &str| name(&format!("name = x:u, , id = {{ 1 }}, type = 0, size = 128{rest}"));
        assert_eq!(of("").as_deref(), Some("cycles"));
        assert_eq!(of(", config = 0x1, exclude_kernel = 1").as_deref(), Some("instructions_user"));
        assert_eq!(of(", exclude_user = 1").as_deref(), Some("cycles_kernel"));
        assert_eq!(of(", config = 0x4, exclude_user = 1"), None);
        // One kind of core of a hybrid processor.
        assert_eq!(of(", config = 0x400000000"), None);
        let later = "name = cycles:P, , id = { 1 }, type = 0 (PERF_TYPE_HARDWARE), size = 136, config = 0 (PERF_COUNT_HW_CPU_CYCLES)";
        assert_eq!(name(later).as_deref(), Some("cycles"));
    }

    #[test]
    fn groups_and_lost_samples_are_told() {
        let lines = [
            "# ========",
            "# perf version : 6.1.187",
            "# Total Lost Samples: 7",
            "# Samples: 1K of events 'anon group { cpu-clock, page-faults }'",
            "# Event count (approx.): 452250492",
        ];
        let found = found(&lines);
        assert_eq!(found.groups, ["anon group { cpu-clock, page-faults }"]);
        assert_eq!(found.counters(), [("lost_samples".to_owned(), 7.0)]);
        let nothing = Found::read("# To display the perf.data header info, please use --header".as_bytes());
        assert!(nothing.unwrap_err().to_string().contains("--header"));
    }
}
