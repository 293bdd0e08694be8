//! Small files of a folder that may be anybody's.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A file of sysfs is at most a page (the kernel's Documentation/filesystems/sysfs.rst).
const LARGEST_BYTES: usize = 4096;
/// No machine has as many PMUs, and no PMU as many events.
const MOST_NAMES: usize = 1 << 14;

/// A whole file's text, trimmed; `None` where it is not a file of sysfs's kind.
pub fn text(path: &Path) -> Option<String> {
    // A pipe in its place would wait for somebody to write.
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

/// The names in a folder that may be names of PMUs, fields and events, ascending; none where there is no
/// folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_NAMES);
    let name = |entry: std::fs::DirEntry| entry.file_name().into_string().ok().filter(|name| is_name(name));
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort_by(|a, b| natural(a).cmp(&natural(b)));
    names
}

/// Numbers by their size: "uncore_imc_2" before "uncore_imc_10".
fn natural(name: &str) -> (&str, u64, &str) {
    let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (word, name[word.len()..].parse().unwrap_or(0), name)
}

/// Of the characters that names of the kernel's are made of; neither "." nor "..", nor a path.
pub fn is_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    name.len() <= 255 && name.bytes().all(allowed) && name.bytes().any(|b| b.is_ascii_alphanumeric())
}
