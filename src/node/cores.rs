//! Which hardware threads share a core, according to the Linux kernel's files. pmmpi needs this to open counters before
//! the program starts. The [`crate::node::Topology`] of a run comes from hwloc; it has the same, and more.

use super::cpu_set::CpuSet;
use super::kernel_files::text;
use std::collections::HashSet;
use std::path::Path;

/// A node's cores, each with its hardware threads that are online, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cores(Vec<Vec<u32>>);

impl Cores {
    /// The cores of the `online` hardware threads, from the files below `root` (normally "/"). Leaves out a thread
    /// whose siblings the kernel does not show.
    pub fn read(root: &Path, online: &CpuSet) -> Self {
        let mut left: Vec<u32> = online.numbers().collect();
        let mut cores = Vec::new();
        while let Some(first) = left.first().copied() {
            let siblings = siblings(root, first).filter(|siblings| siblings.contains(first));
            let (core, others) = left.iter().partition(|thread| match &siblings {
                Some(siblings) => siblings.contains(**thread),
                None => **thread == first,
            });
            left = others;
            cores.extend(siblings.is_some().then_some(core));
        }
        Self(cores)
    }

    /// Hardware thread number `at` (from 0) of each core that has such a hardware thread.
    pub fn threads(&self, at: usize) -> Vec<u32> {
        self.0.iter().filter_map(|core| core.get(at).copied()).collect()
    }
}

/// The first of the `online` hardware threads of each processor chip, ascending. A socket may have several chips, each
/// with memory of its own.
pub fn first_of_chips(root: &Path, online: &CpuSet) -> Vec<u32> {
    const NODES: &str = "sys/devices/system/node";
    let nodes =
        text(root, &format!("{NODES}/online")).and_then(|list| CpuSet::parse(&list)).unwrap_or_default();
    let threads = |node: u32| CpuSet::parse(&text(root, &format!("{NODES}/node{node}/cpulist"))?);
    let nodes: Vec<CpuSet> = nodes.numbers().filter_map(threads).collect();
    let place = |thread: &u32| {
        // Firmware may interleave the memory of all sockets: then they are one NUMA node.
        let socket = format!("sys/devices/system/cpu/cpu{thread}/topology/physical_package_id");
        (text(root, &socket), nodes.iter().position(|node| node.contains(*thread)))
    };
    let mut known = HashSet::new();
    online.numbers().filter(|thread| known.insert(place(thread))).collect()
}

/// The siblings of a thread, with the thread itself. Kernels before 5.3 have only the older file name
/// (Documentation/ABI/stable/sysfs-devices-system-cpu).
fn siblings(root: &Path, thread: u32) -> Option<CpuSet> {
    let list = |name| text(root, &format!("sys/devices/system/cpu/cpu{thread}/topology/{name}"));
    let list = list("core_cpus_list").or_else(|| list("thread_siblings_list"))?;
    CpuSet::parse(&list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tempfile::TempDir;

    /// A folder with these files; dropping it removes them.
    struct Root(TempDir);

    impl Root {
        fn new() -> Self {
            Self(TempDir::with_prefix("test-cores-").unwrap())
        }

        fn put(&self, thread: usize, name: &str, list: &str) {
            let folder = self.0.path().join(format!("sys/devices/system/cpu/cpu{thread}/topology"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(name), list).unwrap();
        }

        fn cores(&self, online: &str) -> Cores {
            Cores::read(self.0.path(), &CpuSet::parse(online).unwrap())
        }
    }

    #[test]
    fn a_chip_is_a_numa_node_of_a_socket() {
        let root = Root::new();
        let chips = |online: &str| first_of_chips(root.0.path(), &CpuSet::parse(online).unwrap());
        (0..8).for_each(|thread| root.put(thread, "physical_package_id", ["0\n", "1\n"][thread / 4]));
        assert_eq!(chips("0-7"), [0, 4], "the kernel has no NUMA");
        let nodes = root.0.path().join("sys/devices/system/node");
        let put = |node: usize, list: &str| {
            std::fs::create_dir_all(nodes.join(format!("node{node}"))).unwrap();
            std::fs::write(nodes.join(format!("node{node}/cpulist")), list).unwrap();
        };
        put(0, "0-7\n");
        std::fs::write(nodes.join("online"), "0\n").unwrap();
        assert_eq!(chips("0-7"), [0, 4], "interleaved");
        (0..4).for_each(|node| put(node, &format!("{}-{}\n", 2 * node, 2 * node + 1)));
        std::fs::write(nodes.join("online"), "0-3\n").unwrap();
        assert_eq!(chips("0-7"), [0, 2, 4, 6]);
        assert_eq!(chips("1,3,6-7"), [1, 3, 6]);
    }

    #[test]
    fn siblings_are_the_kernels() {
        let root = Root::new();
        // Two sockets of two cores: the second threads are numbered after all first ones.
        (0..8).for_each(|t| root.put(t, "thread_siblings_list", &format!("{},{}\n", t % 4, t % 4 + 4)));
        let cores = root.cores("0-7");
        assert_eq!((cores.threads(0), cores.threads(1)), (vec![0, 1, 2, 3], vec![4, 5, 6, 7]));
        // Thread 5 is offline, and the kernel no longer counts it among those of its core.
        root.put(1, "core_cpus_list", "1\n");
        let cores = root.cores("0-4,6-7");
        assert_eq!((cores.threads(0), cores.threads(1)), (vec![0, 1, 2, 3], vec![4, 6, 7]));
        // SMT is off.
        (0..4).for_each(|t| root.put(t, "core_cpus_list", &format!("{t}\n")));
        let cores = root.cores("0-3");
        assert_eq!((cores.threads(0), cores.threads(1)), (vec![0, 1, 2, 3], vec![]));
    }

    #[test]
    fn what_the_kernel_does_not_say_is_not_guessed() {
        let root = Root::new();
        assert_eq!(root.cores("0-3"), Cores::default());
        root.put(0, "core_cpus_list", "0,2\n");
        root.put(1, "core_cpus_list", "nonsense\n");
        root.put(3, "core_cpus_list", "0,2\n");
        assert_eq!(root.cores("0-3"), Cores(vec![vec![0, 2]]));
        root.put(1, "core_cpus_list", "0-4294967295\n");
        assert_eq!(root.cores("0-3"), Cores(vec![vec![0, 2], vec![1, 3]]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Whatever the files contain, no thread is in two cores, and no offline thread is in any.
        #[test]
        fn no_thread_is_in_two_cores(lists in prop::collection::vec("[0-7](-[0-9])?(,[0-9])?", 8)) {
            let root = Root::new();
            lists.iter().enumerate().for_each(|(thread, list)| root.put(thread, "core_cpus_list", list));
            let Cores(cores) = root.cores("0-5");
            let mut threads = cores.concat();
            threads.sort_unstable();
            prop_assert!(threads.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(threads.iter().all(|thread| *thread < 6));
        }
    }
}
