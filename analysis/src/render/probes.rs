//! The probes of the latest run that has any.

use super::last_run::{latest, whose};
use super::tabular::{Table, left, name, or_dash, right, words};
use super::{more, shown};
use crate::report::probes::ProbeReport;
use crate::report::run::RunReport;

/// The probes, those with the most time first.
pub fn table(runs: &[RunReport], top: usize) -> Option<Table> {
    let (run, id) = latest(runs, |run| run.probing.is_some())?;
    let of_run = run.probing.as_ref()?;
    let mut probes: Vec<&ProbeReport> = of_run.probes.iter().collect();
    let time = |probe: &ProbeReport| probe.mean_ns.unwrap_or_default() * probe.entries as f64;
    probes.sort_by(|a, b| time(b).total_cmp(&time(a)));
    let (shown, hidden) = shown(probes.len(), top);
    let row = |probe: &&ProbeReport| {
        vec![
            name(&probe.name),
            words(probe.threads),
            words(probe.entries),
            words(probe.discarded.all()),
            or_dash(probe.min_ns, number),
            or_dash(probe.median_ns, number),
            or_dash(probe.mean_ns, number),
            or_dash(probe.cycles, number),
            or_dash(probe.instructions, number),
        ]
    };
    let mut notes: Vec<String> = probes[..shown].iter().flat_map(|probe| of_probe(probe)).collect();
    notes.extend(
        of_run
            .uncounted
            .as_ref()
            .map(|why| format!("one or more threads have no counts of cycles and instructions: {why}")),
    );
    notes.push(format!(
        "times are in ns; counts are from user mode; each value is for one entry, without pmmpi's own time and \
         counts; pmmpi adds up to about {} ns to the program for each entry (the largest value of all threads)",
        number(of_run.cost_ns)
    ));
    Some(Table {
        before: Some(whose("probes", run, id, runs)),
        columns: vec![
            left("Probe"),
            right("Threads"),
            right("Entries"),
            right("Discarded"),
            right("Min"),
            right("Median"),
            right("Mean"),
            right("Cycles"),
            right("Instr"),
        ],
        rows: probes[..shown].iter().map(row).collect(),
        more: more(hidden, "more probe"),
        notes,
    })
}

/// Why entries were discarded, and how the instructions compare with what the user expects.
fn of_probe(probe: &ProbeReport) -> Vec<String> {
    let of = probe.discarded;
    let reasons = [
        (of.moved, "in which the thread moved to another hardware thread"),
        (
            of.rate,
            "with an unusual number of cycles per second (the frequency changed, or the Linux kernel used a part of \
             the time)",
        ),
        (of.negative, "in which the clock went backwards"),
    ];
    let reasons = reasons.iter().filter(|(entries, _)| *entries > 0);
    let reasons: Vec<String> = reasons.map(|(entries, why)| format!("{entries} {why}")).collect();
    let discarded =
        (!reasons.is_empty()).then(|| format!("{}: discarded entries: {}", probe.name, reasons.join(", ")));
    let expected = probe
        .instructions_to_expected
        .map(|ratio| format!("{}: instructions / expected instructions: {ratio:.4}", probe.name));
    [discarded, expected].into_iter().flatten().collect()
}

/// Tenths of small values only.
fn number(value: f64) -> String {
    if value < 1000.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}
