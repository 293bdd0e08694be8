//! What a measurement leaves behind: raw values only; everything derived is derived later.
//!
//! Here belong runs, ranks and their ends, and the bytes that they are stored as. Not here: the memory in which a rank
//! measures ([`crate::session`]), and what is left of a job that ended badly ([`crate::partial`]).

mod contribution;
mod header;
mod outcome;
mod rank;
mod run;
mod run_id;
pub mod runfile;
pub mod temporary;
pub mod wire;

pub use contribution::{HostPart, NodePart, Part};
pub use header::{Job, Mode, RunHeader, Series};
pub use outcome::End;
pub use rank::{LostRank, RankRecord};
pub use run::{NodeRecord, Overhead, Run};
pub use run_id::{civil_from_days, new_run_id};
