//! Reads SuperBench's results-summary.jsonl: one object per node, and one row per time in it.
//!
//! Metrics are named `<benchmark>/[<repetition>/]<metric>[:<rank>]` (SuperBench, runner.py). Only SuperBench's
//! documentation says which of them are times, and in which unit; `UNITS` is that table. A rate is not a time, and
//! neither is its inverse. Metrics that are not times count as unread.

use super::building::{Building, shown};
use super::row::ResultRow;
use super::{ImportFault, ImportOptions};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};

/// Part of a benchmark's name, part of a metric's name, units per second. The first match counts.
const UNITS: [(&str, &str, f64); 19] = [
    ("disk-benchmark", "_lat_ns_", 1e9),
    ("cpu-memory-bw-latency", "_lat", 1e9),
    ("nvbandwidth", "_lat", 1e6),
    ("gpcnet", "_lat", 1e6),
    ("gpcnet", "_time", 1e6),
    ("ib-traffic", "_lat_", 1e6),
    ("nccl-bw", "_time", 1e6),
    ("rccl-bw", "_time", 1e6),
    ("cublas-function", "_time", 1e6),
    ("cudnn-function", "_time", 1e6),
    ("gpu-burn", "time", 1.0),
    ("cpu-hpl", "time", 1.0),
    ("cpu-stream", "_time_", 1.0),
    ("tcp-connectivity", "_time_", 1e3),
    ("kernel-launch", "_time", 1e3),
    ("tensorrt-inference", "_time_", 1e3),
    ("ort-inference", "_time", 1e3),
    ("pytorch-", "_time", 1e3),
    // For all models: fp32_train_step_time.
    ("", "step_time", 1e3),
];

/// Names of versions before 0.6; their documentation gives the same units.
const OLD_UNITS: [(&str, &str, f64); 3] =
    [("", "steptime_", 1e3), ("kernel-launch", "_overhead", 1e3), ("pytorch-", "_cost", 1e3)];

/// Reads the times of each node: all, or those whose name contains the requested metric. Rejects a line that is not
/// an object with a node.
pub(super) fn read(
    source: impl Read,
    options: &ImportOptions,
    building: &mut Building,
) -> Result<(), ImportFault> {
    let place = options.place(building.path())?;
    let session = match place.session {
        Some(session) => session,
        None => super::path_pattern::folder_of(building.path()).unwrap_or_default(),
    };
    let wanted = options.metric.as_deref().unwrap_or_default();
    let (mut line, mut number, mut any) = (Vec::new(), 0, false);
    let mut source = BufReader::new(source);
    loop {
        line.clear();
        if source.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        number += 1;
        let content = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line).trim_ascii();
        if content.is_empty() {
            continue;
        }
        any = true;
        match node(content) {
            Ok((node, metrics)) => {
                for (name, value) in &metrics {
                    metric(number, &node, name, value, wanted, &session, building);
                }
            }
            Err(reason) => building.reject(number, reason),
        }
    }
    if any { Ok(()) } else { Err(ImportFault::NoRows) }
}

type Metrics = serde_json::Map<String, Value>;

fn node(line: &[u8]) -> Result<(String, Metrics), String> {
    let value = super::json::value(line).map_err(|e| format!("the line is not valid JSON: {e}"))?;
    let Value::Object(mut metrics) = value else {
        return Err("the line is not an object".into());
    };
    match metrics.remove("node") {
        Some(Value::String(node)) => Ok((node, metrics)),
        _ => Err("the line names no node".into()),
    }
}

fn metric(
    line: u64,
    node: &str,
    name: &str,
    value: &Value,
    wanted: &str,
    session: &str,
    building: &mut Building,
) {
    let parts = Name::of(name);
    if parts.metric == "return_code" {
        if !value.is_null() && value.as_f64() != Some(0.0) {
            building.reject(line, format!("{} failed with return code {value}", shown(name.as_bytes())));
        }
        return;
    }
    let class = parts.class();
    let per_second = parts.per_second().filter(|_| class.contains(wanted));
    let Some(per_second) = per_second else {
        building.unread(&class, 1);
        return;
    };
    let Some(value) = value.as_f64() else {
        building.reject(line, format!("{}: `{value}` is not a time", shown(name.as_bytes())));
        return;
    };
    let run = parts.run();
    let elapsed_s = value / per_second;
    building.add(&ResultRow {
        line,
        node,
        run: &run,
        is_own: false,
        parts: None,
        facts: "",
        lack: "",
        class: &class,
        session,
        maintenance: "",
        elapsed_s,
        started_unix_ns: None,
    });
}

/// The parts of a metric's name.
struct Name<'a> {
    benchmark: &'a str,
    /// What is between benchmark and metric, for example a model's name.
    middle: Option<&'a str>,
    metric: &'a str,
    repetition: Option<&'a str>,
    rank: Option<&'a str>,
}

impl<'a> Name<'a> {
    fn of(name: &'a str) -> Self {
        let (benchmark, rest) = name.split_once('/').unwrap_or(("", name));
        let (middle, metric) =
            rest.rsplit_once('/').map_or((None, rest), |(middle, metric)| (Some(middle), metric));
        let (metric, rank) = match metric.rsplit_once(':') {
            Some((metric, rank)) if is_number(rank) => (metric, Some(rank)),
            _ => (metric, None),
        };
        let repetition = middle.filter(|middle| is_number(middle));
        Self { benchmark, middle: middle.filter(|_| repetition.is_none()), metric, repetition, rank }
    }

    fn class(&self) -> String {
        [Some(self.benchmark), self.middle, Some(self.metric)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("/")
    }

    /// SuperBench counts repetitions and ranks from 0. A rank is a GPU of the node.
    fn run(&self) -> String {
        match (self.repetition, self.rank) {
            (None, None) => "0".into(),
            (Some(repetition), None) => repetition.into(),
            (repetition, Some(rank)) => format!("{}:{rank}", repetition.unwrap_or("0")),
        }
    }

    /// `None` if the metric is not a time.
    fn per_second(&self) -> Option<f64> {
        let fits = |(benchmark, metric, _): &&(&str, &str, f64)| {
            self.benchmark.starts_with(benchmark) && self.metric.contains(metric)
        };
        let row = UNITS.iter().chain(&OLD_UNITS).find(fits)?;
        Some(row.2)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}
