//! Where snapshots lie: memory that outlives the rank.

use super::probe::Opened;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Which of a rank's snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// At t1.
    Start = 0,
    /// At t2.
    Stop = 1,
}

const SNAPSHOTS: usize = 2;

/// Two snapshots, each as the kernel hands out groups (perf_event_open(2), PERF_FORMAT_GROUP), one group after the
/// other: how many events, ns enabled, ns running, and each event's count.
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterTable<'a> {
    words: &'a [AtomicU64],
}

/// Words of a group before its counts.
pub const GROUP_HEAD: usize = 3;

impl<'a> CounterTable<'a> {
    /// Words that the snapshots of what was opened take.
    pub fn words(opened: &Opened) -> usize {
        SNAPSHOTS * opened.words()
    }

    /// In memory that is large enough for what is to be counted.
    pub fn new(words: &'a [AtomicU64]) -> Self {
        Self { words }
    }

    /// A first snapshot of counters that have not counted yet.
    pub fn start_at_zero(&self, opened: &Opened) {
        for (_, place) in opened.places(self.of(Snapshot::Start)) {
            place.iter().for_each(|word| word.store(0, Relaxed));
            place[0].store((place.len() - GROUP_HEAD) as u64, Relaxed);
        }
    }

    /// The memory of one snapshot.
    pub fn of(&self, snapshot: Snapshot) -> &'a [AtomicU64] {
        let each = self.words.len() / SNAPSHOTS;
        &self.words[snapshot as usize * each..][..each]
    }
}
