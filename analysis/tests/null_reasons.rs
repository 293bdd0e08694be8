//! Whatever the input is: each value that is null has a reason.

#[expect(dead_code)]
mod common;

use common::Folder;
use pmmpi_analysis::input::importers::ImportOptions;
use pmmpi_analysis::report::run::Details;
use pmmpi_analysis::report::{self, PlaceSettings, Report};
use pmmpi_analysis::table::selection::RunSelection;
use pmmpi_analysis::verdicts::JudgeSettings;
use pmmpi_events::validation::Trust;
use proptest::prelude::*;
use serde_json::Value;
use std::fmt::Write;

/// The places of null values without a reason, and of reasons without a null value.
fn unexplained(value: &Value, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    match value {
        Value::Object(object) => {
            if let Some(reasons) = object.get("null_reasons").and_then(Value::as_object) {
                let has_reason = |key: &str| {
                    reasons.get(key).and_then(Value::as_str).is_some_and(|r| !r.trim().is_empty())
                };
                let nulls = object.iter().filter(|(_, value)| value.is_null());
                found.extend(
                    nulls.filter(|(key, _)| !has_reason(key)).map(|(key, _)| format!("{place}/{key}")),
                );
                let others =
                    reasons.keys().filter(|key| object.get(*key).is_none_or(|value| !holds_null(value)));
                found.extend(others.map(|key| format!("{place}/null_reasons/{key}")));
            }
            found
                .extend(object.iter().flat_map(|(key, value)| unexplained(value, &format!("{place}/{key}"))));
        }
        Value::Array(values) => {
            found.extend(
                values
                    .iter()
                    .enumerate()
                    .flat_map(|(at, value)| unexplained(value, &format!("{place}/{at}"))),
            );
        }
        _ => {}
    }
    found
}

/// A reason for `history` is about the values in it.
fn holds_null(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(|object| object.values().any(Value::is_null))
}

/// A row of a CSV: node, class, session, milliseconds, cycles.
type Row = (u8, u8, u8, u32, Option<u32>);

fn csv(rows: &[Row], has_sessions: bool, has_starts: bool) -> String {
    let mut csv = String::from("node,run,class,session,started,elapsed_s,cycles\n");
    for (run, (node, class, session, ms, cycles)) in rows.iter().enumerate() {
        let session_name = if has_sessions { format!("s{session}") } else { String::new() };
        let (day, second) = (session + 1, run % 60);
        let started = if has_starts { format!("2026-11-{day:02}T08:00:{second:02}Z") } else { String::new() };
        let seconds = f64::from(*ms) / 1e3;
        let cycles = cycles.map(|cycles| cycles.to_string()).unwrap_or_default();
        let _ = writeln!(csv, "n{node},{run},c{class},{session_name},{started},{seconds},{cycles}");
    }
    csv
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn each_null_has_a_reason(
        rows in proptest::collection::vec(
            (0..6u8, 0..2u8, 0..4u8, 950..1100u32, proptest::option::of(1..9u32)), 1..120
        ),
        has_sessions: bool,
        has_starts: bool,
        since in proptest::option::of(1..5u8),
    ) {
        let folder = Folder::new();
        let path = folder.put("f.csv", csv(&rows, has_sessions, has_starts));
        let since = since.map(|day| format!("2026-11-{day:02}").parse().unwrap());
        let options = ImportOptions {
            with_medians: true,
            counters: Some(report::COUNTERS.as_slice()),
            selection: RunSelection { since, ..RunSelection::default() },
            ..ImportOptions::default()
        };
        let input = report::read(&[path], &options, &Trust::default(), Details::Shown);
        let found = Report::new(input, &Trust::default(), &JudgeSettings::default(), &PlaceSettings::default());
        let places = unexplained(&serde_json::to_value(found).unwrap(), "");
        prop_assert!(places.is_empty(), "{:?}", places);
    }
}

#[test]
fn a_null_without_a_reason_is_found() {
    let value = serde_json::json!({"a": [{"b": null, "c": null, "d": 1, "null_reasons": {"b": "why", "c": " ", "d": "why"}}]});
    assert_eq!(unexplained(&value, ""), ["/a/0/c", "/a/0/null_reasons/d"]);
}
