//! The programs in tests/programs, compiled when they are wanted.

use crate::{Mpi, tool};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// An MPI program, compiled for one MPI (with -DWITH_MPI).
pub fn mpi(mpi: Mpi, name: &str) -> PathBuf {
    compile(&format!("mpicc.{}", mpi.name()), &["-DWITH_MPI"], name, mpi.name())
}

/// A plain program.
pub fn plain(name: &str) -> PathBuf {
    compile("cc", &[], name, "plain")
}

/// A program that needs MPI only through a library that it needs.
pub fn through_library(mpi: Mpi) -> PathBuf {
    let compiler = format!("mpicc.{}", mpi.name());
    let library = compile(&compiler, &["-DWITH_MPI", "-shared", "-fPIC"], "library", mpi.name());
    let folder = library.parent().expect("a folder").to_owned();
    let flags =
        [format!("-Wl,-rpath,{}", "$ORIGIN"), "-Wl,--no-as-needed".to_owned(), library.display().to_string()];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let program = compile("cc", &flags, "through_library", mpi.name());
    assert_eq!(program.parent(), Some(folder.as_path()));
    program
}

/// HPC Challenge, HPL in it: Debian's own for Open MPI, the same built by tests/rig/hpcc-mpich.sh for MPICH.
pub fn hpcc(mpi: Mpi) -> PathBuf {
    let program = match mpi {
        Mpi::OpenMpi => PathBuf::from("/usr/bin/hpcc"),
        Mpi::Mpich => tool::target().join("programs/hpcc-mpich"),
    };
    assert!(program.exists(), "{} is missing: `make test` provides it", program.display());
    program
}

/// Its input for a problem of order `order` on a grid of 1 x `ranks`.
pub fn hpcc_input(order: usize, ranks: usize) -> String {
    let example = fs::read_to_string("/usr/share/doc/hpcc/examples/_hpccinf.txt").expect("Debian's example");
    let line = |(number, line): (usize, &str)| match number {
        5 => format!("{order} Ns\n"),
        10 => "1 Ps\n".to_owned(),
        11 => format!("{ranks} Qs\n"),
        _ => format!("{line}\n"),
    };
    example.lines().enumerate().map(line).collect()
}

fn compile(compiler: &str, flags: &[&str], name: &str, kind: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(format!("{name}.c"));
    let folder = tool::target().join("programs").join(kind);
    let program =
        folder.join(if flags.contains(&"-shared") { format!("lib{name}.so") } else { name.to_owned() });
    let modified = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    if modified(&program).is_some_and(|built| Some(built) > modified(&source)) {
        return program;
    }
    fs::create_dir_all(&folder).expect("a folder for programs");
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // Two tests may want the same program: each compiles its own and the last one stays.
    let temporary = folder.join(format!(".{name}-{}-{number}", std::process::id()));
    let mut command = Command::new(compiler);
    command.args(["-O1", "-Wall", "-o"]).arg(&temporary).arg(&source).args(flags);
    tool::run(&mut command).success();
    fs::rename(&temporary, &program).expect("a program");
    program
}
