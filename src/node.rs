//! A node: which clock it has, what it is made of and how it is set up.
//!
//! Everything is read under a root path, so that tests bring their own /proc and /sys. A value that
//! cannot be read is `None`, never a guess.

use crate::clock::Crystal;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

/// Which clock a rank reads. Ranks share one only if all three agree: the boot (a clock starts with
/// it), the time namespace (its offset, time_namespaces(7)), and the host name (machines restored
/// from one memory snapshot share a boot id and no clock).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeKey {
    /// gethostname(2).
    pub hostname: String,
    /// /proc/sys/kernel/random/boot_id; empty where it cannot be read.
    pub boot_id: String,
    /// Inode of the calling process's time namespace; 0 where the kernel has none.
    pub time_namespace: u64,
}

/// Hardware threads by the kernel's numbers, as ranges with both ends included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSet(pub Vec<(u32, u32)>);

/// What a node's processor and kernel say of themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeFacts {
    /// What it is.
    pub hardware: Hardware,
    /// How it is set up.
    pub settings: Settings,
}

/// What a node is: constant from one boot to the next, but for microcode that is loaded late.
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
    /// True inside a virtual machine that says so.
    pub hypervisor: bool,
    /// True where the time stamp counter never changes its rate.
    pub tsc_invariant: bool,
    /// Memory that the kernel manages (bytes).
    pub memory_bytes: Option<u64>,
    /// uname -r.
    pub kernel: Option<String>,
    /// What some of its events count. Travels in [`crate::part::HostPart`], and is in run files from schema 4 on.
    #[serde(skip)]
    pub crystal: Crystal,
}

/// How a node is set up: anybody with the right to may change it between two runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Where the kernel takes its time from: tsc, hpet, kvm-clock, ...
    pub clocksource: Option<String>,
    /// Frequency governor of the first hardware thread.
    pub governor: Option<String>,
    /// Frequency limits set for it (Hz).
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

/// Where a node's hardware threads, memory and caches are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// The library that read it, with its version.
    pub source: String,
    /// By the kernel's number, ascending.
    pub threads: Vec<HwThread>,
    /// By the kernel's number, ascending.
    pub memories: Vec<NumaNode>,
    /// Data and unified caches, one row a level and size.
    pub caches: Vec<CacheLevel>,
}

/// One hardware thread, placed. Core, socket and cache numbers count from 0 within the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HwThread {
    /// The kernel's number.
    pub cpu: u32,
    /// The core that it shares with its siblings.
    pub core: u32,
    /// The socket (package).
    pub socket: u32,
    /// The NUMA node that is nearest, by the kernel's number.
    pub numa: u32,
    /// The last-level cache that it shares.
    pub last_level_cache: Option<u32>,
}

/// One NUMA node's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    /// The kernel's number.
    pub numa: u32,
    /// Its size (bytes).
    pub memory_bytes: u64,
}

/// The caches of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheLevel {
    /// 1, 2, 3, ...
    pub level: u32,
    /// Size of each (bytes).
    pub size_bytes: u64,
    /// How many the node has.
    pub count: u32,
}

impl NodeKey {
    /// The clock of the calling process, read once: neither a boot nor a process's time namespace changes.
    pub fn own() -> &'static Self {
        static OWN: OnceLock<NodeKey> = OnceLock::new();
        OWN.get_or_init(Self::read)
    }

    /// A short name of this clock's. That two clocks have one costs work, never truth.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    fn read() -> Self {
        let boot_id = text(Path::new("/"), "proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = std::fs::metadata("/proc/self/ns/time");
        let time_namespace = namespace.map(|m| std::os::unix::fs::MetadataExt::ino(&m)).unwrap_or(0);
        Self { hostname: hostname(), boot_id, time_namespace }
    }
}

fn hostname() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the buffer is valid for its length; POSIX host names are at most 255 bytes.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len()) } != 0;
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    if failed { String::from("unknown") } else { String::from_utf8_lossy(&name[..end]).into_owned() }
}

impl NodeFacts {
    /// Reads what the files below `root` (normally "/") say.
    pub fn read(root: &Path) -> Self {
        Self { hardware: Hardware::read(root), settings: Settings::read(root) }
    }
}

impl Hardware {
    /// See [`NodeFacts::read`].
    pub fn read(root: &Path) -> Self {
        // The first page of cpuinfo holds the first processor; the whole asks every core for its rate.
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
            // An instruction's answer, not a file's: the machine below another root has none.
            crystal: if root == Path::new("/") { Crystal::here() } else { Crystal::default() },
        }
    }
}

impl Settings {
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

/// The revision of the microcode that runs now, where the kernel shows it: what may change a
/// [`Hardware`] within a boot.
pub fn microcode_now(root: &Path) -> Option<String> {
    text(root, "sys/devices/system/cpu/cpu0/microcode/version")
}

impl CpuSet {
    /// From the kernel's list format, "0-3,8".
    pub fn parse(list: &str) -> Option<Self> {
        let range = |item: &str| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            Some((first.parse().ok()?, last.parse().ok()?))
        };
        let items = list.trim().split(',').filter(|item| !item.is_empty());
        items.map(range).collect::<Option<Vec<_>>>().map(Self)
    }

    /// True where it holds this one.
    pub fn contains(&self, number: u32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&number))
    }

    /// Each of them.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// The hardware threads that the calling thread may run on: sched_getaffinity(2).
    pub fn allowed() -> Self {
        const WORDS: usize = 1024; // 65,536 hardware threads
        let mut mask = [0u64; WORDS];
        // SAFETY: the system call writes at most the size that it is given and returns how much.
        let bytes = unsafe {
            libc::syscall(libc::SYS_sched_getaffinity, 0, std::mem::size_of_val(&mask), mask.as_mut_ptr())
        };
        let cpus = usize::try_from(bytes).unwrap_or(0) * 8;
        Self::from_numbers((0..cpus as u32).filter(|cpu| mask[*cpu as usize / 64] >> (cpu % 64) & 1 == 1))
    }

    /// From ascending numbers.
    pub fn from_numbers(numbers: impl Iterator<Item = u32>) -> Self {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        Self(ranges)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (first, last)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            if first == last { write!(f, "{comma}{first}")? } else { write!(f, "{comma}{first}-{last}")? }
        }
        Ok(())
    }
}

/// A small file of /proc or /sys, trimmed; `None` where it is empty. One open and one read: such a
/// file is made as it is read, so neither its size nor its end is asked for.
pub(crate) fn text(root: &Path, path: &str) -> Option<String> {
    const LARGEST_BYTES: usize = 4096;
    let mut bytes = [0u8; LARGEST_BYTES];
    let read = std::fs::File::open(root.join(path)).and_then(|mut file| file.read(&mut bytes)).ok()?;
    let text = String::from_utf8_lossy(&bytes[..read]);
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn cpuinfo_field(cpuinfo: &str, name: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Decimal, or hexadecimal as Arm's are.
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

    #[test]
    fn a_node_is_read_from_its_own_files() {
        let root = std::env::temp_dir().join(format!("test-node-{}", std::process::id()));
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
        let facts = NodeFacts::read(&root);
        std::fs::remove_dir_all(&root).unwrap();
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
    }

    #[test]
    fn a_processor_of_arms_has_a_part_and_a_revision() {
        let root = std::env::temp_dir().join(format!("test-node-arm-{}", std::process::id()));
        std::fs::create_dir_all(root.join("proc")).unwrap();
        let cpuinfo = "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x4\nCPU part\t: 0xd0c\nCPU revision\t: 1\n";
        std::fs::write(root.join("proc/cpuinfo"), cpuinfo).unwrap();
        let hardware = Hardware::read(&root);
        std::fs::remove_dir_all(&root).unwrap();
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

    #[test]
    fn cpu_sets_print_as_the_kernel_does() {
        assert_eq!(CpuSet::from_numbers([0, 1, 2, 5, 7, 8].into_iter()).to_string(), "0-2,5,7-8");
        assert_eq!(CpuSet::parse("x"), None);
        assert!(!CpuSet::allowed().0.is_empty());
    }
}
