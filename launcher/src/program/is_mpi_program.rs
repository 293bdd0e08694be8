//! Is a program an MPI program? This module judges by its file.

use super::find::find;
use super::linked_libraries::{self, Binary};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What the program is, judged by its file; the texts give the reason.
pub enum Nature {
    Mpi(String),
    Plain(String),
    /// It may start an MPI program.
    Wrapper(String),
    /// A statically linked MPI program: it cannot load the agent.
    StaticMpi,
}

/// Programs that start or interpret another program.
const WRAPPERS: &[&str] = &[
    "env",
    "nice",
    "nohup",
    "timeout",
    "time",
    "stdbuf",
    "setarch",
    "ionice",
    "chrt",
    "taskset",
    "numactl",
    "hwloc-bind",
    "prlimit",
    "setsid",
    "chroot",
    "unshare",
    "sudo",
    "likwid-pin",
    "strace",
    "ltrace",
    "perf",
    "gdb",
    "valgrind",
    "nsys",
    "ncu",
    "tau_exec",
    "ch-run",
    "podman",
    "apptainer",
    "singularity",
    "sh",
    "bash",
    "dash",
    "ash",
    "ksh",
    "zsh",
    "csh",
    "tcsh",
    "fish",
    "busybox",
    "perl",
    "ruby",
    "julia",
    "R",
    "Rscript",
    "java",
];

/// Judges the file of `program`; for a script, the file of its interpreter.
pub fn nature(program: &Path) -> Nature {
    const DEEPEST_SCRIPT: u32 = 4; // as in the kernel (fs/exec.c, exec_binprm)
    let mut file = program.to_owned();
    let mut subject = "the program".to_owned();
    for _ in 0..DEEPEST_SCRIPT {
        match interpreter(&file) {
            Some(interpreter) => {
                subject = format!("the script's interpreter {}", interpreter.display());
                file = interpreter;
            }
            None => break,
        }
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let wrapper = if file == program { name.clone() } else { subject.clone() };
    match linked_libraries::inspect(&file) {
        Binary::Mpi { library, through: None } => Nature::Mpi(format!("{subject} needs {library}")),
        Binary::Mpi { library, through: Some(through) } => {
            Nature::Mpi(format!("{subject} needs {library} through {through}"))
        }
        Binary::Static(true) => Nature::StaticMpi,
        _ if is_wrapper(&name) => Nature::Wrapper(wrapper),
        Binary::Static(false) => Nature::Plain(format!("{subject} is statically linked, without MPI")),
        Binary::Dynamic => Nature::Plain(format!("{subject} needs no MPI library")),
        Binary::Other => Nature::Wrapper(format!("{wrapper} (not an ELF file)")),
    }
}

/// Some if the file contains the name MPI_Init: the program may open an MPI library itself and look the function up.
pub fn opens_mpi(program: &Path) -> Option<String> {
    const LOOKED_AT_BYTES: u64 = 64 << 20;
    let file = std::fs::File::open(program).ok()?.take(LOOKED_AT_BYTES);
    let named = holds(file, b"MPI_Init\0").ok()?;
    named.then(|| format!("{} (contains the name MPI_Init)", program.display()))
}

/// Reads in pieces: all ranks of a node do this at the same time, so none should hold the whole file in memory.
fn holds(mut file: impl Read, name: &[u8]) -> std::io::Result<bool> {
    const PIECE_BYTES: usize = 128 << 10;
    let mut piece = vec![0; PIECE_BYTES];
    let mut kept = 0; // bytes kept from the end of the last piece: the name may begin there
    loop {
        let read = file.read(&mut piece[kept..])?;
        let bytes = &piece[..kept + read];
        if memchr::memmem::find(bytes, name).is_some() {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        let from = bytes.len().saturating_sub(name.len() - 1);
        kept = bytes.len() - from;
        piece.copy_within(from..from + kept, 0);
    }
}

/// Why the agent did not see MPI_Init in `program`, judged by its file.
pub fn unseen(program: &Path) -> &'static str {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(program).map_or(0, |metadata| metadata.permissions().mode());
    match linked_libraries::inspect(program) {
        Binary::Static(_) => "the program is statically linked: link it dynamically",
        _ if linked_libraries::is_for_musl(program) => {
            "the program's C library is musl, but the agent works only in programs that use glibc"
        }
        _ if mode & 0o6000 != 0 => {
            "the program has the set-user-id or set-group-id bit, so the loader ignores LD_PRELOAD and \
             does not load the agent"
        }
        _ => {
            "perhaps the program uses only MPI sessions (MPI_Session_init), calls MPI through dlopen and dlsym, \
             or runs in a container with its own /proc"
        }
    }
}

/// Finds an MPI program among a program's arguments: the program probably starts it.
pub fn mpi_argument(arguments: &[OsString]) -> Option<String> {
    const LOOKED_AT: usize = 64;
    arguments.iter().take(LOOKED_AT).find_map(|argument| {
        let file = find(argument).ok()?;
        let is_mpi = matches!(linked_libraries::inspect(&file), Binary::Mpi { .. });
        is_mpi.then(|| format!("the program (its argument {} is an MPI program)", file.display()))
    })
}

fn is_wrapper(name: &str) -> bool {
    let python = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    let is_python = python.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    is_python || WRAPPERS.contains(&name)
}

/// The program that runs a script: the path after `#!`. After `#!/usr/bin/env`, the program that env finds.
fn interpreter(script: &Path) -> Option<PathBuf> {
    const LINE_BYTES: u64 = 256; // BINPRM_BUF_SIZE
    let mut line = Vec::new();
    std::fs::File::open(script).ok()?.take(LINE_BYTES).read_to_end(&mut line).ok()?;
    let line = line.split(|b| *b == b'\n').next()?.strip_prefix(b"#!")?;
    let mut words = line.split(|b| *b == b' ' || *b == b'\t' || *b == b'\r').filter(|word| !word.is_empty());
    let interpreter = Path::new(OsStr::from_bytes(words.next()?));
    if interpreter.file_name() != Some(OsStr::new("env")) {
        return Some(interpreter.to_owned());
    }
    let is_option = |word: &&[u8]| word.starts_with(b"-") || word.contains(&b'=');
    let name = words.find(|word| !is_option(word));
    name.map_or_else(|| Some(interpreter.to_owned()), |name| find(OsStr::from_bytes(name)).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_followed_to_their_interpreter() {
        let path = std::env::temp_dir().join(format!("test-script-{}", std::process::id()));
        let of = |text: &str| {
            std::fs::write(&path, text).unwrap();
            interpreter(&path)
        };
        assert_eq!(of("#! /bin/sh -e\n"), Some("/bin/sh".into()));
        assert_eq!(of("#!/usr/bin/env -S LANG=C sh\n").unwrap().file_name(), Some(OsStr::new("sh")));
        assert_eq!(of("echo"), None);
        assert_eq!(of(""), None);
        std::fs::remove_file(&path).unwrap();
    }

    /// Reads a few bytes at a time, so that the name crosses the end of a piece.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(to.len()).min(self.0.len());
            to[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn a_name_is_found_wherever_it_lies() {
        for at in (0..40).chain([131_060, 131_063, 131_072, 200_000]) {
            let mut bytes = vec![b'M'; 200_100];
            for pieces in [1, 3, 8, 1000, usize::MAX] {
                assert!(!holds(Slow(&bytes, pieces), b"MPI_Init\0").unwrap());
            }
            bytes[at..at + 9].copy_from_slice(b"MPI_Init\0");
            for pieces in [1, 3, 8, 1000, usize::MAX] {
                assert!(holds(Slow(&bytes, pieces), b"MPI_Init\0").unwrap(), "{at} {pieces}");
            }
        }
        assert!(!holds(Slow(b"", 1), b"MPI_Init\0").unwrap());
    }

    #[test]
    fn wrappers_are_known_by_name() {
        assert!(is_wrapper("python3.11") && is_wrapper("bash") && is_wrapper("numactl"));
        assert!(!is_wrapper("pythonic") && !is_wrapper("hpl"));
    }
}
