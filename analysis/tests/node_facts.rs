//! Facts of nodes that make up no class: memory modules, links, governors; and what kernels count during runs.

mod common;
#[path = "common/runs.rs"]
#[expect(dead_code)]
mod runs;

use common::*;
use pmmpi::node::{CpuSet, FACTS, HEALTH_COUNTS, HealthCount, USAGE_COUNTS, count_name};
use pmmpi::record::Run;
use runs::run;
use serde_json::{Value, json};

/// docs/report.md explains every fact and count.
#[test]
fn the_page_has_all_facts_and_counts() {
    let page = include_str!("../../docs/report.md");
    for (name, meaning) in FACTS.iter().chain(&HEALTH_COUNTS).chain(&USAGE_COUNTS) {
        let row = format!("| `{name}` | {meaning} |");
        assert!(page.lines().any(|line| line == row), "docs/report.md has no row: {row}");
    }
}

const S: i64 = 1_000_000_000;

/// One run of a node. The start is in the order of the numbers.
fn measured(node: usize, session: usize, number: usize, slower: f64) -> Run {
    let place = (node * 7 + number * 3 + session) % 11;
    let seconds = 100.0 * slower * (1.0 + 0.0002 * place as f64 + 0.0004 * (node % 5) as f64);
    let name = format!("n{node:02}");
    let took = (seconds * S as f64) as i64;
    let mut run = run(&format!("r-{session}-{node:02}-{number}"), &[(&name, [0, S, S + took, 2 * S + took])]);
    run.header.labels.push(("session".into(), format!("s{session}")));
    run.header.started_unix_ns += (session as i64 * 1_000_000 + number as i64 * 1000 + node as i64) * S;
    set(&mut run, "dimms", "8 x 65536 MiB at 4800 MT/s");
    set(&mut run, "pcie_adapters", "1 x 32.0 GT/s PCIe x16");
    run.nodes[0].facts.as_mut().unwrap().settings.governor = Some("performance".into());
    run
}

fn set(run: &mut Run, fact: &str, value: &str) {
    run.nodes[0].facts.as_mut().unwrap().inventory.set(fact, value.into());
}

fn add(run: &mut Run, name: &str, added: u64, place: &str) {
    let added_at = if added > 0 { vec![(place.to_owned(), added)] } else { Vec::new() };
    let count = HealthCount { name: count_name(name), places: 2, before: 5, added: Some(added), added_at };
    run.nodes[0].health.push(count);
}

/// 12 nodes, 3 sessions of 5 runs, changed by `change`: node, session.
fn fleet(folder: &Folder, change: impl Fn(usize, usize) -> (f64, Box<dyn Fn(&mut Run)>)) {
    for (node, session) in (0..12).flat_map(|node| (0..3).map(move |session| (node, session))) {
        let (slower, change) = change(node, session);
        for number in 0..5 {
            let mut run = measured(node, session, number, slower);
            add(&mut run, "socket_throttles", 0, "socket 0");
            change(&mut run);
            folder.write(&run);
        }
    }
}

fn none(_: &mut Run) {}

fn archive_of(folder: &Folder) -> Folder {
    let archive = Folder::new();
    let [from, to] = [folder, &archive].map(|folder| folder.path().to_str().unwrap().to_owned());
    let export = report(&["export", &from, "-o", &to]);
    assert!(export.status.success(), "{}", err(&export));
    archive
}

fn of<'a>(report: &'a Value, node: &str) -> &'a Value {
    let nodes = report["nodes"].as_array().unwrap();
    nodes.iter().find(|found| found["node"] == node).unwrap_or_else(|| panic!("{node} in {report:#}"))
}

/// n03 loses a memory module after the first session, and n05 has another governor from the beginning. Both stay in
/// their class. A node whose facts are not readable is not odd.
#[test]
fn a_node_that_differs_is_odd_in_its_own_class() {
    let folder = Folder::new();
    fleet(&folder, |node, session| match (node, session) {
        (3, 1..) => (1.08, Box::new(|run| set(run, "dimms", "7 x 65536 MiB at 4800 MT/s"))),
        (5, _) => (
            1.0,
            Box::new(|run| run.nodes[0].facts.as_mut().unwrap().settings.governor = Some("powersave".into())),
        ),
        (7, _) => (1.0, Box::new(|run| run.nodes[0].facts.as_mut().unwrap().inventory = Default::default())),
        _ => (1.0, Box::new(none)),
    });
    let path = folder.path().to_str().unwrap();
    let found = json(&report(&["report", path, "--format", "json"]));
    assert_valid("report", &found);
    let dimms = json!([{ "key": "dimms", "value": "7 x 65536 MiB at 4800 MT/s", "class_value": "8 x 65536 MiB at 4800 MT/s" }]);
    assert_eq!(of(&found, "n03")["odd"], dimms);
    assert_eq!(of(&found, "n03")["history"]["verdict"], "SLOWED", "the history goes on: {found:#}");
    assert_eq!(
        of(&found, "n05")["odd"],
        json!([{ "key": "governor", "value": "powersave", "class_value": "performance" }])
    );
    assert!(of(&found, "n05")["verdict"] == "OK" && of(&found, "n07")["odd"] == json!([]));
    let accounted = &found["accounted"];
    assert_eq!(
        (&accounted["odd"], &accounted["judged"]),
        (&json!(0), &json!(12)),
        "both are judged: {accounted}"
    );
    for (level, status) in [("odd", 3), ("wrong", 0)] {
        assert_eq!(report(&["report", path, "--fail-on", level]).status.code(), Some(status), "{level}");
    }
    let [changed] = found["reconfigured"].as_array().unwrap().as_slice() else { panic!("{found:#}") };
    assert_eq!(changed["nodes"], json!(["n03"]));
    assert_eq!(
        changed["facts"],
        json!([{ "key": "dimms", "before": "8 x 65536 MiB at 4800 MT/s", "after": "7 x 65536 MiB at 4800 MT/s" }])
    );
    assert!((changed["change"].as_f64().unwrap() - 0.08).abs() < 0.01 && changed["since"] == "s1");
    let text = out(&report(&["report", path]));
    for line in [
        "dimms changed from 8 x 65536 MiB at 4800 MT/s to 7 x 65536 MiB at 4800 MT/s on n03; the node is about 8.",
        "n05 is odd: governor is powersave, its peers have performance",
    ] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line}: {text}");
    }
}

/// n04 throttles and is slow: the kernel's count is the cause, because nothing else was counted. n06 throttles as
/// much and is not slow.
#[test]
fn what_the_kernel_counts_is_a_cause() {
    let folder = Folder::new();
    fleet(&folder, |node, session| match (node, session) {
        (4, 2) => (1.12, Box::new(|run| add(run, "core_throttles", 214, "core of cpu 3"))),
        (6, 2) => (1.0, Box::new(|run| add(run, "memory_errors_corrected", 3, "mc1"))),
        // As many small pages as this can cost the time, and too few.
        (10, 2) => (1.12, Box::new(|run| add(run, "huge_page_fallbacks", 2000, "node"))),
        (2, 2) => (1.12, Box::new(|run| add(run, "huge_page_fallbacks", 10, "node"))),
        (8, 2) => (
            1.12,
            Box::new(|run| {
                add(run, "network_bytes_sent", 9_000_000, "mlx5_0 port 1");
                add(run, "network_waits", 7_000, "mlx5_0 port 1");
            }),
        ),
        _ => (
            1.0,
            Box::new(|run| {
                let none = ["core_throttles", "network_waits", "huge_page_fallbacks"];
                none.into_iter().for_each(|name| add(run, name, 0, ""))
            }),
        ),
    });
    let path = folder.path().to_str().unwrap();
    let check = |found: &Value| {
        let slow = of(found, "n04");
        assert_eq!(
            slow["facts_changed"],
            json!([{ "fact": "core_throttles", "change": 214.0, "class_change": 0.0 }])
        );
        assert_eq!(slow["cause"], "throttling", "{slow:#}");
        assert_eq!(
            slow["cause_text"],
            "thermal throttling of cores: 214 times during the median run, usually 0"
        );
        assert!(slow["cause_share"].is_null() && slow["null_reasons"]["cause_share"].is_string());
        assert!(slow["null_reasons"].get("cause").is_none(), "{slow:#}");
        // How much a node sent is no cause.
        let congested = of(found, "n08");
        assert_eq!(congested["cause"], "network-congestion", "{congested:#}");
        let text = "ports waited to send: 7000 ticks during the median run, usually 0";
        assert_eq!(congested["cause_text"], text);
        assert_eq!(congested["facts_changed"].as_array().unwrap().len(), 1, "{congested:#}");
        let small_pages = of(found, "n10");
        assert_eq!(small_pages["cause"], "no-huge-pages", "{small_pages:#}");
        let text = small_pages["cause_text"].as_str().unwrap();
        assert!(
            text.starts_with(
                "small pages instead of huge pages, because the Linux kernel had no huge page: 2000"
            ),
            "{text}"
        );
        assert!(of(found, "n02")["cause"].is_null(), "{:#}", of(found, "n02"));
        let healthy = of(found, "n06");
        assert!(healthy["cause"].is_null() && healthy["facts_changed"][0]["change"] == 3.0, "{healthy:#}");
    };
    let found = json(&report(&["report", path, "--format", "json"]));
    assert_valid("report", &found);
    check(&found);
    let run = found["runs"].as_array().unwrap().iter().find(|run| run["run_id"] == "r-2-04-0").unwrap();
    assert_eq!(
        run["health"],
        json!([{ "node": "n04", "fact": "core_throttles", "change": 214, "places": [{ "place": "core of cpu 3", "change": 214 }] }])
    );
    let csv = out(&report(&["report", path, "--format", "csv"]));
    assert!(
        csv.lines().any(|line| line.starts_with("n04,") && line.ends_with(",core_throttles: 214")),
        "{csv}"
    );
    let text = out(&report(&["report", path]));
    assert!(text.contains("why n04: thermal throttling of cores: 214 times"), "{text}");
    // An archive keeps counts and facts.
    let archive = archive_of(&folder);
    check(&json(&report(&["report", archive.path().to_str().unwrap(), "--format", "json"])));
}

/// A fact can make up classes and select runs, from run files and from an archive.
#[test]
fn a_fact_can_make_up_classes() {
    let folder = Folder::new();
    fleet(&folder, |node, _| match node {
        0..6 => (1.0, Box::new(|run| set(run, "pcie_adapters", "1 x 32.0 GT/s PCIe x8"))),
        _ => (1.0, Box::new(none)),
    });
    let (path, archive) = (folder.path().to_str().unwrap(), archive_of(&folder));
    for path in [path, archive.path().to_str().unwrap()] {
        let by = ["report", path, "--format", "json", "--class-by", "command,pcie_adapters"];
        let found = json(&report(&by));
        let classes: Vec<&str> = found["classes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|class| class["class"].as_str().unwrap())
            .collect();
        let of = |width: &str| format!("pcie_adapters 1 x 32.0 GT/s PCIe {width}; ./hpl -n");
        assert_eq!(classes, [of("x16"), of("x8")], "{path}");
        let of_eight = ["report", path, "--format", "json", "--where", "pcie_adapters=1 x 32.0 GT/s PCIe x8"];
        let found = json(&report(&of_eight));
        assert_eq!(found["nodes"].as_array().unwrap().len(), 6, "{path}: {:#}", found["warnings"]);
    }
    // A column of other tools' results may have the name of a fact.
    let rows = (0..10).map(|row| format!("n{},{},{} DIMMs,{}.5", row % 2, row / 2, 7 + row % 2, 100 + row));
    let csv = format!("node,run,dimms,elapsed_s\n{}\n", rows.collect::<Vec<_>>().join("\n"));
    let file = folder.put("others.csv", csv);
    let found = json(&report(&["report", file.to_str().unwrap(), "--format", "json", "--class-by", "dimms"]));
    let classes: Vec<&Value> =
        found["classes"].as_array().unwrap().iter().map(|class| &class["class"]).collect();
    assert_eq!(classes, ["dimms=7 DIMMs", "dimms=8 DIMMs"]);
}

/// A governor that changes during a run limits this run, and makes its node no odd one.
#[test]
fn a_fact_that_changes_during_a_run_is_told() {
    let folder = Folder::new();
    let changed = |run: &mut Run| {
        run.nodes[0].facts.as_mut().unwrap().inventory.set_changed("governor from a to b\u{1b}".into());
    };
    fleet(&folder, |node, session| match (node, session) {
        (3, 2) => (1.0, Box::new(changed)),
        _ => (1.0, Box::new(none)),
    });
    let found = json(&report(&["report", folder.path().to_str().unwrap(), "--format", "json"]));
    let warnings =
        found["runs"].as_array().unwrap().iter().flat_map(|run| run["warnings"].as_array().unwrap());
    let told: Vec<&str> = warnings
        .filter(|warning| warning["code"] == "node-changed")
        .map(|warning| warning["message"].as_str().unwrap())
        .collect();
    assert_eq!(told.len(), 5, "one of each run");
    assert!(
        told[0].starts_with("n03 changed after pmmpi had read its facts: governor from a to b"),
        "{told:?}"
    );
    assert!(!told[0].contains('\u{1b}'));
    assert!(found["nodes"].as_array().unwrap().iter().all(|node| node["odd"] == json!([])), "{found:#}");
    assert_eq!(found["reconfigured"], json!([]));
}

/// n03 loses a memory module in a session in which the facts are not readable: the report finds the change in the next
/// session. An unknown fact is no change. It makes no node odd, even if the fact makes up classes.
#[test]
fn an_unknown_fact_is_no_difference() {
    let folder = Folder::new();
    let unreadable = |run: &mut Run| run.nodes[0].facts.as_mut().unwrap().inventory = Default::default();
    fleet(&folder, |node, session| match (node, session) {
        (_, 1) => (1.0, Box::new(unreadable)),
        (3, 2) => (1.0, Box::new(|run| set(run, "dimms", "7 x 65536 MiB at 4800 MT/s"))),
        (4, 2) => (1.0, Box::new(unreadable)),
        _ => (1.0, Box::new(none)),
    });
    let path = folder.path().to_str().unwrap();
    let found = json(&report(&["report", path, "--format", "json"]));
    let [changed] = found["reconfigured"].as_array().unwrap().as_slice() else { panic!("{found:#}") };
    assert_eq!((&changed["nodes"], &changed["since"]), (&json!(["n03"]), &json!("s2")));
    let by = ["report", path, "--format", "json", "--class-by", "command,dimms"];
    let found = json(&report(&by));
    assert_valid("report", &found);
    let changed = &found["reconfigured"];
    assert_eq!(
        (&changed[0]["nodes"], changed.as_array().unwrap().len()),
        (&json!(["n03"]), 1),
        "{changed:#}"
    );
    let odd: Vec<&Value> =
        found["nodes"].as_array().unwrap().iter().filter(|node| node["odd"] != json!([])).collect();
    assert!(odd.iter().all(|node| node["node"] == "n03"), "{odd:#?}");
    for changed in found["reconfigured"].as_array().unwrap() {
        let facts = changed["facts"].as_array().unwrap();
        assert!(
            facts.iter().all(|fact| fact["before"].is_string() && fact["after"].is_string()),
            "{changed:#}"
        );
    }
}

/// A label may have the name of a fact: it counts then, in run files and in their archive.
#[test]
fn a_label_with_the_name_of_a_fact_comes_first() {
    let folder = Folder::new();
    fleet(&folder, |node, _| match node {
        0..6 => (1.0, Box::new(|run| run.header.labels.push(("dimms".into(), "mine".into())))),
        _ => (1.0, Box::new(none)),
    });
    let (path, archive) = (folder.path().to_str().unwrap(), archive_of(&folder));
    for path in [path, archive.path().to_str().unwrap()] {
        let nodes = |options: &[&str]| {
            let found = json(&report(&[&["report", path, "--format", "json"], options].concat()));
            (found["nodes"].as_array().unwrap().len(), found["classes"].as_array().unwrap().len())
        };
        assert_eq!(nodes(&["--where", "dimms=mine"]), (6, 1), "{path}");
        assert_eq!(nodes(&["--class-by", "command,dimms"]), (12, 2), "{path}");
    }
}

/// The runs of session 2 have another number of threads, and two of session 1 have none. An archive knows the same.
#[test]
fn runs_with_other_settings_are_named_and_can_be_separated() {
    let folder = Folder::new();
    for (node, session, number) in (0..6)
        .flat_map(|node| (0..3).flat_map(move |session| (0..5).map(move |number| (node, session, number))))
    {
        let mut run = measured(node, session, number, 1.0);
        let threads = if session == 2 { "4" } else { "8" };
        if (node, session) != (0, 1) || number > 1 {
            run.header.environment.push(("OMP_NUM_THREADS".into(), threads.into()));
        }
        // Where a job ran is no setting.
        run.header.environment.push(("SLURM_JOB_NODELIST".into(), format!("n{node:02}")));
        folder.write(&run);
    }
    let archive = archive_of(&folder);
    for path in [&folder, &archive].map(|folder| folder.path().to_str().unwrap()) {
        let of = |arguments: &[&str]| {
            let found = json(&report(&[&["report", path, "--format", "json"], arguments].concat()));
            assert_valid("report", &found);
            found
        };
        let told = |found: &Value| -> Vec<String> {
            let all = found["warnings"].as_array().unwrap().iter();
            let all = all.filter(|warning| warning["code"] == "settings-differ");
            all.map(|warning| warning["message"].as_str().unwrap().to_owned()).collect()
        };
        let together = of(&[]);
        let [told_of_threads] = &told(&together)[..] else { panic!("{together:#}") };
        assert!(told_of_threads.starts_with(
            "runs differ in env.OMP_NUM_THREADS: 8 in 58 runs, 4 in 30 runs (r-2-00-0, r-2-00-1, r-2-00-2, ...), not set \
             in 2 runs (r-1-00-0, r-1-00-1) ("
        ));
        let apart = of(&["--class-by", "command,ranks,env.OMP_NUM_THREADS"]);
        assert_eq!(told(&apart), Vec::<String>::new());
        let classes = apart["classes"].as_array().unwrap().iter();
        let mut classes: Vec<&str> = classes.map(|class| class["class"].as_str().unwrap()).collect();
        classes.sort_unstable();
        let of = |threads: &str| format!("./hpl -n (1 of 1 ranks) env.OMP_NUM_THREADS{threads}");
        assert_eq!(classes, [of(" not set"), of("=4"), of("=8")]);
    }
}

/// Columns and labels may have the names of settings: they make up classes as they did before there were settings.
#[test]
fn a_column_or_a_label_with_the_name_of_a_setting_separates() {
    for name in ["launcher", "mpi_library", "env.THREADS", "ranks_bound_to"] {
        let folder = Folder::new();
        let mut csv = format!("node,run,elapsed_s,{name}\n");
        for (node, run) in (0..6).flat_map(|node| (0..5).map(move |run| (node, run))) {
            csv += &format!("n{node},{run},{},{}\n", 10 + run, ["a", "b"][node % 2]);
        }
        std::fs::write(folder.path().join("results.csv"), csv).unwrap();
        let classes = |folder: &Folder| {
            let path = folder.path().to_str().unwrap().to_owned();
            let found = json(&report(&["report", &path, "--class-by", name, "--format", "json"]));
            found["classes"].as_array().unwrap().len()
        };
        assert_eq!(classes(&folder), 2, "{name}");
        let archive = Folder::new();
        let [from, to] = [&folder, &archive].map(|folder| folder.path().to_str().unwrap().to_owned());
        let export = report(&["export", &from, "-o", &to, "--class-by", name]);
        assert!(export.status.success(), "{}", err(&export));
        assert_eq!(classes(&archive), 2, "{name} in an archive");
        let labelled = Folder::new();
        for (number, value) in ["a", "b"].into_iter().enumerate() {
            let mut run = measured(0, 0, number, 1.0);
            run.header.labels.push((name.into(), value.into()));
            labelled.write(&run);
        }
        let found = classes(&labelled);
        assert_eq!(found, 2, "{name} as a label");
    }
}

/// Nodes of a class may have different governors, and a node may have another one in the next session: other parts of the
/// report name these. A change between two runs of a session is named here.
#[test]
fn a_fact_that_changed_between_runs_of_a_session_is_named() {
    let folder = Folder::new();
    for (node, session, number) in (0..6)
        .flat_map(|node| (0..2).flat_map(move |session| (0..5).map(move |number| (node, session, number))))
    {
        let mut run = measured(node, session, number, 1.0);
        if node == 2 || (node, session) == (4, 1) || (node, session, number) == (3, 0, 4) {
            run.nodes[0].facts.as_mut().unwrap().settings.governor = Some("powersave".into());
        }
        // Other cores of one kind, and numactl.
        run.ranks[0].allowed =
            CpuSet(if (node, session, number) == (1, 1, 3) { vec![(4, 5)] } else { vec![(0, 1)] });
        let policy = if (node, session, number) == (1, 0, 2) { "interleave:0-1" } else { "default" };
        run.nodes[0].facts.as_mut().unwrap().inventory.set("memory_policy", policy.into());
        folder.write(&run);
    }
    let found = json(&report(&["report", folder.path().to_str().unwrap(), "--format", "json"]));
    let all = found["warnings"].as_array().unwrap().iter();
    let told: Vec<&str> = all
        .filter(|warning| warning["code"] == "settings-differ")
        .map(|warning| warning["message"].as_str().unwrap())
        .collect();
    let expected = [
        "allowed_hardware_threads: 0-1 in 4 runs, 4-5 in 1 run (r-1-01-3) (",
        "governor: performance in 4 runs, powersave in 1 run (r-0-03-4) (",
        "memory_policy: default in 4 runs, interleave:0-1 in 1 run (r-0-01-2) (",
    ];
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for (told, expected) in told.into_iter().zip(expected) {
        assert!(told.starts_with(&format!("runs of the same node differ in {expected}")), "{told}");
    }
}
