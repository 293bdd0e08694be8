//! What is said before a measurement begins, by one rank: that it is not quite what was meant, and what would be.

use crate::launch;
use crate::measure::{Task, Way};
use crate::options::Mode;
use pmmpi_rounds::console::warn;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Gives every warning that `task` deserves.
pub fn give(task: &Task) {
    let own: Vec<OsString> = std::env::args_os().collect();
    let all = [unknown_launcher(task), measured_alone(task), wrong_order(task, &own)];
    all.into_iter().flatten().for_each(warn);
}

fn unknown_launcher(task: &Task) -> Option<String> {
    let variable = task.launch.unknown_by()?;
    Some(format!(
        "pmmpi does not know the launcher of this job, which sets {variable}: check that the result has all ranks. \
         Please report what `env | grep -E 'PMI|RANK'` prints under it"
    ))
}

/// Of a plain program, where several ranks were started.
fn measured_alone(task: &Task) -> Option<String> {
    let launcher = task.launch.launcher.filter(|_| task.way == Way::Alone && task.launch.size != Some(1))?;
    let ranks = task.launch.size.map_or("several ranks".to_owned(), |size| format!("{size} ranks"));
    let why = match task.launch.family {
        Some(_) => {
            "on each of them another program, such as a shell, started pmmpi: each rank is measured alone, which leaves \
             its one MPI_Init to an MPI program. To measure all ranks together, add --mode ranks"
        }
        None if launcher == "srun" => {
            "without an MPI process manager, so each is measured alone; add --mpi=pmix or --mpi=pmi2"
        }
        None => "in a way that lets no plain programs meet, so each is measured alone",
    };
    let and = if task.launch.family.is_some() { ", and " } else { " " };
    Some(format!("{launcher} started {ranks}{and}{why}"))
}

/// `pmmpi mpirun -n 2 ./prog`: the ranks are not measured.
fn wrong_order(task: &Task, own: &[OsString]) -> Option<String> {
    let argv = &task.settings.argv;
    let name = file_name(&argv[0]);
    let is_meant = task.settings.mode != Mode::Auto || argv.iter().any(|arg| file_name(arg) == "pmmpi");
    if is_meant || !launch::starts_ranks(&name) {
        return None;
    }
    let options = own.get(1..own.len().checked_sub(argv.len())?).unwrap_or_default();
    let options = options.iter().filter(|arg| *arg != "run" && *arg != "--");
    let pmmpi: Vec<&OsStr> =
        std::iter::once(OsStr::new("pmmpi")).chain(options.map(OsString::as_os_str)).collect();
    let right = match program_of(argv) {
        Some(at) => {
            let (launch, program) = argv.split_at(at);
            let words = launch.iter().map(OsString::as_os_str).chain(pmmpi);
            join(words.chain(program.iter().map(OsString::as_os_str)))
        }
        None => format!("{} ARGS... {} PROGRAM", argv[0].display(), join(pmmpi)),
    };
    Some(format!(
        "{name} starts the ranks of a job: what is measured is {name}, not its ranks. To measure them: {right}"
    ))
}

fn file_name(word: &OsStr) -> String {
    Path::new(word).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Where a launcher's own arguments end: at the first word that is no option and names a program.
fn program_of(argv: &[OsString]) -> Option<usize> {
    let is_program =
        |word: &OsString| !word.as_encoded_bytes().starts_with(b"-") && crate::program::find(word).is_ok();
    (1..argv.len()).find(|at| is_program(&argv[*at]))
}

fn join<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> String {
    let words: Vec<_> = words.into_iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_launch_is_found_behind_its_options() {
        let at = |words: &str| program_of(&words.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(at("mpirun -n 2 --bind-to none /bin/true"), Some(5));
        assert_eq!(at("srun -N2 --mpi=pmix sh -c true"), Some(3));
        assert_eq!(at("mpirun -n 2 ./absent"), None);
    }
}
