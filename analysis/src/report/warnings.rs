//! Warnings about a run and about the input.

use crate::input::importers::{Rejected, Results};
use crate::input::node_rows;
use crate::input::resets::WithoutEffect;
use crate::report::lateness::Lateness;
use crate::report::{probes, regions};
use crate::table::selection::LeftOut;
use crate::warning_codes::{Warning, WarningCode};
use pmmpi::NodeId;
use pmmpi::bounds::NO_RATE_PPM;
use pmmpi::counters::requested;
use pmmpi::record::run_file::EXTENSION;
use pmmpi::record::{End, Mode, Run};
use pmmpi::session::launch_check;
use pmmpi::text::{count, printable, seconds_between};
use pmmpi_events::totals::{Total, WhyInexact, totals};
use pmmpi_events::validation::{EventVerdict, RunTrust, Trust};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Fraction of the elapsed time above which there is a warning.
const WORTH_A_WARNING: f64 = 0.01;

/// How to read run files in subfolders: pmmpi reads only those in the folders that the user names.
fn in_subfolders(runs: &[&PathBuf]) -> String {
    const NAMED: usize = 3;
    let folders: BTreeSet<&Path> = runs.iter().filter_map(|path| path.parent()).collect();
    let named: Vec<String> = folders.iter().take(NAMED).map(|folder| folder.display().to_string()).collect();
    let more = if folders.len() > NAMED { " ..." } else { "" };
    let are = if runs.len() == 1 { "is" } else { "are" };
    let place = if folders.len() == 1 { "a subfolder" } else { "subfolders" };
    let files = count(runs.len(), "run file");
    format!("{files} {are} in {place}: pmmpi report {}{more}", named.join(" "))
}

/// Warns of nodes of `--resets` whose maintenance does not change the report.
pub fn resets(without: &WithoutEffect) -> Vec<Warning> {
    const NAMED: usize = 3;
    let named = |nodes: &[String]| {
        let named: Vec<String> = nodes.iter().take(NAMED).map(|node| printable(node)).collect();
        let more = if nodes.len() > NAMED { ", ..." } else { "" };
        format!("{}{more}", named.join(", "))
    };
    let warning = |code, nodes: &[String], what: &str| {
        let message = format!("--resets names {} {what}: {}", count(nodes.len(), "node"), named(nodes));
        (!nodes.is_empty()).then(|| Warning::new(code, message))
    };
    [
        warning(WarningCode::UnknownReset, &without.unknown, "that the input does not have"),
        warning(WarningCode::UnmeasuredReset, &without.not_measured, "without a time after the maintenance"),
        warning(WarningCode::UndatedReset, &without.undated, "with runs whose start is not known"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Warns of runs without a start: pmmpi does not know whether `--since` and `--until` select these runs.
pub fn undated(left_out: LeftOut) -> Option<Warning> {
    let message =
        |undated| format!("--since and --until leave out {} whose start is not known", count(undated, "run"));
    Some(left_out.undated)
        .filter(|undated| *undated > 0)
        .map(|undated| Warning::new(WarningCode::UndatedRuns, message(undated)))
}

/// All warnings about a run.
pub fn about(run: &Run, trust: &RunTrust, lateness: &Lateness) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code, message: String| warnings.push(Warning::new(code, message));
    let is_told = |end: End| !end.is_success() || !run.lost.is_empty();
    if let Some(telling) = run.telling_rank().filter(|(_, _, end)| is_told(*end)) {
        warn(WarningCode::FailedRun, node_rows::failure(run, telling));
    }
    if !run.is_complete() {
        let unknown = (run.size as usize).saturating_sub(run.ranks.len() + run.lost.len());
        warn(
            WarningCode::IncompleteRun,
            format!(
                "{} of {} reached the end barrier; {} did not, but left data; {unknown} left no data",
                run.ranks.len(),
                count(run.size as usize, "rank"),
                run.lost.len()
            ),
        );
    }
    let job = &run.header.job;
    let (launcher, library) = (job.launcher.as_deref(), run.header.mpi_library.as_deref());
    let mismatch = launch_check::contradiction(
        launcher.unwrap_or("the launcher"),
        job.launched_ranks.unwrap_or(0),
        run.size,
        library.unwrap_or("unknown"),
    );
    if let Some(message) = mismatch.filter(|_| run.header.mode == Mode::Mpi) {
        warn(WarningCode::SeparateJobs, message);
    }
    if run.nodes.iter().any(|node| node.facts.is_none()) {
        let unknown: Vec<_> =
            run.nodes.iter().filter(|n| n.facts.is_none()).map(|n| n.key.hostname.as_str()).collect();
        warn(
            WarningCode::NodeUnknown,
            format!("the run has no record of the hardware of {}", unknown.join(", ")),
        );
    }
    let mut changes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in &run.nodes {
        if let Some(changed) = node.facts.as_ref().and_then(|facts| facts.inventory.changed()) {
            changes.entry(changed).or_default().push(&node.key.hostname);
        }
    }
    for (changed, nodes) in changes {
        const NAMED: usize = 3;
        let named = nodes[..nodes.len().min(NAMED)].join(", ");
        let more = match nodes.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {}", count(more, "more node")),
        };
        let their = if nodes.len() == 1 { "its" } else { "their" };
        let changed = printable(changed);
        warn(
            WarningCode::NodeChanged,
            format!("{named}{more} changed after pmmpi had read {their} facts: {changed}"),
        );
    }
    if let Some(rank) = run.ranks.iter().find(|rank| <[i64; 4]>::from(rank.stamps) == [0; 4]) {
        warn(WarningCode::NoStamps, format!("rank {} has no time stamps", rank.rank));
    }
    if let Some(elapsed) = run.elapsed() {
        about_elapsed(run, &elapsed, &mut warn);
    }
    warnings.extend(about_slew(run));
    // In a screen, a node waits for no other one.
    warnings.extend(lateness.warning().filter(|_| run.screened.is_none()));
    warnings.extend(regions::warnings(run));
    warnings.extend(probes::warning(run));
    warnings.extend(about_uncounted(run));
    warnings.extend(about_counters(run, trust));
    warnings
}

/// Requested events that have no value: those that were reported at the start of the run, and those missing on other
/// nodes.
fn about_uncounted(run: &Run) -> Option<Warning> {
    if run.asked.is_empty() {
        return None;
    }
    let totals = totals(&run.counts, |row| row.region.is_none());
    let uncounted = requested::uncounted(&run.asked, |scope, name| {
        let mut all = totals.iter().filter(|total| total.scope == scope && total.event.name == name);
        let reason =
            |total: &Total| total.reason.as_ref().map(WhyInexact::place_and_reason).unwrap_or_default();
        let first = all.next().filter(|total| !total.quality.has_value())?;
        all.all(|total| !total.quality.has_value()).then(|| reason(first))
    });
    let said: Vec<String> = uncounted.iter().map(ToString::to_string).collect();
    (!said.is_empty()).then(|| Warning::new(WarningCode::UncountedEvents, said.join("; ")))
}

/// Warns of counters that `pmmpi validate` found unusable on this processor.
fn about_counters(run: &Run, trust: &RunTrust) -> Option<Warning> {
    let events = run.counts.sets.iter().flat_map(|set| &set.events).map(|(event, _)| event);
    let unusable: BTreeSet<&str> = events
        .filter(|event| trust.of(event) == EventVerdict::Unusable)
        .map(|event| event.name.as_str())
        .collect();
    let names: Vec<&str> = unusable.into_iter().collect();
    (!names.is_empty()).then(|| {
        Warning::new(
            WarningCode::UnusableCounters,
            format!("{}: unusable on this processor, according to `pmmpi validate`", names.join(", ")),
        )
    })
}

/// Warns of files of `pmmpi validate` that could not be used.
pub fn unusable_trust(trust: &Trust) -> impl Iterator<Item = Warning> {
    trust.unusable.iter().map(|(path, why)| {
        Warning::new(
            WarningCode::TrustFile,
            format!("the report does not use {}, because it {why}", path.display()),
        )
    })
}

/// Warns of a clock with a high rate error. The bounds hold nevertheless: [`Run::max_drift`] includes the slew.
fn about_slew(run: &Run) -> Option<Warning> {
    let most = run.ranks.iter().max_by(|a, b| a.slew_ppm().abs().total_cmp(&b.slew_ppm().abs()))?;
    let slew = most.slew_ppm();
    (slew.abs() > run.header.max_drift.ppm()).then(|| {
        Warning::new(
            WarningCode::SlewedClock,
            format!(
                "the clock of {} ran {:.0} ppm {} during the run; the bounds of the run allow for {:.0} ppm",
                run.nodes[most.node.index()].key.hostname,
                slew.abs(),
                if slew > 0.0 { "fast" } else { "slow" },
                run.max_drift().ppm()
            ),
        )
    })
}

fn about_elapsed(
    run: &Run,
    elapsed: &pmmpi::bounds::ElapsedBounds,
    warn: &mut impl FnMut(WarningCode, String),
) {
    if !elapsed.consistent {
        let host = |node: &NodeId| run.nodes.get(node.index()).map(|n| n.key.hostname.as_str());
        let suspects: Vec<_> = elapsed.suspects.iter().filter_map(host).collect();
        return warn(
            WarningCode::InconsistentClocks,
            format!(
                "clocks with rate errors of at most {} ppm do not explain the stamps; {}; suspect clocks: {}",
                run.max_drift().ppm(),
                match elapsed.rho_min_ppm {
                    least if least < NO_RATE_PPM =>
                        format!("only rate errors of at least {least:.1} ppm would explain them"),
                    _ => "no rate error would explain them".to_owned(),
                },
                if suspects.is_empty() { "unknown".to_owned() } else { suspects.join(", ") }
            ),
        );
    }
    // The nodes of a screen work each for itself, and a kernel prepares its data between two rounds: the time of the whole
    // job does not matter.
    if run.screened.is_some() {
        return;
    }
    let width = elapsed.upper_ns.saturating_sub(elapsed.lower_ns) as f64;
    if width > WORTH_A_WARNING * elapsed.upper_ns as f64 {
        let (lower, upper) = seconds_between(elapsed.lower_ns, elapsed.upper_ns);
        warn(
            WarningCode::WideBounds,
            format!(
                "the bounds {lower} and {upper} s are {:.0} % apart",
                100.0 * width / elapsed.upper_ns as f64
            ),
        );
    }
    if let Some(overhead) =
        run.overhead_ns().filter(|o| *o as f64 > WORTH_A_WARNING * elapsed.upper_ns as f64)
    {
        warn(
            WarningCode::Overhead,
            format!("pmmpi itself took {:.6} s in addition to the work", overhead as f64 / 1e9),
        );
    }
}

/// Warns of elapsed times of pmmpi's own runs that are zero or negative.
pub fn without_time(number: usize) -> Option<Warning> {
    (number > 0).then(|| {
        Warning::new(
            WarningCode::NoTime,
            format!(
                "the report leaves out {} that {} zero or negative",
                count(number, "elapsed time"),
                if number == 1 { "is" } else { "are" }
            ),
        )
    })
}

/// Warns of other tools' results that are not in the table.
pub fn of_results(results: &Results) -> Vec<Warning> {
    const NAMED: usize = 3;
    let unusable = results.unusable.iter().map(|file| {
        Warning::new(WarningCode::UnusableFile, format!("{}: {}", file.path.display(), file.reason))
    });
    let mut warnings: Vec<Warning> = unusable.collect();
    let left_out = results.rejected_rows + results.rejected_values;
    if left_out > 0 {
        let place = |rejected: &Rejected| {
            let path = results.path_of(rejected).map(|path| path.display().to_string()).unwrap_or_default();
            format!("{path}:{}: {}", rejected.line, rejected.reason)
        };
        let named: Vec<String> = results.rejected.iter().take(NAMED).map(place).collect();
        let more = if left_out > NAMED as u64 { "; ..." } else { "" };
        let all = [(results.rejected_rows, "row"), (results.rejected_values, "value")];
        let some = all.into_iter().filter(|(number, _)| *number > 0);
        let counted: Vec<String> = some.map(|(number, noun)| count(number as usize, noun)).collect();
        let message = format!("pmmpi left out {}: {}{more}", counted.join(" and "), named.join("; "));
        warnings.push(Warning::new(WarningCode::RejectedRows, message));
    }
    let some = |names: &mut dyn Iterator<Item = String>, all: usize| {
        let named: Vec<String> = names.take(NAMED).collect();
        format!("{}{}", named.join(", "), if all > NAMED { ", ..." } else { "" })
    };
    if results.repeated_rows > 0 {
        let rows = count(results.repeated_rows as usize, "row");
        warnings.push(Warning::new(
            WarningCode::RepeatedRows,
            format!("pmmpi found {rows} with the same content as earlier rows, and counts each run once"),
        ));
    }
    let is_run = |path: &&PathBuf| path.extension().is_some_and(|e| e == EXTENSION);
    let (runs, foreign): (Vec<&PathBuf>, Vec<&PathBuf>) = results.foreign.iter().partition(is_run);
    if !runs.is_empty() {
        warnings.push(Warning::new(WarningCode::ForeignFiles, in_subfolders(&runs)));
    }
    if !foreign.is_empty() {
        let names = some(&mut foreign.iter().map(|path| path.display().to_string()), foreign.len());
        let files = count(foreign.len(), "file");
        warnings.push(Warning::new(
            WarningCode::ForeignFiles,
            format!("pmmpi cannot read the format of {files}: {names}"),
        ));
    }
    if !results.unread.is_empty() {
        let of = |(name, values): (&String, &u64)| format!("{name} ({})", count(*values as usize, "value"));
        let names = some(&mut results.unread.iter().map(of), results.unread.len());
        warnings.push(Warning::new(
            WarningCode::UnreadValues,
            format!("pmmpi did not read these values: {names}"),
        ));
    }
    let kinds = results.unused_text.iter().filter_map(|(name, values)| Some((name, values.of_kinds()?)));
    let kinds: Vec<String> = kinds.map(|(name, values)| format!("{name} ({})", values.join(", "))).collect();
    if !kinds.is_empty() {
        let all = kinds.len();
        let message = format!(
            "the report does not use these columns: {}; runs with different values are in one class",
            some(&mut kinds.into_iter(), all)
        );
        warnings.push(Warning::new(WarningCode::UnusedColumns, message));
    }
    warnings
}
