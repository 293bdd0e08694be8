//! The hardware and the settings of a node.
//!
//! This module reads everything under a root path, so that tests can bring their own /proc and /sys. A value that
//! cannot be read is `None`, never a guess.

use super::cpu_set::CpuSet;
use super::inventory::Inventory;
use super::kernel_files::text;
use super::turbo_steps::TurboSteps;
use crate::clock::Crystal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// In a shorter run, facts hardly change, and reading them again would take a part of the run's time.
pub const FACTS_MAY_CHANGE_AFTER: Duration = Duration::from_secs(1);

/// What a node's processor and kernel report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeFacts {
    /// What stays the same within a boot.
    pub hardware: Hardware,
    /// What may change between two runs.
    pub settings: NodeSettings,
    /// Its memory modules, links and GPUs. [`crate::record::HostPart`] carries it between ranks; run files have it from
    /// schema 6 on.
    #[serde(skip)]
    pub inventory: Inventory,
}

/// Facts that stay the same within a boot, except for microcode that is loaded late.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hardware {
    /// vendor_id, "GenuineIntel" or "AuthenticAMD".
    pub cpu_vendor: Option<String>,
    /// The marketing name.
    pub cpu_model_name: Option<String>,
    /// Family, model and stepping as CPUID gives them; on Arm architecture, part and revision (MIDR_EL1).
    pub cpu_family: Option<u32>,
    /// See `cpu_family`.
    pub cpu_model: Option<u32>,
    /// See `cpu_family`.
    pub cpu_stepping: Option<u32>,
    /// Microcode revision, as the kernel prints it.
    pub microcode: Option<String>,
    /// True in a virtual machine that sets the CPU flag `hypervisor`.
    pub hypervisor: bool,
    /// True if the time stamp counter never changes its rate.
    pub tsc_invariant: bool,
    /// Memory that the kernel manages (bytes).
    pub memory_bytes: Option<u64>,
    /// uname -r.
    pub kernel: Option<String>,
    /// The clock that some events count. [`crate::record::HostPart`] carries it between ranks; run files have it
    /// from schema 4 on.
    #[serde(skip)]
    pub crystal: Crystal,
}

/// Settings of a node: an administrator may change them between two runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeSettings {
    /// Where the kernel takes its time from: tsc, hpet, kvm-clock, ...
    pub clocksource: Option<String>,
    /// Frequency governor of the first hardware thread.
    pub governor: Option<String>,
    /// Lowest and highest frequency set for the first hardware thread (Hz).
    pub frequency_limits_hz: Option<[u64; 2]>,
    /// on, off, forceoff, notsupported, notimplemented.
    pub smt: Option<String>,
    /// Transparent huge pages: always, madvise or never.
    pub transparent_hugepage: Option<String>,
    /// Huge pages of the default size that are reserved.
    pub hugepages_count: Option<u64>,
    /// Hardware threads that are online.
    pub online: CpuSet,
}

impl NodeFacts {
    /// Reads what the files below `root` (normally "/") say.
    pub fn read(root: &Path) -> Self {
        let hardware = Hardware::read(root);
        let inventory = inventory(root, &hardware);
        Self { hardware, settings: NodeSettings::read(root), inventory }
    }

    /// Reads again what may change without a boot.
    pub fn read_again(&self, root: &Path) -> Self {
        Self {
            hardware: self.hardware.clone(),
            settings: NodeSettings::read(root),
            inventory: inventory(root, &self.hardware),
        }
    }

    /// What changed during a run that took so long: see [`NodeFacts::changed_until`]. Nothing is read after a run shorter
    /// than [`FACTS_MAY_CHANGE_AFTER`].
    pub fn changed_during(&self, took: Duration, root: &Path) -> Option<String> {
        (took >= FACTS_MAY_CHANGE_AFTER).then(|| self.changed_until(&self.read_again(root))).flatten()
    }

    /// What differs in a later reading of the same node: "governor from performance to powersave". A fact that one of the
    /// readings does not have does not differ. `None` if nothing differs.
    pub fn changed_until(&self, later: &Self) -> Option<String> {
        let later = later.named();
        let differs = |(name, before): (&str, String)| {
            let after = later.get(name).filter(|after| **after != before)?;
            Some(format!("{name} from {before} to {after}"))
        };
        let changed: Vec<String> = self.named().into_iter().filter_map(differs).collect();
        (!changed.is_empty()).then(|| changed.join(", "))
    }

    /// What equal nodes have in common, beside what their class says, by name: see [`super::FACTS`].
    pub fn named(&self) -> BTreeMap<&str, String> {
        let NodeSettings { clocksource, governor, smt, transparent_hugepage, hugepages_count, .. } =
            &self.settings;
        let limits = self.settings.frequency_limits_hz.map(|limits| {
            let [low, high] = limits.map(|hz| hz as f64 / 1e9);
            format!("{low:.2} .. {high:.2} GHz")
        });
        let settings = [
            ("clocksource", clocksource.clone()),
            ("governor", governor.clone()),
            ("frequency_limits", limits),
            ("smt", smt.clone()),
            ("transparent_hugepage", transparent_hugepage.clone()),
            ("hugepages", hugepages_count.map(|count| count.to_string())),
        ];
        let settings = settings.into_iter().filter_map(|(name, value)| Some((name, value?)));
        settings.chain(self.inventory.iter().map(|(name, value)| (name, value.to_owned()))).collect()
    }
}

fn inventory(root: &Path, hardware: &Hardware) -> Inventory {
    let mut inventory = Inventory::read(root);
    if let Some(steps) = hardware.turbo_steps(root) {
        inventory.set("turbo_steps", steps.to_string());
    }
    inventory
}

impl Hardware {
    /// The turbo steps of this processor. `None` if it shows none, or if this process may not read them.
    pub fn turbo_steps(&self, root: &Path) -> Option<TurboSteps> {
        TurboSteps::read(root, self.cpu_vendor.as_deref()?, self.cpu_family?, self.cpu_model?)
    }

    /// See [`NodeFacts::read`].
    pub fn read(root: &Path) -> Self {
        // The first page of cpuinfo holds the first processor. Reading the whole file asks every core for its
        // frequency.
        let cpuinfo = text(root, "proc/cpuinfo").unwrap_or_default();
        let field = |names: &[&str]| names.iter().find_map(|name| cpuinfo_field(&cpuinfo, name));
        let number = |names: &[&str]| field(names).and_then(|v| cpuinfo_number(&v));
        let flags = field(&["flags"]).unwrap_or_default();
        let flag = |name: &str| flags.split_ascii_whitespace().any(|f| f == name);
        Self {
            cpu_vendor: field(&["vendor_id", "CPU implementer"]),
            cpu_model_name: field(&["model name"]),
            cpu_family: number(&["cpu family", "CPU architecture"]),
            cpu_model: number(&["model", "CPU part"]),
            cpu_stepping: number(&["stepping", "CPU revision"]),
            microcode: field(&["microcode"]),
            hypervisor: flag("hypervisor"),
            tsc_invariant: flag("constant_tsc") && flag("nonstop_tsc") || cfg!(target_arch = "aarch64"),
            memory_bytes: memory_total(&text(root, "proc/meminfo").unwrap_or_default()),
            kernel: text(root, "proc/sys/kernel/osrelease"),
            // The crystal comes from CPUID, not from a file, so a machine below another root has none.
            crystal: if root == Path::new("/") { Crystal::here() } else { Crystal::default() },
        }
    }
}

impl NodeSettings {
    /// See [`NodeFacts::read`].
    pub fn read(root: &Path) -> Self {
        let cpufreq = |name: &str| text(root, &format!("sys/devices/system/cpu/cpu0/cpufreq/{name}"));
        let khz = |name: &str| cpufreq(name)?.parse::<u64>().ok()?.checked_mul(1000);
        let governor = cpufreq("scaling_governor");
        // Without a governor there are no limits to look for.
        let limits = || Some([khz("scaling_min_freq")?, khz("scaling_max_freq")?]);
        let frequency_limits_hz = governor.as_ref().and_then(|_| limits());
        Self {
            clocksource: text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
            governor,
            frequency_limits_hz,
            smt: text(root, "sys/devices/system/cpu/smt/control"),
            transparent_hugepage: text(root, "sys/kernel/mm/transparent_hugepage/enabled")
                .and_then(|v| chosen(&v)),
            hugepages_count: text(root, "proc/sys/vm/nr_hugepages").and_then(|v| v.parse().ok()),
            online: text(root, "sys/devices/system/cpu/online")
                .and_then(|v| CpuSet::parse(&v))
                .unwrap_or_default(),
        }
    }
}

/// The current microcode revision, if the kernel shows it. It is the only part of [`Hardware`] that may change
/// within a boot.
pub fn microcode_now(root: &Path) -> Option<String> {
    text(root, "sys/devices/system/cpu/cpu0/microcode/version")
}

fn cpuinfo_field(cpuinfo: &str, name: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Parses a decimal number, or a hexadecimal one as on Arm.
fn cpuinfo_number(text: &str) -> Option<u32> {
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())
}

/// MemTotal of /proc/meminfo (bytes).
fn memory_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// "always [madvise] never" -> "madvise".
fn chosen(choices: &str) -> Option<String> {
    let (_, rest) = choices.split_once('[')?;
    rest.split_once(']').map(|(choice, _)| choice.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn a_node_is_read_from_its_own_files() {
        let root = TempDir::with_prefix("test-node-").unwrap();
        let root = root.path();
        let put = |path: &str, content: &str| {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), content).unwrap();
        };
        put(
            "proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Xeon\nstepping\t: 4\nmicrocode\t: 0x200005e\nflags\t\t: tsc constant_tsc nonstop_tsc\n\nprocessor\t: 1\n",
        );
        put("proc/meminfo", "MemTotal:       196608 kB\nMemFree: 1 kB\n");
        put("proc/sys/vm/nr_hugepages", "12\n");
        put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
        put("sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq", "1000000\n");
        put("sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "3700000\n");
        put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        put("sys/devices/system/cpu/online", "0-3,8\n");
        let facts = NodeFacts::read(root);
        assert_eq!(facts.hardware.cpu_family, Some(6));
        assert_eq!(facts.hardware.cpu_model, Some(85));
        assert_eq!(facts.hardware.microcode.as_deref(), Some("0x200005e"));
        assert!(facts.hardware.tsc_invariant && !facts.hardware.hypervisor);
        assert_eq!(facts.hardware.memory_bytes, Some(196_608 * 1024));
        assert_eq!(facts.settings.governor.as_deref(), Some("performance"));
        assert_eq!(facts.settings.frequency_limits_hz, Some([1_000_000_000, 3_700_000_000]));
        assert_eq!(facts.settings.transparent_hugepage.as_deref(), Some("madvise"));
        assert_eq!(facts.settings.hugepages_count, Some(12));
        assert_eq!(facts.settings.online.to_string(), "0-3,8");
        assert_eq!(facts.settings.smt, None);
        let named = facts.named();
        assert_eq!(named["frequency_limits"], "1.00 .. 3.70 GHz");
        assert_eq!((named["hugepages"].as_str(), named["hardware_threads"].as_str()), ("12", "5"));
        let mut later = facts.clone();
        assert_eq!(facts.changed_until(&later), None);
        (later.settings.governor, later.settings.clocksource) = (Some("powersave".to_owned()), None);
        later.settings.hugepages_count = Some(8);
        let changed = facts.changed_until(&later).unwrap();
        assert_eq!(changed, "governor from performance to powersave, hugepages from 12 to 8");
        later.inventory.set_changed(changed);
        assert!(!later.named().contains_key("changed"), "it is no fact");
        let known = |name: &&str| super::super::FACTS.iter().any(|(known, _)| known == name);
        assert!(named.keys().all(known) && !named.contains_key("smt"));
    }

    #[test]
    fn a_processor_of_arms_has_a_part_and_a_revision() {
        let root = TempDir::with_prefix("test-node-").unwrap();
        let root = root.path();
        std::fs::create_dir_all(root.join("proc")).unwrap();
        let cpuinfo = "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x4\nCPU part\t: 0xd0c\nCPU revision\t: 1\n";
        std::fs::write(root.join("proc/cpuinfo"), cpuinfo).unwrap();
        let hardware = Hardware::read(root);
        assert_eq!(hardware.cpu_vendor.as_deref(), Some("0x41"));
        let identity = (hardware.cpu_family, hardware.cpu_model, hardware.cpu_stepping);
        assert_eq!(identity, (Some(8), Some(0xd0c), Some(1)));
    }

    #[test]
    fn an_empty_machine_says_nothing() {
        let facts = NodeFacts::read(Path::new("/nonexistent"));
        assert_eq!(
            (facts.hardware.cpu_model_name, facts.hardware.memory_bytes, facts.hardware.kernel),
            (None, None, None)
        );
    }
}
