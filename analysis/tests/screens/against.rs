//! `--against`: whether the class of a kernel as a whole is slower or faster than in a baseline.

use super::common::*;
use super::made::*;
use pmmpi::record::Run;
use serde_json::Value;
use std::path::Path;

/// A screen of 21 nodes on this day, in a folder of its own: its files.
fn screen(folder: &Path, name: &str, day: i64, kernels: &[&'static str], triad: f64) -> Vec<String> {
    let screen = Screen { kernels: kernels.to_vec(), ..Screen::of(day, 21) };
    let times = |at: At<'_>| Outcome::Times(if at.kernel == "triad" { triad } else { 1.0 });
    screen.write(&folder.join(name), times)
}

fn path(folder: &Folder, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// What the JSON has about each kernel.
fn kernels(found: &Value) -> Vec<Value> {
    assert_valid("report", found);
    found["against"]["kernels"].as_array().unwrap().clone()
}

#[test]
fn a_class_that_moved_is_told_for_each_kernel() {
    let folder = Folder::new();
    let before = screen(folder.path(), "before", 0, &["triad", "dgemm"], 1.0);
    let (baseline, archive) = (path(&folder, "before"), path(&folder, "archive"));
    assert!(report(&words(&["export", "--output", &archive], &before)).status.success());
    let slower = screen(folder.path(), "slower", 5, &["triad", "dgemm"], 1.05);
    let of_files: Vec<&str> = before.iter().flat_map(|file| ["--against", file.as_str()]).collect();
    for against in [&["--against", &baseline][..], &["--against", &archive], &of_files] {
        let found = json(&screen_report(&slower, &[against, &["--format", "json"]].concat()));
        let all = kernels(&found);
        let said = |of: &Value| format!("{} {} {}", of["kernel"].as_str().unwrap(), of["moved"], of["nodes"]);
        let all_said: Vec<String> = all.iter().map(said).collect();
        assert_eq!(all_said, ["dgemm false 21", "triad true 21"], "{all:#?}");
        let [low, change, high] =
            [&all[1]["ci"][0], &all[1]["change"], &all[1]["ci"][1]].map(|of| of.as_f64());
        assert!(change.is_some_and(|change| (0.045..0.055).contains(&change)), "{all:#?}");
        assert!(low < change && change < high, "{all:#?}");
    }
    let against = &["--against", &baseline][..];
    let moved = "the class of triad (21 nodes) as a whole is 5.";
    let text = out(&screen_report(&slower, against));
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(moved)).collect();
    let [line] = lines[..] else { panic!("{text}") };
    assert!(line.contains(" % slower than in the baseline ("), "{line}");
    assert!(text.contains("\nkernels without a certain difference from the baseline: dgemm\n"), "{text}");
    assert!(text.contains("\nAGAINST BASELINE  NODES  SLOWER"), "{text}");
    for format in ["text", "md", "html"] {
        let text = out(&report(&words(&[&["report", "--format", format], against].concat(), &slower)));
        assert!(text.contains(moved), "{format}: {text}");
    }
    for format in ["csv", "openmetrics", "exclude"] {
        let said = err(&screen_report(&slower, &[against, &["--format", format]].concat()));
        assert!(said.contains(moved), "{format}: {said}");
    }
    let status =
        |files: &[String]| screen_report(files, &[against, &["--fail-on", "moved"]].concat()).status.code();
    assert_eq!(status(&slower), Some(3));
    // The baseline itself, and a faster screen.
    assert_eq!(status(&screen(folder.path(), "same", 6, &["triad", "dgemm"], 1.0)), Some(0));
    let faster = screen(folder.path(), "faster", 7, &["triad", "dgemm"], 0.95);
    assert_eq!(status(&faster), Some(0));
    assert!(out(&screen_report(&faster, against)).contains(" % faster than in the baseline ("));
    // Without a baseline, nothing changes.
    let plain = json(&screen_report(&slower, &["--format", "json"]));
    assert!(plain.get("against").is_none());
}

/// A change that is small, but certain for these two screens, may come from the room.
#[test]
fn what_healthy_screens_differ_by_is_no_change() {
    let folder = Folder::new();
    screen(folder.path(), "before", 0, &["triad", "dgemm"], 1.0);
    let now = screen(folder.path(), "now", 5, &["triad", "dgemm"], 1.01);
    let baseline = path(&folder, "before");
    let all = kernels(&json(&screen_report(&now, &["--against", &baseline, "--format", "json"])));
    assert!(all.iter().all(|of| of["moved"] == false), "{all:#?}");
}

/// New facts make another class, but a change of the class since an update is what the user asks for.
#[test]
fn nodes_with_another_linux_kernel_are_compared() {
    let folder = Folder::new();
    screen(folder.path(), "before", 0, &["triad"], 1.0);
    let updated = Screen::of(5, 21).write_changed(
        &folder.path().join("now"),
        |_| Outcome::Times(1.05),
        |run| {
            for facts in run.nodes.iter_mut().filter_map(|node| node.facts.as_mut()) {
                facts.hardware.kernel = Some("6.12.0".to_owned());
            }
        },
    );
    let baseline = path(&folder, "before");
    let all = kernels(&json(&screen_report(&updated, &["--against", &baseline, "--format", "json"])));
    assert!(all.len() == 1 && all[0]["moved"] == true && all[0]["nodes"] == 21, "{all:#?}");
}

#[test]
fn a_kernel_that_the_baseline_does_not_have_is_open() {
    let folder = Folder::new();
    screen(folder.path(), "before", 0, &["dgemm"], 1.0);
    let now = screen(folder.path(), "now", 5, &["triad", "dgemm"], 1.0);
    let (baseline, own) = (path(&folder, "before"), path(&folder, "now"));
    let against = ["--against", baseline.as_str()];
    let found = json(&screen_report(&now, &[&against[..], &["--format", "json"]].concat()));
    let all = kernels(&found);
    assert!(all.len() == 2 && all[0]["moved"] == false && all[1]["moved"].is_null(), "{all:#?}");
    assert!(["earlier", "change", "ci", "moved"].iter().all(|key| all[1]["null_reasons"][key].is_string()));
    let checked = screen_report(&now, &[&against[..], &["--fail-on", "moved"]].concat());
    assert_eq!(checked.status.code(), Some(4));
    assert!(out(&checked).contains(
        "pmmpi cannot find out whether the class of triad changed: in the baseline, these nodes have no time"
    ));
    // The same screen is no baseline of itself.
    let itself = ["--against", own.as_str(), "--format", "json"];
    let all = kernels(&json(&screen_report(&now, &itself)));
    assert!(all.len() == 2 && all.iter().all(|of| of["moved"].is_null()), "{all:#?}");
}

/// A few nodes, for example those that were repaired, do not stand for their class.
#[test]
fn a_class_with_few_nodes_in_the_baseline_is_open() {
    let folder = Folder::new();
    let nodes = |name: &str, nodes: std::ops::Range<u32>| {
        Screen { nodes, ..Screen::of(0, 0) }.write(&folder.path().join(name), |_| Outcome::Times(1.0));
    };
    let now = screen(folder.path(), "now", 5, &["triad"], 1.05);
    for (name, of, moved) in [("one", 0..1_u32, None), ("ten", 0..10, None), ("eleven", 0..11, Some(true))] {
        let count = of.len();
        nodes(name, of);
        let baseline = path(&folder, name);
        let against = ["--against", baseline.as_str()];
        let all = kernels(&json(&screen_report(&now, &[&against[..], &["--format", "json"]].concat())));
        assert!(all.len() == 1 && all[0]["nodes"] == count && all[0]["nodes_in_screen"] == 21, "{all:#?}");
        assert_eq!(all[0]["moved"].as_bool(), moved, "{all:#?}");
        let why = format!("the earlier screen has times of only {count} of 21 nodes");
        assert_eq!(all[0]["null_reasons"]["moved"] == why.as_str(), moved.is_none(), "{all:#?}");
        let checked = screen_report(&now, &[&against[..], &["--fail-on", "moved"]].concat());
        assert_eq!(checked.status.code(), Some(if moved.is_some() { 3 } else { 4 }), "{name}");
        assert!(out(&checked).contains(&format!("{count} of 21")), "{}", out(&checked));
    }
    // A node alone is its class.
    let alone = Screen::of(5, 1).write(&folder.path().join("alone"), |_| Outcome::Times(1.05));
    let baseline = path(&folder, "one");
    let all = kernels(&json(&screen_report(&alone, &["--against", &baseline, "--format", "json"])));
    assert!(all[0]["nodes"] == 1 && all[0]["nodes_in_screen"] == 1 && all[0]["change"].is_f64(), "{all:#?}");
    let why = all[0]["null_reasons"]["moved"].as_str().unwrap_or_default();
    assert!(!why.contains("only"), "{all:#?}");
}

/// Labels tell screens apart, for example those before and after an update.
#[test]
fn screens_with_other_labels_are_compared() {
    let folder = Folder::new();
    let labelled = |day: i64, label: &str, times: f64| {
        let label = |run: &mut Run| run.header.labels.push(("update".to_owned(), label.to_owned()));
        Screen::of(day, 21).write_changed(
            &folder.path().join(day.to_string()),
            |_| Outcome::Times(times),
            label,
        )
    };
    labelled(0, "before", 1.0);
    let now = labelled(5, "after", 1.05);
    let baseline = path(&folder, "0");
    let all = kernels(&json(&screen_report(&now, &["--against", &baseline, "--format", "json"])));
    assert!(all.len() == 1 && all[0]["moved"] == true && all[0]["nodes"] == 21, "{all:#?}");
}

#[test]
fn kernels_are_apart_whatever_makes_up_a_class() {
    let folder = Folder::new();
    screen(folder.path(), "before", 0, &["triad", "dgemm"], 1.0);
    let now = screen(folder.path(), "now", 5, &["triad", "dgemm"], 1.05);
    let baseline = path(&folder, "before");
    for by in ["cpu", "none", "command"] {
        let options = ["report", "--against", &baseline, "--format", "json", "--class-by", by];
        let all = kernels(&json(&report(&words(&options, &now))));
        let said: Vec<String> =
            all.iter().map(|of| format!("{} {} {}", of["kernel"], of["moved"], of["nodes"])).collect();
        assert_eq!(said, ["\"dgemm\" false 21", "\"triad\" true 21"], "{by}: {all:#?}");
    }
}

/// The times of several screens do not show how much the level of a class varies from screen to screen.
#[test]
fn the_latest_screen_before_is_the_baseline() {
    let folder = Folder::new();
    let all: Vec<Vec<String>> = [(0, 1.0), (3, 1.1), (5, 1.1), (8, 1.3)]
        .map(|(day, times)| screen(folder.path(), "all", day, &["triad"], times))
        .into();
    screen(folder.path(), "all", 4, &["dgemm"], 1.0);
    let baseline = path(&folder, "all");
    let found = json(&screen_report(&all[2], &["--against", &baseline, "--format", "json"]));
    let triad = &kernels(&found)[0];
    assert!(triad["moved"] == false && triad["nodes"] == 21, "{triad:#}");
    assert_eq!(triad["earlier"]["run_id"], "day3-0-triad");
    let text = out(&screen_report(&all[2], &["--against", &baseline]));
    assert!(text.contains("BASELINE BEGAN (UTC)"), "{text}");
    // A later screen is no baseline.
    let found = json(&screen_report(&all[0], &["--against", &baseline, "--format", "json"]));
    let triad = &kernels(&found)[0];
    let why = "the baseline has no time of these nodes from before this screen";
    assert!(triad["moved"].is_null() && triad["null_reasons"]["moved"] == why, "{triad:#}");
}

/// A gate, or a screen of a small job, is often the latest screen of an archive.
#[test]
fn a_screen_of_few_nodes_takes_no_full_screens_place() {
    let folder = Folder::new();
    let few = |name: &str, day: i64, nodes: std::ops::Range<u32>| {
        Screen { nodes, ..Screen::of(day, 0) }.write(&folder.path().join(name), |_| Outcome::Times(1.05));
    };
    screen(folder.path(), "all", 0, &["triad"], 1.0);
    few("all", 3, 0..5);
    few("few", 1, 0..5);
    few("few", 2, 0..3);
    let now = screen(folder.path(), "now", 5, &["triad"], 1.05);
    let [all, few] = ["all", "few"].map(|name| path(&folder, name));
    let against = |baseline: &str| {
        let found = json(&screen_report(&now, &["--against", baseline, "--format", "json"]));
        kernels(&found)[0].clone()
    };
    let triad = against(&all);
    assert!(triad["moved"] == true && triad["nodes"] == 21, "{triad:#}");
    assert_eq!(triad["earlier"]["session"], "day0");
    let checked = screen_report(&now, &["--against", &all, "--fail-on", "moved"]);
    assert_eq!(checked.status.code(), Some(3));
    assert!(out(&checked).contains("BASELINE SESSION  BASELINE BEGAN (UTC)"), "{}", out(&checked));
    // No screen has enough nodes.
    let triad = against(&few);
    assert!(triad["moved"].is_null() && triad["nodes"] == 5, "{triad:#}");
    assert_eq!(triad["earlier"]["session"], "day1");
}

/// Two screens may take turns on the same nodes. The median of the earlier one is that of all of its rounds.
#[test]
fn an_earlier_screen_counts_as_a_whole() {
    let folder = Folder::new();
    let rising = |at: At<'_>| Outcome::Times(if at.round < 2 { 1.0 } else { 1.1 });
    Screen { rounds: 0..5, ..Screen::of(0, 21) }.write(&folder.path().join("before"), rising);
    // It begins between the second and the third round of the other one.
    let between = |run: &mut Run| run.header.started_unix_ns -= (5 * 86_400 - 90) * 1_000_000_000;
    let now = Screen::of(5, 21).write_changed(&folder.path().join("now"), |_| Outcome::Times(1.1), between);
    let baseline = path(&folder, "before");
    let all = kernels(&json(&screen_report(&now, &["--against", &baseline, "--format", "json"])));
    let change = all[0]["change"].as_f64();
    assert!(change.is_some_and(|change| change.abs() < 0.02), "{all:#?}");
}

/// These nodes have less memory.
fn with_less_memory(of: std::ops::Range<u32>) -> impl Fn(&mut Run) {
    move |run: &mut Run| {
        let names: Vec<String> = of.clone().map(|number| format!("n{number:02}")).collect();
        for node in run.nodes.iter_mut().filter(|node| names.contains(&node.key.hostname)) {
            if let Some(facts) = node.facts.as_mut() {
                facts.hardware.memory_bytes = Some(96 << 30);
            }
        }
    }
}

/// A node that lost a memory module is a class of its own. It says nothing of a class as a whole.
#[test]
fn an_odd_node_is_no_class_to_compare() {
    let folder = Folder::new();
    screen(folder.path(), "with", 0, &["triad"], 1.0);
    Screen::of(1, 20).write(&folder.path().join("without"), |_| Outcome::Times(1.0));
    let times = |at: At<'_>| Outcome::Times(if at.node == 20 { 1.13 } else { 1.0 });
    let now = Screen::of(5, 21).write_changed(&folder.path().join("now"), times, with_less_memory(20..21));
    for name in ["with", "without"] {
        let baseline = path(&folder, name);
        let against = ["--against", baseline.as_str()];
        let all = kernels(&json(&screen_report(&now, &[&against[..], &["--format", "json"]].concat())));
        let said: Vec<String> = all
            .iter()
            .map(|of| format!("{} {} {}", of["nodes_in_screen"], of["too_small"], of["moved"]))
            .collect();
        assert_eq!(said, ["20 false false", "1 true null"], "{name}: {all:#?}");
        let checked = screen_report(&now, &[&against[..], &["--fail-on", "moved"]].concat());
        let text = out(&checked);
        assert_eq!(checked.status.code(), Some(0), "{name}: {text}");
        assert!(
            text.contains("\nclasses too small to compare with the baseline: triad (1 node)\n"),
            "{text}"
        );
        assert!(text.contains("\nAGAINST BASELINE  NODES  SLOWER"), "{text}");
        assert!(!text.contains("pmmpi cannot find out"), "{text}");
    }
    // Nothing can be compared.
    let each = |run: &mut Run| {
        for (gibibytes, node) in (100_u64..).zip(run.nodes.iter_mut()) {
            if let Some(facts) = node.facts.as_mut() {
                facts.hardware.memory_bytes = Some(gibibytes << 30);
            }
        }
    };
    let odd = Screen::of(6, 3).write_changed(&folder.path().join("odd"), |_| Outcome::Times(1.0), each);
    let baseline = path(&folder, "with");
    let checked = screen_report(&odd, &["--against", &baseline, "--fail-on", "moved"]);
    assert_eq!(checked.status.code(), Some(4), "{}", out(&checked));
}

#[test]
fn each_class_of_a_kernel_is_told_apart() {
    let folder = Folder::new();
    let write = |name: &str, day: i64, times: f64| {
        let is_slower = move |at: At<'_>| at.node >= 12 && at.kernel == "triad";
        let screen = Screen { kernels: vec!["triad", "dgemm"], ..Screen::of(day, 24) };
        screen.write_changed(
            &folder.path().join(name),
            |at| Outcome::Times(if is_slower(at) { times } else { 1.0 }),
            with_less_memory(12..24),
        )
    };
    write("before", 0, 1.0);
    let now = write("now", 5, 1.05);
    let baseline = path(&folder, "before");
    let against = ["--against", baseline.as_str()];
    let all = kernels(&json(&screen_report(&now, &[&against[..], &["--format", "json"]].concat())));
    assert!(all.len() == 4 && all.iter().all(|of| of["nodes"] == 12), "{all:#?}");
    let moved: Vec<&Value> = all.iter().filter(|of| of["moved"] == true).collect();
    assert!(moved.len() == 1 && moved[0]["kernel"] == "triad", "{all:#?}");
    assert!(moved[0]["class"].as_str().is_some_and(|class| class.contains(", 96 GiB,")), "{all:#?}");
    let checked = screen_report(&now, &[&against[..], &["--fail-on", "moved"]].concat());
    let text = out(&checked);
    assert_eq!(checked.status.code(), Some(3), "{text}");
    assert!(text.contains("\nthe class of triad (12 nodes, 96 GiB) as a whole is 5."), "{text}");
    let same = "\nkernels without a certain difference from the baseline: dgemm\n";
    assert!(text.contains(same), "{text}");
    assert!(text.contains("\nAGAINST BASELINE  CLASS "), "{text}");
    let rows = |start: &str, class: &str| {
        text.lines().filter(|line| line.starts_with(start) && line.contains(class)).count()
    };
    assert_eq!([rows("triad ", " 192 GiB "), rows("triad ", " 96 GiB ")], [1, 1], "{text}");
}

/// A screen after a soak is slower than a cold one, although nothing changed.
#[test]
fn a_hot_screen_is_compared_with_a_hot_one() {
    let folder = Folder::new();
    let write = |name: &str, day: i64, label: Option<&'static str>, times: f64| {
        let label = |run: &mut Run| {
            let label = label.and_then(|label| label.split_once('='));
            run.header.labels.extend(label.map(|(key, value)| (key.to_owned(), value.to_owned())));
        };
        let screen = Screen::of(day, 21);
        screen.write_changed(&folder.path().join(name), |_| Outcome::Times(times), label)
    };
    write("all", 0, None, 1.0);
    write("all", 1, Some("soak=1200s"), 1.05);
    write("all", 2, Some("cores=rank"), 2.0);
    let now = [
        (write("cold", 5, None, 1.0), "day0"),
        (write("hot", 6, Some("soak=1200s"), 1.05), "day1"),
        (write("rank", 7, Some("cores=rank"), 2.0), "day2"),
    ];
    let baseline = path(&folder, "all");
    for (files, session) in &now {
        let all = kernels(&json(&screen_report(files, &["--against", &baseline, "--format", "json"])));
        assert!(all.len() == 1 && all[0]["moved"] == false, "{all:#?}");
        assert_eq!(all[0]["earlier"]["session"], *session, "{all:#?}");
    }
    let longer = write("longer", 8, Some("soak=2400s"), 1.05);
    let all = kernels(&json(&screen_report(&longer, &["--against", &baseline, "--format", "json"])));
    let why = all[0]["null_reasons"]["moved"].as_str().unwrap_or_default();
    assert!(
        why.contains("from before this screen for this work: ") && why.contains("soak=2400s"),
        "{all:#?}"
    );
}

/// Without a baseline, the archive must have an earlier screen of enough of these nodes.
#[test]
fn a_check_of_classes_without_earlier_screens_is_no_success() {
    let folder = Folder::new();
    let archive = path(&folder, "archive");
    let before = screen(folder.path(), "before", 0, &["triad"], 1.0);
    let check = |mut inputs: Vec<String>, is_with_archive: bool| {
        inputs.extend(is_with_archive.then(|| archive.clone()));
        let checked = screen_report(&inputs, &["--fail-on", "moved"]);
        let is_told =
            err(&checked).contains("--fail-on moved: pmmpi could compare no class with earlier screens");
        (checked.status.code(), is_told)
    };
    assert_eq!(check(before.clone(), false), (Some(4), true));
    assert!(report(&words(&["export", "--output", &archive], &before)).status.success());
    // An archive that has the screen itself.
    assert_eq!(check(before, true), (Some(4), true));
    assert_eq!(check(screen(folder.path(), "same", 5, &["triad"], 1.0), true), (Some(0), false));
    assert_eq!(check(screen(folder.path(), "slower", 6, &["triad"], 1.2), true), (Some(3), false));
    let few = Screen::of(7, 3).write(&folder.path().join("few"), |_| Outcome::Times(1.0));
    assert_eq!(check(few, true), (Some(4), true));
}

/// In a screen, the number of ranks is that of a node.
#[test]
fn the_class_of_compared_screens_has_the_ranks_once() {
    let folder = Folder::new();
    screen(folder.path(), "before", 0, &["triad"], 1.0);
    screen(folder.path(), "now", 5, &["triad"], 1.0);
    let (before, now) = (path(&folder, "before"), path(&folder, "now"));
    let found = json(&report(&["compare", &before, &now, "--format", "json"]));
    let class = found["classes"][0]["class"].as_str().unwrap();
    assert!(class.contains("(1 rank per node)"), "{class}");
}

#[test]
fn a_baseline_that_cannot_be_used_is_refused() {
    let folder = Folder::new();
    let now = screen(folder.path(), "now", 5, &["triad"], 1.0);
    let csv = folder.put("other.csv", "node,run,elapsed_s\nn1,1,1.0\n").display().to_string();
    let damaged = folder.put("damaged/a.pmr", "no run").parent().unwrap().display().to_string();
    for (baseline, why) in [
        ("/nonexistent", "No such file"),
        (csv.as_str(), "The baseline has no run of pmmpi screen with a time"),
        (damaged.as_str(), "damaged/a.pmr"),
    ] {
        let told = format!("--against {baseline}: pmmpi cannot use this baseline\n");
        for output in [
            report(&["screen", "--check", "--against", baseline]),
            report(&words(&["report", "--against", baseline], &now)),
        ] {
            let said = err(&output);
            assert!(output.status.code() == Some(2) && out(&output).is_empty(), "{said}");
            assert!(said.contains(&told) && said.contains(why), "{said}");
        }
        // The rounds are over: the rest of the result is worth more.
        let kept = screen_report(&now, &["--against", baseline]);
        assert_eq!(kept.status.code(), Some(1), "{}", err(&kept));
        assert!(out(&kept).starts_with("screen of 21 nodes") && err(&kept).contains(&told), "{}", err(&kept));
    }
    let baseline = path(&folder, "now");
    assert!(report(&["screen", "--check", "--against", &baseline]).status.success());
    // The screen of the baseline ran something else.
    let archive = path(&folder, "archive");
    assert!(report(&words(&["export", "--output", &archive], &now)).status.success());
    let [triad, fma] = ["pmmpi screen-kernel triad", "pmmpi screen-kernel fma"];
    let [with_memory, program] = ["pmmpi screen-kernel triad --memory 85%", "./solver -n 4"];
    for baseline in [&baseline, &archive] {
        let check = |works: &[&str]| {
            let works = works.iter().flat_map(|work| ["--work", *work]);
            report(&["screen", "--check", "--against", baseline].into_iter().chain(works).collect::<Vec<_>>())
        };
        assert!(check(&[fma, triad]).status.success());
        for (works, named) in [
            (&[fma][..], "fma"),
            (&[with_memory, fma], "triad, fma"),
            (&[program], "./solver -n 4"),
            (&["-n"], "-n"),
        ] {
            let refused = check(works);
            let said = err(&refused);
            assert!(refused.status.code() == Some(2) && out(&refused).is_empty(), "{said}");
            let told = format!(
                "The baseline has no time of {named} that was measured with the options and the ranks per node of this"
            );
            assert!(said.contains(&told), "{said}");
        }
    }
    let no_screen = report(&["report", "--against", &baseline, &csv]);
    assert!(no_screen.status.code() == Some(2), "{}", err(&no_screen));
    assert!(err(&no_screen).contains("pmmpi compare BASELINE NEW"), "{}", err(&no_screen));
}
