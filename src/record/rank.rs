//! One rank of a run.

use super::outcome::End;
use crate::bounds::{RawClock, Stamps};
use crate::ids::{NodeId, RankId};
use crate::node::CpuSet;
use crate::regions::Whereabouts;
use serde::{Deserialize, Serialize};

/// One rank of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankRecord {
    /// Which rank.
    pub rank: RankId,
    /// The clock that the stamps were read from.
    pub node: NodeId,
    /// CLOCK_MONOTONIC at t0..t3.
    pub stamps: Stamps,
    /// CLOCK_MONOTONIC_RAW around the stamps.
    pub raw: RawClock,
    /// CLOCK_REALTIME right after t1 and right before t2, ns since 1970. For dates only, not for durations.
    pub real_ns: [i64; 2],
    /// Time stamp counter at these two places, in ticks; `None` if it is not invariant.
    pub tsc: Option<[u64; 2]>,
    /// CPU time spent between t1 and t2 by the rank's process and its threads (MPI) or by the child
    /// and its descendants (plain), in user mode (ns).
    pub cpu_user_ns: i64,
    /// The same in the kernel.
    pub cpu_system_ns: i64,
    /// Hardware threads that the rank may run on.
    pub allowed: CpuSet,
    /// Hardware thread that it ran on at t1 and at t2; `None` if the kernel does not report it.
    pub ran_on: [Option<u32>; 2],
    /// How its work ended.
    pub end: End,
    /// Time that the tool took before t0, including the search for the other ranks (ns).
    pub setup_ns: i64,
}

impl RankRecord {
    /// A rank of which only the end is known.
    pub fn unmeasured(end: End) -> Self {
        Self {
            rank: RankId(0),
            node: NodeId(0),
            stamps: Stamps::default(),
            raw: RawClock::default(),
            real_ns: [0; 2],
            tsc: None,
            cpu_user_ns: 0,
            cpu_system_ns: 0,
            allowed: CpuSet::default(),
            ran_on: [None; 2],
            end,
            setup_ns: 0,
        }
    }

    /// The least difference between its clock's rate and the oscillator's (ppm).
    pub fn slew_ppm(&self) -> f64 {
        self.raw.slew_ppm(self.stamps)
    }
}

/// A rank that reached t1 but not t3.
#[derive(Clone, Debug, PartialEq)]
pub struct LostRank {
    /// Which rank.
    pub rank: RankId,
    /// Its clock.
    pub node: NodeId,
    /// t0, t1 and, if the rank reached it, t2 (CLOCK_MONOTONIC, ns).
    pub t_ns: Vec<i64>,
    /// How it ended.
    pub end: End,
    /// When its launcher saw the end (CLOCK_MONOTONIC, ns); `None` if the launcher did not.
    pub ended_ns: Option<i64>,
    /// The region that it was in, if known.
    pub whereabouts: Option<Whereabouts>,
}
