//! Results of other tools: files that those tools wrote, files that people write by hand, and damaged files.

#[expect(dead_code)]
mod common;

use common::Folder;
use pmmpi_analysis::input::importers::{self, FileFormat, ImportOptions, REJECTED_KEPT, Results};
use pmmpi_analysis::table::UNDATED;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn read(path: &Path, options: &ImportOptions) -> Results {
    importers::read(&[path.to_owned()], options)
}

fn read_csv(content: impl AsRef<[u8]>) -> Results {
    let folder = Folder::new();
    let options = ImportOptions { format: Some(FileFormat::Csv), ..ImportOptions::default() };
    read(&folder.put("results.csv", content), &options)
}

/// `node/run` and time for each row.
fn rows(results: &Results) -> Vec<(String, f64)> {
    (0..results.table.len()).map(|row| (results.table.run_id(row), results.table.elapsed_s[row])).collect()
}

fn row(id: &str, elapsed_s: f64) -> (String, f64) {
    (id.to_owned(), elapsed_s)
}

/// Line and reason of each rejected row.
fn reasons(results: &Results) -> Vec<(u64, &str)> {
    results.rejected.iter().map(|rejected| (rejected.line, rejected.reason.as_str())).collect()
}

fn class(results: &Results, row: usize) -> &str {
    results.table.classes.get(results.table.class.at(row)).unwrap()
}

fn session(results: &Results, row: usize) -> &str {
    results.table.sessions.get(results.table.session.at(row)).unwrap()
}

fn counter(results: &Results, name: &str) -> Vec<Option<f64>> {
    results.table.counters[name].iter().map(|value| Some(*value).filter(|value| !value.is_nan())).collect()
}

fn started(results: &Results) -> Vec<Option<i64>> {
    results.table.started_unix_ns.iter().map(|ns| Some(*ns).filter(|ns| *ns != UNDATED)).collect()
}

/// File and line of each row.
fn origins(results: &Results) -> Vec<(u32, u64)> {
    let origins = &results.table.origins;
    (0..results.table.len()).map(|row| (origins.source(row), origins.line(row))).collect()
}

fn assert_columns_agree(results: &Results) {
    let rows = results.table.len();
    let lengths = [
        results.table.origins.sources().count(),
        results.table.node.len(),
        results.table.run.len(),
        results.table.class.len(),
        results.table.session.len(),
        results.table.started_unix_ns.len(),
    ];
    assert_eq!(lengths, [rows; 6]);
    assert!(results.table.counters.values().all(|values| values.len() == rows));
    assert_eq!(results.sources.iter().map(|source| source.rows).sum::<u64>(), rows as u64);
    assert_eq!(results.sources.iter().map(|s| s.rejected_rows).sum::<u64>(), results.rejected_rows);
    assert!(results.table.elapsed_s.iter().all(|s| s.is_finite() && *s > 0.0));
    assert!(results.table.node.iter().all(|node| results.table.nodes.get(node).is_some()));
}

mod csv {
    use super::*;

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
            (
                "a,1,00:01:02",
                "elapsed_s: `00:01:02` is not a number: expected seconds, not hours and minutes",
            ),
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
             elapsed_ms is the time, give it in seconds as elapsed_s"
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
        assert_eq!(
            (results.table.len(), results.table.nodes.len(), results.rejected_rows),
            (999_999, 10_000, 1)
        );
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
        let options =
            ImportOptions { path: Some("x{node}.csv".parse().unwrap()), ..ImportOptions::default() };
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
}

mod hpl {
    use super::*;

    #[test]
    fn an_output_of_hpl_is_read() {
        let results = read(&fixture("hpl/n01/HPL.out"), &ImportOptions::default());
        assert_eq!(results.sources[0].format, FileFormat::Hpl);
        let ids: Vec<String> = rows(&results).into_iter().map(|(id, _)| id).collect();
        // The file does not name its host, so the folder does.
        assert_eq!(ids, ["n01/1", "n01/2", "n01/3", "n01/4"]);
        assert_eq!(class(&results, 0), "HPL N=200 NB=32 P=1 Q=2 WR11C2R4");
        assert_eq!(counter(&results, "hpl_n"), [200.0, 200.0, 500.0, 500.0].map(Some));
        assert_eq!(counter(&results, "hpl_residual")[1], Some(6.32440839e-03));
        // N = 500, NB = 80: 0.09 s and 8.8657e-01 Gflops, so the time is (2/3 N^3 + 3/2 N^2) / 0.88657e9.
        let elapsed_s = results.table.elapsed_s[3];
        assert!((elapsed_s - 83_708_333.3 / 0.88657e9).abs() < 1e-9, "{elapsed_s}");
        assert_eq!(results.rejected_rows, 0);
        assert_columns_agree(&results);
    }

    #[test]
    fn what_was_not_checked_by_order_counts() {
        let results = read(&fixture("hpl/n02/HPL.out"), &ImportOptions::default());
        assert_eq!((results.table.len(), results.rejected_rows), (4, 0));
        assert!(!results.table.counters.contains_key("hpl_residual"));
    }

    #[test]
    fn an_output_of_hpc_challenge_names_its_host_and_start() {
        let results = read(&fixture("hpl/hpcc/hpccoutf.txt"), &ImportOptions::default());
        assert_eq!(rows(&results), [row("vm/1", 0.0221053)]);
        assert_eq!(started(&results), [Some(1_795_294_923_000_000_000)]);
        assert_eq!((results.table.origins.line(0), results.rejected_rows), (414, 0));
        assert_eq!(counter(&results, "gflops"), [Some(0.244)]);
    }

    #[test]
    fn a_failed_residual_is_named() {
        let results = read(&fixture("hpl/appended/hpccoutf.txt"), &ImportOptions::default());
        assert_eq!((results.table.len(), results.rejected_rows), (4, 4));
        let failed = [444, 456, 1088, 1100];
        assert_eq!(reasons(&results).iter().map(|(line, _)| *line).collect::<Vec<_>>(), failed);
        assert_eq!(results.rejected[0].reason, "the residual 0.0122196 of this result FAILED (line 446)");
        // Two starts, each with its own time.
        assert!(started(&results)[0] < started(&results)[2]);
        assert_eq!(results.table.runs.iter().collect::<Vec<_>>(), ["1", "2", "3", "4"]);
    }

    #[test]
    fn a_folder_of_outputs_is_read_by_node() {
        let results = read(&fixture("hpl"), &ImportOptions::default());
        assert_eq!(results.table.nodes.iter().collect::<Vec<_>>(), ["vm", "n01", "n02"]);
        assert_eq!((results.sources.len(), results.table.len(), results.rejected_rows), (4, 13, 4));
        assert_columns_agree(&results);
        let options =
            ImportOptions { path: Some("{node}/HPL.out".parse().unwrap()), ..ImportOptions::default() };
        let results = read(&fixture("hpl"), &options);
        assert_eq!((results.table.len(), results.unusable.len()), (8, 2));
    }

    #[test]
    fn a_job_that_ended_early_is_named() {
        let folder = Folder::new();
        let whole = std::fs::read_to_string(fixture("hpl/n01/HPL.out")).unwrap();
        let (head, rest) = whole.split_at(whole.find("T/V                N").unwrap());
        let reason = |content: &str| {
            let results = read(&folder.put("HPL.out", content), &ImportOptions::default());
            assert_eq!((results.table.len(), results.rejected_rows), (0, 1), "{content}");
            results.rejected[0].reason.clone()
        };
        assert_eq!(reason(head), "the file has no result: HPL ended too early");
        let lines: Vec<&str> = rest.lines().collect();
        assert!(
            reason(&format!("{head}{}\n", lines[..2].join("\n"))).starts_with("this heading has no result")
        );
        let cut = format!("{head}{}\n", lines[..4].join("\n"));
        assert_eq!(
            reason(&cut),
            "the residual of this result is missing, so pmmpi does not know whether the solution is right"
        );
        let time = lines[2].split_whitespace().nth(5).unwrap();
        let other = cut.replace(time, "9.99") + lines[8] + "\n";
        assert!(reason(&other).contains("contradict one another"), "{other}");
    }

    proptest! {
        /// Whatever line is damaged, no result is lost silently: HPL prints the number of results.
        #[test]
        fn damage_never_hides_a_result(at in any::<usize>(), byte in any::<u8>()) {
            let mut bytes = std::fs::read(fixture("hpl/n01/HPL.out")).unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            let folder = Folder::new();
            let options = ImportOptions { format: Some(FileFormat::Hpl), ..ImportOptions::default() };
            let results = read(&folder.put("n1/HPL.out", &bytes), &options);
            prop_assert!(results.table.len() as u64 + results.rejected_rows >= 4);
            assert_columns_agree(&results);
        }
    }
}

mod perf {
    use super::*;

    #[test]
    fn samples_count_by_their_period() {
        let results = read(&fixture("perf/spin.txt"), &ImportOptions::default());
        assert_eq!(results.sources[0].format, FileFormat::Perf);
        assert_eq!(rows(&results), [row("vm/1", 1.02055)]);
        // 5184 samples, one for each 100,000 ns; pmmpi's table has no name for this clock.
        assert_eq!(counter(&results, "cpu-clock"), [Some(518_400_000.0)]);
        assert_eq!(results.table.counters.len(), 1);
        assert_columns_agree(&results);
    }

    #[test]
    fn counts_of_a_group_are_not_read_and_a_header_is_needed() {
        let results = read(&fixture("perf/group.txt"), &ImportOptions::default());
        assert_eq!(rows(&results).len(), 1);
        assert!(results.table.counters.is_empty());
        let unread: Vec<&String> = results.unread.keys().collect();
        assert!(
            unread[0].contains("cpu-clock, page-faults") && unread[0].contains("--no-group"),
            "{unread:?}"
        );
        let folder = Folder::new();
        let whole = std::fs::read_to_string(fixture("perf/spin.txt")).unwrap();
        let without = whole.replace("# sample duration", "# duration");
        let results = read(&folder.put("n1/perf.txt", without), &ImportOptions::default());
        assert_eq!(results.rejected_rows, 1);
        assert!(reasons(&results)[0].1.contains("sample duration"));
        let (_, body) = whole.split_once("# ========\n#\n").unwrap();
        let hint = "# To display the perf.data header info, please use --header/--header-only options.\n#\n";
        let results = read(&folder.put("n2/perf.txt", format!("{hint}{body}")), &ImportOptions::default());
        assert!(results.unusable[0].reason.contains("perf report --stdio --header"));
    }
}

mod hyperfine {
    use super::*;

    #[test]
    fn each_timed_run_is_a_row() {
        let results = read(&fixture("hyperfine/hyperfine.json"), &ImportOptions::default());
        assert_eq!(results.sources[0].format, FileFormat::Hyperfine);
        // Six commands (three, with two parameters each) with six runs each; `exit 3` failed.
        assert_eq!((results.table.len(), results.rejected_rows), (24, 12));
        assert_eq!(results.rejected[0].reason, "results[1].times[0]: the run failed with exit code 3");
        assert_eq!(rows(&results)[0], row("hyperfine/1", 0.023846873));
        assert_eq!((class(&results, 0), class(&results, 23)), ("sleep 0.02 n=0.01", "sleep 0.03 n=0.03"));
        assert_eq!(results.table.classes.len(), 4);
        assert_columns_agree(&results);
        let options = ImportOptions { node: Some("login1".into()), ..ImportOptions::default() };
        let results = read(&fixture("hyperfine/hyperfine.json"), &options);
        assert_eq!(rows(&results)[23].0, "login1/24");
    }

    #[test]
    fn a_signal_and_what_has_no_times_are_named() {
        let folder = Folder::new();
        let content = r#"{"results":[{"command":"a","times":[1.5,2.5,"x",3],"exit_codes":[0,null,0],
            "memory_usage_byte":[1024,1,1,1]},{"command":"b"}]}"#;
        let results = read(&folder.put("n1.json", content), &ImportOptions::default());
        assert_eq!(rows(&results), [row("n1/1", 1.5)]);
        let expected = [
            (2, "results[0].times[1]: a signal ended the run"),
            (3, "results[0].times[2]: `\"x\"` is not a time"),
            (4, "results[0].times[3]: the run has no exit code"),
            (5, "results[1] has no times"),
        ];
        assert_eq!(reasons(&results), expected);
        assert_eq!(counter(&results, "memory_usage_byte"), [Some(1024.0)]);
    }
}

mod reframe {
    use super::*;

    const VERSIONS: [&str; 3] = ["3.12.0", "4.5.2", "4.9.2"];

    fn report(version: &str, options: &ImportOptions) -> Results {
        read(&fixture(&format!("reframe/report-{version}.json")), options)
    }

    #[test]
    fn each_version_says_the_same() {
        for version in VERSIONS {
            let results = report(version, &ImportOptions::default());
            assert_eq!(results.sources[0].format, FileFormat::Reframe);
            assert_eq!((results.table.len(), results.rejected_rows), (4, 4), "{version}");
            assert_eq!(results.table.elapsed_s, [123.4 / 1e3; 4]);
            assert_eq!(counter(&results, "bandwidth"), [Some(5.6); 4]);
            assert_eq!(results.table.nodes.iter().collect::<Vec<_>>(), ["vm"]);
            // Repetitions are in one class. A run that failed its performance reference is slow, so it must stay in.
            let classes: Vec<&str> = (0..4).map(|row| class(&results, row)).collect();
            let [solve, slow] =
                ["Solve", "Slow"].map(|name| format!("{name} @generic:default+builtin, solve_time"));
            assert_eq!(classes, [&solve, &solve, &slow, &slow]);
            assert!(started(&results).iter().all(|t| t.is_some_and(|t| t / 1_000_000_000 > 1_795_295_000)));
            assert!(results.rejected[0].reason.contains("no performance variable in a unit of time"));
            assert!(results.rejected[3].reason.contains("result `fail"), "{}", results.rejected[3].reason);
            assert_columns_agree(&results);
        }
    }

    #[test]
    fn the_metric_may_be_chosen() {
        let options =
            |metric: &str| ImportOptions { metric: Some(metric.into()), ..ImportOptions::default() };
        for version in VERSIONS {
            assert_eq!(report(version, &options("solve_time")).table.len(), 4);
            assert_eq!(report(version, &options("bandwidth")).table.len(), 0);
            let results = report(version, &options("time_run"));
            assert_eq!((results.table.len(), results.rejected_rows), (6, 2));
            assert!(results.table.elapsed_s.iter().all(|s| *s > 0.01 && *s < 60.0));
        }
    }

    #[test]
    fn cases_of_an_earlier_session_are_its_own() {
        let folder = Folder::new();
        let whole = std::fs::read_to_string(fixture("reframe/report-4.9.2.json")).unwrap();
        let mut report: serde_json::Value = serde_json::from_str(&whole).unwrap();
        report["restored_cases"] = report["runs"][0]["testcases"].clone();
        let results = read(&folder.put("r.json", report.to_string()), &ImportOptions::default());
        assert_eq!((results.table.len(), results.unread["restored_cases"]), (4, 8));
    }

    #[test]
    fn another_version_is_named() {
        let folder = Folder::new();
        let path = folder.put("r.json", r#"{"session_info":{"data_version":"1.3.0"},"runs":[]}"#);
        let results = read(&path, &ImportOptions::default());
        let expected = "has the format version `1.3.0`, but pmmpi reads only 2.x, 3.x and 4.x";
        assert_eq!(results.unusable[0].reason, expected);
    }

    #[test]
    fn a_link_to_the_last_report_is_not_another() {
        let folder = Folder::new();
        let content = std::fs::read(fixture("reframe/report-4.9.2.json")).unwrap();
        let path = folder.put("run-report-0.json", content);
        std::os::unix::fs::symlink(path, folder.path().join("latest.json")).unwrap();
        let results = read(folder.path(), &ImportOptions::default());
        assert_eq!((results.table.len(), results.rejected_rows, results.sources.len()), (4, 4, 1));
    }
}

mod superbench {
    use super::*;

    /// `class node/run` and time for each row.
    fn times(results: &Results) -> Vec<(String, f64)> {
        let rows = rows(results).into_iter().enumerate();
        rows.map(|(row, (id, s))| (format!("{} {id}", class(results, row)), s)).collect()
    }

    #[test]
    fn repetitions_are_runs() {
        let path = fixture("superbench/2026-11-21_21-20-00/results-summary.jsonl");
        let results =
            read(&path, &ImportOptions { metric: Some("_time_avg".into()), ..ImportOptions::default() });
        let class = "tcp-connectivity/127.0.0.1_time_avg";
        let expected = [(0, 3.37), (1, 0.31)].map(|(run, ms)| (format!("{class} vm/{run}"), ms / 1e3));
        assert_eq!(times(&results), expected);
        assert_eq!((session(&results, 0), results.rejected_rows), ("2026-11-21_21-20-00", 0));
        // Counts, rates, and times that were not requested, twice each.
        assert_eq!((results.unread.len(), results.unread.values().sum::<u64>()), (5, 10));
        assert_eq!(read(&path, &ImportOptions::default()).table.len(), 6);
    }

    #[test]
    fn each_time_is_a_row_of_a_class_of_its_own() {
        let results = read(&fixture("superbench/by-hand.jsonl"), &ImportOptions::default());
        assert_eq!(results.sources[0].format, FileFormat::Superbench);
        let mut found = times(&results);
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let expected = [
            ("cpu-hpl/time sb-01/0", 12.5),
            ("cpu-hpl/time sb-01/1", 12.75),
            ("cpu-hpl/time sb-02/0", 13.0),
            ("kernel-launch/event_time sb-01/0:0", 0.0059 / 1e3),
            ("kernel-launch/event_time sb-01/0:1", 0.0061 / 1e3),
            ("kernel-launch/event_time sb-02/0:0", 0.006 / 1e3),
            ("model-benchmarks:gpt/pytorch-gpt2-large/fp16_train_step_time sb-01/0", 201.5 / 1e3),
            ("nccl-bw:nvlink/allreduce_8_time sb-01/0", 31.25 / 1e6),
        ];
        assert_eq!(found, expected.map(|(id, s)| (id.to_owned(), s)));
        let mut reasons = reasons(&results);
        reasons.sort();
        let expected = [
            (2, "cpu-hpl/1/time: `\"slow\"` is not a time"),
            (2, "kernel-launch/event_time:1: `null` is not a time"),
            (2, "mem-bw/return_code failed with return code 33"),
        ];
        assert_eq!(reasons, expected);
        // A rate is not a time, and neither is a temperature.
        let unread: Vec<&str> = results.unread.keys().map(String::as_str).collect();
        let expected = [
            "mem-bw/H2D_Mem_BW",
            "model-benchmarks:gpt/pytorch-gpt2-large/fp16_train_throughput",
            "monitor/gpu_temperature",
            "nccl-bw:nvlink/allreduce_8_busbw",
        ];
        assert_eq!(unread, expected);
        assert_eq!(session(&results, 0), "superbench");
        assert_columns_agree(&results);
    }

    #[test]
    fn a_metric_may_be_chosen() {
        let options = ImportOptions { metric: Some("cpu-hpl/time".into()), ..ImportOptions::default() };
        let results = read(&fixture("superbench/by-hand.jsonl"), &options);
        assert_eq!(rows(&results), [row("sb-01/0", 12.5), row("sb-01/1", 12.75), row("sb-02/0", 13.0)]);
        assert_eq!(results.unread["kernel-launch/event_time"], 4);
    }

    proptest! {
        /// A damaged line is rejected as a whole, or its remaining values are read.
        #[test]
        fn damage_of_a_line_is_told(at in any::<usize>(), byte in any::<u8>()) {
            let line = r#"{"cpu-hpl/time": 12.5, "node": "sb-01"}"#;
            let mut bytes = line.as_bytes().to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            let content = [line.as_bytes(), b"\n", &bytes, b"\n"].concat();
            let folder = Folder::new();
            let results = read(&folder.put("r.jsonl", content), &ImportOptions::default());
            let told = results.table.len() as u64 + results.rejected_rows + results.unread.values().sum::<u64>();
            prop_assert!(told >= 2, "{:?}", String::from_utf8_lossy(&bytes));
            assert_columns_agree(&results);
        }
    }
}

mod files {
    use super::*;

    #[test]
    fn content_says_what_a_file_is() {
        for (name, format) in [
            ("hpl/n01/HPL.out", FileFormat::Hpl),
            ("hpl/n02/HPL.out", FileFormat::Hpl),
            ("hpl/hpcc/hpccoutf.txt", FileFormat::Hpl),
            ("hyperfine/hyperfine.json", FileFormat::Hyperfine),
            ("perf/spin.txt", FileFormat::Perf),
            ("reframe/report-3.12.0.json", FileFormat::Reframe),
            ("reframe/report-4.5.2.json", FileFormat::Reframe),
            ("reframe/report-4.9.2.json", FileFormat::Reframe),
            ("superbench/by-hand.jsonl", FileFormat::Superbench),
            ("superbench/2026-11-21_21-20-00/results-summary.jsonl", FileFormat::Superbench),
        ] {
            let content = std::fs::read(fixture(name)).unwrap();
            assert_eq!(importers::detect::detect(&content, None), Some(format), "{name}");
        }
        for format in FileFormat::ALL {
            assert_eq!(FileFormat::from_name(format.name()), Some(format));
        }
    }

    #[test]
    fn what_is_not_known_is_named_with_what_was_tried() {
        let folder = Folder::new();
        let tried =
            "matches no format that pmmpi reads (csv, parquet, hpl, hyperfine, reframe, superbench, perf)";
        for (name, content, looks_like) in [
            ("notes.txt", &b"hello\n"[..], ""),
            ("a.csv.gz", b"\x1f\x8b\x08", "; it looks like compressed data: unpack it first"),
            ("a.pmr", b"xx", "; it looks like a run file of pmmpi"),
            ("a.json", b"{\"a\": 1}", "; it looks like JSON of another tool"),
            ("HPL.dat", b"HPLinpack benchmark input file\n", ""),
        ] {
            let results = read(&folder.put(name, content), &ImportOptions::default());
            assert_eq!(results.unusable[0].reason, format!("{tried}{looks_like}"), "{name}");
        }
        // In a folder the reader skips them and names each.
        folder.put("r.csv", "node,run,elapsed_s\na,1,1\n");
        folder.put("empty.csv", "");
        let results = read(folder.path(), &ImportOptions::default());
        assert_eq!((results.table.len(), results.foreign.len(), results.unusable.len()), (1, 4, 1));
    }

    #[test]
    fn paths_that_lead_nowhere_are_named() {
        let folder = Folder::new();
        let results = read(&folder.path().join("none.csv"), &ImportOptions::default());
        assert!(results.unusable[0].reason.starts_with("cannot be read: "));
        assert_eq!(read(folder.path(), &ImportOptions::default()).unusable[0].reason, "contains no files");
        folder.put("notes.txt", "hello\n");
        let reason = "contains no results: 1 file, none in a format that pmmpi reads (csv, parquet, hpl, \
                      hyperfine, reframe, superbench, perf)";
        assert_eq!(read(folder.path(), &ImportOptions::default()).unusable[0].reason, reason);
    }

    #[test]
    fn a_file_counts_once_and_a_run_once_in_all_files() {
        let folder = Folder::new();
        let first = folder.put("a.csv", "node,run,elapsed_s,cycles\nn,1,1,5\n");
        let second = folder.put("b.csv", "node,run,elapsed_s\nn,1,2\nn,2,2\n");
        let results =
            importers::read(&[folder.path().to_owned(), first.clone(), second], &ImportOptions::default());
        assert_eq!(rows(&results), [row("n/1", 1.0), row("n/2", 2.0)]);
        let expected =
            format!("run n/1 is already in {}, line 2; only the first row counts", first.display());
        assert_eq!(reasons(&results), [(2, expected.as_str())]);
        assert_eq!(counter(&results, "cycles"), [Some(5.0), None]);
        assert_eq!(origins(&results), [(0, 2), (1, 3)]);
    }

    #[test]
    fn json_that_ends_early_is_named() {
        let folder = Folder::new();
        let whole = std::fs::read(fixture("hyperfine/hyperfine.json")).unwrap();
        let results = read(&folder.put("h.json", &whole[..whole.len() / 2]), &ImportOptions::default());
        assert!(results.unusable[0].reason.starts_with("is not valid JSON: "), "{:?}", results.unusable);
    }

    proptest! {
        /// No file causes a panic, whatever format it is read as, and its content is reported.
        #[test]
        fn no_damage_is_a_panic(
            which in 0usize..7, damage in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..5)
        ) {
            let files = [
                "hpl/n02/HPL.out", "hpl/hpcc/hpccoutf.txt", "hyperfine/hyperfine.json",
                "reframe/report-3.12.0.json",
                "reframe/report-4.9.2.json", "superbench/by-hand.jsonl",
                "perf/spin.txt",
            ];
            let mut bytes = std::fs::read(fixture(files[which])).unwrap();
            for (at, byte) in damage {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            let folder = Folder::new();
            let path = folder.put("n1/file", &bytes);
            for format in FileFormat::ALL {
                let results = read(&path, &ImportOptions { format: Some(format), ..ImportOptions::default() });
                prop_assert!(results.table.len() as u64 + results.rejected_rows + results.unusable.len() as u64
                    + results.unread.len() as u64 > 0);
                assert_columns_agree(&results);
            }
        }
    }
}
