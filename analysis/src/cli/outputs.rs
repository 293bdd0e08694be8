//! Where the result of a command goes.

use super::exit_statuses::PARTIAL;
use super::failure::Failure;
use pmmpi::text::folded;
use pmmpi_analysis::output;
use pmmpi_analysis::render::json;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// The file that `--output` names; `None` for stdout, also by its name `-`.
pub fn named(output: &Option<PathBuf>) -> Option<&Path> {
    output.as_deref().filter(|file| *file != Path::new("-"))
}

/// Writes the result to the file, or to stdout.
pub fn write(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    output::write(text, file).map_err(|e| {
        let place = file.map_or_else(|| "stdout".to_owned(), |file| file.display().to_string());
        Failure { code: PARTIAL, message: format!("cannot write the result to {place}: {e}") }
    })
}

/// Refuses a file in a folder that does not exist.
pub fn writable(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.is_none_or(Path::is_dir) {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "--output {}: there is no folder {}",
            file.display(),
            folder.unwrap_or(file).display()
        ))),
    }
}

/// On a terminal, text that fits its width. In a file or a pipe lines stay whole, for grep and awk.
pub fn for_place(text: String, file: Option<&Path>) -> String {
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    match width.filter(|width| *width > 0 && file.is_none()) {
        Some(width) => folded(&text, width),
        None => text,
    }
}

/// The JSON of a result.
pub fn json(value: &impl Serialize) -> Result<String, Failure> {
    json::of(value)
        .map_err(|e| Failure { code: PARTIAL, message: format!("cannot write the result as JSON: {e}") })
}
