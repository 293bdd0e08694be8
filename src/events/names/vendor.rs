//! The vendors' names of events, which the program `pmmpi-names` looks up.

use pmmpi::counters::event::Encoding;
use serde::{Deserialize, Serialize};

/// The answer of `pmmpi-names`, which has the vendors' tables, to one name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum VendorAnswer {
    /// It is an event.
    Found(Vendor),
    /// No table of this processor has it.
    Unknown {
        /// Similar names in a table.
        like: Vec<String>,
    },
    /// A table has the event, but not with these unit masks or modifiers.
    Refused {
        /// Why not, and what is possible instead.
        why: String,
    },
}

/// An event by a vendor's name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vendor {
    /// As it was typed, without modes.
    pub name: String,
    /// The full name, including the table and all unit masks and modifiers.
    pub full_name: String,
    /// For the kernel.
    pub encoding: Encoding,
}

/// An event that a vendor's table describes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VendorEvent {
    /// With the table's name and a unit mask, as a user would write it.
    pub name: String,
    /// One line.
    pub description: String,
    /// For the kernel.
    pub encoding: Encoding,
}

impl Default for VendorAnswer {
    fn default() -> Self {
        Self::Unknown { like: Vec::new() }
    }
}

/// Up to three of `names` that are nearest to a mistyped one.
pub fn closest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    super::error::closest(typed, names)
}
