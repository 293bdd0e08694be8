//! Which files are read: their formats, wrong paths, files that are given twice, damaged files.

use super::common::Folder;
use super::{assert_columns_agree, counter, fixture, origins, read, reasons, row, rows};
use pmmpi_analysis::input::importers::{self, FileFormat, ImportOptions};
use proptest::prelude::*;

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
    let expected = format!("run n/1 is already in {}, line 2; only the first row counts", first.display());
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
