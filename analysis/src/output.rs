//! Writes a result to stdout, or to a file that appears complete or not at all.

use pmmpi::record::temporary;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Writes `text` to the file, or to stdout if there is none. A reader that closes the pipe early (`| head`) is not an
/// error.
pub fn write(text: &str, file: Option<&Path>) -> io::Result<()> {
    match file {
        Some(file) => replace(file, text.as_bytes()),
        None => match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        },
    }
}

/// Replaces a file. Writes directly into a link's target (it may be /dev/stdout), a device or a pipe.
fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    if std::fs::symlink_metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
        return File::options().write(true).create(true).truncate(true).open(file)?.write_all(bytes);
    }
    temporary::replace(file, 0o666, |new| new.write_all(bytes).and_then(|()| new.sync_all()))
}
