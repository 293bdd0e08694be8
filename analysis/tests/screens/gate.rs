//! Repaired nodes: when a measurement is good enough to say that a node is fit to return.

use super::common::*;
use super::made::*;

/// Seven rounds on n00, n01, ..., of which n01 was repaired.
fn screen(nodes: u32) -> Screen {
    Screen { rounds: 0..7, ..Screen::of(3, nodes) }
}

fn healthy(_: At<'_>) -> Outcome {
    Outcome::Times(1.0)
}

/// The exit status, and the sentence on n01.
fn answer(inputs: &[String], gate: &str) -> (Option<i32>, String) {
    let output = screen_report(inputs, &["--gate", gate]);
    let text = out(&output);
    let sentence = text.lines().find(|line| line.starts_with("n01")).unwrap_or_default().to_owned();
    (output.status.code(), sentence)
}

fn assert_undecided(inputs: &[String], gate: &str, why: &str) {
    let (status, sentence) = answer(inputs, gate);
    assert!(sentence.starts_with(&format!("n01: UNDECIDED: {why}")), "{sentence}");
    assert_eq!(status, Some(4), "{sentence}");
}

/// Three of seven runs of n01 are slower by this fraction: no test finds the node slow, but it may be slow.
fn sometimes_slower(by: f64) -> (Folder, Vec<String>) {
    let folder = Folder::new();
    let times = |at: At<'_>| Outcome::Times(if at.node == 1 && at.round >= 4 { 1.0 + by } else { 1.0 });
    let files = screen(6).write(folder.path(), times);
    (folder, files)
}

#[test]
fn a_node_that_may_be_as_slow_as_a_node_to_drain_is_not_fit() {
    for (by, is_fit) in [(0.0, true), (0.03, true), (0.06, false), (0.09, false)] {
        let (_folder, files) = sometimes_slower(by);
        let found = json(&screen_report(&files, &["--gate", "n01", "--format", "json"]));
        assert_valid("report", &found);
        let most = found["gate"][0]["slower_by_at_most"].as_f64().unwrap();
        assert!((by - 0.01..by + 0.02).contains(&most), "{by} {most}");
        let percent = format!("{:.1} %", most * 100.0);
        if is_fit {
            let said = format!(
                "n01 is fit to return: with a probability of 99 %, it is at most {percent} slower than its \
                 class in each kernel"
            );
            assert_eq!(answer(&files, "n01"), (Some(0), said));
        } else {
            let why = format!(
                "in triad, the node may be up to {percent} slower than its class, but --gate needs less than 5 %: add \
                 rounds (--rounds) or healthy nodes"
            );
            assert_undecided(&files, "n01", &why);
        }
    }
}

#[test]
fn few_runs_leave_it_open() {
    let folder = Folder::new();
    let of = |rounds: u32| {
        Screen { rounds: 0..rounds, ..screen(6) }.write(&folder.path().join(rounds.to_string()), healthy)
    };
    assert_undecided(&of(4), "n01", "triad has only 4 runs, but --gate needs 5: add rounds");
    assert_eq!(answer(&of(5), "n01").0, Some(0));
}

/// A list with a wrong range must not fill the terminal.
#[test]
fn many_nodes_without_part_share_a_line() {
    let folder = Folder::new();
    let files = screen(6).write(folder.path(), healthy);
    let lines = |gate: &str| {
        let output = screen_report(&files, &["--gate", gate]);
        assert_eq!(output.status.code(), Some(4), "{}", err(&output));
        let text = out(&output);
        text.lines().filter(|line| line.contains("UNDECIDED: ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines("n01,n[101-110]").len(), 10);
    let many = |list: &str| format!("UNDECIDED: they did not take part in the screen: {list}");
    let of_all = lines("n01,n[1000-50999]");
    assert_eq!(of_all, [format!("50000 nodes of --gate: {}", many("n[1000-50999]"))]);
    // These names do not become a range.
    let named = many("n100-ib, n101-ib, n102-ib, ... (all of them: --format json)");
    assert_eq!(lines("n01,n[100-199]-ib"), [format!("100 nodes of --gate: {named}")]);
    let found = json(&screen_report(&files, &["--gate", "n01,n[101-130]", "--format", "json"]));
    assert_valid("report", &found);
    assert_eq!(found["gate"].as_array().unwrap().len(), 31);
}

#[test]
fn a_list_with_a_wrong_name_is_wrong_usage() {
    let folder = Folder::new();
    let files = screen(6).write(folder.path(), healthy);
    let zeros = format!("n[{}]", "0".repeat(70_000));
    for wrong in ["n 1", "n/1", "n\t1", "n[1-1000000]", "", "..", "n[+1]", &zeros] {
        let output = screen_report(&files, &["--gate", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        let said = err(&output);
        assert!(said.contains("--gate") && said.contains("looks like this: n[001-010],m5"), "{said}");
    }
}

/// Nodes that --gate names, nodes of another class, and slow nodes do not count.
#[test]
fn few_other_nodes_leave_it_open() {
    let folder = Folder::new();
    let of = |nodes: u32| screen(nodes).write(&folder.path().join(nodes.to_string()), healthy);
    let only = |others: &str| {
        format!(
            "apart from the nodes of --gate, triad has the verdict OK on only {others} of the same class, but a decision \
             needs 4: "
        )
    };
    assert_undecided(&of(4), "n01", &only("3 nodes"));
    let five = of(5);
    assert_eq!(answer(&five, "n01").0, Some(0));
    assert_undecided(&five, "n[01-04]", &only("1 node"));
    let mixed = screen(6).write_changed(&folder.path().join("mixed"), healthy, |run| {
        for node in &mut run.nodes[3..] {
            node.facts.as_mut().unwrap().hardware.kernel = Some("6.2.0".to_owned());
        }
    });
    assert_undecided(&mixed, "n01", &only("2 nodes"));
    let with_slow = screen(5)
        .write(&folder.path().join("slow"), |at| Outcome::Times(if at.node == 4 { 1.5 } else { 1.0 }));
    assert_undecided(&with_slow, "n01", &only("3 nodes"));
}

/// The nodes of one repair may share a fault. If they are most of their class, they are compared with themselves.
#[test]
fn many_nodes_of_the_gate_leave_it_open() {
    let folder = Folder::new();
    let of = |nodes: u32| screen(nodes).write(&folder.path().join(nodes.to_string()), healthy);
    let ten = of(10);
    let why = |repaired: u32, others: u32| {
        format!(
            "--gate names {repaired} nodes of this class. So a decision needs {} other nodes of the class (2 for each node \
             of --gate) with the verdict OK in triad, but there are only {others}",
            2 * repaired
        )
    };
    assert_undecided(&ten, "n[00-05]", &why(6, 4));
    assert_undecided(&ten, "n[00-03]", &why(4, 6));
    assert_eq!(answer(&ten, "n[00-02]").0, Some(0));
    let faulty = screen(10)
        .write(&folder.path().join("faulty"), |at| Outcome::Times(if at.node < 6 { 1.25 } else { 1.0 }));
    let (status, sentence) = answer(&faulty, "n[00-05]");
    assert!(matches!(status, Some(3 | 4)) && !sentence.starts_with("n01 is fit"), "{sentence}");
}

/// With earlier screens of the node, fewer other nodes are enough, but not none.
#[test]
fn an_archive_stands_for_other_nodes() {
    let folder = Folder::new();
    let archive = folder.path().join("archive").display().to_string();
    for day in 0..3 {
        let screen = Screen { day, ..screen(4) };
        let files = screen.write(&folder.path().join(format!("day{day}")), healthy);
        assert!(report(&words(&["export", "--output", &archive], &files)).status.success());
    }
    let with_archive = |name: &str, screen: Screen| {
        let mut inputs = screen.write(&folder.path().join(name), healthy);
        inputs.push(archive.clone());
        inputs
    };
    let (status, sentence) = answer(&with_archive("together", screen(4)), "n01");
    assert!(status == Some(0) && sentence.starts_with("n01 is fit to return"), "{sentence}");
    let alone = Screen { nodes: 1..2, ..screen(4) };
    let only = "apart from the nodes of --gate, triad has the verdict OK on only 0 nodes of the same class";
    assert_undecided(&with_archive("alone", alone), "n01", only);
}

/// A node that was slow in all earlier screens is compared with itself, but this does not show how fast it should be.
#[test]
fn an_archive_without_a_healthy_screen_of_the_node_does_not_stand_for_other_nodes() {
    let folder = Folder::new();
    let archive = folder.path().join("archive").display().to_string();
    let add = |day: i64, times_of_n01: f64| {
        let screen = Screen { day, ..screen(4) };
        let files = screen.write(&folder.path().join(format!("day{day}")), |at| {
            Outcome::Times(if at.node == 1 { times_of_n01 } else { 1.0 })
        });
        assert!(report(&words(&["export", "--output", &archive], &files)).status.success());
    };
    let repaired = |name: &str| {
        let mut inputs = screen(4).write(&folder.path().join(name), healthy);
        inputs.push(archive.clone());
        inputs
    };
    let only = "apart from the nodes of --gate, triad has the verdict OK on only 3 nodes of the same class, but a \
                decision needs 4: add healthy nodes. 2 nodes are enough if this node was less than 5 % slower than its \
                class in at least half of the earlier screens (bad sessions, and screens before a maintenance of the \
                node, do not count)";
    add(1, 1.2);
    assert_undecided(&repaired("slow"), "n01", only);
    add(0, 1.0);
    assert_eq!(answer(&repaired("was-healthy"), "n01").0, Some(0));
}

/// `pmmpi screen-act` removes only a mark of a node that these kernels found, with these options.
#[test]
fn the_findings_have_the_kernels_of_the_gate() {
    let folder = Folder::new();
    let screen = Screen { kernels: vec!["triad", "fma"], ..screen(6) };
    // Users do not type the number of ranks of a node.
    let options = ["--memory", "85%", "--ranks-of-node", "4", "--stores", "non-temporal"];
    let files = screen.write_changed(&folder.path().join("runs"), healthy, |run| {
        if run.header.command.iter().any(|word| word == "triad") {
            run.header.command.extend(options.map(str::to_owned));
        }
    });
    let findings = folder.path().join("findings.json");
    let named = findings.display().to_string();
    assert!(screen_report(&files, &["--gate", "n01", "--findings", &named]).status.success());
    let text = std::fs::read_to_string(&findings).unwrap();
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["passed"], serde_json::json!(["n01"]));
    let kernels = serde_json::json!([
        {"kernel": "fma", "options": [], "is_program": false, "area": "compute"},
        {
            "kernel": "triad",
            "options": ["--memory", "85%", "--stores", "non-temporal"],
            "is_program": false,
            "area": "memory"
        }
    ]);
    assert_eq!(found["kernels"], kernels);
}

/// `pmmpi screen-act` writes them into its log.
#[test]
fn a_finding_has_each_kernel_in_which_the_node_is_slow_or_wrong() {
    let folder = Folder::new();
    let screen = Screen { kernels: vec!["triad", "fma", "latency"], ..screen(8) };
    let files = screen.write(&folder.path().join("runs"), |at| match at {
        At { node: 2, kernel: "triad" | "fma", .. } => Outcome::Times(1.5),
        At { node: 3, kernel: "fma", .. } => Outcome::IsWrong,
        _ => Outcome::Times(1.0),
    });
    let findings = folder.path().join("findings.json");
    assert!(screen_report(&files, &["--findings", &findings.display().to_string()]).status.success());
    let text = std::fs::read_to_string(&findings).unwrap();
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let measurement = |kernel| serde_json::json!({"kernel": kernel, "options": [], "is_program": false});
    let of = |node: &str| {
        let findings = found["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["node"] == node).unwrap()["found_by"].clone()
    };
    assert_eq!(of("n02"), serde_json::json!([measurement("fma"), measurement("triad")]));
    assert_eq!(of("n03"), serde_json::json!([measurement("fma")]));
}

/// With its path, because another program may have the same file name. The arguments of a program are its options.
#[test]
fn the_findings_have_the_program_of_the_gate() {
    let folder = Folder::new();
    let files = screen(6).write_changed(&folder.path().join("runs"), healthy, |run| {
        run.header.command = ["./solver", "-n", "4"].map(str::to_owned).to_vec();
        if let Some(screened) = &mut run.screened {
            screened.kernel = None;
        }
    });
    let findings = folder.path().join("findings.json");
    let gate = ["--gate", "n01", "--findings", &findings.display().to_string()];
    // `pmmpi screen` names the file that it found.
    for (program, expected) in [(None, "./solver"), (Some("/opt/solver"), "/opt/solver")] {
        let named: Vec<&str> = program.iter().flat_map(|program| ["--program", *program]).collect();
        assert!(screen_report(&files, &[&gate[..], &named].concat()).status.success());
        let text = std::fs::read_to_string(&findings).unwrap();
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        let solver = serde_json::json!({
            "kernel": expected, "options": ["-n", "4"], "is_program": true, "ranks": 1, "area": "solver"
        });
        assert_eq!(found["kernels"], serde_json::json!([solver]));
    }
}

/// Each rank has four hardware threads, but n01 has fewer. A node with a wrong result has no values of them.
#[test]
fn the_findings_have_the_soak_and_what_each_kernel_used_of_a_node() {
    let folder = Folder::new();
    let screen = Screen { kernels: vec!["triad", "fma"], ..screen(10) };
    let outcome = |at: At<'_>| match at {
        At { node: 2, kernel: "fma", .. } => Outcome::Times(1.5),
        At { node: 3, kernel: "fma", .. } => Outcome::IsWrong,
        _ => Outcome::Times(1.0),
    };
    let files = screen.write_changed(&folder.path().join("runs"), outcome, |run| {
        run.header.labels.push(("soak".to_owned(), "1200s".to_owned()));
        let results = run.screened.iter_mut().flat_map(|screened| screened.results.iter_mut());
        for result in results.filter(|result| result.wrong.is_none()) {
            let threads = if result.rank.0 == 1 { 3 } else { 4 };
            result.threads = (0..threads).map(|number| (number, 1.0)).collect();
        }
    });
    let findings = folder.path().join("findings.json");
    let named = findings.display().to_string();
    assert!(screen_report(&files, &["--gate", "n01,n04", "--findings", &named]).status.success());
    let text = std::fs::read_to_string(&findings).unwrap();
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let soaked = serde_json::json!(["fma", "triad"]);
    let how = |of: &serde_json::Value| (of["threads"].clone(), of["soak_s"].clone(), of["soaked"].clone());
    for (node, threads) in [("n02", 4), ("n03", 3)] {
        let findings = found["findings"].as_array().unwrap();
        let of_node = findings.iter().find(|finding| finding["node"] == node).unwrap();
        assert_eq!(how(&of_node["found_by"][0]), (threads.into(), 1200.into(), soaked.clone()), "{node}");
    }
    assert_eq!(found["passed"], serde_json::json!(["n01", "n04"]));
    assert_eq!(how(&found["kernels"][0]), (3.into(), 1200.into(), soaked));
}

/// A wrong result needs no other node.
#[test]
fn a_wrong_result_is_never_fit() {
    let folder = Folder::new();
    let files = screen(2).write(folder.path(), |at| match at {
        At { node: 1, round: 6, .. } => Outcome::IsWrong,
        _ => Outcome::Times(1.0),
    });
    let said = "n01 is NOT fit to return: triad computed a wrong result".to_owned();
    assert_eq!(answer(&files, "n01"), (Some(3), said));
}
