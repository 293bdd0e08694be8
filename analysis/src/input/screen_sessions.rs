//! Screens with the same label `session`: each becomes a session of its own.
//!
//! A session is what was measured together. If a user gives every screen the same label, the runs of all screens
//! would be one session: a node that is slow now would hide behind its runs of last week. Screens of different nodes
//! may share a session, for example if a separate job screens each node.

use crate::table::{NoTime, RunTable};
use crate::warnings::{InputWarning, Warning};
use hashbrown::{HashMap, HashSet};
use pmmpi::RankId;
use pmmpi::record::Run;
use std::collections::BTreeMap;

/// A run of a screen.
#[derive(Clone, Debug)]
pub(super) struct OfScreen {
    /// The id of its series. Each screen is a series.
    pub series: String,
    /// Its start, since 1970 (ns).
    pub started_unix_ns: i64,
    /// The host of rank 0, whose clock gave the start; `None` if this rank is not complete.
    pub clock_of: Option<String>,
}

impl OfScreen {
    /// `None` for a run that is no round of `pmmpi screen`.
    pub fn of(run: &Run) -> Option<Self> {
        run.screened.as_ref()?;
        let header = &run.header;
        Some(Self {
            series: header.series.as_ref().map_or_else(|| header.run_id.clone(), |series| series.id.clone()),
            started_unix_ns: header.started_unix_ns,
            clock_of: run.host_of(RankId(0)).map(str::to_owned),
        })
    }
}

/// A session with screens.
#[derive(Default)]
struct InSession<'a> {
    /// By id.
    screens: HashMap<&'a str, Series<'a>>,
    /// The nodes of other runs, such as those of an archive.
    others: HashSet<[u32; 2]>,
}

/// A screen.
struct Series<'a> {
    id: &'a str,
    started_unix_ns: i64,
    /// The nodes, each with its classes: one per kernel.
    nodes: HashSet<[u32; 2]>,
}

/// If nodes have runs of several screens in one session, makes each of these screens a separate session. Warns of
/// each such session. `runs` has the screens of all run files by run id.
pub(super) fn split(table: &mut RunTable, runs: &HashMap<String, OfScreen>) -> Vec<Warning> {
    let number = |id: &String| table.runs.find(id);
    let of_run: HashMap<u32, &OfScreen> =
        runs.iter().filter_map(|(id, run)| Some((number(id)?, run))).collect();
    if of_run.is_empty() {
        return Vec::new();
    }
    let entries = table.without_time.iter().map(|entry| (entry.run, entry.session, entry.node, entry.class));
    let rows = (0..table.len())
        .map(|row| (table.run.at(row), table.session.at(row), table.node.at(row), table.class.at(row)));
    let mut sessions: HashMap<u32, InSession> = HashMap::new();
    for (run, session, node, class) in rows.clone().chain(entries.clone()) {
        if let Some(OfScreen { series, started_unix_ns, .. }) = of_run.get(&run) {
            let known = sessions.entry(session).or_default().screens.entry(series).or_insert_with(|| {
                Series { id: series, started_unix_ns: *started_unix_ns, nodes: HashSet::new() }
            });
            known.started_unix_ns = known.started_unix_ns.min(*started_unix_ns);
            known.nodes.insert([node, class]);
        }
    }
    for (run, session, node, class) in rows.chain(entries) {
        if let Some(known) = sessions.get_mut(&session).filter(|_| !of_run.contains_key(&run)) {
            known.others.insert([node, class]);
        }
    }
    let mut moved: HashMap<(u32, &str), String> = HashMap::new();
    // By number of screens and name: `sessions` has a random order.
    let mut warnings: BTreeMap<(usize, String), Warning> = BTreeMap::new();
    for (session, InSession { screens, others }) in sessions {
        let Some(name) = table.sessions.get(session).filter(|name| !name.is_empty()) else { continue };
        let is_archived = !others.is_empty();
        let alone = into_sessions(screens.into_values().collect(), others);
        if alone.is_empty() {
            continue;
        }
        let name = name.to_owned();
        let names: Vec<String> = alone.iter().map(|id| format!("{name} {}", start_of(id))).collect();
        let own_sessions = names.clone();
        let warning = InputWarning::RepeatedSession { session: name.clone(), is_archived, own_sessions };
        warnings.insert((names.len(), name), warning.into());
        moved.extend(alone.into_iter().zip(names).map(|(id, name)| ((session, id), name)));
    }
    let moved: HashMap<(u32, u32), String> = of_run
        .iter()
        .flat_map(|(run, of)| {
            let of_series = moved.iter().filter(|((_, id), _)| *id == of.series);
            of_series.map(|((session, _), name)| ((*run, *session), name.clone()))
        })
        .collect();
    rename(table, &moved);
    warnings.into_values().collect()
}

/// The screens that need a session of their own, by start: in the session before, some of their nodes ran the same.
fn into_sessions<'a>(mut screens: Vec<Series<'a>>, mut taken: HashSet<[u32; 2]>) -> Vec<&'a str> {
    screens.sort_by(|a, b| (a.started_unix_ns, a.id).cmp(&(b.started_unix_ns, b.id)));
    let mut alone = Vec::new();
    for screen in screens {
        match screen.nodes.is_disjoint(&taken) {
            true => taken.extend(screen.nodes),
            false => alone.push(screen.id),
        }
    }
    alone
}

/// The start of a series in its id, which is unique.
fn start_of(series: &str) -> &str {
    series.split('-').next().unwrap_or(series)
}

/// `moved` has the new session of each run and session.
fn rename(table: &mut RunTable, moved: &HashMap<(u32, u32), String>) {
    for row in 0..table.len() {
        if let Some(name) = moved.get(&(table.run.at(row), table.session.at(row))) {
            let session = table.sessions.number(name);
            table.session.set(row, session);
        }
    }
    for entry in &mut table.without_time {
        let Some(name) = moved.get(&(entry.run, entry.session)) else { continue };
        let session = table.sessions.number(name);
        if entry.why == NoTime::Wrong {
            let before = (entry.node, entry.session);
            let Some(wrong) = table.wrong.get_mut(&before) else { continue };
            wrong.results = wrong.results.saturating_sub(1);
            if wrong.results == 0 {
                table.wrong.remove(&before);
            }
            let now = table.wrong.entry((entry.node, session)).or_default();
            if now.results == 0 {
                (now.first, now.started_unix_ns) = (entry.reason.clone(), entry.started_unix_ns);
            }
            now.results += 1;
            now.started_unix_ns = now.started_unix_ns.min(entry.started_unix_ns);
        }
        entry.session = session;
    }
}
