//! `<out>/<run_id>.partial/`: a run while it runs, and all that is left of it if it does not end well.
//!
//! | file | holds |
//! |---|---|
//! | run | 8 bytes, the layout of all this; then the schema, the number of ranks and a [`RunHeader`] in wire form, from rank 0 |
//! | *.node | what is known of a rank of one clock, at (rank + 1) x 65536; what was not written is a hole |
//! | *.host | that node's [`crate::part::HostPart`] in wire form |
//!
//! A page begins with a copy of the rank's [`RankCell`], which its process keeps up to date: it survives the
//! death of rank and launcher, of either or both. At t1 that is a plain store into mapped memory, so that
//! no system call runs beside the work; later on it is a write, which fails where a store into a file that
//! is full or gone would end the program. A launcher that outlives its rank adds how that ended and, 4096
//! bytes further, the rank's [`RegionTable`]. When the whole run is saved the folder goes.

use crate::cell::{self, Phase, RankCell};
use crate::clock;
use crate::node::NodeKey;
use crate::part::{NodePart, Part};
use crate::record::{End, RankRecord, Run, RunHeader};
use crate::region_table::RegionTable;
use crate::runfile::{RunFileError, VERSION};
use crate::wire;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

/// The name of such a folder ends with this.
pub const SUFFIX: &str = ".partial";
const RUN_FILE: &str = "run";
const NODE_SUFFIX: &str = ".node";
const HOST_SUFFIX: &str = ".host";
const PAGE_BYTES: usize = 4096;
/// From page to page: a mapping begins at a multiple of the machine's own page size, which may be as large.
const SPACING_BYTES: u64 = 65_536;
const TEMPLATE_AT: usize = size_of::<RankCell>();

/// Where a run is kept while it runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Place {
    /// A folder of its own, not made yet.
    pub folder: PathBuf,
    /// What rank 0 writes there.
    pub header: RunHeader,
}

impl Place {
    /// For a run in the folder `out`, which exists.
    pub fn new(out: &Path, header: &RunHeader) -> io::Result<Self> {
        Ok(Self { folder: folder_of(out, &header.run_id)?, header: header.clone() })
    }
}

/// The folder of the run `run_id` in the folder `out`.
pub fn folder_of(out: &Path, run_id: &str) -> io::Result<PathBuf> {
    // Not canonicalised: a link may lead elsewhere on another node.
    Ok(std::path::absolute(out)?.join(format!("{run_id}{SUFFIX}")))
}

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
        crate::spool::within_file_limit(at + PAGE_BYTES as u64)?;
        file.write_all_at(&page, at)?;
        Ok(Self { map: Map::new(&file, at), file: path, written_ns: clock::monotonic_ns() })
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

/// What rank 0 does before any rank has a page: makes the folder and says whose it is.
pub fn begin(place: &Place, size: u32) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(&place.folder)?;
    let about = wire::encode(&(VERSION, size, &place.header)).map_err(io::Error::other)?;
    let bytes = [&RankCell::LAYOUT.to_le_bytes()[..], &about].concat();
    let written = write_whole(&place.folder.join(RUN_FILE), 0, &bytes);
    if written.is_err() {
        remove(&place.folder);
    }
    written
}

/// What a launcher adds to the node file that its rank wrote: its `cell`, as far as that came, with the end
/// in it, and its regions.
pub fn keep(node_file: &Path, cell: &RankCell, regions: &RegionTable) -> io::Result<()> {
    write_cell(node_file, cell)?;
    let regions = regions.to_bytes();
    let at = place_of(cell.rank.load(std::sync::atomic::Ordering::Relaxed)) + PAGE_BYTES as u64;
    crate::spool::within_file_limit(at + regions.len() as u64)?;
    open_own(node_file, false)?.write_all_at(&regions, at)
}

fn write_cell(node_file: &Path, cell: &RankCell) -> io::Result<()> {
    let rank = cell.rank.load(std::sync::atomic::Ordering::Relaxed);
    crate::spool::within_file_limit(place_of(rank) + PAGE_BYTES as u64)?;
    // Not created: the run may have been saved meanwhile.
    open_own(node_file, false)?.write_all_at(&cell.to_bytes(), place_of(rank))
}

/// The run is saved as a whole. What cannot be removed is not looked at beside the run's file.
pub fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}

/// The run in such a folder, as far as it came.
pub fn read(folder: &Path) -> Result<Run, RunFileError> {
    let damaged = |e: wire::WireError| RunFileError::Damaged(e.to_string());
    let about = read_regular(&folder.join(RUN_FILE)).map_err(RunFileError::Unreadable)?;
    let (layout, about) = about.split_first_chunk().ok_or(RunFileError::Empty)?;
    match cell::layout_of(*layout) {
        Some(layout) if layout == RankCell::LAYOUT => {}
        Some(_) => return Err(RunFileError::OtherVersion),
        None => return Err(RunFileError::Foreign),
    }
    let (version, size, header): (u32, u32, RunHeader) = wire::decode(about).map_err(damaged)?;
    if version > VERSION {
        return Err(RunFileError::Newer { version });
    }
    let named = format!("{}{SUFFIX}", header.run_id);
    if folder.file_name() != Some(named.as_ref()) {
        return Err(RunFileError::Damaged(format!("it holds the run of {named}, and has another name")));
    }
    let mut of_others = false;
    let mut run = Run::empty(header, size);
    let mut nodes: HashMap<NodeKey, u32> = HashMap::new();
    let mut entries = list(folder).map_err(RunFileError::Unreadable)?;
    entries.sort();
    for path in entries.iter().filter(|path| path.extension().is_some_and(|e| e == &NODE_SUFFIX[1..])) {
        let host = read_regular(&path.with_extension(&HOST_SUFFIX[1..])).unwrap_or_default();
        // One node's damage is not the run's.
        let _ = each_page(path, |page| {
            of_others |= cell::layout_of(page[..8].try_into().unwrap_or_default()) != Some(RankCell::LAYOUT);
            run.add_page(page, &host, &mut nodes);
        });
    }
    run.sort();
    if of_others && run.ranks.is_empty() && run.lost.is_empty() {
        return Err(RunFileError::OtherVersion);
    }
    if run.is_sound() {
        Ok(run)
    } else {
        Err(RunFileError::Damaged("its records contradict one another".into()))
    }
}

/// A page's cell, and the part of its one rank on its one node.
fn parse(page: &[u8]) -> Option<(RankCell, Part)> {
    let cell = RankCell::from_bytes(page)?;
    let (length, rest) = page.get(TEMPLATE_AT..)?.split_first_chunk::<4>()?;
    let part: Part = wire::decode(rest.get(..u32::from_le_bytes(*length) as usize)?).ok()?;
    (part.nodes.len() == 1 && part.ranks.len() == 1).then_some((cell, part))
}

impl Run {
    /// What a page says; nothing where it is none.
    fn add_page(&mut self, page: &[u8], host: &[u8], nodes: &mut HashMap<NodeKey, u32>) {
        let Some((cell, mut part)) = parse(page) else { return };
        let key = part.nodes[0].key.clone();
        let template = part.ranks.remove(0);
        part.regions = RegionTable::from_bytes(&page[PAGE_BYTES..]).regions(template.rank);
        if cell.phase() >= Phase::Released {
            let end = cell.end().unwrap_or(End::Finalized);
            part.ranks.push(RankRecord { end, node: 0, ..cell.record(&template) });
        }
        if !nodes.contains_key(&key) {
            nodes.insert(key.clone(), self.add_node(key.clone()));
            // Facts that nobody can read are none.
            self.describe(nodes[&key], host).unwrap_or_default();
        }
        // Nothing in it is left to decode.
        self.add(part, nodes).unwrap_or_default();
        self.lost.extend(cell.lost(nodes[&key]));
    }
}

/// Gives each page of a file that was written to `take`, with what follows it up to the end of its table.
fn each_page(path: &Path, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    // A job of as many ranks of one node as there may be pages here is larger than any machine.
    const MOST_PAGES: usize = 1 << 16;
    let file = open_regular(path)?;
    let mut page = vec![0; PAGE_BYTES + size_of::<RegionTable>()];
    let mut at = 0i64;
    for _ in 0..MOST_PAGES {
        // SAFETY: moves the file's own position.
        let data = unsafe { libc::lseek(file.as_raw_fd(), at, libc::SEEK_DATA) };
        if data < 0 {
            break; // ENXIO: only a hole follows
        }
        let begin = data as u64 / SPACING_BYTES * SPACING_BYTES;
        page.fill(0); // the file may end sooner
        let read = file.read_at(&mut page, begin)?;
        if read < PAGE_BYTES {
            break;
        }
        // Zeros, where holes are not known.
        if page.first_chunk().is_some_and(|word| cell::layout_of(*word).is_some()) {
            take(&page);
        }
        at = (begin + SPACING_BYTES) as i64;
    }
    Ok(())
}

fn place_of(rank: u32) -> u64 {
    (u64::from(rank) + 1) * SPACING_BYTES
}

/// One file a clock: hosts of one name may have several.
fn file_name(key: &NodeKey) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    format!("{}-{:016x}", key.hostname.replace('/', "_"), hasher.finish())
}

fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
}

/// In a folder where anybody may write only one's own is used.
fn check_own(folder: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(folder)?;
    let own = metadata.is_dir() && is_own(&metadata);
    if own { Ok(()) } else { Err(io::Error::from(io::ErrorKind::PermissionDenied)) }
}

fn open_own(path: &Path, create: bool) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(create).truncate(false).mode(0o600);
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && is_own(&metadata) {
        Ok(file)
    } else {
        Err(io::Error::from(io::ErrorKind::PermissionDenied))
    }
}

fn is_own(metadata: &fs::Metadata) -> bool {
    // SAFETY: no arguments.
    metadata.uid() == unsafe { libc::geteuid() }
}

/// Whoever sees the file sees all of it.
fn write_whole(path: &Path, rank: u32, bytes: &[u8]) -> io::Result<()> {
    crate::spool::within_file_limit(bytes.len() as u64)?;
    let temporary = path.with_extension(format!("{rank}.tmp"));
    let written = File::options().write(true).create_new(true).mode(0o600).open(&temporary);
    let written = written.and_then(|file| file.write_all_at(bytes, 0));
    let written = written.and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// A report may be about anybody's folder: no link, no pipe, nothing endless.
fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    const MOST_BYTES: u64 = 4 << 20;
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open_regular(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::from(io::ErrorKind::InvalidInput)) }
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
        let map = Self(NonNull::new(mapped.cast())?);
        // The first store faults, and the file system may find itself full then. The kernel makes that
        // store: to a system call it is an error (EFAULT) what would be a SIGBUS to the program.
        // SAFETY: a timespec has its place at the page's end, where there is nothing else.
        let touched = unsafe {
            let end = mapped.byte_add(TOUCHED_AT);
            libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, end) == 0
        };
        touched.then_some(map)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::Threads;
    use crate::meeting::Meeting;
    use crate::record::{Mode, RunHeader};
    use crate::session::{Beginning, Session};

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("pmmpi-partial-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn header(run_id: &str) -> RunHeader {
        RunHeader::new(run_id.into(), vec!["work".into()], Mode::Mpi, 0)
    }

    fn session(folder: &Path, fabric: Threads) -> Session<'static, Threads> {
        let spool = crate::spool::Spool::create().unwrap();
        assert!(spool.cell().claim());
        let beginning =
            Beginning { began_ns: clock::monotonic_ns(), pings: false, meeting: Meeting::default() };
        let mut session = Session::open(spool.cell(), spool.regions(), fabric, beginning);
        let page = Page::create(folder, &session.part_before(Some("threads"), vec![]), spool.cell());
        session.keep_in(page.unwrap());
        session
    }

    /// A file that was cut off, as one on a full disk can be: a store to it would be a SIGBUS.
    #[test]
    fn no_stamp_is_kept_by_a_store_that_can_fault() {
        let out = Folder::new("cut");
        let place = Place::new(&out.0, &header("cut")).unwrap();
        begin(&place, 1).unwrap();
        let mut session = session(&place.folder, Threads::new(1).remove(0));
        session.start().unwrap();
        assert_eq!(read(&place.folder).unwrap().lost[0].t_ns.len(), 2);
        let files = list(&place.folder).unwrap();
        let file = files.iter().find(|path| path.extension().is_some_and(|e| e == "node")).unwrap();
        let page = fs::read(file).unwrap();
        let cut = || File::options().write(true).open(file).unwrap().set_len(0).unwrap();
        cut();
        session.note_abort(3);
        cut();
        session.stop().unwrap();
        // What it was, and what the last write put into it.
        let mut whole = page;
        let written = fs::read(file).unwrap();
        whole[..written.len()].iter_mut().zip(&written).for_each(|(to, from)| *to |= from);
        fs::write(file, whole).unwrap();
        let run = read(&place.folder).unwrap();
        assert!(run.is_complete() && run.end() == Some(End::Aborted(3)), "{run:#?}");
    }

    /// A rank that waits for another has its t2 in its page meanwhile, and keeps nobody waiting for that.
    #[test]
    fn what_a_rank_that_waits_has_measured_is_kept_while_it_waits() {
        let out = Folder::new("waits");
        let place = Place::new(&out.0, &header("waits")).unwrap();
        begin(&place, 2).unwrap();
        let folder = &place.folder;
        let kept = || read(folder).unwrap().lost.iter().map(|rank| rank.t_ns.len()).collect::<Vec<_>>();
        let mut ranks = Threads::new(2).into_iter().map(|fabric| session(folder, fabric));
        let (mut first, mut second) = (ranks.next().unwrap(), ranks.next().unwrap());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                first.start().unwrap();
                first.stop().unwrap();
            });
            second.start().unwrap();
            while kept() != [3, 2] {
                assert!(!waiting.is_finished());
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            second.stop().unwrap();
        });
        assert!(read(folder).unwrap().is_complete());
    }
}
