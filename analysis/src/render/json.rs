//! JSON: all there is, for programs. The keys are the fields of [`crate::report::Report`] and of the values in it. They are
//! a contract: docs/schema/report.schema.json.

use serde::Serialize;

/// The report, or bounds, as indented JSON with a line end.
pub fn of(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(value).map(|text| text + "\n")
}
