//! `pmmpi list`: what can be asked for here.

use crate::options::{List, ListFormat, Listing};
use crate::vendor;
use pmmpi::counters::event::Event;
use pmmpi::counters::linux::{Counters, Target};
use pmmpi::counters::names::{Names, Origin, Places, Resolved, Vendor};
use pmmpi::counters::probe::{Probe, Scope};
use pmmpi::counters::reading::{Gap, Quality};
use pmmpi::record::End;
use pmmpi::summary::printable;
use pmmpi_rounds::Failure;
use pmmpi_rounds::console::say;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

/// Prints a list to stdout.
pub fn run(typed: &List) -> Result<End, Failure> {
    let text = match typed.what {
        Listing::Events => events(typed)?,
    };
    // A reader that has gone away (`| head`) wants no more.
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::own(format_args!("stdout: {e}")))
        }
        _ => Ok(End::Exited(0)),
    }
}

/// Its keys are a contract: docs/schema/list-events.schema.json.
#[derive(Serialize)]
struct Events {
    schema_version: u32,
    events: Vec<Row>,
    /// Fields of each PMU, for events without a name.
    fields: BTreeMap<String, Vec<String>>,
    /// Why there are no vendors' names.
    no_vendor: Option<String>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    aliases: Vec<String>,
    from: String,
    scopes: Vec<&'static str>,
    unit: String,
    /// Multiplies a count into its unit.
    scale: f64,
    /// PMUs that count it: kinds of cores, memory controllers.
    pmus: usize,
    /// True where it opens right now, for this user.
    opens: bool,
    quality: &'static str,
    /// Why it does not open, or is a part.
    reason: Option<String>,
    description: Option<String>,
}

fn events(typed: &List) -> Result<String, Failure> {
    let names = Names::of(Path::new("/"));
    let wanted = typed.filter.as_deref().map(plain);
    let is_wanted = |texts: &[&str]| {
        wanted.as_ref().is_none_or(|wanted| texts.iter().any(|text| plain(text).contains(wanted)))
    };
    let mut rows = Vec::new();
    for listed in names.listed() {
        let from = match listed.origin {
            Origin::Kernel => "kernel".to_owned(),
            Origin::Pmu(pmu) => pmu,
        };
        let texts: Vec<&str> =
            listed.aliases.iter().map(String::as_str).chain([&listed.name[..], &from]).collect();
        if is_wanted(&texts) {
            rows.extend(row(listed.name, listed.aliases, from, &listed.events, None));
        }
    }
    let described = vendor::described();
    for event in described.iter().flatten() {
        if is_wanted(&[&event.name, &event.description]) {
            let full_name = event.name.clone();
            let vendor = Vendor { name: event.name.clone(), full_name, encoding: event.encoding };
            let Ok(resolved) = names.of_vendor(vendor) else { continue };
            let about = Some(event.description.clone());
            rows.extend(row(event.name.clone(), Vec::new(), "libpfm4".to_owned(), &resolved, about));
        }
    }
    let fields = names.fields().into_iter().collect();
    let all = Events { schema_version: 1, events: rows, fields, no_vendor: described.err() };
    if all.events.is_empty() {
        say(format_args!("no event matches {}", typed.filter.as_deref().unwrap_or_default()));
    }
    match typed.format {
        ListFormat::Text => Ok(text(&all)),
        ListFormat::Json => {
            let json = serde_json::to_string_pretty(&all).map_err(Failure::own)?;
            Ok(json + "\n")
        }
    }
}

/// So that a filter need not have the capitals, hyphens and underscores right.
fn plain(text: &str) -> String {
    text.to_lowercase().replace('_', "-")
}

fn row(
    name: String,
    aliases: Vec<String>,
    from: String,
    events: &[Resolved],
    description: Option<String>,
) -> Option<Row> {
    let first = events.first()?;
    let gap = events.iter().find_map(gap);
    let quality = gap.map_or(Quality::Exact, Gap::quality);
    let scope = |(scope, name)| first.places.allow(scope).then_some(name);
    let scopes = [(Scope::Task, "task"), (Scope::Core, "core"), (Scope::Socket, "socket")];
    Some(Row {
        name,
        aliases,
        from,
        scopes: scopes.into_iter().filter_map(scope).collect(),
        unit: first.event.unit.clone(),
        scale: first.event.scale,
        pmus: events.len(),
        opens: quality.has_value(),
        quality: quality.name(),
        reason: gap.map(|gap| gap.to_string()),
        description,
    })
}

/// Why an event does not open here and now, or is not all that its name says.
fn gap(resolved: &Resolved) -> Option<Gap> {
    let target = match &resolved.places {
        Places::Threads(_) => Target::ThisThread,
        Places::Socket(cpus) => Target::Cpu(cpus.0.first()?.0),
    };
    let event: Event = resolved.event.clone();
    let counters = Counters::open(&[vec![event]], target);
    counters.opened().sets.first()?.events.first()?.1
}

fn text(all: &Events) -> String {
    let label = |row: &Row| match &row.aliases[..] {
        [] => row.name.clone(),
        aliases => format!("{} ({})", row.name, aliases.join(", ")),
    };
    let mut lines = vec![["EVENT", "FROM", "SCOPE", "UNIT", "HERE"].map(str::to_owned)];
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in &all.events {
        if let Some(reason) = &row.reason {
            let known = reasons.entry(row.quality).or_default();
            if !known.contains(&&reason[..]) {
                known.push(reason);
            }
        }
        let here = if row.quality == Quality::Exact.name() { "yes" } else { row.quality };
        lines.push([label(row), row.from.clone(), row.scopes.join(","), row.unit.clone(), here.to_owned()]);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 4] = std::array::from_fn(width);
    let mut text = String::new();
    for [event, from, scope, unit, here] in &lines {
        let [w0, w1, w2, w3] = widths;
        let _ = writeln!(text, "{event:w0$}  {from:w1$}  {scope:w2$}  {unit:w3$}  {here}");
    }
    if !reasons.is_empty() {
        text.push('\n');
    }
    for (quality, reasons) in reasons {
        let _ = writeln!(text, "{quality}: {}", reasons.join("; or "));
    }
    text.push_str("\nAppend :u or :k for one mode (cycles:u). Codes: rNNNN, or by a PMU's fields, PMU/FIELD=VALUE,.../:\n");
    for (pmu, fields) in &all.fields {
        let _ = writeln!(text, "  {pmu}: {}", fields.join(", "));
    }
    if let Some(why) = &all.no_vendor {
        let _ = writeln!(text, "No vendors' names: {why}");
    }
    printable(&text)
}
