//! Reads ReFrame's run report: one row per test case that reached its performance stage.
//!
//! The time is a performance variable in a unit of time. ReFrame's own `time_run` includes the wait in the queue, so
//! it is used only if the caller asks for it by name.

use super::building::{Building, shown};
use super::row::ResultRow;
use super::{ImportFault, ImportOptions, json};
use crate::table::instant;
use serde_json::Value;
use std::io::Read;

/// Known versions of the report: from ReFrame 3.10 to 3.12, 4.0 to 4.6, and 4.7 or later.
const KNOWN: &str = "2.x, 3.x and 4.x";

/// Reads the test cases of each run of a session.
pub(super) fn read(
    source: impl Read,
    options: &ImportOptions,
    building: &mut Building,
) -> Result<(), ImportFault> {
    let place = options.place(building.path())?;
    let document = json::document(source)?;
    let info = document.get("session_info").unwrap_or(&Value::Null);
    let version = json::text(info, "data_version");
    if !["2", "3", "4"].contains(&version.split('.').next().unwrap_or_default()) {
        return Err(ImportFault::OtherVersion {
            found: format!("`{}`", shown(version.as_bytes())),
            known: KNOWN,
        });
    }
    let began = session_name(info);
    let session = Session {
        name: place.session.as_deref().unwrap_or(&began),
        host: json::text(info, "hostname"),
        node: place.node.as_deref(),
        class: place.class.as_deref(),
        metric: options.metric.as_deref(),
        started_unix_ns: start(info),
    };
    let mut entry = 0;
    for (number, run) in json::list(&document, "runs")?.iter().enumerate() {
        for (at, case) in json::list(run, "testcases")?.iter().enumerate() {
            entry += 1;
            let run = format!("{number}.{at}");
            if let Err(reason) = session.add(entry, &run, case, building) {
                let name = shown(name(case).as_bytes());
                building.reject(entry, format!("runs[{number}].testcases[{at}] ({name}): {reason}"));
            }
        }
    }
    // The report of the session that ran these cases contains them.
    if let Some(restored) =
        document.get("restored_cases").and_then(Value::as_array).filter(|list| !list.is_empty())
    {
        building.unread("restored_cases", restored.len() as u64);
    }
    if entry == 0 { Err(ImportFault::NoRows) } else { Ok(()) }
}

/// Values that all test cases of a report share.
struct Session<'a> {
    name: &'a str,
    host: &'a str,
    node: Option<&'a str>,
    class: Option<&'a str>,
    metric: Option<&'a str>,
    started_unix_ns: Option<i64>,
}

/// A performance variable.
struct Variable<'a> {
    name: &'a str,
    value: Option<f64>,
    unit: &'a str,
}

impl Session<'_> {
    fn add(&self, line: u64, run: &str, case: &Value, building: &mut Building) -> Result<(), String> {
        usable(case)?;
        let variables = variables(case);
        let (metric, elapsed_s) = self.time(case, &variables)?;
        let node = match self.node {
            Some(node) => node.to_owned(),
            None => self.nodes(case)?,
        };
        let class = match self.class {
            Some(class) => class.to_owned(),
            None => class(case, metric),
        };
        let row = ResultRow {
            line,
            node: &node,
            run,
            is_own: false,
            parts: None,
            facts: "",
            lack: "",
            class: &class,
            session: self.name,
            maintenance: "",
            elapsed_s,
            started_unix_ns: case.get("job_submit_time").and_then(json::unix_ns).or(self.started_unix_ns),
        };
        if let Some(at) = building.add(&row) {
            for variable in variables.iter().filter(|variable| variable.name != metric) {
                if let Some(value) = variable.value {
                    building.set_by_name(variable.name, at, value);
                }
            }
        }
        Ok(())
    }

    /// Name and value of the time.
    fn time<'a>(&self, case: &Value, variables: &[Variable<'a>]) -> Result<(&'a str, f64), String>
    where
        Self: 'a,
    {
        let is_time = |variable: &&Variable<'_>| json::seconds(1.0, variable.unit).is_some();
        let times: Vec<&Variable<'a>> = variables.iter().filter(is_time).collect();
        let names = || times.iter().map(|variable| variable.name).collect::<Vec<_>>().join(", ");
        let chosen = match (self.metric, times.as_slice()) {
            (Some(own @ ("time_run" | "time_total")), _) => {
                let own_name = if own == "time_run" { "time_run" } else { "time_total" };
                let value = case.get(own).and_then(Value::as_f64);
                return value.map(|s| (own_name, s)).ok_or_else(|| format!("{own} is not a number"));
            }
            (Some(wanted), _) => times
                .iter()
                .find(|variable| variable.name == wanted)
                .ok_or_else(|| format!("{wanted} is not a performance variable in a unit of time"))?,
            (None, [only]) => only,
            (None, []) => {
                return Err(
                    "the test case has no performance variable in a unit of time (--metric time_run reads \
                     `time_run`, which includes the wait in the queue)"
                        .into(),
                );
            }
            (None, _) => {
                return Err(format!(
                    "several performance variables are times; choose one with --metric: {}",
                    names()
                ));
            }
        };
        let elapsed_s = chosen.value.and_then(|value| json::seconds(value, chosen.unit));
        elapsed_s.map(|s| (chosen.name, s)).ok_or_else(|| format!("{} is not a number", chosen.name))
    }

    /// The host, or the list of hosts. Without a batch system it is the host that ran ReFrame.
    fn nodes(&self, case: &Value) -> Result<String, String> {
        let list = ["job_nodelist", "nodelist"].into_iter().find_map(|key| case.get(key));
        let nodes = match list {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
            Some(Value::String(text)) => text.clone(),
            _ => String::new(),
        };
        match nodes.is_empty() {
            false => Ok(nodes),
            true if json::text(case, "scheduler") == "local" && !self.host.is_empty() => {
                Ok(self.host.to_owned())
            }
            true => {
                Err("the test case names no node: give --default-node, or a --path-pattern with {node}"
                    .into())
            }
        }
    }
}

/// Accepts cases that succeeded and cases that failed only in performance: slow runs must stay in.
fn usable(case: &Value) -> Result<(), String> {
    let result = json::text(case, "result");
    let failed_late = json::text(case, "fail_phase") == "performance";
    match result {
        "success" | "pass" | "xpass" => Ok(()),
        "failure" | "fail" | "xfail" if failed_late => Ok(()),
        _ => {
            let why = json::text(case, "fail_reason");
            let why = if why.is_empty() { String::new() } else { format!(": {}", shown(why.as_bytes())) };
            Err(format!("result `{}`{why}", shown(result.as_bytes())))
        }
    }
}

/// The start time. Up to version 3 it is a text whose offset has no colon.
fn start(info: &Value) -> Option<i64> {
    if let Some(seconds) = info.get("time_start_unix") {
        return json::unix_ns(seconds);
    }
    let text = json::text(info, "time_start");
    let (head, minutes) = text.split_at_checked(text.len().checked_sub(2)?)?;
    instant::unix_ns(format!("{head}:{minutes}").as_bytes())
}

/// The session's name: its start time, and the first characters of its uuid if it has one.
fn session_name(info: &Value) -> String {
    let began = json::text(info, "time_start");
    match json::text(info, "uuid").get(..8) {
        Some(uuid) => format!("{began} {uuid}"),
        None => began.to_owned(),
    }
}

fn name(case: &Value) -> &str {
    ["display_name", "name", "unique_name"]
        .map(|key| json::text(case, key))
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or("without a name")
}

/// Class: `name @system:partition+environ, variable`. Up to version 3, `system` includes the partition. The class
/// omits parameters that ReFrame adds itself (`%.nid=`, `%.repeat_no=`; `%$` up to version 3): they differ between
/// runs of the same test.
fn class(case: &Value, metric: &str) -> String {
    let system = json::text(case, "system");
    let partition = match json::text(case, "partition") {
        "" => String::new(),
        partition => format!(":{partition}"),
    };
    let environ = match json::text(case, "environ") {
        "" => json::text(case, "environment"),
        environ => environ,
    };
    let own = |word: &&str| !word.starts_with("%.") && !word.starts_with("%$");
    let name = name(case).split_whitespace().filter(own).collect::<Vec<_>>().join(" ");
    format!("{name} @{system}{partition}+{environ}, {metric}")
}

/// `perfvalues` maps `system:partition:variable` to value, reference, bounds and unit. Up to version 3, `perfvars` is
/// a list of objects instead.
fn variables<'a>(case: &'a Value) -> Vec<Variable<'a>> {
    if let Some(values) = case.get("perfvalues").and_then(Value::as_object) {
        let variable = |(key, tuple): (&'a String, &'a Value)| Variable {
            name: key.rsplit(':').next().unwrap_or(key),
            value: tuple.get(0).and_then(Value::as_f64),
            unit: tuple.get(4).and_then(Value::as_str).unwrap_or_default(),
        };
        return values.iter().map(variable).collect();
    }
    let list = case.get("perfvars").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let variable = |variable| Variable {
        name: json::text(variable, "name"),
        value: variable.get("value").and_then(Value::as_f64),
        unit: json::text(variable, "unit"),
    };
    list.iter().map(variable).collect()
}
