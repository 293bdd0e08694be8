//! `pmmpi bounds`: stamps of other programs, as people write them.

mod common;

use common::*;
use serde_json::json;
use std::io::Write;
use std::process::Stdio;

const HEADER: &str = "rank,node,t0_ns,t1_ns,t2_ns,t3_ns\n";

fn bounds(content: &str, args: &[&str]) -> std::process::Output {
    let folder = Folder::new();
    let file = folder.put("stamps.csv", content);
    report(&[&["bounds", file.to_str().unwrap(), "--max-drift-ppm", "0"], args].concat())
}

/// Two nodes whose clocks are a thousand hours apart, one rank each.
fn two_nodes() -> String {
    let far = 3_600_000_000_000_000i64;
    let row = |rank: i64, node: &str, t: [i64; 4]| {
        let t = t.map(|t| (t + rank * far).to_string());
        format!("{rank},{node},{}\n", t.join(","))
    };
    format!("{HEADER}{}{}", row(0, "a", [0, 100, 1000, 1200]), row(1, "b", [50, 90, 1010, 1150]))
}

#[test]
fn the_json_is_the_contract() {
    let output = bounds(&two_nodes(), &["--format", "json"]);
    assert!(output.status.success(), "{}", err(&output));
    // L0 = max(900, 920) = 920, U0 = min(1200, 1100) = 1100, P = (1000, 960), Q = (1100, 1060):
    // (a, b): min(1100, 1000, 1060, 1140) = 1000; (b, a): min(1100, 960, 1100, 1140) = 960.
    assert_eq!(
        json(&output),
        json!({
            "lower_ns": 920, "upper_ns": 1000, "rank_lower_ns": 920, "rank_upper_ns": 1100, "consistent": true,
            "rho_min_ppm": 0.0, "suspects": [], "ranks": 2, "nodes": 2, "rejected_rows": 0
        })
    );
    assert_valid("bounds", &json(&output));
}

#[test]
fn files_are_read_as_spreadsheets_write_them() {
    let plain = out(&bounds(&two_nodes(), &["--format", "json"]));
    let windows = format!("\u{feff}{}", two_nodes().replace('\n', "\r\n"));
    assert_eq!(out(&bounds(&windows, &["--format", "json"])), plain);
    let quoted = two_nodes().replace(",a,", ",\"a\",").replace("rank,node", "\"Rank\" , NODE");
    assert_eq!(out(&bounds(&quoted, &["--format", "json"])), plain);
    let extra = two_nodes().replace("rank,", "rank,comment,").replace("0,a", "0,x,a").replace("1,b", "1,y,b");
    assert_eq!(out(&bounds(&extra, &["--format", "json"])), plain);
    let mut child = command(&["bounds", "-", "--max-drift-ppm", "0", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(two_nodes().as_bytes()).unwrap();
    assert_eq!(out(&child.wait_with_output().unwrap()), plain);
}

#[test]
fn runs_and_regions_are_bounded_each() {
    let rows = "run,region,rank,node,t0_ns,t1_ns,t2_ns,t3_ns\n\
                r1,solve,0,a,0,10,20,30\nr1,solve,1,a,0,10,25,30\nr1,init,0,a,0,1,2,3\nr2,solve,0,a,0,10,30,40\n";
    let output = bounds(rows, &["--format", "json"]);
    let list = json(&output);
    assert_valid("bounds", &list);
    let rows: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (row["run"].as_str().unwrap(), row["region"].as_str().unwrap(), row["lower_ns"].as_i64().unwrap())
        })
        .collect();
    assert_eq!(rows, [("r1", "solve", 15), ("r1", "init", 1), ("r2", "solve", 20)]);
    assert!(
        out(&bounds("run,rank,node,t0_ns,t1_ns,t2_ns,t3_ns\nx,0,a,0,1,2,3\n", &[])).starts_with("run x:\n")
    );
}

#[test]
fn a_bad_row_is_named_and_the_rest_still_counts() {
    let bad = format!(
        "{}x,a,1,2,3,4\n2,a,1,2,3\n0,a,1,2,3,4\n3,,1,2,3,4\n4,a,1,2,3,9999999999999999999\n5,a,1,2,3,9223372036854775807\n-1,a,1,2,3,4\n",
        two_nodes()
    );
    let output = bounds(&bad, &["--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let found = json(&output);
    assert_eq!((&found["ranks"], &found["rejected_rows"]), (&json!(2), &json!(7)));
    for (line, reason) in [
        ("line 4 of", "rank"),
        ("line 5 of", "only 5 fields"),
        ("line 6 of", "rank 0 already has a row"),
        ("line 7 of", "node is empty"),
        ("line 8 of", "t3_ns: `9999999999999999999` is not a 64-bit integer"),
        ("line 9 of", "t3_ns"),
        ("line 10 of", "rank is negative"),
    ] {
        let said = err(&output).lines().find(|said| said.contains(line)).map(str::to_owned);
        assert!(said.as_ref().is_some_and(|said| said.contains(reason)), "{line} {reason}\n{}", err(&output));
    }
    let text = out(&bounds(&bad, &[]));
    assert!(text.contains("warning: pmmpi left out 7 rows") && text.contains("line 6"), "{text}");
}

#[test]
fn a_file_without_stamps_is_wrong_usage() {
    for (content, reason) in [
        ("", "contains no stamps"),
        (HEADER, "contains no stamps"),
        ("rank,node,t0_ns,t1_ns\n0,a,1,2\n", "has no column `t2_ns`, `t3_ns`"),
        ("rank,node,t0_ns,t1_ns,t2_ns,t3_ns\nx,y,z\n", "has no valid row; line 2"),
        ("\0\0\0\0", "has no column"),
    ] {
        let output = bounds(content, &[]);
        assert_eq!(output.status.code(), Some(2), "{content:?}");
        assert!(err(&output).contains(reason) && err(&output).contains("stamps.csv"), "{}", err(&output));
    }
    assert_eq!(bounds(&two_nodes(), &["--max-drift-ppm", "1e9"]).status.code(), Some(2));
}

#[test]
fn contradictions_name_their_suspect() {
    let stepped = format!("{}2,c,0,100,5000,5200\n", two_nodes());
    let output = bounds(&stepped, &["--format", "json"]);
    let found = json(&output);
    assert_eq!((&found["consistent"], &found["suspects"]), (&json!(false), &json!(["c"])));
    assert!(found["rho_min_ppm"].as_f64().unwrap() > 0.0);
    let text = out(&bounds(&stepped, &[]));
    assert!(text.contains("elapsed unknown") && text.contains("suspects: c"), "{text}");
    assert!(
        text.contains("t2 - t1 of a rank: 0.00000490 s; shortest t3 - t0 of a rank: 0.00000110 s"),
        "{text}"
    );
}

/// The first exit of a clock is before its own last entry.
#[test]
fn what_no_clock_rates_explain_is_said_so() {
    let stamps = "rank,node,t0_ns,t1_ns,t2_ns,t3_ns\n0,a,0,10,100,110\n1,a,20,25,90,115\n";
    assert_eq!(json(&bounds(stamps, &["--format", "json"]))["rho_min_ppm"], json!(1e6));
    let text = out(&bounds(stamps, &[]));
    assert!(text.contains("no clock rate errors explain the stamps; suspects: a"), "{text}");
}
