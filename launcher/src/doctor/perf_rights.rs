//! The rights to count events: perf_event_open(2) and Linux's "Documentation/admin-guide/perf-security.rst".

use super::check::{Check, sysctl};
use super::machine::Machine;
use pmmpi::counters::count_and_quality::Gap;
use pmmpi::counters::default;
use pmmpi::counters::descriptor_room::to_inherit;
use pmmpi::text::count;

pub const PARANOID: &str = "kernel.perf_event_paranoid";

/// The highest level at which an ordinary user may count the kernel's part of its own tasks.
const OWN_TASKS: i32 = 1;
/// The highest level at which an ordinary user may count whole hardware threads.
const EVERYTHING_ON_A_CPU: i32 = 0;

fn level(machine: &dyn Machine) -> Option<i32> {
    machine.number("proc/sys/kernel/perf_event_paranoid")
}

/// True if the kernel denies every event of this thread, even its task clock.
fn is_denied_all(machine: &dyn Machine) -> bool {
    let opened = machine.open_counters();
    let mut gaps = opened.sets.iter().flat_map(|set| &set.events).map(|(_, gap)| *gap);
    gaps.all(|gap| matches!(gap, Some(Gap::Denied(_))))
}

/// What each level allows without CAP_PERFMON.
const LEVELS: &str = "what users may count: level 3 and above (Linux kernels of Debian and Ubuntu): \
                      nothing; level 2: their own tasks in user mode; level 1: also their own tasks in the \
                      Linux kernel, with context switches and migrations; level 0: also the scopes core and \
                      socket; level -1: everything";

/// What the kernel lets ordinary users count.
pub fn paranoid(machine: &dyn Machine) -> Check {
    const NAME: &str = "perf_event_paranoid";
    let Some(level) = level(machine) else {
        return Check::limits(
            NAME,
            "this Linux kernel has no perf events, or /proc is not mounted",
            "pmmpi cannot read any counter: all counts will be null",
            "# boot a Linux kernel with CONFIG_PERF_EVENTS=y. If /proc is not mounted:\nmount -t proc proc \
             /proc",
        );
    };
    if Capabilities::read(machine).may_count_all(machine) {
        return Check::ok(
            NAME,
            format!("{level}, but this process's capabilities override this level"),
            LEVELS,
        );
    }
    let found = match level {
        ..=-1 => "every user may count everything",
        0 => "users may count the scopes task, core and socket, in user mode and in the Linux kernel",
        1 => {
            "users may count their own tasks, in user mode and in the Linux kernel, but not the scopes core \
             and socket"
        }
        2 => "users may count their own tasks, in user mode only",
        3.. if is_denied_all(machine) => "users may count nothing",
        3.. => {
            "users may count their own tasks, in user mode only, as at level 2: this Linux kernel knows no \
             level above 2"
        }
    };
    let found = format!("{level}: {found}");
    match level {
        ..=EVERYTHING_ON_A_CPU => Check::ok(NAME, found, LEVELS),
        OWN_TASKS => Check::limits(NAME, found, LEVELS, sysctl(PARANOID, EVERYTHING_ON_A_CPU)),
        _ => Check::limits(NAME, found, LEVELS, sysctl(PARANOID, OWN_TASKS)),
    }
}

/// True if the kernel's rules let this process count its own tasks, including the kernel's part.
pub fn allows_own_tasks(machine: &dyn Machine) -> bool {
    Capabilities::read(machine).may_count_all(machine)
        || level(machine).is_some_and(|level| level <= OWN_TASKS)
}

/// The effective capabilities of this process that matter for counting.
struct Capabilities {
    perfmon: bool,
    sys_admin: bool,
    /// True in a user namespace: capabilities from it do not give access to counters.
    in_namespace: bool,
}

impl Capabilities {
    fn read(machine: &dyn Machine) -> Self {
        // From linux/capability.h.
        const CAP_SYS_ADMIN: u32 = 21;
        const CAP_PERFMON: u32 = 38;
        let status = machine.text("proc/self/status").unwrap_or_default();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
        let has = |capability: u32| effective >> capability & 1 == 1;
        let map = machine.text("proc/self/uid_map").unwrap_or_default();
        let map: Vec<&str> = map.split_ascii_whitespace().collect();
        Self {
            perfmon: has(CAP_PERFMON),
            sys_admin: has(CAP_SYS_ADMIN),
            in_namespace: !map.is_empty() && map != ["0", "0", "4294967295"],
        }
    }

    /// Linux kernels of Debian and Ubuntu require CAP_SYS_ADMIN at levels above 2. Linux itself has no such levels, so only
    /// an attempt shows which kernel this is.
    fn may_count_all(&self, machine: &dyn Machine) -> bool {
        let is_enough = || level(machine).is_none_or(|level| level <= 2) || !is_denied_all(machine);
        !self.in_namespace && (self.sys_admin || self.perfmon && is_enough())
    }

    fn names(&self) -> String {
        let names = [(self.perfmon, "CAP_PERFMON"), (self.sys_admin, "CAP_SYS_ADMIN")];
        let names: Vec<&str> = names.into_iter().filter_map(|(has, name)| has.then_some(name)).collect();
        if names.is_empty() { "neither CAP_PERFMON nor CAP_SYS_ADMIN".to_owned() } else { names.join(", ") }
    }
}

/// Whether capabilities give the right to count.
pub fn capabilities(machine: &dyn Machine) -> Check {
    const NAME: &str = "capabilities";
    let own = Capabilities::read(machine);
    let pmmpi =
        machine.own_folder().map_or("pmmpi".into(), |folder| folder.join("pmmpi").display().to_string());
    if machine.is_secure() {
        return Check::broken(
            NAME,
            format!(
                "this process has {}; pmmpi's file has capabilities, or a set-user-id or set-group-id bit",
                own.names()
            ),
            "the Linux kernel denies the agent access to pmmpi's memory, so pmmpi cannot measure MPI \
             programs with the agent. The C library also removes LD_LIBRARY_PATH, LD_PRELOAD, TMPDIR and \
             more from the programs' environment",
            format!("setcap -r {pmmpi}; chmod u-s,g-s {pmmpi}\n{}", sysctl(PARANOID, EVERYTHING_ON_A_CPU)),
        );
    }
    if own.may_count_all(machine) {
        let at = match own.sys_admin {
            true => "pmmpi may count everything, at every level of perf_event_paranoid",
            false => {
                "pmmpi may count everything; at levels of perf_event_paranoid above 2, Linux kernels of Debian and \
                 Ubuntu require CAP_SYS_ADMIN"
            }
        };
        return Check::ok(NAME, own.names(), at);
    }
    if level(machine).is_some_and(|level| level <= EVERYTHING_ON_A_CPU) {
        return Check::ok(
            NAME,
            own.names(),
            "pmmpi needs no capability at this level of perf_event_paranoid",
        );
    }
    // setcap on pmmpi's file is no fix: it makes the process secure, see above.
    let fix = format!(
        "# best: lower {PARANOID} on all nodes, see above. Or start one shell with more rights on this \
         node (only at level 2 or below, and not in a container):\n\
         sudo setpriv --reuid $(id -u) --regid $(id -g) --init-groups --inh-caps +perfmon \\\n    \
         --ambient-caps +perfmon bash"
    );
    let (found, costs) = match own.in_namespace {
        true => (
            format!("{}, in a user namespace (a container)", own.names()),
            "the Linux kernel requires a capability from outside the namespace; without this capability, \
             perf_event_paranoid limits the counters",
        ),
        false if own.perfmon => {
            (own.names(), "above level 2 of perf_event_paranoid, this Linux kernel requires CAP_SYS_ADMIN")
        }
        false => (own.names(), "perf_event_paranoid limits the counters"),
    };
    Check::limits(NAME, found, costs, fix)
}

/// Whether the limit of open files is sufficient for the scope core. It needs one descriptor per event and hardware
/// thread, in addition to those of the program.
pub fn descriptors(machine: &dyn Machine) -> Check {
    const NAME: &str = "descriptors";
    /// Other open files of pmmpi and a program.
    const OTHERS: u64 = 64;
    let online: u64 =
        machine.facts().settings.online.0.iter().map(|(a, b)| u64::from(b.saturating_sub(*a)) + 1).sum();
    let events = default::groups_of_a_core().iter().map(Vec::len).sum::<usize>() as u64;
    let needed = online.max(1).saturating_mul(events).saturating_add(OTHERS);
    let limits = machine.text("proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let values: Vec<u64> = line.unwrap_or_default().split_ascii_whitespace().map_while(limit).collect();
    let [soft, hard] = values[..] else {
        return Check::limits(
            NAME,
            "pmmpi cannot read the limit of open files",
            "pmmpi does not know whether --scope core has enough descriptors",
            "mount -t proc proc /proc",
        );
    };
    let [threads, of_each] =
        [(online, "hardware thread"), (events, "event")].map(|(number, noun)| count(number as usize, noun));
    let of = format!("{needed} needed for {threads} x {of_each} and {OTHERS} other files");
    let shown = |value: u64| if value == u64::MAX { "unlimited".to_owned() } else { value.to_string() };
    // pmmpi raises its soft limit to the hard limit while it opens counters. A program inherits one descriptor per
    // group.
    let inherited = online.max(1).saturating_mul(default::groups_of_a_core().len() as u64);
    if hard >= needed && to_inherit(soft, hard) >= inherited {
        return Check::ok(
            NAME,
            format!("{} open files allowed, {of}", shown(hard)),
            "--scope core has enough descriptors",
        );
    }
    let fix = format!(
        "echo '* hard nofile {0}' >> /etc/security/limits.d/60-pmmpi.conf   # and log in again\n\
         # under systemd and Slurm: LimitNOFILE={1}:{0} in slurmd.service",
        needed.saturating_add(soft).checked_next_power_of_two().unwrap_or(u64::MAX),
        shown(soft)
    );
    let found = format!("{} open files allowed (hard limit {}), {of}", shown(soft), shown(hard));
    Check::limits(NAME, found, "--scope core would not count on all hardware threads", fix)
}

fn limit(word: &str) -> Option<u64> {
    if word == "unlimited" { Some(u64::MAX) } else { word.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::super::machine::tests::Fake;
    use super::*;

    const LEVEL: &str = "proc/sys/kernel/perf_event_paranoid";
    const STATUS: &str = "proc/self/status";
    const ROOT: &str = "Name:\tpmmpi\nCapEff:\t000001fffeffffff\n";
    const NOBODY: &str = "Name:\tpmmpi\nCapEff:\t0000000000000000\n";
    const PERFMON: &str = "CapEff:\t0000004000000000\n";

    #[test]
    fn each_level_says_what_it_allows_and_which_is_next() {
        let at = |level: &str| paranoid(&Fake::new().file(LEVEL, level).file(STATUS, NOBODY));
        for (level, status, next) in [
            ("-1", Status::Ok, None),
            ("0", Status::Ok, None),
            ("1", Status::Limits, Some("kernel.perf_event_paranoid=0")),
            ("2", Status::Limits, Some("kernel.perf_event_paranoid=1")),
            ("3", Status::Limits, Some("kernel.perf_event_paranoid=1")),
            ("4", Status::Limits, Some("kernel.perf_event_paranoid=1")),
        ] {
            let check = at(level);
            assert_eq!(check.status, status, "{level}");
            assert!(check.found.starts_with(&format!("{level}: ")));
            assert_eq!(check.fix.is_some(), next.is_some());
            assert!(next.is_none_or(|next| check.fix.unwrap().contains(next)), "{level}");
        }
        // Linux itself has no level 3, so the check also tries to open counters.
        assert!(at("3").found.contains("knows no level above"));
        let denied = |_: &str| Some(Gap::Denied(libc::EACCES));
        assert!(
            paranoid(&Fake::new().file(LEVEL, "3").gaps(denied)).found.contains("users may count nothing")
        );
        for (file, status) in [(ROOT, Status::Ok), (PERFMON, Status::Ok), (NOBODY, Status::Limits)] {
            assert_eq!(paranoid(&Fake::new().file(LEVEL, "4").file(STATUS, file)).status, status);
        }
        // As kernels of Debian and Ubuntu do.
        let denies = Fake::new().file(LEVEL, "4").file(STATUS, PERFMON).gaps(denied);
        assert_eq!([paranoid(&denies).status, capabilities(&denies).status], [Status::Limits; 2]);
    }

    #[test]
    fn a_kernel_without_perf_events_counts_nothing() {
        for fake in [Fake::new(), Fake::new().file(LEVEL, "many")] {
            let check = paranoid(&fake);
            assert!(check.status == Status::Limits && check.fix.unwrap().contains("CONFIG_PERF_EVENTS"));
        }
    }

    #[test]
    fn capabilities_are_those_of_the_first_user_namespace() {
        let with = |status: &str, level: &str| Fake::new().file(STATUS, status).file(LEVEL, level);
        let check = capabilities(&with(PERFMON, "4"));
        assert_eq!((check.status, &check.found[..]), (Status::Ok, "CAP_PERFMON"));
        assert_eq!(capabilities(&with(ROOT, "4")).status, Status::Ok);
        assert_eq!(capabilities(&with(NOBODY, "0")).status, Status::Ok);
        let check = capabilities(&with(NOBODY, "2"));
        assert_eq!(check.status, Status::Limits);
        assert!(check.fix.unwrap().contains("--ambient-caps +perfmon"));
        let first = with(ROOT, "2").file("proc/self/uid_map", "         0          0 4294967295\n");
        assert_eq!(capabilities(&first).status, Status::Ok);
        let container = with(ROOT, "2").file("proc/self/uid_map", "         0       1000          1\n");
        let check = capabilities(&container);
        assert!(check.status == Status::Limits && check.found.contains("user namespace"), "{check:?}");
        assert_eq!(paranoid(&container).status, Status::Limits);
    }

    #[test]
    fn capabilities_of_pmmpis_file_break_it() {
        let check = capabilities(&Fake::new().file(STATUS, PERFMON).secure());
        assert!(check.status == Status::Broken && check.meaning.contains("LD_LIBRARY_PATH"));
        assert!(check.fix.unwrap().starts_with("setcap -r"));
    }

    #[test]
    fn the_scope_core_needs_room_for_its_descriptors() {
        let with = |limits: &str, online: &str| {
            let line =
                format!("Limit     Soft Limit   Hard Limit   Units\nMax open files   {limits}   files\n");
            let fake = Fake::new().file("proc/self/limits", &line);
            descriptors(&fake.file("sys/devices/system/cpu/online", online))
        };
        assert_eq!(with("1024 4096", "0-1").status, Status::Ok);
        assert_eq!(with("unlimited unlimited", "0-511").status, Status::Ok);
        assert_eq!(with("20000 20000", "0-255").status, Status::Ok);
        assert_eq!(with("1024 1024", "0-7").status, Status::Limits);
        // The hard limit decides, not the soft limit.
        assert_eq!(with("1024 524288", "0-255").status, Status::Ok);
        let check = with("1024 1500", "0-255");
        assert!(check.found.contains("256 hardware threads x 7 events"), "{}", check.found);
        assert!(check.status == Status::Limits && check.fix.unwrap().contains("hard nofile 4096"));
        assert_eq!(descriptors(&Fake::new()).status, Status::Limits);
    }
}
