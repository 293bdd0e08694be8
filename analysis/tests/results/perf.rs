//! Files of `perf stat`.

use super::common::Folder;
use super::{assert_columns_agree, counter, fixture, read, reasons, row, rows};
use pmmpi_analysis::input::importers::{FileFormat, ImportOptions};

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
    assert!(unread[0].contains("cpu-clock, page-faults") && unread[0].contains("--no-group"), "{unread:?}");
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
