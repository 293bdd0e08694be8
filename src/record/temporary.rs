//! Temporary files in folders to which several nodes and containers write, and files that appear complete or not at
//! all.
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

/// Writes a file completely or not at all, and replaces an existing one. `write` writes to a hidden file beside it,
/// `.NAME.tmp-RANDOM`, which then gets the name `target`; `write` also syncs it, if it must survive a crash of the
/// machine. The permissions are `mode` minus those of the umask. After an error, removes the hidden file and returns
/// the first error.
pub fn replace(target: &Path, mode: u32, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let folder = target.parent().unwrap_or(Path::new(""));
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let (mut file, path) = create(folder, &format!(".{name}.tmp-"), mode)?;
    let written = write(&mut file);
    drop(file);
    let written = written.and_then(|()| std::fs::rename(&path, target));
    // A hidden file that stays does no harm: readers ignore it.
    written.inspect_err(|_| _ = std::fs::remove_file(&path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;

    #[test]
    fn names_differ() {
        let names: std::collections::HashSet<String> = (0..1000).map(|_| name(".probe-")).collect();
        assert_eq!(names.len(), 1000);
        assert!(names.iter().all(|name| name.starts_with(".probe-") && name.len() == 23));
    }

    #[test]
    fn a_file_is_replaced_completely_or_not_at_all() {
        let folder = TempDir::with_prefix("test-replace-").unwrap();
        let target = folder.path().join("file");
        let hidden = || {
            let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names = names.map(|name| name.into_string().unwrap());
            names.find(|name| name.starts_with(".file.tmp-") && name.len() == 26)
        };
        let write = |text: &str, result: io::Result<()>| {
            replace(&target, 0o600, |file| {
                assert!(hidden().is_some());
                file.write_all(text.as_bytes()).and(result)
            })
        };
        write("one", Ok(())).unwrap();
        assert_eq!(
            write("half", Err(io::ErrorKind::StorageFull.into())).unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
        assert_eq!((std::fs::read_to_string(&target).unwrap(), hidden()), ("one".to_owned(), None));
        write("two", Ok(())).unwrap();
        assert_eq!((std::fs::read_to_string(&target).unwrap(), hidden()), ("two".to_owned(), None));
        assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        // The name cannot be given.
        std::fs::remove_file(&target).unwrap();
        std::fs::create_dir(&target).unwrap();
        assert!(write("three", Ok(())).is_err() && hidden().is_none());
    }
}
