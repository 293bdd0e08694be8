//! Whoever has opened counters and reads them.

use super::event::Event;
use super::reading::{Gap, WhyUnavailable};
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Words of a group before its counts: how many counts follow, and the times enabled and running (ns).
pub const GROUP_HEAD: usize = 3;

/// Counters of one rank's work.
pub trait Probe {
    /// What is counted, and what is not.
    fn opened(&self) -> &Opened;

    /// Before a snapshot of so many words that comes after the program's own code: its descriptors may not be what
    /// they were.
    fn verify(&mut self, _words: usize) {}

    /// Reads every group that has its place in `words`: all of [`Opened::words`], or the first of them. One system call a group. A
    /// group that cannot be read leaves zeros.
    fn snapshot(&mut self, words: &[AtomicU64]);
}

/// What was opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// What is counted, each set where it is.
    pub sets: Vec<Set>,
    /// Open groups, in the order of their places in a snapshot.
    pub handles: Vec<CounterHandle>,
}

/// Counters that a launcher opened for its rank's program, and handed down to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HandedDown {
    /// What is counted.
    pub opened: Opened,
    /// The descriptors of its groups.
    pub descriptors: Vec<i32>,
}

/// Events that are counted at the same places.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Set {
    /// Where.
    pub scope: Scope,
    /// All that was asked for, and why some were not counted, or not all of them.
    pub events: Vec<(Event, Option<Gap>)>,
    /// Those that were opened, by their index in `events`, as the kernel schedules them.
    pub groups: Vec<Vec<u32>>,
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// Each rank's own threads and descendants.
    #[default]
    Task,
    /// Everything on each hardware thread of the node.
    Core,
    /// What belongs to no core: memory controllers, caches, power.
    Socket,
}

impl Scope {
    /// As options and JSON have it.
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
    /// Index into its groups.
    pub group: u32,
    /// The hardware thread that is watched; `None` where threads are.
    pub cpu: Option<u32>,
    /// The leader's descriptor.
    pub descriptor: i32,
    /// The kernel's number of the leader, which no other event has.
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

    /// Words of the rank's own threads, which come first.
    pub fn task_words(&self) -> usize {
        let is_task = |handle: &&CounterHandle| self.scope_of(handle) == Some(Scope::Task);
        let tasks = self.handles.iter().take_while(is_task);
        tasks.map(|handle| GROUP_HEAD + self.events_of(handle)).sum()
    }

    fn scope_of(&self, handle: &CounterHandle) -> Option<Scope> {
        self.sets.get(handle.set as usize).map(|set| set.scope)
    }

    /// How many handles have their places in the first so many words.
    pub fn handles_within(&self, mut words: usize) -> usize {
        let fits = |handle: &&CounterHandle| {
            let left = words.checked_sub(GROUP_HEAD + self.events_of(handle));
            words = left.unwrap_or(0);
            left.is_some()
        };
        self.handles.iter().take_while(fits).count()
    }

    /// The same, and nothing of it is open, for this reason.
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

/// Counts that were written down beforehand: what the kernel says next, and then nothing.
#[derive(Clone, Debug, Default)]
pub struct Scripted {
    opened: Opened,
    snapshots: std::collections::VecDeque<Vec<u64>>,
}

impl Scripted {
    /// Gives these snapshots one after the other, each in the kernel's form.
    pub fn new(opened: Opened, snapshots: impl IntoIterator<Item = Vec<u64>>) -> Self {
        Self { opened, snapshots: snapshots.into_iter().collect() }
    }
}

impl Probe for Scripted {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn snapshot(&mut self, words: &[AtomicU64]) {
        let values = self.snapshots.pop_front().unwrap_or_default();
        let values = values.into_iter().chain(std::iter::repeat(0));
        words.iter().zip(values).for_each(|(word, value)| word.store(value, Relaxed));
    }
}
