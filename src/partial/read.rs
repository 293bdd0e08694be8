//! Reads a partial run for reports. The folder may be any user's.

use super::frame_with_checksum::FoundFrame;
use super::{About, Frame, KeptRank, NODE_SUFFIX, OLD_RUN_FILE, SUFFIX, list};
use crate::ids::{NodeId, RankId};
use crate::node::NodeKey;
use crate::record::run_file::RunFileError;
use crate::record::{End, LostRank, Part, RankRecord, Run, wire};
use crate::regions::Whereabouts;
use crate::session::live_record::{self, LiveRecord, Phase};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The partial run in such a folder.
pub fn read(folder: &Path) -> Result<Run, RunFileError> {
    let mut entries = list(folder).map_err(RunFileError::Unreadable)?;
    entries.sort();
    if let Some(old) = entries.iter().find(|path| path.file_name().is_some_and(|name| name == OLD_RUN_FILE)) {
        return Err(of_old_version(old));
    }
    let mut left = Left::default();
    let is_node = |path: &&Path| path.extension().is_some_and(|e| e == &NODE_SUFFIX[1..]);
    for path in entries.iter().map(|path| path.as_path()).filter(is_node) {
        // Damage to one node's file does not make the run unreadable.
        match read_regular(path) {
            Ok(bytes) => left.read(&bytes),
            Err(e) => left.fail(RunFileError::Unreadable(e)),
        }
    }
    let run = left.into_run()?;
    let named = format!("{}{SUFFIX}", run.header.run_id);
    if folder.file_name() != Some(named.as_ref()) {
        return Err(RunFileError::Damaged(format!(
            "its name does not match its run: the folder of this run must have the name {named}"
        )));
    }
    if run.is_sound() {
        Ok(run)
    } else {
        Err(RunFileError::Damaged("its records contradict one another".into()))
    }
}

/// The error for a folder with a file name that only older versions used.
fn of_old_version(file: &Path) -> RunFileError {
    match read_regular(file) {
        Err(e) => RunFileError::Unreadable(e),
        Ok(bytes) if bytes.first_chunk().is_some_and(|word| live_record::layout_of(*word).is_some()) => {
            RunFileError::OtherVersion
        }
        Ok(_) => RunFileError::Foreign,
    }
}

/// The data of a run that were found so far.
#[derive(Default)]
struct Left {
    about: Option<About>,
    /// The last data of each rank, and the index of their node's `hosts` entry.
    ranks: HashMap<RankId, (Kept, usize)>,
    hosts: Vec<Vec<u8>>,
    gathered: Vec<Part>,
    /// Why data may be missing.
    failure: Option<RunFileError>,
}

/// The decoded data of a rank.
struct Kept {
    live: LiveRecord,
    part: Part,
    whereabouts: Option<Whereabouts>,
}

impl Kept {
    fn of(kept: KeptRank) -> Option<Self> {
        let live = LiveRecord::from_bytes(&kept.live)?;
        let (nodes, ranks) = (&kept.part.nodes, &kept.part.ranks);
        (nodes.len() == 1 && ranks.len() == 1 && ranks[0].rank == live.rank()).then_some(Self {
            live,
            part: kept.part,
            whereabouts: kept.whereabouts,
        })
    }

    /// How complete the data are.
    fn worth(&self) -> (Phase, bool) {
        (self.live.phase(), self.live.end().is_some())
    }
}

impl Left {
    fn fail(&mut self, failure: RunFileError) {
        self.failure.get_or_insert(failure);
    }

    /// Reads one node's file.
    fn read(&mut self, mut bytes: &[u8]) {
        if bytes.is_empty() {
            return self.fail(RunFileError::Empty);
        }
        if bytes.first_chunk().is_none_or(|word| live_record::layout_of(*word).is_none()) {
            self.fail(RunFileError::Foreign);
        }
        let host = self.hosts.len();
        self.hosts.push(Vec::new());
        while let Some((found, rest)) = Frame::find(bytes) {
            match found {
                FoundFrame::Frame(frame) => self.add(*frame, host),
                FoundFrame::OtherVersion => self.fail(RunFileError::OtherVersion),
                FoundFrame::Newer(version) => self.fail(RunFileError::Newer { version }),
            }
            bytes = rest;
        }
    }

    fn add(&mut self, frame: Frame, host: usize) {
        if let Some(about) = frame.about
            && self.about.as_ref().is_none_or(|known| about.rank < known.rank)
        {
            self.about = Some(about);
        }
        if !frame.host.is_empty() {
            self.hosts[host] = frame.host;
        }
        for kept in frame.ranks.into_iter().filter_map(Kept::of) {
            let rank = kept.part.ranks[0].rank;
            let better = self.ranks.get(&rank).is_none_or(|(known, _)| kept.worth() >= known.worth());
            if better {
                self.ranks.insert(rank, (kept, host));
            }
        }
        if !frame.gathered.is_empty() {
            // Parts that cannot be read are left out: the file also has the data of each rank.
            let parts = wire::split(&frame.gathered).unwrap_or_default();
            let parts: Result<Vec<Part>, _> = parts.iter().map(|part| wire::decode(part)).collect();
            self.gathered = parts.unwrap_or_default();
        }
    }

    fn into_run(self) -> Result<Run, RunFileError> {
        let Self { about, mut ranks, hosts, gathered, failure } = self;
        let Some(About { size, header, asked, expected, .. }) = about else {
            return Err(failure.unwrap_or(RunFileError::Empty));
        };
        let mut run = Run::empty(header, size);
        (run.asked, run.expected) = (asked, expected);
        let mut nodes: HashMap<NodeKey, NodeId> = HashMap::new();
        let is_whole =
            |part: &Part| part.ranks.iter().all(|record| record.rank.0 < size) && part.counts.is_sound(size);
        for part in gathered.into_iter().filter(is_whole) {
            for record in &part.ranks {
                ranks.remove(&record.rank);
            }
            // Facts that cannot be read are left out.
            run.add(part, &mut nodes).unwrap_or_default();
        }
        let mut ranks: Vec<_> = ranks.into_iter().filter(|(rank, _)| rank.0 < size).collect();
        ranks.sort_by_key(|(rank, _)| *rank);
        for (_, (kept, host)) in ranks {
            run.add_kept(kept, &hosts[host], &mut nodes);
        }
        run.sort();
        Ok(run)
    }
}

impl Run {
    /// Adds the data of one rank.
    fn add_kept(&mut self, kept: Kept, host: &[u8], nodes: &mut HashMap<NodeKey, NodeId>) {
        let Kept { live, mut part, whereabouts } = kept;
        let key = part.nodes[0].key.clone();
        let template = part.ranks.remove(0);
        if !part.counts.is_sound(self.size) {
            part.counts = Default::default();
        }
        if live.phase() >= Phase::Released {
            let end = live.end().unwrap_or(End::Finalized);
            part.ranks.push(RankRecord { end, node: NodeId(0), ..live.record(&template) });
        }
        if !nodes.contains_key(&key) {
            nodes.insert(key.clone(), self.add_node(key.clone()));
        }
        let node = nodes[&key];
        if self.nodes[node.index()].facts.is_none() {
            // Facts that cannot be read are left out.
            self.describe(node, host).unwrap_or_default();
        }
        // This decodes nothing, so it cannot fail.
        self.add(part, nodes).unwrap_or_default();
        let lost = live.lost(node);
        self.lost.extend(lost.map(|lost| LostRank { whereabouts, ..lost }));
    }
}

/// Reports read any user's folder: follows no link, waits for no pipe, and stops at a size limit.
fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut bytes = Vec::new();
    file.take(wire::LIMIT_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
