//! Results of other tools are judged like runs of pmmpi, also beside them.

use super::common::{Folder, assert_valid, command, err, json, out, report};
use super::runs::run;
use super::{SLOW, csv, nodes, of_csv, session, verdict};
use serde_json::json;

/// Results of other tools get verdicts like own runs, and a bad line costs only itself.
#[test]
fn results_of_others_are_judged() {
    let folder = Folder::new();
    let mut csv = String::from("node,run,elapsed_s,class,session,cycles\n");
    for (node, times) in nodes(30, 7, |node, _| if node == 5 { 1.08 } else { 1.0 }) {
        for (run, seconds) in times.iter().enumerate() {
            csv += &format!("{node},{run},{seconds},all,monday,12\n");
        }
    }
    let good = folder.put("good.csv", &csv);
    let bad = folder.put("bad.csv", csv.replacen("n007,3,1.", "n007,3,x1.", 1));
    for (file, code, runs) in [(&good, 0, 7), (&bad, 1, 6)] {
        let output = report(&["report", "--format", "json", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(code), "{}", err(&output));
        let report = json(&output);
        assert_valid("report", &report);
        assert_eq!(
            (&report["nodes"][0]["node"], &report["nodes"][0]["session"]),
            (&json!("n005"), &json!("monday"))
        );
        assert_eq!(verdict(&report, "n005"), "SLOW");
        let other = report["nodes"].as_array().unwrap().iter().find(|node| node["node"] == "n007").unwrap();
        assert_eq!(other["runs"], runs);
        let warnings = report["warnings"].as_array().unwrap();
        let rejected = warnings.iter().find(|warning| warning["code"] == "rejected-rows");
        assert_eq!(rejected.is_some(), code == 1);
        if let Some(rejected) = rejected {
            assert!(rejected["message"].as_str().unwrap().contains("bad.csv:54: "), "{rejected}");
        }
    }
    // Through a pipe, and together with own runs.
    let pipe = std::fs::File::open(&good).unwrap();
    let text = out(&command(&["report", "-"]).stdin(pipe).output().unwrap());
    assert!(text.starts_with("210 runs, 30 nodes, 1 file\n"), "{text}");
    assert!(text.contains("class 1: all\n"), "{text}");
    let own = folder.write(&run("own", &[("a", [0, 1, 2_000_000, 2_000_003])]));
    let both = out(&report(&["report", own.to_str().unwrap(), good.to_str().unwrap()]));
    assert!(both.starts_with("211 runs, 31 nodes, 2 files\n"), "{both}");
    // No row can be used.
    let none = folder.put("none.csv", "node,run,elapsed_s\na,1,-3\n");
    let output = report(&["report", none.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("none.csv:2: "), "{}", err(&output));
}

/// A folder may hold both kinds of files, and the user may name it twice.
#[test]
fn results_beside_run_files_are_not_passed_over() {
    let folder = Folder::new();
    csv(&folder, "beside.csv", &session("", &SLOW));
    let name = folder.path().to_str().unwrap();
    let twice = report(&["report", name, name]);
    assert_eq!(twice.status.code(), Some(0), "{}{}", out(&twice), err(&twice));
    folder.write(&run("own", &[("e", [0, 1, 2_000_000, 2_000_003])]));
    let both = report(&["report", name]);
    assert_eq!(both.status.code(), Some(0), "{}{}", out(&both), err(&both));
    assert!(out(&both).starts_with("21 runs, 5 nodes, 2 files\n"), "{}", out(&both));
    assert!(out(&both).contains("1 node is slower than its class: d +19."), "{}", out(&both));
}

#[test]
fn a_slash_in_a_name_makes_no_other_run() {
    let rows = "node,run,elapsed_s\na,b/c,1.0\na/b,c,1.1\na%2Fb,c,1.2\n";
    let found = of_csv(rows.to_owned());
    let mut ids: Vec<&str> =
        found["nodes"].as_array().unwrap().iter().filter_map(|node| node["median_run_id"].as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["a%252Fb/c", "a%2Fb/c", "a/b%2Fc"]);
}
