//! The identity of a node and of its clock.

use super::kernel_files::text;
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::OnceLock;

/// Which clock a rank reads. Two ranks share a clock only if all three fields agree: the host name (machines
/// restored from one memory snapshot share a boot id, but no clock), the boot (a clock starts with it), and the
/// time namespace (it sets the clock's offset, time_namespaces(7)).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeKey {
    /// gethostname(2).
    pub hostname: String,
    /// /proc/sys/kernel/random/boot_id; empty if it cannot be read.
    pub boot_id: String,
    /// Inode of the calling process's time namespace; 0 if the kernel has none.
    pub time_namespace: u64,
}

impl NodeKey {
    /// The clock of the calling process, read once: neither a boot nor a process's time namespace changes.
    pub fn own() -> &'static Self {
        static OWN: OnceLock<NodeKey> = OnceLock::new();
        OWN.get_or_init(Self::read)
    }

    /// A hash of this key. Two clocks with the same hash cost extra work, but cause no wrong result.
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
