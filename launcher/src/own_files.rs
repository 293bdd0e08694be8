//! Finds pmmpi's other files from this program's own path, or in the folder PMMPI_LIBDIR. The libraries of
//! `PREFIX/bin/pmmpi` are in `PREFIX/lib/pmmpi`; in a build tree they are in the same folder as pmmpi.

use crate::launch::RunnerFamily;
use crate::program;
use pmmpi::session::shared_memory::SHARED_MEMORY_VARIABLE;
use pmmpi_workload::Failure;
use pmmpi_workload::plan::ABORT;
use pmmpi_workload::process::PreparedProgram;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// If set, the only folder in which pmmpi looks for its files.
const LIBDIR_VARIABLE: &str = "PMMPI_LIBDIR";

/// The library that pmmpi preloads into MPI programs.
pub fn agent() -> Result<PathBuf, Failure> {
    let agent = find("libpmmpi_agent.so")?;
    // LD_PRELOAD is a list separated by spaces or colons (ld.so(8)).
    if agent.to_string_lossy().contains([':', ' ']) {
        let agent = agent.display();
        return Err(Failure::own(format_args!(
            "{agent}: the loader cannot preload a path with a space or a colon: install pmmpi in another \
             folder"
        )));
    }
    Ok(agent)
}

/// The MPI program that measures plain programs, for one MPI family.
pub fn runner(family: RunnerFamily) -> Result<PathBuf, Failure> {
    let name = family.name();
    find(&format!("pmmpi-runner-{name}")).map_err(|failure| {
        Failure::own(format_args!(
            "{failure}\n       \
             The launcher of this job belongs to {name}, and no runner for {name} is installed: in pmmpi's \
             sources, run `make runner MPICC=/path/to/mpicc` with the PREFIX of `make install`"
        ))
    })
}

/// The program that reads a node's topology.
pub fn topology() -> Result<PathBuf, Failure> {
    find("pmmpi-topology")
}

/// The program that looks up event names of vendors' manuals.
pub fn names() -> Result<PathBuf, Failure> {
    find("pmmpi-names")
}

/// The program that reads a node's GPUs; `None` if it is not installed.
pub fn gpus() -> Option<PathBuf> {
    find("pmmpi-gpus").ok()
}

/// pmmpi as a program that can load libraries: a statically linked program cannot.
pub fn dynamic() -> Result<PathBuf, Failure> {
    if cfg!(target_feature = "crt-static") {
        return find("pmmpi-dynamic");
    }
    own_file()
}

/// The file of this program.
pub fn own_file() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::own(format_args!("pmmpi cannot find its own file in /proc: {e}")))
}

/// The program that reports.
pub fn report() -> Result<PathBuf, Failure> {
    let report = own_folder().map(|folder| folder.join("pmmpi-report")).filter(|path| path.exists());
    report.map_or_else(|| program::find(OsStr::new("pmmpi-report")), Ok)
}

/// Replaces this process with `pmmpi-report COMMAND ARGS...`. Returns only if that fails.
pub fn exec_report<T>(command: &str, args: &[OsString]) -> Result<T, Failure> {
    let report = report()?;
    let own = [report.clone().into_os_string(), command.into()];
    let argv: Vec<OsString> = own.into_iter().chain(args.iter().cloned()).collect();
    let error = exec(&report, &argv, std::env::vars_os());
    Err(program::failure(report.as_os_str(), error.raw_os_error().unwrap_or(libc::EINVAL)))
}

/// Replaces this process with the runner, which reads its plan from `shared`. Returns only if that fails.
pub fn exec_runner(runner: &Path, shared: &str) -> Failure {
    let error = prepare_runner(runner, shared).map_or_else(|error| error, |prepared| prepared.exec());
    Failure::own(format_args!("{}: {error}", runner.display()))
}

/// The runner, which reads its plan from `shared`.
pub fn prepare_runner(runner: &Path, shared: &str) -> io::Result<PreparedProgram> {
    let others = std::env::vars_os().filter(|(name, _)| name != SHARED_MEMORY_VARIABLE);
    let environment = others.chain([(SHARED_MEMORY_VARIABLE.into(), shared.into())]);
    PreparedProgram::new(runner, &[runner.as_os_str().to_owned()], environment)
}

/// Replaces this process with the runner, which calls MPI_Abort. Returns only if that fails.
pub fn exec_runner_to_abort(runner: &Path) -> Failure {
    let error = exec(runner, &[runner.as_os_str().to_owned(), ABORT.into()], std::env::vars_os());
    Failure::own(format_args!("{}: {error}", runner.display()))
}

/// Keeps the signal mask and dispositions of this process; std's exec would change them.
fn exec(
    program: &Path,
    argv: &[OsString],
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> io::Error {
    match PreparedProgram::new(program, argv, environment) {
        Ok(prepared) => prepared.exec(),
        Err(error) => error,
    }
}

fn find(name: &str) -> Result<PathBuf, Failure> {
    let folders = folders();
    let path = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    path.ok_or_else(|| {
        let looked: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        let place = match looked.is_empty() {
            true => "because /proc is not mounted".to_owned(),
            false => format!("in {}", looked.join(" or ")),
        };
        Failure::own(format_args!(
            "pmmpi found no {name} {place}. Set {LIBDIR_VARIABLE} to the folder of {name}"
        ))
    })
}

/// The folders in which pmmpi looks for its libraries and programs; none if it cannot read its own path.
pub fn folders() -> Vec<PathBuf> {
    if let Some(folder) = std::env::var_os(LIBDIR_VARIABLE) {
        return vec![folder.into()];
    }
    let Some(own) = own_folder() else { return Vec::new() };
    let installed = own.parent().map(|prefix| prefix.join("lib/pmmpi"));
    installed.into_iter().chain([own]).collect()
}

pub fn own_folder() -> Option<PathBuf> {
    std::env::current_exe().ok()?.parent().map(Path::to_owned)
}
