//! Temporary files in folders to which several nodes and containers write.
//!
//! Process ids are not unique there: the first process of every PID namespace has number 1, and each node that
//! shares the folder has its own numbers.

use super::run_id::random_u64;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A unique name: `prefix` and 64 random bits.
pub fn name(prefix: &str) -> String {
    format!("{prefix}{:016x}", random_u64())
}

/// Creates a file with such a name in a folder, for writing, with these permissions minus those of the umask. Does
/// not follow a link.
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
