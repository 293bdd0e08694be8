//! Suspects of a session that are measured again in later sessions.

use super::{codes, counted, of_csv};
use serde_json::json;
use std::ops::Range;

/// Nodes with seven runs in a session; the slow ones are 8 % slow.
fn measured(
    name: &'static str,
    nodes: Range<usize>,
    slow: Range<usize>,
) -> Vec<(String, usize, &'static str, f64)> {
    let of_node = |node: usize| {
        let by = if slow.contains(&node) { 1.08 } else { 1.0 };
        let level = if name == "s1" { 1.0 } else { 1.3 };
        let time = move |run: usize| level * by * (1.0 + 0.0005 * ((run * 5 + node * 3) % 7) as f64);
        (0..7).map(move |run| (format!("n{node:02}"), run, name, time(run)))
    };
    nodes.flat_map(of_node).collect()
}

/// Suspects that are measured again need other nodes beside them.
#[test]
fn suspects_measured_again_keep_their_verdict_or_get_a_new_one() {
    let verdicts = |again: Range<usize>, slow_again: Range<usize>| {
        let rows = [measured("s1", 0..40, 0..4), measured("s2", again, slow_again)].concat();
        let found = of_csv(counted(&rows));
        let of = |node: usize| {
            let name = format!("n{node:02}");
            let row = found["nodes"].as_array().unwrap().iter().find(|row| row["node"] == name).unwrap();
            (row["verdict"].as_str().unwrap().to_owned(), row["session"].as_str().unwrap().to_owned())
        };
        ((0..5).map(of).collect::<Vec<_>>(), codes(&found).contains(&"few-anchors"))
    };
    let [slow, ok] = ["SLOW", "OK"].map(str::to_owned);
    let both = |verdict: &String, session: &str| (verdict.clone(), session.to_owned());
    // Alone: no acquittal.
    let (alone, warned) = verdicts(0..4, 0..4);
    assert!(alone[..4].iter().all(|found| *found == both(&slow, "s1")) && warned, "{alone:?}");
    // With four others: two are mended, two are not.
    let (again, warned) = verdicts(0..8, 0..2);
    assert_eq!(again[..2], [both(&slow, "s2"), both(&slow, "s2")]);
    assert_eq!(again[2..], [both(&ok, "s2"), both(&ok, "s2"), both(&ok, "s2")]);
    assert!(!warned);
}

/// Of several sessions that cannot judge, a warning names one; a node that was only there has no verdict and a reason.
#[test]
fn sessions_of_suspects_are_said_once() {
    let rows = [
        measured("s1", 0..40, 0..4),
        measured("s2", 0..4, 0..4),
        measured("s3", 0..3, 0..4),
        measured("s4", 0..4, 0..4),
        measured("s4", 50..51, 0..4),
    ];
    let found = of_csv(counted(&rows.concat()));
    let warnings = found["warnings"].as_array().unwrap();
    let few: Vec<&str> = warnings
        .iter()
        .filter(|warning| warning["code"] == "few-anchors")
        .map(|warning| warning["message"].as_str().unwrap())
        .collect();
    assert_eq!(few.len(), 1, "{few:?}");
    for part in ["session s4 has 4 suspects", "0 nodes that were OK", "in 2 earlier sessions, no comparison"]
    {
        assert!(few[0].contains(part), "{few:?}");
    }
    let new = found["nodes"].as_array().unwrap().iter().find(|node| node["node"] == "n50").unwrap();
    assert!(new["verdict"].is_null());
    for key in ["verdict", "cause"] {
        let reason = new["null_reasons"][key].as_str().unwrap();
        assert!(reason.contains("suspects of earlier sessions"), "{reason}");
    }
}

/// The counts of other suspects are no reference, those of many other nodes are.
#[test]
fn suspects_have_a_cause_if_most_nodes_beside_them_were_ok() {
    let cause = |others: usize| {
        let rows = [measured("s1", 0..40, 0..5), measured("s2", 0..5 + others, 0..5)].concat();
        let mut csv =
            "node,run,session,elapsed_s,cpus,instructions,cycles,ref_cycles,task_clock_ns\n".to_owned();
        for (node, run, session, seconds) in rows {
            // Slow nodes have more instructions.
            let work =
                if node.as_str() < "n05" { 1.08 } else { 1.0 } * if session == "s1" { 1.0 } else { 1.3 };
            let counts = [4e9 * work, 2e9 * work, 2e9 * seconds].map(|count| count as u64);
            let [instructions, cycles, ref_cycles] = counts;
            csv += &format!(
                "{node},{run},{session},{seconds:.6},1,{instructions},{cycles},{ref_cycles},{}\n",
                (seconds * 1e9) as u64
            );
        }
        let found = of_csv(csv);
        let node = found["nodes"].as_array().unwrap().iter().find(|node| node["node"] == "n00").unwrap();
        assert_eq!((&node["verdict"], &node["session"]), (&json!("SLOW"), &json!("s2")), "{node}");
        node.clone()
    };
    let most = cause(10);
    assert_eq!(most["cause"], "instructions", "{most}");
    let few = cause(4);
    assert!(few["cause"].is_null() && few["terms"].as_object().unwrap().is_empty(), "{few}");
    assert!(few["null_reasons"]["cause"].as_str().unwrap().contains("not a valid reference"), "{few}");
}
