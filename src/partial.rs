//! `<out>/<run_id>.partial/`: the data of a run while it runs. If the run does not end well, this is all that is
//! left.
//!
//! Each rank writes to memory that it shares with its `pmmpi` process, which started the rank's program. One process
//! per node, the leader, carries this memory's content to the disk: see [`NodeFile`]. So there is one file per node,
//! named after the node's clock and network namespace (within which the `pmmpi` processes elect the leader). Each
//! `pmmpi` process that reaches no leader writes one more file.
//!
//! | bytes of a frame | hold |
//! |---|---|
//! | 8 | the layout of this format, `LiveRecord::LAYOUT` |
//! | 4 | version of the schema of run files, little endian |
//! | 4 | length of the rest of the frame, little endian |
//! | 4 | CRC-32 (IEEE) of the rest, little endian |
//! | rest | a [`Frame`] in wire form |
//!
//! A file is a sequence of frames. A rank's data in a later frame replace those in earlier frames. Readers skip a
//! frame that a full disk or a SIGKILL has cut off. When the whole run is saved, pmmpi removes the folder.

mod frame_with_checksum;
mod kept_data;
mod node_file;
mod read;

pub use frame_with_checksum::Frame;
pub use kept_data::{About, CarrierNote, KeptRank};
pub use node_file::NodeFile;
pub use read::read;

use crate::counters::selection::Selection;
use crate::record::RunHeader;
use crate::session::launcher_request::Keep;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[cfg(doc)]
use crate::session::live_record::LiveRecord;

/// The end of the folder's name.
pub const SUFFIX: &str = ".partial";
const NODE_SUFFIX: &str = ".node";
/// A file that older versions wrote beside the nodes' files.
const OLD_RUN_FILE: &str = "run";

/// The instruction to keep a run in the folder `out`, which must exist.
pub fn keep_in(out: &Path, header: RunHeader, selection: &Selection) -> io::Result<Keep> {
    let Selection { asked, expected, .. } = selection;
    let folder = folder_of(out, &header.run_id)?;
    Ok(Keep { folder, header, asked: asked.clone(), expected: expected.clone() })
}

/// The folder of the run `run_id` in the folder `out`.
pub fn folder_of(out: &Path, run_id: &str) -> io::Result<PathBuf> {
    // Not canonicalised: a link may lead elsewhere on another node.
    Ok(std::path::absolute(out)?.join(format!("{run_id}{SUFFIX}")))
}

/// Removes the folder after the whole run is saved. What it cannot remove does no harm: readers ignore it beside
/// the run's file.
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
