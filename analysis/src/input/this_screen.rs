//! The screen that a report is about, and the sessions that began after it.
//!
//! An archive may have such sessions: another job added them meanwhile, or the clock of an earlier screen was ahead. The
//! latest session would decide which nodes are still there, so the verdicts of this screen need a table without them.

use super::Input;
use super::importers::OneScreen;
use super::screen_sessions::OfScreen;
use crate::table::{RunTable, UNDATED};
use crate::warnings::{InputWarning, Warning};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the sessions that began after a screen have of its nodes. They do not count, so if a clock is wrong, the screen
/// lacks a part of the history of these nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaterHistory {
    /// The hosts with times of a class of the screen in such sessions, and when the last of these sessions began (ns
    /// since 1970).
    pub last_began: BTreeMap<String, i64>,
    /// The host whose clock gave the start of the screen. `None` if it is not known.
    pub clock_of: Option<String>,
}

impl<T> Input<T> {
    /// Decides which screen the input is about. If the caller asked for a screen, leaves out the sessions that began after
    /// it, and makes its own session the last one. `kept` tells which rows of the table are selected.
    pub(super) fn of_screen(
        &mut self,
        table: &mut RunTable,
        screens: &HashMap<String, OfScreen>,
        archives: &[PathBuf],
        asked: Option<&OneScreen>,
        kept: Option<Vec<bool>>,
    ) -> Option<Vec<bool>> {
        let runs = self.runs.iter().map(|run| run.run_id.as_str());
        self.screen = match asked {
            Some(OneScreen::Series(id)) => Some(id.clone()),
            Some(OneScreen::Latest) => {
                let folders = folders_of_archives(self.run_files.values(), archives);
                let folder_of = |run: &str| self.run_files.get(run).and_then(|file| file.parent());
                latest(runs, screens, |run| folder_of(run).is_some_and(|folder| folders.contains(folder)))
            }
            None => latest(runs, screens, |_| false),
        };
        let Some(series) = self.screen.as_deref().filter(|_| asked.is_some()) else { return kept };
        let screen = ThisScreen::of(table, kept.as_deref(), screens, series);
        // An undated session would be in the order of names, and runs of before may have the screen's label.
        table.last_sessions = screen.own.keys().copied().collect();
        let Some(later) = LaterSessions::of(table, kept.as_deref(), &screen) else { return kept };
        self.later_history = LaterHistory {
            last_began: later.last_began(table, kept.as_deref(), &screen),
            clock_of: screen.clock_of,
        };
        later.leave_out(table);
        self.runs.retain(|run| table.runs.find(&run.run_id).is_none_or(|run| !later.runs.contains(&run)));
        self.warnings.push(later.warning());
        Some(later.kept)
    }
}

/// The folders of these files that are archives, however their paths are written. Asks the system once per folder,
/// because there may be thousands of files.
fn folders_of_archives<'a>(
    files: impl Iterator<Item = &'a PathBuf>,
    archives: &[PathBuf],
) -> HashSet<&'a Path> {
    if archives.is_empty() {
        return HashSet::new();
    }
    let archives: HashSet<PathBuf> = archives.iter().map(|archive| canonical(archive)).collect();
    let folders: HashSet<&Path> = files.filter_map(|file| file.parent()).collect();
    folders.into_iter().filter(|folder| archives.contains(&canonical(folder))).collect()
}

/// The path as it is if the system does not know it. A file name alone is in the current folder.
fn canonical(folder: &Path) -> PathBuf {
    let named = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    named.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// The series of the latest screen among these runs. The folder of an archive may also have run files, of other screens:
/// they decide only if there are no others.
fn latest<'a>(
    runs: impl Iterator<Item = &'a str>,
    screens: &HashMap<String, OfScreen>,
    is_in_archive: impl Fn(&str) -> bool,
) -> Option<String> {
    let of_screens = runs.filter_map(|run| Some((run, screens.get(run)?)));
    let (_, latest) = of_screens.max_by_key(|&(run, _)| (!is_in_archive(run), run))?;
    Some(latest.series.clone())
}

/// Numbers of the rows that count until now; `None`: all.
fn rows(table: &RunTable, kept: Option<&[bool]>) -> impl Iterator<Item = usize> {
    (0..table.len()).filter(move |row| kept.is_none_or(|kept| kept[*row]))
}

/// A screen among all sessions of the table.
struct ThisScreen {
    /// Numbers of its runs.
    runs: HashSet<u32>,
    /// When its first run in each of its sessions began. Such a session may also have runs of before.
    own: HashMap<u32, i64>,
    /// When each session of the table began, by its number; or [`UNDATED`].
    began: Vec<i64>,
    /// See [`OfScreen::clock_of`].
    clock_of: Option<String>,
}

impl ThisScreen {
    /// The screen with this series.
    fn of(
        table: &RunTable,
        kept: Option<&[bool]>,
        screens: &HashMap<String, OfScreen>,
        series: &str,
    ) -> Self {
        let of_series = || screens.iter().filter(|(_, of)| of.series == series);
        let runs: HashSet<u32> = of_series().filter_map(|(run, _)| table.runs.find(run)).collect();
        let (_, clock_of) =
            of_series().filter_map(|(run, of)| Some((run, of.clock_of.clone()?))).min().unzip();
        let of_rows = rows(table, kept)
            .map(|row| (table.run.at(row), table.session.at(row), table.started_unix_ns[row]));
        let failed = table.without_time.iter();
        let failed = failed.map(|entry| (entry.run, entry.session, entry.started_unix_ns));
        let mut began = vec![UNDATED; table.sessions.len()];
        let mut own: HashMap<u32, i64> = HashMap::new();
        for (run, session, started) in of_rows.chain(failed) {
            let first = &mut began[session as usize];
            *first = (*first).min(started);
            if runs.contains(&run) {
                let first = own.entry(session).or_insert(started);
                *first = (*first).min(started);
            }
        }
        for ((_, session), wrong) in &table.wrong {
            let first = &mut began[*session as usize];
            *first = (*first).min(wrong.started_unix_ns);
        }
        Self { runs, own, began, clock_of }
    }
}

/// The sessions that began after a screen.
struct LaterSessions {
    /// Whether each session is one of them, by its number.
    are_later: Vec<bool>,
    /// Numbers of the runs in these sessions.
    runs: HashSet<u32>,
    /// Which rows of the table remain.
    kept: Vec<bool>,
}

impl LaterSessions {
    /// `kept` tells which rows count until now; `None`: all. Gives `None` if there is no later session.
    fn of(table: &RunTable, kept: Option<&[bool]>, screen: &ThisScreen) -> Option<Self> {
        let start = *screen.own.values().max()?;
        // A session without a start may be an earlier one.
        let are_later: Vec<bool> =
            screen.began.iter().map(|first| *first > start && *first != UNDATED).collect();
        if !are_later.contains(&true) {
            return None;
        }
        let is_later = |session: u32| are_later[session as usize];
        let runs = rows(table, kept).filter(|row| is_later(table.session.at(*row)));
        let runs = runs.map(|row| table.run.at(row));
        let failed = table.without_time.iter().filter(|entry| is_later(entry.session)).map(|entry| entry.run);
        let runs = runs.chain(failed).collect();
        let is_kept = |row: usize| kept.is_none_or(|kept| kept[row]);
        let kept = (0..table.len()).map(|row| is_kept(row) && !is_later(table.session.at(row))).collect();
        Some(Self { are_later, runs, kept })
    }

    /// The hosts of the screen that have times of one of its classes in these sessions, and when the last of these
    /// sessions began. `kept` as in [`Self::of`].
    fn last_began(
        &self,
        table: &RunTable,
        kept: Option<&[bool]>,
        screen: &ThisScreen,
    ) -> BTreeMap<String, i64> {
        let group = |row: usize| [table.node.at(row), table.class.at(row)];
        let of_screen = rows(table, kept).filter(|row| screen.runs.contains(&table.run.at(*row)));
        let of_screen: HashSet<[u32; 2]> = of_screen.map(group).collect();
        let mut last: HashMap<u32, i64> = HashMap::new();
        for row in rows(table, kept) {
            let session = table.session.at(row) as usize;
            if self.are_later[session] && of_screen.contains(&group(row)) {
                let began = screen.began[session];
                let last = last.entry(table.node.at(row)).or_insert(began);
                *last = (*last).max(began);
            }
        }
        last.into_iter()
            .filter_map(|(node, began)| Some((table.nodes.get(node)?.to_owned(), began)))
            .collect()
    }

    /// Removes what the table has of these sessions beside its rows.
    fn leave_out(&self, table: &mut RunTable) {
        let is_later = |session: u32| self.are_later[session as usize];
        table.wrong.retain(|(_, session), _| !is_later(*session));
        table.rejected_nodes.retain(|[_, session]| !is_later(*session));
        table.without_time.retain(|entry| !is_later(entry.session));
    }

    /// Says that they do not count.
    fn warning(&self) -> Warning {
        let sessions = self.are_later.iter().filter(|is_later| **is_later).count();
        InputWarning::LaterSessions { sessions }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of runs of one class, but for the run `fma`: node, run, session, start.
    fn table(rows: &[(&str, &str, &str, i64)]) -> RunTable {
        let mut table = RunTable::default();
        for (node, run, session, started) in rows {
            table.node.push(table.nodes.number(node));
            table.run.push(table.runs.number(run));
            table.class.push(table.classes.number(if *run == "fma" { "fma" } else { "triad" }));
            table.session.push(table.sessions.number(session));
            table.elapsed_s.push(1.0);
            table.started_unix_ns.push(*started);
        }
        table
    }

    fn screen(table: &RunTable) -> ThisScreen {
        let round =
            OfScreen { series: "series".to_owned(), started_unix_ns: 5, clock_of: Some("n1".to_owned()) };
        ThisScreen::of(table, None, &HashMap::from_iter([("now".to_owned(), round)]), "series")
    }

    #[test]
    fn the_screen_begins_with_its_own_runs() {
        let table = table(&[
            ("n9", "other", "weekly", 1),
            ("n1", "before", "between", 3),
            ("n1", "now", "weekly", 5),
            ("n1", "after", "later", 7),
            ("n2", "unknown", "undated", UNDATED),
        ]);
        let screen = screen(&table);
        assert_eq!(screen.clock_of.as_deref(), Some("n1"));
        let later = LaterSessions::of(&table, None, &screen).unwrap();
        assert_eq!(later.are_later, [false, false, true, false]);
        assert_eq!(later.kept, [true, true, true, false, true]);
    }

    #[test]
    fn a_node_has_later_history_also_if_it_has_an_earlier_one() {
        let table = table(&[
            ("n1", "before", "earlier", 3),
            ("n1", "now", "this", 5),
            ("n2", "now", "this", 5),
            ("n3", "now", "this", 5),
            ("n1", "after", "later", 7),
            ("n2", "after", "later", 7),
            ("n4", "after", "later", 7),
            ("n2", "last", "last", 9),
            ("n2", "middle", "middle", 8),
            ("n3", "fma", "last", 9),
        ]);
        let screen = screen(&table);
        let later = LaterSessions::of(&table, None, &screen).unwrap();
        let expected = BTreeMap::from([("n1".to_owned(), 7), ("n2".to_owned(), 9)]);
        assert_eq!(later.last_began(&table, None, &screen), expected);
    }

    #[test]
    fn a_folder_is_an_archive_by_any_of_its_paths() {
        let archives = [".", "src/../src", "/nonexistent/a"].map(PathBuf::from);
        let files = ["Cargo.toml", "./src/lib.rs", "/nonexistent/a/b", "tests/c"].map(PathBuf::from);
        let found = folders_of_archives(files.iter(), &archives);
        assert_eq!(found, HashSet::from_iter(["", "./src", "/nonexistent/a"].map(Path::new)));
    }
}
