//! Finds the reader for a file by its content, because users choose file names freely.

use super::{ImportFault, open_file};
use std::io::{self, Read};
use std::path::Path;

/// Number of bytes that decide the format. Batch systems and launchers may write text before HPL does.
const HEAD_BYTES: u64 = 64 * 1024;

/// A format of input files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// A run file of pmmpi.
    Run,
    /// A text table: `node,run,elapsed_s` and more columns.
    Csv,
    /// The same table in Parquet; also what `pmmpi export` writes.
    Parquet,
    /// Output of HPL, or of HPC Challenge (hpccoutf.txt).
    Hpl,
    /// `hyperfine --export-json`.
    Hyperfine,
    /// ReFrame's run report.
    Reframe,
    /// SuperBench's results-summary.jsonl.
    Superbench,
    /// `perf report --stdio --header`.
    Perf,
}

impl FileFormat {
    /// Each format that other tools write.
    pub const ALL: [Self; 7] =
        [Self::Csv, Self::Parquet, Self::Hpl, Self::Hyperfine, Self::Reframe, Self::Superbench, Self::Perf];

    /// The name in options and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "pmr",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Hpl => "hpl",
            Self::Hyperfine => "hyperfine",
            Self::Reframe => "reframe",
            Self::Superbench => "superbench",
            Self::Perf => "perf",
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    pub(super) fn all() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

/// The content of a file, from its first byte.
pub(super) type Content = Box<dyn Read>;

/// Opens a file and detects its format. The path `-` is stdin.
pub(super) fn open(path: &Path, format: Option<FileFormat>) -> Result<(FileFormat, Content), ImportFault> {
    let mut source: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(io::stdin()),
        false => open_file::open(path)?,
    };
    let mut head = Vec::new();
    source.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    if head.is_empty() {
        return Err(ImportFault::Empty);
    }
    let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    let format = match format {
        Some(format) => format,
        None => detect(&head, extension.as_deref())
            .ok_or_else(|| ImportFault::Unknown { looks_like: looks_like(&head, extension.as_deref()) })?,
    };
    Ok((format, Box::new(io::Cursor::new(head).chain(source))))
}

/// The format of a file with this beginning. The extension (lower case) decides only if the content does not. So a
/// damaged CSV or JSON file gets a message for its format.
pub fn detect(head: &[u8], extension: Option<&str>) -> Option<FileFormat> {
    if head.starts_with(b"PAR1") || extension == Some("parquet") {
        return Some(FileFormat::Parquet);
    }
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let has = |text: &str| memchr::memmem::find(head, text.as_bytes()).is_some();
    let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') {
        if has("\"session_info\"") {
            return Some(FileFormat::Reframe);
        }
        if has("\"results\"") && has("\"command\"") {
            return Some(FileFormat::Hyperfine);
        }
        if extension == Some("jsonl") || (has("\"node\"") && first_line_is_an_object(head)) {
            return Some(FileFormat::Superbench);
        }
        return None;
    }
    // Without --header, only this sentence tells that perf wrote the file.
    if first == Some(&b'#') && (has("# perf version : ") || has("display the perf.data header info")) {
        return Some(FileFormat::Perf);
    }
    // HPL.dat and hpccinf.txt begin with "HPLinpack benchmark input file".
    let hpl = memchr::memmem::find_iter(head, b"HPLinpack ")
        .any(|at| head.get(at + 10).is_some_and(u8::is_ascii_digit));
    if hpl || has("HPC Challenge Benchmark version") {
        return Some(FileFormat::Hpl);
    }
    let line = memchr::memchr(b'\n', head).map_or(head, |end| &head[..end]);
    let columns = line.split(|byte| b",;\t".contains(byte)).map(|name| {
        let name = name.trim_ascii();
        name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name)
    });
    let known = columns
        .filter(|name| ["node", "run", "elapsed_s"].iter().any(|k| name.eq_ignore_ascii_case(k.as_bytes())));
    (known.count() >= 2 || matches!(extension, Some("csv" | "tsv"))).then_some(FileFormat::Csv)
}

/// True for one JSON object per line (JSON Lines). A single object in a file may be spread over many lines.
fn first_line_is_an_object(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    let line = memchr::memchr(b'\n', head).map_or(head, |end| &head[..end]);
    line.trim_ascii_end().ends_with(b"}") || line.len() as u64 + 64 > HEAD_BYTES
}

/// Recognizes files that users often give by mistake.
fn looks_like(head: &[u8], extension: Option<&str>) -> Option<&'static str> {
    if head.starts_with(b"\x1f\x8b") || head.starts_with(b"\x28\xb5\x2f\xfd") {
        return Some("compressed data: unpack it first");
    }
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Some("text in UTF-16: save it as UTF-8");
    }
    match extension {
        Some("pmr") => Some("a run file of pmmpi"),
        Some("xlsx" | "ods" | "xls") => Some("a spreadsheet: save it as CSV"),
        _ => head.trim_ascii_start().starts_with(b"{").then_some("JSON of another tool"),
    }
}
