//! Where the hardware threads, memory and caches of a node are, according to hwloc.

use serde::{Deserialize, Serialize};

/// Where a node's hardware threads, memory and caches are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// The library that read it, with its version.
    pub source: String,
    /// By the kernel's number, ascending.
    pub threads: Vec<HwThread>,
    /// By the kernel's number, ascending.
    pub memories: Vec<NumaNode>,
    /// Data and unified caches, one row per level and size.
    pub caches: Vec<CacheLevel>,
}

/// One hardware thread and its place. Core, socket and cache numbers count from 0 within the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HwThread {
    /// The kernel's number.
    pub cpu: u32,
    /// The core that it shares with its siblings.
    pub core: u32,
    /// The socket (package).
    pub socket: u32,
    /// The NUMA node that is nearest, by the kernel's number.
    pub numa: u32,
    /// Its last-level cache.
    pub last_level_cache: Option<u32>,
}

/// One NUMA node's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    /// The kernel's number.
    pub numa: u32,
    /// Its size (bytes).
    pub memory_bytes: u64,
}

/// The caches of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheLevel {
    /// 1, 2, 3, ...
    pub level: u32,
    /// Size of each (bytes).
    pub size_bytes: u64,
    /// How many the node has.
    pub count: u32,
}
