//! Plain programs under an MPI launcher: this process becomes the runner, an MPI program that measures
//! them on every rank.

use super::environment;
use super::node_record;
use super::task::Task;
use crate::launch::RunnerFamily;
use crate::tool_files;
use pmmpi::record::wire;
use pmmpi::session::shared_memory::{Blob, SharedMemory};
use pmmpi_rounds::Failure;
use pmmpi_rounds::console::say;

/// Becomes the runner of `family`, which finds its plan in the shared memory; or says why it cannot.
pub fn exec(task: &Task, family: RunnerFamily) -> Failure {
    let shared =
        || fill(task).map_err(|e| Failure::own(format_args!("the runner cannot be told what to do: {e}")));
    let ready = tool_files::runner(family).and_then(|runner| Ok((runner, shared()?)));
    ready.map_or_else(|failure| failure, |(runner, shared)| tool_files::exec_runner(&runner, &shared.path()))
}

/// For a failure that no other rank knows of: prints it and becomes the runner of `family`, which ends the job. Returns
/// only where that fails.
pub fn abort(family: RunnerFamily, failure: Failure) -> Failure {
    let Ok(runner) = tool_files::runner(family) else { return failure };
    say(&failure);
    tool_files::exec_runner_to_abort(&runner)
}

fn fill(task: &Task) -> std::io::Result<SharedMemory> {
    let mut plan = task.plan(environment::without_connection(std::env::vars_os()));
    plan.leads_by = task.role.keep_across_exec()?;
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
