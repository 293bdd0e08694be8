//! Facts that limit a result and that its reader must know.
//!
//! This module has each code with its meaning and its advice; docs/warnings.md is generated from them. Each step of
//! the analysis decides when to give a warning.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// A fact that the reader of a result must know. In JSON it is an object with code, message and advice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// The kind of warning.
    pub code: WarningCode,
    /// What happened, and where.
    pub message: String,
}

impl Warning {
    /// Builds a warning from a code and what happened here.
    pub fn new(code: WarningCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Warning", 3)?;
        object.serialize_field("code", self.code.name())?;
        object.serialize_field("message", &self.message)?;
        object.serialize_field("advice", self.code.advice())?;
        object.end()
    }
}

/// Every code in alphabetical order, each with its name for scripts, meaning, advice, and an example.
macro_rules! codes {
    ($($variant:ident $name:literal $meaning:literal $advice:literal $example:literal)*) => {
        /// What a warning is about. Its name is for scripts: stable, lower case, with hyphens.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum WarningCode { $(#[doc = $meaning] $variant,)* }

        impl WarningCode {
            /// All codes, by name.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name for scripts.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What the warning means.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// What to do.
            pub fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice,)* }
            }

            /// An example of a message with this code.
            pub fn example(self) -> &'static str {
                match self { $(Self::$variant => $example,)* }
            }
        }
    };
}

codes! {
    ArchivedClasses "archived-classes"
        "`--class-by` cannot take effect: a file of an archive lacks the columns `class.*`."
        "Export the runs again, or report the archive without --class-by."
        "--class-by: a file of an archive has lost the columns class.*; its runs keep the class that the file names, or have none"
    BimodalClass "bimodal-class"
        "The nodes of a class form two groups: they may be two kinds of nodes."
        "If they are two kinds, give them a label that tells them apart: it makes two classes of them."
        "90 nodes of a class are fast and 10 nodes are 6.0 % slower (./hpl)"
    ConflictingRun "conflicting-run"
        "Two run files have the same run id and different contents."
        "Find out which of the two was altered. The first by name is reported."
        "b.pmr has the run id of a.pmr, but different contents"
    DamagedFile "damaged-file"
        "A run file was altered or damaged."
        "Copy it again from where it was measured."
        "run.pmr: is damaged: its checksum is wrong"
    EmptyFile "empty-file"
        "A run file has no bytes."
        "The disk may have been full. Measure again."
        "run.pmr: is empty"
    EndedInRegion "ended-in-region"
        "The job ended while ranks were inside a region, or waited at its start or end."
        "Where some ranks wait at the start or end of a region, the others did not reach it: look for the missing call."
        "when the job ended, ranks were: at the end of region `solve`: 0, 1; elsewhere: 2"
    FailedRun "failed-run"
        "The program failed on a rank. The run's time counts for no node."
        "See the program's own messages."
        "rank 3 on n0222: signal 11 (SIGSEGV)"
    FewRuns "few-runs"
        "A node has fewer than 5 runs in a class: differences may be noise, and the node can only be OK or SUSPECT."
        "Measure 7 runs: --runs 7, or `pmmpi repeat --runs 7` for an MPI program."
        "n0222 has only 3 runs; 5 are needed"
    FlakyNode "flaky-node"
        "A node has more slow runs than chance explains, in all sessions together."
        "Look at what else runs on it, at its error counters, and for throttling."
        "n0222: 9 of 40 runs are slow, more than chance explains (./hpl)"
    ForeignFile "foreign-file"
        "A file on the command line is not a run file."
        "Name run files (*.pmr), folders of them, or files of a tool in docs/import.md."
        "notes.txt: is not a run file of pmmpi"
    ForeignFiles "foreign-files"
        "Files in a folder were not read: no reader knows their format."
        "docs/import.md lists what pmmpi reads from each tool's files."
        "cannot read the format of 2 files: a.txt, b.bin"
    IncompleteRun "incomplete-run"
        "Not every rank reached the final barrier: elapsed time cannot be bounded."
        "If the job still runs, report again after its end."
        "2 of 4 ranks reached the final barrier, 1 began but did not reach it, 1 left no trace"
    InconsistentClocks "inconsistent-clocks"
        "The stamps of the nodes contradict one another: elapsed time cannot be bounded."
        "A clock jumped (a virtual machine that was suspended or moved), or a barrier let a rank through too early: look at the suspects."
        "clock rates within 100 ppm do not explain these stamps (needed: 1500.0 ppm); suspects: n0222"
    LateNode "late-node"
        "The other nodes waited at the final barrier for one node, for more than 1 % of the job."
        "The node is slow, or has more to do: other runs and regions tell which (`node_waits` in --format json)."
        "n0222: the other 3 nodes waited at least 1.50 s for it, 5.0 % of the job; its rank 7 came last"
    NewerFile "newer-file"
        "A run file was written by a newer pmmpi."
        "Report it with the pmmpi that wrote it, or a later one."
        "run.pmr: has schema 9; this pmmpi reads up to 5: use a newer pmmpi"
    NoRunFiles "no-run-files"
        "A folder holds no run file."
        "Measure a program with `pmmpi PROGRAM`, or name the folder given to --out, not one above it."
        "results: there is no run file in this folder"
    NoStamps "no-stamps"
        "A rank's record has no time stamps."
        "Report this to the authors of pmmpi, with the run file."
        "rank 3 took no stamps"
    NoTime "no-time"
        "Times of zero or below were left out."
        "Measure longer work. If a clock jumped, the warning of that run names its node."
        "2 times not above zero: left out"
    NodeUnknown "node-unknown"
        "The hardware of a node was not recorded: the node is compared with no other."
        "Start every rank with pmmpi. A rank that needs more than 10 s to read its node's hardware, or ends before that, leaves no record."
        "no hardware was recorded of n0222"
    NoiseFloor "noise-floor"
        "Times vary too much to detect a node that is slower by --delta."
        "Measure longer work, or more runs."
        "a node's median is uncertain by 13.4 %: a node that is 3.0 % slower cannot be detected (./hpl)"
    OtherVersion "other-version"
        "A partial run was written by another version of pmmpi."
        "Report it with the pmmpi that measured it."
        "run.partial: was kept by another version of pmmpi: report it with that one"
    Overhead "overhead"
        "pmmpi itself took more than 1 % of the job's time. The bounds do not contain that time."
        "Measure a longer run if the job's whole time matters."
        "pmmpi itself took 0.030000 s in addition to the work"
    Paused "paused"
        "The program paused regions with MPI_Pcontrol(0). The elapsed time contains the pause."
        "Compare regions only with runs that pause in the same places."
        "regions were not counted on 2 of 4 ranks while MPI_Pcontrol(0) paused them; longest on rank 1: 0.500000 s"
    RegionsLeftOut "regions-left-out"
        "Some entries of regions were not counted: too many names, or regions nested too deeply."
        "Give regions few names, one for each kind of work, and end each entry."
        "12 entries of regions are not counted: beyond the first 255 names, or nested more than 64 deep"
    RejectedRows "rejected-rows"
        "Rows or values of another tool's results are not valid and were left out."
        "docs/import.md lists what pmmpi reads from each tool's files."
        "1 row left out: times.csv:12: elapsed_s: -3 is no time above zero"
    RepeatedRows "repeated-rows"
        "Some rows occur more than once with the same content: each run counts once."
        "Read an archive or the run files that it was made of, not both."
        "7 rows with the same content as earlier rows: each run counts once"
    SeparateJobs "separate-jobs"
        "MPI saw fewer ranks than the launcher started: each of several jobs did the whole work."
        "Start the program with the launcher of its own MPI. `--on-mismatch abort` ends such jobs."
        "srun started 4 ranks, but the program runs as jobs of 1: its MPI (Open MPI v4.1.4) and the launcher do not understand each other; add --mpi=pmix to srun"
    SlewedClock "slewed-clock"
        "A node's clock ran faster or slower than the allowed rate during the run. The bounds hold: they allow for it."
        "Its time service is correcting a large error: look at `chronyc tracking` or `ntpq -p`."
        "the clock of n0222 ran 500 ppm fast during the run: its bounds allow 600 ppm"
    TruncatedFile "truncated-file"
        "The end of a run file is missing."
        "Copy it again from where it was measured."
        "run.pmr: is truncated: 100 of 200 bytes"
    TrustFile "trust-file"
        "A file of `pmmpi validate` cannot be used."
        "Run `pmmpi validate` on such a node again, or remove the file."
        "trust-AuthenticAMD-25-1-1-0xa0011d5.json: is damaged: not used"
    UncountedEvents "uncounted-events"
        "Events that were asked for have no count."
        "All else is counted. `pmmpi list events` says what this machine counts, `pmmpi doctor` what limits it."
        "cycles: not counted by this processor and kernel (a virtual machine without counters?)"
    UndatedSessions "undated-sessions"
        "Some sessions have no start time: sessions are ordered by their names."
        "Give them one in a column `started` (RFC 3339)."
        "some sessions have no start time: sessions are ordered by their names"
    UnknownClassKey "unknown-class-key"
        "`--class-by` names a key that no run has."
        "Known keys are cpu, microcode, memory, kernel, command, ranks, labels and class, the name of a label, or none."
        "--class-by rack: no run has a label of this name, and no file has such a column with text or numbers in it"
    UnreadValues "unread-values"
        "Values of another tool's results were not read: text, rates, or times that were not asked for."
        "docs/import.md lists what pmmpi reads from each tool's files."
        "not read: gflops (7 values)"
    UnreadableFile "unreadable-file"
        "A file or folder cannot be read."
        "Check the path and its permissions."
        "run.pmr: cannot be read: Permission denied (os error 13)"
    UnusableCounters "unusable-counters"
        "`pmmpi validate` found that these events do not count what their names say. No verdict rests on them."
        "`pmmpi validate` on such a node says how far they are off."
        "l2_misses: unusable on this processor according to `pmmpi validate`"
    UnusableFile "unusable-file"
        "No run could be read from a file of another tool."
        "docs/import.md lists what pmmpi reads from each tool's files."
        "times.csv: has no column elapsed_s (expected: node,run,elapsed_s; it has: node,run,time)"
    WideBounds "wide-bounds"
        "The bounds of the elapsed time are more than 1 % apart."
        "Measure a longer run: the width of the bounds comes from the barriers and does not depend on the work."
        "the bounds 1.00 and 1.05 s are 5 % apart"
}

/// For example "12.3 %"; very large values as a power of ten.
pub(crate) fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent.abs() < 1e6 { format!("{percent:.1} %") } else { format!("{percent:.1e} %") }
}
