//! Reports of ReFrame.

use super::common::Folder;
use super::{assert_columns_agree, class, counter, fixture, read, started};
use pmmpi_analysis::input::importers::{FileFormat, ImportOptions, Results};

const VERSIONS: [&str; 3] = ["3.12.0", "4.5.2", "4.9.2"];

fn report(version: &str, options: &ImportOptions) -> Results {
    read(&fixture(&format!("reframe/report-{version}.json")), options)
}

#[test]
fn each_version_says_the_same() {
    for version in VERSIONS {
        let results = report(version, &ImportOptions::default());
        assert_eq!(results.sources[0].format, FileFormat::Reframe);
        assert_eq!((results.table.len(), results.rejected_rows), (4, 4), "{version}");
        assert_eq!(results.table.elapsed_s, [123.4 / 1e3; 4]);
        assert_eq!(counter(&results, "bandwidth"), [Some(5.6); 4]);
        assert_eq!(results.table.nodes.iter().collect::<Vec<_>>(), ["vm"]);
        // Repetitions are in one class. A run that failed its performance reference is slow, so it must stay in.
        let classes: Vec<&str> = (0..4).map(|row| class(&results, row)).collect();
        let [solve, slow] =
            ["Solve", "Slow"].map(|name| format!("{name} @generic:default+builtin, solve_time"));
        assert_eq!(classes, [&solve, &solve, &slow, &slow]);
        assert!(started(&results).iter().all(|t| t.is_some_and(|t| t / 1_000_000_000 > 1_795_295_000)));
        assert!(results.rejected[0].reason.contains("no performance variable in a unit of time"));
        assert!(results.rejected[3].reason.contains("result `fail"), "{}", results.rejected[3].reason);
        assert_columns_agree(&results);
    }
}

#[test]
fn the_metric_may_be_chosen() {
    let options = |metric: &str| ImportOptions { metric: Some(metric.into()), ..ImportOptions::default() };
    for version in VERSIONS {
        assert_eq!(report(version, &options("solve_time")).table.len(), 4);
        assert_eq!(report(version, &options("bandwidth")).table.len(), 0);
        let results = report(version, &options("time_run"));
        assert_eq!((results.table.len(), results.rejected_rows), (6, 2));
        assert!(results.table.elapsed_s.iter().all(|s| *s > 0.01 && *s < 60.0));
    }
}

#[test]
fn cases_of_an_earlier_session_are_its_own() {
    let folder = Folder::new();
    let whole = std::fs::read_to_string(fixture("reframe/report-4.9.2.json")).unwrap();
    let mut report: serde_json::Value = serde_json::from_str(&whole).unwrap();
    report["restored_cases"] = report["runs"][0]["testcases"].clone();
    let results = read(&folder.put("r.json", report.to_string()), &ImportOptions::default());
    assert_eq!((results.table.len(), results.unread["restored_cases"]), (4, 8));
}

#[test]
fn another_version_is_named() {
    let folder = Folder::new();
    let path = folder.put("r.json", r#"{"session_info":{"data_version":"1.3.0"},"runs":[]}"#);
    let results = read(&path, &ImportOptions::default());
    let expected = "has the format version `1.3.0`, but pmmpi reads only 2.x, 3.x and 4.x";
    assert_eq!(results.unusable[0].reason, expected);
}

#[test]
fn a_link_to_the_last_report_is_not_another() {
    let folder = Folder::new();
    let content = std::fs::read(fixture("reframe/report-4.9.2.json")).unwrap();
    let path = folder.put("run-report-0.json", content);
    std::os::unix::fs::symlink(path, folder.path().join("latest.json")).unwrap();
    let results = read(folder.path(), &ImportOptions::default());
    assert_eq!((results.table.len(), results.rejected_rows, results.sources.len()), (4, 4, 1));
}
