//! Settings that make a processor's speed vary from run to run.

use super::check::Check;
use super::machine::Machine;
use pmmpi::counters::core_pmus::DEVICES;
use pmmpi::node::Hardware;
use std::collections::BTreeSet;

/// True inside a virtual machine. On x86 the processor reports this, elsewhere the firmware's tables do.
pub fn is_virtual(machine: &dyn Machine) -> bool {
    const VENDORS: [&str; 6] = ["QEMU", "KVM", "VMware", "Xen", "Amazon EC2", "Microsoft Corporation"];
    let dmi = |name: &str| machine.text(&format!("sys/class/dmi/id/{name}")).unwrap_or_default();
    let (vendor, product) = (dmi("sys_vendor"), dmi("product_name"));
    // Product names: bare metal of Amazon is "m6g.metal", a virtual machine of Microsoft is "Virtual Machine".
    let is_metal = product.ends_with(".metal") || vendor.starts_with("Micro") && product != "Virtual Machine";
    // The device tree of qemu and Firecracker, which replaces these tables on Arm.
    let device_tree = machine.text("proc/device-tree/compatible").unwrap_or_default();
    machine.facts().hardware.hypervisor
        || machine.has("sys/hypervisor/type")
        || device_tree.contains("linux,dummy-virt")
        || VENDORS.iter().any(|name| vendor.contains(name)) && !is_metal
}

pub fn hypervisor(machine: &dyn Machine) -> Check {
    const NAME: &str = "hypervisor";
    if !is_virtual(machine) {
        return Check::ok(NAME, "none detected", "time and counts come directly from the hardware");
    }
    let whose = vendor(machine).map_or(String::new(), |vendor| format!(" ({vendor})"));
    let stolen = stolen_share(machine).map_or(String::new(), |share| {
        format!(", the host took away {:.2} % of this machine's processor time since boot", share * 100.0)
    });
    Check::limits(
        NAME,
        format!("virtual machine{whose}{stolen}"),
        "the host may take away processor time, and the elapsed time of a run includes this time; \
         frequency and counters are visible only if the host shows them",
        "# measure on bare metal, or pin this machine's processors on the host: virsh vcpupin",
    )
}

/// The vendor of the virtual machine: from its firmware, or from the clock that it offers.
fn vendor(machine: &dyn Machine) -> Option<String> {
    const CLOCKS: [(&str, &str); 3] = [("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")];
    let offered = machine.text("sys/devices/system/clocksource/clocksource0/available_clocksource");
    let offered = offered.unwrap_or_default();
    let by_clock =
        || CLOCKS.into_iter().find(|(clock, _)| offered.contains(clock)).map(|(_, v)| v.to_owned());
    machine.text("sys/class/dmi/id/sys_vendor").or_else(by_clock)
}

/// The share of processor time that the host took, since boot. Fields of proc_stat(5): user, nice, system, idle,
/// iowait, irq, softirq, steal. The guest fields after them are already part of user and nice.
fn stolen_share(machine: &dyn Machine) -> Option<f64> {
    let stat = machine.text("proc/stat")?;
    let times = stat.lines().find_map(|line| line.strip_prefix("cpu "))?.split_ascii_whitespace();
    let times =
        times.take(8).map(|ticks| Some(ticks.parse::<u64>().ok()? as f64)).collect::<Option<Vec<f64>>>()?;
    let (stolen, all) = (times.get(7)?, times.iter().sum::<f64>());
    (all > 0.0).then(|| stolen / all)
}

/// Whether cores run several hardware threads.
pub fn smt(machine: &dyn Machine) -> Check {
    const NAME: &str = "smt";
    const CONTROL: &str = "sys/devices/system/cpu/smt/control";
    let control = machine.facts().settings.smt;
    let active = machine.text("sys/devices/system/cpu/smt/active");
    match (control.as_deref(), active.as_deref()) {
        (Some("on"), Some("1") | None) => Check::limits(
            NAME,
            "on: a core has several hardware threads",
            "two ranks on the hardware threads of one core slow each other down, and each rank changes \
             the counts of the other rank",
            format!(
                "# for one job: srun --hint=nomultithread, mpirun --map-by core --bind-to core\n\
                 echo off > /{CONTROL}"
            ),
        ),
        (Some("notimplemented"), _) => Check::ok(
            NAME,
            "the Linux kernel cannot switch SMT on or off",
            "the topology in each run shows which hardware threads share a core",
        ),
        (Some(control), _) => Check::ok(NAME, in_words(control), "each core has one online hardware thread"),
        (None, _) => Check::ok(
            NAME,
            "not shown by this Linux kernel",
            "the topology in each run shows which hardware threads share a core",
        ),
    }
}

/// What a value of smt/control says where no core has several online hardware threads.
fn in_words(control: &str) -> &str {
    match control {
        "on" => "on, but no core has several online hardware threads",
        "off" => "off",
        "forceoff" => "off until the next boot (forceoff)",
        "notsupported" => "the processor has no SMT",
        other => other,
    }
}

/// The folder names of the hardware threads in sysfs.
fn cpus(machine: &dyn Machine) -> Vec<String> {
    let is_cpu = |name: &String| name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok());
    machine.names("sys/devices/system/cpu").into_iter().filter(is_cpu).collect()
}

/// The result for a kernel without cpufreq: it does not show frequencies, because the host or the firmware sets them.
fn not_shown(machine: &dyn Machine, name: &'static str, costs: &str, on_the_host: &str) -> Check {
    let fix = match is_virtual(machine) {
        true => format!("# on the host: {on_the_host}"),
        false => {
            "modprobe acpi_cpufreq   # on Arm: cppc_cpufreq. Or set the firmware to leave frequencies to \
                  the operating system"
                .into()
        }
    };
    Check::limits(
        name,
        "not shown: this Linux kernel has no cpufreq driver that shows this setting",
        costs,
        fix,
    )
}

/// The cpufreq governors, which choose the frequency.
pub fn governor(machine: &dyn Machine) -> Check {
    const NAME: &str = "governor";
    let of = |cpu: String| machine.text(&format!("sys/devices/system/cpu/{cpu}/cpufreq/scaling_governor"));
    let governors: BTreeSet<String> = cpus(machine).into_iter().filter_map(of).collect();
    if governors.is_empty() {
        return not_shown(
            machine,
            NAME,
            "a core that was idle may run slowly at first, and pmmpi cannot record the governor in runs",
            "cpupower frequency-set -g performance",
        );
    }
    let found = governors.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    if found == "performance" {
        return Check::ok(NAME, found, "the Linux kernel always requests the highest frequency");
    }
    let differ = if governors.len() > 1 { "hardware threads have different governors, and " } else { "" };
    Check::limits(
        NAME,
        found,
        format!(
            "{differ}a core that was idle runs slowly at first: short work takes longer, and its time varies"
        ),
        "cpupower frequency-set -g performance\n\
         # to keep this setting after a reboot, add cpufreq.default_governor=performance to the Linux \
         kernel's command line (Linux 5.9 or later)",
    )
}

/// Whether a frequency limit is below the hardware's own limit.
pub fn frequency_limits(machine: &dyn Machine) -> Check {
    const NAME: &str = "frequency_limits";
    let khz = |cpu: &str, name: &str| machine.number(&format!("sys/devices/system/cpu/{cpu}/cpufreq/{name}"));
    let limits = |cpu: String| -> Option<(u64, u64)> {
        Some((khz(&cpu, "scaling_max_freq")?, khz(&cpu, "cpuinfo_max_freq")?))
    };
    let limits: Vec<(u64, u64)> = cpus(machine).into_iter().filter_map(limits).collect();
    // Cores of different kinds have different limits.
    let Some((set, own)) = limits.iter().max_by_key(|(set, own)| own.saturating_sub(*set)) else {
        return not_shown(
            machine,
            NAME,
            "the report cannot distinguish a node with a frequency limit from a slow node",
            "cpupower frequency-info",
        );
    };
    let highest = limits.iter().map(|(_, own)| own).max().unwrap_or(own);
    if set >= own {
        let found = format!("up to {} GHz, the hardware's own limit", gigahertz(*highest));
        return Check::ok(NAME, found, "no setting limits the frequency");
    }
    let (ghz, own_ghz) = (gigahertz(*set), gigahertz(*own));
    Check::limits(
        NAME,
        format!("limited to {ghz} GHz, although the hardware allows {own_ghz} GHz"),
        "this node runs slower than its hardware could: compare this node only with nodes that have the \
         same limit",
        format!("cpupower frequency-set -u {highest}kHz"),
    )
}

fn gigahertz(khz: u64) -> String {
    format!("{:.2}", khz as f64 / 1e6)
}

/// Whether cores may run faster than their rated frequency, depending on temperature and on other cores.
pub fn turbo(machine: &dyn Machine) -> Check {
    const NAME: &str = "turbo";
    const INTEL: &str = "sys/devices/system/cpu/intel_pstate/no_turbo";
    const OTHERS: &str = "sys/devices/system/cpu/cpufreq/boost";
    let found = match (machine.text(INTEL).as_deref(), machine.text(OTHERS).as_deref()) {
        (Some("0"), _) => Some(("1", INTEL)),
        (None, Some("1")) => Some(("0", OTHERS)),
        (None, None) => {
            return not_shown(
                machine,
                NAME,
                "the frequency may depend on temperature and on the work of other cores, and pmmpi cannot \
                 record in runs whether turbo is on",
                "cat /sys/devices/system/cpu/{intel_pstate/no_turbo,cpufreq/boost}",
            );
        }
        _ => None,
    };
    match found {
        None => Check::ok(
            NAME,
            "off",
            "the frequency does not depend on the number of busy cores; a hot processor or a power limit can \
             still lower it",
        ),
        Some((off, file)) => Check::limits(
            NAME,
            format!("on; turbo steps: {}", steps(machine)),
            "the frequency depends on temperature and on the number of busy cores: runs vary, and a node with few \
             busy cores looks faster than a node with many. If your jobs run with turbo, leave turbo on, and \
             compare the frequency of nodes (cycles / reference cycles). If pmmpi runs as root and the processor \
             shows its turbo steps, the report also compares the frequency with these steps",
            format!("echo {off} > /{file}"),
        ),
    }
}

/// The highest frequency of so many active cores, or why it is unknown.
fn steps(machine: &dyn Machine) -> String {
    let steps = Hardware::read(machine.root()).turbo_steps(machine.root());
    let unknown = "unknown (pmmpi reads them on some Intel processors, as root, with Linux's module msr)";
    steps.map_or(unknown.to_owned(), |steps| steps.to_string())
}

/// PMUs of cores. x86 has one, named "cpu". On hybrid x86 and on other processors there is one per kind of core, and
/// its file `cpus` lists the hardware threads.
pub fn core_pmus(machine: &dyn Machine) -> Vec<String> {
    let is_core = |name: &String| name == "cpu" || machine.has(&format!("{DEVICES}/{name}/cpus"));
    machine.names(DEVICES).into_iter().filter(is_core).collect()
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::super::machine::tests::Fake;
    use super::*;

    const CPUS: &str = "sys/devices/system/cpu";

    fn virtual_machine() -> Fake {
        Fake::new().file("proc/cpuinfo", "flags\t\t: tsc hypervisor\n")
    }

    #[test]
    fn a_virtual_machine_is_named() {
        assert_eq!(hypervisor(&Fake::new()).status, Status::Ok);
        let check = hypervisor(&virtual_machine().file("sys/class/dmi/id/sys_vendor", "QEMU\n"));
        assert_eq!((check.status, &check.found[..]), (Status::Limits, "virtual machine (QEMU)"));
        let clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource";
        let stat = "cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 2 3\n";
        let check = hypervisor(&virtual_machine().file(clocks, "tsc kvm-clock").file("proc/stat", stat));
        assert_eq!(
            check.found,
            "virtual machine (KVM), the host took away 10.00 % of this machine's processor time since boot"
        );
        assert_eq!(hypervisor(&virtual_machine().file("proc/stat", "cpu  1 2\n")).found, "virtual machine");
        assert_eq!(hypervisor(&Fake::new().file("sys/hypervisor/type", "xen")).status, Status::Limits);
        let tree = Fake::new().file("proc/device-tree/compatible", "linux,dummy-virt\u{0}");
        assert_eq!(hypervisor(&tree).status, Status::Limits);
        let firmware = |vendor: &str, product: &str| {
            let fake = Fake::new().file("sys/class/dmi/id/sys_vendor", vendor);
            is_virtual(&fake.file("sys/class/dmi/id/product_name", product))
        };
        assert!(firmware("QEMU", "KVM Virtual Machine") && firmware("Amazon EC2", "m6g.large"));
        assert!(!firmware("Amazon EC2", "m6g.metal") && !firmware("Dell Inc.", "PowerEdge"));
        assert!(firmware("Microsoft Corporation", "Virtual Machine"));
        assert!(!firmware("Microsoft Corporation", "Surface"));
    }

    #[test]
    fn hardware_threads_that_share_a_core_are_told() {
        let smt_is = |control: &str, active: &str| {
            let fake = Fake::new().file(&format!("{CPUS}/smt/control"), control);
            smt(&fake.file(&format!("{CPUS}/smt/active"), active))
        };
        let check = smt_is("on", "1");
        assert_eq!(check.status, Status::Limits);
        assert!(check.fix.unwrap().contains("echo off > /sys/devices/system/cpu/smt/control"));
        for (control, active) in [("off", "0"), ("on", "0"), ("notsupported", "0"), ("forceoff", "0")] {
            let check = smt_is(control, active);
            assert_eq!(check.status, Status::Ok, "{control}");
            assert!(check.found != "notsupported" && check.found != "forceoff", "{}", check.found);
        }
        let unknown = smt_is("notimplemented", "1");
        assert!(unknown.status == Status::Ok && !unknown.meaning.contains("one"), "{unknown:?}");
        assert_eq!(smt(&Fake::new()).status, Status::Ok);
    }

    fn node_of(values: &[(&str, &str)]) -> Fake {
        values.iter().enumerate().fold(Fake::new(), |fake, (cpu, (name, value))| {
            fake.file(&format!("{CPUS}/cpu{cpu}/cpufreq/{name}"), value)
        })
    }

    #[test]
    fn one_core_with_another_governor_is_enough() {
        let of = |all: &[&str]| {
            let values: Vec<(&str, &str)> = all.iter().map(|value| ("scaling_governor", *value)).collect();
            governor(&node_of(&values))
        };
        assert_eq!(of(&["performance", "performance"]).status, Status::Ok);
        let check = of(&["performance", "powersave"]);
        assert_eq!((check.status, &check.found[..]), (Status::Limits, "performance, powersave"));
        assert!(check.meaning.contains("different governors"));
        assert!(check.fix.unwrap().starts_with("cpupower frequency-set -g performance\n"));
        assert_eq!(of(&["schedutil"]).status, Status::Limits);
        assert!(governor(&virtual_machine()).fix.unwrap().contains("on the host"));
        assert!(governor(&Fake::new()).fix.unwrap().contains("modprobe"));
    }

    #[test]
    fn a_cap_below_the_hardwares_limit_is_found() {
        let node = |set: &str| {
            let fake = Fake::new().file(&format!("{CPUS}/cpu0/cpufreq/scaling_max_freq"), set);
            frequency_limits(&fake.file(&format!("{CPUS}/cpu0/cpufreq/cpuinfo_max_freq"), "3700000"))
        };
        assert_eq!(node("3700000").status, Status::Ok);
        let check = node("2400000\n");
        assert_eq!(
            (check.status, &check.found[..]),
            (Status::Limits, "limited to 2.40 GHz, although the hardware allows 3.70 GHz")
        );
        assert_eq!(check.fix.as_deref(), Some("cpupower frequency-set -u 3700000kHz"));
        let hybrid = [("cpu0", "4200000", "5000000"), ("cpu1", "4000000", "4000000")];
        let hybrid = hybrid.into_iter().fold(Fake::new(), |fake, (cpu, set, own)| {
            let fake = fake.file(&format!("{CPUS}/{cpu}/cpufreq/scaling_max_freq"), set);
            fake.file(&format!("{CPUS}/{cpu}/cpufreq/cpuinfo_max_freq"), own)
        });
        assert_eq!(
            frequency_limits(&hybrid).found,
            "limited to 4.20 GHz, although the hardware allows 5.00 GHz"
        );
        assert_eq!(frequency_limits(&Fake::new()).status, Status::Limits);
        assert_eq!(node("a lot").status, Status::Limits);
    }

    #[test]
    fn turbo_is_known_by_either_driver() {
        let with = |file: &str, value: &str| turbo(&Fake::new().file(&format!("{CPUS}/{file}"), value));
        for (file, on, off) in [("intel_pstate/no_turbo", "0", "1"), ("cpufreq/boost", "1", "0")] {
            let check = with(file, on);
            assert_eq!(check.status, Status::Limits);
            assert_eq!(check.fix.unwrap(), format!("echo {off} > /{CPUS}/{file}"));
            assert_eq!(with(file, off).status, Status::Ok);
        }
        assert_eq!(turbo(&Fake::new()).status, Status::Limits);
        assert!(with("cpufreq/boost", "1").found.starts_with("on; turbo steps: unknown"));
        let cpuinfo = "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 45\n";
        let sandy_bridge =
            Fake::new().file("proc/cpuinfo", cpuinfo).file(&format!("{CPUS}/cpufreq/boost"), "1");
        // The register is 8 bytes at its address.
        let sandy_bridge = sandy_bridge.file("dev/cpu/0/msr", &format!("{}########", " ".repeat(0x1ad)));
        assert_eq!(turbo(&sandy_bridge).found, "on; turbo steps: 8: 3.50 GHz");
    }
}
