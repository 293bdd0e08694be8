//! Measuring one program: what it is, what started it, and which way of measuring fits.

use crate::launch::{Family, Launch};
use crate::options::{Measurement, OnMismatch};
use crate::settings::Settings;
use crate::work::{self, Choice};
use crate::{agent, environment, host, notices, options, out, program, runner};
use pmmpi::clock;
use pmmpi::counters::asked;
use pmmpi::counters::linux::Target;
use pmmpi::counters::probe::{Probe, Scope};
use pmmpi::counters::selection::Selection;
use pmmpi::record::runfile::{Slot, reserved_bytes, reserved_bytes_alone};
use pmmpi::record::{End, Mode, RunHeader, Series};
use pmmpi::session::launch_check::Expectation;
use pmmpi::transport::fabric::Solo;
use pmmpi::transport::node_election::{Duty, Role};
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
    /// How it is measured.
    pub way: Way,
    /// Its job among all of this user on this node, where there are other ranks that are to know it.
    pub job: Option<String>,
    /// What this process is among those of its job on this node.
    pub role: Role,
    /// When the tool began to work (CLOCK_MONOTONIC, ns).
    pub began_ns: i64,
}

/// Who measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The agent in an MPI program.
    Inside,
    /// The runner of this family, around plain programs on all ranks.
    Together(Family),
    /// This process, around a plain program of its own.
    Alone,
}

impl Way {
    /// A launch slot has one MPI_Init, and the runner uses it up: it is for the process that the launcher itself
    /// started, and for who asks for it. A script may start an MPI program next.
    fn choose(mode: Mode, settings: &Settings, launch: &Launch) -> Self {
        match (mode, launch.family) {
            (Mode::Mpi, _) => Way::Inside,
            (Mode::Plain, Some(family)) if settings.mode == options::Mode::Ranks || launch.is_direct() => {
                Way::Together(family)
            }
            (Mode::Plain, _) => Way::Alone,
        }
    }

    /// The job whose processes on this node agree on one of them. A rank measured alone is a run of its own; it meets the
    /// others only where the launcher does not tell who speaks.
    fn job(self, launch: &Launch) -> Option<String> {
        let meets = self != Way::Alone || launch.rank.is_none();
        meets.then(|| launch.job_key()).flatten()
    }

    /// What this process is on its node. Where the job has no name (a PID namespace around each rank), the launcher's
    /// local ranks must do.
    fn role(self, launch: &Launch, job: Option<&str>) -> Role {
        match (job, launch.local_rank) {
            (None, Some(rank)) if self != Way::Alone => Role::by_local_rank(rank),
            _ => Role::enter(Duty::Read, job),
        }
    }
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
    let (task, slot) = match get_ready(&settings, launch.clone(), began_ns) {
        Ok(ready) => ready,
        Err(failure) => return Ok(not_begun(&launch, &failure)),
    };
    match task.way {
        Way::Inside => match agent::start(&task, slot.as_ref()) {
            Ok(started) => started.measure(&task, slot),
            Err(failure) => Ok(not_begun(&launch, &failure)),
        },
        Way::Together(family) => Ok(not_begun(&launch, &runner::exec(&task, family))),
        Way::Alone => task.measure_alone(slot),
    }
}

/// Nothing runs here, and the other ranks must not wait for this one.
fn not_begun(launch: &Launch, failure: &Failure) -> End {
    End::Exited(launch.refuse(failure))
}

/// Whatever can fail before the program starts.
fn get_ready(
    settings: &Settings,
    launch: Launch,
    began_ns: i64,
) -> Result<(Task<'_>, Option<Slot>), Failure> {
    let name = &settings.argv[0];
    let program = program::find_as(launch.launcher, name).map_err(|failure| hinted(failure, name))?;
    let choice = work::choose(&program, settings, &launch)?;
    let way = Way::choose(choice.mode, settings, &launch);
    let job = way.job(&launch);
    let role = way.role(&launch, job.as_deref());
    let task = Task { settings, launch, program, way, job, role, began_ns };
    let slot = task.prepare(&choice)?;
    Ok((task, slot))
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
        if self.settings.verbose && self.speaks() {
            say(format_args!("{}: {choice}", self.program.display()));
        }
        if self.speaks() && !self.settings.quiet {
            notices::give(self);
        }
        self.warn_of_uncounted(choice);
        let saves_for_all = self.speaks() && self.way != Way::Alone;
        let saves = saves_for_all || self.way == Way::Alone || self.launch.family.is_none();
        let ranks = self.launch.size.unwrap_or(1);
        let is_small = self.way == Way::Alone && self.settings.selection.asked.is_empty();
        let bytes = || match is_small {
            true => reserved_bytes_alone(&self.header(Mode::Plain)),
            false => reserved_bytes(ranks),
        };
        let out = self.settings.out.as_deref().filter(|_| saves);
        let prepared = out.map(|out| out::prepare(out, ranks, bytes())).transpose();
        // Of all ranks this one alone knows it.
        prepared.map_err(|failure| match (saves_for_all, self.launch.family) {
            (true, Some(family)) if self.launch.ends_by_mpi_abort() => runner::abort(family, failure),
            _ => failure,
        })
    }

    /// What was asked for and cannot be counted, once a job: on the node of the rank that speaks.
    fn warn_of_uncounted(&self, choice: &Choice) {
        let selection = &self.settings.selection;
        if selection.asked.is_empty() || self.settings.quiet || !self.speaks() {
            return;
        }
        // The default set alone, which nobody asked for, is not tried beforehand.
        let counters = match choice.mode {
            Mode::Mpi => selection.open_for(&self.program),
            Mode::Plain => selection.open(Target::NextProgram, Some(&self.program)),
        };
        let uncounted = asked::unopened(&selection.asked, counters.opened());
        if !uncounted.is_empty() {
            let lines: Vec<String> = uncounted.iter().map(ToString::to_string).collect();
            warn(format_args!("{}\n       {}", lines.join("\n       "), asked::ADVICE));
        }
    }

    fn measure_alone(&self, slot: Option<Slot>) -> Result<End, Failure> {
        signals::prepare();
        // A run that is not kept needs no description of its node.
        let host = self.settings.out.as_deref().map(|out| host::remembered_part(out, self.settings.quiet));
        let place =
            Place { mpi_library: None, host: host.unwrap_or_default(), began_ns: self.began_ns, slot };
        signals::forward();
        rounds::run(Solo, &self.plan(std::env::vars_os().collect()), place)
    }

    /// True for the one rank that speaks for all.
    pub fn speaks(&self) -> bool {
        self.launch.speaks(self.role.leads())
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
            ranks: self.launch.size,
            rank: self.launch.rank.unwrap_or(0),
            speaks: self.speaks(),
            job: self.job.clone().filter(|_| !settings.quiet),
            quiet: settings.quiet && settings.on_mismatch != OnMismatch::Abort,
            abort: settings.on_mismatch == OnMismatch::Abort,
        })
    }

    /// What this rank counts: of everything on its node, one of the node's ranks.
    pub fn selection(&self) -> Selection {
        let mut selection = self.settings.selection.clone();
        if self.way != Way::Alone && !self.role.leads() {
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
            leads_by: None,
            header: self.header(Mode::Plain),
        }
    }

    /// What is known of a run that begins now.
    pub fn header(&self, mode: Mode) -> RunHeader {
        let started_unix_ns = clock::realtime_ns();
        let run_id = pmmpi::record::new_run_id(started_unix_ns);
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
