//! What a report was made of, and when, for formats that people keep.

use crate::table::instant;
use pmmpi::text::count;

/// Where a report comes from.
#[derive(Clone, Debug)]
pub struct ReportOrigin {
    /// The files and folders that were read, as the user named them.
    pub sources: Vec<String>,
    /// Number of files that were read there.
    pub files: usize,
    /// When the report was made, ns since 1970.
    pub made_unix_ns: i64,
}

impl ReportOrigin {
    /// The sentence without the sources, which may be long.
    pub fn sentence(&self) -> String {
        let [date, time] = instant::utc(self.made_unix_ns);
        let (version, files) = (env!("CARGO_PKG_VERSION"), count(self.files, "file"));
        format!("Made by pmmpi {version} on {date} at {time} UTC from {files} in")
    }
}
