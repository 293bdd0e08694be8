//! Where an event can be counted: in threads, or only for a larger unit such as a socket.

use pmmpi::counters::open_counters::Scope;
use pmmpi::node::CpuSet;

/// Where an event can be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// In any thread of a program, and on each of these hardware threads; on all if `None`.
    Threads(Option<CpuSet>),
    /// Not in a program. Each of these hardware threads stands for a larger unit, such as its socket: the `cpumask`
    /// of the PMU.
    Socket(CpuSet),
}

impl Places {
    /// True if it can be counted in this scope.
    pub fn allow(&self, scope: Scope) -> bool {
        match self {
            Places::Threads(_) => scope != Scope::Socket,
            Places::Socket(_) => scope == Scope::Socket,
        }
    }

    /// The `online` hardware threads on which it is opened in the scopes core and socket; ascending.
    pub fn cpus(&self, online: &CpuSet) -> Vec<u32> {
        let numbers =
            |set: &CpuSet| set.0.iter().flat_map(|(first, last)| *first..=*last).collect::<Vec<u32>>();
        match self {
            Places::Threads(None) => numbers(online),
            Places::Threads(Some(set)) | Places::Socket(set) => {
                let is_online =
                    |cpu: &u32| online.0.iter().any(|(first, last)| (first..=last).contains(&cpu));
                numbers(set).into_iter().filter(is_online).collect()
            }
        }
    }

    /// True if there is no hardware thread to count on.
    pub(super) fn is_nowhere(&self) -> bool {
        matches!(self, Places::Threads(Some(set)) | Places::Socket(set) if set.0.is_empty())
    }
}
