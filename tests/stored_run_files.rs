//! Run files of every schema version give the same report as when they were new.
//!
//! tests/runs/vN contains files that pmmpi wrote in schema N for real jobs, and the output of `pmmpi report`. With
//! BLESS=1 in the environment, the current output becomes the expected output.

use pmmpi::record::run_file::{self, Slot, VERSION};
use pmmpi_events::validation::FOLDER_VARIABLE;
use rig::tool::{Folder, run, runs_in, tool};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn stored(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("runs/v{version}"))
}

#[test]
fn every_schema_version_is_stored_and_read() {
    for version in 1..=VERSION {
        let folder = stored(version);
        let runs = runs_in(&folder);
        assert!(!runs.is_empty(), "store some runs of version {version}");
        assert!(runs.iter().all(|run| run.elapsed().is_some()));
        let files = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
        let files: Vec<_> = files.filter(|file| file.extension().is_some_and(|e| e == "pmr")).collect();
        for (format, name) in [("json", "report.json"), ("text", "report.txt")] {
            let mut report = Command::new(tool("pmmpi"));
            // What `pmmpi validate` found on this machine must not count.
            report.env(FOLDER_VARIABLE, "/nonexistent").args(["report", "--format", format]).args(&files);
            let output = run(&mut report).success();
            let golden = folder.join(name);
            if std::env::var_os("BLESS").is_some() {
                std::fs::write(&golden, output.out()).unwrap();
            }
            let expected = std::fs::read_to_string(&golden).unwrap();
            assert_eq!(output.out(), expected, "{}", golden.display());
        }
    }
}

/// The file system gets back the part of the reserved space that the run does not need.
#[test]
fn a_file_takes_the_room_that_it_needs() {
    let run = &runs_in(&stored(VERSION))[0];
    let folder = Folder::new("room");
    let mut needed = None;
    for reserved in [0, 4096, 1 << 20] {
        let slot = Slot::take(folder.path()).unwrap().reserve(reserved).unwrap();
        let path = slot.store(run).unwrap();
        let (length, room) = (path.metadata().unwrap().len(), path.metadata().unwrap().blocks() * 512);
        assert_eq!(&run_file::read(&path).unwrap(), run);
        assert!(room < length + (64 << 10), "{room} bytes for {length}, {reserved} reserved");
        assert_eq!(*needed.get_or_insert(length), length);
        std::fs::remove_file(path).unwrap();
    }
}

/// If any byte changes or any part at the end is missing, the reader detects it. It never panics.
#[test]
fn no_damage_goes_unnoticed() {
    let first = std::fs::read_dir(stored(VERSION)).unwrap().map(|e| e.unwrap().path());
    let path = first.filter(|path| path.extension().is_some_and(|e| e == "pmr")).min().unwrap();
    let whole = std::fs::read(path).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        assert!(pmmpi::record::run_file::from_bytes(&damaged).is_err(), "byte {at}");
        assert!(pmmpi::record::run_file::from_bytes(&whole[..at]).is_err(), "cut at {at}");
    }
    assert!(pmmpi::record::run_file::from_bytes(&whole).is_ok());
}
