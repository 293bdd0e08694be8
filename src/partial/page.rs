//! A rank's page: in a file, and in memory at t1.

use super::{
    HOST_SUFFIX, NODE_SUFFIX, PAGE_BYTES, check_own, file_name, open_own, place_of, write_cell, write_whole,
};
use crate::cell::RankCell;
use crate::clock;
use crate::part::{NodePart, Part};
use crate::spool::within_file_limit;
use crate::wire;
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// One rank's page.
pub struct Page {
    file: PathBuf,
    /// `None` where it cannot be mapped, or need not be any more.
    map: Option<Map>,
    written_ns: i64,
}

/// Where a page's machine word goes that makes the page writable (see [`Map::new`]).
const TOUCHED_AT: usize = PAGE_BYTES - size_of::<libc::timespec>();
/// Within this time of a write to it the kernel does not write a page back (its flusher wakes up every 5 s,
/// for what has been dirty for 30), so it is still dirty and writable: a store does not fault, and so
/// cannot find the disk full, which would be a SIGBUS to the program.
const FRESH_NS: i64 = 5_000_000_000;

impl Page {
    /// Makes sure of this rank's place in the folder that rank 0 made: where that is not seen, on a node's
    /// own disk, nothing is kept. `part` is what the rank will send to rank 0, nothing measured yet, `cell`
    /// what it has measured. Every rank may do this at once.
    pub fn create(folder: &Path, part: &Part, cell: &RankCell) -> io::Result<Self> {
        check_own(folder)?;
        let ([node], [record]) = (&part.nodes[..], &part.ranks[..]) else {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        };
        let name = file_name(&node.key);
        if !node.host.is_empty() {
            // Another rank of the node may have thought itself its first, too: the last one's stays.
            write_whole(&folder.join(format!("{name}{HOST_SUFFIX}")), record.rank, &node.host)?;
        }
        let path = folder.join(format!("{name}{NODE_SUFFIX}"));
        let nodes = vec![NodePart { host: Vec::new(), ..node.clone() }];
        let template = wire::encode(&Part { nodes, ..part.clone() }).map_err(io::Error::other)?;
        let mut page = cell.to_bytes().to_vec();
        page.extend_from_slice(&(template.len() as u32).to_le_bytes());
        page.extend_from_slice(&template);
        if page.len() > TOUCHED_AT {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        page.resize(PAGE_BYTES, 0);
        let file = open_own(&path, true)?;
        let at = place_of(record.rank);
        within_file_limit(at + PAGE_BYTES as u64)?;
        file.write_all_at(&page, at)?;
        let map = Map::new(&file, at);
        drop(file); // which NFS takes as a reason to write it back, and then the next store faults
        Ok(Self { map: map.filter(Map::touch), file: path, written_ns: clock::monotonic_ns() })
    }

    /// Right after the barrier before the work: a plain store, unless that barrier took very long.
    pub fn store(&self, cell: &RankCell) -> io::Result<()> {
        match &self.map {
            Some(map) if clock::monotonic_ns() - self.written_ns < FRESH_NS => {
                cell.copy_to(map.cell());
                Ok(())
            }
            _ => self.write(cell),
        }
    }

    /// At any other time: open(2) and pwrite(2), in a signal handler if need be.
    pub fn write(&self, cell: &RankCell) -> io::Result<()> {
        write_cell(&self.file, cell)
    }

    /// A file that is mapped cannot be removed from a network file system.
    pub fn unmap(&mut self) {
        self.map = None;
    }

    /// The file that it is in.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

/// A page in memory, until it is dropped.
struct Map(NonNull<RankCell>);

// SAFETY: the mapping is this value's own, and every field of a RankCell is atomic.
unsafe impl Send for Map {}

impl Map {
    /// Of a page that was written, in a state in which a store to it does not fault.
    fn new(file: &File, at: u64) -> Option<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let offset = libc::off_t::try_from(at).ok()?;
        // SAFETY: a new mapping, checked before it is used.
        let mapped = unsafe {
            libc::mmap(std::ptr::null_mut(), PAGE_BYTES, access, libc::MAP_SHARED, file.as_raw_fd(), offset)
        };
        if mapped == libc::MAP_FAILED {
            return None;
        }
        NonNull::new(mapped.cast()).map(Self)
    }

    /// The first store faults, and the file system may find itself full then. The kernel makes that store: to a
    /// system call it is an error (EFAULT) what would be a SIGBUS to the program.
    fn touch(&self) -> bool {
        // SAFETY: a timespec has its place at the page's end, where there is nothing else.
        unsafe {
            let end = self.0.as_ptr().byte_add(TOUCHED_AT);
            libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, end) == 0
        }
    }

    fn cell(&self) -> &RankCell {
        // SAFETY: mapped as long as `self` lives; a page is larger than a cell, and its bytes are numbers.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nobody else knows the address.
        unsafe { libc::munmap(self.0.as_ptr().cast(), PAGE_BYTES) };
    }
}
