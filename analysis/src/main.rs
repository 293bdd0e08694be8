//! `pmmpi-report`: does the work of `pmmpi report`, `export`, `compare`, `show`, `diff` and `bounds`, and reports on
//! the runs of `pmmpi screen`.

mod cli;

use clap::Parser;
use cli::options::{
    BoundsArgs, BoundsFormat, Command, CompareArgs, CompareFormat, DiffArgs, DiffFailOn, ExitStyle,
    ExportArgs, OfOthers, Options, ReportArgs, ReportFormat, ScreenReportArgs, Select, ShowArgs,
};
use cli::restart_after_crash::{crashed, supervise};
use cli::{allocator, compare_status, ended_early, nagios, progress_line, verdict_status};
use pmmpi::bounds::MaxDrift;
use pmmpi::clock;
use pmmpi::record::Run;
use pmmpi::record::run_file::default_folder;
use pmmpi::text::{count, folded, printable};
use pmmpi_analysis::comparison::selector::Selector;
use pmmpi_analysis::comparison::{Comparison, Inputs};
use pmmpi_analysis::export_archive::{self, places};
use pmmpi_analysis::input::importers::{self, Decoding};
use pmmpi_analysis::input::resets::Resets;
use pmmpi_analysis::input::{self, Input};
use pmmpi_analysis::output;
use pmmpi_analysis::recorded::{Recorded, differences};
use pmmpi_analysis::render::origin::Origin;
use pmmpi_analysis::render::{
    answer, by_place, comparison, csv, first_warnings, html, json, markdown, node_list, one_line,
    openmetrics, recorded, text,
};
use pmmpi_analysis::report;
use pmmpi_analysis::report::gate;
use pmmpi_analysis::report::run::Details;
use pmmpi_analysis::report::screen::ScreenReport;
use pmmpi_analysis::report::warnings;
use pmmpi_analysis::stamps_csv;
use pmmpi_analysis::stats::own_history;
use pmmpi_analysis::stats::slow_runs;
use pmmpi_analysis::stats::two_sets::CompareSettings;
use pmmpi_analysis::stats::verdict_rule;
use pmmpi_analysis::table::node_class::{ClassBy, Key};
use pmmpi_analysis::table::place_table::Level;
use pmmpi_analysis::verdicts::JudgeSettings;
use pmmpi_analysis::verdicts::fitness::{Fitness, GateAnswer};
use pmmpi_analysis::warning_codes::WarningCode;
use pmmpi_events::validation::{self, Trust};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The system's allocator would return the pages of large columns to the kernel each time they are freed.
#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Exit status if a part of the input could not be used, or the result could not be written.
const PARTIAL: u8 = 1;
/// Exit status of `--fail-on` if the runs differ.
const FOUND: u8 = 3;
/// Exit status if the command line is not valid, or no input could be used.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    allocator::prepare();
    let options = Options::try_parse().unwrap_or_else(|e| usage(&e));
    ExitCode::from(match options.command {
        Command::Report(options) => {
            let done = |decoding| {
                let done = report(&options, decoding, What::Report);
                match (done, options.exit) {
                    (Err(failure), ExitStyle::Nagios) => nagios::unknown(&failure.message),
                    (done, _) => code(done),
                }
            };
            let give_up = match options.exit {
                ExitStyle::Nagios => nagios::unknown,
                ExitStyle::Plain => crashed,
            };
            supervise(reads_a_pipe(&options.paths), done, give_up)
        }
        Command::Screen(options) => {
            let done = |decoding| code(report(&options.report, decoding, What::Screen(&options)));
            supervise(reads_a_pipe(&options.report.paths), done, crashed)
        }
        Command::Export(options) => {
            supervise(reads_a_pipe(&options.paths), |decoding| code(export(&options, decoding)), crashed)
        }
        Command::Compare(options) => {
            let sides = [&options.a, &options.b].map(PathBuf::from);
            let paths: Vec<PathBuf> = sides.into_iter().chain(options.of.iter().cloned()).collect();
            supervise(reads_a_pipe(&paths), |decoding| code(compare(&options, decoding)), crashed)
        }
        Command::Show(options) => code(show(&options)),
        Command::Diff(options) => code(diff(&options)),
        Command::Bounds(options) => code(bounds(&options)),
    })
}

fn code(done: Result<u8, Failure>) -> u8 {
    done.unwrap_or_else(|failure| {
        say(&failure.message);
        failure.code
    })
}

/// True if a path is stdin or a pipe, which can be read only once.
fn reads_a_pipe(paths: &[PathBuf]) -> bool {
    let is_pipe =
        |path: &PathBuf| path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    paths.iter().any(|path| path == Path::new("-") || is_pipe(path))
}

/// Help and version end with exit status 0.
fn usage(error: &clap::Error) -> ! {
    if error.use_stderr() {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
        if is_for_nagios() {
            std::process::exit(nagios::unknown(text).into())
        }
        say(text);
        std::process::exit(USAGE.into())
    }
    // If stdout is closed, there is nothing to do.
    let _ = error.print();
    std::process::exit(0)
}

/// True if the command line asks for the exit statuses of Nagios, whatever else is wrong with it.
fn is_for_nagios() -> bool {
    let args: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    args.iter().any(|arg| arg == "--exit=nagios") || args.windows(2).any(|pair| pair == ["--exit", "nagios"])
}

fn say(message: &str) {
    progress_line::clear();
    // If stderr is closed, there is nothing to do.
    let _ = writeln!(io::stderr(), "pmmpi: {}", printable(message));
}

struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    fn usage(message: impl ToString) -> Self {
        Self { code: USAGE, message: message.to_string() }
    }
}

/// What is shown of a report.
#[derive(Clone, Copy)]
enum What<'a> {
    /// Everything.
    Report,
    /// The result of a screen.
    Screen(&'a ScreenReportArgs),
}

/// What `pmmpi screen-act` reads.
#[derive(Serialize)]
struct Findings<'a> {
    schema_version: u32,
    findings: Vec<Finding<'a>>,
    /// Repaired nodes that are fit to return.
    passed: Vec<&'a str>,
    /// Number of nodes in the screen.
    fleet: usize,
}

#[derive(Serialize)]
struct Finding<'a> {
    node: &'a str,
    reason: &'a str,
}

fn findings(screen: &ScreenReport) -> Findings<'_> {
    let is_fit = |asked: &&GateAnswer| asked.answer == Fitness::Fit;
    Findings {
        schema_version: 1,
        findings: screen
            .suggestions
            .iter()
            .map(|of| Finding { node: &of.node, reason: &of.reason })
            .collect(),
        passed: screen.gate.iter().filter(is_fit).map(|asked| asked.node.as_str()).collect(),
        fleet: screen.screened.len(),
    }
}

fn report(options: &ReportArgs, decoding: Decoding, what: What) -> Result<u8, Failure> {
    let settings = settings(options)?;
    if options.exit == ExitStyle::Nagios && options.format != ReportFormat::Text && options.output.is_none() {
        let hint = "--exit nagios writes its line to stdout: write the report to a file with -o FILE";
        return Err(Failure::usage(hint));
    }
    // Each counter takes time and memory, and verdicts need only some.
    let only = (!options.correlate).then_some(report::COUNTERS.as_slice());
    let places = report::PlaceSettings { by: options.by.map(Level::from), decoding: decoding.clone() };
    let from = importers::ImportOptions {
        counters: only,
        with_medians: !options.no_history,
        ..reading(&options.of_others, &options.select, options.class_by.clone(), decoding)
    };
    let trust = validation::folder().map(|folder| Trust::read(&folder)).unwrap_or_default();
    let resets = options.resets.as_deref().map(Resets::read).transpose();
    let resets = resets.map_err(|reason| Failure::usage(format!("--resets {reason}")))?;
    if matches!(what, What::Screen(asked) if asked.check) {
        return options.output.as_deref().map_or(Ok(0), |file| writable(file).map(|()| 0));
    }
    let paths = paths("report", &options.paths)?;
    let details = match (options.format, what) {
        (ReportFormat::Json, _) | (ReportFormat::Text, What::Report) => Details::Shown,
        (ReportFormat::Md | ReportFormat::Html, _) => Details::Shown,
        _ => Details::Hidden,
    };
    let mut input = report::read(&paths, &from, &trust, details);
    if input.is_empty() || input.run_names != Ok(Vec::new()) {
        return Err(nothing("report", &input, &options.select));
    }
    let without_effect = resets.map(|resets| resets.add_to(&mut input.results.table)).unwrap_or_default();
    input.warnings.extend(warnings::resets(&without_effect));
    let medians = input.results.table.len() - input.results.table.run_count();
    let read = text::ReadCounts { runs: runs(&input), medians, hosts: input.hosts.len(), files: input.files };
    let origin = Origin {
        sources: paths.iter().map(|path| path.display().to_string()).collect(),
        files: input.files,
        made_unix_ns: now_unix_ns(),
    };
    let partial = input.is_partial();
    let mut report = report::Report::new(input, &trust, &settings, &places);
    report.warnings.extend(ended_early::warnings(&paths, &report.runs));
    report.warnings.sort();
    if let (What::Screen(asked), screen) = (what, report.screen.as_mut()) {
        let screen = screen.ok_or_else(|| no_screen(&paths))?;
        if let Some(list) = &asked.gate {
            gate::ask(screen, list);
        }
        if asked.suspects {
            let lines = screen.suspects().into_iter().map(|(kernel, node)| format!("{kernel}\t{node}\n"));
            write(&lines.collect::<String>(), None)?;
            return Ok(0);
        }
        if let Some(file) = &asked.findings {
            write(&json(&findings(screen))?, Some(file))?;
        }
    }
    let rendered = match options.format {
        ReportFormat::Text => {
            let text = match what {
                What::Screen(asked) => text::screen(&report, asked.suggest, options.top),
                What::Report => text::report(&report, &read, options.top),
            };
            for_place(text, options.output.as_deref())
        }
        ReportFormat::Json => json(&report)?,
        ReportFormat::Csv => csv(&report)?,
        ReportFormat::Md => markdown::report(&report, &origin, options.top),
        ReportFormat::Html => html::report(&report, &origin, options.top),
        ReportFormat::Openmetrics => openmetrics::report(&report),
        ReportFormat::Exclude => node_list::exclude(&report),
        ReportFormat::Nodefile => node_list::nodefile(&report),
    };
    let line = match options.exit {
        ExitStyle::Nagios => nagios::first_line(&report, partial),
        ExitStyle::Plain => String::new(),
    };
    match &options.output {
        Some(file) => {
            write(&rendered, Some(file))?;
            write(&line, None)?;
        }
        None => write(&(line + &rendered), None)?,
    }
    if matches!(options.format, ReportFormat::Exclude | ReportFormat::Nodefile) {
        let reasons = node_list::reasons(&report);
        reasons.iter().for_each(|reason| say(&one_line(reason)));
        if reasons.is_empty() {
            say(&format!("no node to avoid: {}", one_line(&answer::of(&report).join("; "))));
        }
    }
    // A row of the CSV has a time.
    if matches!(options.format, ReportFormat::Csv)
        && report.accounted.unmeasured > 0
        && let Some(accounted) = answer::accounted(&report)
    {
        say(&one_line(&accounted));
    }
    // These formats have no place for warnings.
    if matches!(options.format, ReportFormat::Csv | ReportFormat::Openmetrics) {
        for warning in first_warnings::few(&report) {
            say(&one_line(&format!(
                "warning: {} [{}]: {}",
                warning.message,
                warning.code.name(),
                warning.code.advice()
            )));
        }
    }
    let fail_on = &options.fail_on;
    let advice = verdict_status::advice(&report, fail_on, options.delta);
    let of_screen = match (what, &report.screen) {
        (What::Screen(_), Some(screen)) => Some(screen),
        _ => None,
    };
    let on_screen = |screen| verdict_status::advice_on_screen(&report, screen, fail_on);
    if let Some(advice) = advice.or_else(|| of_screen.and_then(on_screen)) {
        say(&advice);
    }
    let status = match (options.exit, of_screen) {
        (ExitStyle::Nagios, _) => nagios::status(&report, partial),
        (ExitStyle::Plain, None) => verdict_status::plain(&report, fail_on, partial),
        // Without --gate, no node was asked for. A fit node says nothing of the others: --fail-on counts, too.
        (ExitStyle::Plain, Some(screen)) => verdict_status::worse(
            verdict_status::gate(screen),
            verdict_status::screen(&report, screen, fail_on, partial),
        ),
    };
    std::mem::forget(report); // the program ends, and a large report takes long to free
    Ok(status)
}

fn compare(options: &CompareArgs, decoding: Decoding) -> Result<u8, Failure> {
    let names = [options.a.as_str(), options.b.as_str()];
    let selector = |name: &str| name.parse::<Selector>().map_err(|e| Failure::usage(format!("{name}: {e}")));
    let selectors = [selector(names[0])?, selector(names[1])?];
    let labels = selectors.iter().filter_map(|selector| match selector {
        Selector::Label(key, _) => Some(Key::Named(key.clone())),
        _ => None,
    });
    let by = labels.fold(options.class_by.clone().unwrap_or_default(), ClassBy::and);
    let q = fraction("fdr", options.fdr, 50.0)?;
    let from = importers::ImportOptions {
        keep_parts: true,
        ..reading(&options.of_others, &options.select, Some(by.clone()), decoding)
    };
    let trust = validation::folder().map(|folder| Trust::read(&folder)).unwrap_or_default();
    let read = |selector: &Selector| -> Result<Input<_>, Failure> {
        let paths = match selector {
            Selector::Path(path) => vec![path.clone()],
            _ => paths("compare", &options.of)?,
        };
        let input = report::read(&paths, &from, &trust, Details::Shown);
        if input.is_empty() { Err(nothing("compare", &input, &options.select)) } else { Ok(input) }
    };
    let inputs = match selectors.iter().all(Selector::is_part) {
        true => Inputs(vec![read(&selectors[0])?]),
        false => Inputs(vec![read(&selectors[0])?, read(&selectors[1])?]),
    };
    let settings = CompareSettings { q, ..CompareSettings::default() };
    let [a, b] = &selectors;
    let compared = Comparison::new(&inputs, names, [a, b], &by, &settings).map_err(Failure::usage)?;
    let rendered = match options.format {
        CompareFormat::Text => for_place(comparison::text(&compared, options.top), options.output.as_deref()),
        CompareFormat::Json => json(&compared)?,
        CompareFormat::Csv => comparison::csv(&compared).map_err(|e| Failure {
            code: PARTIAL,
            message: format!("pmmpi cannot write the comparison as CSV: {e}"),
        })?,
        CompareFormat::Md => comparison::markdown(&compared, options.top),
    };
    write(&rendered, options.output.as_deref())?;
    Ok(compare_status::of(&compared, &options.fail_on, inputs.is_partial()))
}

fn export(options: &ExportArgs, decoding: Decoding) -> Result<u8, Failure> {
    let from = reading(&options.of_others, &options.select, options.class_by.clone(), decoding);
    let folder = &options.output;
    let failed = |e: io::Error| Failure { code: PARTIAL, message: format!("{}: {e}", folder.display()) };
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::usage(format!("{} is not a folder", folder.display())));
    }
    let trust = validation::folder().map(|folder| Trust::read(&folder)).unwrap_or_default();
    let (input, archived) = input::read_after(folder, &paths("export", &options.paths)?, &from, &trust)
        .map_err(|message| Failure { code: PARTIAL, message })?;
    let table = &input.results.table;
    let mut new = (0..table.len()).filter(|row| table.origins.source(*row) as usize >= archived).peekable();
    let has_new = new.peek().is_some();
    if has_new && new.all(|row| table.median_of(row).is_some()) {
        return Err(Failure::usage("no run to export: the input has only medians; name the runs themselves"));
    }
    let has_new = has_new || table.without_time.iter().any(|entry| entry.source as usize >= archived);
    let is_all_left_out = input.run_names != Ok(Vec::new())
        || input.left_out.rows > 0 && !has_new && input.results.repeated_rows == 0;
    if input.results.sources.len() <= archived || is_all_left_out {
        return Err(nothing("export", &input, &options.select));
    }
    let exported =
        export_archive::export(&input.results, archived, folder, &from.decoding).map_err(failed)?;
    let known = input.results.repeated_rows;
    let places = match options.places {
        true => Some(
            places::add(
                &selected_runs(&input),
                &without_file(&input, archived),
                folder,
                &trust,
                &from.decoding,
            )
            .map_err(failed)?,
        ),
        false => None,
    };
    let of_places =
        places.as_ref().map(|places| format!("; counts by place of {} added", count(places.runs, "run")));
    let text = format!(
        "{} added to {}, {known} {} already there{}\n",
        count(exported.rows, "row"),
        folder.display(),
        if known == 1 { "was" } else { "were" },
        of_places.unwrap_or_default()
    );
    write(&text, None)?;
    let unread = places.map(|places| places.warnings).unwrap_or_default();
    let all = input.warnings.iter().cloned().chain(warnings::of_results(&input.results)).chain(unread);
    for warning in all {
        if warning.code != WarningCode::RepeatedRows {
            say(&format!("{} [{}]", warning.message, warning.code.name()));
        }
    }
    Ok(if input.is_partial() { PARTIAL } else { 0 })
}

/// The selected runs of pmmpi, each with its file and its start.
fn selected_runs(input: &Input<()>) -> BTreeMap<String, (PathBuf, i64)> {
    let table = &input.results.table;
    let starts: HashMap<String, i64> = (0..table.len())
        .filter(|row| table.is_own(*row))
        .map(|row| (table.run_id(row), table.started_unix_ns[row]))
        .collect();
    let of_run = |run: &input::OwnRun<()>| {
        let file = input.run_files.get(&run.run_id)?;
        let started = starts.get(&run.run_id)?;
        Some((run.run_id.clone(), (file.clone(), *started)))
    };
    input.runs.iter().filter_map(of_run).collect()
}

/// The runs of pmmpi that were exported from another archive, not from run files.
fn without_file(input: &Input<()>, archived: usize) -> BTreeSet<String> {
    let table = &input.results.table;
    let new = (0..table.len()).filter(|row| table.origins.source(*row) as usize >= archived);
    let own = new.filter(|row| table.is_own(*row) && table.median_of(*row).is_none());
    own.map(|row| table.run_id(row)).filter(|run| !input.run_files.contains_key(run)).collect()
}

/// The paths that the user gave, or the default folder, which exists after a first measurement.
fn paths(command: &str, given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    let folder = default_folder();
    let named = if command == "compare" { "A B --in PATH" } else { "PATH" };
    match folder.symlink_metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(Failure::usage(format!(
            "no run to {command}: there is no folder {}\n       \
             Measure a program first, for example: pmmpi ./prog, or: mpirun -n 4 pmmpi ./prog\n       \
             Or name files or folders of runs: pmmpi {command} {named}",
            folder.display()
        ))),
        _ => Ok(vec![folder]),
    }
}

fn reading(
    options: &OfOthers,
    select: &Select,
    class_by: Option<ClassBy>,
    decoding: Decoding,
) -> importers::ImportOptions {
    let selection = select.selection();
    importers::ImportOptions {
        format: None,
        path: options.path_pattern.clone(),
        node: options.default_node.clone(),
        metric: options.metric.clone(),
        class_by: class_by.unwrap_or_default().keeping(selection.keys()),
        counters: None,
        keep_parts: selection.has_labels(),
        for_archive: false,
        with_medians: false,
        selection,
        progress: progress_line::show(),
        decoding,
    }
}

/// The time now. SOURCE_DATE_EPOCH (reproducible-builds.org, in seconds) replaces the clock, so that a report can be made
/// again.
fn now_unix_ns() -> i64 {
    let fixed = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.trim().parse::<i64>().ok());
    fixed.and_then(|seconds| seconds.checked_mul(1_000_000_000)).unwrap_or_else(clock::realtime_ns)
}

/// Why there is no screen to show, and what shows something.
fn no_screen(paths: &[PathBuf]) -> Failure {
    let first = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
    let more = match paths.len() {
        0 | 1 => String::new(),
        all => format!(" and {}", count(all - 1, "more path")),
    };
    Failure::usage(format!(
        "no screen in {first}{more}: there is no run file of pmmpi screen\n       \
         An archive has the times of earlier screens, but not the values that kernels measured. To show a screen, name\n       \
         its run files (the folder of --out), and then the archive: pmmpi-report screen RESULTS ARCHIVE\n       \
         To report on the nodes of an archive, use: pmmpi report ARCHIVE"
    ))
}

/// Why there is nothing to report, compare or export.
fn nothing<T>(to: &str, input: &Input<T>, select: &Select) -> Failure {
    match &input.run_names {
        Err(undecided) => return Failure::usage(undecided),
        Ok(unknown) if !unknown.is_empty() => {
            let hint =
                "Give a run id, the beginning of a run id, or the short id from the column RUN of the report";
            return Failure::usage(format!("--run: no run has the id {}\n       {hint}", unknown.join(", ")));
        }
        Ok(_) => {}
    }
    let left_out = select.selection().described().filter(|_| input.left_out.rows > 0);
    let left_out = left_out.map(|selected| {
        let rows = count(input.left_out.rows, "run");
        match input.left_out.undated {
            0 => format!("{rows} read, none with {selected}"),
            undated => format!("{rows} read, none with {selected}; the start of {undated} is not known"),
        }
    });
    let warnings = input.warnings.iter().cloned().chain(warnings::of_results(&input.results));
    let warnings = warnings.map(|w| format!("{}\n       {}", w.message, w.code.advice()));
    let mut why: Vec<_> = left_out.into_iter().chain(warnings).collect();
    if why.is_empty() {
        why.push("the input has only medians of earlier sessions".to_owned());
    }
    Failure::usage(format!("no run to {to}\n       {}", why.join("\n       ")))
}

/// Number of runs: pmmpi's runs, plus each run on a node that another tool measured.
fn runs<T>(input: &Input<T>) -> usize {
    let table = &input.results.table;
    let failed = table.without_time.iter().filter(|entry| entry.is_own).map(|entry| entry.run);
    let own = (0..table.len()).filter(|row| table.is_own(*row)).map(|row| table.run.at(row)).chain(failed);
    let known: HashSet<&str> = input.runs.iter().map(|run| run.run_id.as_str()).collect();
    let archived: HashSet<u32> =
        own.filter(|run| !known.contains(table.runs.get(*run).unwrap_or_default())).collect();
    let is_of_others = |row: &usize| !table.is_own(*row) && table.median_of(*row).is_none();
    input.runs.len() + archived.len() + (0..table.len()).filter(is_of_others).count()
}

fn fraction(name: &str, percent: f64, most: f64) -> Result<f64, Failure> {
    match (0.0..=most).contains(&percent) {
        true => Ok(percent / 100.0),
        false => Err(Failure::usage(format!("--{name}: expected a number from 0 to {most} percent"))),
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

fn show(options: &ShowArgs) -> Result<u8, Failure> {
    let mut shown = Vec::new();
    let mut last = None;
    for path in &options.runs {
        match run_of(path) {
            Ok(run) => shown.push(Recorded::of(&run)),
            Err(failure) => {
                say(&failure.message);
                last = Some(failure);
            }
        }
    }
    if let Some(failure) = last.as_ref().filter(|_| shown.is_empty()) {
        // The message is already there.
        return Ok(failure.code);
    }
    let rendered = match (options.format, &shown[..]) {
        (BoundsFormat::Text, _) => {
            let texts: Vec<String> = shown.iter().map(recorded::show).collect();
            for_place(texts.join("\n"), options.output.as_deref())
        }
        (BoundsFormat::Json, [one]) => json(one)?,
        (BoundsFormat::Json, all) => json(&all)?,
    };
    write(&rendered, options.output.as_deref())?;
    Ok(if last.is_some() { PARTIAL } else { 0 })
}

fn diff(options: &DiffArgs) -> Result<u8, Failure> {
    let found = differences(&run_of(&options.a)?, &run_of(&options.b)?);
    let rendered = match options.format {
        BoundsFormat::Text => for_place(recorded::diff(&found), options.output.as_deref()),
        BoundsFormat::Json => json(&found)?,
    };
    write(&rendered, options.output.as_deref())?;
    let is_found = options.fail_on == Some(DiffFailOn::Different) && !found.differences.is_empty();
    Ok(if is_found { FOUND } else { 0 })
}

fn run_of(path: &Path) -> Result<Run, Failure> {
    input::run_of(path).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))
}

fn bounds(options: &BoundsArgs) -> Result<u8, Failure> {
    let name = options.stamps.display().to_string();
    let drift = MaxDrift::from_ppm(options.max_drift_ppm)
        .ok_or_else(|| Failure::usage("--max-drift-ppm: expected a number from 0 to 100000"))?;
    let source: Box<dyn io::Read> = if name == "-" {
        Box::new(io::stdin())
    } else {
        let file = File::open(&options.stamps).map_err(|e| Failure::usage(format!("{name}: {e}")))?;
        Box::new(BufReader::new(file))
    };
    let stamped = stamps_csv::read(source, drift).map_err(|e| Failure::usage(format!("{name}: {e}")))?;
    let rendered = match options.format {
        BoundsFormat::Text => for_place(text::bounds(&stamped, &name), options.output.as_deref()),
        BoundsFormat::Json if stamped.several => json(&stamped.bounds)?,
        BoundsFormat::Json => json(&stamped.bounds[0])?,
    };
    write(&rendered, options.output.as_deref())?;
    for row in stamped.rejected.iter().filter(|_| options.format == BoundsFormat::Json) {
        say(&format!("line {} of {name} was left out: {}", row.line, row.reason));
    }
    let more = stamped.rejected_rows - stamped.rejected.len() as u64;
    if more > 0 && options.format == BoundsFormat::Json {
        let were = if more == 1 { "was" } else { "were" };
        say(&format!("{} of {name} {were} left out", count(more as usize, "more row")));
    }
    Ok(if stamped.rejected_rows > 0 { PARTIAL } else { 0 })
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    json::of(value).map_err(|e| Failure {
        code: PARTIAL,
        message: format!("pmmpi cannot write the report as JSON: {e}"),
    })
}

fn csv(report: &report::Report) -> Result<String, Failure> {
    let rows = match &report.by_place {
        Some(places) => by_place::csv(places),
        None => csv::nodes(report),
    };
    rows.map_err(|e| Failure { code: PARTIAL, message: format!("pmmpi cannot write the report as CSV: {e}") })
}

/// On a terminal, text that fits its width. In a file or a pipe lines stay whole, for grep and awk.
fn for_place(text: String, file: Option<&Path>) -> String {
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    match width.filter(|width| *width > 0 && file.is_none()) {
        Some(width) => folded(&text, width),
        None => text,
    }
}

/// Refuses a file in a folder that does not exist.
fn writable(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.is_none_or(Path::is_dir) {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "--output {}: there is no folder {}",
            file.display(),
            folder.unwrap_or(file).display()
        ))),
    }
}

fn write(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    output::write(text, file).map_err(|e| {
        let place = file.map_or_else(|| "stdout".to_owned(), |file| file.display().to_string());
        Failure { code: PARTIAL, message: format!("pmmpi cannot write the result to {place}: {e}") }
    })
}
