//! Reads and writes Parquet: files of several writers, growing archives, and damaged files.

mod common;
#[path = "common/runs.rs"]
#[expect(dead_code)]
mod runs;

use common::{Folder, assert_valid, command, err, json, report};
use pmmpi_analysis::input::importers::{self, ImportOptions, Results};
use proptest::prelude::*;
use runs::run;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet").join(name)
}

fn read(path: &Path) -> Results {
    importers::read(&[path.to_owned()], &ImportOptions::default())
}

/// `node/run`, session, time, and start in minutes, for each row.
fn rows(results: &Results) -> Vec<(String, String, f64, i64)> {
    let table = &results.table;
    let row = |row| {
        let started = table.started_unix_ns[row] / 60_000_000_000;
        (table.run_id(row), table.session_name(row).unwrap_or("").to_owned(), table.elapsed_s[row], started)
    };
    (0..table.len()).map(row).collect()
}

fn export(paths: &[&str], archive: &str) -> std::process::Output {
    let args: Vec<&str> = [&["export", "-o", archive], paths].concat();
    command(&args).output().unwrap()
}

/// The files of runs in an archive; tests/medians.rs tests the others.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.ends_with(importers::MEDIANS_FOLDER) => {}
            path if path.is_dir() => all.extend(files(&path)),
            path => all.push(path),
        }
    }
    all.sort();
    all
}

#[test]
fn files_of_every_writer_say_the_same() {
    const NEVER: i64 = i64::MAX / 60_000_000_000;
    for writer in ["duckdb", "polars", "pandas"] {
        let results = read(&fixture(&format!("{writer}.parquet")));
        let expected = [
            ("n1/1", "mon", 10.0, 29_891_490),
            ("n1/2", "mon", 10.5, 29_891_500),
            ("a-node-with-a-long-name/1", "mon", 11.25, 29_891_530),
            ("n1/1", "tue", 9.5, NEVER),
        ];
        let expected =
            expected.map(|(id, session, s, started)| (id.to_owned(), session.to_owned(), s, started));
        assert_eq!(rows(&results), expected, "{writer}");
        let cycles = &results.table.counters["cycles"];
        assert!(cycles[0] == 100.0 && cycles[1].is_nan() && cycles[2..] == [300.0, 400.0], "{writer}");
        let reasons: Vec<_> = results.rejected.iter().map(|r| (r.line, r.reason.as_str())).collect();
        assert_eq!(
            reasons,
            [(5, "elapsed_s: NaN is not a time above zero"), (6, "node is empty")],
            "{writer}"
        );
        assert_eq!((results.rejected_rows, results.unread["note"]), (2, 6), "{writer}");
        let by = ImportOptions { class_by: "sku,class".parse().unwrap(), ..ImportOptions::default() };
        let results = importers::read(&[fixture(&format!("{writer}.parquet"))], &by);
        let classes: Vec<_> = (0..4).map(|row| results.table.class_name(row)).collect();
        assert_eq!(classes, ["sku=a", "sku=a", "sku=b", "sku=a"], "{writer}");
    }
}

/// Two archives have the same runs.
#[test]
fn rows_that_the_input_has_twice_are_not_already_there() {
    let folder = Folder::new();
    let csv = folder.put("f.csv", "node,run,elapsed_s\na,1,1\nb,1,2\nc,1,\n").display().to_string();
    let [first, second, both] = ["1", "2", "both"].map(|name| folder.path().join(name).display().to_string());
    for archive in [&first, &second] {
        let done = common::out(&export(&[&csv], archive));
        assert_eq!(done, format!("3 rows added to {archive}, 0 were already there\n"));
    }
    let said = || common::out(&export(&[&first, &second], &both));
    let repeated = "and 3 rows repeated other rows of the input";
    assert_eq!(said(), format!("3 rows added to {both}, 0 were already there, {repeated}\n"));
    assert_eq!(said(), format!("0 rows added to {both}, 6 were already there\n"));
}

/// A row with an invalid name says which one, and its node does not vanish; all other rows count.
#[test]
fn an_invalid_name_costs_one_row() {
    use polars::prelude::{Column, DataFrame};
    let folder = Folder::new();
    let path = folder.path().join("names.parquet");
    let columns = vec![
        Column::new("node".into(), ["n1", "n2", "n3", "n\u{7}4", "n5", "n6"]),
        Column::new("run".into(), ["1", "", "1", "1", "1", "1"]),
        Column::new("session".into(), ["s", "s", "s\u{7}", "s", "s", "s"]),
        Column::new("class".into(), ["x", "x", "x", "x", "x\u{7}", "x"]),
        Column::new("elapsed_s".into(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    ];
    let mut frame = DataFrame::new(6, columns).unwrap();
    polars_io::parquet::write::ParquetWriter::new(std::fs::File::create(&path).unwrap())
        .finish(&mut frame)
        .unwrap();
    let results = read(&path);
    let times: Vec<f64> = rows(&results).into_iter().map(|(_, _, seconds, _)| seconds).collect();
    assert_eq!(times, [1.0, 6.0]);
    let reasons: Vec<_> = results.rejected.iter().map(|r| (r.line, r.reason.as_str())).collect();
    let expected = [
        (2, "run is empty"),
        (3, "session: `s?` contains a control character"),
        (4, "node: `n?4` contains a control character"),
        (5, "class: `x?` contains a control character"),
    ];
    assert_eq!(reasons, expected);
    let found = json(&report(&["report", "--format", "json", path.to_str().unwrap()]));
    assert_eq!(found["accounted"]["unmeasured"], 3, "{}", found["accounted"]);
    let archive = folder.path().join("archive").display().to_string();
    let added = export(&[path.to_str().unwrap()], &archive);
    assert!(common::out(&added).starts_with("5 rows added"), "{}", err(&added));
    let found = json(&report(&["report", "--format", "json", &archive]));
    assert_eq!(found["accounted"]["unmeasured"], 3, "{}", found["accounted"]);
}

#[test]
fn values_of_a_long_file_are_summed() {
    let results = read(&fixture("long.parquet"));
    let runs: Vec<String> = rows(&results).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(runs, ["n1/1", "n1/2", "a-node-with-a-long-name/1", "n1/1"]);
    assert_eq!(results.table.counters["cycles"], [7.0; 4]);
    assert_eq!(results.table.counters["tsc"], [5.0; 4]);
    assert_eq!(results.rejected_rows, 3);
}

/// The runs of one month, and of the next month.
fn two_months(folder: &Folder) -> String {
    let mut csv = String::from("node,run,elapsed_s,class,session,started,cycles\n");
    for month in [10, 11] {
        for node in 0..4 {
            for run in 0..5 {
                let s = 10.0 + node as f64 / 7.0 + run as f64 / 1000.0;
                let cycles = if run == 3 { String::new() } else { format!("{}", node * 1000 + run) };
                csv +=
                    &format!("n{node},{run},{s},x \"y\",m{month},2026-{month}-20T10:00:0{run}Z,{cycles}\n")
                        .replace("x \"y\"", "\"x \"\"y\"\"\"");
            }
        }
    }
    folder.put("fleet.csv", csv).display().to_string()
}

/// The report of an archive equals the report of its input, byte by byte.
#[test]
fn what_was_exported_is_read_back() {
    let folder = Folder::new();
    let csv = two_months(&folder);
    for number in 0..3 {
        let mut own = run(&format!("run-{number}"), &[("n1", [0, 10, 5_000_000_010, 5_000_000_020])]);
        own.header.started_unix_ns = 1_795_000_000_000_000_000 + number;
        own.header.labels = vec![("session".to_owned(), "s".to_owned())];
        folder.write(&own);
    }
    let (own, archive) =
        (folder.path().display().to_string(), folder.path().join("archive").display().to_string());
    let done = export(&[&own], &archive);
    assert!(done.status.success(), "{}", err(&done));
    assert_eq!(common::out(&done), format!("43 rows added to {archive}, 0 were already there\n"));
    let months: Vec<PathBuf> = files(Path::new(&archive));
    let months: Vec<&str> =
        months.iter().map(|f| f.parent().unwrap().file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(months, ["month=2026-10", "month=2026-11"]);

    let of = |paths: &[&str]| -> Value {
        let output = report(&[&["report", "--format", "json"], paths].concat());
        assert!(output.status.success(), "{}", err(&output));
        assert_valid("report", &json(&output));
        json(&output)
    };
    let (before, after, both) = (of(&[&own]), of(&[&archive]), of(&[&own, &archive]));
    for key in ["nodes", "slow_runs", "drift"] {
        assert_eq!(before[key], after[key], "{key}");
        assert_eq!(before[key], both[key], "{key}");
    }
    assert_eq!(before["nodes"][0]["runs"].as_u64().map(|runs| runs > 0), Some(true));
    let codes = |report: &Value| -> Vec<String> {
        let warnings = report["warnings"].as_array().unwrap();
        warnings.iter().map(|warning| warning["code"].as_str().unwrap().to_owned()).collect()
    };
    assert!(codes(&both).contains(&"repeated-rows".to_owned()), "{:?}", codes(&both));
    assert!(!codes(&after).contains(&"repeated-rows".to_owned()));
    // Without run files, the reports are equal in every byte.
    let of_csv = folder.path().join("of csv").display().to_string();
    assert!(export(&[&csv], &of_csv).status.success());
    let [a, b] = [&csv, &of_csv].map(|path| report(&["report", "--format", "json", path]).stdout);
    assert!(
        a == b
            && json(&report(&["report", "--format", "json", &csv]))["nodes"].as_array().unwrap().len() == 4
    );
    let read = read(Path::new(&archive));
    assert_eq!(read.table.counters["cycles"].iter().filter(|value| !value.is_nan()).count(), 32);
    assert_eq!(read.table.class_name(0), "x \"y\"");
}

#[test]
fn an_archive_only_grows() {
    let folder = Folder::new();
    let csv = two_months(&folder);
    let archive = folder.path().join("archive").display().to_string();
    assert!(export(&[&csv], &archive).status.success());
    let first = files(Path::new(&archive));
    let contents: Vec<Vec<u8>> = first.iter().map(|file| std::fs::read(file).unwrap()).collect();
    // A second export of the same runs adds nothing.
    assert_eq!(
        common::out(&export(&[&csv], &archive)),
        format!("0 rows added to {archive}, 40 were already there\n")
    );
    assert_eq!(files(Path::new(&archive)), first);
    // Some rows are new, and one contradicts the archive.
    let more =
        std::fs::read_to_string(&csv).unwrap().replace("n3,4,", "n9,4,").replace("n2,0,10.2", "n2,0,11.2");
    let more = folder.put("more.csv", more).display().to_string();
    let done = export(&[&more], &archive);
    assert_eq!(done.status.code(), Some(1), "{}", err(&done));
    assert_eq!(common::out(&done), format!("2 rows added to {archive}, 36 were already there\n"));
    assert!(err(&done).contains("run n2/0 of class x \"y\" of session m10 is already in"), "{}", err(&done));
    let read_back = read(Path::new(&archive));
    assert_eq!((read_back.table.len(), read_back.rejected_rows, read_back.repeated_rows), (42, 0, 0));
    for (file, content) in first.iter().zip(contents) {
        assert_eq!(std::fs::read(file).unwrap(), content, "{}", file.display());
    }
    // A failed export leaves nothing behind.
    let failed = export(&[&csv], "/proc/nowhere");
    assert_eq!(failed.status.code(), Some(1), "{}", err(&failed));
    let no_folder = export(&[&csv], &folder.put("file", "x").display().to_string());
    assert!(err(&no_folder).contains("file is not a folder"), "{}", err(&no_folder));
    assert_eq!(no_folder.status.code(), Some(2));
    assert_eq!(export(&["/nonexistent"], &archive).status.code(), Some(2));
}

/// The result depends neither on the order of the rows nor on the number of files.
#[test]
fn what_is_read_first_makes_no_difference() {
    let folder = Folder::new();
    let csv = std::fs::read_to_string(two_months(&folder)).unwrap();
    let (header, rows) = csv.split_once('\n').unwrap();
    let mut rows: Vec<&str> = rows.lines().collect();
    let whole = report(&["report", "--format", "json", folder.put("a.csv", &csv).to_str().unwrap()]);
    rows.reverse();
    let (one, two) = rows.split_at(17);
    let one = folder.put("one.csv", format!("{header}\n{}\n", one.join("\n")));
    let two = folder.put("two.csv", format!("{header}\n{}\n", two.join("\n")));
    let parts = ["report", "--format", "json", two.to_str().unwrap(), one.to_str().unwrap()];
    for threads in ["1", "3"] {
        let parts =
            command(&parts).env("RAYON_NUM_THREADS", threads).env("POLARS_MAX_THREADS", threads).output();
        assert_eq!(parts.unwrap().stdout, whole.stdout);
    }
}

/// The file claims columns of different lengths.
#[test]
fn columns_that_do_not_fit_together_are_no_rows() {
    let folder = Folder::new();
    let good = "node,run,elapsed_s\nZ0,1,1\nZ1,1,1\n";
    let good = folder.put("good.csv", good).display().to_string();
    for name in ["columns-of-different-lengths.parquet", "more-rows-than-values.parquet"] {
        let damaged = fixture(name).display().to_string();
        let output = report(&["report", "--format", "json", &damaged, &good]);
        let report = json(&output);
        let nodes: Vec<&Value> =
            report["nodes"].as_array().unwrap().iter().map(|node| &node["node"]).collect();
        assert_eq!((nodes, output.status.code()), (vec![&"Z0".into(), &"Z1".into()], Some(1)), "{name}");
        assert!(report["warnings"].to_string().contains("is damaged: its contents contradict one another"));
        assert_eq!(err(&output), "");
    }
}

/// A sum covers one file only. If a run is in two files, a sum would miss a part of it.
#[test]
fn a_run_in_two_long_files_has_no_sums() {
    let folder = Folder::new();
    let long = std::fs::read(fixture("long.parquet")).unwrap();
    folder.put("1.parquet", &long);
    folder.put("2.parquet", &long);
    let results = read(folder.path());
    assert_eq!((results.table.len(), results.table.counters.len()), (4, 0));
    // In each file three rows without a time, and all rows of the second file.
    assert_eq!(results.rejected_rows, 3 + 3 + 12);
    assert!(results.rejected.iter().any(|row| row.reason.ends_with("join the files")));
}

/// An existing folder; an archive file that cannot be read; other class keys; counter names that differ only in
/// capital letters or have another meaning.
#[test]
fn an_archive_is_what_it_was_asked_to_be() {
    let folder = Folder::new();
    let csv = two_months(&folder);
    let archive = folder.path().join("archive");
    std::fs::create_dir(&archive).unwrap();
    let name = archive.display().to_string();
    assert_eq!(
        common::out(&export(&[&csv], &name)),
        format!("40 rows added to {name}, 0 were already there\n")
    );
    let damaged = archive.join("month=2026-10/damaged.parquet");
    std::fs::write(&damaged, "PAR1").unwrap();
    let refused = export(&[&csv], &name);
    assert_eq!(refused.status.code(), Some(1));
    assert!(err(&refused).contains("damaged.parquet is damaged:"), "{}", err(&refused));
    assert!(err(&refused).contains("repair or remove this file"), "{}", err(&refused));
    std::fs::remove_file(&damaged).unwrap();
    assert_eq!(
        common::out(&export(&[&csv], &name)),
        format!("0 rows added to {name}, 40 were already there\n")
    );

    let by_sku = folder.path().join("by sku").display().to_string();
    let fleet = "node,run,elapsed_s,sku,Cycles,value,event\na,1,1,x,5,7,7\nb,1,2,y,6,8,8\n";
    let fleet = folder.put("sku.csv", fleet).display().to_string();
    for added in [2, 0] {
        let args = ["export", "--class-by", "sku", "-o", &by_sku, &fleet];
        let done = command(&args).output().unwrap();
        assert_eq!(
            common::out(&done),
            format!("{added} rows added to {by_sku}, {} were already there\n", 2 - added)
        );
        // `value` and `event` are no counters: together they mark a long file.
        assert!(
            err(&done).contains("did not read these values: event (2 values), value (2 values)"),
            "{}",
            err(&done)
        );
    }
    let more = folder.put("more.csv", "node,run,elapsed_s,sku,cycles\nc,1,3,x,7\n").display().to_string();
    assert!(
        command(&["export", "--class-by", "sku", "-o", &by_sku, &more]).output().unwrap().status.success()
    );
    let by = |keys: &str| {
        let options = ImportOptions { class_by: keys.parse().unwrap(), ..ImportOptions::default() };
        let results = importers::read(&[PathBuf::from(&by_sku)], &options);
        assert_eq!((results.table.counters.len(), results.unread.len()), (1, 0));
        let mut classes: Vec<String> = (0..3).map(|row| results.table.class_name(row).to_owned()).collect();
        classes.sort_unstable();
        classes
    };
    assert_eq!(by("sku"), ["sku=x", "sku=x", "sku=y"]);
    assert_eq!(by("SKU,class"), ["SKU=x", "SKU=x", "SKU=y"]);
    assert_eq!(by("class"), ["undeclared"; 3]);
}

/// The classes depend neither on the keys at export nor on those of the report. This also holds for an archive of an
/// archive.
#[test]
fn classes_of_an_archive_are_those_of_its_files() {
    let folder = Folder::new();
    let stamps = |node| [0, 10, 5_000_000_010 + node, 5_000_000_020 + node];
    for number in 0..6 {
        let names = ["n1", "n2"].map(|name| (name, stamps(number)));
        let mut own = run(&format!("run-{number}"), &names);
        own.header.started_unix_ns = 1_795_000_000_000_000_000 + number;
        own.header.command = vec!["sh".into(), "-c".into(), format!("true\n # {}", number % 2)];
        let labels = [("Sku", "a"), ("sku", ["b", "c"][number as usize % 2]), ("run", "x"), ("empty", "")];
        own.header.labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let hardware = |node: usize| own.nodes[node].facts.clone().unwrap().hardware;
        let (mut first, mut second) = (hardware(0), hardware(1));
        first.microcode = Some(format!("0x{}", number / 2));
        second.memory_bytes = None;
        second.kernel = None;
        for (node, hardware) in [first, second].into_iter().enumerate() {
            own.nodes[node].facts.as_mut().unwrap().hardware = hardware;
        }
        if number == 5 {
            own.nodes[1].facts = None;
        }
        folder.write(&own);
    }
    let csv = "node,run,elapsed_s,class,sku,Pool,value,class.sku,Cores\na,1,1,x,5,,7,8,48\nb,1,2,,b,p,8,9,\nc,1,2,y,,q,8,9,64\n";
    folder.put("fleet.csv", csv);
    let own = folder.path().display().to_string();
    let archives = Folder::new();
    let [one, two] = ["one", "two"].map(|name| archives.path().join(name).display().to_string());
    let keep = ["export", "--class-by", "pool,sku,class", "-o", &one, &own];
    let done = command(&keep).output().unwrap();
    assert!(err(&done).contains("class.sku (3 values), value (3 values)"), "{}", err(&done));
    assert!(export(&[&one], &two).status.success());
    let classes = |path: &str, keys: &[&str]| {
        let output = report(&[&["report", "--format", "json", path], keys].concat());
        let nodes = json(&output)["nodes"].clone();
        assert!(nodes.as_array().unwrap().len() >= 5, "{nodes}");
        let all = nodes.as_array().unwrap().iter();
        let classes: Vec<String> = all.clone().map(|node| node["class"].to_string()).collect();
        (classes, all.map(|node| node["runs"].as_u64().unwrap()).sum::<u64>())
    };
    assert_eq!(classes(&own, &[]).1, 15);
    for keys in [
        "",
        "none",
        "cpu",
        "microcode",
        "memory,kernel",
        "command",
        "ranks,labels",
        "sku",
        "SKU,Sku,run",
        "class,pool",
        "pool,sku",
    ] {
        let keys: Vec<&str> = if keys.is_empty() { vec![] } else { vec!["--class-by", keys] };
        let expected = classes(&own, &keys);
        assert_eq!(classes(&one, &keys), expected, "{keys:?}");
        assert_eq!(classes(&two, &keys), expected, "{keys:?}");
    }
    // With other keys at export, they are still the same runs.
    let again = command(&["export", "--class-by", "cpu", "-o", &one, &own]).output().unwrap();
    assert_eq!(common::out(&again), format!("0 rows added to {one}, 15 were already there\n"));
}

/// The declared class identifies a run, whatever the class keys are when it is read.
#[test]
fn what_makes_a_class_makes_no_runs() {
    let folder = Folder::new();
    let mut csv = String::from("node,run,elapsed_s,class,rack\n");
    for node in 0..6 {
        for run in 0..7 {
            let (s, class) = if node < 3 { (10.0, "x") } else { (12.0, "y") };
            csv += &format!("n{node},{run},{},{class},r{}\n", s + f64::from(run) / 1000.0, node % 2);
        }
    }
    // The same node and run number in two classes are two runs.
    csv += "n0,0,12,y,r0\n";
    let csv = folder.put("two.csv", csv).display().to_string();
    let archive = folder.path().join("archive").display().to_string();
    for (keys, added) in [("none", 43), ("class", 0), ("rack,class", 0), ("rack", 0)] {
        let done = command(&["export", &csv, "-o", &archive, "--class-by", keys]).output().unwrap();
        let expected = format!("{added} rows added to {archive}, {} were already there\n", 43 - added);
        assert_eq!((common::out(&done), done.status.code()), (expected, Some(0)), "{keys}: {}", err(&done));
    }
    for keys in ["none", "class", "class,labels", "rack,class", "rack"] {
        let of = |paths: &[&str]| {
            let output = report(&[&["report", "--format", "json", "--class-by", keys], paths].concat());
            assert_eq!(output.status.code(), Some(0), "{}", err(&output));
            let report = json(&output);
            let runs: u64 =
                report["nodes"].as_array().unwrap().iter().map(|n| n["runs"].as_u64().unwrap()).sum();
            assert_eq!(runs, 43, "{keys}");
            report["nodes"].clone()
        };
        assert_eq!(of(&[&csv]), of(&[&archive, &csv]), "{keys}");
        // The archive was exported without the key rack.
        if !keys.contains("rack") {
            assert_eq!(of(&[&csv]), of(&[&archive]), "{keys}");
        }
    }
    // Without that key at export, the archive has no such key. Its counters are not keys.
    let codes = |path: &str, keys: &str| {
        let report = json(&report(&["report", "--format", "json", "--class-by", keys, path]));
        report["warnings"].as_array().unwrap().iter().any(|warning| warning["code"] == "unknown-class-key")
    };
    let text = common::out(&report(&["report", "--format", "json", "--class-by", "none", &archive]));
    assert!(!text.contains("archived-classes"), "{text}");
    assert!(!codes(&csv, "rack") && codes(&archive, "rack") && codes(&archive, "elapsed_s"));
    let empty = folder.put("empty.csv", "node,run,elapsed_s,rack\na,1,2,\n").display().to_string();
    assert!(codes(&empty, "rack"));
}

/// The run numbers in such files depend on the order of files, so the next file changes them.
#[test]
fn runs_of_an_archive_have_names_of_their_own() {
    let folder = Folder::new();
    let hpl = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hpl/n01/HPL.out");
    let archive = folder.path().join("archive").display().to_string();
    for (session, added) in [("s2", 4), ("s1", 4)] {
        std::fs::create_dir_all(folder.path().join(session).join("n01")).unwrap();
        std::fs::copy(&hpl, folder.path().join(session).join("n01/HPL.out")).unwrap();
        let sessions = ["s1", "s2"].map(|session| folder.path().join(session).display().to_string());
        let known: Vec<&str> =
            sessions.iter().map(String::as_str).filter(|path| Path::new(path).exists()).collect();
        let nameless = export(&known, &archive);
        assert_eq!(nameless.status.code(), Some(1), "{}", err(&nameless));
        let why = format!("{}{}", common::out(&nameless), err(&nameless));
        assert!(why.contains("put {run} or {session} into --path-pattern"), "{why}");
        let pattern = ["export", "-o", &archive, "--path-pattern", "{session}/{node}/HPL.out"];
        let done = command(&[&pattern[..], &known[..]].concat()).output().unwrap();
        let text = common::out(&done);
        assert!(text.starts_with(&format!("{added} rows added")), "{text} {}", err(&done));
    }
}

/// Another program rewrote an archive file: it lacks pmmpi's own metadata, or the parts of classes.
#[test]
fn a_file_of_an_archive_that_was_written_anew_is_one() {
    use polars::prelude::*;
    let folder = Folder::new();
    for number in 0..3 {
        let mut own = run(&format!("run-{number}"), &[("n1", [0, 10, 5_000_000_010, 5_000_000_020])]);
        own.header.command = vec!["sh".into(), "-c".into(), "true\n".into()];
        folder.write(&own);
    }
    folder.put("fleet.csv", "node,run,elapsed_s,class\na,1,1,x\nb,1,2,y\n");
    let (own, archive) = (folder.path().display().to_string(), folder.path().join("archive"));
    assert!(export(&[&own], &archive.display().to_string()).status.success());
    let nodes = |path: &Path, keys: &str| {
        let output = report(&["report", "--format", "json", "--class-by", keys, path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{} {}", common::out(&output), err(&output));
        json(&output)["nodes"].clone()
    };
    let frames: Vec<DataFrame> = files(&archive)
        .iter()
        .map(|file| {
            polars_io::SerReader::finish(polars_io::parquet::read::ParquetReader::new(
                std::fs::File::open(file).unwrap(),
            ))
            .unwrap()
        })
        .collect();
    let anew = |name: &str, is_kept: &dyn Fn(&str) -> bool| {
        let folder = folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        for (number, frame) in frames.iter().enumerate() {
            let kept: Vec<Column> =
                frame.columns().iter().filter(|column| is_kept(column.name())).cloned().collect();
            let file = std::fs::File::create(folder.join(format!("{number}.parquet"))).unwrap();
            let mut frame = DataFrame::new(frame.height(), kept).unwrap();
            polars_io::parquet::write::ParquetWriter::new(file).finish(&mut frame).unwrap();
        }
        folder
    };
    let whole = anew("whole", &|_| true);
    for keys in ["cpu", "class", "labels,command"] {
        assert_eq!(nodes(&archive, keys), nodes(&whole, keys), "{keys}");
    }
    let by_default = "cpu,microcode,memory,kernel,command,ranks,labels,class";
    let without_parts = anew("without parts", &|name| !name.starts_with("class."));
    assert_eq!(nodes(&archive, by_default), nodes(&without_parts, by_default));
    let lost =
        json(&report(&["report", "--format", "json", "--class-by", "cpu", without_parts.to_str().unwrap()]));
    assert!(lost["warnings"].to_string().contains("archived-classes"), "{}", lost["warnings"]);
    // Only the columns with values.
    let of_csv = folder.path().join("of csv").display().to_string();
    let csv = folder.path().join("fleet.csv").display().to_string();
    assert!(export(&[&own], &of_csv).status.success());
    let more = folder.put("more.csv", "node,run,elapsed_s,class,tsc\nc,1,1,z,5\n").display().to_string();
    let before = files(Path::new(&of_csv));
    assert!(export(&[&csv, &more], &of_csv).status.success());
    let new: Vec<PathBuf> =
        files(Path::new(&of_csv)).into_iter().filter(|file| !before.contains(file)).collect();
    let mut reader = polars_io::parquet::read::ParquetReader::new(std::fs::File::open(&new[0]).unwrap());
    let names: Vec<String> = reader
        .schema()
        .unwrap()
        .iter_names()
        .map(ToString::to_string)
        .filter(|name| name.contains("class.") || name == "tsc" || name == "elapsed_lower_s")
        .collect();
    assert_eq!((names, new.len()), (vec!["class.declared".to_owned(), "tsc".to_owned()], 1));
}

/// A file of another tool in the archive folder would look like archived runs.
#[test]
fn an_archive_has_nothing_of_others() {
    let folder = Folder::new();
    folder.put("fleet.csv", "node,run,elapsed_s\na,1,1\n");
    let path = folder.path().display().to_string();
    let done = export(&[&path], &path);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        err(&done).contains("fleet.csv does not belong to an archive: move this file away"),
        "{}",
        err(&done)
    );
    assert_eq!(files(folder.path()).len(), 1);
}

/// If two rows of a run agree, each completes the other; if not, the second is reported.
#[test]
fn rows_of_a_run_are_joined_or_contradict_one_another() {
    let folder = Folder::new();
    let archive = folder.path().join("archive").display().to_string();
    let first = folder.put("a.csv", "node,run,elapsed_s\na,1,1\nb,1,2\n").display().to_string();
    assert!(export(&[&first], &archive).status.success());
    let second = folder.put("b.csv", "node,run,elapsed_s,tsc\na,1,1,5\nb,1,2,\n").display().to_string();
    let both = importers::read(&[PathBuf::from(&archive), PathBuf::from(&second)], &ImportOptions::default());
    assert_eq!((both.table.len(), both.repeated_rows, both.rejected_rows), (2, 2, 0));
    assert_eq!(both.table.counters["tsc"].iter().filter(|tsc| **tsc == 5.0).count(), 1);
    let archive = folder.path().join("other").display().to_string();
    assert!(export(&[&second], &archive).status.success());
    let third = folder.put("c.csv", "node,run,elapsed_s,tsc\na,1,1,6\n").display().to_string();
    let both = importers::read(&[PathBuf::from(&archive), PathBuf::from(&third)], &ImportOptions::default());
    assert_eq!((both.table.len(), both.repeated_rows, both.rejected_rows), (2, 0, 1));
}

/// Rejected rows do not count for sessions. A node that was never compared appears with its latest session.
#[test]
fn sessions_are_those_of_rows_that_count() {
    let folder = Folder::new();
    let csv = "node,run,elapsed_s,session,started\n\
               a,1,10,new,2026-02-01T00:00:00Z\na,2,20,old,2026-01-01T00:00:00Z\na,3,never,undated,\n";
    let output = report(&["report", "--format", "json", folder.put("a.csv", csv).to_str().unwrap()]);
    let report = json(&output);
    assert_eq!(
        (&report["nodes"][0]["session"], &report["nodes"][0]["median_s"]),
        (&"new".into(), &10.0.into())
    );
    assert!(!report["warnings"].to_string().contains("undated-sessions"), "{}", report["warnings"]);
}

/// Results beside run files, and in subfolders.
#[test]
fn results_beside_run_files_are_read_or_told() {
    let folder = Folder::new();
    folder.write(&run("own", &[("n1", [0, 10, 5_000_000_010, 5_000_000_020])]));
    std::fs::create_dir(folder.path().join("below")).unwrap();
    folder.put("below/r.csv", "node,run,elapsed_s\na,1,1\n");
    folder.put("cut.json", "{\"results\": [{\"command\": ");
    folder.put("notes.txt", "hello");
    let output = report(&["report", "--format", "json", folder.path().to_str().unwrap()]);
    let report = json(&output);
    let nodes: Vec<&str> =
        report["nodes"].as_array().unwrap().iter().map(|node| node["node"].as_str().unwrap()).collect();
    assert_eq!(nodes.len(), 2, "{nodes:?}");
    assert_eq!(output.status.code(), Some(1));
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("cut.json") && warnings.contains("notes.txt"), "{warnings}");
}

#[test]
fn other_files_are_told() {
    let folder = Folder::new();
    let whole = std::fs::read(fixture("duckdb.parquet")).unwrap();
    let reason = |name: &str, content: &[u8]| {
        let results = read(&folder.put(name, content));
        assert_eq!((results.table.len(), results.unusable.len()), (0, 1), "{name}");
        results.unusable[0].reason.clone()
    };
    assert!(reason("cut.parquet", &whole[..whole.len() / 2]).starts_with("is damaged: "));
    assert_eq!(reason("empty.parquet", b""), "is empty");
    assert!(reason("text.parquet", b"node,run,elapsed_s\na,1,2\n").starts_with("is damaged: "));
    let piped =
        command(&["report", "-"]).stdin(std::fs::File::open(fixture("duckdb.parquet")).unwrap()).output();
    assert!(err(&piped.unwrap()).contains("cannot be read through a pipe: save the data to a file first"));
}

/// A fixture with some bytes changed.
fn damaged(fixture_name: &str, damage: &[(usize, u8)], cut: Option<usize>) -> Vec<u8> {
    let mut bytes = std::fs::read(fixture(fixture_name)).unwrap();
    for (at, byte) in damage {
        let at = at % bytes.len();
        bytes[at] = *byte;
    }
    if let Some(cut) = cut {
        bytes.truncate(cut % bytes.len());
    }
    bytes
}

/// The report's message for a file that crashes the Parquet library.
const FATAL: &str = "is damaged: the Parquet library crashed while it read the file, or ran out of memory";

/// Two such files: one has pages with a negative number of values, so the library asks for 2^61 bytes; the other has
/// a schema so deep that the stack overflows.
fn fatal() -> Vec<Vec<u8>> {
    const DEPTH: usize = 100_000;
    let [group, leaf]: [&[u8]; 2] = [b"\x35\x00\x18\x01a\x15\x02\x00", b"\x15\x02\x25\x00\x18\x01z\x00"];
    // Version, number of groups and one column, no rows.
    let count = (0..3).map(|byte| ((DEPTH + 1) >> (7 * byte)) as u8 & 127 | if byte < 2 { 128 } else { 0 });
    let mut footer = b"\x15\x02\x19\xfc".to_vec();
    footer.extend(count);
    footer.extend(group.repeat(DEPTH));
    footer.extend(leaf);
    footer.extend(b"\x16\x02\x19\x0c\x00");
    let length = (footer.len() as u32).to_le_bytes();
    let deep = [b"PAR1", footer.as_slice(), length.as_slice(), b"PAR1"].concat();
    vec![
        damaged("duckdb.parquet", &[(12, 1)], None),
        damaged("polars.parquet", &[(331, 1)], None),
        damaged("pandas.parquet", &[(449, 69)], None),
        deep,
    ]
}

#[test]
fn a_file_that_ends_the_process_is_a_damaged_one() {
    let folder = Folder::new();
    let good = folder.put("good.csv", "node,run,elapsed_s\na,1,1\n").display().to_string();
    for (number, bytes) in fatal().iter().enumerate() {
        let fatal = folder.put(&format!("{number}.parquet"), bytes).display().to_string();
        let alone = report(&["report", &fatal]);
        assert_eq!(alone.status.code(), Some(2), "{number}: {}", err(&alone));
        assert!(err(&alone).contains(&format!("{fatal}: {FATAL}")), "{}", err(&alone));
        // Rust must print no message of its own.
        assert!(err(&alone).starts_with("pmmpi: no run to report\n"), "{}", err(&alone));
    }
    // Two such files and a readable one.
    let output = report(&["report", "--format", "json", &folder.path().display().to_string()]);
    let told = json(&output)["warnings"].to_string();
    assert_eq!((output.status.code(), err(&output)), (Some(1), String::new()));
    assert!(fatal().len() > 1 && told.matches(FATAL).count() == fatal().len(), "{told}");
    assert_eq!(json(&output)["nodes"].as_array().unwrap().len(), 1);
    // The content of a pipe cannot be read again.
    let fatal = folder.path().join("0.parquet").display().to_string();
    let piped =
        command(&["report", "-", &fatal]).stdin(std::fs::File::open(&good).unwrap()).output().unwrap();
    assert_eq!(piped.status.code(), Some(1));
    assert!(err(&piped).contains("pmmpi cannot read a pipe a second time"), "{}", err(&piped));
    let piped = command(&["report", "--exit", "nagios", "-", &fatal])
        .stdin(std::fs::File::open(&good).unwrap())
        .output()
        .unwrap();
    assert_eq!((piped.status.code(), &common::out(&piped)[..15]), (Some(3), "PMMPI UNKNOWN -"));
    // For an archive, the only message is that it is damaged.
    let archive = folder.path().join("archive");
    std::fs::create_dir(&archive).unwrap();
    std::fs::copy(fatal, archive.join("0.parquet")).unwrap();
    let refused = export(&[&good], archive.to_str().unwrap());
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        err(&refused).contains(FATAL) && err(&refused).contains("repair or remove this file"),
        "{}",
        err(&refused)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the damage, the report names it or has the file's rows.
    #[test]
    fn damage_is_no_panic(
        which in 0..4usize,
        damage in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<u16>()),
    ) {
        let name = ["duckdb", "polars", "pandas", "long"][which];
        let damage: Vec<(usize, u8)> = damage.into_iter().map(|(at, byte)| (at.into(), byte)).collect();
        let bytes = damaged(&format!("{name}.parquet"), &damage, cut.map(usize::from));
        let folder = Folder::new();
        let file = folder.put("damaged.parquet", &bytes).display().to_string();
        let output = report(&["report", "--format", "json", &file]);
        match output.status.code() {
            Some(0 | 1) => {
                let report = json(&output);
                assert_valid("report", &report);
                let nodes = report["nodes"].as_array().unwrap();
                prop_assert!(nodes.iter().all(|node| node["median_s"].as_f64().is_some_and(|s| s > 0.0)));
                prop_assert!(!nodes.is_empty());
                prop_assert_eq!(err(&output), "");
            }
            code => {
                prop_assert_eq!(code, Some(2), "{:?}: {}", output.status, err(&output));
                prop_assert!(err(&output).starts_with("pmmpi: no run to report\n"), "{}", err(&output));
            }
        }
    }
}

/// The table is also a lazy frame: Polars' medians equal those of the report.
#[test]
fn the_table_can_be_queried() {
    use polars::prelude::*;
    let folder = Folder::new();
    let csv = two_months(&folder);
    let results = read(Path::new(&csv));
    let query = results.table.lazy().unwrap().filter(col("session").eq(lit("m11")));
    let medians = query
        .group_by([col("node")])
        .agg([col("elapsed_s").median(), col("cycles").count().alias("counted")])
        .sort(["node"], SortMultipleOptions::default())
        .collect()
        .unwrap();
    assert_eq!(medians.height(), 4);
    let output = json(&report(&["report", "--format", "json", &csv]));
    for node in output["nodes"].as_array().unwrap() {
        let row = node["node"].as_str().unwrap()[1..].parse::<usize>().unwrap();
        let median = medians.column("elapsed_s").unwrap().f64().unwrap().get(row).unwrap();
        // serde_json may change the last digit.
        assert!((node["median_s"].as_f64().unwrap() - median).abs() < 1e-12, "{node}");
        assert_eq!(medians.column("counted").unwrap().u32().unwrap().get(row), Some(4));
    }
    let types = results.table.lazy().unwrap().collect_schema().unwrap();
    assert_eq!(types.get("started").unwrap().to_string(), "datetime[ns]");
}
