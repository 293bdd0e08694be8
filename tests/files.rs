//! Run files of every schema version are read as when they were new.
//!
//! tests/runs/vN holds files that a pmmpi of schema N wrote of real jobs, and what `pmmpi report` says of
//! them. With BLESS=1 in the environment what it says now becomes what it should say.

use pmmpi::record::runfile::{self, Slot, VERSION};
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
            let output =
                run(Command::new(tool("pmmpi")).args(["report", "--format", format]).args(&files)).success();
            let golden = folder.join(name);
            if std::env::var_os("BLESS").is_some() {
                std::fs::write(&golden, output.out()).unwrap();
            }
            let expected = std::fs::read_to_string(&golden).unwrap();
            assert_eq!(output.out(), expected, "{}", golden.display());
        }
    }
}

/// What a run does not need of the room that was set aside for it is free again.
#[test]
fn a_file_takes_the_room_that_it_needs() {
    let run = &runs_in(&stored(VERSION))[0];
    let folder = Folder::new("room");
    let mut needed = None;
    for reserved in [0, 4096, 1 << 20] {
        let slot = Slot::take(folder.path()).unwrap().reserve(reserved).unwrap();
        let path = slot.store(run).unwrap();
        let (length, room) = (path.metadata().unwrap().len(), path.metadata().unwrap().blocks() * 512);
        assert_eq!(&runfile::read(&path).unwrap(), run);
        assert!(room < length + (64 << 10), "{room} bytes for {length}, {reserved} reserved");
        assert_eq!(*needed.get_or_insert(length), length);
        std::fs::remove_file(path).unwrap();
    }
}

/// Any one byte changed, or any end cut off, is found out; whatever it is, nothing panics.
#[test]
fn no_damage_goes_unnoticed() {
    let first = std::fs::read_dir(stored(VERSION)).unwrap().map(|e| e.unwrap().path());
    let path = first.filter(|path| path.extension().is_some_and(|e| e == "pmr")).min().unwrap();
    let whole = std::fs::read(path).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        assert!(pmmpi::record::runfile::from_bytes(&damaged).is_err(), "byte {at}");
        assert!(pmmpi::record::runfile::from_bytes(&whole[..at]).is_err(), "cut at {at}");
    }
    assert!(pmmpi::record::runfile::from_bytes(&whole).is_ok());
}
