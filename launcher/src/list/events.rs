//! `pmmpi list events`.

use super::Listable;
use crate::vendor_names;
use pmmpi::counters::count_and_quality::{Gap, Quality};
use pmmpi::counters::event::Modes;
use pmmpi::counters::open_counters::{OpenCounters, Scope};
use pmmpi::counters::perf_event_open::{Counters, Target};
use pmmpi::text::printable;
use pmmpi_events::names::{Asked, EventNames, Origin, Places, Resolved, Vendor};
use pmmpi_workload::Failure;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// docs/schema/list-events.schema.json describes its keys; keep them the same.
#[derive(Serialize)]
pub struct Events {
    schema_version: u32,
    events: Vec<Row>,
    /// Fields of each PMU, for events without a name.
    fields: BTreeMap<String, Vec<String>>,
    /// Why the vendors' names are missing.
    no_vendor: Option<String>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    aliases: Vec<String>,
    from: String,
    scopes: Vec<&'static str>,
    unit: String,
    /// Count times scale is the value in `unit`.
    scale: f64,
    /// One per PMU that counts the event: kinds of cores, memory controllers.
    counted_as: Vec<Code>,
    /// True if this user can open it now.
    opens: bool,
    quality: &'static str,
    /// Why it does not open, or why the count is incomplete.
    reason: Option<String>,
    description: Option<String>,
}

/// As in `perf_event_attr`. `config` is text because JSON has no 64-bit numbers.
#[derive(Serialize)]
struct Code {
    name: String,
    r#type: u32,
    config: [String; 3],
    modes: &'static str,
    /// Hardware threads that count it; null for all.
    cpus: Option<String>,
}

/// Events whose name or description contains the filter. If none does, the filter is read as an event, such as
/// `cpu/event=0xc0/`.
pub fn matching(filter: Option<&str>) -> Result<Events, Failure> {
    let names = EventNames::of(Path::new("/"));
    let wanted = filter.map(plain);
    let is_wanted = |text: &str| wanted.as_ref().is_none_or(|wanted| plain(text).contains(wanted));
    let mut rows = Vec::new();
    for listed in names.listed() {
        let from = match listed.origin {
            Origin::Kernel => "kernel".to_owned(),
            Origin::Pmu(pmu) => pmu,
        };
        if listed.aliases.iter().chain([&listed.name, &from]).any(|text| is_wanted(text)) {
            rows.extend(Row::new(listed.name, listed.aliases, from, &listed.events, None));
        }
    }
    let described = vendor_names::described();
    for event in described.iter().flatten() {
        if is_wanted(&event.name) || is_wanted(&event.description) {
            let name = event.name.clone();
            let vendor = Vendor { name: name.clone(), full_name: name.clone(), encoding: event.encoding };
            // `Row::new` drops an event that no PMU here can count.
            let resolved = names.of_vendor(vendor).unwrap_or_default();
            let about = Some(event.description.clone());
            rows.extend(Row::new(name, Vec::new(), "libpfm4".to_owned(), &resolved, about));
        }
    }
    if let (Some(typed), true) = (filter, rows.is_empty()) {
        for asked in names.resolve(typed, vendor_names::resolve).map_err(Failure::usage)? {
            let events = match asked {
                Asked::Event(events) => vec![events],
                Asked::Together(members) => members,
            };
            for events in events {
                let name = events.first().map_or(String::new(), |event| event.event.name.clone());
                rows.extend(Row::new(name, Vec::new(), "typed".to_owned(), &events, None));
            }
        }
    }
    let fields = names.fields().into_iter().collect();
    Ok(Events { schema_version: 1, events: rows, fields, no_vendor: described.err() })
}

/// Makes a filter match regardless of capitals, hyphens and underscores.
fn plain(text: &str) -> String {
    text.to_lowercase().replace('_', "-")
}

impl Row {
    fn new(
        name: String,
        aliases: Vec<String>,
        from: String,
        events: &[Resolved],
        description: Option<String>,
    ) -> Option<Self> {
        let first = events.first()?;
        let gap = events.iter().find_map(gap);
        let quality = gap.map_or(Quality::Exact, Gap::quality);
        let scopes = [(Scope::Task, "task"), (Scope::Core, "core"), (Scope::Socket, "socket")];
        let allowed = scopes.into_iter().filter(|(scope, _)| first.places.allow(*scope));
        Some(Self {
            name,
            aliases,
            from,
            scopes: allowed.map(|(_, name)| name).collect(),
            unit: first.event.unit.clone(),
            scale: first.event.scale,
            counted_as: events.iter().map(Code::of).collect(),
            opens: quality.has_value(),
            quality: quality.name(),
            reason: gap.map(|gap| gap.to_string()),
            description,
        })
    }
}

impl Code {
    fn of(resolved: &Resolved) -> Self {
        let encoding = resolved.event.encoding;
        let cpus = match &resolved.places {
            Places::Threads(cpus) => cpus.as_ref(),
            Places::Socket(cpus) => Some(cpus),
        };
        Self {
            name: resolved.event.name.clone(),
            r#type: encoding.kind,
            config: encoding.config.map(|word| format!("{word:#x}")),
            modes: match encoding.modes {
                Modes::All => "all",
                Modes::User => "user",
                Modes::Kernel => "kernel",
            },
            cpus: cpus.map(ToString::to_string),
        }
    }
}

/// Opens the event now; gives why it does not open or is incomplete.
fn gap(resolved: &Resolved) -> Option<Gap> {
    let target = match &resolved.places {
        Places::Threads(_) => Target::ThisThread,
        Places::Socket(cpus) => Target::Cpu(cpus.0.first()?.0),
    };
    let counters = Counters::open(&[vec![resolved.event.clone()]], target);
    counters.opened().sets.first()?.events.first()?.1
}

/// The widest name beside the other columns.
const NAME_WIDTH: usize = 36;

impl Listable for Events {
    fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    fn text(&self) -> String {
        let label = |row: &Row| match &row.aliases[..] {
            [] => row.name.clone(),
            aliases => format!("{} ({})", row.name, aliases.join(", ")),
        };
        let mut lines = vec![["EVENT", "FROM", "SCOPE", "UNIT", "HERE"].map(str::to_owned)];
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for row in &self.events {
            if let Some(reason) = &row.reason {
                let known = reasons.entry(row.quality).or_default();
                if !known.contains(&&reason[..]) {
                    known.push(reason);
                }
            }
            let here = if row.quality == Quality::Exact.name() { "yes" } else { row.quality };
            lines.push([
                label(row),
                row.from.clone(),
                row.scopes.join(","),
                row.unit.clone(),
                here.to_owned(),
            ]);
        }
        let width = |column: usize| {
            let widths = lines.iter().map(|line| line[column].chars().count());
            widths.filter(|width| column > 0 || *width <= NAME_WIDTH).max().unwrap_or(0)
        };
        let widths: [usize; 4] = std::array::from_fn(width);
        let mut text = String::new();
        for [event, from, scope, unit, here] in &lines {
            let [w0, w1, w2, w3] = widths;
            // A longer name has a line of its own, so that the other columns fit a terminal.
            let event = if event.chars().count() > w0 {
                let _ = writeln!(text, "{event}");
                ""
            } else {
                event
            };
            let _ = writeln!(text, "{event:w0$}  {from:w1$}  {scope:w2$}  {unit:w3$}  {here}");
        }
        if !reasons.is_empty() {
            text.push('\n');
        }
        for (quality, reasons) in reasons {
            let _ = writeln!(text, "{quality}: {}", reasons.join("; or "));
        }
        text.push_str(
            "\n\
             Append :u or :k to count only user mode or only kernel mode (cycles:u).\n\
             A tracepoint is SUBSYSTEM:NAME (sched:sched_switch). If an event has no name,\n\
             write rNNNN, or PMU/FIELD=VALUE,.../ with one of these PMUs and its fields:\n",
        );
        for (pmu, fields) in &self.fields {
            let _ = writeln!(text, "  {pmu}: {}", fields.join(", "));
        }
        if let Some(why) = &self.no_vendor {
            let _ = writeln!(text, "Event names from vendors' manuals are missing: {why}");
        }
        printable(&text)
    }
}
