//! What is recorded of a node, read once by one rank of it.

use crate::install;
use pmmpi::node::{CpuSet, NodeFacts, NodeKey, Topology};
use pmmpi::record::HostPart;
use pmmpi::wire;
use pmmpi_rounds::console::warn;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A [`HostPart`] in wire form, of a node that other ranks are waiting to measure anyway.
pub fn part() -> Vec<u8> {
    encoded(NodeFacts::read(Path::new("/")), read_topology())
}

/// The same for a program alone, which waits for nobody: the topology is read once a boot and
/// remembered in `folder`.
pub fn remembered_part(folder: &Path) -> Vec<u8> {
    let facts = NodeFacts::read(Path::new("/"));
    let memory = Memory::new(folder, &facts.online);
    let topology = memory.recall().or_else(|| {
        let topology = read_topology();
        topology.iter().for_each(|topology| memory.keep(topology));
        topology
    });
    encoded(facts, topology)
}

fn encoded(facts: NodeFacts, topology: Option<Topology>) -> Vec<u8> {
    // An encoder for a memory buffer fails only above its limit; an empty part is a node without facts.
    wire::encode(&HostPart { facts, topology }).unwrap_or_default()
}

/// hwloc's plug-ins ask graphics and network devices, which takes 2 to 26 ms and tells nothing that a
/// run stores: it looks for them where there are none.
const NO_PLUGINS: (&str, &str) = ("HWLOC_PLUGINS_PATH", "/nonexistent");

fn read_topology() -> Option<Topology> {
    let result = install::topology().map_err(|e| e.to_string()).and_then(|program| {
        let mut command = Command::new(program);
        command.env(NO_PLUGINS.0, NO_PLUGINS.1).env_remove("LD_PRELOAD");
        let output = command.stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        wire::decode(&output.stdout).map_err(|e| e.to_string())
    });
    result.map_err(|e| warn(format_args!("this node's topology is not recorded: {e}"))).ok()
}

/// A node's topology on disk. What cannot be kept or recalled is read again.
struct Memory {
    file: PathBuf,
    online: CpuSet,
}

impl Memory {
    fn new(folder: &Path, online: &CpuSet) -> Self {
        let NodeKey { hostname, boot_id, .. } = NodeKey::read();
        // A later version may store a topology differently.
        let name = format!("{hostname}-{boot_id}-{}", env!("CARGO_PKG_VERSION")).replace('/', "_");
        Self { file: folder.join(".nodes").join(name), online: online.clone() }
    }

    fn recall(&self) -> Option<Topology> {
        let (online, topology): (CpuSet, Topology) = wire::decode(&std::fs::read(&self.file).ok()?).ok()?;
        (online == self.online).then_some(topology)
    }

    fn keep(&self, topology: &Topology) {
        let Ok(bytes) = wire::encode(&(&self.online, topology)) else { return };
        let temporary = self.file.with_extension(format!("tmp-{}", std::process::id()));
        let write = || {
            std::fs::create_dir_all(self.file.parent().unwrap_or(Path::new(".")))?;
            std::fs::write(&temporary, &bytes)?;
            std::fs::rename(&temporary, &self.file)
        };
        // Not being remembered costs a later run two milliseconds.
        let _: std::io::Result<()> = write();
    }
}
