//! Damaged Parquet files.

use super::common::{self, Folder, assert_valid, command, err, json, report};
use super::{export, fixture, run};
use proptest::prelude::*;

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
        err(&refused).contains(FATAL) && err(&refused).contains("Repair or remove this file"),
        "{}",
        err(&refused)
    );
}

/// A run file of the input is no file of the archive: the other runs are not at risk.
#[test]
fn a_damaged_run_file_stops_no_export() {
    let folder = Folder::new();
    let of = |name: &str| folder.write(&run(name, &[("n1", [0, 10, 5_000_000_010, 5_000_000_020])]));
    let [bad, good] = ["bad", "good"].map(|name| of(name).display().to_string());
    let mut bytes = std::fs::read(&bad).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&bad, bytes).unwrap();
    let archive = folder.path().join("archive").display().to_string();
    let exported = export(&[&bad, &good], &archive);
    assert_eq!(exported.status.code(), Some(1));
    assert_eq!(common::out(&exported), format!("1 row added to {archive}, 0 were already there\n"));
    assert!(err(&exported).contains(&bad) && !err(&exported).contains(&good), "{}", err(&exported));
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
