//! `pmmpi screen`: the same work on every node, in rounds, to find slow nodes.
//!
//! This module makes the plan that all ranks share. [`pmmpi_workload::screen_rounds`] executes it on the ranks,
//! [`kernel`] is the process in which one kernel runs, [`supervisor`] notices ranks that end, and `pmmpi-report screen`
//! decides and shows the result.

mod act_in_slurm;
pub mod kernel;
mod kernel_list;
mod outputs;
mod rank_connections;
mod settings;
mod supervisor;

use crate::cli::options::{ActArgs, KernelArgs, ScreenArgs};
use crate::cli::settings::Settings;
use crate::launch::Launch;
use crate::own_files;
use crate::program;
use crate::run::task::{Task, Way};
use crate::run::{exec_runner, kept_variables, node_record, run_folder};
use pmmpi::clock;
use pmmpi::node::NodeKey;
use pmmpi::record::run_file::reserved_bytes;
use pmmpi::record::{End, Mode, RunHeader};
use pmmpi::text::shell_line;
use pmmpi::transport::fabric::Solo;
use pmmpi_workload::rounds::RoundsContext;
use pmmpi_workload::runner_plan::RunnerPlan;
use pmmpi_workload::screen_plan::{ScreenPlan, ScreenWork, WorkKind};
use pmmpi_workload::{Failure, screen_report, screen_rounds, signals};
use settings::{ScreenSettings, Works};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use supervisor::Supervisor;

/// Rank 0 says what is wrong with the command line. The other ranks wait, because some launchers kill rank 0 when they end.
const TIME_TO_SAY_IT: Duration = Duration::from_secs(1);
/// MAX_ARG_STRLEN of Linux with pages of 4 KiB: bytes of a word of a command.
const LONGEST_WORD: usize = 128 << 10;
/// The status if a signal ends the report.
const OWN_FAILURE: i32 = 125;

/// Measures all nodes and shows the result. Returns only if that fails, and on ranks that show nothing.
pub fn run(typed: ScreenArgs) -> Result<End, Failure> {
    let began_ns = clock::monotonic_ns();
    let launch = Launch::read();
    let refused = |failure: &Failure| Ok(End::Exited(launch.refuse(failure)));
    let mut settings = match ScreenSettings::validate(typed) {
        Ok(settings) => settings,
        // All ranks have the same command line.
        Err(failure) if launch.rank.is_some_and(|rank| rank > 0) => {
            std::thread::sleep(TIME_TO_SAY_IT);
            return Ok(End::Exited(failure.code));
        }
        Err(failure) => return refused(&failure),
    };
    // Before the checks and the rounds, because another screen may create the log while they run.
    let log = log(&settings);
    settings.act.iter_mut().for_each(|options| act_in_slurm::note_first_use(options, &log));
    let ready = works(&settings, &launch).and_then(|works| {
        let task = Task::new(&settings.run, launch.clone(), works[0].program.clone(), Mode::Plain, began_ns);
        if task.way == Way::Alone && launch.size.is_some_and(|size| size > 1) {
            return Err(no_ranks(&launch));
        }
        if task.speaks() {
            let ranks = launch.size.unwrap_or(1);
            let out = settings.run.out.as_deref();
            out.map(|out| run_folder::prepare(out, ranks, reserved_bytes(ranks))).transpose()?;
            check_end(&settings, &works, &log)?;
        }
        Ok((task, works))
    });
    let (task, works) = match ready {
        Ok(ready) => ready,
        Err(failure) => return refused(&failure),
    };
    match task.way {
        Way::Together(family) => {
            let plan = |environment| plan(&settings, &task, works, environment);
            let environment = kept_variables::without_connection(std::env::vars_os());
            match plan(environment) {
                // MPI cannot start without this rank, so the failure ends the job.
                Err(failure) => refused(&failure),
                Ok(plan) if launch.rank == Some(0) => {
                    let started = Supervisor::start(&task, family, plan);
                    started.map_or_else(|failure| refused(&failure), Supervisor::run)
                }
                Ok(plan) => refused(&exec_runner::exec(&task, family, RunnerPlan::Screen(Box::new(plan)))),
            }
        }
        Way::Alone | Way::Inside => alone(&settings, &task, works),
    }
}

/// Refuses before the rounds what would fail only after them.
fn check_end(settings: &ScreenSettings, works: &[ScreenWork], log: &Path) -> Result<(), Failure> {
    settings.log.as_deref().map(outputs::check_log).transpose()?;
    if settings.act.is_some() {
        act_in_slurm::check(log)?;
    }
    settings.archive.as_deref().map(outputs::check_archive).transpose()?;
    let report = own_files::report()?;
    let mut command = Command::new(&report);
    command.arg("screen").args(&settings.report).arg("--check").stdin(Stdio::null());
    if settings.has_baseline {
        // As the runs will have it.
        let line = |work: &ScreenWork| shell_line(work.argv.iter().map(|word| word.to_string_lossy()));
        let lines: Vec<String> = works.iter().map(line).collect();
        // execve(2) refuses a longer word. Then only the report says that nothing could be compared.
        if lines.iter().all(|line| line.len() < LONGEST_WORD) {
            lines.iter().for_each(|line| _ = command.arg("--work").arg(line));
        }
    }
    let output = command.output().map_err(|e| Failure::own(format_args!("{}: {e}", report.display())))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let message = said.trim_end().trim_start_matches("pmmpi-report: ").trim_start_matches("pmmpi: ");
    let message = message.trim_start_matches("error: ").to_owned();
    Err(Failure { code: output.status.code().unwrap_or(OWN_FAILURE), message })
}

/// The log of changes.
fn log(settings: &ScreenSettings) -> PathBuf {
    let out = settings.run.out.as_deref().unwrap_or(Path::new("."));
    settings.log.clone().unwrap_or_else(|| out.join(act_in_slurm::LOG))
}

/// Runs one kernel in this process: see [`kernel`].
pub fn run_kernel(typed: &KernelArgs) -> Result<End, Failure> {
    kernel::run(typed)
}

/// Acts on the findings of a screen: see [`act_in_slurm`].
pub fn run_act(typed: &ActArgs) -> Result<End, Failure> {
    act_in_slurm::run(typed)
}

fn alone(settings: &ScreenSettings, task: &Task, works: Vec<ScreenWork>) -> Result<End, Failure> {
    signals::prepare();
    let plan = plan(settings, task, works, std::env::vars_os().collect())?;
    let host = node_record::part(settings.run.quiet);
    signals::forward();
    let place = RoundsContext { mpi_library: None, host, began_ns: task.began_ns, slot: None };
    match screen_rounds::run(Solo, &plan, place)? {
        Some(done) => screen_report::finish(&plan, &done),
        None => Ok(End::Exited(0)),
    }
}

/// The kernels, or the user's program.
fn works(settings: &ScreenSettings, launch: &Launch) -> Result<Vec<ScreenWork>, Failure> {
    match &settings.works {
        Works::Program(argv) => {
            // The other nodes may have it.
            let of_host = |failure: Failure| Failure {
                message: format!("{}: {}", NodeKey::own().hostname, failure.message),
                ..failure
            };
            let program = program::find_as(launch.launcher, &argv[0]).map_err(of_host)?;
            let name = crate::launch::file_name(&argv[0]);
            Ok(vec![ScreenWork { name, kind: WorkKind::Program, program, argv: argv.clone() }])
        }
        Works::Kernels(kernels) => {
            let own = own_files::own_file()?;
            let work = |(name, options): &(&'static str, Vec<OsString>)| {
                let loads_library = options.iter().any(|option| option == KernelArgs::BLAS);
                let program = if loads_library { own_files::dynamic()? } else { own.clone() };
                let words = ["pmmpi", kernel::COMMAND, *name].map(OsString::from);
                let ranks = launch.local_size.filter(|ranks| *ranks > 1 && !options.is_empty());
                let ranks = ranks.map(|ranks| [KernelArgs::RANKS_OF_NODE.into(), ranks.to_string().into()]);
                Ok(ScreenWork {
                    name: (*name).to_owned(),
                    kind: if *name == kernel_list::NET { WorkKind::Net } else { WorkKind::Kernel },
                    program,
                    argv: words
                        .into_iter()
                        .chain(options.iter().cloned())
                        .chain(ranks.into_iter().flatten())
                        .collect(),
                })
            };
            kernels.iter().map(work).collect()
        }
    }
}

fn plan(
    settings: &ScreenSettings,
    task: &Task,
    works: Vec<ScreenWork>,
    mut environment: Vec<(OsString, OsString)>,
) -> Result<ScreenPlan, Failure> {
    // A launcher often binds the only rank of a node to one core. A kernel needs all cores of the node.
    let are_kernels = works.iter().all(|work| work.kind.is_kernel());
    if are_kernels
        && settings.all_cores
        && task.launch.launcher.is_some()
        && task.launch.local_size == Some(1)
    {
        environment.push((kernel::ALL_CORES_VARIABLE.into(), "1".into()));
    }
    let mut rounds = task.plan(environment);
    rounds.header = header(&settings.run, rounds.header);
    let mut report = vec![own_files::report()?.into_os_string(), "screen".into()];
    report.extend(settings.report.iter().cloned());
    report.extend(program_option(&works).into_iter().flatten());
    Ok(ScreenPlan {
        rounds,
        works,
        output_to_stderr: settings.output_to_stderr,
        more_rounds: settings.more_rounds,
        soak: settings.soak,
        seed: settings.seed,
        report,
        archive: settings.archive.clone(),
        act: act(settings)?,
        told_on: None,
        watch: None,
    })
}

/// The runs have the user's program as it was typed. The findings need a path that means the same file in each folder. Links
/// stay as they are, because a folder of a job may have a fixed name through a link.
fn program_option(works: &[ScreenWork]) -> Option<[OsString; 2]> {
    let work = works.iter().find(|work| !work.kind.is_kernel())?;
    let path = std::path::absolute(working_folder()?.join(&work.program)).ok()?;
    Some(["--program".into(), path.to_string_lossy().into_owned().into()])
}

/// The working folder with the links through which the shell entered it, if PWD tells them.
fn working_folder() -> Option<PathBuf> {
    let identity = |folder: &Path| folder.metadata().ok().map(|about| (about.dev(), about.ino()));
    let named = std::env::var_os("PWD").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let here = identity(Path::new("."));
    named.filter(|folder| identity(folder) == here).or_else(|| std::env::current_dir().ok())
}

/// The command that acts on the findings.
fn act(settings: &ScreenSettings) -> Result<Option<Vec<OsString>>, Failure> {
    let Some(options) = &settings.act else { return Ok(None) };
    let own = own_files::own_file()?.into_os_string();
    Ok(Some([own, act_in_slurm::COMMAND.into()].into_iter().chain(options.iter().cloned()).collect()))
}

/// All runs of a screen are one series and one session.
fn header(settings: &Settings, mut header: RunHeader) -> RunHeader {
    const SESSION: &str = "session";
    if !settings.labels.iter().any(|(key, _)| key == SESSION) {
        // Two screens may begin in the same second: 20261126T023100.123456789Z
        let start = header.run_id.split('-').next().unwrap_or_default();
        header.labels.push((SESSION.to_owned(), start.to_owned()));
    }
    header
}

fn no_ranks(launch: &Launch) -> Failure {
    let launcher = launch.launcher.unwrap_or("the launcher");
    Failure::usage(format_args!(
        "{launcher} started several processes, but pmmpi cannot connect them: {launcher} has no process \
         manager that pmmpi knows, or started pmmpi through a shell or another program. So pmmpi cannot \
         measure the nodes in rounds.\n       Start pmmpi screen directly with a launcher that has a process \
         manager, for example: srun --mpi=pmix -N 4 --ntasks-per-node=1 pmmpi screen"
    ))
}
