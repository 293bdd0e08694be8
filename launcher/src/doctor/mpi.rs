//! Which MPI libraries and launchers are here, and whether pmmpi has a runner for them.

use super::check::Check;
use super::command::CommandOutput;
use super::machine::Machine;
use crate::launch::{Launch, RunnerFamily};
use pmmpi::transport::mpi_family::is_mpi_library;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const LAUNCHERS: [&str; 6] =
    ["mpirun", "mpiexec", "mpiexec.hydra", "mpirun.openmpi", "mpirun.mpich", "mpiexec.mpich"];
const GET_MPI: &str = "module load openmpi   # or your site's module; Debian: apt install openmpi-bin";

/// A launcher and its MPI.
struct Found {
    path: PathBuf,
    /// Its short version text, or why it gives none.
    version: Result<String, String>,
    family: Option<RunnerFamily>,
}

/// The launchers in PATH; one with several names appears once.
fn found_launchers(machine: &dyn Machine) -> Vec<Found> {
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut found = Vec::new();
    for path in LAUNCHERS.iter().filter_map(|name| machine.program(name)) {
        let target = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        if !seen.contains(&target) {
            let said = machine.ask(&path, &["--version"], &[]).map_err(|silent| silent.to_string());
            let version = said.and_then(|said| version(&said));
            let family = version.as_ref().ok().and_then(|version| family(version));
            found.push(Found { path, version, family });
            seen.push(target);
        }
    }
    found
}

/// "Open MPI 4.1.4", "MPICH 4.0.2", or else the first line of the output.
fn version(said: &CommandOutput) -> Result<String, String> {
    let text = said.text();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return Err("no output".to_owned()) };
    if !said.success {
        return Err(said.complaint());
    }
    if first.contains("Open MPI") {
        let number = first.rsplit(' ').next().unwrap_or_default();
        return Ok(format!("Open MPI {number}"));
    }
    if first.starts_with("HYDRA") {
        let number = lines.find_map(|line| line.strip_prefix("Version:")).map_or("", str::trim);
        return Ok(format!("MPICH {number}"));
    }
    Ok(first.chars().take(80).collect())
}

fn family(version: &str) -> Option<RunnerFamily> {
    let mpich = ["MPICH", "Intel(R) MPI", "MVAPICH"];
    match version {
        _ if version.starts_with("Open MPI") => Some(RunnerFamily::OpenMpi),
        _ if mpich.iter().any(|name| version.starts_with(name)) => Some(RunnerFamily::Mpich),
        _ => None,
    }
}

/// The launchers that start MPI jobs here.
pub fn launchers(machine: &dyn Machine) -> Check {
    const NAME: &str = "mpi";
    let found = found_launchers(machine);
    if let Some((launcher, why)) = found.iter().find_map(|f| Some((&f.path, f.version.as_ref().err()?))) {
        let launcher = launcher.display();
        return Check::limits(
            NAME,
            format!("{launcher} --version: {why}"),
            "this launcher may be unable to start jobs",
            format!("{launcher} --version   # should print its name and version"),
        );
    }
    if found.is_empty() && machine.program("srun").is_none() {
        let meaning = "pmmpi also knows other launchers, such as flux run, jsrun and aprun. Without any launcher, pmmpi can \
             measure only programs that need no launcher";
        return Check::limits(NAME, "no mpirun, mpiexec or srun in PATH", meaning, GET_MPI);
    }
    let one = |found: &Found| {
        let version = found.version.as_deref().unwrap_or_default();
        format!("{version} ({})", found.path.display())
    };
    let mut all: Vec<String> = found.iter().map(one).collect();
    if all.is_empty() {
        all.push("srun, but no mpirun or mpiexec".to_owned());
    }
    let launcher = found.first().and_then(|found| found.path.file_name());
    let launcher = launcher.map_or_else(|| "srun".into(), OsStr::to_string_lossy);
    Check::ok(
        NAME,
        all.join(", "),
        format!("to measure an MPI program, put pmmpi directly in front of it: {launcher} -n 4 pmmpi ./prog"),
    )
}

/// Whether the compiler and the launcher belong to the same MPI.
pub fn compiler(machine: &dyn Machine) -> Check {
    const NAME: &str = "mpicc";
    let Some(mpicc) = machine.program("mpicc") else {
        return Check::ok(
            NAME,
            "no mpicc in PATH",
            "compile programs and pmmpi's runners on another machine",
        );
    };
    let compiler = compilers_version(machine, &mpicc);
    let launchers = found_launchers(machine);
    let first = launchers.iter().find(|found| found.family.is_some());
    let shown = compiler.as_deref().unwrap_or("unknown MPI");
    let found = format!("{shown} ({})", mpicc.display());
    match (compiler.as_deref().and_then(family), first) {
        (Some(compiled), Some(started)) if started.family != Some(compiled) => {
            let (launcher, theirs) = (started.path.display(), started.version.as_deref().unwrap_or_default());
            let fitting = launchers.iter().find(|found| found.family == Some(compiled));
            let fix = match fitting {
                Some(fitting) => {
                    format!("alias mpirun={}   # in a script, use this path", fitting.path.display())
                }
                None => "module load openmpi   # one module has both mpicc and mpirun; Debian: update-alternatives \
                     --config mpi"
                    .into(),
            };
            Check::limits(
                NAME,
                format!("{found}, but {launcher} belongs to {theirs}"),
                "if a program is compiled with one MPI and started with the mpirun of another, each process \
                 runs as an MPI job of its own with 1 rank",
                fix,
            )
        }
        _ => Check::ok(NAME, found, "you can compile programs and pmmpi's runners here"),
    }
}

/// "Open MPI 4.1.4" or "MPICH 4.0.2". Open MPI's wrapper has --showme:version; with -v, the wrappers of MPICH and its
/// derivatives print "mpicc for MPICH version 4.0.2".
fn compilers_version(machine: &dyn Machine, mpicc: &Path) -> Option<String> {
    let said =
        |argument: &str| machine.ask(mpicc, &[argument], &[]).map(|said| said.text()).unwrap_or_default();
    let (open_mpi, others) = (said("--showme:version"), said("-v"));
    let words = |text: &str| text.split(" (").next().unwrap_or_default().trim().to_owned();
    let open_mpi =
        open_mpi.lines().find_map(|line| line.split_once(": Open MPI ")).map(|(_, rest)| words(rest));
    let others = || {
        let line = others.lines().find_map(|line| line.split_once(" for ").map(|(_, rest)| rest));
        line.map(|line| line.replacen(" version ", " ", 1)).filter(|line| family(line).is_some())
    };
    open_mpi.map(|number| format!("Open MPI {number}")).or_else(others)
}

/// Files of MPI libraries that the loader finds; most programs need one of these.
fn found_libraries(machine: &dyn Machine) -> Vec<PathBuf> {
    let ldconfig = machine.program("ldconfig").unwrap_or_else(|| "/sbin/ldconfig".into());
    let cache = machine.ask(&ldconfig, &["-p"], &[]).map(|said| said.text()).unwrap_or_default();
    let known = cache.lines().filter_map(|line| Some(PathBuf::from(line.split_once(" => ")?.1.trim())));
    let folders = machine.variable("LD_LIBRARY_PATH").unwrap_or_default();
    let in_folder = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut libraries: Vec<PathBuf> =
        std::env::split_paths(&folders).flat_map(in_folder).chain(known).collect();
    libraries.retain(|path| path.file_name().and_then(OsStr::to_str).is_some_and(is_the_c_library));
    libraries.sort();
    libraries.dedup();
    libraries
}

/// True for libmpi.so.40, libmpich.so.12 and libmpi_abi.so.1. False for the libraries of other languages and for names
/// without a number, which only compilers use.
fn is_the_c_library(file_name: &str) -> bool {
    let numbered = file_name.split_once(".so.");
    is_mpi_library(file_name)
        && numbered.is_some_and(|(stem, number)| {
            ["libmpi", "libmpich", "libmpi_abi", "libmpi_cray"].contains(&stem) && !number.contains('.')
        })
}

/// The MPI libraries that programs find.
pub fn libraries(machine: &dyn Machine) -> Check {
    const NAME: &str = "libmpi";
    let found = found_libraries(machine);
    if found.is_empty() {
        return Check::limits(
            NAME,
            "the loader knows no MPI library",
            "a dynamically linked MPI program starts only if its file names the folder of its MPI library \
             (rpath)",
            GET_MPI,
        );
    }
    // The name of the file that the link points to contains the version.
    let version = |path: &Path| {
        let file = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let (name, file) = (path.display().to_string(), file.file_name().unwrap_or_default().to_owned());
        let number = file.to_string_lossy().split_once(".so.").map(|(_, number)| number.to_owned());
        format!("{name} ({})", number.unwrap_or_else(|| "no version in the file name".into()))
    };
    let all: Vec<String> = found.iter().map(|path| version(path)).collect();
    Check::ok(NAME, all.join(", "), "MPI programs find their MPI library")
}

/// The MPI families whose libraries or launchers are here.
fn families(machine: &dyn Machine) -> Vec<RunnerFamily> {
    let libraries = found_libraries(machine);
    let is_named = |path: &PathBuf, names: &[&str]| {
        path.file_name().and_then(OsStr::to_str).is_some_and(|file| names.contains(&file))
    };
    let launchers: Vec<RunnerFamily> =
        found_launchers(machine).iter().filter_map(|found| found.family).collect();
    // The sonames of Open MPI since 2.0 and of the MPICH ABI Compatibility Initiative.
    let [open_mpi, mpich] = [&["libmpi.so.40"][..], &["libmpich.so.12", "libmpi.so.12"][..]]
        .map(|names| libraries.iter().any(|path| is_named(path, names)));
    let is_here = |family: &RunnerFamily| {
        launchers.contains(family)
            || match family {
                RunnerFamily::OpenMpi => open_mpi,
                RunnerFamily::Mpich => mpich,
            }
    };
    [RunnerFamily::OpenMpi, RunnerFamily::Mpich].into_iter().filter(is_here).collect()
}

/// The runners, which measure plain programs under each MPI's launcher.
pub fn runners(machine: &dyn Machine) -> Check {
    const NAME: &str = "runners";
    let families = families(machine);
    let mut found = Vec::new();
    // A broken runner counts more than a missing one.
    let mut lacks = None;
    for family in [RunnerFamily::OpenMpi, RunnerFamily::Mpich] {
        let (name, is_here) = (family.name(), families.contains(&family));
        let Some(runner) = machine.library(&format!("pmmpi-runner-{name}")) else {
            if is_here {
                let package = if family == RunnerFamily::OpenMpi { "libopenmpi-dev" } else { "libmpich-dev" };
                let lack = Check::limits(
                    NAME,
                    format!("no runner for {name}, although {name} is installed here"),
                    format!(
                        "under the mpirun of {name}, pmmpi can measure MPI programs, but it cannot measure \
                         plain programs on all ranks together, and `pmmpi screen` does not start"
                    ),
                    format!(
                        "apt install {package} && make runner MPICC=mpicc.{name}   # in pmmpi's sources, with \
                         the PREFIX of make install"
                    ),
                );
                lacks.get_or_insert(lack);
            }
            continue;
        };
        // ld.so(8): the loader lists the libraries and does not start the program.
        let said = machine.ask(&runner, &[], &[("LD_TRACE_LOADED_OBJECTS", OsStr::new("1"))]);
        let missing = match said {
            Ok(said) => missing_library(&said),
            Err(silent) => Some(silent.to_string()),
        };
        match missing {
            None => found.push(name.to_owned()),
            Some(missing) if is_here => {
                return Check::broken(
                    NAME,
                    format!("{}: {missing}", runner.display()),
                    format!("under the mpirun of {name}, plain programs and `pmmpi screen` do not start"),
                    "export LD_LIBRARY_PATH=FOLDER_OF_LIBMPI   # or: make runner MPICC=/path/to/mpicc, \
                     in pmmpi's sources",
                );
            }
            Some(_) => found.push(format!("{name} (this MPI is not installed here)")),
        }
    }
    if let Some(lack) = lacks {
        return lack;
    }
    if found.is_empty() {
        let meaning = "this machine has no MPI, so pmmpi needs no runner: a runner is for plain programs and \
                       `pmmpi screen` under an MPI launcher";
        return Check::ok(NAME, "no runner, and no MPI", meaning);
    }
    Check::ok(NAME, found.join(", "), "pmmpi measures plain programs under mpirun, in rounds")
}

/// The first missing library, or the error of the loader.
fn missing_library(said: &CommandOutput) -> Option<String> {
    let text = said.text();
    let missing = text.lines().find(|line| line.contains("not found")).map(|line| line.trim().to_owned());
    missing.or_else(|| (!said.success).then(|| said.complaint()))
}

/// The launcher of this process: `mpirun -n 1 pmmpi doctor` shows how pmmpi sees that launch.
pub fn launch(machine: &dyn Machine) -> Check {
    const NAME: &str = "launch";
    let launch = Launch::from(|name| machine.variable(name));
    match (launch.launcher, launch.family) {
        (None, _) => Check::ok(
            NAME,
            "started by no launcher",
            "a program that starts without a launcher is a job of one rank",
        ),
        (Some(launcher), Some(family)) => Check::ok(
            NAME,
            format!("started by {launcher}, with the process manager of {}", family.name()),
            format!("pmmpi measures plain programs with its own runner for {}", family.name()),
        ),
        (Some(launcher), None) if launcher != "srun" => Check::limits(
            NAME,
            format!("started by {launcher}, without a process manager that pmmpi knows"),
            "the ranks of a plain program have no common barrier, so pmmpi measures each rank alone; pmmpi \
             measures MPI programs as usual",
            "mpirun -n N pmmpi PROGRAM",
        ),
        (Some(launcher), None) => Check::limits(
            NAME,
            format!("started by {launcher}, without an MPI plugin"),
            "each process of an MPI program would run as an MPI job of its own with 1 rank, and the ranks of \
             a plain program have no common barrier",
            "srun --mpi=pmix pmmpi PROGRAM   # Open MPI; --mpi=pmi2 for MPICH",
        ),
    }
}

/// The MPI plugins of srun.
pub fn slurm(machine: &dyn Machine) -> Check {
    const NAME: &str = "slurm";
    let Some(srun) = machine.program("srun") else {
        return Check::ok(NAME, "no srun in PATH", "start jobs with mpirun");
    };
    let said = match machine.ask(&srun, &["--mpi=list"], &[]) {
        Ok(said) if said.success => said.text(),
        other => {
            let why = other.map_or_else(|silent| silent.to_string(), |said| said.complaint());
            return Check::limits(
                NAME,
                format!("srun --mpi=list: {why}"),
                "srun cannot start jobs here at the moment",
                "scontrol ping   # if slurm.conf is not in /etc/slurm: export SLURM_CONF=/path/of/slurm.conf",
            );
        }
    };
    let plugins = said.split(|c: char| c.is_whitespace() || c == ',' || c == ':');
    let mut plugins: Vec<&str> =
        plugins.filter(|word| word.starts_with("pmi") || *word == "cray_shasta").collect();
    plugins.sort_unstable();
    plugins.dedup();
    let has = |kind: &str| plugins.iter().any(|plugin| plugin.starts_with(kind));
    // The words of the list's own text, such as "specific pmix plugin versions available", repeat some names.
    let found = if plugins.is_empty() { "srun has no MPI plugin".into() } else { plugins.join(", ") };
    if has("pmix") && has("pmi2") {
        return Check::ok(NAME, found, "use srun --mpi=pmix for Open MPI and srun --mpi=pmi2 for MPICH");
    }
    if !plugins.is_empty() {
        let (here, others) = match () {
            () if has("pmix") => ("pmix for Open MPI", "start programs of MPICH with its mpirun"),
            () if has("pmi2") => ("pmi2 for MPICH", "start programs of Open MPI with its mpirun"),
            () => ("cray_shasta for Cray MPICH", "start programs of another MPI with the mpirun of that MPI"),
        };
        return Check::ok(NAME, found, format!("use srun --mpi={here}; {others}"));
    }
    Check::limits(
        NAME,
        found,
        "with srun, each process of an MPI program runs as an MPI job of its own with 1 rank: use mpirun inside an \
         allocation",
        "apt install slurm-wlm-basic-plugins   # or build Slurm --with-pmix; then: srun --mpi=list",
    )
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::super::command::Silent;
    use super::super::machine::tests::Fake;
    use super::*;
    use std::time::Duration;

    const OPEN_MPI: &str =
        "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n";
    const HYDRA: &str = "HYDRA build details:\n    Version:                                 4.0.2\n";
    const CACHE: &str = "2 libs found in cache\n\
        \tlibmpi_cxx.so.40 (libc6,x86-64) => /usr/lib/libmpi_cxx.so.40\n\
        \tlibmpi.so.40 (libc6,x86-64) => /usr/lib/libmpi.so.40\n\
        \tlibmpi.so (libc6,x86-64) => /usr/lib/libmpi.so\n\
        \tlibc.so.6 (libc6,x86-64) => /usr/lib/libc.so.6\n";

    fn failing(complaint: &str) -> Result<CommandOutput, Silent> {
        Ok(CommandOutput { stderr: complaint.into(), ..CommandOutput::default() })
    }

    #[test]
    fn launchers_are_known_by_what_they_say() {
        let both = Fake::new().program("mpirun", OPEN_MPI).program("mpiexec.hydra", HYDRA);
        let check = launchers(&both);
        assert_eq!(check.status, Status::Ok);
        assert!(check.found.starts_with("Open MPI 4.1.4 (/") && check.found.contains("MPICH 4.0.2 ("));
        let intel = "Intel(R) MPI Library for Linux* OS, Version 2021.10 Build 20230619";
        assert_eq!(family(intel), Some(RunnerFamily::Mpich));
        let alone = launchers(&Fake::new().program("srun", ""));
        assert_eq!((alone.status, &alone.found[..]), (Status::Ok, "srun, but no mpirun or mpiexec"));
    }

    #[test]
    fn one_mpi_compiles_and_starts() {
        const OPEN_MPICC: &str = "mpicc: Open MPI 4.1.4 (Language: C)\n";
        const MPICH_CC: &str = "mpicc for MPICH version 4.0.2\nUsing built-in specs.\n";
        let open_mpi = || Fake::new().program("mpirun", OPEN_MPI);
        let check = compiler(&open_mpi().program("mpicc", OPEN_MPICC));
        assert!(check.status == Status::Ok && check.found.starts_with("Open MPI 4.1.4 (/"), "{check:?}");
        let check = compiler(&open_mpi().program("mpicc", MPICH_CC));
        assert!(check.status == Status::Limits && check.found.starts_with("MPICH 4.0.2 (/"), "{check:?}");
        assert!(check.fix.unwrap().starts_with("module load"));
        let both = open_mpi().program("mpicc", MPICH_CC).program("mpiexec.hydra", HYDRA);
        assert!(compiler(&both).fix.unwrap().contains("bin/mpiexec.hydra "));
        assert_eq!(compiler(&open_mpi().program("mpicc", "gcc: error")).status, Status::Ok);
        assert_eq!(compiler(&Fake::new()).status, Status::Ok);
    }

    #[test]
    fn a_machine_without_mpi_measures_programs_alone() {
        let check = launchers(&Fake::new());
        assert!(check.status == Status::Limits && check.fix.unwrap().contains("module load"));
        assert_eq!(libraries(&Fake::new()).status, Status::Limits);
        assert_eq!(runners(&Fake::new()).status, Status::Ok);
    }

    #[test]
    fn a_launcher_that_does_not_answer_is_named() {
        let answers = [
            (Err(Silent::TooLong(Duration::from_secs(5))), "no answer in 5 s"),
            (failing("error while loading shared libraries: libx.so"), "libx.so"),
            (Ok(CommandOutput { success: true, ..CommandOutput::default() }), "no output"),
        ];
        for (answer, why) in answers {
            let check = launchers(&Fake::new().answering("bin/mpirun", answer));
            assert_eq!(check.status, Status::Limits);
            assert!(check.found.contains("bin/mpirun --version") && check.found.contains(why), "{check:?}");
        }
    }

    #[test]
    fn libraries_are_those_that_programs_name() {
        let check = libraries(&Fake::new().program("ldconfig", CACHE));
        assert_eq!((check.status, &check.found[..]), (Status::Ok, "/usr/lib/libmpi.so.40 (40)"));
        let fake = Fake::new().file("opt/lib/libmpich.so.12", "");
        let folder = fake.as_machine().root().join("opt/lib").display().to_string();
        assert!(
            libraries(&fake.variable("LD_LIBRARY_PATH", &folder)).found.contains("opt/lib/libmpich.so.12")
        );
    }

    #[test]
    fn a_runner_is_needed_for_each_mpi_that_is_here() {
        let check = runners(&Fake::new().program("mpirun", OPEN_MPI));
        assert_eq!(
            (check.status, &check.found[..]),
            (Status::Limits, "no runner for openmpi, although openmpi is installed here")
        );
        assert!(check.fix.unwrap().contains("libopenmpi-dev"));
        let check = runners(&Fake::new().program("mpirun", HYDRA));
        assert!(check.fix.unwrap().contains("libmpich-dev"));
        // The library is here, but its launcher is not.
        assert_eq!(runners(&Fake::new().program("ldconfig", CACHE)).status, Status::Limits);
    }

    #[test]
    fn a_runner_must_find_its_library() {
        const RUNNER: &str = "lib/pmmpi/pmmpi-runner-openmpi";
        let answer =
            |text: &str| Ok(CommandOutput { success: true, stdout: text.into(), ..CommandOutput::default() });
        let here = || Fake::new().program("mpirun", OPEN_MPI);
        let check =
            runners(&here().answering(RUNNER, answer("\tlibmpi.so.40 => /usr/lib/libmpi.so.40 (0x1)\n")));
        assert_eq!((check.status, &check.found[..]), (Status::Ok, "openmpi"));
        let not_found = || answer("\tlibmpi.so.40 => not found\n");
        let check = runners(&here().answering(RUNNER, not_found()));
        assert_eq!(check.status, Status::Broken);
        assert!(check.found.ends_with("pmmpi-runner-openmpi: libmpi.so.40 => not found"), "{}", check.found);
        assert!(check.fix.unwrap().contains("LD_LIBRARY_PATH"));
        assert_eq!(runners(&here().answering(RUNNER, failing("exec format error"))).status, Status::Broken);
        // The check names a broken runner, even if the runner of another MPI is missing.
        let both = Fake::new().program("ldconfig", CACHE).program("mpirun", HYDRA);
        let check = runners(&both.answering("lib/pmmpi/pmmpi-runner-mpich", not_found()));
        assert!(check.status == Status::Broken && check.found.contains("runner-mpich"), "{check:?}");
        // The runner of an MPI that is not here may lack its library.
        assert_eq!(runners(&Fake::new().answering(RUNNER, not_found())).status, Status::Ok);
    }

    #[test]
    fn a_launch_without_a_process_manager_is_told() {
        assert_eq!(launch(&Fake::new()).status, Status::Ok);
        let srun = || {
            let names = ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"];
            names.into_iter().fold(Fake::new(), |fake, name| fake.variable(name, "0"))
        };
        let check = launch(&srun());
        assert!(check.status == Status::Limits && check.fix.unwrap().contains("--mpi=pmix"));
        assert_eq!(launch(&srun().variable("PMIX_RANK", "0")).status, Status::Ok);
    }

    #[test]
    fn slurm_says_what_it_can_start() {
        let list = "MPI plugin types are...\n\tnone\n\tpmi2\n\tcray_shasta\n\tpmix\n\
                    specific pmix plugin versions available: pmix_v4\n";
        let check = slurm(&Fake::new().program("srun", list));
        assert_eq!((check.status, &check.found[..]), (Status::Ok, "cray_shasta, pmi2, pmix, pmix_v4"));
        assert_eq!(slurm(&Fake::new()).status, Status::Ok);
        let one = slurm(&Fake::new().program("srun", "MPI plugin types are...\n\tnone\n\tpmi2\n"));
        assert!(
            one.status == Status::Ok && one.meaning.ends_with("programs of Open MPI with its mpirun"),
            "{one:?}"
        );
        let cray = slurm(&Fake::new().program("srun", "MPI plugin types are...\n\tnone\n\tcray_shasta\n"));
        assert!(cray.meaning.starts_with("use srun --mpi=cray_shasta for Cray MPICH;"), "{cray:?}");
        let none = slurm(&Fake::new().program("srun", "MPI plugin types are...\n\tnone\n"));
        assert_eq!((none.status, &none.found[..]), (Status::Limits, "srun has no MPI plugin"));
        let answers = [
            (Err(Silent::TooLong(Duration::from_secs(5))), "no answer in 5 s"),
            (failing("srun: fatal: Could not establish a configuration source"), "configuration source"),
        ];
        for (answer, why) in answers {
            let check = slurm(&Fake::new().answering("bin/srun", answer));
            assert!(check.status == Status::Limits && check.found.contains(why), "{check:?}");
            assert!(check.fix.unwrap().contains("scontrol ping"));
        }
    }
}
