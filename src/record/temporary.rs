//! Files that exist for a moment, in folders that several nodes and containers write to.
//!
//! A process's number tells nothing apart there: the first process of every PID namespace is number 1, and nodes that
//! share a folder count for themselves.

use super::run_id::random_u64;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A name that nobody else takes: `prefix`, and 64 random bits.
pub fn name(prefix: &str) -> String {
    format!("{prefix}{:016x}", random_u64())
}

/// A new file of such a name in a folder, for writing, with these permissions less the umask's. It follows no link that
/// somebody placed there.
pub fn create(folder: &Path, prefix: &str, mode: u32) -> io::Result<(File, PathBuf)> {
    let path = folder.join(name(prefix));
    let file = File::options().write(true).create_new(true).mode(mode).open(&path)?;
    Ok((file, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        let names: std::collections::HashSet<String> = (0..1000).map(|_| name(".probe-")).collect();
        assert_eq!(names.len(), 1000);
        assert!(names.iter().all(|name| name.starts_with(".probe-") && name.len() == 23));
    }
}
