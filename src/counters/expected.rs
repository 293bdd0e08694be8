//! Numbers of instructions that the user expects.

use serde::{Deserialize, Serialize};

/// From the option `--expect`: how many instructions a part of the program should execute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedInstructions {
    /// The name of a region or of a probe; `None` for the whole work.
    pub part: Option<String>,
    /// Instructions of one rank in the whole work, or of one entry of the part.
    pub instructions: u64,
}

/// The number for a part of the program, or for the whole work (`None`).
pub fn instructions_of(expected: &[ExpectedInstructions], part: Option<&str>) -> Option<u64> {
    expected.iter().find(|of| of.part.as_deref() == part).map(|of| of.instructions)
}
