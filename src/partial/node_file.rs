//! The file to which a node's leader carries data.

use super::{Frame, NODE_SUFFIX, is_own};
use crate::ids::RankId;
use crate::node::NodeKey;
use crate::session::shared_memory::within_file_limit;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// One node's file. It is open only while it is written to: NFS cannot remove an open file.
pub struct NodeFile {
    path: PathBuf,
    state: State,
}

enum State {
    /// This process has not written to it.
    New,
    /// This process created it. When `length` would exceed `room`, the file is written anew.
    Own { length: u64, room: u64 },
    /// Another process created it, the previous leader. Only that one knew the whole content.
    Successor,
}

impl NodeFile {
    /// The file in a run's folder. `alone` is the rank of a launcher that reaches no leader of its node.
    pub fn of(folder: &Path, alone: Option<RankId>) -> Self {
        let mut hasher = DefaultHasher::new();
        let network = fs::metadata("/proc/self/ns/net").map_or(0, |metadata| metadata.ino());
        (NodeKey::own(), network).hash(&mut hasher);
        let mut name = format!("{}-{:016x}", NodeKey::own().hostname.replace('/', "_"), hasher.finish());
        if let Some(rank) = alone {
            name.push_str(&format!("-{rank}"));
        }
        Self { path: folder.join(name + NODE_SUFFIX), state: State::New }
    }

    /// The folder of the run.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// True if this process has written to the file.
    pub fn is_begun(&self) -> bool {
        !matches!(self.state, State::New)
    }

    /// Adds a frame. A new file gets `frame(true)`, which has all data; an existing one gets `frame(false)`, which
    /// has what is new. Whatever happens, earlier frames stay whole.
    pub fn add(&mut self, frame: impl Fn(bool) -> Frame) -> io::Result<()> {
        if !self.is_begun() {
            return self.begin(frame);
        }
        check_own(self.folder())?;
        let bytes = frame(false).to_bytes()?;
        match self.state {
            State::Own { length, room } if length + bytes.len() as u64 > room => self.renew(&frame(true)),
            _ => self.append(&bytes),
        }
    }

    /// Writes the first frame. The folder must be this user's, or be created now: where every user may write,
    /// others may have put something in its place.
    fn begin(&mut self, frame: impl Fn(bool) -> Frame) -> io::Result<()> {
        let made = match check_own(self.folder()) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let made = fs::DirBuilder::new().mode(0o700).create(self.folder());
                // Another node's leader may have been faster.
                made.or_else(|e| if e.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(e) })?;
                check_own(self.folder())?;
                true
            }
            checked => checked.map(|()| false)?,
        };
        let bytes = frame(true).to_bytes()?;
        match self.create(&self.path, &bytes) {
            Ok(room) => self.state = State::Own { length: bytes.len() as u64, room },
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                self.append(&frame(false).to_bytes()?)?;
                self.state = State::Successor;
            }
            Err(e) => {
                if made {
                    // Leave no empty folder behind.
                    let _ = fs::remove_dir(self.folder());
                }
                return Err(e);
            }
        }
        Ok(())
    }

    /// Replaces a file that has grown too long by a file with all data.
    fn renew(&mut self, frame: &Frame) -> io::Result<()> {
        let bytes = frame.to_bytes()?;
        let temporary = self.path.with_extension("tmp");
        let _ = fs::remove_file(&temporary); // of a killed leader
        let room = self.create(&temporary, &bytes)?;
        fs::rename(&temporary, &self.path)?;
        self.state = State::Own { length: bytes.len() as u64, room };
        Ok(())
    }

    /// Creates a file and reserves room for later frames, because the disk may be full by then. Returns how long
    /// the file may get. Removes a file that could not be written whole.
    fn create(&self, path: &Path, bytes: &[u8]) -> io::Result<u64> {
        let length = bytes.len() as u64;
        within_file_limit(length)?;
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        let room = 2 * length + MORE_BYTES;
        // Not every file system can reserve room. The frame of now may fit without it.
        // SAFETY: no memory is involved. KEEP_SIZE: the file does not get longer.
        unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, room as libc::off_t) };
        let written = file.write_all(bytes);
        if written.is_err() {
            let _ = fs::remove_file(path);
        }
        written.map(|()| room)
    }

    /// Never creates the file: the run may be saved, and the folder removed, meanwhile.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut options = File::options();
        options.append(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let mut file = options.open(&self.path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || !is_own(&metadata) {
            return Err(io::Error::from(ErrorKind::PermissionDenied));
        }
        within_file_limit(metadata.len() + bytes.len() as u64)?;
        file.write_all(bytes)?;
        if let State::Own { length, .. } = &mut self.state {
            *length = metadata.len() + bytes.len() as u64;
        }
        Ok(())
    }

    /// Removes the file, and with the last file the folder: the whole run was saved while this one was written.
    pub fn withdraw(&mut self) {
        // The process that saved the run has removed both. But this file may have come later, or the folder was not
        // empty at that time, because NFS keeps an open file.
        let removed = fs::remove_file(&self.path);
        if removed.is_ok() || removed.is_err_and(|e| e.kind() == ErrorKind::NotFound) {
            let _ = fs::remove_dir(self.folder());
        }
        self.state = State::New;
    }
}

/// Reserved room for what ranks add when they end, beyond twice the length of the first frame.
const MORE_BYTES: u64 = 32 << 10;

/// Where every user may write, only a folder of this user is safe.
fn check_own(folder: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(folder)?;
    let own = metadata.is_dir() && is_own(&metadata);
    if own { Ok(()) } else { Err(io::Error::from(ErrorKind::PermissionDenied)) }
}
