//! A node: its clock, its hardware and its settings.
//!
//! This module reads facts of a machine, and what its Linux kernel counts, before and after the work. PMUs and their
//! events are in [`crate::counters`].

mod cores;
mod cpu_set;
mod equal_values;
mod fact_names;
mod facts;
mod health;
mod identity;
mod inventory;
mod kernel_files;
mod kernel_settings;
mod links;
mod mpi_process;
mod process_settings;
mod topology;
mod turbo_steps;

pub use cores::{Cores, first_of_chips};
pub use cpu_set::CpuSet;
pub use equal_values::counted;
pub use fact_names::FACTS;
pub use facts::{FACTS_MAY_CHANGE_AFTER, Hardware, NodeFacts, NodeSettings, microcode_now};
pub use health::{
    CountName, GpuReading, HEALTH_COUNTS, HealthCount, HealthReading, USAGE_COUNTS, Watched, count_name,
};
pub use identity::NodeKey;
pub use inventory::Inventory;
pub(crate) use kernel_files::text as kernel_text;
pub use mpi_process::of_process as facts_of_mpi_process;
pub use process_settings::of_process as settings_of_process;
pub use topology::{CacheLevel, HwThread, NumaNode, Topology};
pub use turbo_steps::{NoTurboSteps, TurboSteps};
