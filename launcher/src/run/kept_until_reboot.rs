//! A cache of the properties of a node that change only with a reboot, with the online hardware threads or with the
//! microcode: files in `.nodes/` of the folder for run files.

use pmmpi::node::{CpuSet, Hardware, NodeKey, Topology};
use pmmpi::record::{temporary, wire};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The bytes of a file that this user wrote. The check is necessary because other users may write in the folder.
fn own_file(path: &Path) -> Option<Vec<u8>> {
    const MOST_BYTES: u64 = 16 << 20;
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = std::fs::File::options().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    // SAFETY: no arguments.
    let own = metadata.uid() == unsafe { libc::geteuid() };
    let mut bytes = Vec::new();
    (own && metadata.is_file()).then(|| file.take(MOST_BYTES).read_to_end(&mut bytes).ok())??;
    Some(bytes)
}

/// What the cache holds of a node.
pub type Constant = (Hardware, Option<Topology>);

/// The cache on disk. If it cannot be written or read, pmmpi reads the node again.
pub struct NodeCache {
    file: PathBuf,
    /// The cache is valid only for the same online hardware threads and microcode.
    valid_for: (CpuSet, Option<String>),
}

impl NodeCache {
    /// The cache of this node in `folder`.
    pub fn new(folder: &Path, online: &CpuSet, microcode: Option<String>) -> Self {
        let NodeKey { hostname, boot_id, .. } = NodeKey::own();
        // The version is in the name because the format may change, the user because other users' files are not
        // trusted.
        // SAFETY: no arguments.
        let user = unsafe { libc::geteuid() };
        let name = format!("{hostname}-{boot_id}-{user}-{}", env!("CARGO_PKG_VERSION")).replace('/', "_");
        Self { file: folder.join(".nodes").join(name), valid_for: (online.clone(), microcode) }
    }

    /// What the cache holds, if it is valid.
    pub fn recall(&self) -> Option<Constant> {
        let (valid_for, constant): ((CpuSet, Option<String>), Constant) =
            wire::decode(&own_file(&self.file)?).ok()?;
        (valid_for == self.valid_for && constant.1.is_some()).then_some(constant)
    }

    /// Writes the cache.
    pub fn keep(&self, constant: &Constant) {
        let Ok(bytes) = wire::encode(&(&self.valid_for, constant)) else { return };
        let folder = self.file.parent().unwrap_or(Path::new("."));
        // Without the cache, a later run needs two milliseconds more.
        let _ = std::fs::create_dir_all(folder)
            .and_then(|()| temporary::replace(&self.file, 0o666, |file| file.write_all(&bytes)));
    }
}
