//! Warnings in English, and as JSON.

use crate::warnings::Warning;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::fmt::{Display, Formatter, Result};

/// What happened, and where.
impl Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Input(warning) => warning.fmt(f),
            Self::Run(warning) => warning.fmt(f),
            Self::Class(warning) => warning.fmt(f),
            Self::Comparison(warning) => warning.fmt(f),
        }
    }
}

/// An object with code, message and advice.
impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Warning", 3)?;
        object.serialize_field("code", self.code().name())?;
        object.serialize_field("message", &self.to_string())?;
        object.serialize_field("advice", self.code().advice())?;
        object.end()
    }
}

/// Sorts warnings by code, and by message if they have the same code.
pub fn sort(warnings: &mut [Warning]) {
    warnings.sort_by_cached_key(|warning| (warning.code(), warning.to_string()));
}
