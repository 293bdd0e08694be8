//! Warnings about what pmmpi read, or could not read, in English.

use super::{joined, listed};
use crate::warnings::of_input::RejectedPlace;
use crate::warnings::{FirstFew, InputWarning};
use pmmpi::text::{count, printable};
use std::fmt::{Display, Formatter, Result};
use std::path::{Path, PathBuf};

impl Display for InputWarning {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::ArchivedClasses => f.write_str(
                "a file of an archive lacks the columns class.*, so --class-by has no effect on its runs: these runs \
                 keep the class that the file names, or are in the class undeclared",
            ),
            Self::ConflictingRun { file, first } => {
                let (file, first) = (file.display(), first.display());
                write!(f, "{file} has the run id of {first}, but different contents")
            }
            Self::CutSession { session } => write!(
                f,
                "--since is inside session {session}: the report has neither the earlier runs of this session nor \
                 their medians"
            ),
            Self::EndedEarly { reason } => write!(f, "a screen ended early: {reason}"),
            Self::ForeignFile { path } => {
                write!(f, "{}: is neither a run file of pmmpi nor a known result file", path.display())
            }
            Self::ForeignFiles { files } => write!(
                f,
                "pmmpi cannot read the format of {}: {}",
                count(files.all, "file"),
                listed(files, |path| shown(path))
            ),
            Self::LaterSessions { sessions } => write!(
                f,
                "the input has {} that began after this screen: the report does not use {}",
                count(*sessions, "session"),
                if *sessions == 1 { "it" } else { "them" }
            ),
            Self::MediansBehind { archive, files } => write!(
                f,
                "the medians of the archive {} lack the runs of {}: {}",
                archive.display(),
                count(files.all, "file"),
                listed(files, |path| shown(path))
            ),
            Self::NoPlacesArchived { runs, first } => write!(
                f,
                "{} of an archive {} no counts by place, for example {first}",
                count(*runs, "run"),
                if *runs == 1 { "has" } else { "have" }
            ),
            Self::NoPlacesAdded { runs, first } => write!(
                f,
                "pmmpi did not add the counts by place of {}, because their run files are missing; one of these \
                 runs is {first}",
                count(*runs, "run")
            ),
            Self::NoRunFiles { folder } => {
                write!(f, "{}: there is no run file in this folder", folder.display())
            }
            Self::NoTime { times } => write!(
                f,
                "the report leaves out {} that {} zero or negative",
                count(*times, "elapsed time"),
                if *times == 1 { "is" } else { "are" }
            ),
            Self::RejectedRows { rows, values, first, are_more } => {
                rejected(f, [*rows, *values], first, *are_more)
            }
            Self::RepeatedRows { rows } => write!(
                f,
                "pmmpi found {} with the same content as earlier rows, and counts each run once",
                count(*rows as usize, "row")
            ),
            Self::RepeatedSession { session, is_archived, own_sessions } => {
                let (have, whose) = match own_sessions.len() {
                    1 => ("has", "session of this screen is"),
                    _ => ("have", "sessions of these screens are"),
                };
                write!(
                    f,
                    "{} {have} the same label session={session} as {}: in the report, the {whose} {}",
                    count(own_sessions.len(), "screen"),
                    if *is_archived { "earlier screens in the archive" } else { "an earlier screen" },
                    own_sessions.join(", ")
                )
            }
            Self::RunFilesInSubfolders { files, folders } => in_subfolders(f, *files, folders),
            Self::TrustFile { path, reason } => {
                write!(f, "the report does not use {}, because it {reason}", path.display())
            }
            Self::UndatedReset { nodes } => reset(f, nodes, "with runs whose start is not known"),
            Self::UndatedRuns { runs } => {
                write!(f, "--since and --until leave out {} whose start is not known", count(*runs, "run"))
            }
            Self::UnknownClassKey { key } => write!(
                f,
                "--class-by {key}: no run has a label, fact or setting of this name, and no file has a column of \
                 this name with text or numbers"
            ),
            Self::UnknownLabel { label } => write!(
                f,
                "--where {label}: no run has a label of this name, and no file has a column of this name"
            ),
            Self::UnknownNode { nodes } => write!(
                f,
                "--node names {} without a selected run: {}",
                count(nodes.all, "node"),
                listed(nodes, String::clone)
            ),
            Self::UnknownReset { nodes } => reset(f, nodes, "that the input does not have"),
            Self::UnmeasuredReset { nodes } => reset(f, nodes, "without a time after the maintenance"),
            Self::UnreadPath { files, path, node, parts, pattern } => write!(
                f,
                "pmmpi took the names of nodes from the paths of {} ({}: node {}), but another part of these paths \
                 differs, too: {}; if this part is the node, use --path-pattern '{}'",
                count(*files, "file"),
                printable(&shown(path)),
                printable(node),
                listed(parts, |part| printable(part)),
                printable(pattern)
            ),
            Self::UnreadPlaces { path, reason } => write!(f, "{} {reason}", path.display()),
            Self::UnreadValues { values } => {
                let of =
                    |(name, values): &(String, u64)| format!("{name} ({})", count(*values as usize, "value"));
                write!(f, "pmmpi did not read these values: {}", listed(values, of))
            }
            Self::UnusableFile { path, reason } | Self::UnusableRunFile { path, reason, .. } => {
                write!(f, "{}: {reason}", path.display())
            }
            Self::UnusedColumns { columns } => write!(
                f,
                "the report does not use these columns: {}; runs with different values are in one class",
                listed(columns, column)
            ),
        }
    }
}

fn rejected(
    f: &mut Formatter<'_>,
    [rows, values]: [u64; 2],
    first: &[RejectedPlace],
    are_more: bool,
) -> Result {
    let place =
        |RejectedPlace { file, line, reason }: &RejectedPlace| format!("{}:{line}: {reason}", file.display());
    let named: Vec<String> = first.iter().map(place).collect();
    let more = if are_more { "; ..." } else { "" };
    let some = [(rows, "row"), (values, "value")].into_iter().filter(|(number, _)| *number > 0);
    let counted: Vec<String> = some.map(|(number, noun)| count(number as usize, noun)).collect();
    write!(f, "pmmpi left out {}: {}{more}", counted.join(" and "), named.join("; "))
}

/// Also says how to read these run files: pmmpi reads only those in the folders that the user names.
fn in_subfolders(f: &mut Formatter<'_>, files: usize, folders: &FirstFew<PathBuf>) -> Result {
    let named = joined(folders, |path| shown(path), " ", |_| " ...".to_owned());
    let are = if files == 1 { "is" } else { "are" };
    let place = if folders.all == 1 { "a subfolder" } else { "subfolders" };
    let them = if files == 1 { "it" } else { "them" };
    let run_files = count(files, "run file");
    write!(f, "{run_files} {are} in {place}; to read {them}, use: pmmpi report {named}")
}

fn reset(f: &mut Formatter<'_>, nodes: &FirstFew<String>, what: &str) -> Result {
    let named = listed(nodes, |node| printable(node));
    write!(f, "--resets names {} {what}: {named}", count(nodes.all, "node"))
}

/// A column with the first of its values.
fn column((name, values): &(String, FirstFew<String>)) -> String {
    format!("{name} ({})", listed(values, String::clone))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warnings::WarningCode;
    use crate::warnings::of_input::NAMED;

    fn first<const N: usize>(names: [&str; N]) -> FirstFew<String> {
        FirstFew::of(names.into_iter(), NAMED, str::to_owned)
    }

    fn paths<const N: usize>(paths: [&str; N]) -> FirstFew<PathBuf> {
        FirstFew::of(paths.into_iter(), NAMED, PathBuf::from)
    }

    fn said(warning: InputWarning) -> String {
        warning.to_string()
    }

    /// docs/warnings.md shows the examples.
    #[test]
    fn the_examples_are_what_pmmpi_says() {
        let place = RejectedPlace {
            file: "times.csv".into(),
            line: 12,
            reason: "elapsed_s: -3 is not a time above zero".into(),
        };
        let blas = ("blas".to_owned(), first(["mkl", "openblas"]));
        for warning in [
            InputWarning::ArchivedClasses,
            InputWarning::ConflictingRun { file: "b.pmr".into(), first: "a.pmr".into() },
            InputWarning::CutSession { session: "s31".into() },
            InputWarning::EndedEarly {
                reason: "n3 (rank 3): the process of pmmpi was killed, failed or did not answer during round 3 of \
                         triad, so the screen ends"
                    .into(),
            },
            InputWarning::ForeignFile { path: "notes.txt".into() },
            InputWarning::ForeignFiles { files: paths(["a.txt", "b.bin"]) },
            InputWarning::LaterSessions { sessions: 1 },
            InputWarning::MediansBehind {
                archive: "dgemm".into(),
                files: paths(["dgemm/month=2026-11/pmmpi-1.parquet"]),
            },
            InputWarning::NoPlacesArchived { runs: 3, first: "20261101T120000Z-n1-7-1c".into() },
            InputWarning::NoRunFiles { folder: "results".into() },
            InputWarning::NoTime { times: 2 },
            InputWarning::RejectedRows { rows: 1, values: 0, first: vec![place], are_more: false },
            InputWarning::RepeatedRows { rows: 7 },
            InputWarning::RepeatedSession {
                session: "weekly".into(),
                is_archived: true,
                own_sessions: vec!["weekly 20261126T044328.744080810Z".into()],
            },
            InputWarning::TrustFile {
                path: "trust-AuthenticAMD-25-1-1-0xa0011d5.json".into(),
                reason: "has more than 4194304 bytes".into(),
            },
            InputWarning::UndatedReset { nodes: first(["n0007"]) },
            InputWarning::UndatedRuns { runs: 12 },
            InputWarning::UnknownClassKey { key: "rack".into() },
            InputWarning::UnknownLabel { label: "blas".into() },
            InputWarning::UnknownNode { nodes: first(["n0999"]) },
            InputWarning::UnknownReset { nodes: first(["n0999", "node7"]) },
            InputWarning::UnmeasuredReset { nodes: first(["n0007"]) },
            InputWarning::UnreadPath {
                files: 35,
                path: "hpl/cn017/run3/HPL.out".into(),
                node: "run3".into(),
                parts: first(["cn016", "cn017", "cn018", "cn019"]),
                pattern: "{node}/{run}/HPL.out".into(),
            },
            InputWarning::UnreadPlaces {
                path: "archive/_places/month=2026-11/pmmpi-1.parquet".into(),
                reason: "is damaged: it has no column `event`".into(),
            },
            InputWarning::UnreadValues { values: FirstFew { first: vec![("gflops".to_owned(), 7)], all: 1 } },
            InputWarning::UnusableFile {
                path: "times.csv".into(),
                reason: "has no column `elapsed_s` (expected: node,run,elapsed_s; found: node,run,time)".into(),
            },
            InputWarning::UnusableRunFile {
                path: "run.pmr".into(),
                code: WarningCode::TruncatedFile,
                reason: "is truncated: 100 of 200 bytes".into(),
            },
            InputWarning::UnusedColumns { columns: FirstFew { first: vec![blas], all: 1 } },
        ] {
            assert_eq!(warning.to_string(), warning.code().example());
        }
    }

    #[test]
    fn one_is_not_many_and_long_lists_end_early() {
        let place = |line| RejectedPlace { file: "a.csv".into(), line, reason: "no".into() };
        let first_places = vec![place(1), place(2), place(3)];
        assert_eq!(
            said(InputWarning::RejectedRows { rows: 3, values: 1, first: first_places, are_more: true }),
            "pmmpi left out 3 rows and 1 value: a.csv:1: no; a.csv:2: no; a.csv:3: no; ..."
        );
        // A reader may count a row without a reason.
        assert_eq!(
            said(InputWarning::RejectedRows { rows: 2, values: 0, first: vec![place(1)], are_more: false }),
            "pmmpi left out 2 rows: a.csv:1: no"
        );
        assert_eq!(
            said(InputWarning::RunFilesInSubfolders { files: 1, folders: paths(["a"]) }),
            "1 run file is in a subfolder; to read it, use: pmmpi report a"
        );
        assert_eq!(
            said(InputWarning::RunFilesInSubfolders { files: 5, folders: paths(["a", "b", "c", "d"]) }),
            "5 run files are in subfolders; to read them, use: pmmpi report a b c ..."
        );
        assert_eq!(
            said(InputWarning::UnknownReset { nodes: first(["a", "b", "c\u{7}", "d"]) }),
            "--resets names 4 nodes that the input does not have: a, b, c?, ..."
        );
        let kinds = FirstFew { first: vec!["a".to_owned(), "b".to_owned()], all: 3 };
        assert_eq!(column(&("blas".to_owned(), kinds)), "blas (a, b, ...)");
        let own_sessions = vec!["weekly 1".to_owned(), "weekly 2".to_owned()];
        assert_eq!(
            said(InputWarning::RepeatedSession {
                session: "weekly".into(),
                is_archived: false,
                own_sessions
            }),
            "2 screens have the same label session=weekly as an earlier screen: in the report, the sessions of \
             these screens are weekly 1, weekly 2"
        );
    }
}
