//! Warnings before a measurement starts, from one rank. They say that the measurement may not be what the user wants,
//! and how to change it.

use super::task::{Task, Way};
use crate::cli::options::ModeArg;
use crate::launch;
use pmmpi::counters::counters_per_pmu::fit_at_once;
use pmmpi::counters::open_counters::Scope;
use pmmpi::text::shell_line;
use pmmpi_workload::console::warn;
use std::ffi::{OsStr, OsString};

/// Prints all warnings that apply to `task`.
pub fn give(task: &Task) {
    let own: Vec<OsString> = std::env::args_os().collect();
    let all = [unknown_launcher(task), measured_alone(task), wrong_order(task, &own), too_many_groups(task)];
    all.into_iter().flatten().for_each(warn);
}

fn unknown_launcher(task: &Task) -> Option<String> {
    let variable = task.launch.unknown_by()?;
    Some(format!(
        "pmmpi does not know the launcher of this job (the launcher sets {variable}): check that the \
         result has all ranks. Please report the output of `env | grep -E 'PMI|RANK'` under this launcher"
    ))
}

/// For a plain program whose launcher started several ranks.
fn measured_alone(task: &Task) -> Option<String> {
    let launcher = task.launch.launcher.filter(|_| task.way == Way::Alone && task.launch.size != Some(1))?;
    let ranks = task.launch.size.map_or("several ranks".to_owned(), |size| format!("{size} ranks"));
    let why = match task.launch.family {
        Some(_) => {
            "a program such as a shell started pmmpi on each rank. Only one program of each rank can call \
             MPI_Init, and the shell may start an MPI program later. So pmmpi does not call MPI_Init, and \
             measures each rank alone. To measure all ranks together, add --mode ranks"
        }
        None if launcher == "srun" => {
            "without an MPI process manager, so pmmpi measures each rank alone. To measure all ranks \
             together, add --mpi=pmix or --mpi=pmi2 to srun"
        }
        None => "without a process manager that pmmpi knows, so pmmpi measures each rank alone",
    };
    let and = if task.launch.family.is_some() { ", and " } else { " " };
    Some(format!("{launcher} started {ranks}{and}{why}"))
}

/// Several groups of events need more counters than a core has.
fn too_many_groups(task: &Task) -> Option<String> {
    let selection = &task.settings.selection;
    let groups: Vec<&str> =
        selection.asked.iter().filter_map(|asked| asked.typed.strip_prefix("--group ")).collect();
    let of_threads = selection.sets.iter().filter(|set| set.scope == Scope::Task);
    let is_exact = groups.len() < 2 || fit_at_once(of_threads.flat_map(|set| &set.groups));
    (!is_exact).then(|| {
        format!(
            "the processor has too few counters for the events of the groups {} together: the Linux kernel \
             counts each event for only a part of the time, and pmmpi scales the counts. To make more \
             counts exact, measure one group per launch: pmmpi repeat --runs K --groups {} -- LAUNCHER ARGS... \
             pmmpi PROGRAM",
            groups.join(" and "),
            groups.join(",")
        )
    })
}

/// `pmmpi mpirun -n 2 ./prog` does not measure the ranks.
fn wrong_order(task: &Task, own: &[OsString]) -> Option<String> {
    let argv = &task.settings.argv;
    let is_meant =
        task.settings.mode != ModeArg::Auto || argv.iter().any(|arg| launch::file_name(arg) == "pmmpi");
    let at = launcher_in(argv).filter(|_| !is_meant)?;
    let words = launch::words_of_launcher(&argv[at..]);
    let name = join(argv[at..at + words].iter().map(OsString::as_os_str));
    let options = own.get(1..own.len().checked_sub(argv.len())?).unwrap_or_default();
    let options = options.iter().filter(|arg| *arg != "run" && *arg != "--");
    let pmmpi: Vec<&OsStr> =
        std::iter::once(OsStr::new("pmmpi")).chain(options.map(OsString::as_os_str)).collect();
    let right = match program_after(argv, at + words) {
        Some(at) => {
            let (launch, program) = argv.split_at(at);
            let words = launch.iter().map(OsString::as_os_str).chain(pmmpi);
            join(words.chain(program.iter().map(OsString::as_os_str)))
        }
        None => format!("{name} ARGS... {} PROGRAM", join(pmmpi)),
    };
    Some(format!(
        "{name} starts the ranks of a job: pmmpi measures {name}, not the ranks. To measure the ranks: \
         {right}"
    ))
}

/// The index of the launcher's name: 0, or after the arguments of env.
fn launcher_in(argv: &[OsString]) -> Option<usize> {
    let is_envs = |word: &OsString| {
        let word = word.as_encoded_bytes();
        word.starts_with(b"-") || word.contains(&b'=')
    };
    let at = match launch::file_name(&argv[0]).as_str() {
        "env" => (1..argv.len()).find(|at| !is_envs(&argv[*at]))?,
        _ => 0,
    };
    (launch::words_of_launcher(&argv[at..]) > 0).then_some(at)
}

/// The index at which the launcher's own arguments, which start at `from`, end: at the first word that is not an option
/// and names a program.
fn program_after(argv: &[OsString], from: usize) -> Option<usize> {
    let is_program =
        |word: &OsString| !word.as_encoded_bytes().starts_with(b"-") && crate::program::find(word).is_ok();
    (from..argv.len()).find(|at| is_program(&argv[*at]))
}

fn join<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> String {
    shell_line(words.into_iter().map(OsStr::to_string_lossy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_program_of_a_launch_is_found_behind_its_options() {
        let at = |line: &str| program_after(&words(line), 1);
        assert_eq!(at("mpirun -n 2 --bind-to none /bin/true"), Some(5));
        assert_eq!(at("srun -N2 --mpi=pmix sh -c true"), Some(3));
        assert_eq!(at("mpirun -n 2 ./absent"), None);
    }

    #[test]
    fn a_launcher_is_found_behind_env() {
        let at = |line: &str| launcher_in(&words(line));
        assert_eq!(
            [at("mpirun a"), at("env -i A=B mpirun a"), at("flux run a")],
            [Some(0), Some(3), Some(0)]
        );
        assert_eq!([at("env A=B hpl"), at("env"), at("hpl mpirun")], [None; 3]);
    }
}
