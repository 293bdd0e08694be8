//! What the kernel and the hardware counted while the work ran: perf_event_open(2).
//!
//! An [`event::Event`] is resolved: names of events end in the launcher (`pmmpi_events::names`). Events that must count the same instants share an
//! [`event::Group`], which the kernel schedules as one and hands out in one system call. A
//! [`probe::Probe`] has opened them and takes snapshots; two snapshots, one at t1 and one at t2, become
//! [`reading::Reading`]s, each with its [`reading::Quality`]: what was not counted says why, and is never 0.

mod arm;
pub mod core_pmus;
pub mod counter_table;
pub mod counts;
pub mod default;
pub mod descriptor_room;
pub mod event;
pub mod perf_event_open;
pub mod probe;
pub mod reading;
pub mod requested;
pub mod selection;
pub mod thread_counter;
