//! Counts by place in archives: `export --places`.

use super::common::{Folder, assert_valid, err, json, out, report};
use super::{SKYLAKE, write_fleet};
use polars::prelude::*;
use polars_io::SerReader;
use polars_io::parquet::read::ParquetReader;
use polars_io::parquet::write::ParquetWriter;
use std::fs::File;
use std::path::Path;

/// An archive with places answers like the run files, and a second export adds nothing.
#[test]
fn an_archive_keeps_places() {
    let folder = Folder::new();
    let runs = folder.path().join("runs");
    std::fs::create_dir(&runs).unwrap();
    write_fleet(&runs, 6, SKYLAKE);
    let archive = folder.path().join("archive");
    let (runs, archive) = (runs.to_str().unwrap(), archive.to_str().unwrap());
    let export = |args: &[&str]| out(&report(&[&["export", runs, "-o", archive], args].concat()));
    assert!(export(&[]).starts_with("60 rows added"));
    let all =
        |path: &str, args: &[&str]| json(&report(&[&["report", path, "--format", "json"], args].concat()));
    let by = ["--by", "core"];
    let without = all(archive, &by);
    assert_eq!(without["by_place"]["places"].as_array().map(Vec::len), Some(0));
    assert!(
        without["warnings"].to_string().contains("60 runs of an archive have no counts by place"),
        "{without}"
    );
    let text = export(&["--places"]);
    assert!(
        text.contains("0 rows added")
            && text.contains("60 were already there; counts by place of 60 runs added"),
        "{text}"
    );
    assert!(export(&["--places"]).contains("; counts by place of 0 runs added"));
    let (of_files, of_archive) = (all(runs, &by), all(archive, &by));
    assert_valid("report", &of_archive);
    assert_eq!(of_archive["by_place"], of_files["by_place"]);
    assert_eq!(of_archive["slow_runs"], of_files["slow_runs"]);
    assert!(of_archive["slow_runs"][0]["places"].is_object());
    let csv = out(&report(&["report", archive, "--by", "core", "--format", "csv"]));
    let head = "class,node,socket,numa,core,rank,region,runs_are,runs,kind,name,unit,value\n";
    assert!(csv.starts_with(head) && csv.contains(",slow,1,metric,read_bandwidth,B/s,"), "{}", &csv[..2000]);

    assert!(csv.contains(",event,system_read_bytes,bytes,"));

    // From this archive, no other one gets places.
    let other = folder.path().join("other");
    let output = report(&["export", archive, "-o", other.to_str().unwrap(), "--places"]);
    assert!(err(&output).contains("of 60 runs, because their run files are missing"), "{}", err(&output));

    // A file that was damaged costs only its rows.
    let places = Path::new(archive).join("_places/month=2026-11");
    let file = std::fs::read_dir(&places).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let output = report(&["report", archive, "--by", "core", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(json(&output)["warnings"].to_string().contains("unread-places"));
    let output = report(&["export", runs, "-o", archive, "--places"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains(": remove it, and export the run files again"), "{}", err(&output));
    std::fs::remove_file(&file).unwrap();
    assert!(export(&["--places"]).contains("; counts by place of 60 runs added"));
    assert_eq!(all(archive, &by)["by_place"], of_files["by_place"]);

    // What is no folder is no empty folder.
    std::fs::remove_dir_all(&places).unwrap();
    std::fs::remove_dir(places.parent().unwrap()).unwrap();
    std::fs::write(places.parent().unwrap(), "").unwrap();
    assert!(all(archive, &by)["warnings"].to_string().contains("_places cannot be read"));
    let output = report(&["export", runs, "-o", archive, "--places"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
}

/// Other programs may write the files: what they changed is refused as a whole, and no run counts twice.
#[test]
fn rows_of_other_programs_are_read_once_or_refused() {
    let folder = Folder::new();
    let runs = folder.path().join("runs");
    std::fs::create_dir(&runs).unwrap();
    write_fleet(&runs, 2, SKYLAKE);
    let archive = folder.path().join("archive");
    let (runs, archive) = (runs.to_str().unwrap(), archive.to_str().unwrap());
    out(&report(&["export", runs, "-o", archive, "--places"]));
    let places = Path::new(archive).join("_places/month=2026-11");
    let file = std::fs::read_dir(&places).unwrap().next().unwrap().unwrap().path();
    let whole = ParquetReader::new(File::open(&file).unwrap()).finish().unwrap();
    let write = |path: &Path, frame: &mut DataFrame| {
        ParquetWriter::new(File::create(path).unwrap()).finish(frame).unwrap();
    };
    let by_node = || json(&report(&["report", archive, "--by", "node", "--format", "json"]));
    let expected = by_node()["by_place"].clone();
    assert_eq!(expected["places"][0]["runs"], 9);

    // A copy of the same runs counts for nothing.
    write(&places.join("z.parquet"), &mut whole.clone());
    assert_eq!(by_node()["by_place"], expected);

    let sorted = whole.sort(["event"], SortMultipleOptions::default()).unwrap();
    let mut negative = whole.clone();
    let values = negative.column("value").unwrap().f64().unwrap().apply_values(|value| -value);
    negative.with_column(values.into_column()).unwrap();
    let mut without = whole.clone();
    without = without.drop("region").unwrap();
    for (frame, reason) in [
        (sorted, "are not next to one another"),
        (negative, "the column `value` has -"),
        (without, "it has no column `region`"),
    ] {
        // The second file has all runs, so nothing is lost.
        write(&file, &mut frame.clone());
        let all = by_node();
        assert_valid("report", &all);
        assert_eq!(all["by_place"], expected, "{reason}");
        assert!(all["warnings"].to_string().contains(reason), "{}", all["warnings"]);
        assert!(!all["warnings"].to_string().contains("no counts by place"), "{}", all["warnings"]);
    }
}
