//! The tool's other files, found from this program's own place: `PREFIX/bin/pmmpi` has its libraries
//! in `PREFIX/lib/pmmpi`; in a build tree they lie beside it.

use crate::launch::Family;
use pmmpi_rounds::Failure;
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

/// Overrides where libraries are looked for.
const LIBDIR_VARIABLE: &str = "PMMPI_LIBDIR";

/// The library that is preloaded into MPI programs.
pub fn agent() -> Result<PathBuf, Failure> {
    let agent = find("libpmmpi_agent.so")?;
    // ld.so(8): LD_PRELOAD is a list, separated by spaces or colons.
    if agent.to_string_lossy().contains([':', ' ']) {
        let agent = agent.display();
        return Err(Failure::own(format_args!(
            "{agent}: a path with a space or a colon cannot be preloaded"
        )));
    }
    Ok(agent)
}

/// The MPI program that measures plain programs, for one MPI family.
pub fn runner(family: Family) -> Result<PathBuf, Failure> {
    let name = family.name();
    find(&format!("pmmpi-runner-{name}")).map_err(|failure| {
        Failure::own(format_args!(
            "{failure}\n       This job was started by {name}, for which no runner was built: \
             install its compiler wrapper and run `make build` again"
        ))
    })
}

/// The program that reads a node's topology.
pub fn topology() -> Result<PathBuf, Failure> {
    find("pmmpi-topology")
}

/// Becomes `pmmpi-report COMMAND ARGS...`.
pub fn exec_report<T>(command: &str, args: &[OsString]) -> Result<T, Failure> {
    let report = own_folder().map(|folder| folder.join("pmmpi-report")).filter(|path| path.exists());
    let report = report.unwrap_or_else(|| PathBuf::from("pmmpi-report"));
    let error = std::process::Command::new(&report).arg(command).args(args).exec();
    let code = Failure::not_started(error.raw_os_error().unwrap_or(libc::ENOENT));
    Err(Failure { code, message: format!("{}: {error}", report.display()) })
}

/// Becomes `program` with this process's environment and `variable` in it.
pub fn exec(program: &Path, variable: (&str, &str)) -> Result<Infallible, Failure> {
    let error = std::process::Command::new(program).env(variable.0, variable.1).exec();
    Err(Failure::own(format_args!("{}: {error}", program.display())))
}

fn find(name: &str) -> Result<PathBuf, Failure> {
    let folders = folders();
    let path = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    path.ok_or_else(|| {
        let looked: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        Failure::own(format_args!(
            "{name} was not found in {} (set {LIBDIR_VARIABLE} to its folder)",
            looked.join(" or ")
        ))
    })
}

fn folders() -> Vec<PathBuf> {
    if let Some(folder) = std::env::var_os(LIBDIR_VARIABLE) {
        return vec![folder.into()];
    }
    let Some(own) = own_folder() else { return Vec::new() };
    let installed = own.parent().map(|prefix| prefix.join("lib/pmmpi"));
    installed.into_iter().chain([own]).collect()
}

fn own_folder() -> Option<PathBuf> {
    std::env::current_exe().ok()?.parent().map(Path::to_owned)
}
