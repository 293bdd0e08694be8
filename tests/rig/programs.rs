//! The programs in tests/programs, compiled on demand.

use crate::{Mpi, tool};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The time from the end of the last truth.RANK to the begin of the first (ns of CLOCK_REALTIME), as
/// tests/programs/truth.c and abi.c write them.
pub fn truth_ns(folder: &Path, ranks: usize) -> i64 {
    let read = |rank: usize| {
        let text = fs::read_to_string(folder.join(format!("truth.{rank}"))).expect("a rank's truth");
        let times: Vec<i64> = text.split_whitespace().map(|word| word.parse().expect("ns")).collect();
        (times[0], times[1])
    };
    let times: Vec<_> = (0..ranks).map(read).collect();
    let (begins, ends) = (times.iter().map(|t| t.0), times.iter().map(|t| t.1));
    ends.max().expect("ranks") - begins.min().expect("ranks")
}

/// An MPI program, compiled for one MPI (with -DWITH_MPI).
pub fn mpi(mpi: Mpi, name: &str) -> PathBuf {
    compile(&format!("mpicc.{}", mpi.name()), &["-DWITH_MPI"], name, mpi.name())
}

/// A program that uses pmmpi.h. `flags` are its flags for the linker, and `kind` is a name for them.
pub fn with_regions(mpi: Mpi, name: &str, flags: &[&str], kind: &str) -> PathBuf {
    let include =
        format!("-I{}", Path::new(env!("CARGO_MANIFEST_DIR")).join("../launcher/agent/include").display());
    let compiler = if name.ends_with(".f90") { "mpifort" } else { "mpicc" };
    let place = tool::target().join("programs").join(format!("{kind}-{}", mpi.name()));
    fs::create_dir_all(&place).expect("a folder for programs");
    let modules = format!("-J{}", place.display());
    let mut all = vec![include.as_str()];
    all.extend(flags);
    all.extend(name.ends_with(".f90").then_some(modules.as_str()));
    compile(&format!("{compiler}.{}", mpi.name()), &all, name, &format!("{kind}-{}", mpi.name()))
}

/// A program in Fortran.
pub fn fortran(mpi: Mpi, name: &str) -> PathBuf {
    compile(&format!("mpifort.{}", mpi.name()), &[], &format!("{name}.f90"), mpi.name())
}

/// A program in C++.
pub fn cplusplus(mpi: Mpi, name: &str) -> PathBuf {
    compile(&format!("mpicxx.{}", mpi.name()), &[], &format!("{name}.cc"), mpi.name())
}

/// A program in Python, with Debian's mpi4py for Open MPI, or that of tests/rig/mpi4py.sh for MPICH.
pub fn mpi4py(mpi: Mpi, name: &str) -> Launchable {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(format!("{name}.py"));
    let mut launchable = Launchable::of_words(["/usr/bin/python3", &program.display().to_string()]);
    if mpi == Mpi::Mpich {
        let place = tool::target().join("programs/mpi4py");
        assert!(place.exists(), "{} is missing: `make test` provides it", place.display());
        let below = |name: &str| place.join(name).display().to_string();
        launchable.environment = vec![
            ("PYTHONPATH".to_owned(), below("python")),
            ("LD_LIBRARY_PATH".to_owned(), below("lib")),
            ("MPI4PY_MPIABI".to_owned(), "mpich".to_owned()),
        ];
    }
    launchable
}

/// A script in a folder of the test.
pub fn script(folder: &Path, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("script");
    fs::write(&path, text).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    path
}

/// A program with its arguments and its environment.
pub struct Launchable {
    pub argv: Vec<String>,
    pub environment: Vec<(String, String)>,
}

impl Launchable {
    pub fn of(program: PathBuf) -> Self {
        Self::of_words([program.to_str().expect("UTF-8")])
    }

    pub fn of_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        Self { argv: words.into_iter().map(str::to_owned).collect(), environment: Vec::new() }
    }
}

/// A plain program.
pub fn plain(name: &str) -> PathBuf {
    compile("cc", &[], name, "plain")
}

/// A library for LD_PRELOAD, compiled for one MPI. The extension decides between C and C++.
pub fn preloaded(mpi: Mpi, file: &str) -> String {
    let compiler = if file.ends_with(".cc") { "mpicxx" } else { "mpicc" };
    let flags = ["-shared", "-fPIC", "-Wl,--no-as-needed"];
    compile(&format!("{compiler}.{}", mpi.name()), &flags, file, mpi.name()).display().to_string()
}

/// A program for musl, compiled with Debian's musl-gcc.
pub fn for_musl() -> PathBuf {
    compile("musl-gcc", &[], "musl", "musl")
}

/// The same program with an MPI library of its own.
pub fn mpi_for_musl() -> PathBuf {
    let flags = ["-shared", "-fPIC", "-Wl,-soname,libmpi.so.12"];
    let library = compile("musl-gcc", &flags, "musl_mpi", "musl-mpi").display().to_string();
    compile("musl-gcc", &["-DWITH_MPI", &library, "-Wl,-rpath,$ORIGIN"], "musl", "musl-mpi")
}

/// A statically linked program.
pub fn statically_linked(name: &str) -> PathBuf {
    compile("cc", &["-static"], name, "static")
}

/// A program that needs MPI only through a library.
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

/// A program whose MPI has the name "Derived MPI".
pub fn with_derived_mpi(mpi: Mpi) -> PathBuf {
    let (compiler, kind) = (format!("mpicc.{}", mpi.name()), format!("derived-{}", mpi.name()));
    // It calls no function of its base library, but must still link it.
    let flags = ["-shared", "-fPIC", "-Wl,--no-as-needed"];
    let library = compile(&compiler, &flags, "derived", &kind).display().to_string();
    compile(&compiler, &["-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed", &library], "says", &kind)
}

/// A program of the standard ABI with tests/programs/mpi_abi.c beside it, on top of `mpi`. Only that library calls
/// the library of `mpi`.
pub fn standard_abi(mpi: Mpi) -> PathBuf {
    compile("cc", &[&standard_abi_library(mpi), "-Wl,-rpath,$ORIGIN"], "abi", mpi.name())
}

/// The same as a module for another program.
pub fn standard_abi_module(mpi: Mpi) -> Launchable {
    let library = standard_abi_library(mpi);
    let flags = ["-shared", "-fPIC", "-Dmain=entry", "-Wl,-soname,module.so", &library, "-Wl,-rpath,$ORIGIN"];
    let module = compile("cc", &flags, "abi", mpi.name());
    let program = plain("opens_module");
    Launchable::of_words([&program, &module].map(|path| path.to_str().expect("UTF-8")))
}

fn standard_abi_library(mpi: Mpi) -> String {
    let compiler = format!("mpicc.{}", mpi.name());
    // The compiler wrapper adds its own -lmpi after these flags.
    let flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libmpi_abi.so.1", "-Wl,--as-needed"];
    compile(&compiler, &flags, "mpi_abi", mpi.name()).display().to_string()
}

/// HPC Challenge, which includes HPL: Debian's own for Open MPI, and the result of tests/rig/hpcc-mpich.sh for MPICH.
pub fn hpcc(mpi: Mpi) -> PathBuf {
    let program = match mpi {
        Mpi::OpenMpi => PathBuf::from("/usr/bin/hpcc"),
        Mpi::Mpich => tool::target().join("programs/hpcc-mpich"),
    };
    assert!(program.exists(), "{} is missing: `make test` provides it", program.display());
    program
}

/// The input for a problem of order `order` on a grid of 1 x `ranks`.
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

pub(crate) fn compile(compiler: &str, flags: &[&str], name: &str, kind: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let file = if name.contains('.') { name.to_owned() } else { format!("{name}.c") };
    let name = name.split('.').next().unwrap_or(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(file);
    let folder = tool::target().join("programs").join(kind);
    let soname = flags.iter().find_map(|flag| flag.strip_prefix("-Wl,-soname,"));
    let program = folder.join(match soname {
        Some(soname) => soname.to_owned(),
        None if flags.contains(&"-shared") => format!("lib{name}.so"),
        None => name.to_owned(),
    });
    let modified = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    let changed = modified(&source).max(modified(&source.with_file_name("mpi_abi.h")));
    if modified(&program).is_some_and(|built| Some(built) > changed) {
        return program;
    }
    fs::create_dir_all(&folder).expect("a folder for programs");
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // Two tests may compile the same program at the same time: the last result stays.
    let temporary = folder.join(format!(".{name}-{}-{number}", std::process::id()));
    let mut command = Command::new(compiler);
    command.args(["-O1", "-o"]).arg(&temporary).arg(&source).args(flags);
    tool::run(&mut command).success();
    fs::rename(&temporary, &program).expect("a program");
    program
}
