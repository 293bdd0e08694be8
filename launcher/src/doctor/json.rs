//! The report as JSON: docs/schema/doctor.schema.json.

use super::check::DoctorReport;
use pmmpi_workload::Failure;
use serde::Serialize;

/// Within a version, new keys may come but none disappear.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    pmmpi_version: &'static str,
    node: &'a str,
    status: &'static str,
    checks: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'static str,
    status: &'static str,
    found: &'a str,
    meaning: &'a str,
    fix: Option<&'a str>,
}

/// One JSON object and a newline.
pub fn render(report: &DoctorReport) -> Result<String, Failure> {
    let checks = report.checks.iter().map(|check| Row {
        name: check.name,
        status: check.status.name(),
        found: &check.found,
        meaning: &check.meaning,
        fix: check.fix.as_deref(),
    });
    let document = Document {
        schema_version: SCHEMA_VERSION,
        pmmpi_version: env!("CARGO_PKG_VERSION"),
        node: &report.node,
        status: report.status().name(),
        checks: checks.collect(),
    };
    let json = serde_json::to_string_pretty(&document);
    json.map(|json| json + "\n")
        .map_err(|e| Failure::own(format_args!("cannot write the result as JSON: {e}")))
}
