//! Plain programs under an MPI launcher. The runner is an MPI program that measures them on every rank. This process
//! becomes the runner, or starts the runner.

use super::kept_variables;
use super::node_record;
use super::task::Task;
use crate::launch::RunnerFamily;
use crate::own_files;
use pmmpi::record::wire;
use pmmpi::session::shared_memory::{Blob, SharedMemory};
use pmmpi_workload::Failure;
use pmmpi_workload::console::say;
use pmmpi_workload::process::PreparedProgram;
use pmmpi_workload::runner_plan::RunnerPlan;
use std::io;

/// Execs the runner of `family`, which reads its plan from shared memory. Returns only if that fails.
pub fn exec(task: &Task, family: RunnerFamily, mut plan: RunnerPlan) -> Failure {
    let mut shared = || {
        plan.rounds_mut().leads_by = task.role.keep_across_exec()?;
        let shared = filled(task, &plan)?;
        shared.keep_across_exec()?;
        Ok(shared)
    };
    let runner = own_files::runner(family);
    let ready = runner.and_then(|runner| Ok((runner, shared().map_err(not_passed)?)));
    ready.map_or_else(|failure| failure, |(runner, shared)| own_files::exec_runner(&runner, &shared.path()))
}

/// The runner of `family` as a child of this process, which must keep the shared memory until the runner has ended.
pub fn prepare(
    task: &Task,
    family: RunnerFamily,
    plan: &RunnerPlan,
) -> Result<(PreparedProgram, SharedMemory), Failure> {
    let runner = own_files::runner(family)?;
    let shared = filled(task, plan).map_err(not_passed)?;
    let prepared = own_files::prepare_runner(&runner, &shared.path()).map_err(not_passed)?;
    Ok((prepared, shared))
}

fn not_passed(error: io::Error) -> Failure {
    Failure::own(format_args!("pmmpi cannot pass the plan of the measurement to pmmpi-runner: {error}"))
}

/// For a failure that only this rank knows: prints it and execs the runner of `family`, which ends the job. Returns
/// only if that fails.
pub fn abort(family: RunnerFamily, failure: Failure) -> Failure {
    let Ok(runner) = own_files::runner(family) else { return failure };
    say(&failure);
    own_files::exec_runner_to_abort(&runner)
}

/// The plan for rounds of the user's program.
pub fn rounds(task: &Task) -> RunnerPlan {
    RunnerPlan::Rounds(Box::new(task.plan(kept_variables::without_connection(std::env::vars_os()))))
}

fn filled(task: &Task, plan: &RunnerPlan) -> io::Result<SharedMemory> {
    let shared = SharedMemory::create()?;
    shared.put(Blob::Plan, &wire::encode(plan).map_err(io::Error::other)?)?;
    if let Some(expectation) = task.expectation() {
        shared.put(Blob::Expectation, &wire::encode(&expectation).map_err(io::Error::other)?)?;
    }
    if task.role.leads() {
        shared.put(Blob::Node, &node_record::part(task.settings.quiet))?;
    }
    Ok(shared)
}
