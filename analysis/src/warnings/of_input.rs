//! Warnings about what pmmpi read, or could not read.

use super::{FirstFew, WarningCode};
use std::path::PathBuf;

/// A message names at most so many of a long list.
pub const NAMED: usize = 3;

/// A rejected row, or a rejected value of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct RejectedPlace {
    /// Its file.
    pub file: PathBuf,
    /// Line in that file, counted from 1; in a JSON document, the number of the entry.
    pub line: u64,
    /// What is wrong with the row, and what the reader expects.
    pub reason: String,
}

/// A warning about what pmmpi read, or could not read.
#[derive(Clone, Debug, PartialEq)]
pub enum InputWarning {
    /// `--class-by` has no effect on the runs of a file of an archive.
    ArchivedClasses,
    /// Two run files have the same run id and different contents.
    ConflictingRun {
        /// The file that the report does not use.
        file: PathBuf,
        /// The file that the report uses.
        first: PathBuf,
    },
    /// The time of `--since` is inside a session.
    CutSession {
        /// The session.
        session: String,
    },
    /// A screen ended before all its rounds were complete.
    EndedEarly {
        /// The reason that the screen left.
        reason: String,
    },
    /// A file that the user named has a format that pmmpi does not know.
    ForeignFile {
        /// The file.
        path: PathBuf,
    },
    /// Files in folders have formats that pmmpi does not know.
    ForeignFiles {
        /// The files.
        files: FirstFew<PathBuf>,
    },
    /// Sessions began after the screen of the report.
    LaterSessions {
        /// Number of these sessions.
        sessions: usize,
    },
    /// The medians of an archive lack the runs of some of its files.
    MediansBehind {
        /// The archive.
        archive: PathBuf,
        /// These files.
        files: FirstFew<PathBuf>,
    },
    /// Runs of an archive have no counts by place.
    NoPlacesArchived {
        /// Number of these runs.
        runs: usize,
        /// The id of the first one.
        first: String,
    },
    /// An export could not add counts by place to the archive, because the run files are missing.
    NoPlacesAdded {
        /// Number of runs without a file.
        runs: usize,
        /// The id of the first one.
        first: String,
    },
    /// A folder contains no run file.
    NoRunFiles {
        /// The folder.
        folder: PathBuf,
    },
    /// Elapsed times are zero or negative.
    NoTime {
        /// Number of these times.
        times: usize,
    },
    /// Rows or values are not valid.
    RejectedRows {
        /// Number of rows.
        rows: u64,
        /// Number of values in rows that are accepted.
        values: u64,
        /// At most [`NAMED`] of the rows and values. A reader may count rows without keeping a reason.
        first: Vec<RejectedPlace>,
        /// True if there are more rows and values than a message names.
        are_more: bool,
    },
    /// Rows occur more than once.
    RepeatedRows {
        /// Number of rows with the content of an earlier row.
        rows: u64,
    },
    /// Screens of the same nodes have the same label `session`.
    RepeatedSession {
        /// The label.
        session: String,
        /// True if the session also has runs that come from no run file of a screen: those of an archive.
        is_archived: bool,
        /// The new session of each screen that does not stay in the session of the label.
        own_sessions: Vec<String>,
    },
    /// Run files are in subfolders, where pmmpi does not read them.
    RunFilesInSubfolders {
        /// Number of run files.
        files: usize,
        /// Their folders.
        folders: FirstFew<PathBuf>,
    },
    /// The report cannot use a file of `pmmpi validate`.
    TrustFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// `--resets` names nodes with runs whose start is not known.
    UndatedReset {
        /// The nodes.
        nodes: FirstFew<String>,
    },
    /// `--since` and `--until` leave out runs whose start is not known.
    UndatedRuns {
        /// Number of these runs.
        runs: usize,
    },
    /// `--class-by` names a key that no run has.
    UnknownClassKey {
        /// The key.
        key: String,
    },
    /// `--where` names a label or column that no input has.
    UnknownLabel {
        /// The name.
        label: String,
    },
    /// `--node` names nodes without a selected run.
    UnknownNode {
        /// The nodes.
        nodes: FirstFew<String>,
    },
    /// `--resets` names nodes that the input does not have.
    UnknownReset {
        /// The nodes.
        nodes: FirstFew<String>,
    },
    /// `--resets` names nodes without a time after their last maintenance.
    UnmeasuredReset {
        /// The nodes.
        nodes: FirstFew<String>,
    },
    /// The names of nodes come from paths that also differ in a part that pmmpi did not read.
    UnreadPath {
        /// Number of files whose path gave the node.
        files: usize,
        /// The first of these files.
        path: PathBuf,
        /// The node of this file.
        node: String,
        /// The texts of the part that pmmpi did not read.
        parts: FirstFew<String>,
        /// The `--path-pattern` that takes this part as the node.
        pattern: String,
    },
    /// A file with counts by place cannot be read.
    UnreadPlaces {
        /// The file or its folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Values of another tool's results are not in the table.
    UnreadValues {
        /// The name and the number of the values of each kind.
        values: FirstFew<(String, u64)>,
    },
    /// pmmpi could not read any run from a folder, or from a file of another tool or of an archive.
    UnusableFile {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// pmmpi could not read a run file, or a folder with run files.
    UnusableRunFile {
        /// The file or folder.
        path: PathBuf,
        /// The kind of fault, for example [`WarningCode::TruncatedFile`].
        code: WarningCode,
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing uses some columns with a few different texts.
    UnusedColumns {
        /// The name of each column, and its different texts in order.
        columns: FirstFew<(String, FirstFew<String>)>,
    },
}

impl InputWarning {
    /// The kind of warning.
    pub fn code(&self) -> WarningCode {
        match self {
            Self::ArchivedClasses => WarningCode::ArchivedClasses,
            Self::ConflictingRun { .. } => WarningCode::ConflictingRun,
            Self::CutSession { .. } => WarningCode::CutSession,
            Self::EndedEarly { .. } => WarningCode::EndedEarly,
            Self::ForeignFile { .. } => WarningCode::ForeignFile,
            Self::ForeignFiles { .. } | Self::RunFilesInSubfolders { .. } => WarningCode::ForeignFiles,
            Self::LaterSessions { .. } => WarningCode::LaterSessions,
            Self::MediansBehind { .. } => WarningCode::MediansBehind,
            Self::NoPlacesArchived { .. } | Self::NoPlacesAdded { .. } => WarningCode::NoPlaces,
            Self::NoRunFiles { .. } => WarningCode::NoRunFiles,
            Self::NoTime { .. } => WarningCode::NoTime,
            Self::RejectedRows { .. } => WarningCode::RejectedRows,
            Self::RepeatedRows { .. } => WarningCode::RepeatedRows,
            Self::RepeatedSession { .. } => WarningCode::RepeatedSession,
            Self::TrustFile { .. } => WarningCode::TrustFile,
            Self::UndatedReset { .. } => WarningCode::UndatedReset,
            Self::UndatedRuns { .. } => WarningCode::UndatedRuns,
            Self::UnknownClassKey { .. } => WarningCode::UnknownClassKey,
            Self::UnknownLabel { .. } => WarningCode::UnknownLabel,
            Self::UnknownNode { .. } => WarningCode::UnknownNode,
            Self::UnknownReset { .. } => WarningCode::UnknownReset,
            Self::UnmeasuredReset { .. } => WarningCode::UnmeasuredReset,
            Self::UnreadPath { .. } => WarningCode::UnreadPath,
            Self::UnreadPlaces { .. } => WarningCode::UnreadPlaces,
            Self::UnreadValues { .. } => WarningCode::UnreadValues,
            Self::UnusableFile { .. } => WarningCode::UnusableFile,
            Self::UnusableRunFile { code, .. } => *code,
            Self::UnusedColumns { .. } => WarningCode::UnusedColumns,
        }
    }
}
