//! `pmmpi report`, and the result of `pmmpi screen`.

use super::baseline::Baseline;
use super::findings::findings;
use crate::cli::exit_statuses::PARTIAL;
use crate::cli::failure::{Failure, say};
use crate::cli::inputs::{fraction, no_screen, no_screen_to_compare, nothing, paths, reading, runs};
use crate::cli::options::{ExitStyle, ReportArgs, ReportFormat, ScreenReportArgs};
use crate::cli::outputs::{for_place, json, named, writable, write};
use crate::cli::{ended_early, nagios, verdict_status};
use pmmpi::clock;
use pmmpi_analysis::input::importers::{self, Decoding, OneScreen};
use pmmpi_analysis::input::input_warnings;
use pmmpi_analysis::input::resets::Resets;
use pmmpi_analysis::render::origin::ReportOrigin;
use pmmpi_analysis::render::{
    against_baseline, answer, by_place, csv, first_warnings, html, markdown, node_list, one_line,
    openmetrics, sentences, text,
};
use pmmpi_analysis::report::gate;
use pmmpi_analysis::report::run::Details;
use pmmpi_analysis::report::{self, Report};
use pmmpi_analysis::stats::own_history;
use pmmpi_analysis::stats::slow_runs;
use pmmpi_analysis::stats::verdict_rule;
use pmmpi_analysis::table::place_table::Level;
use pmmpi_analysis::verdicts::JudgeSettings;
use pmmpi_events::validation::{self, Trust};

/// What is shown of a report.
#[derive(Clone, Copy)]
pub enum ReportView<'a> {
    /// Everything.
    Report,
    /// The result of a screen.
    Screen(&'a ScreenReportArgs),
}

/// Reports on the runs, or on a screen.
pub fn report(options: &ReportArgs, decoding: Decoding, what: ReportView) -> Result<u8, Failure> {
    let settings = settings(options)?;
    if options.exit == ExitStyle::Nagios
        && options.format != ReportFormat::Text
        && named(&options.output).is_none()
    {
        let hint =
            "--exit nagios writes a status line to stdout: with a --format other than text, add -o FILE";
        return Err(Failure::usage(hint));
    }
    // Each counter takes time and memory, and verdicts need only some.
    let only = (!options.correlate).then_some(report::COUNTERS.as_slice());
    let places = report::PlaceSettings { by: options.by.map(Level::from), decoding: decoding.clone() };
    let usual = reading(&options.of_others, &options.select, options.class_by.clone(), decoding);
    let from = importers::ImportOptions {
        counters: only,
        screen: match what {
            ReportView::Screen(asked) => {
                Some(asked.series.clone().map_or(OneScreen::Latest, OneScreen::Series))
            }
            ReportView::Report => None,
        },
        with_medians: !options.no_history,
        // Facts of nodes may have changed since the baseline, so the same class is not enough.
        keep_parts: usual.keep_parts || !options.against.is_empty(),
        ..usual
    };
    let trust = validation::folder().map(|folder| Trust::read(&folder)).unwrap_or_default();
    let resets = options.resets.as_deref().map(Resets::read).transpose();
    let resets = resets.map_err(|reason| Failure::usage(format!("--resets {reason}")))?;
    if let ReportView::Screen(asked) = what
        && asked.check
    {
        let baseline = Baseline::read(&options.against, &from, &trust)?;
        baseline.map_or(Ok(()), |baseline| baseline.check_works(&asked.works))?;
        return named(&options.output).map_or(Ok(0), |file| writable(file).map(|()| 0));
    }
    let paths = paths("report", &options.paths)?;
    let (baseline, has_lost_baseline) = baseline(options, what, &from, &trust)?;
    let details = match (options.format, what) {
        (ReportFormat::Json, _) | (ReportFormat::Text, ReportView::Report) => Details::Shown,
        (ReportFormat::Md | ReportFormat::Html, _) => Details::Shown,
        _ => Details::Hidden,
    };
    let mut input = report::read(&paths, &from, &trust, details);
    if input.is_empty() || input.run_names != Ok(Vec::new()) {
        return Err(nothing("report", &input, &options.select));
    }
    let without_effect = resets.map(|resets| resets.add_to(&mut input.results.table)).unwrap_or_default();
    input.warnings.extend(input_warnings::resets(&without_effect));
    let medians = input.results.table.len() - input.results.table.run_count();
    let read = text::ReadCounts { runs: runs(&input), medians, hosts: input.hosts.len(), files: input.files };
    let origin = ReportOrigin {
        sources: paths.iter().map(|path| path.display().to_string()).collect(),
        files: input.files,
        made_unix_ns: now_unix_ns(),
    };
    let partial = input.is_partial() || has_lost_baseline;
    let against = baseline.map(|baseline| baseline.next_to(&input, &from, &settings));
    let mut report = Report::new(input, &trust, &settings, &places);
    match (&mut report.screen, against) {
        (Some(screen), against) => screen.against = against,
        (None, Some(_)) => return Err(no_screen_to_compare(&paths)),
        (None, None) => {}
    }
    report.warnings.extend(ended_early::warnings(&paths, &report.runs));
    sentences::sort_warnings(&mut report.warnings);
    if let (ReportView::Screen(asked), screen) = (what, report.screen.as_mut()) {
        let screen = screen.ok_or_else(|| no_screen(&paths))?;
        if let Some(list) = &asked.gate {
            // SOURCE_DATE_EPOCH does not count: the answer depends on whether a clock is wrong.
            gate::ask(screen, list, settings.node.drain_delta, clock::realtime_ns());
        }
        if asked.suspects {
            let lines = screen.suspects().into_iter().map(|(kernel, node)| format!("{kernel}\t{node}\n"));
            write(&lines.collect::<String>(), None)?;
            return Ok(0);
        }
        if let Some(file) = &asked.findings {
            write(&json(&findings(screen, asked.program.as_deref()))?, Some(file))?;
        }
    }
    let rendered = rendered(&report, options, what, &read, &origin)?;
    let line = match options.exit {
        ExitStyle::Nagios => nagios::first_line(&report, partial),
        ExitStyle::Plain => String::new(),
    };
    match named(&options.output) {
        Some(file) => {
            write(&rendered, Some(file))?;
            write(&line, None)?;
        }
        None => write(&(line + &rendered), None)?,
    }
    say_beside(&report, options.format);
    let status = said_status(&report, options, what, partial);
    std::mem::forget(report); // the program ends, and a large report takes long to free
    Ok(status)
}

/// The baseline that the user named. The flag is true if a screen has lost its baseline since the check before its rounds:
/// the rest of the result is worth more than an error.
fn baseline(
    options: &ReportArgs,
    what: ReportView,
    from: &importers::ImportOptions,
    trust: &Trust,
) -> Result<(Option<Baseline>, bool), Failure> {
    if matches!(what, ReportView::Screen(asked) if asked.suspects) {
        return Ok((None, false));
    }
    match (what, Baseline::read(&options.against, from, trust)) {
        (ReportView::Screen(_), Err(failure)) => {
            say(&failure.message);
            Ok((None, true))
        }
        (_, read) => Ok((read?, false)),
    }
}

/// The report in its format.
fn rendered(
    report: &Report,
    options: &ReportArgs,
    what: ReportView,
    read: &text::ReadCounts,
    origin: &ReportOrigin,
) -> Result<String, Failure> {
    Ok(match options.format {
        ReportFormat::Text => {
            let text = match what {
                ReportView::Screen(asked) => text::screen(report, asked.suggest, options.top),
                ReportView::Report => text::report(report, read, options.top),
            };
            for_place(text, named(&options.output))
        }
        ReportFormat::Json => json(report)?,
        ReportFormat::Csv => csv(report)?,
        ReportFormat::Md => markdown::report(report, origin, options.top),
        ReportFormat::Html => html::report(report, origin, options.top),
        ReportFormat::Openmetrics => openmetrics::report(report),
        ReportFormat::Exclude => node_list::exclude(report),
        ReportFormat::Nodefile => node_list::nodefile(report),
    })
}

/// Says what a format has no place for.
fn say_beside(report: &Report, format: ReportFormat) {
    if matches!(format, ReportFormat::Exclude | ReportFormat::Nodefile) {
        let reasons = node_list::reasons(report);
        reasons.iter().for_each(|reason| say(&one_line(reason)));
        if reasons.is_empty() {
            say(&format!("no node to avoid: {}", one_line(&answer::of(report).join("; "))));
        }
    }
    // A row of the CSV has a time.
    if matches!(format, ReportFormat::Csv)
        && report.accounted.unmeasured > 0
        && let Some(accounted) = answer::accounted(report)
    {
        say(&one_line(&accounted));
    }
    // These formats have no place for classes.
    if matches!(
        format,
        ReportFormat::Csv | ReportFormat::Openmetrics | ReportFormat::Exclude | ReportFormat::Nodefile
    ) {
        let sentences = report.screen.iter().flat_map(against_baseline::sentences);
        sentences.for_each(|sentence| say(&one_line(&sentence)));
    }
    // These formats have no place for warnings.
    if matches!(format, ReportFormat::Csv | ReportFormat::Openmetrics) {
        for warning in first_warnings::few(report) {
            say(&one_line(&format!(
                "warning: {} [{}]: {}",
                warning.message,
                warning.code.name(),
                warning.code.advice()
            )));
        }
    }
}

/// The exit status; says what to do if the user asked for it with --fail-on.
fn said_status(report: &Report, options: &ReportArgs, what: ReportView, partial: bool) -> u8 {
    let fail_on = &options.fail_on;
    let advice = verdict_status::advice(report, fail_on, options.delta);
    let of_screen = match (what, &report.screen) {
        (ReportView::Screen(_), Some(screen)) => Some(screen),
        _ => None,
    };
    let on_screen = |screen| {
        verdict_status::advice_on_screen(report, screen, fail_on)
            .or_else(|| verdict_status::advice_on_moved(report, screen, fail_on))
    };
    if let Some(advice) = advice.or_else(|| of_screen.and_then(on_screen)) {
        say(&advice);
    }
    match (options.exit, of_screen) {
        (ExitStyle::Nagios, _) => nagios::status(report, partial),
        (ExitStyle::Plain, None) => verdict_status::plain(report, fail_on, partial),
        // Without --gate, no node was asked for. A fit node says nothing of the others: --fail-on counts, too.
        (ExitStyle::Plain, Some(screen)) => verdict_status::worse(
            verdict_status::gate(screen),
            verdict_status::screen(report, screen, fail_on, partial),
        ),
    }
}

fn settings(options: &ReportArgs) -> Result<JudgeSettings, Failure> {
    let (delta, q) = (fraction("delta", options.delta, 1000.0)?, fraction("fdr", options.fdr, 50.0)?);
    let node = verdict_rule::VerdictSettings { delta, q, min_runs: options.min_runs, ..Default::default() };
    let run = slow_runs::SlowRunSettings { q, ..Default::default() };
    let delta = fraction("delta-history", options.delta_history, 1000.0)?;
    let own_history = own_history::OwnHistorySettings { delta, q, ..Default::default() };
    let goes_with_slowness = options.correlate.then_some(q);
    Ok(JudgeSettings { node, run, own_history, goes_with_slowness, ..Default::default() })
}

fn csv(report: &Report) -> Result<String, Failure> {
    let rows = match &report.by_place {
        Some(places) => by_place::csv(places),
        None => csv::nodes(report),
    };
    rows.map_err(|e| Failure { code: PARTIAL, message: format!("pmmpi cannot write the report as CSV: {e}") })
}

/// The time now. SOURCE_DATE_EPOCH (reproducible-builds.org, in seconds) replaces the clock, so that a report can be made
/// again.
fn now_unix_ns() -> i64 {
    let fixed = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.trim().parse::<i64>().ok());
    fixed.and_then(|seconds| seconds.checked_mul(1_000_000_000)).unwrap_or_else(clock::realtime_ns)
}
