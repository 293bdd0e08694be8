//! The kernels of `pmmpi screen`, which finds slow nodes of a fleet.
//!
//! A kernel runs on a [`Team`] of threads, each pinned to one hardware thread. Its result has a value for the whole
//! node and a value for each hardware thread, so that a slow core has a name. Every kernel checks what it computed: a
//! wrong result is an [`Error::Wrong`], never a time. The crate `pmmpi-kernels` is something else: its loops have known
//! counts of events, and `pmmpi validate` compares counters with them.

#![warn(missing_docs)]

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the kernels are written for x86_64 and aarch64 only: write them for this processor, too");

mod affinity;
mod barrier;
mod dgemm;
mod disk;
mod error;
mod fma;
mod kernel;
mod latency;
mod pages;
mod random;
mod spin;
mod team;
mod triad;

pub use affinity::allowed_hardware_threads;
pub use dgemm::{Blas, Dgemm, DgemmSettings};
pub use disk::{Disk, DiskSettings};
pub use error::{Error, Wrong};
pub use fma::{Fma, FmaSettings};
pub use kernel::{Measure, MeasureValue, Repetition, ScreenKernel, repeat};
pub use latency::{Latency, LatencySettings};
pub use spin::{Spin, SpinSettings};
pub use team::{PerThread, Span, Team, TeamMember};
pub use triad::{Stores, Triad, TriadSettings};
