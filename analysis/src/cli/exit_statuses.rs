//! Exit statuses: see docs/exit-status.md.

/// A part of the input could not be used, or the result could not be written.
pub const PARTIAL: u8 = 1;
/// The command line is not valid, or no input could be used.
pub const USAGE: u8 = 2;
/// `--fail-on` or `--gate` found what it looks for.
pub const FOUND: u8 = 3;
/// Nothing was found, but not everything could be judged.
pub const COULD_NOT_JUDGE: u8 = 4;
