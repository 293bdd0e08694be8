//! Network ports and PCIe devices of a node, below a root path.

use super::kernel_files::{entries, text};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const INFINIBAND: &str = "sys/class/infiniband";
const NETWORK: &str = "sys/class/net";
/// Drivers of GPUs.
const GPU_DRIVERS: [&str; 3] = ["nvidia", "amdgpu", "xe"];

/// A port of a network adapter. Bridges, tunnels and the like have no device.
pub(super) struct Port {
    /// "mlx5_0 port 1" or "eno1".
    pub name: String,
    /// Its folder, relative to the root.
    pub path: String,
    pub is_infiniband: bool,
}

/// All ports: those of InfiniBand and RoCE adapters, then Ethernet.
pub(super) fn ports(root: &Path) -> Vec<Port> {
    let of_adapter = |adapter: &String| {
        let folder = format!("{INFINIBAND}/{adapter}/ports");
        let port = |port: String| Port {
            name: format!("{adapter} port {port}"),
            path: format!("{folder}/{port}"),
            is_infiniband: true,
        };
        entries(root, &folder).into_iter().map(port).collect::<Vec<_>>()
    };
    let infiniband = entries(root, INFINIBAND);
    let ethernet = entries(root, NETWORK).into_iter().filter(|name| {
        const ETHERNET: &str = "1"; // ARPHRD_ETHER; IP over InfiniBand is 32
        let path = root.join(NETWORK).join(name);
        // Service processors offer USB ports, which come and go.
        let is_usb = || fs::canonicalize(path.join("device/subsystem")).is_ok_and(|bus| bus.ends_with("usb"));
        path.join("device").exists()
            && !is_usb()
            && text(root, &format!("{NETWORK}/{name}/type")).is_none_or(|it| it == ETHERNET)
    });
    let ethernet =
        ethernet.map(|name| Port { path: format!("{NETWORK}/{name}"), name, is_infiniband: false });
    infiniband.iter().flat_map(of_adapter).chain(ethernet).collect()
}

/// A network adapter or GPU on PCIe.
pub(super) struct PcieDevice {
    /// Its address, or the name of its adapter.
    pub name: String,
    /// Its folder, relative to the root.
    pub path: String,
    pub is_gpu: bool,
}

/// All network adapters and GPUs. An adapter that is both an InfiniBand and a network device is one.
pub(super) fn pcie_devices(root: &Path) -> Vec<PcieDevice> {
    let mut found = Vec::new();
    let mut known: BTreeSet<PathBuf> = BTreeSet::new();
    let mut add = |name: String, path: String, is_gpu: bool| {
        let Ok(device) = fs::canonicalize(root.join(&path)) else { return };
        // Links lead to a folder that is named by its address.
        let address = device.file_name().and_then(|name| name.to_str()).filter(|name| name.contains(':'));
        let name = address.map_or(name, str::to_owned);
        if known.insert(device) {
            found.push(PcieDevice { name, path, is_gpu });
        }
    };
    for class in [INFINIBAND, NETWORK] {
        for adapter in entries(root, class) {
            let path = format!("{class}/{adapter}/device");
            add(adapter, path, false);
        }
    }
    for driver in GPU_DRIVERS {
        let folder = format!("sys/bus/pci/drivers/{driver}");
        for address in entries(root, &folder).into_iter().filter(|name| name.contains(':')) {
            let path = format!("{folder}/{address}");
            add(address, path, true);
        }
    }
    found
}
