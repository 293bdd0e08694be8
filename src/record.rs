//! The result of a measurement: raw values only. Everything else is derived from them later.
//!
//! This module holds runs, ranks and their ends, and the bytes in which they are stored. [`crate::session`] has the
//! memory in which a rank measures; [`crate::partial`] has what is left of a job that ended badly.

mod binding;
mod contribution;
mod header;
mod node_additions;
mod outcome;
mod rank;
mod run;
pub mod run_file;
mod run_id;
mod screened;
pub mod temporary;
pub mod wire;

pub use binding::BoundTo;
pub use contribution::{HostPart, NodePart, Part};
pub use header::{Job, Mode, RunHeader, Series};
pub use outcome::End;
pub use rank::{LostRank, RankRecord};
pub use run::{NodeRecord, Overhead, Run};
pub use run_id::{civil_from_days, new_run_id};
pub use screened::{KernelMeasure, KernelReport, KernelResult, Link, Screened};
