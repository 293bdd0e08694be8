//! The screen that a report is about, and the sessions that began after it.
//!
//! An archive may have such sessions: another job added them meanwhile, or the clock of an earlier screen was ahead. The
//! latest session would decide which nodes are still there, so the verdicts of this screen need a table without them.

use super::Input;
use super::importers::OneScreen;
use super::screen_sessions::OfScreen;
use crate::table::{RunTable, UNDATED};
use crate::warning_codes::{Warning, WarningCode};
use hashbrown::{HashMap, HashSet};
use pmmpi::text::count;
use std::path::PathBuf;

impl<T> Input<T> {
    /// Decides which screen the input is about. If the caller asked for a screen, leaves out the sessions that began after
    /// it. `kept` tells which rows of the table are selected.
    pub(super) fn of_screen(
        &mut self,
        table: &mut RunTable,
        screens: &HashMap<String, OfScreen>,
        archives: &[PathBuf],
        asked: Option<&OneScreen>,
        kept: Option<Vec<bool>>,
    ) -> Option<Vec<bool>> {
        let is_in_archive = |run: &str| {
            let folder = self.run_files.get(run).and_then(|file| file.parent());
            folder.is_some_and(|folder| archives.iter().any(|archive| archive == folder))
        };
        let runs = self.runs.iter().map(|run| run.run_id.as_str());
        self.screen = match asked {
            Some(OneScreen::Series(id)) => Some(id.clone()),
            _ => latest(runs, screens, |run| asked.is_some() && is_in_archive(run)),
        };
        let series = self.screen.as_deref().filter(|_| asked.is_some());
        let later = series.and_then(|id| LaterSessions::of(table, kept.as_deref(), screens, id));
        let Some(later) = later else { return kept };
        later.leave_out(table);
        self.runs.retain(|run| table.runs.find(&run.run_id).is_none_or(|run| !later.runs.contains(&run)));
        self.warnings.push(later.warning());
        Some(later.kept)
    }
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
    /// Of the screen with this series. `kept` tells which rows count until now; `None`: all. Gives `None` if there is no
    /// later session.
    fn of(
        table: &RunTable,
        kept: Option<&[bool]>,
        screens: &HashMap<String, OfScreen>,
        series: &str,
    ) -> Option<Self> {
        let is_kept = |row: &usize| kept.is_none_or(|kept| kept[*row]);
        let rows = || (0..table.len()).filter(is_kept);
        let of_rows =
            rows().map(|row| (table.run.at(row), table.session.at(row), table.started_unix_ns[row]));
        let failed = table.without_time.iter();
        let failed = failed.map(|entry| (entry.run, entry.session, entry.started_unix_ns));
        let of_series = screens.iter().filter(|(_, of)| of.series == series);
        let of_screen: HashSet<u32> = of_series.filter_map(|(run, _)| table.runs.find(run)).collect();
        let mut began = vec![UNDATED; table.sessions.len()];
        let mut own: HashSet<u32> = HashSet::new();
        for (run, session, started) in of_rows.chain(failed) {
            let first = &mut began[session as usize];
            *first = (*first).min(started);
            if of_screen.contains(&run) {
                own.insert(session);
            }
        }
        for ((_, session), wrong) in &table.wrong {
            let first = &mut began[*session as usize];
            *first = (*first).min(wrong.started_unix_ns);
        }
        // A session without a start may be an earlier one.
        let start = own.iter().map(|session| began[*session as usize]).max()?;
        let are_later: Vec<bool> = began.iter().map(|first| *first > start && *first != UNDATED).collect();
        if !are_later.contains(&true) {
            return None;
        }
        let is_later = |session: u32| are_later[session as usize];
        let runs = rows().filter(|row| is_later(table.session.at(*row))).map(|row| table.run.at(row));
        let failed = table.without_time.iter().filter(|entry| is_later(entry.session)).map(|entry| entry.run);
        let runs = runs.chain(failed).collect();
        let kept = (0..table.len()).map(|row| is_kept(&row) && !is_later(table.session.at(row))).collect();
        Some(Self { are_later, runs, kept })
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
        let them = if sessions == 1 { "it" } else { "them" };
        Warning::new(
            WarningCode::LaterSessions,
            format!(
                "the input has {} that began after this screen: the report does not count {them}",
                count(sessions, "session")
            ),
        )
    }
}
