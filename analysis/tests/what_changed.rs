//! What changed between sessions: most nodes of a class, the facts of nodes, and which nodes are still measured.

mod common;

use common::*;
use serde_json::{Value, json};
use std::fmt::Write;

const NODES: usize = 12;

/// A node in a session.
struct Cell {
    slower: f64,
    kernel: &'static str,
    memory: u32,
    is_measured: bool,
    label: &'static str,
}

impl Default for Cell {
    fn default() -> Self {
        Self { slower: 1.0, kernel: "6.1", memory: 128, is_measured: true, label: "" }
    }
}

/// Weekly sessions of seven runs on each node. Nodes differ by up to 2 %, sessions of a node and runs by .2 %.
fn csv(sessions: usize, cell: impl Fn(usize, usize) -> Cell) -> String {
    let mut csv = String::from("node,session,run,started,kernel,memory,maintenance,elapsed_s\n");
    for (node, session) in (0..NODES).flat_map(|node| (0..sessions).map(move |session| (node, session))) {
        let Cell { slower, kernel, memory, is_measured, label } = cell(node, session);
        for run in 0..if is_measured { 7 } else { 0 } {
            let place = |factor: usize, of: usize| {
                ((node * 7 + session * 5 + run * 3) * factor % of) as f64 / of as f64
            };
            let own = 0.02 * ((node * 5) % 12) as f64 / 12.0 + 0.002 * place(13, 31) + 0.002 * place(17, 29);
            let (seconds, day) = (100.0 * (1.0 + own) * slower, 1 + 4 * session);
            let _ = writeln!(
                csv,
                "n{node:02},s{},{run},2026-11-{day:02}T08:{run:02}:00Z,{kernel},{memory},{label},{seconds:.6}",
                session + 1
            );
        }
    }
    csv
}

struct Found {
    text: String,
    json: Value,
}

impl Found {
    fn of(csv: &str, args: &[&str]) -> Self {
        let folder = Folder::new();
        let file = folder.put("f.csv", csv);
        let args = [&["report", file.to_str().unwrap()], args].concat();
        let found = json(&report(&[&args[..], &["--format", "json"]].concat()));
        assert_valid("report", &found);
        Self { text: out(&report(&args)), json: found }
    }

    fn has_line(&self, start: &str) {
        assert!(self.text.lines().any(|line| line.starts_with(start)), "{start}: {}", self.text);
    }

    fn nodes(&self) -> impl Iterator<Item = &Value> {
        self.json["nodes"].as_array().unwrap().iter()
    }

    fn with_history(&self, verdict: &str) -> Vec<&str> {
        let mut nodes: Vec<&str> = self
            .nodes()
            .filter(|node| node["history"]["verdict"] == verdict)
            .map(|node| node["node"].as_str().unwrap())
            .collect();
        nodes.sort_unstable();
        nodes
    }
}

fn status(csv: &str, args: &[&str]) -> i32 {
    let folder = Folder::new();
    let file = folder.put("f.csv", csv);
    report(&[&["report", file.to_str().unwrap()], args].concat()).status.code().unwrap()
}

/// Most nodes became slower. The others did not become faster.
#[test]
fn nodes_that_did_not_change_did_not_change() {
    for (slowed, sessions) in [(6, 6), (8, 2), (8, 6), (11, 6)] {
        let slower = |node, session| if node < slowed && session + 2 >= sessions.max(3) { 1.03 } else { 1.0 };
        let csv = csv(sessions, |node, session| Cell { slower: slower(node, session), ..Cell::default() });
        let found = Found::of(&csv, &[]);
        assert_eq!(found.with_history("SLOWED").len(), slowed, "{}", found.text);
        assert_eq!(found.with_history("SAME").len(), NODES - slowed, "{}", found.text);
        assert!(found.json["classes"][0]["moved"].is_null());
        found.has_line(&format!("{slowed} of 12 nodes are slower than they were: "));
        assert_eq!(status(&csv, &["--fail-on", "slow"]), 3);
    }
    let all = csv(6, |_, session| Cell { slower: if session > 3 { 1.03 } else { 1.0 }, ..Cell::default() });
    let found = Found::of(&all, &[]);
    assert_eq!(found.with_history("SAME").len(), NODES);
    found.has_line("class 1 as a whole is 3.0 % slower than it was until 2026-11-13 (2.");
    let statuses = ["slow", "moved"].map(|what| status(&all, &["--fail-on", what]));
    assert_eq!((statuses, status(&all, &["--exit", "nagios"])), ([0, 3], 1));
}

/// With a new kernel all nodes are in another class. The report says how much slower they are, and which node is missing.
#[test]
fn a_new_kernel_hides_nothing() {
    let after = |session: usize| session >= 4;
    let csv = csv(5, |node, session| Cell {
        slower: if after(session) { 1.06 } else { 1.0 },
        kernel: if after(session) { "6.2" } else { "6.1" },
        is_measured: !(node == 5 && after(session)),
        ..Cell::default()
    });
    let by = ["--class-by", "kernel"];
    let found = Found::of(&csv, &by);
    found.has_line(
        "kernel changed from 6.1 to 6.2 on 11 nodes; the nodes are 6.0 % slower than they were until 2026-11-13 (5.",
    );
    found.has_line("12 nodes: 11 judged; 1 not in the latest session: n05");
    let changed = &found.json["reconfigured"][0];
    assert_eq!(changed["facts"], json!([{ "key": "kernel", "before": "6.1", "after": "6.2" }]));
    assert_eq!((&changed["since"], changed["nodes"].as_array().unwrap().len()), (&json!("s5"), 11));
    let presence = |presence: &str| found.nodes().filter(|node| node["presence"] == presence).count();
    assert_eq!(["PRESENT", "MISSING", "MOVED", "GONE"].map(presence), [11, 1, 11, 0]);
    assert_eq!(found.json["accounted"]["odd"], 0, "{}", found.text);
    let statuses =
        ["missing", "moved", "slow"].map(|what| status(&csv, &[&by[..], &["--fail-on", what]].concat()));
    assert_eq!(statuses, [3, 3, 0]);
}

/// Only some nodes got the new kernel: they or the others are odd, whoever are fewer now.
#[test]
fn stragglers_are_odd() {
    for (updated, odd) in [(2, "6.2"), (10, "6.1")] {
        let kernel = |node, session| if node < updated && session > 2 { "6.2" } else { "6.1" };
        let found = Found::of(
            &csv(4, |node, session| Cell { kernel: kernel(node, session), ..Cell::default() }),
            &["--class-by", "kernel"],
        );
        let nodes: Vec<&Value> = found.nodes().filter(|node| node["odd"] != json!([])).collect();
        assert_eq!(nodes.len(), 2, "{}", found.text);
        assert!(nodes.iter().all(|node| node["odd"][0]["value"] == odd), "{nodes:?}");
    }
}

/// Two nodes lost a DIMM: among themselves they are equal, among their peers they are slow. After the repair nothing is
/// odd any more.
#[test]
fn a_lost_dimm_is_no_excuse() {
    let fleet = |until: usize| {
        csv(5, move |node, session| {
            let is_lost = node < 2 && (2..until).contains(&session);
            let (slower, memory) = if is_lost { (1.08, 96) } else { (1.0, 128) };
            Cell { slower, memory, ..Cell::default() }
        })
    };
    let lost = fleet(9);
    let by = ["--class-by", "memory"];
    let found = Found::of(&lost, &by);
    for line in [
        "n00 is odd: memory is 96, its peers have 128; the node is ",
        "memory changed from 128 to 96 on 2 nodes; the nodes are",
    ] {
        found.has_line(line);
    }
    let row = found.text.lines().find(|line| line.starts_with("n00 ") && line.contains('*')).unwrap_or("");
    assert!(row.contains(" SLOW"), "{}", found.text);
    let folder = Folder::new();
    let file = folder.put("f.csv", &lost);
    let metrics =
        out(&report(&["report", file.to_str().unwrap(), "--class-by", "memory", "--format", "openmetrics"]));
    let slow = |line: &str| line.starts_with("pmmpi_nodes{verdict=\"SLOW") && !line.ends_with(" 0.0");
    assert!(metrics.lines().any(slow), "{metrics}");
    assert_eq!(metrics.matches("pmmpi_node_runs{").count(), NODES);
    let repaired = fleet(4);
    let found = Found::of(&repaired, &by);
    assert!(found.nodes().all(|node| node["odd"] == json!([])), "{}", found.text);
    found.has_line("memory changed from 96 to 128 on 2 nodes; the nodes are about 7.");
    assert_eq!(status(&repaired, &[&by[..], &["--fail-on", "slow,odd,moved"]].concat()), 0);
}

/// A slow node that was taken out does not alarm for ever.
#[test]
fn a_node_that_is_gone_is_no_alarm() {
    let fleet = |last: usize| {
        csv(6, move |node, session| Cell {
            slower: if node == 4 && session > 0 { 1.08 } else { 1.0 },
            is_measured: node != 4 || session <= last,
            ..Cell::default()
        })
    };
    for (last, slow, missing, gone) in [(5, 3, 0, 0), (4, 3, 3, 0), (3, 0, 0, 3), (2, 0, 0, 3)] {
        let statuses = ["slow", "missing", "gone"].map(|what| status(&fleet(last), &["--fail-on", what]));
        assert_eq!(statuses, [slow, missing, gone], "{last}");
    }
    let found = Found::of(&fleet(2), &["--top", "0"]);
    found.has_line("no node is slower than its class");
    found.has_line("12 nodes: 11 judged; 1 in neither of the latest two sessions: n04");
    assert!(found.text.contains("(GONE)") && !found.text.contains("drain it"), "{}", found.text);
    let drains = |found: &Found| found.nodes().filter(|node| node["suggests_drain"] == true).count();
    assert_eq!([5, 4, 2].map(|last| drains(&Found::of(&fleet(last), &[]))), [1, 0, 0]);
    assert!(Found::of(&fleet(4), &[]).text.contains("n04 in s5 +"), "it may be measured again tomorrow");
}

/// A repaired node is measured again with three others. Its history goes on, and the report says that the session is
/// small.
#[test]
fn a_small_session_counts() {
    let fleet = |label: &'static str| {
        csv(6, move |node, session| Cell {
            slower: if node == 1 && (3..5).contains(&session) { 1.08 } else { 1.0 },
            is_measured: session < 5 || node < 4,
            label: if node == 1 && session == 5 { label } else { "" },
            ..Cell::default()
        })
    };
    for label in ["", "dimm"] {
        let found = Found::of(&fleet(label), &[]);
        found.has_line("none of 12 nodes is slower than its class");
        found.has_line(
            "the latest session has 4 of the 12 nodes of class 1; the report judges these 4 by this session, and the \
             others by earlier sessions",
        );
        assert_eq!(found.with_history("SLOWED"), Vec::<&str>::new(), "{}", found.text);
        // What the repair brought is the difference to the days before it.
        assert_eq!(found.text.contains("n01 has been 7."), label == "dimm", "{}", found.text);
    }
}

/// Sessions of one day have the same date.
#[test]
fn sessions_of_one_day_are_told_by_name() {
    let fleet = csv(4, |node, session| Cell {
        slower: if node == 1 && session > 1 { 1.05 } else { 1.0 },
        ..Cell::default()
    });
    let hours = ["01", "05", "09", "13"].map(|day| format!("2026-11-{day}T"));
    let one_day = hours
        .iter()
        .zip(["08", "09", "10", "11"])
        .fold(fleet, |csv, (day, hour)| csv.replace(&format!("{day}08"), &format!("2026-11-20T{hour}")));
    let found = Found::of(&one_day, &[]);
    found.has_line("n01 is 5.0 % (at least ");
    assert!(found.text.contains(" %) slower than it was until s2"), "{}", found.text);
}

/// In a class of few nodes seconds are compared as they are, and the report says so.
#[test]
fn few_nodes_have_no_level() {
    let few = csv(4, |node, session| Cell {
        slower: if session == 3 { 1.05 } else { 1.0 },
        is_measured: node < 4,
        ..Cell::default()
    });
    let found = Found::of(&few, &[]);
    assert_eq!(found.with_history("SLOWED").len(), 4, "{}", found.text);
    assert!(found.nodes().all(|node| node["history"]["relative_to_class"] == false));
    assert!(found.text.contains(
        "; too few nodes of some classes were measured together, so the report cannot find out whether the nodes or the \
         work changed"
    ));
    let two: String = few
        .lines()
        .filter(|line| !line.starts_with("n02") && !line.starts_with("n03"))
        .fold(String::new(), |csv, line| csv + line + "\n");
    let found = Found::of(&two, &[]);
    assert!(
        found.text.contains(
            "; too few nodes of its class were measured together, so the report cannot find out whether the node or the work \
             changed"
        ),
        "{}",
        found.text
    );
}

/// A node with single slow runs in many sessions is flaky; a node with one bad session is not. A node whose habit ended with
/// its maintenance is not flaky any more.
#[test]
fn flaky_nodes_are_named() {
    let fleet = |repaired: bool| {
        let with_slow_run = |line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            let (node, session, run) = (fields[0], fields[1], fields[2]);
            let is_slow = match node {
                "n03" => !(repaired && session == "s5") && session[1..].parse() == run.parse::<usize>(),
                "n07" => session == "s2",
                _ => false,
            };
            let seconds: f64 = fields[7].parse().unwrap();
            format!("{},{:.6}\n", fields[..7].join(","), if is_slow { 1.1 * seconds } else { seconds })
        };
        let label = |node, session| if repaired && node == 3 && session == 4 { "dimm" } else { "" };
        let rows = csv(5, |node, session| Cell { label: label(node, session), ..Cell::default() });
        let (header, rows) = rows.split_once('\n').unwrap();
        rows.lines().map(with_slow_run).fold(format!("{header}\n"), |csv, line| csv + &line)
    };
    let found = Found::of(&fleet(false), &[]);
    found.has_line("1 node is flaky: n03 (5 of 35 runs are slow)");
    found.has_line("1 node was slow in earlier sessions: n07 (10.2 % slower in s2)");
    let flaky = &found.json["flaky"];
    assert_eq!(
        (&flaky[0]["node"], &flaky[0]["slow_runs"], &flaky[0]["runs"], &flaky[1]),
        (&json!("n03"), &json!(5), &json!(35), &Value::Null)
    );
    let folder = Folder::new();
    let status = |csv: &str, args: &[&str]| {
        let file = folder.put("f.csv", csv);
        report(&[&["report", file.to_str().unwrap()], args].concat())
    };
    assert_eq!(status(&fleet(false), &["--fail-on", "flaky"]).status.code(), Some(3));
    assert_eq!(status(&fleet(false), &["--exit", "nagios"]).status.code(), Some(1));
    let metrics = out(&status(&fleet(false), &["--format", "openmetrics"]));
    assert!(
        metrics.contains("pmmpi_node_flaky_runs_ratio{node=\"n03\",") && metrics.contains("} 0.142857"),
        "{metrics}"
    );
    let repaired = fleet(true);
    assert_eq!(Found::of(&repaired, &[]).json["flaky"], json!([]));
    assert_eq!(status(&repaired, &["--fail-on", "flaky"]).status.code(), Some(0));
}

/// A node that is measured alone cannot be compared: no sentence says that its latest session judges it.
#[test]
fn a_session_of_one_node_judges_nobody() {
    let found = Found::of(
        &csv(3, |node, session| Cell {
            slower: if session == 2 { 1.08 } else { 1.0 },
            is_measured: session < 2 || node == 3,
            ..Cell::default()
        }),
        &[],
    );
    found.has_line(
        "the latest session has 1 of the 12 nodes of class 1, too few for a comparison: the report judges all nodes by \
         earlier sessions",
    );
    assert_eq!(found.json["classes"][0]["judged_by_latest_session"], 0);
}

/// A node that was slow for some sessions is as before again; the latest session has no date, so sessions are in the order
/// of their names and no date is shown.
#[test]
fn a_time_that_is_over_is_told() {
    let fleet = |is_dated: bool| {
        let rows = csv(8, |node, session| Cell {
            slower: match node {
                3 if (3..7).contains(&session) => 1.06,
                5 if session > 4 => 1.05,
                _ => 1.0,
            },
            ..Cell::default()
        });
        let without_date = |line: &str| {
            let mut fields: Vec<&str> = line.split(',').collect();
            let at = rows.lines().next().unwrap().split(',').position(|name| name == "started").unwrap();
            if fields[1] == "s8" && !is_dated {
                fields[at] = "";
            }
            fields.join(",") + "\n"
        };
        rows.lines().map(without_date).collect::<String>()
    };
    for (is_dated, until) in [(true, "until 2026-11-17"), (false, "until s5")] {
        let found = Found::of(&fleet(is_dated), &[]);
        found.has_line("1 node was slow in earlier sessions: n03 (6.0 % slower in s4 to s7)");
        assert!(found.text.contains(&format!(" %) slower than it was {until}")), "{}", found.text);
        let node = found.nodes().find(|node| node["node"] == "n03").unwrap();
        let history = &node["history"];
        assert_eq!((&history["verdict"], &history["bad_periods"]), (&json!("SAME"), &json!([["s4", "s7"]])));
        assert!(
            history["change"].as_f64().unwrap().abs() < 0.01 && history["p_adjusted"].as_f64() > Some(0.01)
        );
    }
}

/// The latest session has only one node. No comparison is possible there, so the report gives the node's seconds.
#[test]
fn a_node_measured_again_alone_is_told_in_seconds() {
    let fleet = csv(5, |node, session| Cell {
        slower: if node == 3 && session == 4 { 1.08 } else { 1.0 },
        is_measured: session < 4 || node == 3,
        ..Cell::default()
    });
    let found = Found::of(&fleet, &[]);
    let line = "the report judges all nodes by earlier sessions; the column HISTORY ignores the latest session; \
                without a correction for the class, n03 is 8.";
    assert!(found.text.contains(line), "{}", found.text);
    let again = &found.json["classes"][0]["measured_again"][0];
    assert_eq!(
        (&again["node"], &again["session"], &again["session_before"]),
        (&json!("n03"), &json!("s5"), &json!("s4"))
    );
    assert!((again["change"].as_f64().unwrap() - 0.08).abs() < 0.01, "{again}");
}
