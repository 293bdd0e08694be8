//! The small files in which the Linux kernel describes the machine.

use std::io::Read;
use std::path::Path;

/// A small file of /proc or /sys, trimmed; `None` if it is empty or cannot be read. One open and one read are
/// enough: the kernel makes such a file as it is read, so its size says nothing.
pub(crate) fn text(root: &Path, path: &str) -> Option<String> {
    const LARGEST_BYTES: usize = 4096;
    let mut bytes = [0u8; LARGEST_BYTES];
    let read = std::fs::File::open(root.join(path)).and_then(|mut file| file.read(&mut bytes)).ok()?;
    let text = String::from_utf8_lossy(&bytes[..read]);
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The content of a file that may be longer than a page: the kernel then gives it in several pieces.
pub(crate) fn long_text(root: &Path, path: &str) -> Option<String> {
    const LARGEST_BYTES: u64 = 1 << 16;
    let mut bytes = Vec::new();
    std::fs::File::open(root.join(path)).ok()?.take(LARGEST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The number that is the whole content of such a file.
pub(crate) fn number(root: &Path, path: &str) -> Option<u64> {
    text(root, path)?.parse().ok()
}

/// The names in a folder, sorted; none if it cannot be read.
pub(crate) fn entries(root: &Path, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}
