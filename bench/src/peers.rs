//! Other programs that do a part of the work of `pmmpi report`: Python packages in the virtual environment of
//! bench/peers/venv.sh, and SuperBench.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The Python interpreter and the versions of its packages.
pub struct Peers {
    python: PathBuf,
    /// For example "DuckDB 2.0.0".
    pub duckdb: String,
    /// For example "Polars 2.1.0".
    pub polars: String,
}

impl Peers {
    /// The packages of the interpreter in this program's second argument, or why they are missing.
    pub fn find() -> Result<Self, String> {
        let python = std::env::args_os().nth(2).map(PathBuf::from).unwrap_or_default();
        let versions = "import duckdb, polars; print(duckdb.__version__, polars.__version__)";
        let output = Command::new(&python).args(["-c", versions]).output();
        let none = "there is no Python environment with DuckDB and Polars";
        let output = output.ok().filter(|output| output.status.success()).ok_or(none)?;
        let versions = String::from_utf8_lossy(&output.stdout);
        let (duckdb, polars) = versions.trim().split_once(' ').ok_or(none)?;
        Ok(Self { python, duckdb: format!("DuckDB {duckdb}"), polars: format!("Polars {polars}") })
    }

    /// A command that runs a program of bench/peers, which reads one file and writes another.
    pub fn script(&self, name: &str, from: &Path, to: &Path) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(file(name)).arg(from).arg(to);
        command
    }
}

/// SuperBench's command, if it is installed; no package index has it.
pub struct Superbench {
    /// For example "SuperBench 0.12.0".
    pub name: String,
}

impl Superbench {
    /// The command in PATH, or why there is none.
    pub fn find() -> Result<Self, String> {
        let output = Command::new("sb").arg("version").output();
        let output = output.ok().filter(|output| output.status.success());
        let output =
            output.ok_or("SuperBench is not installed (no `sb` in PATH), and no package index has it")?;
        let version = String::from_utf8_lossy(&output.stdout);
        Ok(Self { name: format!("SuperBench {}", version.trim().trim_matches('"')) })
    }

    /// A command that writes the defective nodes to a file below `folder`.
    pub fn diagnosis(&self, results: &Path, folder: &Path) -> Command {
        let mut command = Command::new("sb");
        command.args(["result", "diagnosis", "--output-file-format", "json"]);
        command.arg("--data-file").arg(results).arg("--output-dir").arg(folder.join("superbench"));
        command.arg("--rule-file").arg(file("superbench.yaml"));
        command.arg("--baseline-file").arg(file("superbench.json"));
        command
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)
}
