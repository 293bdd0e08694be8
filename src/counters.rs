//! Counts of the Linux kernel and the hardware during the work: perf_event_open(2).
//!
//! An [`event::Event`] is resolved: the program `pmmpi` has turned its name into numbers (`pmmpi_events::names`).
//! Events that must count the same instants share an [`event::Group`]. The Linux kernel schedules a group as a unit,
//! and one system call reads all counts of a group. An [`open_counters::OpenCounters`] opens the events and takes
//! snapshots. Two snapshots, at t1 and at t2, become [`count_and_quality::Reading`]s, each with its
//! [`count_and_quality::Quality`]. An event that was not counted has a reason instead of a value, never 0.

mod arm;
pub mod core_pmus;
pub mod count_and_quality;
pub mod counter_table;
pub mod counters_per_pmu;
pub mod counts;
pub mod default;
pub mod descriptor_room;
pub mod empty_entry;
pub mod event;
pub mod expected;
pub mod open_counters;
pub mod perf_event_open;
pub mod requested;
pub mod selection;
pub mod thread_counter;
