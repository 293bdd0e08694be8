//! Reads and writes Parquet: files of several writers, growing archives, and damaged files.

#[path = "archive/classes.rs"]
mod classes;
mod common;
#[path = "archive/damaged.rs"]
mod damaged;
#[path = "archive/reading.rs"]
mod reading;
#[path = "common/runs.rs"]
#[expect(dead_code)]
mod runs;

use common::{Folder, assert_valid, command, err, json, report};
use pmmpi_analysis::input::importers::{self, ImportOptions, Results};
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
    assert!(err(&refused).contains("Repair or remove this file"), "{}", err(&refused));
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
