//! The ranks whose shared memory a leader has, and how they get to the disk.

use super::{FIRST, handing};
use pmmpi::partial::{self, About, CarrierNote, Frame, KeptRank, NodeFile};
use pmmpi::record::runfile::EXTENSION;
use pmmpi::record::{RunHeader, wire};
use pmmpi::session::instructions::{AgentInstructions, Keep};
use pmmpi::session::live_record::Phase;
use pmmpi::session::shared_memory::{Blob, SharedMemory};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// A rank has sent what it measured, and then its launcher has gone: rank 0 has saved the run within this time, or never will.
const SAVED_WITHIN: Duration = Duration::from_secs(2);
/// How much longer a rank that has come to t2 is left alone: others are about to come there, too.
const LATER: Duration = Duration::from_secs(1);

/// One rank of the node.
pub struct Member {
    shared: Arc<SharedMemory>,
    room: Option<File>,
    /// To its launcher; `None` where that has gone, or is this process.
    pub connection: Option<UnixStream>,
    told: Option<CarrierNote>,
    /// When it was first seen to have come to t1.
    seen: Option<Instant>,
    /// Nothing more comes of it.
    pub end: MemberEnd,
    /// What was carried of it last.
    carried: Option<u64>,
}

/// What a leader knows of a rank's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberEnd {
    NotYet,
    /// Its launcher has gone after the rank had sent what it measured. Whether rank 0 received it is not known: if the run is
    /// not saved at this time, the rank is carried.
    InDoubt(Instant),
    /// Its launcher waits for an answer, if it is another one.
    Badly,
    /// What was to be done about it is done.
    Done,
}

/// All that a leader has.
pub struct Members {
    pub all: Vec<Member>,
    /// The leader's own; each rank's launcher has one in its shared memory.
    header: RunHeader,
    /// No other rank of the node can come: others may have leaders of their own.
    alone: bool,
    /// One in each folder. There are several where ranks that were started together are jobs of their own.
    files: Vec<NodeFile>,
}

impl Member {
    /// The rank of this launcher.
    pub fn own(shared: Arc<SharedMemory>, room: Option<File>) -> Self {
        Self { shared, room, connection: None, told: None, seen: None, end: MemberEnd::NotYet, carried: None }
    }

    /// The rank of another one.
    pub fn of(shared: File, room: Option<File>, connection: UnixStream) -> io::Result<Self> {
        Ok(Self::own(Arc::new(SharedMemory::from_file(shared)?), room).with(connection))
    }

    /// Its launcher is at the other end of this.
    pub fn with(self, connection: UnixStream) -> Self {
        Self { connection: Some(connection), ..self }
    }

    /// Those of its files.
    pub fn descriptors(&self) -> Vec<RawFd> {
        let shared = self.shared.file().as_raw_fd();
        std::iter::once(shared).chain(self.room.as_ref().map(AsRawFd::as_raw_fd)).collect()
    }

    /// How far its rank has come.
    pub fn phase(&self) -> Phase {
        self.shared.live().phase()
    }

    /// It has, or is to have, what all ranks measured.
    pub fn is_rank_0(&self) -> bool {
        self.shared.live().rank.load(Relaxed) == 0
    }

    /// Ranks in its job.
    pub fn size(&self) -> u32 {
        self.shared.live().size.load(Relaxed)
    }

    /// Its launcher has: killed or in doubt, if it has not said that it is done with its rank.
    pub fn has_gone(&mut self) {
        self.connection = None;
        if self.shared.live().is_settled() {
            self.room = None; // what is there may be a whole run by now
        }
        if self.end != MemberEnd::NotYet || self.shared.live().is_settled() {
            return;
        }
        self.end = match self.phase() {
            Phase::Fresh | Phase::Claimed => MemberEnd::NotYet,
            Phase::Gathered if self.gathered().is_empty() => {
                MemberEnd::InDoubt(Instant::now() + SAVED_WITHIN)
            }
            _ => MemberEnd::Badly,
        };
    }

    /// Its run has lasted for longer than the first moment, and cannot have been saved: it works, or has long waited
    /// for another node's ranks.
    fn is_to_be_carried(&self, now: Instant) -> bool {
        let least = match self.phase() {
            Phase::Started => FIRST,
            Phase::Stopped => FIRST + LATER,
            _ => return false,
        };
        self.seen.is_some_and(|seen| now >= seen + least)
    }

    fn gathered(&self) -> Vec<u8> {
        self.shared.take(Blob::Gathered).unwrap_or_default()
    }

    fn folder(&mut self) -> Option<PathBuf> {
        if self.told.is_none() && self.phase() >= Phase::Started {
            self.told = CarrierNote::read(&self.shared);
        }
        self.told.as_ref().map(|told| told.folder.clone())
    }

    /// Its run is kept there, as far as that is known.
    fn is_of(&self, folder: &Path) -> bool {
        self.told.as_ref().is_some_and(|told| told.folder == folder)
    }

    fn kept(&self) -> Option<(KeptRank, u64)> {
        let kept = KeptRank::of(&self.shared, self.told.as_ref()?)?;
        let mut hasher = DefaultHasher::new();
        wire::encode(&kept).ok()?.hash(&mut hasher);
        Some((kept, hasher.finish()))
    }

    fn keep(&self) -> Option<Keep> {
        let instructions: AgentInstructions =
            wire::decode(&self.shared.take(Blob::Instructions).ok()?).ok()?;
        instructions.keep
    }
}

impl Members {
    pub fn new(own: Member, header: RunHeader, alone: bool) -> Self {
        Self { all: vec![own], header, alone, files: Vec::new() }
    }

    /// True where something is to be carried at once.
    pub fn any_ended(&self) -> bool {
        self.all.iter().any(|member| member.end == MemberEnd::Badly)
    }

    /// When `leave_no_doubt` has to be called next.
    pub fn in_doubt_until(&self) -> Option<Instant> {
        let until = |member: &Member| match member.end {
            MemberEnd::InDoubt(until) => Some(until),
            _ => None,
        };
        self.all.iter().filter_map(until).min()
    }

    /// Decides about each rank in doubt whose time has come: its run is saved, or the rank is to be carried.
    pub fn leave_no_doubt(&mut self, now: Instant) {
        for member in &mut self.all {
            if matches!(member.end, MemberEnd::InDoubt(until) if now >= until) {
                member.end = match member.folder() {
                    Some(folder) if !is_saved(&folder) => MemberEnd::Badly,
                    _ => MemberEnd::Done,
                };
            }
        }
    }

    /// Notes which ranks have come to t1; true where any has.
    pub fn see(&mut self, now: Instant) -> bool {
        for member in self.all.iter_mut().filter(|member| member.phase() >= Phase::Started) {
            member.seen.get_or_insert(now);
        }
        self.all.iter().any(|member| member.seen.is_some())
    }

    /// What has changed of runs in which a rank still works. What fails may go well the next time.
    pub fn carry_living(&mut self, now: Instant) {
        self.see(now);
        for folder in self.folders() {
            if !self.all.iter().any(|member| member.is_of(&folder) && member.is_to_be_carried(now)) {
                continue;
            }
            let _ = self.carry(&folder);
        }
        self.withdraw_saved();
    }

    /// Takes back what was written of runs that were saved as a whole meanwhile.
    pub fn withdraw_saved(&mut self) {
        let Self { all, files, .. } = self;
        for file in files.iter_mut().filter(|file| file.is_begun()) {
            let mut its = all.iter().filter(|member| member.is_of(file.folder()));
            if its.all(|member| member.phase() >= Phase::Gathered) && is_saved(file.folder()) {
                file.withdraw();
            }
        }
        self.forget();
    }

    /// Lets go what no more is to be done about: a rank may start thousands of programs. The first member is this process's
    /// own launcher.
    fn forget(&mut self) {
        let Self { all, files, .. } = self;
        let is_begun =
            |member: &Member| files.iter().any(|file| file.is_begun() && member.is_of(file.folder()));
        let mut at = 0;
        all.retain(|member| {
            at += 1;
            let is_over = member.connection.is_none()
                && !matches!(member.end, MemberEnd::Badly | MemberEnd::InDoubt(_));
            at == 1 || !is_over || is_begun(member)
        });
        files.retain(NodeFile::is_begun);
    }

    /// True where a launcher's rank has not been carried: it may come to t1 at any time.
    pub fn any_fresh(&self) -> bool {
        self.all.iter().any(|member| member.connection.is_some() && member.carried.is_none())
    }

    /// What ranks left that ended badly, and what else has changed; tells those who wait. Gives what became of the
    /// first one, if that was among them.
    pub fn carry_ended(&mut self) -> Option<Result<(), String>> {
        let mut own = None;
        for folder in self.folders() {
            let is_its = |member: &Member| member.end == MemberEnd::Badly && member.is_of(&folder);
            if !self.all.iter().any(is_its) {
                continue;
            }
            let kept = match is_saved(&folder) {
                // By a launcher that was killed before it had done all.
                true => {
                    partial::remove(&folder);
                    Ok(())
                }
                false => self.carry_surely(&folder),
            };
            for (at, member) in self.all.iter_mut().enumerate().filter(|(_, member)| is_its(member)) {
                member.end = MemberEnd::Done;
                if at == 0 {
                    own = Some(kept.clone());
                }
                if let Some(connection) = &member.connection {
                    handing::reply(connection, &kept);
                }
            }
        }
        // Of one that said nothing there is nothing.
        for member in self.all.iter_mut().filter(|member| member.end == MemberEnd::Badly) {
            member.end = MemberEnd::Done;
            if let Some(connection) = &member.connection {
                handing::reply(connection, &Err("nothing is known of its rank".to_owned()));
            }
        }
        own
    }

    fn folders(&mut self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = self.all.iter_mut().filter_map(Member::folder).collect();
        folders.sort();
        folders.dedup();
        folders
    }

    /// The last time that there is something to carry.
    fn carry_surely(&mut self, folder: &Path) -> Result<(), String> {
        let mut kept = self.carry(folder);
        match kept.as_ref().map_err(io::Error::raw_os_error) {
            // No whole run will come of this job, so the room that was set aside for it is free: of a file without a
            // name and without a byte.
            Err(Some(libc::ENOSPC | libc::EDQUOT)) => {
                let is_empty = |room: &&File| room.metadata().is_ok_and(|m| m.nlink() == 0 && m.len() == 0);
                let its = self.all.iter().filter(|member| member.is_of(folder));
                let rooms = its.filter_map(|member| member.room.as_ref()).filter(is_empty);
                let freed = rooms.map(|room| room.set_len(0));
                if freed.filter(Result::is_ok).count() > 0 {
                    kept = self.carry(folder);
                }
            }
            // Somebody removed the folder.
            Err(Some(libc::ENOENT))
                if self.files.iter().any(|file| file.folder() == folder && file.is_begun()) =>
            {
                self.files.retain(|file| file.folder() != folder);
                kept = self.carry(folder);
            }
            _ => {}
        }
        kept.map_err(|e| e.to_string())
    }

    /// One frame to the file in `folder`, if there is something new.
    fn carry(&mut self, folder: &Path) -> io::Result<()> {
        let at = self.files.iter().position(|file| file.folder() == folder);
        let at = at.unwrap_or_else(|| {
            let alone = self.alone.then(|| self.all[0].shared.live().rank.load(Relaxed));
            self.files.push(NodeFile::of(folder, alone));
            self.files.len() - 1
        });
        let kept = self.all.iter().map(|member| member.kept().filter(|_| member.is_of(folder)));
        let kept: Vec<_> = kept.collect();
        let is_new = |(member, kept): (&Member, &Option<(KeptRank, u64)>)| {
            kept.as_ref().is_some_and(|(_, hash)| member.carried != Some(*hash))
        };
        let ended = self.all.iter().filter(|member| member.is_of(folder) && member.end == MemberEnd::Badly);
        let gathered = ended.map(Member::gathered).find(|gathered| !gathered.is_empty()).unwrap_or_default();
        if self.files[at].is_begun() && gathered.is_empty() && !self.all.iter().zip(&kept).any(is_new) {
            return Ok(());
        }
        let Self { all, header, files, .. } = self;
        let node = || all.iter().filter_map(|member| member.shared.take(Blob::Node).ok());
        let frame = |whole: bool| Frame {
            about: whole.then(|| about(all, header, folder)).flatten(),
            host: whole.then(|| node().find(|node| !node.is_empty())).flatten().unwrap_or_default(),
            ranks: all
                .iter()
                .zip(&kept)
                .filter(|(member, kept)| whole || is_new((member, kept)))
                .filter_map(|(_, kept)| kept.as_ref().map(|(kept, _)| kept.clone()))
                .collect(),
            gathered: gathered.clone(),
        };
        files[at].add(frame)?;
        for (member, kept) in self.all.iter_mut().zip(kept) {
            member.carried = kept.map(|(_, hash)| hash).or(member.carried);
        }
        Ok(())
    }
}

fn is_saved(folder: &Path) -> bool {
    folder.with_extension(EXTENSION).exists()
}

/// Whose run is kept in `folder`, as the launcher of the lowest rank here has it.
fn about(all: &[Member], own: &RunHeader, folder: &Path) -> Option<About> {
    let its = all.iter().filter(|member| member.is_of(folder));
    let lowest = its.min_by_key(|member| member.shared.live().rank.load(Relaxed))?;
    let own = || Keep { folder: folder.to_owned(), header: own.clone(), asked: Vec::new() };
    About::of(&lowest.shared, lowest.keep().unwrap_or_else(own), folder)
}
