//! Reports as JSON, checked with their schema.

use crate::tool::{pmmpi, run};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// `pmmpi report` of a folder or file.
pub fn checked_report(input: &Path) -> Value {
    let mut command = Command::new(pmmpi());
    let output = run(command.args(["report", "--format", "json"]).arg(input)).success();
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema/report.schema.json");
    let schema = std::fs::read(schema).expect("the schema");
    let schema: Value = serde_json::from_slice(&schema).expect("a schema in JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<String> = validator.iter_errors(&json).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    json
}
