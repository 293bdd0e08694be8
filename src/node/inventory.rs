//! The parts of a node that show whether hardware is missing or works below its rating: memory modules, links, power
//! limits, GPUs. And the settings of the Linux kernel.
//!
//! A value has no names of devices, serial numbers or addresses, so that equal nodes have equal values.

use super::cpu_set::CpuSet;
use super::equal_values::counted;
use super::kernel_files::{entries, number, text};
use super::links::{PcieDevice, pcie_devices, ports};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The name of the entry that says which facts changed. It is no fact itself: nodes are not compared by it.
const CHANGED: &str = "changed";

/// Facts by name: see [`super::FACTS`]. What cannot be read is absent; hardware that a node does not have is "none".
/// Nodes of a cluster are alike, so their inventories share memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Inventory(Arc<BTreeMap<String, String>>);

impl Serialize for Inventory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        BTreeMap::serialize(&self.0, serializer)
    }
}

impl<'a> Deserialize<'a> for Inventory {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(|facts| Self(Arc::new(facts)))
    }
}

impl Inventory {
    /// Reads the facts below `root` (normally "/").
    pub fn read(root: &Path) -> Self {
        let mut inventory = Self::default();
        let online = |file: &str| text(root, file).and_then(|list| CpuSet::parse(&list));
        let mut set = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                inventory.set(name, value);
            }
        };
        let count = |set: CpuSet| set.numbers().count().to_string();
        set("hardware_threads", online("sys/devices/system/cpu/online").map(count));
        set("numa_nodes", online("sys/devices/system/node/online").map(count));
        set("dimms", counted(smbios_modules(root)));
        set("edac_dimms", counted(edac_modules(root)));
        set("power_limits", counted(power_limits(root)));
        let (infiniband, ethernet): (Vec<_>, Vec<_>) =
            ports(root).into_iter().partition(|port| port.is_infiniband);
        // A node whose adapter is gone differs from its peers: then nothing is a value.
        let or_none = |value: Option<String>, folder: &str| {
            value.or_else(|| root.join(folder).is_dir().then(|| "none".to_owned()))
        };
        let of_infiniband = counted(infiniband.iter().filter_map(|port| infiniband_rate(root, &port.path)));
        let of_ethernet = counted(ethernet.iter().filter_map(|port| ethernet_rate(root, &port.path)));
        set("infiniband", or_none(of_infiniband, "sys/class/net"));
        set("ethernet", or_none(of_ethernet, "sys/class/net"));
        let (gpus, adapters): (Vec<_>, Vec<_>) =
            pcie_devices(root).into_iter().partition(|device| device.is_gpu);
        let links = |devices: &[PcieDevice], with_speed: bool| {
            or_none(counted(pcie_links(root, devices, with_speed)?), "sys/bus/pci/devices")
        };
        set("pcie_adapters", links(&adapters, true));
        set("pcie_gpus", links(&gpus, false));
        for (name, value) in super::kernel_settings::read(root) {
            set(name, value);
        }
        inventory
    }

    /// Sets a fact.
    pub fn set(&mut self, name: &str, value: String) {
        Arc::make_mut(&mut self.0).insert(name.to_owned(), value);
    }

    /// Adds other facts, for example of the GPUs.
    pub fn join(&mut self, other: Self) {
        Arc::make_mut(&mut self.0).extend(Arc::unwrap_or_clone(other.0));
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let facts = self.0.iter().filter(|(name, _)| *name != CHANGED);
        facts.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Notes which facts changed after they were read, for example "governor from performance to powersave".
    pub fn set_changed(&mut self, changed: String) {
        self.set(CHANGED, changed);
    }

    /// See [`Self::set_changed`]; `None` if nothing changed.
    pub fn changed(&self) -> Option<&str> {
        self.0.get(CHANGED).map(String::as_str)
    }

    /// True if nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// SMBIOS structures of type 17, memory device (DMTF DSP0134, 7.18).
fn smbios_modules(root: &Path) -> Vec<String> {
    const ENTRIES: &str = "sys/firmware/dmi/entries";
    let of = |entry: String| {
        let raw = std::fs::read(root.join(ENTRIES).join(entry).join("raw")).ok()?;
        let word = |at: usize| Some(u16::from_le_bytes([*raw.get(at)?, *raw.get(at + 1)?]));
        let mebibytes = match word(0x0c)? {
            0 | 0xffff => return None, // an empty slot, or nothing is known
            0x7fff => u32::from(word(0x1c)?) | u32::from(word(0x1e)?) << 16,
            kibibytes if kibibytes & 0x8000 != 0 => u32::from(kibibytes & 0x7fff) / 1024,
            mebibytes => u32::from(mebibytes),
        };
        // The speed that is set; if the firmware does not know it, the highest speed of the module.
        let speed =
            word(0x20).filter(|_| raw.get(1).is_some_and(|length| *length >= 0x22)).filter(|it| *it != 0);
        let speed = speed.or_else(|| word(0x15).filter(|it| *it != 0));
        let speed = speed.map_or_else(String::new, |speed| format!(" at {speed} MT/s"));
        Some(format!("{mebibytes} MiB{speed}"))
    };
    entries(root, ENTRIES).into_iter().filter(|name| name.starts_with("17-")).filter_map(of).collect()
}

/// Documentation/ABI/testing/sysfs-devices-edac. Some memory controllers know ranks of modules only.
fn edac_modules(root: &Path) -> Vec<String> {
    const CONTROLLERS: &str = "sys/devices/system/edac/mc";
    let mut modules = Vec::new();
    for controller in entries(root, CONTROLLERS).into_iter().filter(|name| name.starts_with("mc")) {
        let folder = format!("{CONTROLLERS}/{controller}");
        for module in entries(root, &folder) {
            let is_module = module.starts_with("dimm") || module.starts_with("rank");
            let size = number(root, &format!("{folder}/{module}/size")).filter(|size| is_module && *size > 0);
            let kind = text(root, &format!("{folder}/{module}/dimm_mem_type"));
            modules.extend(
                size.map(|size| format!("{size} MiB {}", kind.unwrap_or_default()).trim_end().to_owned()),
            );
        }
    }
    modules
}

/// Documentation/power/powercap/powercap.rst.
fn power_limits(root: &Path) -> Vec<String> {
    const ZONES: &str = "sys/class/powercap";
    let limit = |zone: String| {
        let of = |name: &str| text(root, &format!("{ZONES}/{zone}/{name}"));
        let is_socket = of("name").is_some_and(|name| name.starts_with("package"));
        let is_long_term = of("constraint_0_name").is_none_or(|name| name == "long_term");
        let microwatts = number(root, &format!("{ZONES}/{zone}/constraint_0_power_limit_uw"))?;
        (is_socket && is_long_term).then(|| format!("{} W", (microwatts + 500_000) / 1_000_000))
    };
    // A socket's zone has one colon; intel-rapl-mmio has the same limits again.
    let zones = entries(root, ZONES).into_iter();
    zones
        .filter(|zone| zone.starts_with("intel-rapl:") && zone.matches(':').count() == 1)
        .filter_map(limit)
        .collect()
}

/// The PCIe links of devices: "16.0 GT/s PCIe x8", or "x8". `None` if one of them sleeps: its link is not known before it
/// wakes. See Documentation/ABI/testing/sysfs-bus-pci.
fn pcie_links(root: &Path, devices: &[PcieDevice], with_speed: bool) -> Option<Vec<String>> {
    /// All bits of the register are 1: the device is in D3cold. Some kernels give an error instead.
    const ASLEEP: u64 = 63;
    let mut links = Vec::new();
    for device in devices {
        let width = format!("{}/current_link_width", device.path);
        if !root.join(&width).exists() {
            continue; // a virtual device
        }
        let width = number(root, &width).filter(|width| *width != ASLEEP)?;
        let speed = || text(root, &format!("{}/current_link_speed", device.path)).unwrap_or_default();
        let link = if with_speed { format!("{} x{width}", speed()) } else { format!("x{width}") };
        links.extend((width > 0).then_some(link));
    }
    Some(links)
}

/// "200 Gb/sec (4X HDR)", or "down".
fn infiniband_rate(root: &Path, port: &str) -> Option<String> {
    let state = text(root, &format!("{port}/state"))?;
    if !state.contains("ACTIVE") {
        return Some("down".to_owned());
    }
    text(root, &format!("{port}/rate"))
}

fn ethernet_rate(root: &Path, port: &str) -> Option<String> {
    let is_up = text(root, &format!("{port}/operstate")).is_some_and(|state| state == "up");
    let megabits = number(root, &format!("{port}/speed")).filter(|speed| is_up && *speed > 0)?;
    Some(if megabits % 1000 == 0 { format!("{} Gb/s", megabits / 1000) } else { format!("{megabits} Mb/s") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::FACTS;
    use tempfile::TempDir;

    fn put(root: &TempDir, path: &str, content: impl AsRef<[u8]>) {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// An SMBIOS memory device (version 2.8: 0x28 bytes) of this size and speed.
    fn module(size: u16, extended_mib: u32, speed: u16) -> Vec<u8> {
        let mut raw = vec![0u8; 0x28];
        (raw[0], raw[1]) = (17, 0x28);
        raw[0x0c..0x0e].copy_from_slice(&size.to_le_bytes());
        raw[0x1c..0x20].copy_from_slice(&extended_mib.to_le_bytes());
        raw[0x15..0x17].copy_from_slice(&5600u16.to_le_bytes());
        raw[0x20..0x22].copy_from_slice(&speed.to_le_bytes());
        raw
    }

    #[test]
    fn a_lost_module_or_lane_changes_a_fact() {
        let root = TempDir::with_prefix("test-inventory-").unwrap();
        put(&root, "sys/devices/system/cpu/online", "0-3,8\n");
        put(&root, "sys/devices/system/node/online", "0-1\n");
        put(&root, "sys/firmware/dmi/entries/17-0/raw", module(0x7fff, 65_536, 4800));
        put(&root, "sys/firmware/dmi/entries/17-1/raw", module(0x7fff, 65_536, 4800));
        put(&root, "sys/firmware/dmi/entries/17-2/raw", module(0, 0, 0));
        put(&root, "sys/firmware/dmi/entries/17-3/raw", module(16_384, 0, 0));
        put(&root, "sys/firmware/dmi/entries/16-0/raw", "an array");
        for dimm in ["mc0/dimm0", "mc0/dimm2", "mc1/dimm0"] {
            put(&root, &format!("sys/devices/system/edac/mc/{dimm}/size"), "32768\n");
            put(&root, &format!("sys/devices/system/edac/mc/{dimm}/dimm_mem_type"), "Registered-DDR5\n");
        }
        put(&root, "sys/devices/system/edac/mc/mc0/size_mb", "65536\n");
        for (zone, name) in
            [("intel-rapl:0", "package-0"), ("intel-rapl:1", "package-1"), ("intel-rapl:0:0", "dram")]
        {
            put(&root, &format!("sys/class/powercap/{zone}/name"), name);
            put(&root, &format!("sys/class/powercap/{zone}/constraint_0_name"), "long_term");
            put(&root, &format!("sys/class/powercap/{zone}/constraint_0_power_limit_uw"), "240000000\n");
        }
        put(&root, "sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
        put(&root, "sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
        put(&root, "sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
        put(&root, "sys/class/infiniband/mlx5_1/ports/1/rate", "10 Gb/sec (4X SDR)\n");
        put(&root, "sys/class/infiniband/mlx5_0/device/current_link_speed", "16.0 GT/s PCIe\n");
        put(&root, "sys/class/infiniband/mlx5_0/device/current_link_width", "8\n");
        put(&root, "sys/class/net/eno1/device/uevent", "");
        put(&root, "sys/class/net/eno1/operstate", "up\n");
        put(&root, "sys/class/net/eno1/speed", "25000\n");
        put(&root, "sys/class/net/eno2/device/uevent", "");
        put(&root, "sys/class/net/eno2/operstate", "down\n");
        put(&root, "sys/class/net/br0/operstate", "up\n");
        put(&root, "sys/class/net/br0/speed", "1000\n");
        put(&root, "sys/bus/pci/drivers/nvidia/0000:17:00.0/current_link_width", "16\n");
        put(&root, "sys/bus/pci/drivers/nvidia/0000:18:00.0/current_link_width", "8\n");
        put(&root, "sys/bus/pci/drivers/nvidia/module/version", "1\n");
        let inventory = Inventory::read(root.path());
        let expected = [
            ("dimms", "2 x 65536 MiB at 4800 MT/s, 1 x 16384 MiB at 5600 MT/s"),
            ("edac_dimms", "3 x 32768 MiB Registered-DDR5"),
            ("ethernet", "1 x 25 Gb/s"),
            ("hardware_threads", "5"),
            ("infiniband", "1 x 200 Gb/sec (4X HDR), 1 x down"),
            ("numa_nodes", "2"),
            ("pcie_adapters", "1 x 16.0 GT/s PCIe x8"),
            ("pcie_gpus", "1 x x16, 1 x x8"),
            ("power_limits", "2 x 240 W"),
        ];
        assert_eq!(inventory.iter().collect::<Vec<_>>(), expected);
        assert!(inventory.iter().all(|(name, _)| FACTS.iter().any(|(known, _)| *known == name)));
    }

    /// A device that sleeps is no device whose link changed. USB ports of service processors come and go.
    #[test]
    fn sleeping_devices_and_usb_ports_change_nothing() {
        let root = TempDir::with_prefix("test-inventory-").unwrap();
        let adapter = |file: &str, content: &str| {
            put(&root, &format!("sys/class/infiniband/mlx5_0/device/current_link_{file}"), content);
        };
        adapter("speed", "16.0 GT/s PCIe\n");
        adapter("width", "8\n");
        put(&root, "sys/class/net/eth0/device/current_link_width", "0\n");
        let awake = Inventory::read(root.path());
        assert!(awake.iter().any(|fact| fact == ("pcie_adapters", "1 x 16.0 GT/s PCIe x8")), "{awake:?}");
        adapter("speed", "Unknown\n");
        adapter("width", "63\n");
        let asleep = Inventory::read(root.path());
        assert!(!asleep.iter().any(|(name, _)| name == "pcie_adapters"), "{asleep:?}");
        adapter("width", "");
        assert_eq!(Inventory::read(root.path()), asleep, "other kernels give an error");

        let bus = root.path().join("sys/bus/usb");
        std::fs::create_dir_all(&bus).unwrap();
        put(&root, "sys/class/net/usb0/device/uevent", "");
        std::os::unix::fs::symlink(bus, root.path().join("sys/class/net/usb0/device/subsystem")).unwrap();
        put(&root, "sys/class/net/usb0/operstate", "up\n");
        put(&root, "sys/class/net/usb0/speed", "425\n");
        assert_eq!(Inventory::read(root.path()), asleep);
    }

    #[test]
    fn hardware_that_is_not_there_is_none() {
        let root = TempDir::with_prefix("test-inventory-").unwrap();
        put(&root, "sys/class/net/lo/type", "772");
        put(&root, "sys/bus/pci/devices/0000:00:00.0/vendor", "0x8086");
        let inventory = Inventory::read(root.path());
        let expected = ["ethernet", "infiniband", "pcie_adapters", "pcie_gpus"].map(|name| (name, "none"));
        assert_eq!(inventory.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn damaged_tables_give_nothing() {
        let root = TempDir::with_prefix("test-inventory-").unwrap();
        put(&root, "sys/firmware/dmi/entries/17-0/raw", [17u8, 0x28, 0]);
        put(&root, "sys/devices/system/cpu/online", "nonsense");
        put(&root, "sys/devices/system/edac/mc/mc0/dimm0/size", "-1");
        put(&root, "sys/class/infiniband/mlx5_0/ports/1/rate", "");
        assert!(Inventory::read(root.path()).is_empty());
        assert!(Inventory::read(Path::new("/nonexistent")).is_empty());
    }
}
