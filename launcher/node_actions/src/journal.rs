//! The journal has a line of JSON before each act (the intent) and a line after it (the outcome). pmmpi waits until
//! each line is on disk. A further finding on a marked node is one line, because there is no act.
//!
//! An intent without an outcome shows the next run what a killed pmmpi was doing. If a kill or a full disk interrupts
//! the write of a line, the line has no end. No act followed such a line, so the next run ignores it. The journal is
//! also the lock (flock).
//!
//! A journal belongs to one cluster: a node of another cluster may have the same name, and would seem to have the marks
//! that the journal has.

mod cluster;

use crate::cause::MarkCause;
use crate::decide;
use crate::error::{Error, ToolError};
use crate::measurement::Measurement;
use crate::node_state::NodeState;
use crate::one_change::Act;
use crate::own_marks::OwnMarks;
use crate::scontrol::{ListedNodes, Slurm};
use pmmpi::node::NodeKey;
use pmmpi::record::civil_from_days;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The version of the lines.
const VERSION: u32 = 1;
/// No line of pmmpi is longer.
const MOST_LINE_BYTES: u64 = 1 << 20;
/// Room for an intent and its outcome, and for the name of the cluster before them.
const RESERVED_BYTES: u64 = 64 << 10;
/// How long to wait for the lock.
const PATIENCE: Duration = Duration::from_millis(500);
/// Each journal begins with this. pmmpi does not write into files that begin with something else.
const MARK: &[u8] = b"{\"pmmpi_node_actions\":";

/// One line.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    pmmpi_node_actions: u32,
    /// UTC.
    time: String,
    #[serde(flatten)]
    entry: Entry,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// A run has the lock.
    Begin {
        process: u32,
        host: String,
        user: u32,
        /// Slurm's name of the cluster, if it is known; older logs have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cluster: Option<String>,
    },
    /// An act follows, unless somebody changes the node first.
    Intent {
        id: u64,
        node: String,
        #[serde(flatten)]
        act: Act,
        /// Why, if it is not the text of the mark; older logs have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// What found this, for a mark; older logs have none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        found_by: Vec<Measurement>,
    },
    /// A further finding on a node that has this mark: there is no act. Slurm keeps showing the first reason.
    Finding {
        node: String,
        #[serde(flatten)]
        act: Act,
        reason: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        found_by: Vec<Measurement>,
    },
    /// The result of an intent.
    Outcome {
        id: u64,
        node: String,
        result: Result,
        /// More about the result, for example an error.
        note: Option<String>,
        /// The node directly before the act; `None` after a kill.
        before: Option<Box<NodeState>>,
        /// The node after the act; `None` if there was no act.
        after: Option<Box<NodeState>>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Result {
    /// The node changed as wanted.
    Done,
    /// The node's state changed after the intent, so there was no act.
    Skipped,
    /// The node did not change as wanted.
    Failed,
    /// After a kill: the node has changed as wanted.
    FoundDone,
    /// After a kill: the node has not changed as wanted.
    FoundNotDone,
    /// After a kill: Slurm no longer has the node.
    NodeGone,
}

/// An intent without outcome.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Open {
    pub id: u64,
    pub node: String,
    pub act: Act,
    pub reason: Option<String>,
    pub found_by: Vec<Measurement>,
    pub time: String,
}

impl Open {
    /// Notes the mark if the act is done. A mark that failed may be on the node, too.
    fn note(&self, result: Result, marks: &mut OwnMarks) {
        let (_, is_mark) = self.act.changes();
        let is_done = matches!(result, Result::Done | Result::FoundDone);
        if is_done || (is_mark && result == Result::Failed) {
            let reason = self.act.reason().or(self.reason.as_deref());
            let found_by = self.found_by.clone();
            let cause = reason.map(|reason| MarkCause { reason: reason.to_owned(), found_by });
            marks.note(&self.node, &self.act, cause);
        }
    }

    /// What became of the act, if the nodes are like this; `None` if pmmpi cannot read the node.
    pub(crate) fn result(&self, listed: &ListedNodes) -> Option<Result> {
        match listed.get(&self.node) {
            Some(Err(_)) => None,
            None => Some(Result::NodeGone),
            Some(Ok(state)) if self.act.is_done(state) => Some(Result::FoundDone),
            Some(Ok(_)) => Some(Result::FoundNotDone),
        }
    }
}

/// The locked journal.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    next_id: u64,
    open: Vec<Open>,
    marks: OwnMarks,
    /// The cluster that the journal gets before the next act, because it has marks, but names no cluster.
    next_cluster: Option<String>,
}

impl Journal {
    /// Locks the journal, or creates it, and writes that this run begins. Fails if it is that of another cluster, or
    /// perhaps of another one. If it has marks, but names no cluster, it gets this name only before an act.
    pub(crate) fn open(
        path: &Path,
        own: &std::result::Result<String, ToolError>,
    ) -> std::result::Result<Self, Error> {
        let fail = |what| move |reason| Error::Journal { path: path.to_owned(), what, reason };
        // Without NONBLOCK, opening a pipe could wait forever.
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o644).custom_flags(libc::O_NONBLOCK);
        let file = options.open(path).map_err(fail("open"))?;
        require_regular(path, &file)?;
        let is_locked = lock(&file).map_err(fail("lock"))?;
        let past = Past::read(path, &file)?;
        // First, because it is no use to wait for the lock of another cluster.
        past.require_cluster(path, own)?;
        if !is_locked {
            return Err(Error::Held { path: path.to_owned(), holder: past.last_begin });
        }
        let own = own.as_ref().ok().cloned();
        let (cluster, next_cluster) = match past.has_marks_of_unknown_cluster() {
            true => (None, own),
            false => (own, None),
        };
        let Past { next_id, open, marks, is_torn, .. } = past;
        let mut journal = Self { path: path.to_owned(), file, next_id, open, marks, next_cluster };
        if is_torn {
            journal.write(b"\n")?;
        }
        journal.append(begin(cluster))?;
        sync_folder(path).map_err(fail("save"))?;
        Ok(journal)
    }

    /// Fails if the journal has marks, names no cluster, and none of its marks is on a node of this cluster.
    pub(crate) fn require_seen_mark(&self, listed: &ListedNodes) -> std::result::Result<(), Error> {
        let Some(own) = &self.next_cluster else { return Ok(()) };
        cluster::require_seen_mark(&self.path, own, &self.marks, &self.open, listed)
    }

    /// Intents of earlier runs without outcome.
    pub(crate) fn open_intents(&self) -> &[Open] {
        &self.open
    }

    /// The marks that earlier runs have set.
    pub(crate) fn marks(&self) -> &OwnMarks {
        &self.marks
    }

    /// The same without a lock, and without writing: an act without outcome is as these nodes show it. Also the intents
    /// that stay open, because pmmpi cannot read their nodes. Both are empty if there is no journal.
    pub(crate) fn read_marks(
        path: &Path,
        listed: &ListedNodes,
    ) -> std::result::Result<(OwnMarks, Vec<Open>), Error> {
        let Some(Past { open, mut marks, .. }) = Past::of(path)? else { return Ok(Default::default()) };
        let mut still_open = Vec::new();
        for intent in open {
            match intent.result(listed) {
                Some(result) => intent.note(result, &mut marks),
                None => still_open.push(intent),
            }
        }
        Ok((marks, still_open))
    }

    /// Writes an intent, and returns its number. A mark has a cause.
    pub(crate) fn intend(
        &mut self,
        node: &str,
        act: &Act,
        cause: Option<&MarkCause>,
    ) -> std::result::Result<u64, Error> {
        let id = self.next_id;
        self.reserve().map_err(|reason| self.error("reserve room for", reason))?;
        if let Some(cluster) = self.next_cluster.clone() {
            self.append(begin(Some(cluster)))?;
            self.next_cluster = None;
        }
        // A drain and a comment have their reason themselves.
        let reason = cause.map(|cause| &cause.reason).filter(|reason| act.reason() != Some(reason.as_str()));
        self.append(Entry::Intent {
            id,
            node: node.to_owned(),
            act: act.clone(),
            reason: reason.cloned(),
            found_by: cause.map_or_else(Vec::new, |cause| cause.found_by.clone()),
        })?;
        self.next_id = id.saturating_add(1);
        Ok(id)
    }

    /// Writes this finding for each mark on the node, unless the log has it: each mark stays until a gate has measured all
    /// its findings.
    pub(crate) fn keep_further(
        &mut self,
        node: &NodeState,
        cause: &MarkCause,
    ) -> std::result::Result<(), Error> {
        for mark in self.marks.of_node(&node.name).to_vec() {
            let (action, _) = mark.act.changes();
            if decide::is_marked(&action, node) && !cause.is_covered_by(&mark.causes) {
                let MarkCause { reason, found_by } = cause.clone();
                self.append(Entry::Finding { node: node.name.clone(), act: mark.act, reason, found_by })?;
            }
        }
        Ok(())
    }

    /// Notes what an intent of an earlier run has become.
    pub(crate) fn close(&mut self, open: &Open, result: Result) {
        open.note(result, &mut self.marks);
    }

    /// Writes a line, and waits until it is on disk.
    pub(crate) fn append(&mut self, entry: Entry) -> std::result::Result<(), Error> {
        let line = Line { pmmpi_node_actions: VERSION, time: now(), entry };
        let mut text = serde_json::to_vec(&line).map_err(|reason| self.error("write", reason.into()))?;
        text.push(b'\n');
        if text.len() as u64 > MOST_LINE_BYTES {
            let why = "this entry is longer than 1 MiB: shorten the arguments of your program";
            return Err(self.error("write", io::Error::other(why)));
        }
        self.write(&text)
    }

    fn write(&mut self, bytes: &[u8]) -> std::result::Result<(), Error> {
        self.is_in_place().map_err(|reason| self.error("write", reason))?;
        self.file.write_all(bytes).map_err(|reason| self.error("write", reason))?;
        self.file.sync_all().map_err(|reason| self.error("save", reason))
    }

    /// Fails before the act if the disk is almost full, so that there is room for the outcome. Some network file
    /// systems cannot reserve room. On these, the disk may become full before the outcome; the next run then writes
    /// the outcome.
    fn reserve(&self) -> io::Result<()> {
        let end = self.file.metadata()?.len() as libc::off_t;
        // SAFETY: the file is open. KEEP_SIZE: the file does not become longer.
        let result = unsafe {
            libc::fallocate(
                self.file.as_raw_fd(),
                libc::FALLOC_FL_KEEP_SIZE,
                end,
                RESERVED_BYTES as libc::off_t,
            )
        };
        match io::Error::last_os_error() {
            reason if result != 0 && reason.kind() == io::ErrorKind::StorageFull => Err(reason),
            reason if result != 0 && reason.kind() == io::ErrorKind::QuotaExceeded => Err(reason),
            _ => Ok(()),
        }
    }

    /// Checks that the file is still there. If somebody (for example logrotate) moves or removes the file, the next
    /// pmmpi creates a new file, and the lock on the old file has no effect.
    fn is_in_place(&self) -> io::Result<()> {
        let (here, own) = (fs::metadata(&self.path)?, self.file.metadata()?);
        match (here.dev(), here.ino()) == (own.dev(), own.ino()) {
            true => Ok(()),
            false => Err(io::Error::other("somebody replaced the file while pmmpi used it")),
        }
    }

    fn error(&self, what: &'static str, reason: io::Error) -> Error {
        Error::Journal { path: self.path.clone(), what, reason }
    }

    /// The locked file.
    pub(crate) fn lock(&self) -> &File {
        &self.file
    }
}

/// What the journal has from earlier runs.
struct Past {
    next_id: u64,
    open: Vec<Open>,
    marks: OwnMarks,
    /// The last line has no end.
    is_torn: bool,
    last_begin: Option<String>,
    /// The names in the lines `begin`.
    clusters: BTreeSet<String>,
}

impl Past {
    /// That of this journal, without a lock. None if there is no journal.
    fn of(path: &Path) -> std::result::Result<Option<Self>, Error> {
        // Without NONBLOCK, opening a pipe could wait forever.
        let file = match File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path) {
            Ok(file) => file,
            Err(reason) if reason.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(reason) => return Err(Error::Journal { path: path.to_owned(), what: "open", reason }),
        };
        require_regular(path, &file)?;
        Self::read(path, &file).map(Some)
    }

    fn read(path: &Path, file: &File) -> std::result::Result<Self, Error> {
        let (mut open, mut next_id, mut last_begin) = (BTreeMap::new(), 1, None);
        let (mut marks, mut clusters) = (OwnMarks::default(), BTreeSet::new());
        let (mut line, mut has_mark, mut is_torn) = (Vec::new(), false, false);
        let mut reader = BufReader::new(file);
        loop {
            line.clear();
            let length = reader.by_ref().take(MOST_LINE_BYTES).read_until(b'\n', &mut line);
            let length =
                length.map_err(|reason| Error::Journal { path: path.to_owned(), what: "read", reason })?;
            if length == 0 {
                break;
            }
            has_mark = has_mark || line.starts_with(MARK);
            if !has_mark && !is_cut_mark(&line) {
                let why = "it is not a log of pmmpi; name a log of pmmpi, or a new file";
                return Err(Error::NoJournal(path.to_owned(), why.to_owned()));
            }
            is_torn = !line.ends_with(b"\n");
            // A line that a kill cut is not JSON.
            let Ok(value) = serde_json::from_slice::<serde_json::Value>(&line) else { continue };
            let version = value["pmmpi_node_actions"].as_u64();
            let line = serde_json::from_value::<Line>(value).ok().filter(|_| version == Some(VERSION.into()));
            let Some(Line { time, entry, .. }) = line else {
                let why = "a different version of pmmpi wrote it; use that version or name another file";
                return Err(Error::NoJournal(path.to_owned(), why.to_owned()));
            };
            match entry {
                Entry::Begin { process, host, user, cluster } => {
                    last_begin =
                        Some(format!("process {process} of user {user} on {host}, since {time} UTC"));
                    clusters.extend(cluster::name(cluster));
                }
                Entry::Intent { id, node, act, reason, found_by } => {
                    next_id = next_id.max(id.saturating_add(1));
                    open.insert(id, Open { id, node, act, reason, found_by, time });
                }
                Entry::Finding { node, act, reason, found_by } => {
                    marks.note_further(&node, &act, MarkCause { reason, found_by });
                }
                Entry::Outcome { id, result, .. } => {
                    if let Some(closed) = open.remove(&id) {
                        closed.note(result, &mut marks);
                    }
                }
            }
        }
        Ok(Self { next_id, open: open.into_values().collect(), marks, is_torn, last_begin, clusters })
    }
}

/// The entry of this run.
fn begin(cluster: Option<String>) -> Entry {
    // SAFETY: geteuid has no preconditions and cannot fail.
    let user = unsafe { libc::geteuid() };
    Entry::Begin { process: std::process::id(), host: NodeKey::own().hostname.clone(), user, cluster }
}

/// Fails if the content of this file shows that [`run`](crate::run) could not use it as its log on the cluster of this
/// Slurm. Neither locks nor writes it. A missing file is a new log.
pub fn check_log(path: &Path, slurm: &dyn Slurm) -> std::result::Result<(), Error> {
    let Some(past) = Past::of(path)? else { return Ok(()) };
    if !past.clusters.is_empty() {
        return past.require_cluster(path, &slurm.cluster());
    }
    match past.has_marks_of_unknown_cluster().then(|| slurm.cluster()) {
        Some(Ok(own)) => cluster::require_seen_mark(path, &own, &past.marks, &past.open, &slurm.nodes()?),
        _ => Ok(()),
    }
}

fn require_regular(path: &Path, file: &File) -> std::result::Result<(), Error> {
    let about = file.metadata();
    match about.map_err(|reason| Error::Journal { path: path.to_owned(), what: "open", reason })?.is_file() {
        true => Ok(()),
        false => {
            let why = "it is not a regular file; name another file";
            Err(Error::NoJournal(path.to_owned(), why.to_owned()))
        }
    }
}

/// True for a line that a kill cut within the mark. Runs that were killed during their first write leave such lines before
/// the first line with a whole mark. The end of a line follows in the next run, so no such line is empty.
fn is_cut_mark(line: &[u8]) -> bool {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    !text.is_empty() && MARK.starts_with(text)
}

/// False if another process has the lock. The Linux kernel unlocks the file when the last process that has this file
/// open ends. If another thread forks, the new process has the file open until it executes its program. So this
/// function tries again for a short time.
fn lock(file: &File) -> io::Result<bool> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        // SAFETY: flock of a descriptor that is open.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(true);
        }
        match io::Error::last_os_error() {
            reason if reason.kind() != io::ErrorKind::WouldBlock => return Err(reason),
            _ if Instant::now() >= deadline => return Ok(false),
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// After this, the name of a new file is on disk, too.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// `2026-11-26 02:09:12`, in UTC.
fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests;
