//! Small files of a folder that cannot be trusted.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A file of sysfs is at most a page (the kernel's Documentation/filesystems/sysfs.rst).
const LARGEST_BYTES: usize = 4096;
/// More PMUs than any machine has, and more events than any PMU has.
const MOST_NAMES: usize = 1 << 14;

/// The text of a whole file, trimmed; `None` if the file does not look like one of sysfs.
pub fn text(path: &Path) -> Option<String> {
    // Opening a pipe would block until another process writes.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LARGEST_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() > LARGEST_BYTES {
        return None;
    }
    let text = String::from_utf8(bytes).ok()?;
    let text = text.trim();
    (!text.chars().any(|c| c.is_control() && c != '\n')).then(|| text.to_owned())
}

/// The names in a folder that can be names of PMUs, fields and events, ascending; empty if there is no folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_NAMES);
    let name = |entry: std::fs::DirEntry| entry.file_name().into_string().ok().filter(|name| is_name(name));
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort_by(|a, b| natural(a).cmp(&natural(b)));
    names
}

/// Orders numbers by value: "uncore_imc_2" before "uncore_imc_10".
fn natural(name: &str) -> (&str, u64, &str) {
    let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (word, name[word.len()..].parse().unwrap_or(0), name)
}

/// True for texts of the characters in the kernel's names. Excludes ".", ".." and paths.
pub fn is_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    name.len() <= 255 && name.bytes().all(allowed) && name.bytes().any(|b| b.is_ascii_alphanumeric())
}
