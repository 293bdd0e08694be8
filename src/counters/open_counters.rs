//! The interface of open counters, and their layout in a snapshot.

use super::count_and_quality::{Gap, WhyUnavailable};
use super::event::Event;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Words of a group before its counts: the number of counts, and the times enabled and running (ns).
pub const GROUP_HEAD: usize = 3;

/// Counters of one rank's work.
pub trait OpenCounters {
    /// What was opened, and what could not be.
    fn opened(&self) -> &Opened;

    /// Before a snapshot, checks the descriptors of this number of first words: the program's own code has run, and
    /// may have closed descriptors.
    fn verify(&mut self, _words: usize) {}

    /// Reads every group that lies in `words`, which may be shorter than [`Opened::words`]. One system call per
    /// group. If a group cannot be read, its first word is 0.
    fn snapshot(&mut self, words: &[AtomicU64]);
}

/// What was opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// The sets of events, each with its scope.
    pub sets: Vec<Set>,
    /// Open groups, in the order of their places in a snapshot.
    pub handles: Vec<CounterHandle>,
}

/// Counters that pmmpi opened for a rank's program and handed down to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HandedDown {
    /// What was opened, with the program's descriptors.
    pub opened: Opened,
    /// The descriptors of its groups.
    pub descriptors: Vec<i32>,
}

/// Events that are counted at the same places.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Set {
    /// Where the events are counted.
    pub scope: Scope,
    /// All requested events. Each has a gap if it was not counted, or only a part of it.
    pub events: Vec<(Event, Option<Gap>)>,
    /// The opened groups: indices into `events`. The kernel schedules each group as a unit.
    pub groups: Vec<Vec<u32>>,
}

/// Where events are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// Each rank's own threads and descendants.
    #[default]
    Task,
    /// Everything on each hardware thread of the node.
    Core,
    /// Units outside the cores: memory controllers, caches, power.
    Socket,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Task, Self::Core, Self::Socket];

    /// The scope with this name; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    /// The name in options and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Task => "task",
            Scope::Core => "core",
            Scope::Socket => "socket",
        }
    }
}

/// An open group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterHandle {
    /// Index into [`Opened::sets`].
    pub set: u32,
    /// Index into the set's groups.
    pub group: u32,
    /// The watched hardware thread; `None` if threads are watched.
    pub cpu: Option<u32>,
    /// The leader's descriptor.
    pub descriptor: i32,
    /// The kernel's id of the leader; no other event has it.
    pub id: u64,
}

impl Opened {
    /// How many events the group of this handle has.
    pub fn events_of(&self, handle: &CounterHandle) -> usize {
        let set = self.sets.get(handle.set as usize);
        set.and_then(|set| set.groups.get(handle.group as usize)).map_or(0, Vec::len)
    }

    /// Words that a snapshot takes.
    pub fn words(&self) -> usize {
        self.handles.iter().map(|handle| GROUP_HEAD + self.events_of(handle)).sum()
    }

    /// Words of the counters of the rank's own threads, which come first.
    pub fn task_words(&self) -> usize {
        let is_task = |handle: &&CounterHandle| self.scope_of(handle) == Some(Scope::Task);
        let tasks = self.handles.iter().take_while(is_task);
        tasks.map(|handle| GROUP_HEAD + self.events_of(handle)).sum()
    }

    fn scope_of(&self, handle: &CounterHandle) -> Option<Scope> {
        self.sets.get(handle.set as usize).map(|set| set.scope)
    }

    /// How many handles have their places in the first `words` words.
    pub fn handles_within(&self, mut words: usize) -> usize {
        let fits = |handle: &&CounterHandle| {
            let left = words.checked_sub(GROUP_HEAD + self.events_of(handle));
            words = left.unwrap_or(0);
            left.is_some()
        };
        self.handles.iter().take_while(fits).count()
    }

    /// The same sets with no event open, for this reason.
    pub fn closed(mut self, cause: WhyUnavailable) -> Self {
        for set in &mut self.sets {
            set.groups.clear();
            set.events.iter_mut().for_each(|(_, gap)| _ = gap.get_or_insert(Gap::Unavailable(cause)));
        }
        Self { sets: self.sets, handles: Vec::new() }
    }

    /// Each handle with its place in a snapshot.
    pub fn places<'a>(
        &self,
        mut words: &'a [AtomicU64],
    ) -> impl Iterator<Item = (&CounterHandle, &'a [AtomicU64])> {
        self.handles.iter().map_while(move |handle| {
            let place;
            (place, words) = words.split_at_checked(GROUP_HEAD + self.events_of(handle))?;
            Some((handle, place))
        })
    }
}

/// A probe with prepared snapshots: returns one after the other, then zeros.
#[derive(Clone, Debug, Default)]
pub struct Scripted {
    opened: Opened,
    snapshots: std::collections::VecDeque<Vec<u64>>,
}

impl Scripted {
    /// Returns these snapshots in this order, each in the kernel's form.
    pub fn new(opened: Opened, snapshots: impl IntoIterator<Item = Vec<u64>>) -> Self {
        Self { opened, snapshots: snapshots.into_iter().collect() }
    }
}

impl OpenCounters for Scripted {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn snapshot(&mut self, words: &[AtomicU64]) {
        let values = self.snapshots.pop_front().unwrap_or_default();
        let values = values.into_iter().chain(std::iter::repeat(0));
        words.iter().zip(values).for_each(|(word, value)| word.store(value, Relaxed));
    }
}
