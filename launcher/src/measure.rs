//! Measuring one program: what it is, what started it, and which way of measuring fits.

use crate::launch::Launch;
use crate::options::{Measurement, OnMismatch};
use crate::settings::Settings;
use crate::work::{self, Choice};
use crate::{agent, environment, host, options, out, program, runner};
use pmmpi::clock;
use pmmpi::counters::probe::Scope;
use pmmpi::counters::selection::Selection;
use pmmpi::fabric::Solo;
use pmmpi::record::{End, Mode, RunHeader, Series};
use pmmpi::runfile::Slot;
use pmmpi::selfcheck::Expectation;
use pmmpi_rounds::console::{say, warn};
use pmmpi_rounds::plan::Plan;
use pmmpi_rounds::rounds::{self, Place};
use pmmpi_rounds::{Failure, signals};
use std::ffi::OsStr;
use std::path::PathBuf;

/// A measurement that is ready to begin.
pub struct Task<'a> {
    /// How to measure what.
    pub settings: &'a Settings,
    /// What started this process.
    pub launch: Launch,
    /// The program's file.
    pub program: PathBuf,
    /// When the tool began to work (CLOCK_MONOTONIC, ns).
    pub began_ns: i64,
}

/// Measures, and gives the workload's end.
pub fn run(typed: Measurement) -> Result<End, Failure> {
    let began_ns = clock::monotonic_ns();
    let launch = Launch::read();
    // What cannot be counted on this node may well be on the others.
    let settings = match Settings::validate(typed) {
        Ok(settings) => settings,
        Err(failure) => return Ok(not_begun(&launch, &failure)),
    };
    let (task, choice, slot) = match get_ready(&settings, launch.clone(), began_ns) {
        Ok(ready) => ready,
        Err(failure) => return Ok(not_begun(&launch, &failure)),
    };
    match (choice.mode, task.launch.family) {
        (Mode::Mpi, _) => match agent::start(&task) {
            Ok(started) => started.measure(&task, slot),
            Err(failure) => Ok(not_begun(&launch, &failure)),
        },
        (Mode::Plain, Some(family)) => Ok(not_begun(&launch, &runner::exec(&task, family))),
        (Mode::Plain, None) => task.measure_alone(slot),
    }
}

/// Nothing runs here, and the other ranks must not wait for this one.
fn not_begun(launch: &Launch, failure: &Failure) -> End {
    say(failure);
    launch.end_job(failure.code);
    End::Exited(failure.code)
}

/// Whatever can fail before the program starts.
fn get_ready(
    settings: &Settings,
    launch: Launch,
    began_ns: i64,
) -> Result<(Task<'_>, Choice, Option<Slot>), Failure> {
    let name = &settings.argv[0];
    let program = program::find(name).map_err(|failure| hinted(failure, name))?;
    let choice = work::choose(&program, settings, &launch)?;
    let task = Task { settings, launch, program, began_ns };
    let slot = task.prepare(&choice)?;
    Ok((task, choice, slot))
}

/// Of a program that is not there and was not meant to be one.
fn hinted(mut failure: Failure, name: &OsStr) -> Failure {
    if options::COMMANDS.iter().any(|command| name == *command) {
        failure.message += "\n       A command is the first word: pmmpi COMMAND OPTIONS...";
    } else if name == "help" {
        failure.message += "\n       Help is pmmpi --help";
    }
    failure
}

impl Task<'_> {
    /// In a job, only the rank that speaks takes a place for the run: it is likely to be the one that
    /// saves it.
    fn prepare(&self, choice: &Choice) -> Result<Option<Slot>, Failure> {
        if self.launch.launcher.is_some() {
            signals::started_by_launcher();
        }
        if self.settings.verbose && self.launch.speaks() {
            say(format_args!("{}: {choice}", self.program.display()));
        }
        let saves = self.launch.speaks() || self.launch.family.is_none();
        let ranks = self.launch.size.unwrap_or(1);
        self.settings.out.as_deref().filter(|_| saves).map(|out| out::prepare(out, ranks)).transpose()
    }

    fn measure_alone(&self, slot: Option<Slot>) -> Result<End, Failure> {
        if let (true, Some(launcher), Some(size @ 2..)) =
            (self.launch.speaks() && !self.settings.quiet, self.launch.launcher, self.launch.size)
        {
            warn(format_args!(
                "{launcher} started {size} tasks without an MPI process manager, so each is measured alone; \
                 add --mpi=pmix or --mpi=pmi2"
            ));
        }
        signals::prepare();
        // A run that is not kept needs no description of its node.
        let host = self.settings.out.as_deref().map(|out| host::remembered_part(out, self.settings.quiet));
        let place =
            Place { mpi_library: None, host: host.unwrap_or_default(), began_ns: self.began_ns, slot };
        signals::forward();
        rounds::run(Solo, &self.plan(std::env::vars_os().collect()), place)
    }

    /// Why its program may be out of an agent's sight.
    pub fn unseen(&self) -> &'static str {
        work::unseen(&self.program)
    }

    /// What MPI's world should be, if a launcher says so.
    pub fn expectation(&self) -> Option<Expectation> {
        let settings = self.settings;
        Some(Expectation {
            launcher: self.launch.launcher?.to_owned(),
            ranks: self.launch.size?,
            rank: self.launch.rank?,
            speaks: self.launch.speaks() && (!settings.quiet || settings.on_mismatch == OnMismatch::Abort),
            parent: (!settings.quiet).then(std::os::unix::process::parent_id),
            abort: settings.on_mismatch == OnMismatch::Abort,
        })
    }

    /// What this rank counts: of everything on its node, one of the node's ranks.
    pub fn selection(&self) -> Selection {
        let mut selection = self.settings.selection.clone();
        if !self.launch.reads_node() {
            selection.sets.retain(|wanted| wanted.scope == Scope::Task);
        }
        selection
    }

    /// Rounds of a plain program with this environment.
    pub fn plan(&self, environment: Vec<(std::ffi::OsString, std::ffi::OsString)>) -> Plan {
        let settings = self.settings;
        Plan {
            program: self.program.clone(),
            argv: settings.argv.clone(),
            environment,
            runs: settings.runs,
            warmup: settings.warmup,
            on_failure: settings.on_failure,
            timeout: settings.timeout,
            pings: settings.extras.pings,
            selection: self.selection(),
            out: settings.out.clone(),
            quiet: settings.quiet,
            header: self.header(Mode::Plain),
        }
    }

    /// What is known of a run that begins now.
    pub fn header(&self, mode: Mode) -> RunHeader {
        let started_unix_ns = clock::realtime_ns();
        let run_id = pmmpi::new_run_id(started_unix_ns);
        let several = self.settings.runs > 1;
        RunHeader {
            series: self
                .settings
                .series
                .clone()
                .or_else(|| several.then(|| Series { id: run_id.clone(), round: 0 })),
            run_id,
            pmmpi_version: env!("CARGO_PKG_VERSION").to_owned(),
            command: self.settings.argv.iter().map(|arg| arg.to_string_lossy().into_owned()).collect(),
            mode,
            labels: self.settings.labels.clone(),
            job: self.launch.job(),
            mpi_library: None,
            environment: environment::remembered(std::env::vars_os()),
            started_unix_ns,
            max_drift: self.settings.max_drift,
        }
    }
}
