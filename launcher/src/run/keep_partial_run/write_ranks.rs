//! The ranks whose shared memory a leader has, and how it writes their data to disk.

use super::{FIRST, messages_to_carrier};
use pmmpi::RankId;
use pmmpi::partial::{self, About, CarrierNote, Frame, KeptRank, NodeFile};
use pmmpi::record::run_file::EXTENSION;
use pmmpi::record::{RunHeader, wire};
use pmmpi::session::launcher_request::{Keep, LauncherRequest};
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

/// For a rank whose launcher ended after the rank had sent its record: if rank 0 has not saved the run within this
/// time, it never will.
const SAVED_WITHIN: Duration = Duration::from_secs(2);
/// How much later a rank that has reached t2 is carried: the others will probably reach t2 soon, too.
const LATER: Duration = Duration::from_secs(1);

/// One rank of the node.
pub struct Member {
    shared: Arc<SharedMemory>,
    room: Option<File>,
    /// To its launcher; `None` if the launcher has ended or is this process.
    pub connection: Option<UnixStream>,
    told: Option<CarrierNote>,
    /// When the leader first saw that it had reached t1.
    seen: Option<Instant>,
    pub end: MemberEnd,
    /// Hash of the data that was carried last.
    carried: Option<u64>,
}

/// What a leader knows of a rank's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberEnd {
    NotYet,
    /// Its launcher ended after the rank had sent its record. The leader does not know whether rank 0 received it:
    /// if the run is not saved at this time, the rank is carried.
    InDoubt(Instant),
    /// It ended badly. Its launcher, if it is another process, waits for an answer.
    Badly,
    /// Nothing remains to do for it.
    Done,
}

/// All ranks of a leader.
pub struct Members {
    pub all: Vec<Member>,
    /// The leader's own header. Each other launcher has one in its shared memory.
    header: RunHeader,
    /// True if no other launcher can connect: other ranks of the node may have leaders of their own.
    alone: bool,
    /// One per folder. There are several if ranks of one launch are separate MPI jobs.
    files: Vec<NodeFile>,
}

impl Member {
    /// The rank of this process's launcher.
    pub fn own(shared: Arc<SharedMemory>, room: Option<File>) -> Self {
        Self { shared, room, connection: None, told: None, seen: None, end: MemberEnd::NotYet, carried: None }
    }

    /// The rank of another launcher.
    pub fn of(shared: File, room: Option<File>, connection: UnixStream) -> io::Result<Self> {
        Ok(Self::own(Arc::new(SharedMemory::from_file(shared)?), room).with(connection))
    }

    /// Sets the connection to its launcher.
    pub fn with(self, connection: UnixStream) -> Self {
        Self { connection: Some(connection), ..self }
    }

    /// The descriptors of its shared memory and its reserved file.
    pub fn descriptors(&self) -> Vec<RawFd> {
        let shared = self.shared.file().as_raw_fd();
        std::iter::once(shared).chain(self.room.as_ref().map(AsRawFd::as_raw_fd)).collect()
    }

    pub fn phase(&self) -> Phase {
        self.shared.live().phase()
    }

    pub fn is_rank_0(&self) -> bool {
        self.shared.live().rank() == RankId(0)
    }

    /// The number of ranks in its job.
    pub fn size(&self) -> u32 {
        self.shared.live().size.load(Relaxed)
    }

    /// Notes that its launcher has ended. If the launcher had not finished with its rank, the rank ended badly or is in
    /// doubt.
    pub fn has_gone(&mut self) {
        self.connection = None;
        if self.shared.live().is_settled() {
            self.room = None; // the file may be a saved run by now
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

    /// True if its run has lasted longer than `FIRST` and is not saved yet: the rank still works, or has waited
    /// long for other ranks.
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

    /// True if the rank has reported `folder` as the folder of its partial run.
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
        let request: LauncherRequest = wire::decode(&self.shared.take(Blob::Request).ok()?).ok()?;
        request.keep
    }
}

impl Members {
    pub fn new(own: Member, header: RunHeader, alone: bool) -> Self {
        Self { all: vec![own], header, alone, files: Vec::new() }
    }

    /// True if a rank ended badly, so that its data must be carried at once.
    pub fn any_ended(&self) -> bool {
        self.all.iter().any(|member| member.end == MemberEnd::Badly)
    }

    /// When to call `leave_no_doubt` next.
    pub fn in_doubt_until(&self) -> Option<Instant> {
        let until = |member: &Member| match member.end {
            MemberEnd::InDoubt(until) => Some(until),
            _ => None,
        };
        self.all.iter().filter_map(until).min()
    }

    /// Decides about each rank in doubt whose time is over: its run is saved, or the rank ended badly.
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

    /// Notes which ranks have reached t1; true if any has.
    pub fn see(&mut self, now: Instant) -> bool {
        for member in self.all.iter_mut().filter(|member| member.phase() >= Phase::Started) {
            member.seen.get_or_insert(now);
        }
        self.all.iter().any(|member| member.seen.is_some())
    }

    /// Carries changed data of runs in which a rank still works. Ignores errors: the next time may succeed.
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

    /// Removes what was written for runs that rank 0 has saved meanwhile.
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

    /// Drops finished members, because a rank may start thousands of programs. Keeps the first member, which
    /// belongs to the launcher that started this process.
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

    /// True if the rank of a connected launcher has not been carried yet: it may reach t1 at any time.
    pub fn any_fresh(&self) -> bool {
        self.all.iter().any(|member| member.connection.is_some() && member.carried.is_none())
    }

    /// Carries the data of ranks that ended badly and other changed data of the same runs, and answers the waiting
    /// launchers. Gives the result for the first member, if it is among them.
    pub fn carry_ended(&mut self) -> Option<Result<(), String>> {
        let mut own = None;
        for folder in self.folders() {
            let is_its = |member: &Member| member.end == MemberEnd::Badly && member.is_of(&folder);
            if !self.all.iter().any(is_its) {
                continue;
            }
            let kept = match is_saved(&folder) {
                // The launcher that saved it was killed before it could remove the partial run.
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
                    messages_to_carrier::reply(connection, &kept);
                }
            }
        }
        // These ranks reported no folder, so there is no data.
        for member in self.all.iter_mut().filter(|member| member.end == MemberEnd::Badly) {
            member.end = MemberEnd::Done;
            if let Some(connection) = &member.connection {
                messages_to_carrier::reply(
                    connection,
                    &Err("pmmpi-carrier found no data in the shared memory of this rank".to_owned()),
                );
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

    /// Carries for the last time, with a second attempt after errors that it can correct.
    fn carry_surely(&mut self, folder: &Path) -> Result<(), String> {
        let mut kept = self.carry(folder);
        match kept.as_ref().map_err(io::Error::raw_os_error) {
            // This job will not save a whole run, so release the disk space reserved for it. Only a file without a name
            // and without data is safe to release.
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

    /// Adds one frame to the file in `folder`, if there is new data.
    fn carry(&mut self, folder: &Path) -> io::Result<()> {
        let at = self.files.iter().position(|file| file.folder() == folder);
        let at = at.unwrap_or_else(|| {
            let alone = self.alone.then(|| self.all[0].shared.live().rank());
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

/// The description of the run in `folder`, from the launcher of its lowest rank here.
fn about(all: &[Member], own: &RunHeader, folder: &Path) -> Option<About> {
    let its = all.iter().filter(|member| member.is_of(folder));
    let lowest = its.min_by_key(|member| member.shared.live().rank())?;
    let own =
        || Keep { folder: folder.to_owned(), header: own.clone(), asked: Vec::new(), expected: Vec::new() };
    About::of(&lowest.shared, lowest.keep().unwrap_or_else(own), folder)
}
