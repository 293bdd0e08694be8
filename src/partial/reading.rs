//! What is left of a run, read again: by whoever reports it, and of anybody's folder.

use super::{
    COUNTS_AT, HOST_SUFFIX, NODE_SUFFIX, PAGE_BYTES, RUN_FILE, SPACING_BYTES, SUFFIX, TEMPLATE_AT, list,
};
use crate::cell::{self, Phase, RankCell};
use crate::counters::counts::Counts;
use crate::node::NodeKey;
use crate::part::Part;
use crate::record::{End, RankRecord, Run, RunHeader};
use crate::region_table::RegionTable;
use crate::runfile::{RunFileError, VERSION};
use crate::wire;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

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
    let mut known = Known::default();
    let mut entries = list(folder).map_err(RunFileError::Unreadable)?;
    entries.sort();
    for path in entries.iter().filter(|path| path.extension().is_some_and(|e| e == &NODE_SUFFIX[1..])) {
        let host = read_regular(&path.with_extension(&HOST_SUFFIX[1..])).unwrap_or_default();
        // One node's damage is not the run's.
        let _ = each_page(path, |page| {
            of_others |= cell::layout_of(page[..8].try_into().unwrap_or_default()) != Some(RankCell::LAYOUT);
            run.add_page(page, &host, &mut known);
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

/// What the rank of a page counted.
fn counts(page: &[u8]) -> Option<Counts> {
    let (length, rest) = page.get(COUNTS_AT..)?.split_first_chunk::<4>()?;
    wire::decode(rest.get(..u32::from_le_bytes(*length) as usize)?).ok()
}

/// What pages so far were about.
#[derive(Default)]
struct Known {
    nodes: HashMap<NodeKey, u32>,
    ranks: HashSet<u32>,
}

impl Run {
    /// What a page says; nothing where it is none. Nor of one about a rank that there is not or that another page
    /// was about: damage of a page's is not the run's.
    fn add_page(&mut self, page: &[u8], host: &[u8], known: &mut Known) {
        let Some((cell, mut part)) = parse(page) else { return };
        let key = part.nodes[0].key.clone();
        let template = part.ranks.remove(0);
        let rank = cell.rank.load(Relaxed);
        if rank != template.rank || rank >= self.size || !known.ranks.insert(rank) {
            return;
        }
        let nodes = &mut known.nodes;
        part.regions = RegionTable::from_bytes(&page[PAGE_BYTES..COUNTS_AT]).regions(template.rank);
        // Counts that nobody can read are none.
        part.counts = counts(page).filter(|counts| counts.is_sound(self.size)).unwrap_or_default();
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
    // More than there are ranks in any job, where every place has a page; holes cost one look in all, but where the
    // file system does not know them.
    const MOST_LOOKS: usize = 1 << 22;
    let file = open_regular(path)?;
    let mut page = vec![0; SPACING_BYTES as usize];
    let mut at = 0i64;
    for _ in 0..MOST_LOOKS {
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
