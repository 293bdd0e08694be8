//! A node: which clock it has, what it is made of and how it is set up.
//!
//! Here belongs what is read of a machine before anything is measured. Not here: PMUs and their events
//! ([`crate::counters`]).

mod cores;
mod cpu_set;
mod facts;
mod kernel_files;
mod key;
mod topology;

pub use cores::Cores;
pub use cpu_set::CpuSet;
pub use facts::{Hardware, NodeFacts, NodeSettings, microcode_now};
pub(crate) use kernel_files::text as kernel_text;
pub use key::NodeKey;
pub use topology::{CacheLevel, HwThread, NumaNode, Topology};
