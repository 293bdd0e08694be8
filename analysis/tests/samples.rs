//! The samples in README.md and docs are what the commands print today.
//!
//! A comment above a block names the command and its files in docs/samples, which docs/samples/record.sh measured:
//! `<!-- sample: report demo -->`. The block shows consecutive lines of the output; a line `...` leaves lines out. A test
//! in launcher/src/doctor.rs holds the sample of `pmmpi doctor`, because it needs a machine without a PMU; a test in
//! launcher/workload/src/series_summary.rs holds the sample of a series.

#[expect(dead_code)]
mod common;

use common::{err, out, report};
use pmmpi::record::run_file;
use pmmpi_events::summary_line::Summary;
use std::path::{Path, PathBuf};

const MARK: &str = "<!-- sample: ";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A sample of a page: the command, the lines of its block.
struct Sample {
    page: String,
    command: String,
    lines: Vec<String>,
}

fn samples(page: &str) -> Vec<Sample> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let mut lines = text.lines();
    let mut samples = Vec::new();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        if command == "doctor" || command.starts_with("series ") {
            continue;
        }
        assert_eq!(lines.next(), Some("```"), "{page}: a block follows {line}");
        let block = lines.by_ref().take_while(|line| *line != "```").map(str::to_owned).collect();
        samples.push(Sample { page: page.to_owned(), command: command.to_owned(), lines: block });
    }
    samples
}

/// What the command prints. `summary FILE` is the line that pmmpi prints after a measurement.
fn printed(command: &str) -> String {
    let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let of_samples = |name: &str| root().join("docs/samples").join(name).display().to_string();
    match words[0].as_str() {
        "summary" => {
            let run = run_file::read(Path::new(&of_samples(&words[1]))).unwrap();
            let file = Path::new("pmmpi-results").join(Path::new(&words[1]).file_name().unwrap());
            format!("pmmpi: {}\n", Summary { run: &run, file: Some(&file) })
        }
        "report" => {
            let (path, options) = words[1..].split_last().unwrap();
            let path = of_samples(path);
            let options = options.iter().map(String::as_str);
            let output =
                report(&[&["report"], &options.chain([path.as_str()]).collect::<Vec<_>>()[..]].concat());
            assert!(output.status.success(), "{command}: {}", err(&output));
            out(&output)
        }
        other => panic!("{other} makes no sample"),
    }
}

/// True if `lines` are consecutive lines of the output, from its first to its last, except at `...`.
fn shows(output: &[&str], lines: &[String]) -> Result<(), String> {
    let mut at = 0;
    let mut may_skip = false;
    for line in lines {
        if line == "..." {
            may_skip = true;
            continue;
        }
        let found = output[at..].iter().position(|printed| printed.trim_end() == line);
        match found {
            Some(0) => at += 1,
            Some(skipped) if may_skip => at += skipped + 1,
            _ => return Err(line.clone()),
        }
        may_skip = false;
    }
    if at == output.len() || may_skip { Ok(()) } else { Err(output[at].to_owned()) }
}

#[test]
fn samples_are_what_the_commands_print() {
    let pages = ["README.md", "docs/guide.md", "docs/measuring.md", "docs/report.md", "docs/places.md"];
    let samples: Vec<Sample> = pages.iter().flat_map(|page| samples(page)).collect();
    assert!(samples.len() >= 6, "{} samples", samples.len());
    for Sample { page, command, lines } in samples {
        let output = printed(&command);
        let printed: Vec<&str> = output.lines().collect();
        let shown: Vec<String> = lines.into_iter().filter(|line| !line.starts_with("$ ")).collect();
        if let Err(line) = shows(&printed, &shown) {
            panic!("{page}, {command}: differs at \"{line}\"; the command prints:\n{output}");
        }
    }
}

#[test]
fn a_line_that_is_not_printed_is_found() {
    let output = ["one", "two", "three"];
    let lines = |text: &[&str]| text.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert_eq!(shows(&output, &lines(&["one", "two", "three"])), Ok(()));
    assert_eq!(shows(&output, &lines(&["...", "three"])), Ok(()));
    assert_eq!(shows(&output, &lines(&["one", "..."])), Ok(()));
    assert_eq!(shows(&output, &lines(&["one", "three"])), Err("three".into()));
    assert_eq!(shows(&output, &lines(&["one", "two"])), Err("three".into()));
    assert_eq!(shows(&output, &lines(&["...", "four"])), Err("four".into()));
}
