//! The size of arrays that are much larger than the caches, and whether enough memory is free.

use super::controllers::socket;
use pmmpi::node::CpuSet;
use pmmpi_kernels::Caches;
use std::fs;
use std::path::{Path, PathBuf};

/// The size of each of the three arrays, and of the caches that determine it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArraySize {
    /// Sum of the hardware thread's caches from the second level on.
    pub cache_bytes: u64,
    pub array_bytes: u64,
}

/// Size of an array as a multiple of the caches. STREAM's run rules (McCalpin) ask for at least four; pmmpi takes twice
/// that if memory allows.
const LEAST: u64 = 4;
const ENOUGH: u64 = 8;
/// The smallest array: with less, the counters' own noise matters.
const SMALLEST: u64 = 64 << 20;
pub const ARRAYS: u64 = 3;

impl ArraySize {
    /// Finds the size of arrays that a thread on hardware thread `cpu` touches first, on the machine whose files
    /// are below `root`. The error says what is missing.
    pub fn find(root: &Path, cpu: u32) -> Result<Self, String> {
        let cache_bytes =
            caches(root, cpu).ok_or("pmmpi cannot read the sizes of this processor's caches in sysfs")?;
        let free =
            free_bytes(root, cpu).ok_or("pmmpi cannot read the amount of free memory in /proc/meminfo")?;
        let array = |times: u64| (times * cache_bytes).max(SMALLEST);
        // Other programs need memory, too, and use the page cache.
        let fits = |array: &u64| array.saturating_mul(ARRAYS) <= free / 2;
        match [ENOUGH, LEAST].map(array).into_iter().find(fits) {
            Some(array_bytes) => Ok(Self { cache_bytes, array_bytes }),
            None => Err(format!(
                "too little memory: three arrays, each at least {LEAST} times as large as the caches ({}), \
                 need more than half of the free memory ({})",
                mebibytes(cache_bytes),
                mebibytes(free)
            )),
        }
    }
}

pub fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

fn text(path: PathBuf) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The data caches of hardware thread `cpu`, by level; 0 for those that sysfs does not show.
pub fn caches_of(root: &Path, cpu: u32) -> Caches {
    let size =
        |level| data_caches(root, cpu).into_iter().find(|(of, _)| *of == level).map_or(0, |(_, bytes)| bytes);
    Caches { l1_bytes: size(1), l2_bytes: size(2), l3_bytes: size(3) }
}

/// The sum of the data caches from the second level on. It is an upper limit, because a line may be in several of them.
fn caches(root: &Path, cpu: u32) -> Option<u64> {
    let large = data_caches(root, cpu).into_iter().filter(|(level, _)| *level >= 2);
    Some(large.map(|(_, bytes)| bytes).sum()).filter(|bytes| *bytes > 0)
}

/// Level and size (bytes) of each cache of a hardware thread that holds data.
fn data_caches(root: &Path, cpu: u32) -> Vec<(u32, u64)> {
    let folder = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cache"));
    let indices = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let cache = |index: PathBuf| {
        let level: u32 = text(index.join("level"))?.parse().ok()?;
        let holds_data = text(index.join("type"))? != "Instruction";
        Some((level, holds_data.then(|| cache_size(&text(index.join("size"))?))??))
    };
    // Ignore impossible sizes.
    indices.filter_map(cache).filter(|(_, bytes)| *bytes < 1 << 40).collect()
}

/// A NUMA node of another socket that holds some of these bytes: because of the process's memory policy, or because
/// the near node filled up meanwhile.
pub fn elsewhere(root: &Path, cpu: u32, start: *const u8, bytes: u64) -> Option<u32> {
    const SAMPLES: u64 = 96;
    let own = socket(root, cpu)?;
    let sample = |at| start.wrapping_add(usize::try_from(bytes / SAMPLES * at).unwrap_or(0));
    let is_anothers = |node: &u32| {
        let cpus = text(root.join(format!("sys/devices/system/node/node{node}/cpulist")));
        let first = cpus.and_then(|cpus| CpuSet::parse(&cpus)?.numbers().next());
        first.and_then(|cpu| socket(root, cpu)).is_some_and(|socket| socket != own)
    };
    (0..SAMPLES).map(sample).filter_map(node_of).find(is_anothers)
}

/// The NUMA node of the page at an address: get_mempolicy(2). `None` if the call fails.
fn node_of(address: *const u8) -> Option<u32> {
    const MPOL_F_NODE: libc::c_ulong = 1;
    const MPOL_F_ADDR: libc::c_ulong = 2;
    let mut node: libc::c_int = -1;
    // SAFETY: the kernel writes an int to a live local; it does not access the memory at the address.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &mut node,
            std::ptr::null_mut::<libc::c_ulong>(),
            0 as libc::c_ulong,
            address,
            MPOL_F_NODE | MPOL_F_ADDR,
        )
    } != 0;
    u32::try_from(node).ok().filter(|_| !failed)
}

/// Parses the size of a cache, "32768K" or "2M", to bytes.
pub fn cache_size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// The memory that pmmpi can use without disturbing other programs: the minimum over the system, the nearest NUMA node
/// and the control groups.
pub fn free_bytes(root: &Path, cpu: u32) -> Option<u64> {
    let system = kib(&text(root.join("proc/meminfo"))?, "MemAvailable:")?;
    [Some(system), near(root, cpu), of_groups(root)].into_iter().flatten().min()
}

fn kib(meminfo: &str, key: &str) -> Option<u64> {
    let (_, rest) = meminfo.split_once(key)?;
    rest.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Free memory of the NUMA node of this hardware thread. More memory would come from another node, whose controllers
/// pmmpi does not read.
fn near(root: &Path, cpu: u32) -> Option<u64> {
    let nodes = CpuSet::parse(&text(root.join("sys/devices/system/node/online"))?)?;
    let mut numbers = nodes.numbers();
    let [_, _] = [numbers.next()?, numbers.next()?];
    let own = |node: &u32| {
        let cpus = text(root.join(format!("sys/devices/system/node/node{node}/cpulist")));
        cpus.and_then(|cpus| CpuSet::parse(&cpus)).is_some_and(|cpus| cpus.contains(cpu))
    };
    let node = nodes.numbers().take(4096).find(own)?;
    kib(&text(root.join(format!("sys/devices/system/node/node{node}/meminfo")))?, "MemFree:")
}

/// What the limits of this process's control groups leave: a batch system kills a job that exceeds them.
fn of_groups(root: &Path) -> Option<u64> {
    limits_of_groups(root).into_iter().map(|(limit, used)| limit.saturating_sub(used)).min()
}

/// The smallest limit of this process's control groups on memory; `None` if there is none.
pub fn limit_bytes(root: &Path) -> Option<u64> {
    limits_of_groups(root).into_iter().map(|(limit, _)| limit).min()
}

/// The limits of this process's control groups on memory, and the amounts in use (bytes).
fn limits_of_groups(root: &Path) -> Vec<(u64, u64)> {
    let groups = text(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut limits = Vec::new();
    for line in groups.lines() {
        let [_, controllers, path] = line.splitn(3, ':').collect::<Vec<_>>()[..] else { continue };
        let (mount, limit, used) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max", "memory.current"),
            "memory" => ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
            _ => continue,
        };
        // A limit applies to all groups below it, so check each ancestor. Inside a container, the path itself may not
        // exist.
        for path in Path::new(path.trim_start_matches('/')).ancestors() {
            let folder = root.join(mount).join(path);
            let number = |name: &str| text(folder.join(name))?.parse::<u64>().ok();
            if let (Some(limit), Some(used)) = (number(limit), number(used)) {
                limits.push((limit, used));
            }
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::super::tests::Root;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn machine(l2: &str, l3: &str, free_kib: u64) -> Root {
        let root = Root::new();
        root.caches(
            0,
            &[(1, "Data", "32K"), (1, "Instruction", "32K"), (2, "Unified", l2), (3, "Unified", l3)],
        );
        root.put("proc/meminfo", &format!("MemTotal: 1 kB\nMemFree: 7 kB\nMemAvailable:   {free_kib} kB\n"));
        root
    }

    fn find(root: &Root) -> Result<ArraySize, String> {
        ArraySize::find(root.path(), 0)
    }

    #[test]
    fn caches_have_the_sizes_of_sysfs() {
        let milan = machine("512K", "32768K", 1);
        let expected = Caches { l1_bytes: 32 << 10, l2_bytes: 512 << 10, l3_bytes: 32 * MIB };
        assert_eq!(caches_of(milan.path(), 0), expected);
        assert_eq!(caches_of(milan.path(), 1), Caches::default());
    }

    #[test]
    fn arrays_are_several_times_the_caches() {
        let milan = machine("512K", "32768K", 64 << 20);
        assert_eq!(find(&milan), Ok(ArraySize { cache_bytes: 65 * MIB / 2, array_bytes: 260 * MIB }));
        // 3D V-Cache: one core reaches only a part of the 1,152 MiB.
        let genoa_x = machine("1024K", "98304K", 64 << 20);
        assert_eq!(find(&genoa_x).unwrap().array_bytes, 8 * 97 * MIB);
        // A last-level cache of more than 1 GiB, with much memory, less, and too little.
        for (free, array) in [(128 << 20, Some(8)), (40 << 20, Some(4)), (20 << 20, None)] {
            let found = find(&machine("2048K", "1152M", free));
            match array {
                Some(times) => assert_eq!(found.unwrap().array_bytes, times * 1154 * MIB),
                None => {
                    let why = found.unwrap_err();
                    assert!(why.contains("1154 MiB") && why.contains("20480 MiB"), "{why}");
                }
            }
        }
        // Small caches still give the smallest array.
        assert_eq!(find(&machine("256K", "1M", 8 << 20)).unwrap().array_bytes, SMALLEST);
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        let nothing = Root::new();
        assert!(find(&nothing).unwrap_err().contains("caches"));
        nothing
            .caches(0, &[(2, "Unified", "many"), (3, "Unified", "18446744073709551615G"), (4, "Data", "")]);
        assert!(find(&nothing).unwrap_err().contains("caches"));
        nothing.caches(0, &[(2, "Unified", "1024K")]);
        assert!(find(&nothing).unwrap_err().contains("/proc/meminfo"));
    }

    #[test]
    fn memory_that_lies_at_another_socket_is_seen() {
        let bytes = vec![1u8; 1 << 20];
        let Some(node) = node_of(bytes.as_ptr()) else { return };
        let root = Root::sockets(&[&[0], &[1]]);
        let found = || elsewhere(root.path(), 0, bytes.as_ptr(), 1 << 20);
        assert_eq!(found(), None);
        let cpus = format!("sys/devices/system/node/node{node}/cpulist");
        root.put(&cpus, "1\n");
        assert_eq!(found(), Some(node));
        root.put(&cpus, "0\n");
        assert_eq!(found(), None);
        // A node without hardware threads belongs to no other socket.
        root.put(&cpus, "\n");
        assert_eq!(found(), None);
        assert_eq!(node_of(std::ptr::null()), None);
    }

    #[test]
    fn memory_is_that_of_the_nearest_node_and_within_the_jobs_limit() {
        let root = machine("512K", "32768K", 64 << 20);
        root.put("sys/devices/system/node/online", "0-1\n");
        root.put("sys/devices/system/node/node0/cpulist", "8-15\n");
        root.put("sys/devices/system/node/node0/meminfo", "Node 0 MemFree: 0 kB\n");
        root.put("sys/devices/system/node/node1/cpulist", "0-7\n");
        root.put(
            "sys/devices/system/node/node1/meminfo",
            "Node 1 MemTotal: 9 kB\nNode 1 MemFree:    1048576 kB\n",
        );
        assert_eq!(find(&root).unwrap().array_bytes, 130 * MIB);
        for (cgroup, limit, used) in [
            ("0::/job/step", "sys/fs/cgroup/job/memory.max", "sys/fs/cgroup/job/memory.current"),
            (
                "4:memory:/slurm",
                "sys/fs/cgroup/memory/slurm/memory.limit_in_bytes",
                "sys/fs/cgroup/memory/slurm/memory.usage_in_bytes",
            ),
        ] {
            let root = machine("512K", "32768K", 64 << 20);
            root.put("proc/self/cgroup", cgroup);
            root.put(limit, &(2000 * MIB).to_string());
            root.put(used, &(1500 * MIB).to_string());
            assert!(find(&root).unwrap_err().contains("of the free memory (500 MiB)"), "{cgroup}");
            root.put(limit, "max\n");
            assert!(find(&root).is_ok(), "{cgroup}");
        }
    }
}
