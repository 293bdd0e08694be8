//! `<out>/<run_id>.partial/`: a run while it runs, and all that is left of it if it does not end well.
//!
//! | file | holds |
//! |---|---|
//! | run | a [`RunHeader`] and the number of ranks, from rank 0 |
//! | *.node | what is known of a rank of one clock, at (rank + 1) x 65536; what was not written is a hole |
//! | *.host | that node's [`crate::part::HostPart`] in wire form |
//!
//! A page begins with a copy of the rank's [`RankCell`], which its process keeps up to date by plain stores
//! into mapped memory: it survives the death of rank and launcher, of either or both, without a system
//! call while the work runs. A launcher that outlives its rank adds how that ended, and 4096 bytes further
//! the rank's [`RegionTable`]. When the whole run is saved the folder goes.

use crate::cell::{Phase, RankCell};
use crate::node::NodeKey;
use crate::part::{NodePart, Part};
use crate::record::{End, RankRecord, Run, RunHeader};
use crate::regions::RegionTable;
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

/// One rank's page, mapped for as long as the process lives.
pub struct Page {
    cell: &'static RankCell,
    file: PathBuf,
}

impl Page {
    /// Makes sure of this rank's place in the folder that rank 0 made: where that is not seen, on a node's
    /// own disk, nothing is kept. `part` is what the rank will send to rank 0, nothing measured yet. Every
    /// rank may do this at once.
    pub fn create(folder: &Path, part: &Part) -> io::Result<Self> {
        check_own(folder)?;
        let ([node], [record]) = (&part.nodes[..], &part.ranks[..]) else {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        };
        let name = file_name(&node.key);
        if !node.host.is_empty() {
            // Another rank of the node may have thought itself its first, too.
            let written = write_new(&folder.join(format!("{name}{HOST_SUFFIX}")), &node.host);
            written.or_else(|e| if e.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(e) })?;
        }
        let path = folder.join(format!("{name}{NODE_SUFFIX}"));
        let nodes = vec![NodePart { host: Vec::new(), ..node.clone() }];
        let template = wire::encode(&Part { nodes, ..part.clone() }).map_err(io::Error::other)?;
        let mut page = vec![0; TEMPLATE_AT];
        page.extend_from_slice(&(template.len() as u32).to_le_bytes());
        page.extend_from_slice(&template);
        if page.len() > PAGE_BYTES {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        page.resize(PAGE_BYTES, 0);
        let file = open_own(&path, true)?;
        let at = place_of(record.rank);
        crate::spool::within_file_limit(at + PAGE_BYTES as u64)?;
        file.write_all_at(&page, at)?;
        Ok(Self { cell: map(&file, at)?, file: path })
    }

    /// The copy of the rank's cell.
    pub fn cell(&self) -> &'static RankCell {
        self.cell
    }

    /// The file that it is in.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

/// What rank 0 does before any rank has a page: makes the folder and says whose it is.
pub fn begin(place: &Place, size: u32) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(&place.folder)?;
    let bytes = wire::encode(&(VERSION, size, &place.header)).map_err(io::Error::other)?;
    write_new(&place.folder.join(RUN_FILE), &bytes)
}

/// What a launcher adds to the node file that its rank wrote: its `cell`, as far as that came, with the end
/// in it, and its regions.
pub fn keep(node_file: &Path, cell: &RankCell, regions: &RegionTable) -> io::Result<()> {
    let at = place_of(cell.rank.load(std::sync::atomic::Ordering::Relaxed));
    // Not created: the run may have been saved meanwhile.
    let file = open_own(node_file, false)?;
    file.write_all_at(&cell.to_bytes(), at)?;
    let regions = regions.to_bytes();
    let regions_at = at + PAGE_BYTES as u64;
    crate::spool::within_file_limit(regions_at + regions.len() as u64)?;
    file.write_all_at(&regions, regions_at)
}

/// The run is saved as a whole. What cannot be removed is not looked at beside the run's file.
pub fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}

/// The run in such a folder, as far as it came.
pub fn read(folder: &Path) -> Result<Run, RunFileError> {
    let damaged = |e: wire::WireError| RunFileError::Damaged(e.to_string());
    let header = read_regular(&folder.join(RUN_FILE)).map_err(RunFileError::Unreadable)?;
    let version = header.first().map_or(0, |byte| u32::from(*byte));
    if version > VERSION {
        return Err(RunFileError::Newer { version });
    }
    let (_, size, header): (u32, u32, RunHeader) = wire::decode(&header).map_err(damaged)?;
    let mut run = Run::empty(header, size);
    let mut nodes: HashMap<NodeKey, u32> = HashMap::new();
    let mut entries = list(folder).map_err(RunFileError::Unreadable)?;
    entries.sort();
    for path in entries.iter().filter(|path| path.extension().is_some_and(|e| e == &NODE_SUFFIX[1..])) {
        let host = read_regular(&path.with_extension(&HOST_SUFFIX[1..])).unwrap_or_default();
        // One node's damage is not the run's.
        let _ = each_page(path, |page| run.add_page(page, &host, &mut nodes));
    }
    run.sort();
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
        take(&page);
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

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    crate::spool::within_file_limit(bytes.len() as u64)?;
    let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all_at(bytes, 0)
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

fn map(file: &File, at: u64) -> io::Result<&'static RankCell> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
    let offset = libc::off_t::try_from(at).map_err(io::Error::other)?;
    // SAFETY: a new mapping of a page that was written, checked before it is used and never taken away.
    unsafe {
        let mapped = libc::mmap(std::ptr::null_mut(), PAGE_BYTES, access, flags, file.as_raw_fd(), offset);
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(&*mapped.cast())
    }
}
