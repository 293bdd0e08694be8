//! Reads `hyperfine --export-json`: one row per timed run of each command.

use super::building::Building;
use super::row::ResultRow;
use super::{ImportFault, ImportOptions, json};
use serde_json::Value;
use std::io::Read;

/// File names that do not name a node.
const GENERIC: [&str; 4] = ["hyperfine", "results", "result", "bench"];

/// Reads the runs of each command. Rejects a run whose exit status is not 0.
pub(super) fn read(
    source: impl Read,
    options: &ImportOptions,
    building: &mut Building,
) -> Result<(), ImportFault> {
    let place = options.place(building.path())?;
    let node = match &place.node {
        Some(node) => node.clone(),
        None => building.guess_node(&GENERIC)?,
    };
    let document = json::document(source)?;
    let results = json::list(&document, "results")?;
    let mut entry = 0;
    for (i, result) in results.iter().enumerate() {
        let Some(times) = result.get("times").and_then(Value::as_array) else {
            entry += 1;
            building.reject(entry, format!("results[{i}] has no times"));
            continue;
        };
        let class = place.class.clone().unwrap_or_else(|| class(result));
        let session = place.session.as_deref().unwrap_or_default();
        let exit_codes = result.get("exit_codes").and_then(Value::as_array);
        let memory = result.get("memory_usage_byte").and_then(Value::as_array);
        for (j, time) in times.iter().enumerate() {
            entry += 1;
            let failed = exit_codes.and_then(|codes| failure(codes.get(j)));
            let Some(elapsed_s) = time.as_f64().filter(|_| failed.is_none()) else {
                let reason = failed.unwrap_or_else(|| format!("`{time}` is not a time"));
                building.reject(entry, format!("results[{i}].times[{j}]: {reason}"));
                continue;
            };
            let run = match &place.run {
                Some(run) => format!("{run}.{}", j + 1),
                None => match building.next_run(&node, session) {
                    Ok(run) => run,
                    Err(reason) => {
                        building.reject(entry, reason);
                        continue;
                    }
                },
            };
            let row = ResultRow {
                line: entry,
                node: &node,
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
            };
            let added = building.add(&row);
            if let (Some(at), Some(bytes)) = (added, memory.and_then(|memory| memory.get(j)?.as_f64())) {
                building.set_by_name("memory_usage_byte", at, bytes);
            }
        }
        for mean in ["user", "system"] {
            if result.get(mean).is_some_and(Value::is_number) {
                building.unread(&format!("{mean} (hyperfine gives only the mean)"), 1);
            }
        }
    }
    if entry == 0 { Err(ImportFault::NoRows) } else { Ok(()) }
}

/// The class: the command or its name, and its parameters. Runs with other parameters may take another time.
fn class(result: &Value) -> String {
    let mut class = json::text(result, "command").to_owned();
    if let Some(parameters) = result.get("parameters").and_then(Value::as_object) {
        for (name, value) in parameters {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            class.push_str(&format!(" {name}={value}"));
        }
    }
    class
}

/// Why a run does not count; `None` if it succeeded.
fn failure(code: Option<&Value>) -> Option<String> {
    match code {
        None => Some("the run has no exit code".into()),
        Some(Value::Null) => Some("a signal ended the run".into()),
        Some(code) if code.as_i64() == Some(0) => None,
        Some(code) => Some(format!("the run failed with exit code {code}")),
    }
}
