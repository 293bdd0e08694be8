//! Bounds of the elapsed time from stamps of other programs: the columns `rank,node,t0_ns,t1_ns,t2_ns,t3_ns`, and
//! perhaps `region` and `run`.
//!
//! The reader adds each row to its job at once, so memory grows with the number of nodes, plus one number per rank.

use csv::{ByteRecord, ReaderBuilder, Trim};
use pmmpi::NodeId;
use pmmpi::bounds::{ElapsedBounds, JobStamps, MaxDrift, Stamps};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::Read;

/// The bounds of one job (or of one region of one run).
#[derive(Debug, Serialize)]
pub struct StampedBounds {
    /// The run, if the file has this column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The region, if the file has this column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// See [`ElapsedBounds`].
    #[serde(flatten)]
    pub elapsed: ElapsedBounds,
    /// Nodes whose clocks contradict the others.
    pub suspects: Vec<String>,
    /// Number of ranks in these bounds.
    pub ranks: u64,
    /// Number of nodes in these bounds.
    pub nodes: usize,
    /// Number of rejected rows in the whole file.
    pub rejected_rows: u64,
}

/// The content of a stamps file.
#[derive(Debug)]
pub struct Stamped {
    /// In the order of their first row.
    pub bounds: Vec<StampedBounds>,
    /// True if the file has a run or a region column.
    pub several: bool,
    /// The first rejected rows, with the reason.
    pub rejected: Vec<RejectedStamp>,
    /// Number of all rejected rows.
    pub rejected_rows: u64,
}

/// A row that cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub struct RejectedStamp {
    /// Counted from 1, including the header.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// Why a file gives no bounds.
#[derive(Debug)]
pub enum StampsError {
    /// It lacks these columns.
    MissingColumns(Vec<&'static str>),
    /// It has no row after the header.
    NoRows,
    /// No row can be used; this is the first.
    NoGoodRow(RejectedStamp),
    /// It cannot be read, or it is not CSV.
    Unreadable(csv::Error),
}

impl fmt::Display for StampsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingColumns(names) => {
                let names = names.join("`, `");
                write!(f, "has no column `{names}` (expected: rank,node,t0_ns,t1_ns,t2_ns,t3_ns)")
            }
            Self::NoRows => f.write_str("contains no stamps"),
            Self::NoGoodRow(row) => write!(f, "has no valid row; line {}: {}", row.line, row.reason),
            Self::Unreadable(e) => write!(f, "cannot be read: {e}"),
        }
    }
}

impl std::error::Error for StampsError {}

/// Number of rejected rows that are kept with a reason.
const REJECTED_KEPT: usize = 10;

/// Reads stamps and computes the bounds of each job in them.
pub fn read(source: impl Read, drift: MaxDrift) -> Result<Stamped, StampsError> {
    let mut reader = ReaderBuilder::new().trim(Trim::All).flexible(true).from_reader(source);
    let header = reader.byte_headers().map_err(StampsError::Unreadable)?.clone();
    if header.is_empty() {
        return Err(StampsError::NoRows);
    }
    let columns = Columns::find(&header).map_err(StampsError::MissingColumns)?;
    let mut jobs = Jobs::default();
    let (mut rejected, mut rejected_rows) = (Vec::new(), 0);
    let mut record = ByteRecord::new();
    loop {
        let line = reader.position().line();
        let more = reader.read_byte_record(&mut record).map_err(StampsError::Unreadable)?;
        if !more {
            break;
        }
        let line = record.position().map_or(line, csv::Position::line);
        if let Err(reason) = jobs.add(&columns, &record) {
            rejected_rows += 1;
            if rejected.len() < REJECTED_KEPT {
                rejected.push(RejectedStamp { line, reason });
            }
        }
    }
    let several = columns.run.is_some() || columns.region.is_some();
    let bounds = jobs.bounds(drift, rejected_rows);
    match (bounds.is_empty(), rejected.is_empty()) {
        (true, true) => Err(StampsError::NoRows),
        (true, false) => Err(StampsError::NoGoodRow(rejected.swap_remove(0))),
        _ => Ok(Stamped { bounds, several, rejected, rejected_rows }),
    }
}

/// The position of each column.
struct Columns {
    rank: usize,
    node: usize,
    stamps: [usize; 4],
    run: Option<usize>,
    region: Option<usize>,
}

const STAMPS: [&str; 4] = ["t0_ns", "t1_ns", "t2_ns", "t3_ns"];

impl Columns {
    fn find(header: &ByteRecord) -> Result<Self, Vec<&'static str>> {
        // Some spreadsheets begin a file with a byte order mark.
        let name = |field: &[u8]| field.strip_prefix(b"\xef\xbb\xbf").unwrap_or(field).to_ascii_lowercase();
        let names: Vec<Vec<u8>> = header.iter().map(name).collect();
        let find = |wanted: &str| names.iter().position(|name| name == wanted.as_bytes());
        let required = ["rank", "node", STAMPS[0], STAMPS[1], STAMPS[2], STAMPS[3]];
        let missing: Vec<_> = required.into_iter().filter(|name| find(name).is_none()).collect();
        if !missing.is_empty() {
            return Err(missing);
        }
        let at = |name: &str| find(name).unwrap_or_default();
        Ok(Self {
            rank: at("rank"),
            node: at("node"),
            stamps: STAMPS.map(at),
            run: find("run"),
            region: find("region"),
        })
    }
}

#[derive(Default)]
struct Jobs {
    known: HashMap<(Vec<u8>, Vec<u8>), usize>,
    jobs: Vec<Job>,
}

struct Job {
    run: Option<String>,
    region: Option<String>,
    stamps: JobStamps,
    numbers: HashMap<Vec<u8>, NodeId>,
    names: Vec<String>,
    ranks: HashSet<u64>,
}

impl Jobs {
    fn add(&mut self, columns: &Columns, record: &ByteRecord) -> Result<(), String> {
        let field =
            |at: usize| record.get(at).ok_or_else(|| format!("the row has only {} fields", record.len()));
        let integer = |name: &str, at: usize| {
            let text = String::from_utf8_lossy(field(at)?);
            text.parse::<i64>().map_err(|_| format!("{name}: `{text}` is not a 64-bit integer"))
        };
        let rank =
            u64::try_from(integer("rank", columns.rank)?).map_err(|_| "rank is negative".to_owned())?;
        let node = field(columns.node)?;
        if node.is_empty() {
            return Err("node is empty".into());
        }
        let mut t_ns = [0; 4];
        for (i, at) in columns.stamps.into_iter().enumerate() {
            t_ns[i] = integer(STAMPS[i], at)?;
        }
        let stamps = Stamps::try_from(t_ns).map_err(|error| {
            let column = STAMPS.iter().zip(t_ns).find(|(_, t_ns)| *t_ns == error.0);
            format!("{}: {error}", column.map_or("", |(name, _)| name))
        })?;
        let part = |column: Option<usize>| column.map(&field).transpose();
        let (run, region) = (part(columns.run)?, part(columns.region)?);
        let job = self.job(run, region);
        if !job.ranks.insert(rank) {
            return Err(format!("rank {rank} already has a row"));
        }
        job.add(node, stamps);
        Ok(())
    }

    fn job(&mut self, run: Option<&[u8]>, region: Option<&[u8]>) -> &mut Job {
        let key = (run.unwrap_or_default().to_vec(), region.unwrap_or_default().to_vec());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let jobs = &mut self.jobs;
        let at = *self.known.entry(key).or_insert_with(|| {
            jobs.push(Job {
                run: run.map(text),
                region: region.map(text),
                stamps: JobStamps::new(),
                numbers: HashMap::new(),
                names: Vec::new(),
                ranks: HashSet::new(),
            });
            jobs.len() - 1
        });
        &mut jobs[at]
    }

    fn bounds(self, drift: MaxDrift, rejected_rows: u64) -> Vec<StampedBounds> {
        self.jobs.into_iter().filter_map(|job| job.bounds(drift, rejected_rows)).collect()
    }
}

impl Job {
    fn add(&mut self, node: &[u8], stamps: Stamps) {
        let number = match self.numbers.get(node) {
            Some(number) => *number,
            None => {
                let number = NodeId(self.names.len() as u32);
                self.names.push(String::from_utf8_lossy(node).into_owned());
                self.numbers.insert(node.to_vec(), number);
                number
            }
        };
        self.stamps.add(number, stamps);
    }

    fn bounds(self, drift: MaxDrift, rejected_rows: u64) -> Option<StampedBounds> {
        let elapsed = self.stamps.elapsed(drift)?;
        Some(StampedBounds {
            suspects: elapsed.suspects.iter().filter_map(|n| self.names.get(n.index()).cloned()).collect(),
            run: self.run,
            region: self.region,
            elapsed,
            ranks: self.stamps.ranks(),
            nodes: self.stamps.node_count(),
            rejected_rows,
        })
    }
}
