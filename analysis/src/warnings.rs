//! Facts that limit a result and that its reader must know, as data.
//!
//! Each step of the analysis decides when to give a warning. [`code`] has the meaning and the advice of each kind, and
//! [`crate::render::sentences`] says the facts in English.

pub mod code;
mod first_few;
pub mod of_classes;
pub mod of_comparisons;
pub mod of_input;
pub mod of_runs;

pub use code::WarningCode;
pub use first_few::FirstFew;
pub use of_classes::ClassWarning;
pub use of_comparisons::ComparisonWarning;
pub use of_input::InputWarning;
pub use of_runs::RunWarning;

/// A fact that the reader of a result must know.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// About what pmmpi read, or could not read.
    Input(InputWarning),
    /// About one run of pmmpi.
    Run(RunWarning),
    /// About the nodes and runs of a class, or about several classes.
    Class(ClassWarning),
    /// About two sets of runs.
    Comparison(ComparisonWarning),
}

impl Warning {
    /// The kind of warning.
    pub fn code(&self) -> WarningCode {
        match self {
            Self::Input(warning) => warning.code(),
            Self::Run(warning) => warning.code(),
            Self::Class(warning) => warning.code(),
            Self::Comparison(warning) => warning.code(),
        }
    }
}

/// Wraps the warnings of each step.
macro_rules! from {
    ($($variant:ident $warning:ident)*) => {
        $(impl From<$warning> for Warning {
            fn from(warning: $warning) -> Self {
                Self::$variant(warning)
            }
        })*
    };
}

from! { Input InputWarning Run RunWarning Class ClassWarning Comparison ComparisonWarning }
