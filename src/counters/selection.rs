//! What a run is to count, and where.

use super::default;
use super::event::Group;
use super::linux::{Counters, Target};
use super::probe::Scope;
use super::reading::{Cause, Gap};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What one rank is to count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// Each at its places.
    pub sets: Vec<Wanted>,
}

/// Events that are counted at the same places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// What is watched there.
    pub scope: Scope,
    /// What is counted, as it must be scheduled.
    pub groups: Vec<Group>,
    /// Hardware threads of this node, by the kernel's numbers; none where the rank's own threads are watched.
    pub cpus: Vec<u32>,
}

impl Default for Selection {
    /// The default set of the rank's own threads.
    fn default() -> Self {
        let own = Wanted { scope: Scope::Task, groups: default::groups(), cpus: Vec::new() };
        Self { sets: vec![own] }
    }
}

impl Selection {
    /// Opens all that can be opened; `threads` is what is meant by the rank's own, of this program's file.
    pub fn open(&self, threads: Target, program: Option<&Path>) -> Counters {
        let _room = Room::make();
        let mut counters = Counters::default();
        for Wanted { scope, groups, cpus } in &self.sets {
            let places: Vec<Target> = match scope {
                // From its execve(2) on the kernel counts nothing of it any more, and says nothing.
                Scope::Task if program.is_some_and(|program| !is_readable(program)) => {
                    counters.leave_out(*scope, groups, Gap::Unavailable(Cause::Unreadable));
                    continue;
                }
                Scope::Task => vec![threads],
                Scope::Core if cpus.is_empty() => {
                    counters.leave_out(*scope, groups, Gap::Unavailable(Cause::NoSuchThread));
                    continue;
                }
                Scope::Core | Scope::Socket => cpus.iter().map(|cpu| Target::Cpu(*cpu)).collect(),
            };
            counters.add(*scope, groups, &places);
        }
        counters
    }

    /// Without what is in it twice, and the ranks' own threads first: regions count those alone.
    pub fn tidied(mut self) -> Self {
        self.sets.sort_by_key(|wanted| wanted.scope != Scope::Task);
        let mut known = HashSet::new();
        for Wanted { scope, groups, .. } in &mut self.sets {
            for group in groups.iter_mut() {
                group.retain(|event| known.insert((*scope, event.name.clone(), event.encoding)));
            }
            groups.retain(|group| !group.is_empty());
        }
        self.sets.retain(|wanted| !wanted.groups.is_empty());
        self
    }
}

/// True where this user may read a program's file, and it runs as this user: else the kernel lets nobody watch it
/// (ptrace(2), "dumpable").
fn is_readable(program: &Path) -> bool {
    let Ok(path) = CString::new(program.as_os_str().as_bytes()) else { return true };
    let mode = std::fs::metadata(program).map_or(0, |metadata| metadata.mode());
    // SAFETY: the path is a C string.
    unsafe { mode & 0o6000 == 0 && libc::access(path.as_ptr(), libc::R_OK) == 0 }
}

/// As many descriptors as this process may have at all: each event of each hardware thread takes one. Those that are open stay
/// open when the limit is what it was, and that is what the program gets.
struct Room(Option<libc::rlimit>);

impl Room {
    fn make() -> Self {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: both calls read or write a live local.
        let made = unsafe {
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0
                && libc::setrlimit(
                    libc::RLIMIT_NOFILE,
                    &libc::rlimit { rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max },
                ) == 0
        };
        Self(made.then_some(limit))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(limit) = &self.0 {
            // SAFETY: as above. A limit that was right before is.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::event::{Encoding, Event, kind};
    use crate::counters::probe::Probe;
    use crate::counters::reading::Gap;

    #[test]
    fn what_is_asked_for_twice_is_counted_once() {
        let mut selection = Selection::default();
        let core = Wanted { scope: Scope::Core, groups: default::groups_of_a_core(), cpus: vec![0] };
        selection.sets.insert(0, core.clone());
        let more = Event::counted("more", Encoding::new(kind::SOFTWARE, 9));
        let twice = vec![vec![more.clone()], default::groups().remove(0), vec![more.clone()]];
        selection.sets.push(Wanted { scope: Scope::Task, groups: twice, cpus: Vec::new() });
        let tidied = selection.tidied();
        let once = Wanted { scope: Scope::Task, groups: vec![vec![more]], cpus: Vec::new() };
        assert_eq!(tidied.sets, [Selection::default().sets.remove(0), once, core]);
    }

    /// As the second hardware thread of each core where SMT is off.
    #[test]
    fn events_without_a_place_say_so() {
        let clock = Event::counted("cpu_clock", Encoding::new(kind::SOFTWARE, 0));
        let wanted = Wanted { scope: Scope::Core, groups: vec![vec![clock]], cpus: Vec::new() };
        let counters = Selection { sets: vec![wanted] }.open(Target::ThisThread, None);
        let [set] = counters.opened().sets.as_slice() else { panic!("{counters:?}") };
        assert_eq!(set.events[0].1, Some(Gap::Unavailable(Cause::NoSuchThread)));
        assert!(set.groups.is_empty() && counters.opened().handles.is_empty());
    }

    /// As root, or where paranoid is 0 or less; elsewhere they say that they are denied.
    #[test]
    fn hardware_threads_are_watched_each_on_its_own() {
        let clock = Event::counted("cpu_clock", Encoding::new(kind::SOFTWARE, 0));
        let none = Event::counted("none", Encoding::new(kind::HARDWARE, 0xffff));
        let wanted = Wanted { scope: Scope::Core, groups: vec![vec![clock], vec![none]], cpus: vec![0, 1] };
        let sets = vec![Selection::default().sets.remove(0), wanted];
        let selection = Selection { sets };
        let counters = selection.open(Target::ThisThread, None);
        let opened = counters.opened();
        assert_eq!((opened.sets.len(), opened.sets[1].events.len()), (2, 2));
        assert!(opened.sets[1].events[1].1.is_some());
        let cpus: Vec<_> = opened.handles.iter().filter(|h| h.set == 1).map(|h| h.cpu).collect();
        let allowed = opened.sets[1].events[0].1.is_none();
        assert!(if allowed { cpus == [Some(0), Some(1)] } else { cpus.is_empty() }, "{opened:#?}");
    }
}
