//! Tables in CSV.

use super::common::Folder;
use super::{
    assert_columns_agree, class, counter, origins, read, read_csv, reasons, row, rows, session, started,
};
use pmmpi_analysis::input::importers::{self, ImportOptions, REJECTED_KEPT};
use proptest::prelude::*;

#[test]
fn every_column_is_read() {
    let results = read_csv(
        "node,run,elapsed_s,class,started,session,cycles,comment\n\
         a,1,12.5,big,2026-11-21T20:35:00.5+01:00,mon,1e9,first\n\
         b,1,13,,,,,\n",
    );
    assert_eq!(rows(&results), [row("a/1", 12.5), row("b/1", 13.0)]);
    assert_eq!((class(&results, 0), session(&results, 0)), ("big", "mon"));
    assert_eq!((class(&results, 1), session(&results, 1)), ("", ""));
    assert_eq!(started(&results), [Some(1_795_289_700_500_000_000), None]);
    assert_eq!(counter(&results, "cycles"), [Some(1e9), None]);
    assert_eq!(results.unread["comment"], 1);
    assert_eq!((results.rejected_rows, results.rejected_values, results.table.counters.len()), (0, 0, 1));
    assert_eq!(origins(&results), [(0, 2), (0, 3)]);
    assert_columns_agree(&results);
}

/// The spelling that the caller wants may come after another one.
#[test]
fn a_counter_is_one_column_in_all_spellings() {
    let folder = Folder::new();
    let file = |(number, name): (usize, &str)| {
        folder.put(&format!("{number}.csv"), format!("node,run,elapsed_s,{name}\nn{number},1,2,7\n"))
    };
    let files: Vec<_> = ["Cycles", "cycles", "CYCLES", "Cycles"].into_iter().enumerate().map(file).collect();
    let results =
        importers::read(&files, &ImportOptions { counters: Some(&["cycles"]), ..ImportOptions::default() });
    // The caller did not want the name in the first file.
    assert_eq!(counter(&results, "cycles"), [None, Some(7.0), Some(7.0), Some(7.0)]);
}

#[test]
fn files_are_read_as_spreadsheets_write_them() {
    let plain = "node,run,elapsed_s,class\na,1,1.5,x y\nb,2,2.5,x y\n";
    let expected = rows(&read_csv(plain));
    let variants = [
        format!("\u{feff}{plain}"),
        plain.replace('\n', "\r\n"),
        plain.replace(',', ";"),
        plain.replace(',', "\t"),
        plain.replace("a,1", "\"a\" , \"1\"").replace("node,run", "\"Node\", RUN "),
        plain.trim_end().to_owned(),
        plain.replace('\n', "\n\n"),
        format!("\n{plain}"),
    ];
    for variant in variants {
        let results = read_csv(&variant);
        assert_eq!((rows(&results), results.rejected_rows), (expected.clone(), 0), "{variant:?}");
        assert_eq!(class(&results, 1), "x y");
    }
}

#[test]
fn what_makes_no_sense_is_named_and_the_rest_kept() {
    let wrong = [
        ("a,1,nan", "elapsed_s: `nan` is not a time above zero"),
        ("a,1,inf", "elapsed_s: `inf` is not a time above zero"),
        ("a,1,-1", "elapsed_s: `-1` is not a time above zero"),
        ("a,1,0", "elapsed_s: `0` is not a time above zero"),
        ("a,1,1e999", "elapsed_s: `1e999` is not a time above zero"),
        ("a,1,", "elapsed_s: `` is empty: expected a number of seconds"),
        ("a,1,12.3ms", "elapsed_s: `12.3ms` has a unit: expected a number of seconds without a unit"),
        ("a,1,12 s", "elapsed_s: `12 s` has a unit: expected a number of seconds without a unit"),
        (
            "a,1,\"1,5\"",
            "elapsed_s: `1,5` is not a number: use a point as the decimal sign, and do not group digits",
        ),
        ("a,1,00:01:02", "elapsed_s: `00:01:02` is not a number: expected seconds, not hours and minutes"),
        ("a,1,x", "elapsed_s: `x` is not a number: expected seconds"),
        ("a,1", "the line has 2 fields, but the header has 3"),
        ("a,1,2,3", "the line has 4 fields, but the header has 3"),
        (",1,2", "node is empty"),
        ("a,,2", "run is empty"),
        ("a\u{0},1,2", "node: `a?` contains a control character"),
        ("\"a,1,2", "the line has a quote that is not closed"),
        ("good,1,2", "run good/1 is already in line 2; only the first row counts"),
    ];
    for (line, reason) in wrong {
        let results = read_csv(format!("node,run,elapsed_s\ngood,1,1\n{line}\ngood,2,2\n"));
        assert_eq!(reasons(&results), [(3, reason)], "{line:?}");
        assert_eq!(rows(&results), [row("good/1", 1.0), row("good/2", 2.0)], "{line:?}");
        assert_eq!(results.rejected_rows, 1);
    }
    let results = read_csv(b"node,run,elapsed_s\n\xff\xfe,1,2\nb,1,2\n");
    assert_eq!(reasons(&results).len(), 1);
    assert!(results.rejected[0].reason.contains("is not UTF-8"));
}

#[test]
fn a_run_may_come_again_in_another_session_or_class() {
    let results = read_csv(
        "node,run,elapsed_s,class,session\n\
         a,1,1,x,mon\na,1,2,x,tue\na,1,3,y,tue\na,1,4,x,mon\n",
    );
    assert_eq!(results.table.elapsed_s, [1.0, 2.0, 3.0]);
    let reason = "run a/1 of class x of session mon is already in line 2; only the first row counts";
    assert_eq!(reasons(&results), [(5, reason)]);
}

#[test]
fn a_value_that_makes_no_sense_costs_no_row() {
    let results = read_csv(
        "node,run,elapsed_s,started,cycles\n\
         a,1,1,yesterday,5\nb,1,1,,12e\nc,1,1,2026-11-21T20:35:00Z,NA\nd,1,1,,inf\ne,1,1,,7\n",
    );
    assert_eq!((results.table.len(), results.rejected_rows, results.rejected_values), (5, 0, 3));
    assert_eq!(counter(&results, "cycles"), [Some(5.0), None, None, None, Some(7.0)]);
    assert_eq!(started(&results).iter().flatten().count(), 1);
    let expected = [
        (2, "started: `yesterday` was left out: expected RFC 3339, such as 2026-11-21T20:35:00+01:00"),
        (3, "cycles: `12e` is not a number, so this value was left out"),
        (5, "cycles: `inf` is not a number, so this value was left out"),
    ];
    assert_eq!(reasons(&results), expected);
}

fn unusable(content: impl AsRef<[u8]>) -> String {
    let results = read_csv(content);
    assert_eq!((results.table.len(), results.unusable.len(), results.sources.len()), (0, 1, 0));
    results.unusable[0].reason.clone()
}

#[test]
fn a_file_that_is_no_table_is_named() {
    assert_eq!(unusable(""), "is empty");
    assert_eq!(unusable("\n\n"), "is empty");
    assert_eq!(unusable("node,run,elapsed_s\n"), "contains no rows of results");
    assert_eq!(
        unusable("node,run,elapsed_ms\na,1,2\n"),
        "has no column `elapsed_s` (expected: node,run,elapsed_s; found: node,run,elapsed_ms); if \
         the column `elapsed_ms` contains the time, write this time in seconds into a column `elapsed_s`"
    );
    assert!(unusable("1,2,3\n4,5,6\n").ends_with("the first line must name the columns"));
    assert!(unusable("node,run,elapsed_s,Node\na,1,2,3\n").starts_with("has two columns `Node`"));
    assert!(unusable("node,run,elapsed_s,x,x\na,1,2,3,4\n").starts_with("has two columns `x`"));
    assert!(unusable(vec![b'x'; 3 << 20]).contains("too long for a header"));
}

#[test]
fn a_gigantic_field_is_one_row() {
    let giant = "y".repeat(5 << 20);
    let results = read_csv(format!("node,run,elapsed_s\na,1,1\n{giant}\nb,{giant},1\nc,1,1\n"));
    assert_eq!(rows(&results), [row("a/1", 1.0), row("c/1", 1.0)]);
    let reason = "the line is longer than 1048576 bytes";
    assert_eq!(reasons(&results), [(3, reason), (4, reason)]);
    let long = "y".repeat(5000);
    let results = read_csv(format!("node,run,elapsed_s\n{long},1,1\n"));
    let reason = format!("node is longer than 4096 bytes: {}...", "y".repeat(40));
    assert_eq!(reasons(&results), [(2, reason.as_str())]);
}

#[test]
fn one_bad_line_of_a_million() {
    let mut content = String::from("node,run,elapsed_s\n");
    for row in 0..1_000_000 {
        let time = if row == 700_000 { "\"1.5ms" } else { "1.5" };
        content.push_str(&format!("n{},{},{time}\n", row % 10_000, row / 10_000));
    }
    let results = read_csv(&content);
    assert_eq!((results.table.len(), results.table.nodes.len(), results.rejected_rows), (999_999, 10_000, 1));
    assert_eq!(reasons(&results), [(700_002, "the line has a quote that is not closed")]);
    assert!(results.path_of(&results.rejected[0]).unwrap().ends_with("results.csv"));
}

#[test]
fn all_are_counted_and_the_first_named() {
    let content = format!("node,run,elapsed_s\na,1,1\n{}", "a,2,never\n".repeat(1000));
    let results = read_csv(content);
    assert_eq!((results.table.len(), results.rejected_rows), (1, 1000));
    assert_eq!(results.rejected.len(), REJECTED_KEPT);
}

#[test]
fn what_the_path_says_stands_for_columns() {
    let folder = Folder::new();
    folder.put("mon/n1.csv", "run,elapsed_s\n1,1\n2,2\n");
    folder.put("tue/n1.csv", "run,elapsed_s\n1,3\n");
    let options =
        ImportOptions { path: Some("{session}/{node}.csv".parse().unwrap()), ..ImportOptions::default() };
    let results = read(folder.path(), &options);
    assert_eq!(rows(&results), [row("n1/1", 1.0), row("n1/2", 2.0), row("n1/1", 3.0)]);
    assert_eq!((session(&results, 0), session(&results, 2)), ("mon", "tue"));
    let options = ImportOptions { path: Some("x{node}.csv".parse().unwrap()), ..ImportOptions::default() };
    assert!(read(folder.path(), &options).unusable[0].reason.contains("does not match the pattern"));
}

fn table() -> impl Strategy<Value = Vec<(String, u32, f64)>> {
    proptest::collection::vec(("[a-c]{1,2}", 0u32..50, 1e-9f64..1e9), 1..40)
}

proptest! {
    /// Written numbers are read back to the last bit.
    #[test]
    fn a_table_is_read_as_it_was_written(table in table()) {
        let lines = table.iter().map(|(node, run, s)| format!("{node},{run},{s}\n")).collect::<String>();
        let results = read_csv(format!("node,run,elapsed_s\n{lines}"));
        let mut seen = std::collections::HashSet::new();
        let expected: Vec<_> = table
            .iter()
            .filter(|(node, run, _)| seen.insert((node, run)))
            .map(|(node, run, s)| (format!("{node}/{run}"), *s))
            .collect();
        prop_assert_eq!(rows(&results), expected);
        prop_assert_eq!(results.rejected_rows as usize, table.len() - seen.len());
        assert_columns_agree(&results);
    }

    /// Whatever byte is damaged, each line that is not blank becomes a row or a rejected row.
    #[test]
    fn damage_never_hides_a_row(
        table in table(),
        damage in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..4),
    ) {
        let header = "node,run,elapsed_s,started\n";
        let lines = table.iter().map(|(node, run, s)| format!("{node},{run},{s},\n")).collect::<String>();
        let mut bytes = lines.into_bytes();
        for (at, byte) in damage {
            let at = at as usize % bytes.len();
            bytes[at] = byte;
        }
        let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
        let results = read_csv([header.as_bytes(), &bytes].concat());
        prop_assert_eq!(results.table.len() as u64 + results.rejected_rows, lines as u64);
        assert_columns_agree(&results);
    }

    #[test]
    fn no_bytes_are_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let results = read_csv(&bytes);
        assert_columns_agree(&results);
        read_csv([b"node,run,elapsed_s\n".as_slice(), &bytes].concat());
    }
}
