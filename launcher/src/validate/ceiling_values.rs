//! The values of [`super::ceilings`].

use serde::Serialize;

/// The ceilings of one socket.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SocketCeilings {
    /// The kernel's number of the socket.
    pub socket: u32,
    /// One hardware thread per core.
    pub hardware_threads: Vec<u32>,
    /// The last-level caches of these hardware threads together.
    pub cache_bytes: Option<u64>,
    /// One of the three arrays of STREAM.
    pub array_bytes: Option<u64>,
    /// Best rates.
    pub bandwidth: Vec<Bandwidth>,
    /// Best time of a load that depends on the load before; one core, while the other cores are idle.
    pub latency_ns: Option<f64>,
    /// Cache lines in flight at the highest bandwidth and this latency.
    pub lines_in_flight: Option<f64>,
    /// Why a value is missing.
    pub reason: Option<String>,
    /// What the reader of the values must know.
    pub notes: Vec<String>,
}

/// The rate of one loop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bandwidth {
    /// copy, scale, add or triad.
    pub name: &'static str,
    /// ordinary or non-temporal.
    pub stores: &'static str,
    /// As STREAM counts: 16 bytes per element for copy and scale, 24 for add and triad.
    pub gigabytes_per_s: f64,
    /// As memory sees it: an ordinary store also reads its line.
    pub memory_gigabytes_per_s: f64,
}
