//! What a run counts, and where.

use super::count_and_quality::{Gap, WhyUnavailable};
use super::default;
use super::descriptor_room::DescriptorRoom;
use super::event::Group;
use super::expected::ExpectedInstructions;
use super::open_counters::Scope;
use super::perf_event_open::{Counters, Target};
use super::requested::AskedFor;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What one rank counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// The sets, each with its places.
    pub sets: Vec<WantedSet>,
    /// The options that asked for events.
    pub asked: Vec<AskedFor>,
    /// What `--expect` gives.
    pub expected: Vec<ExpectedInstructions>,
}

/// Events that are counted at the same places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WantedSet {
    /// The kind of place.
    pub scope: Scope,
    /// The events; the kernel must schedule each group as a unit.
    pub groups: Vec<Group>,
    /// Hardware threads of this node, by the kernel's numbers; empty if the rank's own threads are watched.
    pub cpus: Vec<u32>,
    /// The reason why pmmpi does not try to open them.
    pub left_out: Option<Gap>,
}

impl WantedSet {
    /// A set that pmmpi tries to open.
    pub fn new(scope: Scope, groups: Vec<Group>, cpus: Vec<u32>) -> Self {
        Self { scope, groups, cpus, left_out: None }
    }
}

impl Default for Selection {
    /// The default set of the rank's own threads.
    fn default() -> Self {
        Self::of(vec![WantedSet::new(Scope::Task, default::groups(), Vec::new())])
    }
}

impl Selection {
    /// These sets, none of them requested by an option.
    pub fn of(sets: Vec<WantedSet>) -> Self {
        Self { sets, asked: Vec::new(), expected: Vec::new() }
    }

    /// The same sets with counters off.
    pub fn off(mut self) -> Self {
        self.sets.iter_mut().for_each(|wanted| wanted.left_out = Some(Gap::Unavailable(WhyUnavailable::Off)));
        self
    }

    /// Opens all that it can. `threads` is the target for the rank's own threads; `program` is the file that they
    /// execute.
    pub fn open(&self, threads: Target, program: Option<&Path>) -> Counters {
        self.open_within(u64::MAX, threads, program)
    }

    /// Opens counters for a program that will inherit them. Counters of the whole node open only if there is room
    /// beyond the descriptors that the program may open itself.
    pub fn open_for(&self, program: &Path) -> Counters {
        self.open_within(DescriptorRoom::make().to_inherit(), Target::NextProgram, Some(program))
    }

    fn open_within(&self, mut room: u64, threads: Target, program: Option<&Path>) -> Counters {
        let limit = DescriptorRoom::make();
        let mut counters = Counters::default();
        for WantedSet { scope, groups, cpus, left_out } in &self.sets {
            // The program inherits one descriptor for each group at each place.
            let needed = (groups.len() * cpus.len()) as u64;
            let places: Vec<Target> = match scope {
                _ if left_out.is_some() => {
                    left_out.iter().for_each(|gap| counters.leave_out(*scope, groups, *gap));
                    continue;
                }
                Scope::Core | Scope::Socket if needed > room => {
                    counters.leave_out(
                        *scope,
                        groups,
                        Gap::Unavailable(WhyUnavailable::NoRoom(libc::EMFILE)),
                    );
                    continue;
                }
                // From the program's execve(2) on the kernel counts nothing, and reports no error.
                Scope::Task if program.is_some_and(|program| !is_readable(program)) => {
                    counters.leave_out(*scope, groups, Gap::Unavailable(WhyUnavailable::Unreadable));
                    continue;
                }
                Scope::Task => vec![threads],
                Scope::Core if cpus.is_empty() => {
                    counters.leave_out(*scope, groups, Gap::Unavailable(WhyUnavailable::NoSuchThread));
                    continue;
                }
                Scope::Core | Scope::Socket => cpus.iter().map(|cpu| Target::Cpu(*cpu)).collect(),
            };
            room = room.saturating_sub(needed);
            counters.add(*scope, groups, &places);
        }
        counters.move_away(limit.near(), &limit);
        counters
    }

    /// Removes duplicate events and puts the ranks' own threads first: regions count only those.
    pub fn tidied(mut self) -> Self {
        self.sets.sort_by_key(|wanted| wanted.scope != Scope::Task);
        let mut known = HashSet::new();
        for WantedSet { scope, groups, .. } in &mut self.sets {
            for group in groups.iter_mut() {
                group.retain(|event| known.insert((*scope, event.name.clone(), event.encoding)));
            }
            groups.retain(|group| !group.is_empty());
        }
        self.sets.retain(|wanted| !wanted.groups.is_empty());
        self
    }
}

/// True if this user may read the program's file and the program runs as this user. Otherwise the kernel does not
/// let the user watch it (ptrace(2), "dumpable").
fn is_readable(program: &Path) -> bool {
    let Ok(path) = CString::new(program.as_os_str().as_bytes()) else { return true };
    let mode = std::fs::metadata(program).map_or(0, |metadata| metadata.mode());
    // SAFETY: the path is a C string.
    unsafe { mode & 0o6000 == 0 && libc::access(path.as_ptr(), libc::R_OK) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::count_and_quality::Gap;
    use crate::counters::event::{Encoding, Event, kind};
    use crate::counters::open_counters::OpenCounters;

    #[test]
    fn what_is_asked_for_twice_is_counted_once() {
        let mut selection = Selection::default();
        let core = WantedSet::new(Scope::Core, default::groups_of_a_core(), vec![0]);
        selection.sets.insert(0, core.clone());
        let more = Event::counted("more", Encoding::new(kind::SOFTWARE, 9));
        let twice = vec![vec![more.clone()], default::groups().remove(0), vec![more.clone()]];
        selection.sets.push(WantedSet::new(Scope::Task, twice, Vec::new()));
        let tidied = selection.tidied();
        let once = WantedSet::new(Scope::Task, vec![vec![more]], Vec::new());
        assert_eq!(tidied.sets, [Selection::default().sets.remove(0), once, core]);
    }

    /// For example the second hardware thread of each core with SMT off.
    #[test]
    fn events_without_a_place_say_so() {
        let clock = Event::counted("cpu_clock", Encoding::new(kind::SOFTWARE, 0));
        let wanted = WantedSet::new(Scope::Core, vec![vec![clock]], Vec::new());
        let counters = Selection::of(vec![wanted]).open(Target::ThisThread, None);
        let [set] = counters.opened().sets.as_slice() else { panic!("{counters:?}") };
        assert_eq!(set.events[0].1, Some(Gap::Unavailable(WhyUnavailable::NoSuchThread)));
        assert!(set.groups.is_empty() && counters.opened().handles.is_empty());
    }

    #[test]
    fn nothing_is_opened_where_counters_are_off() {
        let wanted = WantedSet::new(Scope::Core, default::groups_of_a_core(), vec![0]);
        let selection = Selection::of(vec![Selection::default().sets.remove(0), wanted]).off();
        let counters = selection.open(Target::ThisThread, None);
        let opened = counters.opened();
        assert!(opened.handles.is_empty() && opened.sets.len() == 2);
        let mut gaps = opened.sets.iter().flat_map(|set| &set.events).map(|(_, gap)| *gap);
        assert!(gaps.all(|gap| gap == Some(Gap::Unavailable(WhyUnavailable::Off))), "{opened:#?}");
    }

    /// Works as root, or with perf_event_paranoid at 0 or less; elsewhere the events are denied.
    #[test]
    fn hardware_threads_are_watched_each_on_its_own() {
        let clock = Event::counted("cpu_clock", Encoding::new(kind::SOFTWARE, 0));
        let none = Event::counted("none", Encoding::new(kind::HARDWARE, 0xffff));
        let wanted = WantedSet::new(Scope::Core, vec![vec![clock], vec![none]], vec![0, 1]);
        let selection = Selection::of(vec![Selection::default().sets.remove(0), wanted]);
        let counters = selection.open(Target::ThisThread, None);
        let opened = counters.opened();
        assert_eq!((opened.sets.len(), opened.sets[1].events.len()), (2, 2));
        assert!(opened.sets[1].events[1].1.is_some());
        let cpus: Vec<_> = opened.handles.iter().filter(|h| h.set == 1).map(|h| h.cpu).collect();
        let allowed = opened.sets[1].events[0].1.is_none();
        assert!(if allowed { cpus == [Some(0), Some(1)] } else { cpus.is_empty() }, "{opened:#?}");
    }
}
