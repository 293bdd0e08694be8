//! Reads each format of `pmmpi report` other than text and JSON with other programs: the csv crate, Python's XML
//! parser, and the two parsers of Prometheus' own client.

mod common;
#[path = "common/runs.rs"]
mod runs;

use common::*;
use pmmpi::record::Run;
use runs::run;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

const FORMATS: [&str; 4] = ["csv", "md", "html", "openmetrics"];
/// Names that could break a line, a terminal, a table or a page, or become a formula, a label, a mention or reversed
/// text.
const HOSTILE: [&str; 8] = [
    "a\nfake,row|x",
    "a\x1b[2J\r\x07\u{9b}",
    "a|`b`\\|c\\",
    "<script>alert(1)</script>&amp;\"'",
    "=HYPERLINK(\"http://x\")",
    "a\\\"} 7\n# EOF",
    "@everyone [a](b) **c** www.example.org",
    "\u{202e}edoc\u{2066}\u{2028}\u{feff}",
];

/// Five runs of each node, each in a session of its own. A node has a name and a factor of its time.
fn fleet(nodes: &[(String, f64)]) -> Vec<Run> {
    let runs = |(at, (name, factor)): (usize, &(String, f64))| {
        let time = |number: i64| {
            let steps = ((at * 7) % 11) as i64 * 100_000 + ((number * 3 + at as i64) % 5) * 200_000;
            ((1_000_000_000 + steps) as f64 * factor) as i64
        };
        let of = |number: i64| {
            let stamps = [0, 0, time(number), time(number)];
            let mut run = run(&format!("r{at:02}-{number}"), &[(name.as_str(), stamps)]);
            run.header.labels.clear();
            run
        };
        (0..5).map(of).collect::<Vec<Run>>()
    };
    nodes.iter().enumerate().flat_map(runs).collect()
}

fn healthy(count: usize) -> Vec<(String, f64)> {
    (0..count).map(|at| (format!("n{at:02}"), 1.0)).collect()
}

/// 24 nodes with two slow ones, and a slow run.
fn with_verdicts() -> Vec<Run> {
    let mut nodes = healthy(24);
    (nodes[5].1, nodes[9].1) = (1.08, 1.05);
    let mut runs = fleet(&nodes);
    let slow = runs.iter_mut().find(|run| run.header.run_id == "r03-1").unwrap();
    slow.ranks[0].stamps = [0, 0, 1_300_000_000, 1_300_000_000].try_into().unwrap();
    runs
}

/// Nodes, runs, programs and sessions with hostile names.
fn hostile() -> Vec<Run> {
    let mut nodes = healthy(20);
    nodes.extend(HOSTILE.map(|name| (name.to_owned(), 1.2)));
    nodes.push(("x".repeat(10_000), 1.1));
    nodes.push(("x".repeat(10_000) + "y", 1.1));
    let mut runs = fleet(&nodes);
    for (number, run) in runs.iter_mut().enumerate() {
        let name = HOSTILE[number % HOSTILE.len()];
        run.header.command = vec!["./prog".into(), HOSTILE.concat()];
        run.header.labels = vec![("session".into(), HOSTILE[0].into())];
        // A run id is also a file name.
        run.header.run_id = format!("{name}{number}").replace('/', "");
    }
    runs
}

/// Writes run files under names of their own.
fn written(runs: &[Run]) -> Folder {
    let folder = Folder::new();
    for (number, run) in runs.iter().enumerate() {
        std::fs::rename(folder.write(run), folder.path().join(format!("{number}.pmr"))).unwrap();
    }
    folder
}

fn rendered(folder: &Folder, format: &str, more: &[&str]) -> Output {
    report(&[&["report", folder.path().to_str().unwrap(), "--format", format], more].concat())
}

fn said(folder: &Folder, format: &str, more: &[&str]) -> String {
    let output = rendered(folder, format, more);
    assert!(output.status.success(), "{format}: {}", err(&output));
    out(&output)
}

/// What formats.py reads from the given expositions and pages.
fn read_by_others(openmetrics: &[&str], pages: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats.py");
    // As in reference.rs: Debian's own Python.
    let mut python = std::process::Command::new("/usr/bin/python3")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("/usr/bin/python3: `make deps-test` installs it");
    let ask = json!({"openmetrics": openmetrics, "pages": pages});
    python.stdin.take().unwrap().write_all(ask.to_string().as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "`make deps-test` installs python3-prometheus-client; Python said: {errors}"
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn array<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap()
}

/// The first column of the table below a heading of docs/report.md.
fn documented(heading: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/report.md");
    let text = std::fs::read_to_string(path).unwrap();
    let section = text.split(&format!("\n### {heading}\n")).nth(1).unwrap().split("\n### ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.split('`').nth(1).unwrap().to_owned()).collect()
}

fn table(csv: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let cells = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect::<Vec<String>>();
    let header = cells(reader.headers().unwrap());
    (header, reader.records().map(|record| cells(&record.unwrap())).collect())
}

#[test]
fn csv_has_all_that_the_json_says_of_nodes() {
    let folder = written(&with_verdicts());
    let report = json(&rendered(&folder, "json", &[]));
    assert_valid("report", &report);
    let (header, rows) = table(&said(&folder, "csv", &["--top", "2"]));
    assert_eq!(header, documented("csv"));
    let nodes = array(&report, "nodes");
    assert_eq!(rows.len(), nodes.len());
    for (row, node) in rows.iter().zip(nodes) {
        for (column, cell) in header.iter().zip(row) {
            let value = match column.as_str() {
                "ci_low_s" => &node["ci_s"][0],
                "ci_high_s" => &node["ci_s"][1],
                key if key.starts_with("history_") && key != "history_score" => {
                    &node["history"][&key["history_".len()..]]
                }
                // An odd node has these; each has a text of its own.
                "facts_changed" => {
                    assert_eq!((cell.as_str(), &node["facts_changed"]), ("", &serde_json::json!([])));
                    continue;
                }
                "odd" | "as_member_slowdown" | "as_member_verdict" => {
                    assert_eq!((cell.as_str(), node["odd"].as_array().unwrap().len()), ("", 0));
                    continue;
                }
                key => node.get(key).unwrap_or_else(|| panic!("{key}")),
            };
            match value {
                Value::Null => assert_eq!(cell, "", "{column}"),
                Value::Number(number) => {
                    let (found, expected) = (cell.parse::<f64>().unwrap(), number.as_f64().unwrap());
                    // serde_json may change the last digit.
                    let off = (found - expected).abs();
                    assert!(off <= 1e-15 * expected.abs() + f64::MIN_POSITIVE, "{column}: {cell} {value}");
                }
                Value::String(text) => assert_eq!(cell, text, "{column}"),
                value => assert_eq!(cell, &value.to_string(), "{column}"),
            }
        }
    }
    // The CSV lacks only those values of the JSON that are not single values.
    let of_json: BTreeSet<&str> = nodes[0].as_object().unwrap().keys().map(String::as_str).collect();
    let of_csv: BTreeSet<&str> = header.iter().map(String::as_str).collect();
    let left: Vec<_> = of_json.difference(&of_csv).collect();
    assert_eq!(left, [&"ci_s", &"history", &"null_reasons", &"term_parts", &"terms"]);
    assert_eq!(&rows[0][header.iter().position(|column| column == "verdict").unwrap()], "SLOW");
}

#[test]
fn the_exposition_is_what_two_parsers_of_prometheus_read() {
    let folder = written(&with_verdicts());
    let report = json(&rendered(&folder, "json", &[]));
    let text = said(&folder, "openmetrics", &["--top", "2"]);
    let found = read_by_others(&[&text], &[]);
    let (new, old) = (&found["openmetrics"][0], &found["prometheus"][0]);
    for (name, family) in new.as_object().unwrap() {
        assert_eq!(
            (&family["samples"], &family["help"]),
            (&old[name]["samples"], &old[name]["help"]),
            "{name}"
        );
        assert_eq!((family["type"].as_str(), old[name]["type"].as_str()), (Some("gauge"), Some("gauge")));
        let unit = ["seconds", "ratio"].into_iter().find(|unit| name.ends_with(unit)).unwrap_or_default();
        assert_eq!(family["unit"], unit, "{name}");
        assert!(
            array(family, "samples")
                .iter()
                .all(|sample| sample["timestamp"].is_null() && sample["name"] == **name)
        );
    }
    let known = documented("openmetrics");
    assert!(new.as_object().unwrap().keys().all(|name| known.contains(name)), "{known:?}");
    // Its values equal those of the JSON.
    let values = |name: &str, label: &str| -> BTreeMap<String, f64> {
        let samples = array(&new[name], "samples").iter();
        samples.map(|s| (s["labels"][label].as_str().unwrap().into(), s["value"].as_f64().unwrap())).collect()
    };
    let expected = |list: &str, label: &str, value: &dyn Fn(&Value) -> f64| -> BTreeMap<String, f64> {
        array(&report, list).iter().map(|row| (row[label].as_str().unwrap().into(), value(row))).collect()
    };
    for key in ["slowdown", "slower_by_at_least"] {
        let of_nodes = expected("nodes", "node", &|node| node[key].as_f64().unwrap());
        assert_eq!(values(&format!("pmmpi_node_{key}_ratio"), "node"), of_nodes);
    }
    let medians = expected("nodes", "node", &|node| node["median_s"].as_f64().unwrap());
    assert_eq!(values("pmmpi_node_median_seconds", "node"), medians);
    for end in ["lower", "upper"] {
        let of_runs =
            expected("runs", "run_id", &|run| run["elapsed"][format!("{end}_ns")].as_f64().unwrap() / 1e9);
        assert_eq!(values(&format!("pmmpi_run_elapsed_{end}_seconds"), "run_id"), of_runs);
    }
    let counts = values("pmmpi_nodes", "verdict");
    assert_eq!((counts["SLOW"], counts["OK"], counts["SUSPECT"], counts["NONE"]), (2.0, 22.0, 0.0, 0.0));
    let slow: Vec<&Value> = array(&new["pmmpi_node_verdict"], "samples")
        .iter()
        .filter(|sample| sample["labels"]["verdict"] == "SLOW")
        .map(|sample| &sample["labels"]["node"])
        .collect();
    assert_eq!(slow, ["n05", "n09"]);
    assert_eq!(new["pmmpi_slow_runs"]["samples"][0]["value"], 1.0);
}

/// A database of metrics would keep each old series.
#[test]
fn another_session_begins_no_time_series_of_a_value() {
    const NODES: usize = 12;
    let series = |session: &str| -> BTreeSet<String> {
        let mut runs = fleet(&healthy(NODES));
        runs.iter_mut().for_each(|run| run.header.labels = vec![("session".into(), session.into())]);
        let text = said(&written(&runs), "openmetrics", &[]);
        let samples = text.lines().filter(|line| line.starts_with("pmmpi_node"));
        samples.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
    };
    let (first, second) = (series("s1"), series("s2"));
    assert!(first.len() > 2 * NODES, "{first:?}");
    let of_one: Vec<&String> = first.symmetric_difference(&second).collect();
    assert!(of_one.iter().all(|series| series.starts_with("pmmpi_node_info{node=")), "{of_one:?}");
    assert_eq!(of_one.len(), 2 * NODES);
}

/// An element that a page may contain, with attributes that run nothing and link nowhere.
fn is_harmless(element: &str, attributes: &serde_json::Map<String, Value>) -> bool {
    const ELEMENTS: &str = "html head meta title style body h1 h2 p figure figcaption svg rect line path text \
        table thead tbody tr th td code dl dt dd ul li br small";
    const ATTRIBUTES: &str = "lang charset http-equiv content name class scope viewBox role x y x1 x2 y1 y2 \
        width height text-anchor d";
    let known = |all: &str, name: &str| all.split_whitespace().any(|known| known == name);
    known(ELEMENTS, element) && attributes.keys().all(|name| known(ATTRIBUTES, name))
}

#[test]
fn hostile_names_stay_names() {
    let folder = written(&hostile());
    let nodes = json(&rendered(&folder, "json", &[]))["nodes"].as_array().unwrap().len();
    assert_eq!(nodes, 30);
    let [csv, md, html, openmetrics] = FORMATS.map(|format| said(&folder, format, &["--top", "0"]));
    for text in [&csv, &md, &html, &openmetrics] {
        let steers = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{2066}\u{2028}".contains(c);
        assert!(!text.chars().any(steers), "{text}");
    }
    // One node per line, and no formula.
    let (header, rows) = table(&csv);
    assert_eq!((rows.len(), csv.lines().count()), (nodes, nodes + 1));
    assert!(rows.iter().all(|row| row.len() == header.len()));
    for column in [0, 1, 2, 4] {
        assert!(rows.iter().all(|row| !row[column].starts_with(['=', '+', '-', '@'])), "{csv}");
    }
    assert!(rows.iter().any(|row| row[0] == "'=HYPERLINK(\"http://x\")"), "{csv}");
    // Every row of the table of nodes has its verdict in the last column.
    let of_nodes: Vec<&str> =
        md.lines().skip_while(|line| !line.starts_with("| Node")).take(nodes + 2).collect();
    assert!(of_nodes[2..].iter().all(|row| row.ends_with(" |") && row.contains(" % | ")), "{md}");
    assert!(of_nodes[2..].iter().all(|row| row.ends_with("SLOW** | - |")
        || row.ends_with("TAIL** | - |")
        || row.ends_with("OK | - |")));
    assert!(!md.contains("\n- c") && md.contains("``a\\|`b`\\\\\\|c\\``"), "{md}");
    let found = read_by_others(&[&openmetrics], &[&html]);
    for element in found["pages"][0].as_array().unwrap() {
        let (name, attributes) = (element[0].as_str().unwrap(), element[1].as_object().unwrap());
        assert!(is_harmless(name, attributes), "{element}");
    }
    let texts: Vec<&str> =
        found["pages"][0].as_array().unwrap().iter().map(|e| e[2].as_str().unwrap()).collect();
    assert!(texts.contains(&"<script>alert(1)</script>&amp;\"'"), "{texts:?}");
    let medians = array(&found["openmetrics"][0]["pmmpi_node_median_seconds"], "samples");
    assert_eq!(medians.len(), nodes, "two long names that differ at their ends are two");
    let values = medians.iter().flat_map(|sample| sample["labels"].as_object().unwrap().values());
    assert!(values.clone().all(|value| value.as_str().unwrap().chars().count() <= 128));
    assert!(values.into_iter().any(|value| value == "<script>alert(1)</script>&amp;\"'"));
}

/// A run that still runs has neither a node nor bounds.
#[test]
fn a_report_without_nodes_is_whole() {
    let folder = Folder::new();
    let (_, _, _spool) = folder.begin("live", 2);
    let [csv, md, html, openmetrics] = FORMATS.map(|format| said(&folder, format, &[]));
    assert_eq!(table(&csv), (documented("csv"), vec![]));
    assert!(md.starts_with("**no node can be compared: no run has a valid elapsed time**\n"), "{md}");
    assert!(
        md.contains("| `live` | 22:13:20 | not complete: pmmpi did not see the end: the program may still be running |"),
        "{md}"
    );
    let found = read_by_others(&[&openmetrics], &[&html]);
    let families = found["openmetrics"][0].as_object().unwrap();
    assert!(!families.contains_key("pmmpi_run_elapsed_lower_seconds"), "{openmetrics}");
    assert_eq!(families["pmmpi_run_missing_ranks"]["samples"][0]["value"], 2.0);
    assert!(openmetrics.ends_with("\n# EOF\n"));
}

#[test]
fn warnings_are_in_the_result_or_beside_it() {
    let folder = written(&fleet(&healthy(3))[..7]);
    for format in FORMATS {
        let output = rendered(&folder, format, &[]);
        let is_beside = matches!(format, "csv" | "openmetrics");
        let place = if is_beside { err(&output) } else { out(&output) };
        assert!(
            place.contains("n01 has only 2 runs in the session that judges it, but the report needs 5")
                && place.contains("few-runs"),
            "{format}: {place}"
        );
        assert_eq!(err(&output).is_empty(), !is_beside, "{format}: {}", err(&output));
        assert!(err(&output).lines().all(|line| line.starts_with("pmmpi: warning: ")));
    }
    assert!(said(&folder, "openmetrics", &[]).contains("pmmpi_warnings{code=\"few-runs\"} 1.0\n"));
}

#[test]
fn top_is_for_people() {
    let folder = written(&with_verdicts());
    for format in FORMATS {
        let mention = |top| said(&folder, format, &["--top", top]).matches("n17").count();
        let (few, all) = (mention("3"), mention("0"));
        assert!(all > 0 && if matches!(format, "md" | "html") { few == 0 } else { few == all }, "{format}");
    }
    let few = said(&folder, "md", &["--top", "3"]);
    assert!(few.contains("... and 21 more rows (--top 0 shows all)"), "{few}");
    assert!(few.contains("... and 117 earlier runs (--top 0 shows all)"), "{few}");
}

/// Users paste this into tickets. If a change is intended, the failure message contains the whole new text.
#[test]
fn markdown_is_as_it_was() {
    let folder = written(&with_verdicts());
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/report.md");
    let found = said(&folder, "md", &["--top", "4"]).replace(folder.path().to_str().unwrap(), "FOLDER");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{}:\n{found}", path.display());
}

/// A plot for each class with nodes to compare, in which slow nodes have labels.
#[test]
fn a_page_shows_where_nodes_lie() {
    let folder = written(&with_verdicts());
    let html = said(&folder, "html", &[]);
    let found = read_by_others(&[], &[&html]);
    let elements = found["pages"][0].as_array().unwrap();
    let texts_of = |name: &str| -> Vec<&str> {
        elements.iter().filter(|e| e[0] == name).map(|e| e[2].as_str().unwrap()).collect()
    };
    let captions = [
        "Class 1: slowdown of 24 nodes, each relative to the median of the other nodes",
        "Class 1, 120 runs. The horizontal axis shows how much slower a run is than the fastest run; the \
         vertical axis shows the share of the runs that are slower by at most this value.",
    ];
    assert_eq!(texts_of("figcaption"), captions);
    let texts = texts_of("text");
    assert!(
        texts[0].starts_with("n05 +8.") && texts[0].ends_with(" SLOW") && texts[1].starts_with("n09 "),
        "{texts:?}"
    );
    assert!(texts.contains(&"median"), "{texts:?}");
    assert!(texts_of("h1")[0].starts_with("2 of 24 nodes are slower than their class: n05 +"), "{html}");
    let policy = elements.iter().find(|e| e[1]["http-equiv"] == "Content-Security-Policy").unwrap();
    assert!(policy[1]["content"].as_str().unwrap().starts_with("default-src 'none'"));
    assert!(html.matches("http://").count() == html.matches("http://www.w3.org/2000/svg").count());
    let small = written(&fleet(&healthy(2)));
    assert!(!said(&small, "html", &[]).contains("<svg"));
}

/// The names of these nodes differ only in their ends.
#[test]
fn labels_of_plots_tell_nodes_with_long_names_apart() {
    let folder = Folder::new();
    let mut csv = String::from("node,run,elapsed_s\n");
    for node in 0..24 {
        let level = if node < 2 { 1.3 } else { 1.0 };
        for run in 0..7 {
            let seconds = level * (1.0 + 0.0005 * f64::from((run * 5 + node) % 7));
            csv += &format!("supercomputing-centre-of-the-north-partition-a-{node:04},{run},{seconds}\n");
        }
    }
    folder.put("times.csv", csv);
    let html = said(&folder, "html", &[]);
    for node in ["0000", "0001"] {
        assert!(html.contains(&format!(">supercomputing-centre-of-the-nort..-{node} +")), "{html}");
    }
}

/// Times that no clock gives are shown with as few digits as others.
#[test]
fn numbers_of_any_size_are_short() {
    let folder = Folder::new();
    let mut csv = String::from("node,run,elapsed_s\n");
    for (node, seconds) in
        [("a", "1e300"), ("b", "1.1e300"), ("c", "1.5e305"), ("d", "1e-300"), ("e", "1e-9")]
    {
        (0..5).for_each(|run| csv += &format!("{node},{run},{seconds}\n"));
    }
    folder.put("times.csv", csv);
    for format in ["text", "md", "html"] {
        let text = said(&folder, format, &[]);
        let longest = text.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap();
        assert!(longest < 12 && text.contains("1.0000e300"), "{format}: {text}");
    }
}

#[test]
fn bounds_has_text_and_json_alone() {
    for format in FORMATS {
        let output = report(&["bounds", "/dev/null", "--format", format]);
        assert_eq!(output.status.code(), Some(2));
        assert!(err(&output).contains("--format"), "{}", err(&output));
    }
}

/// Runs `pmmpi-report` in a pseudo-terminal of 80 columns.
fn on_a_terminal(path: &Path, more: &str) -> String {
    let report = env!("CARGO_BIN_EXE_pmmpi-report");
    let command = format!("stty cols 80 rows 24; exec {report} report {} {more}", path.display());
    let output = std::process::Command::new("script")
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .env("PMMPI_TRUST", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", out(&output));
    out(&output).replace('\r', "")
}

/// Words stay whole on a terminal; a pipe and a file get whole lines.
#[test]
fn lines_fit_a_terminal() {
    let folder = written(&with_verdicts());
    let regions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/samples/regions");
    for path in [folder.path(), &regions] {
        let piped = out(&report(&["report", path.to_str().unwrap(), "--top", "3"]));
        let shown = on_a_terminal(path, "--top 3");
        assert!(piped.lines().any(|line| line.chars().count() > 100), "{piped}");
        let is_row = |line: &str| line.trim().contains("  "); // of a table: as wide as its values
        assert!(shown.lines().all(|line| line.chars().count() <= 80 || is_row(line)), "{shown}");
        assert!(shown.split_whitespace().eq(piped.split_whitespace()), "{shown}\n{piped}");
        let file = folder.path().join("report.txt");
        on_a_terminal(path, &format!("--top 3 -o {}", file.display()));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), piped);
        std::fs::remove_file(file).unwrap();
    }
}
