//! The first use of a log is a dry run: an operator sees what pmmpi would do before pmmpi changes any node.

use std::fs::File;
use std::io;
use std::path::Path;

/// True if no run of pmmpi has used this log.
pub fn is_first_use(log: &Path) -> bool {
    !log.exists()
}

/// Creates an empty log: the next use acts.
pub fn begin_log(log: &Path) -> io::Result<()> {
    File::options().append(true).create(true).open(log).map(drop)
}
