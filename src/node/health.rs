//! What the Linux kernel counts when a node does not work as it should: throttling, corrected errors, links that go
//! down, memory from another place or of another kind than wanted. And how much a node sent, received and used.
//!
//! The counts need no PMU and no rights. On each node, one process reads them before and after the work. So a run has
//! the growth of each count during the run. Like [`super::facts`], this module reads everything under a root path.

use super::cpu_set::CpuSet;
use super::inventory::Inventory;
use super::kernel_files::{entries, long_text, number, text};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Names of counts with their meaning. A program that reads run files may find other names: those of a newer pmmpi.
pub const HEALTH_COUNTS: [(&str, &str); 16] = [
    ("core_throttles", "how often cores were too hot and ran slower (Intel)"),
    ("socket_throttles", "how often sockets were too hot and ran slower (Intel)"),
    ("socket_throttled_ms", "time in which sockets ran slower because of heat (ms; Intel)"),
    ("memory_errors_corrected", "memory errors that ECC corrected"),
    ("memory_errors_uncorrected", "memory errors that ECC could not correct"),
    (
        "huge_page_fallbacks",
        "how often a program should have got a transparent huge page, but the Linux kernel had none and gave small pages",
    ),
    ("numa_spills", "how often a NUMA node had no memory left, so that another NUMA node gave the memory"),
    ("pages_swapped", "pages of memory that the Linux kernel wrote to swap space or read from it"),
    ("link_downs", "how often a network link went down"),
    ("link_errors", "errors on network links: symbol, CRC and receive errors, and recoveries of the link"),
    (
        "network_waits",
        "time in which ports had data to send but the network did not accept it (ticks of the port; InfiniBand)",
    ),
    (
        "network_drops",
        "packets that were dropped because the port was down or congested, or because the node had no room for them",
    ),
    ("pcie_errors_corrected", "corrected PCIe errors of network adapters and GPUs"),
    ("gpu_throttled_ms", "time in which GPUs ran slower because of heat or power (ms; NVIDIA)"),
    ("gpu_memory_errors_corrected", "GPU memory errors that ECC corrected (NVIDIA)"),
    ("gpu_memory_errors_uncorrected", "GPU memory errors that ECC could not correct (NVIDIA)"),
];

/// Names of other counts, with their meaning: how much a node sent, received or used says nothing about its health.
pub const USAGE_COUNTS: [(&str, &str); 3] = [
    (
        "huge_page_bytes",
        "bytes of memory that programs of the node got as transparent huge pages, including pages that \
         the Linux kernel joined from small pages, but not reserved huge pages (hugetlbfs)",
    ),
    (
        "network_bytes_sent",
        "bytes that ports of physical network adapters sent, for all programs of the node",
    ),
    (
        "network_bytes_received",
        "bytes that ports of physical network adapters received, for all programs of the node",
    ),
];

/// The name of a count. A known name takes no memory of its own, because each node of a large run has the same names.
pub type CountName = Cow<'static, str>;

/// See [`CountName`].
pub fn count_name(name: &str) -> CountName {
    let mut known = HEALTH_COUNTS.iter().chain(&USAGE_COUNTS).map(|(known, _)| *known);
    known.find(|known| *known == name).map_or_else(|| name.to_owned().into(), Cow::from)
}

/// One count of a node in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthCount {
    /// See [`HEALTH_COUNTS`] and [`USAGE_COUNTS`].
    pub name: CountName,
    /// How many places of the node have this count: cores, sockets, memory controllers, ports, devices.
    pub places: u32,
    /// The sum over the places before the work, since the boot or since a driver was loaded.
    pub before: u64,
    /// What was added until the work was over; `None` if it was not read then.
    pub added: Option<u64>,
    /// Where it was added, and how much, most first; at most 8 places.
    pub added_at: Vec<(String, u64)>,
}

/// What was read of a node around the work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// What was counted during the work.
    pub counts: Vec<HealthCount>,
    /// Facts that take long to read: they are read beside the work.
    pub inventory: Inventory,
}

/// The GPUs of a node at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuReading {
    /// What they are; `None` if there are none.
    pub gpus: Option<String>,
    /// What they count.
    pub counts: HealthReading,
}

/// All counts of a node at one moment, by name and place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthReading(BTreeMap<String, BTreeMap<String, u64>>);

/// The hardware threads of a core; older than `core_cpus_list`, which has the same.
const SIBLINGS: &str = "topology/thread_siblings_list";
/// See [`HealthCount::added_at`].
const MOST_PLACES: usize = 8;

impl HealthReading {
    /// Reads the counts below `root` (normally "/"). What cannot be read is absent.
    pub fn read(root: &Path) -> Self {
        let mut reading = Self::default();
        reading.read_throttles(root);
        reading.read_memory_errors(root);
        reading.read_pages(root);
        reading.read_links(root);
        reading.read_pcie(root);
        reading
    }

    /// Sets a count. The count of a place that is already known becomes the larger of both.
    pub fn set(&mut self, name: &str, place: impl Into<String>, count: u64) {
        let places = self.0.entry(name.to_owned()).or_default();
        let known = places.entry(place.into()).or_default();
        *known = count.max(*known);
    }

    /// Adds the counts of another reading, for example of the GPUs.
    pub fn join(&mut self, other: Self) {
        for (name, places) in other.0 {
            places.into_iter().for_each(|(place, count)| self.set(&name, place, count));
        }
    }

    /// The counts, with what was added until `after` was read. Only places that both have count: a driver may have
    /// been loaded in between. If a count became smaller, it was reset; its growth is then its new value.
    pub fn until(&self, after: Option<&Self>) -> Vec<HealthCount> {
        let of = |(name, places): (&String, &BTreeMap<String, u64>)| {
            let later = after.and_then(|after| after.0.get(name));
            let mut added_at: Vec<(String, u64)> = Vec::new();
            for (place, before) in places {
                let now = later.and_then(|later| later.get(place)).copied();
                let added = now.map_or(0, |now| now.checked_sub(*before).unwrap_or(now));
                added_at.extend((added > 0).then(|| (place.clone(), added)));
            }
            let added =
                added_at.iter().map(|(_, added)| added).fold(0u64, |sum, one| sum.saturating_add(*one));
            added_at.sort_by_key(|(_, added)| std::cmp::Reverse(*added));
            added_at.truncate(MOST_PLACES);
            HealthCount {
                name: count_name(name),
                places: places.len() as u32,
                before: places.values().fold(0u64, |sum, one| sum.saturating_add(*one)),
                added: later.map(|_| added),
                added_at,
            }
        };
        self.0.iter().map(of).collect()
    }

    /// Intel: drivers/thermal/intel/therm_throt.c. Every hardware thread of a core has the core's count, and every
    /// thread of a socket has the socket's.
    fn read_throttles(&mut self, root: &Path) {
        let of_thread =
            |thread: u32, name: &str| number(root, &format!("sys/devices/system/cpu/cpu{thread}/{name}"));
        if of_thread(0, "thermal_throttle/core_throttle_count").is_none() {
            return;
        }
        let socket = |thread: u32| of_thread(thread, "topology/physical_package_id").unwrap_or(0);
        let mut siblings = BTreeSet::new();
        for thread in cpus(root, "sys/devices/system/cpu/online").numbers() {
            if !siblings.insert(thread) {
                continue; // a sibling had the count of this core
            }
            siblings.extend(cpus(root, &format!("sys/devices/system/cpu/cpu{thread}/{SIBLINGS}")).numbers());
            if let Some(count) = of_thread(thread, "thermal_throttle/core_throttle_count") {
                self.set("core_throttles", format!("core of cpu {thread}"), count);
            }
        }
        // Every socket has a NUMA node, so the first threads of the NUMA nodes are in all sockets.
        for thread in first_threads(root).unwrap_or_else(|| vec![0]) {
            let place = format!("socket {}", socket(thread));
            let count = |name: &str| of_thread(thread, &format!("thermal_throttle/package_throttle_{name}"));
            if let Some(count) = count("count") {
                self.set("socket_throttles", place.clone(), count);
            }
            if let Some(time) = count("total_time_ms") {
                self.set("socket_throttled_ms", place, time);
            }
        }
    }

    /// Documentation/ABI/testing/sysfs-devices-edac.
    fn read_memory_errors(&mut self, root: &Path) {
        const CONTROLLERS: &str = "sys/devices/system/edac/mc";
        for controller in entries(root, CONTROLLERS).into_iter().filter(|name| name.starts_with("mc")) {
            let count = |name: &str| number(root, &format!("{CONTROLLERS}/{controller}/{name}"));
            if let Some(count) = count("ce_count") {
                self.set("memory_errors_corrected", controller.clone(), count);
            }
            if let Some(count) = count("ue_count") {
                self.set("memory_errors_uncorrected", controller.clone(), count);
            }
        }
    }

    /// Documentation/admin-guide/mm/transhuge.rst, mm/vmstat.c and Documentation/admin-guide/numastat.rst.
    fn read_pages(&mut self, root: &Path) {
        const NODE: &str = "node";
        let counts = long_text(root, "proc/vmstat").unwrap_or_default();
        let count = |name: &&str| counts.lines().find_map(|line| line.strip_prefix(*name)?.strip_prefix(' '));
        let sum = |names: &[&str]| {
            let counts = names.iter().filter_map(|name| count(name)?.trim().parse().ok());
            counts.reduce(u64::saturating_add)
        };
        let page_bytes = number(root, "sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
        if let Some((pages, bytes)) = sum(&["thp_fault_alloc", "thp_collapse_alloc"]).zip(page_bytes) {
            self.set("huge_page_bytes", NODE, pages.saturating_mul(bytes));
        }
        if let Some(count) = sum(&["thp_fault_fallback"]) {
            self.set("huge_page_fallbacks", NODE, count);
        }
        if let Some(count) = sum(&["pswpin", "pswpout"]) {
            self.set("pages_swapped", NODE, count);
        }
        const NODES: &str = "sys/devices/system/node";
        for node in cpus(root, &format!("{NODES}/online")).numbers() {
            let counts = text(root, &format!("{NODES}/node{node}/numastat")).unwrap_or_default();
            let spills = counts.lines().find_map(|line| line.strip_prefix("numa_foreign "));
            if let Some(count) = spills.and_then(|count| count.trim().parse().ok()) {
                self.set("numa_spills", format!("NUMA node {node}"), count);
            }
        }
    }

    /// Documentation/ABI/stable/sysfs-class-infiniband and testing/sysfs-class-net.
    fn read_links(&mut self, root: &Path) {
        for port in super::links::ports(root) {
            let sum = |files: &[&str]| {
                let counts = files.iter().filter_map(|file| number(root, &format!("{}/{file}", port.path)));
                counts.reduce(u64::saturating_add)
            };
            let (downs, errors): (&[&str], &[&str]) = match port.is_infiniband {
                true => (
                    &["counters/link_downed"],
                    &["counters/symbol_error", "counters/link_error_recovery", "counters/port_rcv_errors"],
                ),
                false => {
                    (&["carrier_down_count"], &["statistics/rx_crc_errors", "statistics/rx_frame_errors"])
                }
            };
            if let Some(count) = sum(downs) {
                self.set("link_downs", port.name.clone(), count);
            }
            if let Some(count) = sum(errors) {
                self.set("link_errors", port.name.clone(), count);
            }
            self.read_traffic(&port, sum);
        }
    }

    /// Documentation/ABI/stable/sysfs-class-infiniband, drivers/infiniband/hw/mlx5/counters.c and
    /// Documentation/ABI/testing/sysfs-class-net-statistics. For RoCE, a port of an InfiniBand device counts remote memory
    /// access, and the network device all other traffic.
    fn read_traffic(&mut self, port: &super::links::Port, sum: impl Fn(&[&str]) -> Option<u64>) {
        const WORD_BYTES: u64 = 4;
        let (sent, received, drops, unit): (&str, &str, &[&str], u64) = match port.is_infiniband {
            true => (
                "counters/port_xmit_data",
                "counters/port_rcv_data",
                &["counters/port_xmit_discards", "hw_counters/out_of_buffer"],
                WORD_BYTES,
            ),
            false => (
                "statistics/tx_bytes",
                "statistics/rx_bytes",
                &["statistics/rx_missed_errors", "statistics/rx_fifo_errors"],
                1,
            ),
        };
        let waits = sum(&["counters/port_xmit_wait"]).filter(|_| port.is_infiniband);
        let counts = [
            ("network_bytes_sent", sum(&[sent]).map(|count| count.saturating_mul(unit))),
            ("network_bytes_received", sum(&[received]).map(|count| count.saturating_mul(unit))),
            ("network_drops", sum(drops)),
            ("network_waits", waits),
        ];
        for (name, count) in counts {
            if let Some(count) = count {
                self.set(name, port.name.clone(), count);
            }
        }
    }

    /// Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats.
    fn read_pcie(&mut self, root: &Path) {
        for device in super::links::pcie_devices(root) {
            let statistics = text(root, &format!("{}/aer_dev_correctable", device.path));
            let total = statistics.as_deref().and_then(|text| {
                let line = text.lines().find_map(|line| line.strip_prefix("TOTAL_ERR_COR "))?;
                line.trim().parse().ok()
            });
            if let Some(total) = total {
                self.set("pcie_errors_corrected", device.name, total);
            }
        }
    }
}

fn cpus(root: &Path, file: &str) -> CpuSet {
    text(root, file).and_then(|list| CpuSet::parse(&list)).unwrap_or_default()
}

/// The first hardware thread of each NUMA node that has some.
fn first_threads(root: &Path) -> Option<Vec<u32>> {
    const NODES: &str = "sys/devices/system/node";
    let nodes = CpuSet::parse(&text(root, &format!("{NODES}/online"))?)?;
    let first = |node: u32| cpus(root, &format!("{NODES}/node{node}/cpulist")).numbers().next();
    Some(nodes.numbers().filter_map(first).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn put(root: &TempDir, files: &[(&str, &str)]) {
        for (path, content) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }

    /// Two sockets with two cores of two threads; threads 0 and 4 are siblings, and so on.
    fn machine() -> TempDir {
        let root = TempDir::with_prefix("test-health-").unwrap();
        put(
            &root,
            &[
                ("sys/devices/system/cpu/online", "0-7\n"),
                ("sys/devices/system/node/online", "0-1\n"),
                ("sys/devices/system/node/node0/cpulist", "0-1,4-5\n"),
                ("sys/devices/system/node/node1/cpulist", "2-3,6-7\n"),
                ("sys/devices/system/edac/mc/mc0/ce_count", "3\n"),
                ("sys/devices/system/edac/mc/mc0/ue_count", "0\n"),
                ("sys/devices/system/edac/mc/mc1/ce_count", "5\n"),
                ("sys/devices/system/edac/mc/mc1/ue_count", "0\n"),
                ("sys/devices/system/edac/mc/power/control", "auto\n"),
                ("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "1\n"),
                ("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "7\n"),
                ("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors", "2\n"),
                (
                    "sys/class/infiniband/mlx5_0/device/aer_dev_correctable",
                    "RxErr 4\nBadTLP 0\nTOTAL_ERR_COR 4\n",
                ),
                ("sys/class/net/eno1/device/uevent", "\n"),
                ("sys/class/net/eno1/carrier_down_count", "2\n"),
                ("sys/class/net/eno1/statistics/tx_bytes", "1000\n"),
                ("sys/class/net/eno1/statistics/rx_missed_errors", "5\n"),
                ("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "100\n"),
                ("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait", "10\n"),
                ("sys/class/net/veth7/carrier_down_count", "9\n"),
                ("proc/vmstat", "pswpin 2\npswpout 3\nthp_fault_alloc 100\nthp_fault_fallback 4\n"),
                ("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n"),
                ("sys/devices/system/node/node1/numastat", "numa_hit 9\nnuma_miss 0\nnuma_foreign 7\n"),
            ],
        );
        for thread in 0..8 {
            let of = |name: &str| format!("sys/devices/system/cpu/cpu{thread}/{name}");
            let socket = thread % 4 / 2;
            put(
                &root,
                &[
                    (&of("topology/physical_package_id"), &socket.to_string()),
                    (&of(SIBLINGS), &format!("{},{}\n", thread % 4, thread % 4 + 4)),
                    (&of("thermal_throttle/core_throttle_count"), "0\n"),
                    (&of("thermal_throttle/package_throttle_count"), "10\n"),
                    (&of("thermal_throttle/package_throttle_total_time_ms"), "100\n"),
                ],
            );
        }
        root
    }

    fn of<'a>(counts: &'a [HealthCount], name: &str) -> &'a HealthCount {
        counts.iter().find(|count| count.name == name).unwrap()
    }

    #[test]
    fn what_was_added_has_a_place() {
        let root = machine();
        let before = HealthReading::read(root.path());
        // Core 1 of socket 0: both of its threads show the core's count.
        for thread in [1, 5] {
            let file = format!("sys/devices/system/cpu/cpu{thread}/thermal_throttle/core_throttle_count");
            put(&root, &[(&file, "40\n")]);
        }
        for thread in [2, 3, 6, 7] {
            let of = |name: &str| format!("sys/devices/system/cpu/cpu{thread}/thermal_throttle/{name}");
            put(
                &root,
                &[(&of("package_throttle_count"), "224\n"), (&of("package_throttle_total_time_ms"), "950\n")],
            );
        }
        put(
            &root,
            &[
                ("sys/devices/system/edac/mc/mc1/ce_count", "1005\n"),
                ("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "8\n"),
                ("sys/class/net/veth7/carrier_down_count", "99\n"),
                ("sys/class/net/veth7/statistics/tx_bytes", "99\n"),
                ("sys/class/net/eno1/statistics/tx_bytes", "1700\n"),
                (
                    "proc/vmstat",
                    "pswpin 3\npswpout 5\nthp_fault_alloc 110\nthp_fault_fallback 6\n\
                     thp_fault_fallback_charge 99\nthp_collapse_alloc 1\n",
                ),
                ("sys/devices/system/node/node1/numastat", "numa_hit 9\nnuma_miss 1\nnuma_foreign 47\n"),
                ("sys/class/net/eno1/statistics/rx_missed_errors", "5\n"),
                ("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "350\n"),
                ("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait", "60\n"),
            ],
        );
        let counts = before.until(Some(&HealthReading::read(root.path())));
        let added = |name: &str| (of(&counts, name).added, of(&counts, name).added_at.clone());
        let at = |place: &str, count: u64| (Some(count), vec![(place.to_owned(), count)]);
        assert_eq!(added("core_throttles"), at("core of cpu 1", 40));
        assert_eq!(added("socket_throttles"), at("socket 1", 214));
        assert_eq!(added("socket_throttled_ms"), at("socket 1", 850));
        assert_eq!(added("memory_errors_corrected"), at("mc1", 1000));
        assert_eq!(added("memory_errors_uncorrected"), (Some(0), vec![]));
        assert_eq!(added("huge_page_bytes"), at("node", 11 * 2_097_152));
        assert_eq!(added("huge_page_fallbacks"), at("node", 2));
        assert_eq!(added("pages_swapped"), at("node", 3));
        assert_eq!(added("numa_spills"), at("NUMA node 1", 40));
        assert_eq!(added("link_errors"), at("mlx5_0 port 1", 1));
        assert_eq!(added("link_downs"), (Some(0), vec![]));
        // 250 words of 4 bytes.
        let sent = [("mlx5_0 port 1".to_owned(), 1000), ("eno1".to_owned(), 700)];
        assert_eq!(added("network_bytes_sent"), (Some(1700), sent.to_vec()));
        assert_eq!(added("network_waits"), at("mlx5_0 port 1", 50));
        assert_eq!(added("network_drops"), (Some(0), vec![]));
        assert_eq!((of(&counts, "memory_errors_corrected").before, of(&counts, "link_downs").before), (8, 3));
        assert_eq!(of(&counts, "pcie_errors_corrected").before, 4);
        assert_eq!(of(&counts, "socket_throttles").places, 2);
        let mut known = HEALTH_COUNTS.iter().chain(&USAGE_COUNTS).map(|(name, _)| *name);
        assert!(
            counts.iter().all(|count| known.clone().any(|name| name == count.name)),
            "{:?}",
            known.next()
        );
    }

    #[test]
    fn a_count_that_was_reset_begins_at_zero() {
        let (mut before, mut after) = (HealthReading::default(), HealthReading::default());
        before.set("link_downs", "eno1", 9);
        after.set("link_downs", "eno1", 2);
        after.set("link_downs", "eno2", 50);
        let counts = before.until(Some(&after));
        assert_eq!((counts[0].before, counts[0].added), (9, Some(2)), "eno2 came later");
        assert_eq!(before.until(None)[0].added, None);
        assert_eq!(before.until(Some(&HealthReading::default()))[0].added, None);
    }

    #[test]
    fn a_machine_without_such_files_has_no_counts() {
        assert!(HealthReading::read(Path::new("/nonexistent")).until(None).is_empty());
    }
}
