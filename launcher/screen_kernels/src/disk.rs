//! Speed of a disk: writes a file and reads it, past the page cache (O_DIRECT).
//!
//! The kernel removes the file's name as soon as the file is open, so that the system frees the file whatever happens
//! to this process.

use crate::error::{Error, Wrong};
use crate::kernel::{Measure, MeasureValue, Repetition, ScreenKernel};
use crate::pages::Pages;
use crate::random::Random;
use crate::team::{PerThread, Team, now_ns};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

const MEASURES: [Measure; 2] = [megabytes("write"), megabytes("read")];
/// With O_DIRECT, the size of a block must be a multiple of this.
const SECTOR_BYTES: usize = 4096;
const SECTOR_WORDS: usize = SECTOR_BYTES / size_of::<u64>();
const MOST_BLOCK_BYTES: usize = 1 << 30;

const fn megabytes(name: &'static str) -> Measure {
    Measure { name, unit: "MB/s", larger_is_better: true }
}

/// Settings of [`Disk`].
#[derive(Clone, Debug)]
pub struct DiskSettings {
    /// Where the kernel makes its file.
    pub folder: PathBuf,
    /// The size of the file; the kernel rounds down to whole blocks.
    pub bytes: u64,
    /// The size of each write and each read; a multiple of 4096.
    pub block_bytes: usize,
    /// What to do where the file system refuses O_DIRECT: use the page cache and note it, or fail.
    pub allow_page_cache: bool,
}

impl DiskSettings {
    /// A file of 1 GiB in blocks of 4 MiB, always past the page cache.
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), bytes: 1 << 30, block_bytes: 4 << 20, allow_page_cache: false }
    }
}

/// Speed of a disk. Only the first thread of the team works, so the values are those of the node alone.
pub struct Disk {
    settings: Arc<DiskSettings>,
    blocks: u64,
    buffers: Option<PerThread<Option<Buffers>>>,
    repetitions: u64,
    used_page_cache: bool,
}

struct Buffers {
    /// What a block of the file must hold.
    expected: Pages,
    read: Pages,
}

/// The times of all writes and of all reads.
struct Times {
    elapsed_ns: u64,
    write_ns: u64,
    read_ns: u64,
    used_page_cache: bool,
}

impl Disk {
    /// Refuses sizes that disks do not accept.
    pub fn new(settings: DiskSettings) -> Result<Self, Error> {
        let block_bytes = settings.block_bytes;
        if block_bytes == 0 || !block_bytes.is_multiple_of(SECTOR_BYTES) || block_bytes > MOST_BLOCK_BYTES {
            return Err(Error::Setting(format!(
                "disk cannot use blocks of {block_bytes} bytes; use a multiple of {SECTOR_BYTES} up to {MOST_BLOCK_BYTES}"
            )));
        }
        let blocks = settings.bytes / block_bytes as u64;
        if blocks == 0 || i64::try_from(settings.bytes).is_err() {
            return Err(Error::Setting(format!(
                "disk cannot use a file of {} bytes with blocks of {block_bytes} bytes; use at least one block",
                settings.bytes
            )));
        }
        let settings = Arc::new(settings);
        Ok(Self { settings, blocks, buffers: None, repetitions: 0, used_page_cache: false })
    }
}

impl ScreenKernel for Disk {
    fn name(&self) -> &'static str {
        "disk"
    }

    fn measures(&self) -> &'static [Measure] {
        &MEASURES
    }

    fn prepare(&mut self, team: &Team) -> Result<(), Error> {
        let block_bytes = self.settings.block_bytes;
        self.buffers = Some(team.create(move |member| match member.number {
            0 => Buffers::new(block_bytes).map(Some),
            _ => Ok(None),
        })?);
        Ok(())
    }

    fn run(&mut self, team: &Team) -> Result<Repetition, Error> {
        let buffers = self.buffers.as_ref();
        let buffers = buffers.ok_or_else(|| Error::Internal("disk ran before it was prepared".to_owned()))?;
        self.repetitions += 1;
        // The salt differs between processes, so that the content of an old file fails the check.
        let salt = u64::from(process::id()) << 32 | self.repetitions;
        let (settings, blocks) = (Arc::clone(&self.settings), self.blocks);
        let times = team.with(buffers, move |member, buffers| match buffers {
            Some(buffers) => {
                let (file, used_page_cache) = open(&settings, salt)?;
                let times =
                    buffers.run(&file, &settings, blocks, salt, member.hardware_thread, |_| Ok(()))?;
                Ok(Some(Times { used_page_cache, ..times }))
            }
            None => Ok(None),
        })?;
        let times = times.into_iter().flatten().next();
        let times = times.ok_or_else(|| Error::Internal("disk has no thread".to_owned()))?;
        self.used_page_cache = times.used_page_cache;
        let bytes = self.blocks * self.settings.block_bytes as u64;
        let value = |(measure, ns): (Measure, u64)| {
            let node = bytes as f64 * 1e3 / ns.max(1) as f64;
            MeasureValue { measure, node, threads: Vec::new() }
        };
        let values = MEASURES.into_iter().zip([times.write_ns, times.read_ns]).map(value).collect();
        Ok(Repetition { elapsed_ns: times.elapsed_ns, values })
    }

    /// [`ScreenKernel::run`] has checked all that it read.
    fn check(&mut self, _team: &Team) -> Result<(), Error> {
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let DiskSettings { folder, block_bytes, .. } = &*self.settings;
        let bytes = self.blocks * *block_bytes as u64;
        let way = match self.used_page_cache {
            false => "without the page cache (O_DIRECT)",
            true => {
                "through the page cache, because the file system refuses O_DIRECT: the values may be those of memory, not of the disk"
            }
        };
        vec![format!(
            "{}: a file of {:.3} GB in blocks of {block_bytes} bytes, {way}",
            folder.display(),
            bytes as f64 / 1e9
        )]
    }
}

/// A new file without a name, and true if its data go through the page cache.
fn open(settings: &DiskSettings, salt: u64) -> Result<(File, bool), Error> {
    let path = settings.folder.join(format!(".pmmpi-screen-{salt:x}"));
    let create =
        |flags| OpenOptions::new().read(true).write(true).create_new(true).custom_flags(flags).open(&path);
    let refused = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
    let (opened, used_page_cache) = match create(libc::O_DIRECT) {
        // Some file systems make the file and then refuse the flag.
        Err(error) if refused(&error) => {
            let _ = fs::remove_file(&path);
            if settings.allow_page_cache { (create(0), true) } else { (Err(error), false) }
        }
        opened => (opened, false),
    };
    let file = opened.map_err(|reason| {
        let advice = match refused(&reason) {
            true => {
                "the file system refuses O_DIRECT: choose a folder on a local disk or a parallel file system"
            }
            false => "choose an existing folder in which you may write",
        };
        Error::System { what: format!("Cannot create {}", path.display()), reason, advice }
    })?;
    fs::remove_file(&path).map_err(|reason| Error::System {
        what: format!("Cannot remove {}", path.display()),
        reason,
        advice: "remove this file yourself",
    })?;
    Ok((file, used_page_cache))
}

impl Buffers {
    fn new(block_bytes: usize) -> Result<Self, Error> {
        let mut buffers =
            Self { expected: Pages::map(block_bytes, true)?, read: Pages::map(block_bytes, true)? };
        let mut random = Random(block_bytes as u64);
        buffers.expected.words::<u64>().fill_with(|| random.next());
        buffers.read.words::<u64>().fill(0);
        Ok(buffers)
    }

    /// Gives each sector of the expected block its own number, so that the check finds a sector at a wrong place.
    fn expect(&mut self, salt: u64, block: u64) -> &mut Pages {
        let mut random = Random(Random(salt).next() ^ block);
        for sector in self.expected.words::<u64>().chunks_mut(SECTOR_WORDS) {
            sector[0] = random.next();
        }
        &mut self.expected
    }

    /// Writes and reads. `between` runs between the two. The times are those of the system calls only.
    fn run(
        &mut self,
        file: &File,
        settings: &DiskSettings,
        blocks: u64,
        salt: u64,
        hardware_thread: u32,
        between: impl FnOnce(&File) -> io::Result<()>,
    ) -> Result<Times, Error> {
        let start_ns = now_ns();
        let failed = |what: &str, reason| Error::System {
            what: format!("Cannot {what} a file in {}", settings.folder.display()),
            reason,
            advice: "check the free space and your quota there, and the health of the disk",
        };
        let block_bytes = settings.block_bytes as u64;
        let (mut write_ns, mut read_ns) = (0, 0);
        for block in 0..blocks {
            let expected = self.expect(salt, block).words::<u8>();
            write_ns +=
                timed(|| file.write_all_at(expected, block * block_bytes)).map_err(|e| failed("write", e))?;
        }
        write_ns += timed(|| file.sync_data()).map_err(|e| failed("write", e))?;
        between(file).map_err(|e| failed("change", e))?;
        // Without O_DIRECT, this call removes the file from the page cache, so that the reads use the disk. With
        // O_DIRECT, the call has no effect.
        // SAFETY: the file is open.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        for block in 0..blocks {
            let read = self.read.words::<u8>();
            read_ns +=
                timed(|| file.read_exact_at(read, block * block_bytes)).map_err(|e| failed("read", e))?;
            self.check(salt, block, hardware_thread)?;
        }
        Ok(Times { elapsed_ns: now_ns() - start_ns, write_ns, read_ns, used_page_cache: false })
    }

    fn check(&mut self, salt: u64, block: u64, hardware_thread: u32) -> Result<(), Wrong> {
        self.expect(salt, block);
        let (expected, found) = (self.expected.words::<u64>(), self.read.words::<u64>());
        if expected == found {
            return Ok(());
        }
        let mut pairs =
            expected.iter().zip(found.iter()).enumerate().filter(|(_, (expected, found))| expected != found);
        let Some((at, (value, other))) = pairs.next() else { return Ok(()) };
        let element = block * expected.len() as u64 + at as u64;
        let wrong_count = 1 + pairs.count() as u64;
        let (of, value, other) =
            ("the file's 64-bit words", format!("0x{value:016x}"), format!("0x{other:016x}"));
        let (of, expected, found) = (of.to_owned(), value, other);
        Err(Wrong { hardware_thread, of, element, expected, found, wrong_count })
    }
}

/// Runs `call` and returns its time.
fn timed(call: impl FnOnce() -> io::Result<()>) -> io::Result<u64> {
    let start_ns = now_ns();
    call()?;
    Ok(now_ns() - start_ns)
}

#[cfg(test)]
mod tests;
