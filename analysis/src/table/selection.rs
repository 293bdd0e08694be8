//! Which runs count: `--since`, `--until`, `--node`, `--class`, `--run` and `--where`.

use crate::table::instant;
use crate::table::node_class::{Class, Key, Parts, SESSION_LABEL};
use crate::table::run_name::{ChosenRuns, RunName};
use crate::table::slurm_host_list::{HostList, compressed};
use crate::table::{RunTable, UNDATED, UNDECLARED, WithoutTime};
use pmmpi::record::Run;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A run must have all of these. The default selects all runs.
#[derive(Clone, Debug, Default)]
pub struct RunSelection {
    /// The run started at this moment or later.
    pub since: Option<Moment>,
    /// The run started before this moment.
    pub until: Option<Moment>,
    /// Nodes.
    pub nodes: Option<HostList>,
    /// The name of the class; if no class has it, a part of the name.
    pub class: Option<String>,
    /// Runs of pmmpi: one of these. All runs if there is none.
    pub runs: Vec<RunName>,
    /// Labels, and columns of other tools' results.
    pub labels: Vec<LabelValue>,
}

/// A date or an instant as the user typed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// ns since 1970.
    pub unix_ns: i64,
    text: String,
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match instant::of_date_or_instant(text) {
            Some(unix_ns) => Ok(Self { unix_ns, text: text.to_owned() }),
            None => Err("expected 2026-11-21 or 2026-11-21T20:35:00+01:00".to_owned()),
        }
    }
}

/// `label=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelValue {
    key: Key,
    value: String,
}

impl FromStr for LabelValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text
            .split_once('=')
            .map(|(key, value)| (key.trim(), value.trim()))
            .filter(|(key, _)| !key.is_empty())
            .ok_or("expected label=value")?;
        Ok(Self { key: Key::of_name(key), value: value.to_owned() })
    }
}

/// What was selected, for the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Selected {
    /// As the user typed it; the same holds for all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Nodes in Slurm's syntax.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    /// The class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Parts of run ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<String>,
    /// `label=value`.
    #[serde(rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

impl fmt::Display for Selected {
    /// As on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            ("--since", &self.since),
            ("--until", &self.until),
            ("--node", &self.nodes),
            ("--class", &self.class),
        ];
        let named = named.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
        let runs = self.runs.iter().map(|run| format!("--run {run}"));
        let labels = self.labels.iter().map(|label| format!("--where {label}"));
        f.write_str(&named.chain(runs).chain(labels).collect::<Vec<_>>().join(" "))
    }
}

impl RunSelection {
    /// True if all runs are selected.
    pub fn is_all(&self) -> bool {
        self.since.is_none()
            && self.until.is_none()
            && self.nodes.is_none()
            && self.class.is_none()
            && self.runs.is_empty()
            && self.labels.is_empty()
    }

    /// The names of its labels that the input does not have; `known` has those that it has.
    pub(crate) fn unknown(&self, known: &BTreeSet<String>) -> Vec<String> {
        let names = self.keys().filter(|key| matches!(key, Key::Named(_))).map(|key| key.name().to_owned());
        names.filter(|name| !known.iter().any(|known| known.eq_ignore_ascii_case(name))).collect()
    }

    /// True if labels are part of the selection.
    pub fn has_labels(&self) -> bool {
        !self.labels.is_empty()
    }

    /// The keys of the labels, which readers must keep.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.labels.iter().map(|label| &label.key).filter(|key| !is_session(key)).cloned()
    }

    /// True if a run that started at `started_unix_ns` may count.
    pub fn has_start(&self, started_unix_ns: i64) -> bool {
        let is_dated = started_unix_ns != UNDATED;
        self.since.as_ref().is_none_or(|since| is_dated && since.unix_ns <= started_unix_ns)
            && self.until.as_ref().is_none_or(|until| is_dated && started_unix_ns < until.unix_ns)
    }

    /// True if some of the runs that started between `first` and `last` may count.
    pub(crate) fn may_have_starts(&self, first: i64, last: i64) -> bool {
        self.since.as_ref().is_none_or(|since| since.unix_ns <= last)
            && self.until.as_ref().is_none_or(|until| first < until.unix_ns)
    }

    /// True if the median of runs that started at `started_unix_ns` or later may count. With `since`, medians stand for the
    /// sessions that began before.
    pub(crate) fn may_have_earlier(&self, started_unix_ns: i64) -> bool {
        self.since.as_ref().is_none_or(|since| started_unix_ns < since.unix_ns)
    }

    /// True if the nodes of the selection include this one.
    pub fn has_node(&self, name: &str) -> bool {
        // The node of a job on several hosts may be the list of its hosts.
        let has = |nodes: &HostList| nodes.has(name) || name.split(',').any(|name| nodes.has(name));
        self.nodes.as_ref().is_none_or(has)
    }

    /// True if this run of pmmpi may count; [`RunSelection::chosen`] decides when all ids are known.
    fn may_have_run(&self, run_id: &str) -> bool {
        self.runs.is_empty() || self.runs.iter().any(|name| name.may_be(run_id))
    }

    /// The runs of pmmpi that `--run` chooses, of these and those of the table; `None` if all runs count.
    pub(crate) fn chosen<'a>(
        &self,
        table: &'a RunTable,
        others: impl Iterator<Item = &'a str>,
    ) -> Result<Option<ChosenRuns>, String> {
        if self.runs.is_empty() {
            return Ok(None);
        }
        let of_table = (0..table.len()).filter(|row| table.is_own(*row));
        let of_table = of_table.map(|row| table.run.at(row));
        let failed = table.without_time.iter().filter(|entry| entry.is_own).map(|entry| entry.run);
        let of_table = of_table.chain(failed).filter_map(|run| table.runs.get(run));
        let ids: BTreeSet<&str> = of_table.chain(others).filter(|id| self.may_have_run(id)).collect();
        ChosenRuns::of(&self.runs, &ids).map(Some)
    }

    /// The selected nodes of a run of pmmpi, with their classes, as far as start, labels and names tell. `None` if the run
    /// is not selected; a run without nodes has none. `classes` are those of its node records.
    pub(crate) fn nodes_of(&self, run: &Run, classes: &[Arc<Class>]) -> Option<Vec<(String, Arc<Class>)>> {
        let header = &run.header;
        let label =
            |name: &str| header.labels.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let is = |wanted: &LabelValue| match &wanted.key {
            Key::Named(name) => label(name).unwrap_or_default() == wanted.value,
            _ => true, // of a node
        };
        if !(self.has_start(header.started_unix_ns)
            && self.may_have_run(&header.run_id)
            && self.labels.iter().all(is))
        {
            return None;
        }
        let has_facts = |class: &Class| {
            let facts = self.labels.iter().filter(|label| !matches!(label.key, Key::Named(_)));
            facts.into_iter().all(|label| label.is_in(&class.parts))
        };
        let nodes = run.nodes.iter().zip(classes);
        let selected = nodes.filter(|(node, class)| self.has_node(&node.key.hostname) && has_facts(class));
        let selected: Vec<_> =
            selected.map(|(node, class)| (node.key.hostname.clone(), class.clone())).collect();
        (run.nodes.is_empty() || !selected.is_empty()).then_some(selected)
    }

    /// Tells which classes are selected: the one with the name that the user gave, or else those that contain it. The names
    /// are those of the table and `others`.
    pub(crate) fn classes<'a, I: Iterator<Item = &'a str>>(
        &self,
        table: &RunTable,
        mut others: I,
    ) -> impl Fn(&str) -> bool + use<'a, I> {
        let class = self.class.clone();
        let is_exact = class.as_ref().is_some_and(|class| {
            // The pool of names may have names that no row has.
            let number = table.class_number(class);
            let mut of_failed = table.without_time.iter().map(|entry| entry.class);
            number.is_some_and(|number| {
                table.class.iter().any(|class| class == number) || of_failed.any(|class| class == number)
            }) || others.any(|other| other == class)
        });
        move |name| match &class {
            None => true,
            Some(class) if is_exact => name == class,
            Some(class) => name.contains(class.as_str()),
        }
    }

    /// Which rows of the table are selected; all rows of the first `archived` files are. Removes wrong results that are not.
    pub(crate) fn apply(
        &self,
        table: &mut RunTable,
        is_selected: &impl Fn(&str) -> bool,
        chosen: Option<&ChosenRuns>,
        archived: usize,
    ) -> (Vec<bool>, LeftOut) {
        let mut left_out = LeftOut::default();
        let kept = self.rows(table, is_selected, chosen, archived, &mut left_out);
        self.apply_to_failed(table, is_selected, chosen, archived);
        let nodes: Vec<bool> = table.nodes.iter().map(|name| self.has_node(name)).collect();
        table.rejected_nodes.retain(|[node, _]| nodes[*node as usize]);
        let sessions = &table.sessions;
        let session = |number: u32| sessions.get(number).unwrap_or_default();
        let is_of_session = |number: u32| {
            self.labels.iter().all(|label| !is_session(&label.key) || label.value == session(number))
        };
        table.wrong.retain(|(node, number), wrong| {
            chosen.is_none()
                && nodes[*node as usize]
                && self.has_start(wrong.started_unix_ns)
                && is_of_session(*number)
        });
        (kept, left_out)
    }

    /// Keeps the selected runs without a usable time, and those of the first `archived` files.
    fn apply_to_failed(
        &self,
        table: &mut RunTable,
        is_selected: &impl Fn(&str) -> bool,
        chosen: Option<&ChosenRuns>,
        archived: usize,
    ) {
        let mut all = std::mem::take(&mut table.without_time);
        let is_chosen = |entry: &WithoutTime| {
            let run = table.runs.get(entry.run).unwrap_or_default();
            chosen.is_none_or(|chosen| entry.is_own && chosen.ids.contains(run))
        };
        let has_label = |entry: &WithoutTime, label: &LabelValue| match is_session(&label.key) {
            true => table.sessions.get(entry.session).unwrap_or_default() == label.value,
            false => table.all_parts.get(entry.parts as usize).is_some_and(|parts| label.is_in(parts)),
        };
        all.retain(|entry| {
            let node = table.nodes.get(entry.node).unwrap_or_default();
            let class = table.classes.get(entry.class).filter(|name| !name.is_empty()).unwrap_or(UNDECLARED);
            // A run may have failed before any node was known.
            let of_node = node.is_empty() || (self.has_node(node) && is_selected(class));
            (entry.source as usize) < archived
                || of_node
                    && is_chosen(entry)
                    && self.has_start(entry.started_unix_ns)
                    && self.labels.iter().all(|label| has_label(entry, label))
        });
        table.without_time = all;
    }

    fn rows(
        &self,
        table: &RunTable,
        is_selected: &impl Fn(&str) -> bool,
        chosen: Option<&ChosenRuns>,
        archived: usize,
        left_out: &mut LeftOut,
    ) -> Vec<bool> {
        let nodes: Vec<bool> = table.nodes.iter().map(|name| self.has_node(name)).collect();
        let class =
            |number: u32| table.classes.get(number).filter(|name| !name.is_empty()).unwrap_or(UNDECLARED);
        let classes: Vec<bool> =
            (0..table.classes.len() as u32).map(|number| is_selected(class(number))).collect();
        let parts: Vec<bool> = table
            .all_parts
            .iter()
            .map(|parts| {
                let is = |label: &LabelValue| is_session(&label.key) || label.is_in(parts);
                self.labels.iter().all(is)
            })
            .collect();
        let sessions: Vec<bool> = table
            .sessions
            .iter()
            .map(|name| self.labels.iter().all(|label| !is_session(&label.key) || label.value == name))
            .collect();
        let runs: Option<Vec<bool>> = chosen.map(|chosen| {
            let ids = (0..table.runs.len() as u32).map(|number| table.runs.get(number));
            ids.map(|id| id.is_some_and(|id| chosen.ids.contains(id))).collect()
        });
        let asks_for_start = self.since.is_some() || self.until.is_some();
        let outcome = |row: usize| {
            if archived > 0 && (table.origins.source(row) as usize) < archived {
                return Outcome::Kept;
            }
            let has_parts = match self.has_labels() {
                true => table.parts.get(row).is_some_and(|number| parts[*number as usize]),
                false => true,
            };
            let others = nodes[table.node.at(row) as usize]
                && classes[table.class.at(row) as usize]
                && sessions[table.session.at(row) as usize]
                && runs.as_ref().is_none_or(|runs| table.is_own(row) && runs[table.run.at(row) as usize])
                && has_parts;
            let started = table.started_unix_ns[row];
            let is_run = table.median_of(row).is_none();
            let is_in_time = match table.median_of(row) {
                Some(_) if self.since.is_some() => self.may_have_earlier(started),
                _ => self.has_start(started),
            };
            match (others && is_in_time, is_run) {
                (true, _) => Outcome::Kept,
                (false, false) => Outcome::MedianLeftOut,
                (false, true) if others && asks_for_start && started == UNDATED => Outcome::Undated,
                (false, true) => Outcome::LeftOut,
            }
        };
        let outcomes: Vec<Outcome> = (0..table.len()).into_par_iter().map(outcome).collect();
        let count = |of: Outcome| outcomes.iter().filter(|outcome| **outcome == of).count();
        let undated = count(Outcome::Undated);
        left_out.undated += undated;
        left_out.rows += undated + count(Outcome::LeftOut);
        outcomes.iter().map(|outcome| *outcome == Outcome::Kept).collect()
    }

    /// For the report; `None` if all runs are selected.
    pub fn described(&self) -> Option<Selected> {
        let moment = |moment: &Option<Moment>| moment.as_ref().map(|moment| moment.text.clone());
        (!self.is_all()).then(|| Selected {
            since: moment(&self.since),
            until: moment(&self.until),
            nodes: self.nodes.as_ref().map(|nodes| compressed(nodes.names())),
            class: self.class.clone(),
            runs: self.runs.iter().map(|run| run.text().to_owned()).collect(),
            labels: self.labels.iter().map(|label| format!("{}={}", label.key.name(), label.value)).collect(),
        })
    }
}

/// What became of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Kept,
    LeftOut,
    /// A run that is left out because nothing tells when it started.
    Undated,
    MedianLeftOut,
}

/// What a selection left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Rows.
    pub rows: usize,
    /// Of these, rows that only lack a start.
    pub undated: usize,
}

impl LeftOut {
    /// Adds what was left out elsewhere.
    pub fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.undated += other.undated;
    }
}

/// A session is no part of a class.
fn is_session(key: &Key) -> bool {
    matches!(key, Key::Named(name) if name == SESSION_LABEL)
}

impl LabelValue {
    /// True if this column may have the label.
    pub(crate) fn names(&self, column: &Key) -> bool {
        self.key.names(column)
    }

    /// True if one of the texts between `first` and `last` may be the value.
    pub(crate) fn may_be_in(&self, first: &[u8], last: &[u8]) -> bool {
        (first..=last).contains(&self.value.as_bytes())
    }

    /// A label without a value counts as one that is not there.
    fn is_in(&self, parts: &Parts) -> bool {
        let found = parts.iter().find(|(key, _)| self.key.names(key)).map(|(_, value)| value);
        found.unwrap_or_default() == self.value
    }
}
