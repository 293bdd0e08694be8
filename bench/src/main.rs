//! Measures what pmmpi costs. Each figure and the figure that it is compared with come from the same run.
//!
//! Prints Markdown; `make bench` stores it in bench/RESULTS.md. Except in `probes`, the program alternates between the
//! compared ways. So a machine that becomes slower affects all of them.

mod bounds;
mod counters;
mod fleet;
mod host;
mod jobs;
mod paired;
mod peers;
mod probes;
mod process;
mod regions;
mod run_files;
mod scale;
mod screens;
mod start;
mod tables;
mod widths;
mod years;

use pmmpi::record::run_file::EXTENSION;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use tempfile::TempDir;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some(bounds::CHILD) => {
            println!("{}", bounds::measure());
            Ok(())
        }
        Some(fleet::CHILD) => fleet::child(&arguments[1..]),
        Some(screens::CHILD) => screens::child(&arguments[1..]),
        Some(run_files::CHILD) => run_files::write_large(arguments.get(1)),
        _ => run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("pmmpi-bench: {e}");
            ExitCode::FAILURE
        }
    }
}

type Part = fn(&Folder) -> Result<String, Box<dyn Error>>;

/// In the order of bench/RESULTS.md. Entries with the same name form one part.
const PARTS: [(&str, Part); 14] = [
    ("start", start::report),
    ("jobs", jobs::oversubscribed),
    ("jobs", jobs::hpcc),
    ("counters", |_| counters::report()),
    ("regions", regions::report),
    ("regions", probes::report),
    ("scale", scale::report),
    ("widths", widths::report),
    ("bounds", |_| bounds::report()),
    ("report", run_files::large),
    ("report", run_files::many),
    ("report", tables::report),
    ("screens", screens::report),
    ("years", years::report),
];

fn run() -> Result<(), Box<dyn Error>> {
    let folder = Folder::new()?;
    let wanted = std::env::args().nth(3);
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    let parts: Vec<Part> =
        PARTS.into_iter().filter(|(name, _)| is_wanted(name)).map(|(_, part)| part).collect();
    if parts.is_empty() {
        return Err(format!(
            "there is no part {}: see PARTS in bench/src/main.rs",
            wanted.unwrap_or_default()
        )
        .into());
    }
    println!("{}", host::describe());
    parts.into_iter().try_for_each(|part| {
        println!("{}", part(&folder)?);
        Ok(())
    })
}

/// A temporary folder, removed at the end.
pub struct Folder(TempDir);

impl Folder {
    fn new() -> std::io::Result<Self> {
        TempDir::with_prefix("test-bench-").map(Self)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Compiles a program of bench/programs.
    fn compile(&self, compiler: &str, name: &str) -> Result<PathBuf, Box<dyn Error>> {
        self.compile_from("programs", compiler, name)
    }

    /// Compiles a program of tests/programs.
    fn compile_test(&self, compiler: &str, name: &str) -> Result<PathBuf, Box<dyn Error>> {
        self.compile_from("../tests/programs", compiler, name)
    }

    fn compile_from(&self, place: &str, compiler: &str, name: &str) -> Result<PathBuf, Box<dyn Error>> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(place).join(format!("{name}.c"));
        let program = self.path().join(name);
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../launcher/agent/include");
        let mut command = Command::new(compiler);
        command.arg("-O2").arg("-I").arg(include).arg("-o").arg(&program).arg(&source);
        let status = command.status();
        match status {
            Ok(status) if status.success() => Ok(program),
            Ok(status) => Err(format!("{compiler} {}: {status}", source.display()).into()),
            Err(e) => Err(format!("{compiler}: {e}").into()),
        }
    }
}

/// The measured tool: this program's first argument. The second argument is a Python interpreter for
/// [`peers::Peers`]; a third one selects a part of [`PARTS`].
fn pmmpi() -> Result<PathBuf, Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: pmmpi-bench PATH/TO/pmmpi PATH/TO/python [PART]")?;
    Ok(std::fs::canonicalize(path)?)
}

/// The first run file in a folder.
fn run_file(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let files = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let is_run = |path: &PathBuf| path.extension().is_some_and(|e| e == EXTENSION);
    Ok(files.into_iter().find(is_run).ok_or_else(|| format!("pmmpi saved no run in {}", folder.display()))?)
}

/// Runs a command to its end, silently; an error if it fails.
fn must_succeed(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}").into()),
        Err(e) => Err(format!("{command:?}: {e}").into()),
    }
}
