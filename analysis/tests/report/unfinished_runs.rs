//! Runs that did not end, and runs whose end is not recorded.

use super::by_hand;
use super::common::{Folder, assert_valid, err, json, out, report};
use super::runs;
use pmmpi::record::End;
use serde_json::json;

/// A run that still runs has not failed.
#[test]
fn a_run_of_which_no_end_was_seen_may_still_run() {
    let folder = Folder::new();
    let (path, file, shared) = folder.begin("live", 2);
    let report_json = || json(&report(&["report", folder.path().to_str().unwrap(), "--format", "json"]));
    let codes = |run: &serde_json::Value| -> Vec<String> {
        let warnings = run["warnings"].as_array().unwrap().iter();
        warnings.map(|warning| warning["code"].as_str().unwrap().to_owned()).collect()
    };
    let live = report_json();
    assert_valid("report", &live);
    let run = &live["runs"][0];
    let reason = json!("pmmpi did not see the end: the program may still be running");
    assert!(run["end"].is_null() && run["lost_ranks"][0]["end"].is_null());
    assert_eq!(
        (&run["null_reasons"]["end"], &run["lost_ranks"][0]["null_reasons"]["end"]),
        (&reason, &reason)
    );
    assert_eq!(codes(run), ["incomplete-run", "node-unknown"]);
    let text = out(&report(&["report", folder.path().to_str().unwrap()]));
    assert!(
        text.contains("not complete: pmmpi did not see the end: the program may still be running"),
        "{text}"
    );
    // Now the process has ended.
    shared.live().set_end(End::Signaled(9), i64::MAX);
    runs::carry(&path, &shared);
    let ended = report_json();
    assert_valid("report", &ended);
    let run = &ended["runs"][0];
    assert_eq!(
        (run["end"].as_str(), run["lost_ranks"][0]["end"].as_str()),
        (Some("signal 9"), Some("signal 9"))
    );
    assert_eq!(codes(run), ["failed-run", "incomplete-run", "node-unknown"]);
    // The run is saved as a whole between listing and reading.
    let name = path.to_str().unwrap();
    std::fs::remove_file(file).unwrap();
    assert_eq!(report(&["report", name]).status.code(), Some(2));
    folder.write(&by_hand());
    std::fs::rename(
        folder.path().join(format!("{}.pmr", by_hand().header.run_id)),
        path.with_extension("pmr"),
    )
    .unwrap();
    assert!(report(&["report", name]).status.success());
}

/// A partial run that cannot be used gets its own message, and never "no rank began".
#[test]
fn what_is_left_of_a_run_of_another_version_is_named() {
    let folder = Folder::new();
    let changed = |id: &str, at: usize, to: u8| {
        let (path, node, _) = folder.begin(id, 1);
        let mut bytes = std::fs::read(&node).unwrap();
        bytes[at] = to;
        std::fs::write(node, bytes).unwrap();
        path
    };
    let said = |path: &std::path::Path, what: &str| {
        let output = report(&["report", path.to_str().unwrap()]);
        assert!(output.status.code() == Some(2) && err(&output).contains(what), "{what}: {}", err(&output));
    };
    let other = "was written by another version of pmmpi: use `pmmpi report` of that version";
    said(&changed("other", 7, 99), other);
    said(&changed("foreign", 0, b'X'), "is not a run file of pmmpi");
    said(&changed("newer", 8, 9), "has schema 9");
    // Older versions left a file about the run, and files per node that begin with a hole.
    let old = folder.path().join("old.partial");
    std::fs::create_dir(&old).unwrap();
    std::fs::write(old.join("run"), b"PMMPI\0\0\x07and so on").unwrap();
    std::fs::write(old.join("node0-0123456789abcdef.node"), [0; 65536]).unwrap();
    said(&old, other);
    let (path, ..) = folder.begin("renamed", 1);
    let to = folder.path().join("victim.partial");
    std::fs::rename(path, &to).unwrap();
    said(&to, "the folder of this run must have the name renamed.partial");
    let (path, node, _) = folder.begin("empty", 1);
    std::fs::write(node, "").unwrap();
    said(&path, "is empty");
    // No half-written file appears under its final name.
    let (path, ..) = folder.begin("whole", 1);
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().contains("tmp")));
}

/// A large job that was killed before most of its ranks began.
#[test]
fn a_large_job_of_which_few_ranks_began_is_reported() {
    let folder = Folder::new();
    folder.begin("large", 20_000);
    let report = json(&report(&["report", folder.path().to_str().unwrap(), "--format", "json"]));
    assert_valid("report", &report);
    let run = &report["runs"][0];
    assert_eq!((&run["ranks"], &run["missing_count"]), (&json!(1), &json!(20_000)));
    let missing: Vec<u64> =
        run["missing_ranks"].as_array().unwrap().iter().map(|r| r.as_u64().unwrap()).collect();
    assert_eq!(missing, (0..4096).collect::<Vec<u64>>());
    assert_eq!(
        run["warnings"][0]["message"],
        "0 of 20000 ranks reached the end barrier; 1 did not, but left data; 19999 left no data"
    );
}
