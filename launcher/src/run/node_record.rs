//! The description of a node, which one of its ranks reads.

use super::kept_until_reboot::NodeCache;
use crate::own_files;
use pmmpi::clock::Crystal;
use pmmpi::node::{Hardware, Inventory, NodeFacts, NodeKey, NodeSettings, Topology, microcode_now};
use pmmpi::record::{HostPart, wire};
use pmmpi_workload::console::warn;
use std::path::Path;
use std::process::{Command, Stdio};

/// Reads a [`HostPart`], in wire form, for a job: other ranks wait anyway, so there is no cache.
pub fn part(quiet: bool) -> Vec<u8> {
    encoded(NodeFacts::read(Path::new("/")), read_topology(quiet))
}

/// The same for a single program, for which speed matters. A cache in `folder` holds what only a boot changes, so this
/// is read once per boot.
pub fn remembered_part(folder: &Path, quiet: bool) -> Vec<u8> {
    let root = Path::new("/");
    let settings = NodeSettings::read(root);
    let memory = NodeCache::new(folder, &settings.online, microcode_now(root));
    let (mut hardware, topology) = memory.recall().unwrap_or_else(|| {
        let read = (Hardware::read(root), read_topology(quiet));
        memory.keep(&read);
        read
    });
    // CPUID is faster than the cache. In a virtual machine, it is slow and does not give the crystal's rate.
    if !hardware.hypervisor {
        hardware.crystal = Crystal::here();
    }
    // Links and power limits may change at any time.
    encoded(NodeFacts { hardware, settings, inventory: Inventory::read(root) }, topology)
}

fn encoded(mut facts: NodeFacts, topology: Option<Topology>) -> Vec<u8> {
    if let Some(switch) = switch(&NodeKey::own().hostname, |name| std::env::var(name).ok()) {
        facts.inventory.set("switch", switch);
    }
    // Encoding into memory fails only above its size limit. An empty part means a node without facts.
    wire::encode(&HostPart::new(facts, topology)).unwrap_or_default()
}

/// The switches above the node, for example "s0.s4": SLURM_TOPOLOGY_ADDR without the node's own name. `None` if Slurm
/// knows no switches.
fn switch(host: &str, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let [address, pattern] = ["SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN"].map(variable);
    let (address, pattern) = (address?, pattern?);
    // Some launchers give all nodes the environment of the batch script's node.
    let own = host.split('.').next().unwrap_or_default();
    if address.rsplit('.').next() != Some(own) {
        return None;
    }
    // Names of nodes and switches have no dot.
    let parts = address.split('.').zip(pattern.split('.')).filter(|(_, kind)| *kind != "node");
    let switches: Vec<&str> = parts.map(|(name, _)| name).filter(|name| !name.is_empty()).collect();
    (!switches.is_empty()).then(|| switches.join("."))
}

/// Stops hwloc from finding its plug-ins. They query graphics and network devices, which takes 2 to 26 ms and gives
/// nothing that a run stores.
const NO_PLUGINS: (&str, &str) = ("HWLOC_PLUGINS_PATH", "/nonexistent");

fn read_topology(quiet: bool) -> Option<Topology> {
    let result = own_files::topology().map_err(|e| e.to_string()).and_then(|program| {
        let mut command = Command::new(program);
        command.env(NO_PLUGINS.0, NO_PLUGINS.1).env_remove("LD_PRELOAD");
        let output = command.stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        wire::decode(&output.stdout).map_err(|e| e.to_string())
    });
    let warning = |e: String| {
        if !quiet {
            warn(format_args!("the run does not record this node's topology: {e}"));
        }
    };
    result.map_err(warning).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_slurms() {
        let of = |address: &str, pattern: &str| {
            let (address, pattern) = (address.to_owned(), pattern.to_owned());
            switch("n012.cluster", move |name: &str| {
                Some(if name.ends_with("PATTERN") { pattern.clone() } else { address.clone() })
            })
        };
        assert_eq!(of("s0.s4.n012", "switch.switch.node").as_deref(), Some("s0.s4"));
        assert_eq!(of("n012", "node"), None);
        assert_eq!(of(".n012", "switch.node"), None);
        assert_eq!(of("s0.s4.n013", "switch.switch.node"), None, "another node's environment");
        assert_eq!(switch("n012", |_| None), None);
    }
}
