//! Where snapshots lie: memory that outlives the rank.

use std::sync::atomic::AtomicU64;

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
#[derive(Clone, Copy, Debug)]
pub struct CounterTable<'a> {
    words: &'a [AtomicU64],
}

/// Words of a group before its counts.
pub const GROUP_HEAD: usize = 3;

impl<'a> CounterTable<'a> {
    /// Words that two snapshots of groups with so many events take.
    pub fn words(events: impl IntoIterator<Item = usize>) -> usize {
        SNAPSHOTS * events.into_iter().map(|events| GROUP_HEAD + events).sum::<usize>()
    }

    /// In memory that is large enough for what is to be counted.
    pub fn new(words: &'a [AtomicU64]) -> Self {
        Self { words }
    }

    /// The memory of one snapshot.
    pub fn of(&self, snapshot: Snapshot) -> &'a [AtomicU64] {
        let each = self.words.len() / SNAPSHOTS;
        &self.words[snapshot as usize * each..][..each]
    }
}
