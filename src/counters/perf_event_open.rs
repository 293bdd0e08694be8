//! Counters of the Linux kernel: perf_event_open(2), through the crate perf-event2.

use super::arm;
use super::count_and_quality::Gap;
use super::descriptor_room::DescriptorRoom;
use super::event::{Encoding, Event, Group, Modes, kind};
use super::open_counters::{CounterHandle, HandedDown, OpenCounters, Opened, Scope, Set};
use perf_event::{Builder, Counter, ReadFormat, events};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The threads or the hardware thread that counters watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The program that the calling thread executes next, from its execve(2) on, with all threads and descendants.
    NextProgram,
    /// The calling thread from now on, with the threads and processes that it starts.
    ThisThread,
    /// This thread of any process from now on, with the threads and processes that it starts.
    Thread(i32),
    /// Everything on this hardware thread.
    Cpu(u32),
}

/// Open counters. They count until this value is dropped and no other process has them open.
#[derive(Debug, Default)]
pub struct Counters {
    opened: Opened,
    /// All descriptors, members included: closing a descriptor closes its counter.
    descriptors: Vec<OwnedFd>,
}

impl Counters {
    /// Opens what it can. Each event that it cannot open gets a reason.
    pub fn open(groups: &[Group], target: Target) -> Self {
        let mut counters = Self::default();
        counters.add(Scope::Task, groups, &[target]);
        counters
    }

    /// Opens the same groups at several places.
    pub fn add(&mut self, scope: Scope, groups: &[Group], targets: &[Target]) {
        let mut set = Set { scope, ..Set::default() };
        let number = self.opened.sets.len() as u32;
        for wanted in groups {
            self.add_group(&mut set, number, wanted, targets);
        }
        self.opened.sets.push(set);
    }

    /// Opens none of these groups, and records this reason.
    pub fn leave_out(&mut self, scope: Scope, groups: &[Group], gap: Gap) {
        let events = groups.iter().flatten().map(|event| (event.clone(), Some(gap))).collect();
        self.opened.sets.push(Set { scope, events, groups: Vec::new() });
    }

    fn add_group(&mut self, set: &mut Set, number: u32, wanted: &Group, targets: &[Target]) {
        let Some((first, others)) = targets.split_first() else { return };
        // The first target shows which events open. An event that does not fit into its group starts another group.
        let mut open: Vec<OpenGroup> = Vec::new();
        for event in wanted {
            let at = set.events.len() as u32;
            let gap = match Self::place(&mut open, event, at, *first) {
                Ok(gap) => gap,
                Err(gap) => Some(gap),
            };
            set.events.push((event.clone(), gap));
        }
        for group in open {
            let at = set.groups.len() as u32;
            let like = |target: &Target| (OpenGroup::like(&group, set, *target), *target);
            let more: Vec<_> = others.iter().map(like).collect();
            set.groups.push(group.events.clone());
            self.keep(Some(group), number, at, *first);
            more.into_iter().for_each(|(group, target)| self.keep(group, number, at, target));
        }
    }

    /// Opens an event in the last group if it fits there, else in a new group.
    fn place(open: &mut Vec<OpenGroup>, event: &Event, at: u32, target: Target) -> Result<Option<Gap>, Gap> {
        if let Some(group) = open.last_mut()
            && let Ok((counter, gap)) = open_event(event, target, Some(&mut group.leader))
        {
            group.members.push(counter);
            group.events.push(at);
            return Ok(gap);
        }
        let (leader, gap) = open_event(event, target, None)?;
        open.push(OpenGroup { leader, members: Vec::new(), events: vec![at] });
        Ok(gap)
    }

    /// Records a handle even if the group did not open at this target, so that sums show that a value is missing.
    fn keep(&mut self, group: Option<OpenGroup>, set: u32, number: u32, target: Target) {
        let cpu = if let Target::Cpu(cpu) = target { Some(cpu) } else { None };
        let (descriptor, id) = group.and_then(|group| self.leader(group, target)).unwrap_or((NONE, 0));
        self.opened.handles.push(CounterHandle { set, group: number, cpu, descriptor, id });
    }

    /// Starts a group and keeps its descriptors. Returns the leader's descriptor and id.
    fn leader(&mut self, mut group: OpenGroup, target: Target) -> Option<(RawFd, u64)> {
        if target != Target::NextProgram {
            group.leader.enable_group().ok()?;
        }
        let id = group.leader.id();
        let leader = group.leader.as_raw_fd();
        let all = std::iter::once(group.leader).chain(group.members);
        // SAFETY: into_raw_fd gives away the counter's own descriptor.
        self.descriptors.extend(all.map(|counter| unsafe { OwnedFd::from_raw_fd(counter.into_raw_fd()) }));
        Some((leader, id))
    }

    /// Moves the descriptors from `near` on beyond those that a program may open itself. They stay if there is no
    /// room.
    pub(super) fn move_away(&mut self, near: RawFd, room: &DescriptorRoom) {
        let from = room.first(1);
        let mut moved = HashMap::new();
        for descriptor in self.descriptors.iter_mut().filter(|at| (near..from).contains(&at.as_raw_fd())) {
            if let Ok(copy) = copy_from(from, descriptor, libc::F_DUPFD_CLOEXEC) {
                moved.insert(descriptor.as_raw_fd(), copy.as_raw_fd());
                *descriptor = copy;
            }
        }
        if !moved.is_empty() {
            let now = |at: RawFd| moved.get(&at).copied().unwrap_or(at);
            self.opened.handles.iter_mut().for_each(|handle| handle.descriptor = now(handle.descriptor));
        }
    }

    /// Moves the descriptors out of the program's way: the first file that it opens must be 3, as without pmmpi.
    pub fn out_of_the_way(mut self) -> Self {
        self.move_away(0, &DescriptorRoom::make());
        self
    }

    /// Gives the program, from the next execve(2) on, what it needs to read the counters: a descriptor of each
    /// group's leader. This process keeps its own descriptors, so that the groups stay complete.
    pub fn hand_down(&mut self) -> io::Result<HandedDown> {
        let room = DescriptorRoom::make();
        let mut opened = self.opened.clone();
        let mut open: Vec<&mut CounterHandle> =
            opened.handles.iter_mut().filter(|at| at.descriptor != NONE).collect();
        let mut from = room.first(open.len() as u64);
        for handle in &mut open {
            let copy = copy_from(from, &handle.descriptor, libc::F_DUPFD)?;
            handle.descriptor = copy.as_raw_fd();
            from = handle.descriptor + 1;
            self.descriptors.push(copy);
        }
        let descriptors = open.iter().map(|handle| handle.descriptor).collect();
        Ok(HandedDown { opened, descriptors })
    }
}

impl OpenCounters for Counters {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn snapshot(&mut self, words: &[AtomicU64]) {
        read_all(&self.opened, words);
    }
}

/// Counters that another process opened. This process only has their descriptors.
#[derive(Debug, Default)]
pub struct Inherited(Opened);

impl Inherited {
    /// Takes the descriptors from [`Counters::hand_down`] that are still open. Programs that this process executes
    /// do not inherit them.
    pub fn take(opened: Opened, descriptors: &[RawFd]) -> Self {
        for descriptor in descriptors {
            // `verify` finds a closed leader; members need no reading.
            let _ = set_close_on_exec(*descriptor, true);
        }
        let mut inherited = Self(opened);
        inherited.verify(usize::MAX);
        inherited
    }
}

impl OpenCounters for Inherited {
    fn opened(&self) -> &Opened {
        &self.0
    }

    /// A program may have closed a descriptor and opened another file in its place. Reading that file would take
    /// data from the program.
    fn verify(&mut self, words: usize) {
        let handles = self.0.handles_within(words);
        for handle in &mut self.0.handles[..handles] {
            if id_of(handle.descriptor) != Some(handle.id) {
                handle.descriptor = NONE;
            }
        }
    }

    fn snapshot(&mut self, words: &[AtomicU64]) {
        read_all(&self.0, words);
    }
}

struct OpenGroup {
    leader: Counter,
    members: Vec<Counter>,
    events: Vec<u32>,
}

impl OpenGroup {
    /// The same group at another target; `None` unless all its events open.
    fn like(other: &OpenGroup, set: &Set, target: Target) -> Option<Self> {
        let mut events = other.events.iter().map(|at| &set.events[*at as usize].0);
        let (mut leader, _) = open_event(events.next()?, target, None).ok()?;
        let members = events
            .map(|event| open_event(event, target, Some(&mut leader)).map(|(counter, _)| counter))
            .collect::<Result<Vec<_>, _>>()
            .ok()?;
        Some(Self { leader, members, events: other.events.clone() })
    }
}

/// Opens one event. If this user may not count all modes, it counts user mode alone and returns a gap.
fn open_event(
    event: &Event,
    target: Target,
    mut leader: Option<&mut Counter>,
) -> Result<(Counter, Option<Gap>), Gap> {
    let mut try_open = |encoding| open_encoding(encoding, target, leader.as_deref_mut());
    let encoding = event.encoding;
    if arm::lacks(encoding) {
        return Err(Gap::Unsupported(libc::ENOENT));
    }
    let gap = match try_open(encoding) {
        Ok(counter) => return Ok((counter, None)),
        Err(e) => gap_of(&e),
    };
    let Gap::Denied(_) = gap else { return Err(gap) };
    match try_open(encoding.in_modes(Modes::User)).map_err(|e| gap_of(&e)) {
        Ok(counter) if encoding.modes == Modes::All && !is_the_kernels_own(encoding) => {
            Ok((counter, (!ignores_modes(encoding)).then_some(Gap::UserModeOnly)))
        }
        // The kernel checks permission before existence. So an event that is denied first and unknown in user mode
        // does not exist.
        Err(Gap::Unsupported(libc::ENOENT)) => Err(Gap::Unsupported(libc::ENOENT)),
        // Otherwise return the first error. Errors in user mode may only show that a PMU cannot exclude a mode
        // (EINVAL).
        _ => Err(gap),
    }
}

pub(super) fn gap_of(error: &io::Error) -> Gap {
    // perf-event2 reports E2BIG (the kernel is older than an option) as an error without errno.
    error.raw_os_error().map_or(Gap::Unsupported(libc::E2BIG), Gap::of_errno)
}

// linux/perf_event.h: enum perf_sw_ids.
const CPU_CLOCK: u64 = 0;
const TASK_CLOCK: u64 = 1;
const CONTEXT_SWITCHES: u64 = 3;
const CPU_MIGRATIONS: u64 = 4;
const CGROUP_SWITCHES: u64 = 11;

/// Events that happen only in the kernel. In user mode alone they read 0, which is not their true count.
fn is_the_kernels_own(encoding: Encoding) -> bool {
    match encoding.kind {
        kind::SOFTWARE => {
            matches!(encoding.config[0], CONTEXT_SWITCHES | CPU_MIGRATIONS | CGROUP_SWITCHES)
        }
        kind::TRACEPOINT => true,
        _ => false,
    }
}

/// Clocks run in every mode, whichever mode the user asks for.
fn ignores_modes(encoding: Encoding) -> bool {
    encoding.kind == kind::SOFTWARE && matches!(encoding.config[0], CPU_CLOCK | TASK_CLOCK)
}

/// The attributes of an event, still without a target.
pub(super) fn builder(encoding: Encoding) -> Builder<'static> {
    let mut builder = Builder::new(events::Raw::new(encoding.config[0]));
    let attributes = builder.attrs_mut();
    attributes.type_ = encoding.kind;
    (attributes.config1, attributes.config2) = (encoding.config[1], encoding.config[2]);
    if encoding.kind == kind::BREAKPOINT {
        (attributes.bp_type, attributes.config) = (encoding.config[0] as u32, 0);
    }
    builder.exclude_user(encoding.modes == Modes::Kernel);
    builder.exclude_kernel(encoding.modes == Modes::User);
    builder.exclude_hv(encoding.modes == Modes::User);
    builder
}

fn open_encoding(encoding: Encoding, target: Target, leader: Option<&mut Counter>) -> io::Result<Counter> {
    let mut builder = builder(encoding);
    // perf-event2's own setter adds an ID to each count of a group, so set the format directly.
    let format = ReadFormat::GROUP | ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    builder.attrs_mut().read_format = format.bits();
    // The leader starts and stops its group. Members are enabled from the start, so their order does not matter.
    builder.enabled(leader.is_some());
    // The next program is counted from its exec on. For other targets, this makes Arm's kernel count the leader
    // when it checks whether a group fits. Arm's check skips events that are off (arm_pmu.c, validate_event); a
    // group with one event too many would then open, but never be scheduled.
    builder.enable_on_exec(leader.is_none());
    match target {
        Target::NextProgram | Target::ThisThread => builder.observe_self().any_cpu().inherit(true),
        Target::Thread(thread) => builder.observe_pid(thread).any_cpu().inherit(true),
        Target::Cpu(cpu) => builder.any_pid().one_cpu(cpu as usize),
    };
    match leader {
        Some(leader) => builder.build_with_group(leader),
        None => builder.build(),
    }
}

/// Duplicates a descriptor to the first free one from `from` on.
fn copy_from(from: RawFd, descriptor: &impl AsRawFd, how: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the copy is new, and only this value owns it.
    unsafe {
        match libc::fcntl(descriptor.as_raw_fd(), how, from) {
            copy if copy < 0 => Err(io::Error::last_os_error()),
            copy => Ok(OwnedFd::from_raw_fd(copy)),
        }
    }
}

fn set_close_on_exec(descriptor: RawFd, close: bool) -> io::Result<()> {
    let flags = if close { libc::FD_CLOEXEC } else { 0 };
    // SAFETY: the call sets a flag of a descriptor. On a closed descriptor it fails.
    let failed = unsafe { libc::fcntl(descriptor, libc::F_SETFD, flags) } < 0;
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The descriptor of a group that cannot be read.
const NONE: RawFd = -1;

/// The kernel's id of a descriptor's event; `None` if the descriptor is not an event's.
fn id_of(descriptor: RawFd) -> Option<u64> {
    const PERF_EVENT_IOC_ID: libc::c_ulong = 0x8008_2407; // _IOR('$', 7, __u64 *)
    let mut id = 0u64;
    // SAFETY: the request writes 8 bytes to the live local. On another kind of file it fails.
    let failed = unsafe { libc::ioctl(descriptor, PERF_EVENT_IOC_ID, &mut id) } < 0;
    (!failed).then_some(id)
}

fn read_all(opened: &Opened, words: &[AtomicU64]) {
    for (handle, place) in opened.places(words) {
        let bytes = size_of_val(place);
        // The kernel writes directly into the snapshot: no copy, and no step that could fail in between.
        // SAFETY: anyone may write to atomics of 8 bytes at any time: other threads, and so the kernel.
        let read = unsafe { libc::read(handle.descriptor, place.as_ptr().cast_mut().cast(), bytes) };
        if usize::try_from(read) != Ok(bytes) {
            place[0].store(0, Relaxed); // the old words are not a snapshot
        }
    }
}
