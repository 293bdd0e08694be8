//! Which hardware threads share a core, as the kernel has it: whoever opens counters must know that before the program
//! starts. A run's [`crate::node::Topology`] says the same afterwards, with all else that hwloc knows.

use super::cpu_set::CpuSet;
use super::kernel_files::text;
use std::path::Path;

/// A node's cores, each with its hardware threads that are online, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cores(Vec<Vec<u32>>);

impl Cores {
    /// Of the hardware threads that are `online`, from the files below `root` (normally "/"). A thread of which the
    /// kernel does not say who its siblings are is in no core.
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

    /// The first hardware thread of each core (0), or the second (1), ..., of those cores that have so many.
    pub fn threads(&self, at: usize) -> Vec<u32> {
        self.0.iter().filter_map(|core| core.get(at).copied()).collect()
    }
}

/// Itself included. The kernel before 5.3 has the older name alone
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
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A folder with such files, removed in the end.
    struct Root(std::path::PathBuf);

    impl Root {
        fn new() -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            Self(std::env::temp_dir().join(format!("test-cores-{}-{number}", std::process::id())))
        }

        fn put(&self, thread: usize, name: &str, list: &str) {
            let folder = self.0.join(format!("sys/devices/system/cpu/cpu{thread}/topology"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(name), list).unwrap();
        }

        fn cores(&self, online: &str) -> Cores {
            Cores::read(&self.0, &CpuSet::parse(online).unwrap())
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
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

        /// Whatever the files say, no thread is counted in two cores, and none that is offline.
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
