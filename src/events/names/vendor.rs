use pmmpi::counters::event::Encoding;
use serde::{Deserialize, Serialize};

/// What somebody with a vendor's tables says of a name, as it travels from `pmmpi-names`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum VendorAnswer {
    /// It is an event.
    Found(Vendor),
    /// No table of this processor has it.
    Unknown {
        /// Names like it that one has.
        like: Vec<String>,
    },
    /// It is there, but not with these unit masks or modifiers.
    Refused {
        /// Why not, and how else.
        why: String,
    },
}

/// An event by a vendor's name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vendor {
    /// As it was typed, without modes.
    pub name: String,
    /// The whole name, with the table's and with all unit masks and modifiers.
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

/// Up to three of `names` in which a typing error may have been made.
pub fn closest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    super::error::closest(typed, names)
}
