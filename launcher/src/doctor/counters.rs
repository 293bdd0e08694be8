//! Which events can be counted: those of the processor, of the Linux kernel, and of PMUs outside the cores.

use super::check::{Check, sysctl};
use super::machine::Machine;
use super::perf_rights;
use super::processor::{core_pmus, is_virtual};
use pmmpi::counters::core_pmus::DEVICES;
use pmmpi::counters::count_and_quality::{Gap, WhyUnavailable};
use pmmpi::counters::event::kind;

/// Only the owner of the virtual machine's host can do this. Each line is short enough not to wrap, so that the user can
/// copy the options and elements.
const EXPOSE_PMU: &str = "# on the host, with qemu: -cpu host,pmu=on
# with libvirt: <cpu mode='host-passthrough'/>
# and <features><pmu state='on'/></features>
# with VMware: vpmc.enable = TRUE
# in a cloud: use an instance on bare metal";

/// The hardware events of the default set.
pub fn pmu(machine: &dyn Machine) -> Check {
    const NAME: &str = "pmu";
    let tried = Tried::open(machine, kind::HARDWARE);
    let pmus = core_pmus(machine);
    let pmus = if pmus.is_empty() { "no PMU in sysfs".to_owned() } else { pmus.join(", ") };
    let Some(worst) = tried.worst() else {
        let (found, count) = (format!("{pmus}: {}", tried.found()), tried.total);
        let meaning = format!("by default, each run counts these {count} events of the processor");
        return Check::ok(NAME, found, meaning);
    };
    let costs = if tried.is_none_open() {
        "the counts of all processor events, such as cycles and instructions, will be null, and the \
         report gives the reason; bounds, task clock and page faults need no PMU"
    } else {
        "the counts of the events named here will be null or partial, and the report gives the reason; this \
         does not affect other processor events"
    };
    match worst {
        // The kernel checks the rights before it looks for the event, so a denied event may also be missing.
        _ if tried.is_none_open() && tried.has_unsupported() => {
            let virtual_machine = is_virtual(machine);
            let what = match virtual_machine {
                true => "virtual machine without a PMU",
                false => "no driver for the processor's PMU",
            };
            let fix = if virtual_machine { EXPOSE_PMU } else { "dmesg | grep -iE 'pmu|performance events'" };
            Check::limits(NAME, format!("no hardware counters ({what})"), costs, fix)
        }
        Gap::Unsupported(_) => Check::limits(
            NAME,
            tried.found(),
            costs,
            "# there is no fix: this processor or Linux kernel does not have these events",
        ),
        gap => Check::limits(NAME, tried.found(), costs, mend(gap, machine)),
    }
}

/// Task clock, page faults, context switches and migrations, which need no PMU.
pub fn software_events(machine: &dyn Machine) -> Check {
    const NAME: &str = "software_events";
    let tried = Tried::open(machine, kind::SOFTWARE);
    match tried.worst() {
        None => Check::ok(
            NAME,
            tried.found(),
            "pmmpi counts task clock, page faults, context switches and migrations",
        ),
        Some(gap) => {
            let costs = "the counts of these events will be null or partial, and the report gives the reason; without these counts, \
                         pmmpi cannot show noise from the Linux kernel";
            Check::limits(NAME, tried.found(), costs, mend(gap, machine))
        }
    }
}

/// PMUs of memory controllers, last-level caches and power meters: those whose `cpumask` names the hardware threads on
/// which to open them.
pub fn uncore(machine: &dyn Machine) -> Check {
    const NAME: &str = "uncore";
    let mut kinds: Vec<(String, u32)> = Vec::new();
    for name in machine.names(DEVICES) {
        if machine.has(&format!("{DEVICES}/{name}/cpumask")) {
            let kind = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_').to_owned();
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((kind, 1)),
            }
        }
    }
    if !kinds.is_empty() {
        let one = |(kind, count): &(String, u32)| match count {
            1 => kind.clone(),
            _ => format!("{count} x {kind}"),
        };
        let found: Vec<String> = kinds.iter().map(one).collect();
        return Check::ok(NAME, found.join(", "), "--scope socket can count the events of these PMUs");
    }
    let hardware = machine.facts().hardware;
    let fix = match hardware.cpu_vendor.as_deref() {
        _ if is_virtual(machine) => "# measure on the host: this virtual machine has no uncore PMU",
        Some("AuthenticAMD") => "modprobe amd_uncore; modprobe rapl",
        Some("GenuineIntel") => "modprobe intel_uncore; modprobe rapl",
        _ => "dmesg | grep -i pmu",
    };
    Check::limits(
        NAME,
        "no PMU outside the cores",
        "--scope socket has nothing to count: memory traffic, snoops and energy will be null",
        fix,
    )
}

/// The result of opening the default set's events of one kind.
struct Tried {
    total: usize,
    /// Events that do not open or are incomplete, with the reason.
    gaps: Vec<(String, Gap)>,
}

impl Tried {
    fn open(machine: &dyn Machine, kind: u32) -> Self {
        let opened = machine.open_counters();
        let events = opened.sets.iter().flat_map(|set| &set.events);
        let events: Vec<_> = events.filter(|(event, _)| event.encoding.kind == kind).collect();
        let gaps = events.iter().filter_map(|(event, gap)| Some((event.name.clone(), (*gap)?))).collect();
        Self { total: events.len(), gaps }
    }

    fn is_none_open(&self) -> bool {
        self.gaps.iter().filter(|(_, gap)| !gap.quality().has_value()).count() == self.total
    }

    fn has_unsupported(&self) -> bool {
        self.gaps.iter().any(|(_, gap)| matches!(gap, Gap::Unsupported(_)))
    }

    /// The worst gap: gaps with a fix come first, then gaps with the most lost counts.
    fn worst(&self) -> Option<Gap> {
        let rank = |gap: &Gap| match gap {
            Gap::Denied(_) => 3,
            Gap::Unavailable(_) => 2,
            Gap::UserModeOnly => 1,
            // OneKindOfCore occurs only in counts, never when a counter opens.
            Gap::Unsupported(_) | Gap::OneKindOfCore => 0,
        };
        self.gaps.iter().map(|(_, gap)| *gap).max_by_key(rank)
    }

    /// "pmmpi can count 3 of 5 events; ref_cycles: REASON".
    fn found(&self) -> String {
        let mut found = format!("pmmpi can count {} of {} events", self.total - self.closed(), self.total);
        let mut said: Vec<Gap> = Vec::new();
        for (_, gap) in &self.gaps {
            if !said.contains(gap) {
                let alike = self.gaps.iter().filter(|(_, other)| other == gap);
                let names: Vec<&str> = alike.map(|(name, _)| name.as_str()).collect();
                found += &format!("; {}: {}", names.join(", "), short(*gap));
                said.push(*gap);
            }
        }
        found
    }

    fn closed(&self) -> usize {
        self.gaps.iter().filter(|(_, gap)| !gap.quality().has_value()).count()
    }
}

/// The NMI watchdog uses one counter on every hardware thread.
pub fn nmi_watchdog(machine: &dyn Machine) -> Check {
    const NAME: &str = "nmi_watchdog";
    match machine.text("proc/sys/kernel/nmi_watchdog").as_deref() {
        None => Check::ok(NAME, "none in this Linux kernel", "no watchdog uses a counter"),
        Some("0") => Check::ok(NAME, "off", "no watchdog uses a counter"),
        Some(_) if core_pmus(machine).is_empty() => {
            Check::ok(NAME, "on, without a PMU", "this machine has no counter that the watchdog could use")
        }
        Some(_) => Check::limits(
            NAME,
            "on",
            "the watchdog uses one of the processor's counters: if you choose more events than the default \
             set, pmmpi may have to scale the counts",
            sysctl("kernel.nmi_watchdog", 0),
        ),
    }
}

/// The gap's text without the advice.
fn short(gap: Gap) -> String {
    let text = gap.to_string();
    text.split(": ").next().unwrap_or_default().to_owned()
}

fn mend(gap: Gap, machine: &dyn Machine) -> String {
    match gap {
        // The kernel's rules allow it, so the container forbids it.
        Gap::Denied(_) | Gap::UserModeOnly if perf_rights::allows_own_tasks(machine) => {
            "# probably a container blocks perf_event_open. Start the container with docker run --cap-add \
             PERFMON --security-opt seccomp=unconfined, or start pmmpi outside the container"
                .to_owned()
        }
        Gap::Denied(_) | Gap::UserModeOnly => sysctl(perf_rights::PARANOID, 1),
        Gap::Unavailable(WhyUnavailable::Busy | WhyUnavailable::NeverScheduled) => {
            "# end the program that uses the counters (perf or another profiler), or:\n\
             sysctl -w kernel.nmi_watchdog=0"
                .to_owned()
        }
        Gap::Unavailable(WhyUnavailable::NoRoom(libc::EMFILE)) => {
            "# raise the hard limit on open files (ulimit -Hn), for example in /etc/security/limits.conf"
                .to_owned()
        }
        Gap::Unavailable(_) | Gap::Unsupported(_) | Gap::OneKindOfCore => "dmesg | tail".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::super::machine::tests::Fake;
    use super::*;

    const VIRTUAL: &str = "vendor_id\t: AuthenticAMD\nflags\t\t: tsc hypervisor\n";

    #[test]
    fn a_pmu_that_counts() {
        let check = pmu(&Fake::new().file(&format!("{DEVICES}/cpu/type"), "4").gaps(|_| None));
        assert_eq!((check.status, &check.found[..]), (Status::Ok, "cpu: pmmpi can count 5 of 5 events"));
        let arm = Fake::new().file(&format!("{DEVICES}/armv8_pmuv3_0/cpus"), "0-3");
        assert_eq!(core_pmus(&arm), ["armv8_pmuv3_0"]);
    }

    #[test]
    fn a_virtual_machine_without_a_pmu_is_the_hosts_to_mend() {
        let check = pmu(&Fake::new().file("proc/cpuinfo", VIRTUAL));
        assert_eq!(check.status, Status::Limits);
        assert!(check.found.contains("no hardware counters (virtual machine"), "{}", check.found);
        let fix = check.fix.unwrap();
        assert!(fix.contains("-cpu host,pmu=on"));
        // Doctor wraps longer lines.
        assert!(fix.lines().all(|line| line.starts_with("# ") && line.len() <= 70), "{fix}");
        // For an ordinary user, the kernel denies the events with the kernel's part; the others do not exist.
        let mixed = |name: &str| match name.contains("kernel") {
            true => Some(Gap::Denied(libc::EACCES)),
            false => Some(Gap::Unsupported(libc::ENOENT)),
        };
        let check = pmu(&Fake::new().file("proc/cpuinfo", VIRTUAL).gaps(mixed));
        assert!(check.found.contains("no hardware counters (virtual machine"), "{}", check.found);
        assert!(pmu(&Fake::new()).fix.unwrap().starts_with("dmesg"));
    }

    #[test]
    fn an_event_that_the_processor_lacks_costs_that_event() {
        let lacks = |name: &str| (name == "ref_cycles").then_some(Gap::Unsupported(libc::ENOENT));
        let check = pmu(&Fake::new().gaps(lacks));
        assert_eq!(check.status, Status::Limits);
        let found = "pmmpi can count 4 of 5 events; ref_cycles: not counted";
        assert!(check.found.starts_with(found), "{}", check.found);
    }

    #[test]
    fn each_gap_has_its_own_remedy() {
        let fix = |gap: Gap, paranoid: &str| {
            let file = "proc/sys/kernel/perf_event_paranoid";
            let check = pmu(&Fake::new().file(file, paranoid).gaps(move |_| Some(gap)));
            assert_eq!(check.status, Status::Limits);
            check.fix.unwrap()
        };
        assert!(fix(Gap::Denied(libc::EACCES), "3").contains("perf_event_paranoid=1"));
        assert!(fix(Gap::UserModeOnly, "2").contains("perf_event_paranoid=1"));
        assert!(fix(Gap::Denied(libc::EPERM), "1").contains("seccomp"));
        assert!(fix(Gap::Unavailable(WhyUnavailable::Busy), "1").contains("nmi_watchdog=0"));
        assert!(fix(Gap::Unavailable(WhyUnavailable::NeverScheduled), "1").contains("nmi_watchdog=0"));
        assert!(fix(Gap::Unavailable(WhyUnavailable::NoRoom(libc::EMFILE)), "1").contains("hard limit"));
        assert!(fix(Gap::Unavailable(WhyUnavailable::Open(libc::EIO)), "1").contains("dmesg"));
    }

    #[test]
    fn software_events_are_denied_in_containers() {
        let open = software_events(&Fake::new().gaps(|_| None));
        assert_eq!((open.status, &open.found[..]), (Status::Ok, "pmmpi can count 4 of 4 events"));
        let file = "proc/sys/kernel/perf_event_paranoid";
        let denied = Fake::new().file(file, "1").gaps(|_| Some(Gap::Denied(libc::EPERM)));
        let check = software_events(&denied);
        assert_eq!(check.status, Status::Limits);
        assert!(check.found.contains("count 0 of 4") && check.fix.unwrap().contains("seccomp"));
    }

    #[test]
    fn the_uncore_is_counted_by_kinds() {
        let mask = |fake: Fake, name: &str| fake.file(&format!("{DEVICES}/{name}/cpumask"), "0");
        let names = ["uncore_imc_0", "uncore_imc_1", "power"];
        let check = uncore(&names.into_iter().fold(Fake::new(), mask));
        assert_eq!((check.status, &check.found[..]), (Status::Ok, "power, 2 x uncore_imc"));
        let fix = |cpuinfo: &str| {
            let check = uncore(&Fake::new().file("proc/cpuinfo", cpuinfo));
            assert_eq!(check.status, Status::Limits);
            check.fix.unwrap()
        };
        assert!(fix(VIRTUAL).contains("on the host"));
        assert!(fix("vendor_id\t: AuthenticAMD\n").contains("amd_uncore"));
        assert!(fix("vendor_id\t: GenuineIntel\n").contains("intel_uncore"));
        assert!(fix("CPU implementer\t: 0x41\n").contains("dmesg"));
    }

    #[test]
    fn the_watchdog_holds_a_counter_where_there_is_one() {
        const FILE: &str = "proc/sys/kernel/nmi_watchdog";
        let with_pmu = || Fake::new().file("sys/bus/event_source/devices/cpu/type", "4");
        let check = nmi_watchdog(&with_pmu().file(FILE, "1\n"));
        assert_eq!(check.status, Status::Limits);
        assert!(check.fix.unwrap().contains("kernel.nmi_watchdog=0"));
        for ok in [Fake::new(), Fake::new().file(FILE, "1"), with_pmu().file(FILE, "0")] {
            assert_eq!(nmi_watchdog(&ok).status, Status::Ok);
        }
    }
}
