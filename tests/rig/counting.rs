//! Work whose counts are known on paper, and what counters said of it.

use pmmpi::counters::counts::Counts;
use pmmpi::counters::event::{Encoding, Event, Group, Modes, kind};
use pmmpi::counters::linux::{Counters, Inherited, Target};
use pmmpi::counters::probe::{Handle, Opened, Probe, Scope, Set};
use pmmpi::counters::reading::Reading;
use pmmpi::counters::table::{CounterTable, Snapshot};
use std::arch::asm;
use std::cell::UnsafeCell;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::{fs, io};

/// Instructions of one turn of [`turns`].
pub const TURN_INSTRUCTIONS: u64 = 2;

/// A loop of two instructions, so many times.
pub fn turns(count: u64) {
    if count == 0 {
        return;
    }
    // SAFETY: counts a register down to 0 and touches nothing else.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("2: dec {0}", "jnz 2b", inout(reg) count => _, options(nostack));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("2: subs {0}, {0}, #1", "b.ne 2b", inout(reg) count => _, options(nostack));
    }
}

/// Pages that nobody has touched.
#[derive(Debug)]
pub struct Pages(*mut u8);

impl Pages {
    pub const COUNT: usize = 16;
    const BYTES: usize = 4096;

    pub fn new() -> io::Result<Self> {
        let (access, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let bytes = Self::COUNT * Self::BYTES;
        // SAFETY: a new mapping; advice on it cannot harm.
        unsafe {
            let pages = libc::mmap(std::ptr::null_mut(), bytes, access, private, -1, 0);
            if pages == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            libc::madvise(pages, bytes, libc::MADV_NOHUGEPAGE);
            Ok(Self(pages.cast()))
        }
    }

    /// Writes to each.
    pub fn touch(&self) {
        // SAFETY: within the mapping.
        (0..Self::COUNT).for_each(|page| unsafe { self.0.add(page * Self::BYTES).write_volatile(1) });
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped in new, once.
        unsafe { libc::munmap(self.0.cast(), Self::COUNT * Self::BYTES) };
    }
}

/// What was counted during some work.
pub struct Counted {
    /// As it would be stored.
    pub counts: Counts,
}

impl Counted {
    /// Opens the groups, reads them, lets the work run, and reads them again.
    pub fn during(groups: &[Group], target: Target, work: impl FnOnce()) -> Self {
        let scope = if let Target::Cpu(_) = target { Scope::Core } else { Scope::Task };
        let mut counters = Counters::default();
        counters.add(scope, groups, &[target]);
        Self::with(&mut counters, work)
    }

    /// Reads what is open, lets the work run, and reads it again.
    pub fn with(probe: &mut impl Probe, work: impl FnOnce()) -> Self {
        let words: Vec<AtomicU64> = (0..2 * probe.opened().words()).map(|_| AtomicU64::new(0)).collect();
        let table = CounterTable::new(&words);
        probe.snapshot(table.of(Snapshot::Start));
        work();
        probe.snapshot(table.of(Snapshot::Stop));
        Self { counts: Counts::of_rank(0, probe.opened(), table) }
    }

    /// Every event with what it came to, in the order asked for; none where nothing was counted at all.
    pub fn all(&self) -> Vec<(&Event, Reading)> {
        self.counts.rows.iter().flat_map(|row| self.counts.readings(row)).collect()
    }

    /// The event of this name.
    pub fn of(&self, name: &str) -> Result<Reading, String> {
        let found = self.all().into_iter().find(|(event, _)| event.name == name);
        found.map(|(_, reading)| reading).ok_or_else(|| format!("{name} was not opened"))
    }

    /// The value of the event of this name.
    pub fn value(&self, name: &str) -> Result<u64, String> {
        let reading = self.of(name)?;
        reading.value().ok_or_else(|| format!("{name}: {}", reading.reason().unwrap_or_default()))
    }
}

/// One event on its own.
pub fn alone(name: &str, encoding: Encoding) -> Vec<Group> {
    vec![vec![Event::counted(name, encoding)]]
}

/// The calling thread stays on the hardware thread that it is on, whose number this is.
pub fn pin() -> io::Result<u32> {
    // SAFETY: all zeros is an empty set; the calls read locals.
    unsafe {
        let cpu = libc::sched_getcpu();
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(usize::try_from(cpu).map_err(|_| io::Error::last_os_error())?, &mut set);
        let failed = libc::sched_setaffinity(0, size_of_val(&set), &set) != 0;
        if failed { Err(io::Error::last_os_error()) } else { Ok(cpu as u32) }
    }
}

/// User and group become nobody's, for good, with no capability or this one alone.
pub fn become_nobody(capability: Option<u32>) -> io::Result<()> {
    const NOBODY: u32 = 65534;
    /// linux/capability.h: _LINUX_CAPABILITY_VERSION_3; process id 0 is the caller.
    const HEADER: [u32; 2] = [0x2008_0522, 0];
    // Effective, permitted and inheritable ones, the lower 32 of them and the upper 32.
    let mut sets = [[0u32; 3]; 2];
    if let Some(capability) = capability {
        let set = &mut sets[capability as usize / 32];
        (set[0], set[1]) = (1 << (capability % 32), 1 << (capability % 32));
    }
    // SAFETY: system calls on this process's own identity; the last one reads the live locals.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_KEEPCAPS, 1) != 0
            || libc::setgroups(0, std::ptr::null()) != 0
            || libc::setresgid(NOBODY, NOBODY, NOBODY) != 0
            || libc::setresuid(NOBODY, NOBODY, NOBODY) != 0
            || libc::syscall(libc::SYS_capset, HEADER.as_ptr(), sets.as_ptr()) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Writes to memory that are watched: the kernel's breakpoints count them one by one.
#[derive(Debug)]
pub struct Watched(UnsafeCell<u64>);

// SAFETY: what it holds is written by any thread, and never read.
unsafe impl Sync for Watched {}

impl Watched {
    #[expect(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    /// The event of a write.
    pub fn event(&self) -> Encoding {
        const HW_BREAKPOINT_W: u64 = 2; // linux/hw_breakpoint.h
        let place = self.0.get() as u64;
        Encoding { kind: kind::BREAKPOINT, config: [HW_BREAKPOINT_W, place, 8], modes: Modes::User }
    }

    /// Writes so often.
    pub fn write(&self, count: u64) {
        // SAFETY: it lives, and is never read.
        (0..count).for_each(|n| unsafe { self.0.get().write_volatile(n) });
    }
}

/// kernel.perf_event_paranoid, which is again what it was when this value is dropped. Nobody else's test
/// changes it meanwhile.
pub struct Paranoid {
    before: String,
    _locked: fs::File,
}

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

impl Paranoid {
    /// Needs root to be changed.
    pub fn keep() -> io::Result<Self> {
        let locked = fs::File::open(PARANOID)?;
        // SAFETY: a call on a descriptor that is open.
        if unsafe { libc::flock(locked.as_raw_fd(), libc::LOCK_EX) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { before: fs::read_to_string(PARANOID)?, _locked: locked })
    }

    /// Sets another one.
    pub fn set(&self, level: i32) -> io::Result<()> {
        fs::write(PARANOID, level.to_string())
    }
}

impl Drop for Paranoid {
    fn drop(&mut self) {
        // Nothing can be done about it here; the next test that reads it says so.
        let _ = fs::write(PARANOID, &self.before);
    }
}

/// A group of one event that counts what is started next, as the program `pmmpi-rig-pmu` that is started reads it: what
/// it says.
pub fn handed_down(program: &Path, encoding: Encoding, work: &str) -> Result<String, String> {
    let counters = Counters::open(&alone("event", encoding), Target::NextProgram);
    counters.hand_down().map_err(|e| e.to_string())?;
    let [handle] = counters.opened().handles.as_slice() else {
        return Err(format!("{:?}", counters.opened()));
    };
    let args = [work, &handle.descriptor.to_string(), &handle.id.to_string()];
    let output = Command::new(program).arg("inherited").args(args).output().map_err(|e| e.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// The other side of [`handed_down`]: what the work came to.
pub fn inherited(descriptor: i32, id: u64, work: impl FnOnce()) -> Result<u64, String> {
    let event = Event::counted("event", Encoding::new(kind::SOFTWARE, 0));
    let set = Set { scope: Scope::Task, events: vec![(event, None)], groups: vec![vec![0]] };
    let handles = vec![Handle { set: 0, group: 0, cpu: None, descriptor, id }];
    let mut inherited = Inherited::take(Opened { sets: vec![set], handles }, &[descriptor]);
    if !inherited.is_whole() {
        return Err(format!("descriptor {descriptor} is not the counter's"));
    }
    Counted::with(&mut inherited, work).value("event")
}
