//! What stands against believing a result: values, rendered elsewhere.

use serde::Serialize;

/// Something that the reader of a result must know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Warning {
    /// For scripts: stable, lower case, with hyphens.
    pub code: &'static str,
    /// What is the case, and where.
    pub message: String,
    /// What to do about it.
    pub advice: String,
}

/// "12.3 %"; a power of ten where nobody reads digits.
pub(crate) fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent.abs() < 1e6 { format!("{percent:.1} %") } else { format!("{percent:.1e} %") }
}

impl Warning {
    /// All three in one line of code.
    pub fn new(code: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { code, message: message.into(), advice: advice.into() }
    }
}
