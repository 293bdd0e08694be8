//! Which files are read: files that are no runs, runs that are there twice, results beside run files.

use super::by_hand;
use super::common::{Folder, assert_valid, command, err, json, out, report};
use super::runs::run;

#[test]
fn every_file_that_is_no_run_is_named_and_the_others_are_reported() {
    let folder = Folder::new();
    let good = folder.write(&by_hand());
    let bytes = std::fs::read(&good).unwrap();
    let changed = |at: usize, to: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = to;
        bytes
    };
    folder.put("empty.pmr", "");
    folder.put("foreign.pmr", "rank,node\n");
    folder.put("newer.pmr", changed(8, pmmpi::record::run_file::VERSION as u8 + 1));
    folder.put("truncated.pmr", &bytes[..bytes.len() - 1]);
    folder.put("head.pmr", &bytes[..10]);
    folder.put("damaged.pmr", changed(bytes.len() - 5, 0xff));
    folder.put("longer.pmr", [&bytes[..], b"x"].concat());
    folder.put("huge-claim.pmr", changed(23, 0x7f));
    std::fs::create_dir(folder.path().join("folder.pmr")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe.pmr")).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("device.pmr")).unwrap();
    let output = report(&["report", folder.path().to_str().unwrap(), "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    assert_eq!(report["runs"].as_array().unwrap().len(), 1);
    let warnings = report["warnings"].as_array().unwrap();
    let found = |file: &str, code: &str| {
        warnings
            .iter()
            .any(|warning| warning["code"] == code && warning["message"].as_str().unwrap().contains(file))
    };
    for (file, code) in [
        ("empty.pmr", "empty-file"),
        ("foreign.pmr", "foreign-file"),
        ("newer.pmr", "newer-file"),
        ("truncated.pmr", "truncated-file"),
        ("head.pmr", "truncated-file"),
        ("damaged.pmr", "damaged-file"),
        ("longer.pmr", "damaged-file"),
        ("huge-claim.pmr", "truncated-file"),
        ("folder.pmr", "foreign-file"),
        ("pipe.pmr", "foreign-file"),
        ("device.pmr", "foreign-file"),
    ] {
        assert!(found(file, code), "{file}: {warnings:#?}");
    }
    assert_valid("report", &report);
}

#[test]
fn nothing_to_report_is_wrong_usage() {
    let folder = Folder::new();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for args in [
        vec!["report", "/nonexistent"],
        vec!["report", folder.path().to_str().unwrap()],
        vec!["report", "--what"],
        vec!["bounds"],
        vec!["bounds", "/nonexistent"],
        vec!["nonsense"],
        vec![],
    ] {
        let output = report(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty());
    }
    let run = folder.write(&by_hand());
    let both = report(&["report", run.to_str().unwrap(), &path("absent")]);
    assert_eq!(both.status.code(), Some(1));
}

/// pmmpi keeps hidden files beside runs, also before it has saved the first run.
#[test]
fn a_default_folder_without_runs_says_to_measure_first() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path().join("pmmpi-results/.nodes")).unwrap();
    let output = command(&["report"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = err(&output);
    assert!(
        said.contains("no run file in the folder pmmpi-results") && said.contains("Measure a program first")
    );
}

#[test]
fn run_files_in_a_subfolder_are_told() {
    let (folder, file) = (Folder::new(), Folder::new());
    let below = folder.path().join("pmmpi-results");
    std::fs::create_dir(&below).unwrap();
    std::fs::copy(file.write(&by_hand()), below.join("good.pmr")).unwrap();
    let output = report(&["report", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let wanted = format!("1 run file is in a subfolder; to read it, use: pmmpi report {}", below.display());
    assert!(
        err(&output).contains(&wanted) && !err(&output).contains("cannot read the format"),
        "{}",
        err(&output)
    );
}

#[test]
fn a_run_given_twice_counts_once() {
    let (folder, other) = (Folder::new(), Folder::new());
    let path = folder.write(&by_hand());
    std::fs::copy(&path, other.path().join("copy.pmr")).unwrap();
    let folders = [folder.path().to_str().unwrap(), other.path().to_str().unwrap(), path.to_str().unwrap()];
    let twice = report(&["report", "--format", "json", folders[0], folders[1], folders[2]]);
    assert_eq!(twice.status.code(), Some(0), "{}", err(&twice));
    assert_eq!(json(&twice)["runs"].as_array().unwrap().len(), 1);
    let mut altered = by_hand();
    altered.gather_ns += 1;
    std::fs::rename(other.write(&altered), other.path().join("altered.pmr")).unwrap();
    let conflict = report(&["report", "--format", "json", folders[0], folders[1]]);
    assert_eq!(conflict.status.code(), Some(1));
    assert!(json(&conflict)["warnings"].to_string().contains("conflicting-run"));
}

#[test]
fn the_order_of_the_files_changes_nothing() {
    let folder = Folder::new();
    let paths: Vec<String> = (0..5)
        .map(|i| {
            let t = [0, 10, 1_000_000 + i, 1_000_020 + i];
            folder.write(&run(&format!("run-{i}"), &[("a", t), ("b", t)])).to_str().unwrap().to_owned()
        })
        .collect();
    let forth: Vec<&str> =
        ["report", "--format", "json"].into_iter().chain(paths.iter().map(String::as_str)).collect();
    let back: Vec<&str> =
        ["report", "--format", "json"].into_iter().chain(paths.iter().rev().map(String::as_str)).collect();
    assert_eq!(out(&report(&forth)), out(&report(&back)));
}

/// A folder of run files is read only if the user names it. Results beside it are read.
#[test]
fn results_beside_a_folder_of_run_files_are_read() {
    let folder = Folder::new();
    let below = folder.path().join("pmmpi-results");
    std::fs::create_dir(&below).unwrap();
    std::fs::copy(folder.write(&by_hand()), below.join("run.pmr")).unwrap();
    let beside = folder.path().join("beside");
    std::fs::create_dir(&beside).unwrap();
    std::fs::rename(&below, beside.join("pmmpi-results")).unwrap();
    std::fs::write(beside.join("results.csv"), "node,run,elapsed_s\nn1,0,1.5\nn2,0,1.6\n").unwrap();
    let found = json(&report(&["report", beside.to_str().unwrap(), "--format", "json"]));
    assert_valid("report", &found);
    let mut nodes: Vec<&str> =
        found["nodes"].as_array().unwrap().iter().map(|node| node["node"].as_str().unwrap()).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["n1", "n2"], "{found:#}");
    assert!(found["runs"].as_array().unwrap().is_empty());
    let codes: Vec<&str> =
        found["warnings"].as_array().unwrap().iter().map(|of| of["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"no-run-files"), "{codes:?}");
}
