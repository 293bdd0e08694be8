//! Which users may count which events: perf_event_open(2), kernel.perf_event_paranoid.

use crate::counting::Counted;
use crate::users::{Paranoid, become_nobody, is_root};
use pmmpi::counters::count_and_quality::Quality;
use pmmpi::counters::event::{Encoding, Event, Modes, kind};
use pmmpi::counters::perf_event_open::Target;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

/// The user that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// With every capability.
    Root,
    /// With CAP_SYS_ADMIN only.
    Admin,
    /// With CAP_PERFMON only.
    Perfmon,
    /// Without capabilities.
    Nobody,
}

impl User {
    pub const ALL: [User; 4] = [User::Root, User::Admin, User::Perfmon, User::Nobody];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            User::Root => "root",
            User::Admin => "admin",
            User::Perfmon => "perfmon",
            User::Nobody => "nobody",
        }
    }

    /// Makes the calling process this user, permanently. A process that is not root is already nobody.
    pub fn become_it(self) -> io::Result<()> {
        match self {
            User::Root => Ok(()),
            User::Nobody if !is_root() => Ok(()),
            User::Admin => become_nobody(Some(CAP_SYS_ADMIN)),
            User::Perfmon => become_nobody(Some(CAP_PERFMON)),
            User::Nobody => become_nobody(None),
        }
    }
}

// linux/capability.h.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;

/// The properties of a kernel that decide who may count.
#[derive(Clone, Copy, Debug)]
pub struct LinuxKernel {
    /// True if the processor has counters.
    pub has_pmu: bool,
    /// From this level on, only CAP_SYS_ADMIN may count.
    pub shut_from: i32,
}

impl LinuxKernel {
    /// This machine's kernel. Debian's and Ubuntu's kernels have a level that others do not have.
    pub fn running() -> Self {
        let version = fs::read_to_string("/proc/version").unwrap_or_default();
        let levels = [("debian-kernel@", 3), ("-Ubuntu ", 4)];
        let known = levels.iter().find(|(sign, _)| version.contains(sign));
        let pmus = fs::read_dir("/sys/bus/event_source/devices").into_iter().flatten().flatten();
        let mut names = pmus.map(|pmu| pmu.file_name().to_string_lossy().into_owned());
        // x86 has one, or one per kind of core; on Arm it has the name of its interface or of its cores.
        let is_a_processors = |name: String| name.starts_with("cpu") || name.starts_with("armv8");
        Self { has_pmu: names.any(is_a_processors), shut_from: known.map_or(i32::MAX, |(_, level)| *level) }
    }
}

/// One question, the same for every user and level.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub name: &'static str,
    encoding: Encoding,
    on_cpu: bool,
    /// The quality if the kernel's part may not be counted.
    in_user_mode: Quality,
}

// linux/perf_event.h: enum perf_hw_id, enum perf_sw_ids.
const INSTRUCTIONS: u64 = 1;
const TASK_CLOCK: u64 = 1;
const PAGE_FAULTS: u64 = 2;
const CONTEXT_SWITCHES: u64 = 3;
const CGROUP_SWITCHES: u64 = 11;

/// The time stamp counter, if the kernel offers it as an event.
pub fn time_stamp_counter() -> Option<Encoding> {
    let number = fs::read_to_string("/sys/bus/event_source/devices/msr/type").ok()?;
    fs::exists("/sys/bus/event_source/devices/msr/events/tsc").ok().filter(|has| *has)?;
    Some(Encoding::new(number.trim().parse().ok()?, 0))
}

/// All questions.
pub fn cells() -> Vec<Cell> {
    use Quality::{Denied, Exact, Partial};
    let hardware = Encoding::new(kind::HARDWARE, INSTRUCTIONS);
    let software = |id| Encoding::new(kind::SOFTWARE, id);
    let task = |name, encoding, in_user_mode| Cell { name, encoding, in_user_mode, on_cpu: false };
    let cpu = |name, encoding| Cell { name, encoding, in_user_mode: Partial, on_cpu: true };
    let mut cells = vec![
        task("hardware", hardware, Partial),
        task("hardware:u", hardware.in_modes(Modes::User), Exact),
        task("hardware:k", hardware.in_modes(Modes::Kernel), Denied),
        task("page-faults", software(PAGE_FAULTS), Partial),
        task("context-switches", software(CONTEXT_SWITCHES), Denied),
        task("cgroup-switches", software(CGROUP_SWITCHES), Denied),
        task("task-clock", software(TASK_CLOCK), Exact),
        cpu("cpu/hardware", hardware),
        cpu("cpu/page-faults", software(PAGE_FAULTS)),
    ];
    // This event always includes the kernel.
    cells.extend(time_stamp_counter().map(|tsc| task("tsc", tsc, Denied)));
    cells
}

impl Cell {
    /// The answer for the calling user: a quality, and why it is not better.
    pub fn answer(&self) -> String {
        let target = if self.on_cpu { Target::Cpu(0) } else { Target::ThisThread };
        let groups = vec![vec![Event::counted(self.name, self.encoding)]];
        let counted = Counted::during(&groups, target, || ());
        let (quality, why) = match counted.of(self.name) {
            Ok(reading) => (reading.quality(), reading.reason()),
            // An event that could not be opened on a hardware thread has no row.
            Err(why) => {
                let gap = counted.counts.sets[0].events[0].1;
                (
                    gap.map_or(Quality::Unavailable, |gap| gap.quality()),
                    Some(gap.map_or(why, |gap| gap.to_string())),
                )
            }
        };
        format!("{} {}: {}", self.name, quality.name(), why.unwrap_or_default())
    }

    /// The expected quality: Documentation/admin-guide/sysctl/kernel.rst, perf_event_paranoid.
    pub fn expected(&self, kernel: LinuxKernel, user: User, level: i32) -> Quality {
        if self.encoding.kind == kind::HARDWARE && !kernel.has_pmu {
            return Quality::Unsupported;
        }
        let may = |most: i32| user != User::Nobody || level <= most;
        let is_shut = level >= kernel.shut_from && !matches!(user, User::Root | User::Admin);
        match () {
            () if is_shut || self.on_cpu && !may(0) => Quality::Denied,
            () if may(1) => Quality::Exact,
            () => self.in_user_mode,
        }
    }
}

/// A part of the message for this quality: the fix.
fn advice(quality: Quality) -> &'static str {
    match quality {
        Quality::Denied => {
            "lower kernel.perf_event_paranoid, or start pmmpi with CAP_PERFMON (if the setting is above 2, with CAP_SYS_ADMIN); a container must also allow perf_event_open"
        }
        Quality::Partial => "lower kernel.perf_event_paranoid to 1",
        Quality::Unsupported => "not counted by this processor and Linux kernel",
        _ => "",
    }
}

/// Tests all cells at each level as each user. Returns the number of cells and the wrong ones. If this process is not
/// root, it tests the current level as nobody. `program` is `pmmpi-rig-pmu`.
pub fn wrong_cells(program: &Path, kernel: LinuxKernel) -> Result<(usize, Vec<String>), String> {
    let failed = |what: &str, e: io::Error| format!("{what}: {e}");
    let paranoid = Paranoid::keep().map_err(|e| failed("perf_event_paranoid", e))?;
    let (levels, users) = match is_root() {
        true => (-1..=4, &User::ALL[..]),
        false => (paranoid.level()..=paranoid.level(), &[User::Nobody][..]),
    };
    let mut asked = 0;
    let mut wrong = Vec::new();
    for level in levels {
        if is_root() {
            paranoid.set(level).map_err(|e| failed("perf_event_paranoid", e))?;
        }
        for &user in users {
            let output = Command::new(program).args(["cells", user.name()]).output();
            let output = output.map_err(|e| failed(&program.display().to_string(), e))?;
            let answers = String::from_utf8_lossy(&output.stdout);
            for cell in cells() {
                let expected = cell.expected(kernel, user, level);
                let told = answers.lines().find_map(|line| line.strip_prefix(cell.name)?.strip_prefix(' '));
                let is_right = told.and_then(|told| told.split_once(": ")).is_some_and(|(quality, why)| {
                    quality == expected.name()
                        && why.contains(advice(expected))
                        && why.is_empty() == (expected == Quality::Exact)
                });
                asked += 1;
                if !is_right {
                    let told = told.unwrap_or("nothing");
                    wrong.push(format!(
                        "{} as {user:?} at {level}: {told}, not {}",
                        cell.name,
                        expected.name()
                    ));
                }
            }
        }
    }
    Ok((asked, wrong))
}
