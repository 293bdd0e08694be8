//! Finds the program to start, as execvp(3) does.

use pmmpi_workload::Failure;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where execvp looks if PATH is not set (confstr(_CS_PATH)).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file of program `name`. The error has exit status 127 if there is no such file, 126 if it is not executable.
pub fn find(name: &OsStr) -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(DEFAULT_PATH));
    find_in(name, &path)
}

/// Finds a program as the launcher of the rank does. If PATH has no such program, srun and Open MPI's mpirun look in
/// the current folder (Slurm: `_build_path` in src/slurmd/slurmstepd/task.c; Open MPI: `opal_path_findv`).
pub fn find_as(launcher: Option<&str>, name: &OsStr) -> Result<PathBuf, Failure> {
    find(name).or_else(|failure| {
        let here = Path::new(".").join(name);
        let looks_here = launcher.is_some_and(|launcher| launcher == "srun" || launcher.contains("Open MPI"));
        let is_bare = !name.is_empty() && !name.as_bytes().contains(&b'/');
        if looks_here && is_bare && check(&here).is_ok() { Ok(here) } else { Err(failure) }
    })
}

fn find_in(name: &OsStr, path: &OsStr) -> Result<PathBuf, Failure> {
    if name.as_bytes().contains(&b'/') {
        return match check(Path::new(name)) {
            Ok(()) => Ok(PathBuf::from(name)),
            Err(errno) => Err(failure(name, errno)),
        };
    }
    let mut errno = libc::ENOENT;
    if name.is_empty() {
        return Err(failure(name, errno));
    }
    for folder in std::env::split_paths(path) {
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let candidate = folder.join(name);
        match check(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(libc::EACCES) => errno = libc::EACCES, // a later folder may have an executable one
            _ => {}
        }
    }
    Err(failure(name, errno))
}

/// The errno of an exec of this file, judged by its kind and mode only.
fn check(path: &Path) -> Result<(), i32> {
    let metadata = std::fs::metadata(path).map_err(|e| e.raw_os_error().unwrap_or(libc::ENOENT))?;
    let executable = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
    if executable { Ok(()) } else { Err(libc::EACCES) }
}

/// The failure for program `name` that cannot start.
pub fn failure(name: &OsStr, errno: i32) -> Failure {
    let why = match errno {
        libc::ENOENT => "not found".to_owned(),
        libc::EACCES => "not executable".to_owned(),
        _ => std::io::Error::from_raw_os_error(errno).to_string(),
    };
    Failure { code: Failure::not_started(errno), message: format!("{}: {why}", name.display()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let find = |name: &str, path: &str| find_in(OsStr::new(name), OsStr::new(path));
        assert_eq!(find("sh", "/nonexistent:/bin").unwrap(), Path::new("/bin/sh"));
        assert_eq!(find("/bin/sh", "").unwrap(), Path::new("/bin/sh"));
        assert_eq!(find("passwd", "/etc").unwrap_err().code, 126);
        assert_eq!(find("/etc", "").unwrap_err().code, 126);
        assert_eq!(find("sh", "/nonexistent").unwrap_err().code, 127);
        assert_eq!(find("", "/bin").unwrap_err().code, 127);
    }
}
