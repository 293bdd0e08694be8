//! Outputs of HPL and HPC Challenge.

use super::common::Folder;
use super::{assert_columns_agree, class, counter, fixture, read, reasons, row, rows, started};
use pmmpi_analysis::input::importers::{FileFormat, ImportOptions};
use proptest::prelude::*;

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
    let options = ImportOptions { path: Some("{node}/HPL.out".parse().unwrap()), ..ImportOptions::default() };
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
    assert!(reason(&format!("{head}{}\n", lines[..2].join("\n"))).starts_with("this heading has no result"));
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
