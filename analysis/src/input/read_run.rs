//! What a run file says, before the runs become a table.

use super::node_rows::{self, NodeRow};
use super::screen_sessions::OfScreen;
use super::{OwnRun, node_counters};
use crate::stats::node_counts::Counted;
use crate::table::node_class::{self, Class, ClassBy, SESSION_LABEL};
use crate::table::selection::RunSelection;
use crate::table::{MAINTENANCE_LABEL, NoTime};
use pmmpi::record::Run;
use pmmpi_events::validation::Trust;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is kept of a run file.
pub(super) struct ReadRun<T> {
    pub(super) run: OwnRun<T>,
    pub(super) started_unix_ns: i64,
    pub(super) session: Option<String>,
    pub(super) maintenance: Option<String>,
    /// Names of labels whose value is not empty.
    pub(super) labels: Vec<String>,
    /// Its selected nodes with their classes; `None` if the run is not selected, whatever its class is.
    pub(super) nodes: Option<Vec<(String, Arc<Class>)>>,
    pub(super) bounds_s: Option<[f64; 2]>,
    /// Indexed by node record.
    pub(super) counted: Vec<Counted>,
    pub(super) rows: BTreeMap<String, NodeRow>,
    /// Why the other nodes have no row.
    pub(super) why_none: (NoTime, String),
    /// `None` for a run that is no round of `pmmpi screen`.
    pub(super) screen: Option<OfScreen>,
    /// The same for single nodes of a screen.
    pub(super) without_time: BTreeMap<String, (NoTime, String)>,
}

impl<T> ReadRun<T> {
    pub(super) fn of(
        run: &Run,
        trust: &Trust,
        class_by: &ClassBy,
        selection: &RunSelection,
        keep: impl Fn(&Run) -> T,
    ) -> Self {
        let label = |name: &str| run.header.labels.iter().find(|(key, _)| key == name);
        let labels = run.header.labels.iter().filter(|(_, value)| !value.is_empty());
        let elapsed = run.elapsed().filter(|elapsed| elapsed.consistent && elapsed.lower_ns > 0);
        let classes = node_class::of_nodes(run, class_by);
        let without_time = node_rows::without_time_in_screen(run);
        Self {
            session: label(SESSION_LABEL).map(|(_, value)| value.clone()),
            maintenance: label(MAINTENANCE_LABEL).map(|(_, value)| value.clone()),
            labels: labels.map(|(key, _)| key.clone()).collect(),
            nodes: selection.nodes_of(run, &classes),
            bounds_s: elapsed.map(|elapsed| [elapsed.lower_ns, elapsed.upper_ns].map(|ns| ns as f64 / 1e9)),
            counted: node_counters::of_nodes(run, &trust.of_run(run)),
            rows: node_rows::of(run, &classes, &without_time),
            why_none: node_rows::why_none(run),
            screen: OfScreen::of(run),
            without_time,
            started_unix_ns: run.header.started_unix_ns,
            run: OwnRun { run_id: run.header.run_id.clone(), kept: keep(run) },
        }
    }
}
