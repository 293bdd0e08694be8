//! Plain programs under an MPI launcher: this process execs the runner, an MPI program that measures them on every
//! rank.

use super::kept_variables;
use super::node_record;
use super::task::Task;
use crate::launch::RunnerFamily;
use crate::tool_files;
use pmmpi::record::wire;
use pmmpi::session::shared_memory::{Blob, SharedMemory};
use pmmpi_workload::Failure;
use pmmpi_workload::console::say;
use pmmpi_workload::runner_plan::RunnerPlan;

/// Execs the runner of `family`, which reads its plan from shared memory. Returns only if that fails.
pub fn exec(task: &Task, family: RunnerFamily, plan: RunnerPlan) -> Failure {
    let shared = || {
        fill(task, plan).map_err(|e| Failure::own(format_args!("cannot pass the plan to pmmpi-runner: {e}")))
    };
    let ready = tool_files::runner(family).and_then(|runner| Ok((runner, shared()?)));
    ready.map_or_else(|failure| failure, |(runner, shared)| tool_files::exec_runner(&runner, &shared.path()))
}

/// For a failure that only this rank knows: prints it and execs the runner of `family`, which ends the job. Returns
/// only if that fails.
pub fn abort(family: RunnerFamily, failure: Failure) -> Failure {
    let Ok(runner) = tool_files::runner(family) else { return failure };
    say(&failure);
    tool_files::exec_runner_to_abort(&runner)
}

/// The plan for rounds of the user's program.
pub fn rounds(task: &Task) -> RunnerPlan {
    RunnerPlan::Rounds(Box::new(task.plan(kept_variables::without_connection(std::env::vars_os()))))
}

fn fill(task: &Task, mut plan: RunnerPlan) -> std::io::Result<SharedMemory> {
    plan.rounds_mut().leads_by = task.role.keep_across_exec()?;
    let shared = SharedMemory::create()?;
    shared.put(Blob::Plan, &wire::encode(&plan).map_err(std::io::Error::other)?)?;
    if let Some(expectation) = task.expectation() {
        shared.put(Blob::Expectation, &wire::encode(&expectation).map_err(std::io::Error::other)?)?;
    }
    if task.role.leads() {
        shared.put(Blob::Node, &node_record::part(task.settings.quiet))?;
    }
    shared.keep_across_exec()?;
    Ok(shared)
}
