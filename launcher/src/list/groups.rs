//! `pmmpi list groups`: the events that --group counts on this machine's processor.

use super::{Listable, has};
use pmmpi::node::NodeFacts;
use pmmpi_events::metrics::{CpuKind, catalogue};
use serde::Serialize;
use std::path::Path;

/// Groups of metrics, with the events that they need on this processor.
#[derive(Serialize)]
pub struct Groups {
    schema_version: u32,
    /// The processor to which the events belong.
    processor: String,
    groups: Vec<Group>,
}

#[derive(Serialize)]
struct Group {
    name: &'static str,
    description: &'static str,
    metrics: Vec<&'static str>,
    events: Vec<&'static str>,
}

/// The groups whose name or description contains `filter`.
pub fn matching(filter: Option<&str>) -> Groups {
    let catalogue = catalogue();
    let table = catalogue.table(&CpuKind::of_node(&NodeFacts::read(Path::new("/")).hardware));
    let groups = catalogue.groups.iter().filter(|group| has(filter, &[&group.name, &group.text]));
    let group = |group: &'static pmmpi_events::metrics::EventGroup| Group {
        name: &group.name,
        description: &group.text,
        metrics: catalogue.metrics_of(&group.name).map(|metric| metric.name.as_str()).collect(),
        events: table
            .map(|table| catalogue.events_of(&group.name, table))
            .unwrap_or_default()
            .into_iter()
            .map(|event| event.name.as_str())
            .collect(),
    };
    let processor = table.map(|table| table.text.clone()).unwrap_or_default();
    Groups { schema_version: 1, processor, groups: groups.map(group).collect() }
}

impl Listable for Groups {
    fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    fn text(&self) -> String {
        let mut text =
            format!("Groups of metrics. The events come from pmmpi's table for {}\n", self.processor);
        for Group { name, description, metrics, events } in &self.groups {
            text += &format!("\n{name}: {description}\n  metrics: {}\n", metrics.join(", "));
            let events =
                if events.is_empty() { "none on this processor".to_owned() } else { events.join(", ") };
            text += &format!("  events:  {events}\n");
        }
        text
    }
}
