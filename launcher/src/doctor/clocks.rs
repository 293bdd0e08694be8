//! The clocks of the stamps and counters.

use super::check::Check;
use super::machine::Machine;
use super::processor::is_virtual;
use pmmpi::bounds::MaxDrift;

/// Clock sources that need no system call: those with a vDSO mode in Linux.
const FAST: [&str; 8] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "timebase",
    "tod",
    "riscv_clocksource",
    "Constant", // LoongArch
];

/// The kernel's clock source.
pub fn clock_source(machine: &dyn Machine) -> Check {
    const NAME: &str = "clock_source";
    const CURRENT: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let Some(current) = machine.facts().settings.clocksource else {
        return Check::limits(
            NAME,
            "the Linux kernel shows no clock source: is /sys mounted?",
            "pmmpi does not know how long a clock reading takes",
            "mount -t sysfs sysfs /sys",
        );
    };
    if FAST.contains(&current.as_str()) {
        return Check::ok(
            NAME,
            current,
            "programs read this clock in user mode, which takes tens of nanoseconds",
        );
    }
    let available = machine.text("sys/devices/system/clocksource/clocksource0/available_clocksource");
    let has_tsc = available.is_some_and(|all| all.split_ascii_whitespace().any(|source| source == "tsc"));
    let fix = match has_tsc {
        true => format!(
            "echo tsc > /{CURRENT}\n# to keep this clock source after a reboot, add clocksource=tsc to the \
             Linux kernel's command line"
        ),
        false => "dmesg | grep -iE 'tsc|clocksource'   # shows why Linux does not use the TSC".to_owned(),
    };
    Check::limits(
        NAME,
        current,
        "each clock reading is a system call of about a microsecond, so stamps are less precise than with a \
         clock that programs read in user mode",
        fix,
    )
}

/// Whether the time stamp counter ticks at a constant rate.
pub fn invariant_tsc(machine: &dyn Machine) -> Check {
    const NAME: &str = "invariant_tsc";
    if machine.facts().hardware.tsc_invariant {
        return Check::ok(
            NAME,
            "yes",
            "the time stamp counter ticks at the same rate at every core frequency and in every sleep state",
        );
    }
    let fix = match is_virtual(machine) {
        true => "# on the host: qemu -cpu host,migratable=no,+invtsc",
        false => {
            "grep -woE -m2 'constant_tsc|nonstop_tsc' /proc/cpuinfo   # the processor must have both flags"
        }
    };
    Check::limits(
        NAME,
        "no, or not shown by the Linux kernel",
        "the event tsc gives neither time nor frequency; the bounds do not use this event",
        fix,
    )
}

/// By how much the kernel now corrects the rate of the clock of the stamps.
pub fn time_service(machine: &dyn Machine) -> Check {
    const NAME: &str = "time_service";
    let limit_ppm = MaxDrift::DEFAULT.ppm();
    match machine.adjustment() {
        Err(e) => Check::limits(
            NAME,
            format!("pmmpi cannot read the Linux kernel's correction of the clock rate: {e}"),
            "this check cannot show whether the clock is slewed, but the report of each run shows it",
            "adjtimex --print   # outside the container",
        ),
        Ok(now) => {
            let kept = if now.synchronised { "synchronised" } else { "not synchronised" };
            let found = format!("{kept}, clock rate corrected by {:+.1} ppm", now.rate_ppm);
            if now.rate_ppm.abs() > limit_ppm {
                return Check::limits(
                    NAME,
                    found,
                    "each rank measures the slew of its clock, and pmmpi widens the bounds of the run by \
                     this slew",
                    format!(
                        "chronyc tracking || ntpq -p   # wait until the correction is at most {limit_ppm} ppm"
                    ),
                );
            }
            Check::ok(
                NAME,
                found,
                "the bounds need clocks with rate errors of at most --max-drift-ppm; synchronised clocks are not necessary",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::super::machine::Adjustment;
    use super::super::machine::tests::Fake;
    use super::*;

    const SOURCES: &str = "sys/devices/system/clocksource/clocksource0";

    #[test]
    fn a_slow_clock_source_is_told_and_mended_where_the_tsc_is_there() {
        let with = |current: &str, available: &str| {
            let fake = Fake::new().file(&format!("{SOURCES}/current_clocksource"), current);
            clock_source(&fake.file(&format!("{SOURCES}/available_clocksource"), available))
        };
        for fast in FAST {
            assert_eq!(with(&format!("{fast}\n"), "tsc").status, Status::Ok, "{fast}");
        }
        let check = with("hpet", "tsc hpet acpi_pm");
        assert_eq!(check.status, Status::Limits);
        assert!(check.fix.unwrap().starts_with("echo tsc > /sys/devices/system/clocksource/"));
        let check = with("acpi_pm", "hpet acpi_pm");
        assert!(check.status == Status::Limits && check.fix.unwrap().starts_with("dmesg"));
        assert_eq!(clock_source(&Fake::new()).status, Status::Limits);
    }

    #[cfg(not(target_arch = "aarch64"))]
    #[test]
    fn a_tsc_that_changes_its_rate_is_no_clock() {
        let with =
            |flags: &str| invariant_tsc(&Fake::new().file("proc/cpuinfo", &format!("flags\t: {flags}\n")));
        assert_eq!(with("constant_tsc nonstop_tsc").status, Status::Ok);
        assert_eq!(with("constant_tsc").status, Status::Limits);
        assert!(with("tsc hypervisor").fix.unwrap().contains("+invtsc"));
        assert!(with("tsc").fix.unwrap().contains("nonstop_tsc"));
    }

    #[test]
    fn a_slew_beyond_the_limit_is_told() {
        let at = |rate_ppm| {
            let adjustment = Adjustment { rate_ppm, ..Adjustment::default() };
            time_service(&Fake::new().adjusted(adjustment))
        };
        assert_eq!((at(99.0).status, at(-99.0).status), (Status::Ok, Status::Ok));
        let check = at(-500.0);
        assert_eq!(check.status, Status::Limits);
        assert!(
            check.found.contains("not synchronised, clock rate corrected by -500.0 ppm"),
            "{}",
            check.found
        );
        assert_eq!(time_service(&Fake::new()).status, Status::Limits);
    }
}
