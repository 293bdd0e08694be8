//! Memory of kernels.

use crate::error::Error;
use std::fs;
use std::ptr::NonNull;

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Memory in pages that no thread has touched yet. The memory starts at the boundary of a huge page.
pub(crate) struct Pages {
    mapped: NonNull<u8>,
    mapped_bytes: usize,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the value owns its memory.
unsafe impl Send for Pages {}

impl Pages {
    /// Maps at least this many bytes of zeros, with huge pages where the system has them.
    pub(crate) fn map(bytes: usize, huge_pages: bool) -> Result<Self, Error> {
        let refused = || {
            Error::last_os(
                format!("Cannot allocate {bytes} bytes of memory"),
                "use less memory, or raise the limit of the job or container",
            )
        };
        let mapped_bytes = bytes.max(1).checked_add(HUGE_PAGE_BYTES).ok_or_else(refused)?;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory; drop unmaps it.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), mapped_bytes, access, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(refused());
        }
        let mapped = NonNull::new(mapped.cast::<u8>()).ok_or_else(refused)?;
        let skip = mapped.align_offset(HUGE_PAGE_BYTES);
        // SAFETY: the mapping has one huge page more than needed.
        let start = unsafe { mapped.add(skip) };
        let advice = if huge_pages { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // A Linux kernel without huge pages refuses this, which does not matter: `huge_pages_bytes` shows it.
        // SAFETY: the arguments are those of the new mapping.
        unsafe { libc::madvise(mapped.as_ptr().cast(), mapped_bytes, advice) };
        Ok(Self { mapped, mapped_bytes, start, bytes })
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// All words of the memory.
    pub(crate) fn words<T: Word>(&mut self) -> &mut [T] {
        // SAFETY: the memory is mapped, aligned to a page, and every bit pattern is a valid word.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes / size_of::<T>()) }
    }

    /// Number of bytes of the memory in huge pages, without what the mapping has more than the memory; `None` if the
    /// system does not show this number.
    pub(crate) fn huge_pages_bytes(&self) -> Option<u64> {
        let maps = fs::read_to_string("/proc/self/smaps").ok()?;
        let (start, end) =
            (self.mapped.as_ptr() as u64, self.mapped.as_ptr() as u64 + self.mapped_bytes as u64);
        huge_bytes_of(&maps, start, end).map(|huge| huge.min(self.bytes as u64))
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and no reference to it is left.
        unsafe { libc::munmap(self.mapped.as_ptr().cast(), self.mapped_bytes) };
    }
}

/// A type for which every bit pattern is valid.
pub(crate) trait Word {}
impl Word for u8 {}
impl Word for u64 {}
impl Word for f64 {}

/// The huge pages of a mapping. The system may show several mappings as one; this function then counts a share of it.
fn huge_bytes_of(smaps: &str, start: u64, end: u64) -> Option<u64> {
    let (mut share, mut sum, mut seen) = (0.0, 0.0, false);
    for line in smaps.lines() {
        let first = line.split_whitespace().next()?;
        if let Some((low, high)) = first.split_once('-').filter(|_| !first.ends_with(':')) {
            let (low, high) = (u64::from_str_radix(low, 16).ok()?, u64::from_str_radix(high, 16).ok()?);
            let common = high.min(end).saturating_sub(low.max(start));
            share = common as f64 / (high - low).max(1) as f64;
            seen |= common > 0;
        } else if first == "AnonHugePages:" {
            let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
            sum += share * kib * 1024.0;
        }
    }
    seen.then_some(sum as u64)
}

/// A number of bytes for a note: `2.1 MB`, `0.268 GB`.
pub(crate) fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    if bytes < 1e8 { format!("{:.1} MB", bytes / 1e6) } else { format!("{:.3} GB", bytes / 1e9) }
}

/// What a note says about [`Pages::huge_pages_bytes`].
pub(crate) fn in_huge_pages(bytes: Option<u64>) -> String {
    match bytes {
        Some(bytes) => format!("{} in huge pages", size(bytes)),
        None => "the system does not show how much of this memory is in huge pages".to_owned(),
    }
}

/// Fails if the node does not have this amount of memory. Otherwise the Linux kernel might kill a process to get
/// memory.
pub(crate) fn require_available(bytes: u64, what: &str) -> Result<(), Error> {
    let Ok(text) = fs::read_to_string("/proc/meminfo") else { return Ok(()) };
    match available_bytes(&text) {
        Some(available) if bytes > available => Err(Error::Setting(format!(
            "{what} needs {:.1} GB of memory, and this node has {:.1} GB available; use less memory, or stop other \
             programs",
            bytes as f64 / 1e9,
            available as f64 / 1e9
        ))),
        _ => Ok(()),
    }
}

fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemAvailable:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_and_starts_at_a_huge_page() {
        let mut pages = Pages::map(3 << 20, true).unwrap();
        assert_eq!(pages.start() as usize % HUGE_PAGE_BYTES, 0);
        assert_eq!(pages.words::<u64>().len(), (3 << 20) / 8);
        assert!(pages.words::<u64>().iter().all(|word| *word == 0));
    }

    /// The mapping is larger, and the last huge page, too.
    #[test]
    fn no_more_memory_is_in_huge_pages_than_there_is() {
        for bytes in [1 << 20, 3 << 20, (4 << 20) + 1] {
            let mut pages = Pages::map(bytes, true).unwrap();
            pages.words::<u8>().fill(1);
            assert!(pages.huge_pages_bytes().is_none_or(|huge| huge <= bytes as u64), "{bytes}");
        }
    }

    #[test]
    fn a_note_has_a_size_with_some_digits() {
        assert_eq!(size(1_048_576), "1.0 MB");
        assert_eq!(size(268_435_456), "0.268 GB");
        assert_eq!(in_huge_pages(Some(99_900_000)), "99.9 MB in huge pages");
    }

    #[test]
    fn memory_that_no_machine_has_is_an_error() {
        for bytes in [usize::MAX, usize::MAX / 2] {
            assert!(Pages::map(bytes, false).err().unwrap().to_string().contains("use less memory"));
        }
        let error = require_available(u64::MAX, "This kernel").unwrap_err().to_string();
        assert!(error.starts_with("This kernel needs 18446744073.7 GB"), "{error}");
    }

    #[test]
    fn huge_pages_of_a_mapping() {
        let smaps = "1000-3000 rw-p 0 00:00 0 \nAnonHugePages:      8 kB\n3000-5000 rw-p 0 00:00 0\nAnonHugePages: 4 kB\n";
        assert_eq!(huge_bytes_of(smaps, 0x1000, 0x3000), Some(8192));
        assert_eq!(huge_bytes_of(smaps, 0x2000, 0x3000), Some(4096));
        assert_eq!(huge_bytes_of(smaps, 0x1000, 0x5000), Some(12288));
        assert_eq!(huge_bytes_of(smaps, 0x9000, 0xa000), None);
    }
}
