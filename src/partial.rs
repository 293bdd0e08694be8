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
//! bytes further, the rank's [`RegionTable`], and behind that its [`Counts`]. When the whole run is saved the folder goes.

mod page;
mod reading;

pub use page::Page;
pub use reading::read;

use crate::cell::RankCell;
use crate::counters::counts::Counts;
use crate::node::NodeKey;
use crate::record::RunHeader;
use crate::region_table::RegionTable;
use crate::runfile::VERSION;
use crate::spool::within_file_limit;
use crate::wire;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::mem::size_of;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

/// The name of such a folder ends with this.
pub const SUFFIX: &str = ".partial";
const RUN_FILE: &str = "run";
const NODE_SUFFIX: &str = ".node";
const HOST_SUFFIX: &str = ".host";
const PAGE_BYTES: usize = 4096;
/// From page to page: a mapping begins at a multiple of the machine's own page size, which may be as large.
const SPACING_BYTES: u64 = 65_536;
/// Behind the regions: the length of what follows, and [`Counts`] in wire form.
const COUNTS_AT: usize = PAGE_BYTES + (1 << 15);
const MOST_COUNTS_BYTES: usize = SPACING_BYTES as usize - COUNTS_AT - size_of::<u32>();
const _: () = assert!(PAGE_BYTES + size_of::<RegionTable>() <= COUNTS_AT);
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
/// in it, its regions, and what it counted.
pub fn keep(node_file: &Path, cell: &RankCell, regions: &RegionTable, counts: &Counts) -> io::Result<()> {
    write_cell(node_file, cell)?;
    let page = place_of(cell.rank.load(Relaxed));
    within_file_limit(page + SPACING_BYTES)?;
    let file = open_own(node_file, false)?;
    file.write_all_at(&regions.to_bytes(), page + PAGE_BYTES as u64)?;
    // All where there is room; else those of its own threads, and without regions if need be.
    let own = || counts.only(|row| row.cpu.is_none());
    let whole = || counts.only(|row| row.cpu.is_none() && row.region.is_none());
    let tries: [&dyn Fn() -> Counts; 3] = [&|| counts.clone(), &own, &whole];
    for counts in tries {
        let counts = wire::encode(&counts()).map_err(io::Error::other)?;
        if counts.len() <= MOST_COUNTS_BYTES {
            let length = (counts.len() as u32).to_le_bytes();
            return file.write_all_at(&[&length[..], &counts].concat(), page + COUNTS_AT as u64);
        }
    }
    Ok(())
}

fn write_cell(node_file: &Path, cell: &RankCell) -> io::Result<()> {
    let rank = cell.rank.load(Relaxed);
    within_file_limit(place_of(rank) + PAGE_BYTES as u64)?;
    // Not created: the run may have been saved meanwhile.
    open_own(node_file, false)?.write_all_at(&cell.to_bytes(), place_of(rank))
}

/// The run is saved as a whole. What cannot be removed is not looked at beside the run's file.
pub fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}

fn place_of(rank: u32) -> u64 {
    (u64::from(rank) + 1) * SPACING_BYTES
}

/// One file a clock: hosts of one name may have several.
fn file_name(key: &NodeKey) -> String {
    format!("{}-{:016x}", key.hostname.replace('/', "_"), key.digest())
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
    within_file_limit(bytes.len() as u64)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Phase;
    use crate::clock;
    use crate::counters::probe::Scripted;
    use crate::counters::table::CounterTable;
    use crate::fabric::Threads;
    use crate::meeting::Meeting;
    use crate::record::{End, Mode};
    use crate::session::{Beginning, Memory, Session};

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

    fn session(folder: &Path, fabric: Threads) -> Session<'static, Threads, Scripted> {
        let spool = crate::spool::Spool::create().unwrap();
        assert!(spool.cell().claim());
        let beginning =
            Beginning { began_ns: clock::monotonic_ns(), pings: false, meeting: Meeting::default() };
        let (cell, regions) = (spool.cell(), spool.regions());
        let memory = Memory { cell, regions, counters: CounterTable::default() };
        let mut session = Session::open(memory, Scripted::default(), fabric, beginning);
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

    #[test]
    fn a_page_about_no_rank_or_about_one_again_is_left_out() {
        let out = Folder::new("pages");
        let place = Place::new(&out.0, &header("pages")).unwrap();
        begin(&place, 2).unwrap();
        let sessions: Vec<_> =
            Threads::new(3).into_iter().map(|fabric| session(&place.folder, fabric)).collect();
        // Rank 2 of a job of two; and rank 0's page where rank 1's should be.
        for session in &sessions {
            session.note_abort(3);
        }
        let files = list(&place.folder).unwrap();
        let file = files.iter().find(|path| path.extension().is_some_and(|e| e == "node")).unwrap();
        let lost = || read(&place.folder).unwrap().lost.iter().map(|lost| lost.rank).collect::<Vec<_>>();
        let write =
            |bytes: &[u8], rank| open_own(file, false).unwrap().write_all_at(bytes, place_of(rank)).unwrap();
        let pages = fs::read(file).unwrap();
        let page = |rank: u32| pages[place_of(rank) as usize..][..PAGE_BYTES].to_vec();
        let started = |mut page: Vec<u8>| {
            let cell = RankCell::from_bytes(&page).unwrap();
            cell.set_phase(Phase::Started);
            page[..TEMPLATE_AT].copy_from_slice(&cell.to_bytes());
            page
        };
        (0..3).for_each(|rank| write(&started(page(rank)), rank));
        assert_eq!(lost(), [0, 1]);
        write(&started(page(0)), 1);
        assert_eq!(lost(), [0]);
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
