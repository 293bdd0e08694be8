//! `<out>/<run_id>.partial/`: a run while it runs, and all that is left of it if it does not end well.
//!
//! Ranks write to memory that they share with their launchers. One process a node carries what is there to
//! the disk: [`NodeFile`]. So there is one file a node, named after the node's clock and network
//! namespace (which is where launchers elect a leader), and one more for each launcher that reaches no leader.
//!
//! | bytes of a frame | hold |
//! |---|---|
//! | 8 | the layout of all this, `LiveRecord::LAYOUT` |
//! | 4 | version of the schema of run files, little endian |
//! | 4 | length of the rest of the frame, little endian |
//! | 4 | CRC-32 (IEEE) of the rest, little endian |
//! | rest | a [`Frame`] in wire form |
//!
//! A file is a sequence of frames: what a later one says of a rank replaces what an earlier one said. A frame that
//! was cut off, by a full disk or a SIGKILL, is left out. When the whole run is saved the folder goes.

mod frame;
mod node_file;
mod read;

pub use frame::{About, CarrierNote, Frame, KeptRank};
pub use node_file::NodeFile;
pub use read::read;

use crate::counters::requested::AskedFor;
use crate::record::RunHeader;
use crate::session::instructions::Keep;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[cfg(doc)]
use crate::session::live_record::LiveRecord;

/// The name of such a folder ends with this.
pub const SUFFIX: &str = ".partial";
const NODE_SUFFIX: &str = ".node";
/// What older versions had beside their nodes' files.
const OLD_RUN_FILE: &str = "run";

/// That a run is to be kept in the folder `out`, which exists.
pub fn keep_in(out: &Path, header: RunHeader, asked: Vec<AskedFor>) -> io::Result<Keep> {
    Ok(Keep { folder: folder_of(out, &header.run_id)?, header, asked })
}

/// The folder of the run `run_id` in the folder `out`.
pub fn folder_of(out: &Path, run_id: &str) -> io::Result<PathBuf> {
    // Not canonicalised: a link may lead elsewhere on another node.
    Ok(std::path::absolute(out)?.join(format!("{run_id}{SUFFIX}")))
}

/// The run is saved as a whole. What cannot be removed is not looked at beside the run's file.
pub fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}

fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
}

fn is_own(metadata: &fs::Metadata) -> bool {
    // SAFETY: no arguments.
    metadata.uid() == unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests;
