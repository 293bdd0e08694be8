//! Settings of the Linux kernel that an administrator may change: its command line, huge pages, frequencies of each
//! core.

use super::equal_values::counted;
use super::kernel_files::{entries, number, text};
use std::path::Path;

/// The settings below `root`, by the names in [`super::FACTS`].
pub(super) fn read(root: &Path) -> Vec<(&'static str, Option<String>)> {
    let switch = |file: &str, on: &str| text(root, file).map(|it| if it == on { "on" } else { "off" }.into());
    let turbo = switch("sys/devices/system/cpu/intel_pstate/no_turbo", "0")
        .or_else(|| switch("sys/devices/system/cpu/cpufreq/boost", "1"));
    let [governors, limits] = other_policies(root);
    vec![
        ("kernel_options", text(root, "proc/cmdline").map(|line| options(&line))),
        ("other_hugepages", other_huge_pages(root)),
        ("numa_balancing", text(root, "proc/sys/kernel/numa_balancing").map(|it| balancing(&it))),
        ("turbo", turbo),
        ("other_governors", governors),
        ("other_frequency_limits", limits),
    ]
}

/// The options on the kernel's command line that change how fast a node is, in their order: the meaning of `hugepages` depends
/// on the `hugepagesz` before. "none" without such options. All others are left out: they may hold names, addresses or
/// secrets, and then each node would differ.
fn options(line: &str) -> String {
    /// Prefixes of names, as in Documentation/admin-guide/kernel-parameters.txt. `-` and `_` are equal there.
    const KEPT: [&str; 62] = [
        "isolcpus",
        "nohz",
        "rcu_",
        "rcupdate.",
        "rcutree.",
        "mitigations",
        "spectre",
        "spec_",
        "nospec",
        "nospectre",
        "pti",
        "nopti",
        "kpti",
        "l1tf",
        "mds",
        "tsx",
        "srbds",
        "mmio_stale_data",
        "retbleed",
        "gather_data_sampling",
        "srso",
        "reg_file_data_sampling",
        "ssbd",
        "intel_idle.",
        "intel_pstate",
        "intel_iommu",
        "intel_",
        "amd_",
        "iommu",
        "idle",
        "processor.",
        "acpi_cpufreq",
        "cpufreq",
        "cpuidle",
        "transparent_hugepage",
        "hugepages",
        "hugepagesz",
        "default_hugepagesz",
        "hugetlb",
        "numa",
        "nosmt",
        "maxcpus",
        "nr_cpus",
        "mem",
        "movable",
        "kernelcore",
        "pci",
        "nopcid",
        "skew_tick",
        "tsc",
        "clocksource",
        "nmi_watchdog",
        "nowatchdog",
        "nosoftlockup",
        "audit",
        "selinux",
        "cgroup",
        "systemd.unified_cgroup",
        "psi",
        "preempt",
        "threadirqs",
        "irqaffinity",
    ];
    let is_kept = |option: &&str| {
        let name = option.split('=').next().unwrap_or_default().replace('-', "_").to_ascii_lowercase();
        KEPT.iter().any(|prefix| name.starts_with(prefix)) && !option.contains(['"', '@'])
    };
    // After a lone `--` come the arguments of init.
    let options = line.split_ascii_whitespace().take_while(|option| *option != "--");
    let options: Vec<&str> = options.filter(is_kept).collect();
    if options.is_empty() { "none".to_owned() } else { options.join(" ") }
}

/// Reserved huge pages of the sizes beside the default one, for example "4 x 1048576 kB"; "none". See
/// Documentation/admin-guide/mm/hugetlbpage.rst.
fn other_huge_pages(root: &Path) -> Option<String> {
    const POOLS: &str = "sys/kernel/mm/hugepages";
    let default = text(root, "proc/meminfo").and_then(|meminfo| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix("Hugepagesize:"))?.trim();
        line.strip_suffix("kB").map(|size| size.trim().to_owned())
    });
    let pools = entries(root, POOLS);
    if pools.is_empty() {
        return None;
    }
    let pool = |pool: &String| {
        let size = pool.strip_prefix("hugepages-")?.strip_suffix("kB")?;
        let pages = number(root, &format!("{POOLS}/{pool}/nr_hugepages"))?;
        (Some(size) != default.as_deref() && pages > 0).then(|| format!("{pages} x {size} kB"))
    };
    let pools: Vec<String> = pools.iter().filter_map(pool).collect();
    Some(if pools.is_empty() { "none".to_owned() } else { pools.join(", ") })
}

/// kernel.numa_balancing: 1 moves pages to the node that uses them, 2 moves them between tiers of memory.
fn balancing(value: &str) -> String {
    match value {
        "0" => "off",
        "1" => "on",
        "2" => "memory tiering",
        other => other,
    }
    .to_owned()
}

/// Governors and frequency limits of the hardware threads that have others than the first one, with their number. "none"
/// if all have the same; `None` without frequency settings. Threads that share their frequency have one policy
/// (Documentation/admin-guide/pm/cpufreq.rst).
fn other_policies(root: &Path) -> [Option<String>; 2] {
    const POLICIES: &str = "sys/devices/system/cpu/cpufreq";
    let policies = entries(root, POLICIES).into_iter().filter_map(|name| {
        let number: u32 = name.strip_prefix("policy")?.parse().ok()?;
        Some((number, format!("{POLICIES}/{name}")))
    });
    let mut policies: Vec<(u32, String)> = policies.collect();
    policies.sort_unstable();
    let ghz = |file: String| number(root, &file).map(|khz| khz as f64 / 1e6);
    let governor = |folder: &String| text(root, &format!("{folder}/scaling_governor"));
    let limits = |folder: &String| {
        let lowest = ghz(format!("{folder}/scaling_min_freq"))?;
        Some(format!("{lowest:.2} .. {:.2} GHz", ghz(format!("{folder}/scaling_max_freq"))?))
    };
    let others = |of: &dyn Fn(&String) -> Option<String>| {
        let (_, first) = policies.first()?;
        let first = of(first)?;
        let others = policies.iter().skip(1).filter_map(|(_, folder)| of(folder));
        Some(counted(others.filter(|other| *other != first)).unwrap_or_else(|| "none".to_owned()))
    };
    [others(&governor), others(&limits)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn machine(files: &[(&str, &str)]) -> TempDir {
        let root = TempDir::with_prefix("test-settings-").unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        root
    }

    fn known(root: &TempDir) -> Vec<(&'static str, String)> {
        read(root.path()).into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    #[test]
    fn equal_nodes_have_equal_kernel_options() {
        let common = "isolcpus=1-3 mitigations=off iommu.passthrough=1 intel_idle.max_cstate=1";
        let pages = "hugepagesz=1G hugepages=16 hugepagesz=2M hugepages=1024";
        let first = format!(
            "BOOT_IMAGE=/vmlinuz-6.1 root=UUID=6f1c2a3b-0000-4c1d-9e8f-0123456789ab {common} {pages} quiet \
             netroot=iscsi:admin:S3cret@storage::::iqn xname=x3000c0s28b4n0 nid=12 luks.key=\"my secret words\" \
             systemd.machine_id=0123456789abcdef0123456789abcdef -- nosmt"
        );
        let second =
            format!("{common} {pages} BOOT_IMAGE=/vmlinuz-5.14 nid=13 rootpw=abc live.user=root:hunter2");
        assert_eq!(options(&first), format!("{common} {pages}"));
        assert_eq!(options(&second), options(&first));
        assert_ne!(options("hugepagesz=2M hugepages=16"), options("hugepages=16 hugepagesz=2M"));
        assert_eq!(options("root=/dev/sda1"), "none");
    }

    #[test]
    fn one_core_with_another_limit_is_found() {
        let policy =
            |number: u32, file: &str| format!("sys/devices/system/cpu/cpufreq/policy{number}/{file}");
        let mut files = Vec::new();
        for number in 0..12 {
            let (governor, most) =
                if number == 10 { ("powersave\n", "1200000\n") } else { ("performance\n", "3700000\n") };
            files.push((policy(number, "scaling_governor"), governor));
            files.push((policy(number, "scaling_min_freq"), "1000000\n"));
            files.push((policy(number, "scaling_max_freq"), most));
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, content)| (path.as_str(), *content)).collect();
        let root = machine(&files);
        let expected = [
            ("other_governors", "1 x powersave".to_owned()),
            ("other_frequency_limits", "1 x 1.00 .. 1.20 GHz".to_owned()),
        ];
        assert_eq!(known(&root), expected);
        let alike = machine(&files[..9]);
        assert!(known(&alike).iter().all(|(_, value)| value == "none"));
    }

    #[test]
    fn huge_pages_of_other_sizes_and_switches_are_read() {
        let root = machine(&[
            ("proc/meminfo", "MemTotal:  1 kB\nHugepagesize:       2048 kB\n"),
            ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "12\n"),
            ("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "4\n"),
            ("sys/kernel/mm/hugepages/hugepages-64kB/nr_hugepages", "0\n"),
            ("proc/sys/kernel/numa_balancing", "1\n"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
        ]);
        let expected = [("other_hugepages", "4 x 1048576 kB"), ("numa_balancing", "on"), ("turbo", "off")];
        assert_eq!(known(&root), expected.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(
            known(&machine(&[("sys/devices/system/cpu/cpufreq/boost", "1")])),
            [("turbo", "on".to_owned())]
        );
        assert_eq!(known(&machine(&[])), []);
    }
}
