//! Files of hyperfine.

use super::common::Folder;
use super::{assert_columns_agree, class, counter, fixture, read, reasons, row, rows};
use pmmpi_analysis::input::importers::{FileFormat, ImportOptions};

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
