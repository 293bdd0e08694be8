//! Writes docs/metrics.md from the catalogue.

use super::catalogue::{Catalogue, CpuTable, EventSpec, Meaning, Metric, Per, Sibling};
use pmmpi::counters::open_counters::Scope;
use std::fmt::Write;

const HEAD: &str = "\
# Metrics

This page is generated from src/events/metrics/metrics.toml and src/events/metrics/cpus/*.toml. After a change there,
`PMMPI_WRITE_DOCS=1 cargo test --release --workspace --exclude pmmpi-runner --lib metrics` writes the page again.

Each name in a formula is a quantity (section [Quantities](#quantities)) or a name of the processor's event table. An
event table gives for each name an event, a formula, or the reason why there is neither. If an event table is like
another event table, this page shows only the differences: `dropped` marks a name that exists only in the other table.
If the table has no event for a name, you can choose an event, and count it under this name, for example `--events
cpu/event=0x41,name=dc_misses/`. pmmpi then uses this count.

The value of a metric has the worst [quality](measuring.md#counters) of the counts in the formula: exact is better than
scaled, and scaled is better than partial. If a metric has no value, the report gives the reason, for example a missing
count, a divisor that is 0, or a failed check. pmmpi draws no conclusion from a count if its counter ran for less than a
fifth of the time, or if `pmmpi validate` found the event unusable.

pmmpi computes the metrics of the group `smt` for each core of a node, even if the program does not use the core. These
metrics use the counts of the core's hardware threads, and the TSC of the rank that counted on this node. The value of a
run is the mean over the cores of all nodes. The mean leaves out each core whose counts are missing or contradict one
another. If the mean leaves out cores, the value is partial, and its reason gives the number of these cores.

In the metrics of a run, a count includes what the column `where` of the event table names:

- task: only the program's own threads and child processes, on all hardware threads on which they run;
- core: everything that runs on the hardware threads that the ranks of a node may use (not on the other hardware threads
  of the node), so also other programs;
- a core's first (or second) hardware thread: everything that runs there, for each core of the run's nodes;
- socket: everything that runs on the sockets of the run's nodes, so also other programs.

Task, core and socket are scopes. pmmpi does not divide a count of scope socket by a count of scope task. If the L3
cache itself counts its requests and misses, these two counts have the scope socket. Then `l3_miss_rate` has no value:
this metric divides the misses by the instructions (scope task). But `l3_miss_ratio` has a value: this metric divides
the misses by the requests.

";

const WORKED: &str = "\
## The worked tables of AMD-2008

Section 5 of AMD-2008 has the results of two programs, called classic and improved. The tables of section 5 contain
numbers of samples. A count is the number of samples, multiplied by the sampling period. (pmmpi itself does not sample.)
The tables also contain values that AMD computed from the samples. pmmpi's tests reproduce each of these values to the
printed digits. Some points need an explanation:

- \"Elapsed time\" in these tables comes from a clock and not from counts; \"Seconds\" in section 5.2 is
  `seconds_by_cycles`.
- To compute the bandwidths, section 5.2 divides by the printed Seconds, which are rounded to four decimal places.
  Without this rounding, five of the six bandwidths differ from the printed values:

  | bandwidth, MB/s | classic | improved |
  |---|---|---|
  | read | 352.8801 (printed: 352.8797) | 2006.8634 (printed: 2006.8907) |
  | write | 5.8883, as printed | 9.5869 (printed: 9.5871) |
  | DRAM | 360.1273 (printed: 360.1268) | 2016.4503 (printed: 2016.4778) |

- The values of sections 5.3 and 5.4 result only if the sampling period of retired instructions is ten times the
  sampling period of all other events. But sections 4.3.1 and 4.4.1 suggest equal periods for instructions and data
  cache accesses. With equal periods, the data cache request rate of the classic program would be 5.894 instead of
  0.589.
- The prose of section 5.3 computes \"1/0.014\" for the improved program, and gives one miss per 71.5 instructions. But
  1/0.014 is 71.4, and the unrounded rate gives 70.1. For the classic program, the prose computes \"1/0.085\", and gives
  11.8; the unrounded rate gives 11.7.
- According to section 4.3.4, the unit mask of the L3 events selects cores. AMD withdrew this: according to revision
  3.48 of publication 31116 (2010), the mask must select all cores. So the metrics `l3_data_*` use events that each core
  counts itself.
";

/// The whole page.
pub fn page(catalogue: &Catalogue) -> String {
    let mut page = HEAD.to_owned();
    sources(&mut page, catalogue);
    groups(&mut page, catalogue);
    quantities(&mut page, catalogue);
    rules(&mut page, catalogue);
    page.push_str(WORKED);
    for table in catalogue.tables.iter().rev() {
        events(&mut page, table);
    }
    page
}

/// Writing to a String does not fail.
fn line(page: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(page, "{line}");
}

fn sources(page: &mut String, catalogue: &Catalogue) {
    line(page, format_args!("## Sources\n"));
    for source in &catalogue.sources {
        line(page, format_args!("- {}: {}", source.key, source.text));
    }
    page.push('\n');
}

fn groups(page: &mut String, catalogue: &Catalogue) {
    line(page, format_args!("## Metrics by group\n"));
    for group in &catalogue.groups {
        line(page, format_args!("### {}\n\n{}.\n", group.name, group.text));
        line(page, format_args!("| metric | formula | unit | what | source |\n|---|---|---|---|---|"));
        for metric in catalogue.metrics_of(&group.name) {
            let Metric { name, formula, unit, text, source, .. } = metric;
            let per = match metric.per {
                Per::Run => "",
                Per::Core => "; computed for each core, then averaged over the cores",
            };
            let checks: Vec<String> =
                metric.checks.iter().map(|check| format!("`{}`", check.text())).collect();
            let checks = if checks.is_empty() {
                String::new()
            } else {
                format!("; has a value only if {}", checks.join(" and "))
            };
            line(
                page,
                format_args!("| `{name}` | `{}` | {unit} | {text}{per}{checks} | {source} |", formula.text()),
            );
        }
        page.push('\n');
    }
}

fn quantities(page: &mut String, catalogue: &Catalogue) {
    line(
        page,
        format_args!(
            "## Quantities\n\n| quantity | unit | what | default | source of the default |\n|---|---|---|---|---|"
        ),
    );
    for quantity in &catalogue.quantities {
        let default =
            quantity.default.as_ref().map_or("none".to_owned(), |default| format!("`{}`", default.text()));
        let source = quantity.source.as_deref().unwrap_or_default();
        line(
            page,
            format_args!(
                "| `{}` | {} | {} | {default} | {source} |",
                quantity.name, quantity.unit, quantity.text
            ),
        );
    }
    page.push('\n');
}

fn rules(page: &mut String, catalogue: &Catalogue) {
    line(page, format_args!("## Rules\n\n| rule | raised if | what | source |\n|---|---|---|---|"));
    for rule in &catalogue.rules {
        let when: Vec<String> = rule.when.iter().map(|when| format!("`{}`", when.text())).collect();
        line(
            page,
            format_args!("| `{}` | {} | {} | {} |", rule.code, when.join(" and "), rule.text, rule.source),
        );
    }
    page.push('\n');
}

fn events(page: &mut String, table: &CpuTable) {
    line(page, format_args!("\n## Events: {}, {}\n\nSource: {}.", table.name, table.text, table.source));
    for range in &table.cpus {
        let [first, last] = range.models;
        let family = range.family;
        let models = if first == last {
            format!("model {first:#x}")
        } else {
            format!("models {first:#x} to {last:#x}")
        };
        line(page, format_args!("{} family {family:#x}, {models}.", range.vendor));
    }
    if let Some(parent) = &table.inherits {
        line(page, format_args!("\nLike the table `{parent}`, with these differences:"));
    }
    line(
        page,
        format_args!("\n| name | event or formula | where | vendor's name, notes |\n|---|---|---|---|"),
    );
    for name in &table.drops {
        line(page, format_args!("| `{name}` | dropped | | |"));
    }
    for (name, meaning) in table.names.iter().filter(|(name, _)| table.own.contains(*name)) {
        match meaning {
            Meaning::Event(event) => {
                let notes = [event.vendor_name.as_deref(), event.note.as_deref()];
                let notes: Vec<&str> = notes.into_iter().flatten().collect();
                let (encoding, place) = (&event.encoding, place(event));
                line(page, format_args!("| `{name}` | `{encoding}` | {place} | {} |", notes.join("; ")));
            }
            Meaning::Formula { formula, note } => {
                let note = note.as_deref().unwrap_or_default();
                line(page, format_args!("| `{name}` | = `{}` | | {note} |", formula.text()));
            }
            Meaning::Absent(reason) => line(page, format_args!("| `{name}` | none | | {reason} |")),
        }
    }
}

fn place(event: &EventSpec) -> &'static str {
    match (event.scope, event.sibling) {
        (_, Some(Sibling::A)) => "a core's first hardware thread",
        (_, Some(Sibling::B)) => "a core's second hardware thread",
        (Scope::Task, None) => "task",
        (Scope::Core, None) => "core",
        (Scope::Socket, None) => "socket",
    }
}
