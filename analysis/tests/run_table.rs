//! The table of runs, and `--run`.

#[expect(dead_code)]
mod common;
#[path = "common/runs.rs"]
#[expect(dead_code)]
mod runs;

use common::*;
use pmmpi::record::{End, Run};
use runs::run;
use serde_json::json;

const SECOND: i64 = 1_000_000_000;
/// 2026-11-21T01:19:03Z
const START: i64 = 1_795_223_943 * SECOND;

/// Runs an hour apart, with ids like those of pmmpi.
fn hourly(count: i64) -> Vec<Run> {
    let one = |number: i64| {
        let part = 0x97b5_0000_0000_0000u64 + ((number as u64) << 44);
        let id = format!("20261121T{:02}1903.000000000Z-{part:016x}", number + 1);
        let mut run = run(&id, &[("n0", [0, 0, SECOND, SECOND]), ("n1", [0, 0, SECOND, SECOND])]);
        run.header.started_unix_ns = START + 3600 * SECOND * number;
        run
    };
    (0..count).map(one).collect()
}

fn written(runs: &[Run]) -> Folder {
    let folder = Folder::new();
    runs.iter().for_each(|run| _ = folder.write(run));
    folder
}

/// The lines from the one above the table to the last run.
fn table(folder: &Folder) -> Vec<String> {
    let text = out(&report(&["report", folder.path().to_str().unwrap()]));
    let lines: Vec<&str> = text.lines().collect();
    let heading = lines.iter().position(|line| line.starts_with("RUN ")).expect(&text);
    lines[heading - 1..].iter().take_while(|line| !line.is_empty()).map(|line| (*line).to_owned()).collect()
}

#[test]
fn what_all_runs_have_in_common_is_said_once() {
    let folder = written(&hourly(2));
    assert_eq!(
        table(&folder),
        [
            "all runs: ./hpl -n; 2 ranks on 2 nodes; build=O3; 2026-11-21",
            "RUN    START, UTC  ELAPSED BETWEEN, s",
            "97b50  01:19:03    1.000000000 and 1.000000000",
            "97b51  02:19:03    1.000000000 and 1.000000000",
        ]
    );
}

#[test]
fn what_differs_has_a_column_and_fits_the_line() {
    let mut runs = hourly(3);
    runs[1].header.command = vec!["./a".into(), "x".repeat(200)];
    runs[1].header.labels = vec![("build".into(), "O3".into()), ("blas".into(), "openblas-".repeat(9))];
    runs[2].header.started_unix_ns += 24 * 3600 * SECOND;
    runs[2].ranks.truncate(1);
    runs[2].size = 1;
    for rank in &mut runs[0].ranks {
        rank.end = End::Signaled(9);
    }
    let lines = table(&written(&runs));
    assert_eq!(lines[0], "all runs: build=O3");
    assert!(
        lines[1].starts_with("RUN    START, UTC           RANKS  NODES  ELAPSED BETWEEN, s"),
        "{lines:?}"
    );
    assert!(lines[1].ends_with("COMMAND   LABELS"), "{lines:?}");
    assert!(
        lines[2]
            .contains("2026-11-21 01:19:03      2      2  1.000000000 and 1.000000000; signal 9  ./hpl -n"),
        "{lines:?}"
    );
    assert!(lines[3].contains("./a..xxx  bla..as-"), "{lines:?}");
}

/// Each short id can be typed; so can a whole id and the beginning of one.
#[test]
fn a_run_is_named_as_the_table_names_it() {
    let runs = hourly(3);
    let folder = written(&runs);
    let path = folder.path().to_str().unwrap();
    let archive = folder.path().join("archive");
    let archive = archive.to_str().unwrap();
    assert!(report(&["export", path, "-o", archive]).status.success());
    let chosen = |place: &str, names: &[&str]| {
        let names = names.iter().flat_map(|name| ["--run", name]);
        let output =
            report(&[&["report", place, "--format", "json"][..], &names.collect::<Vec<_>>()].concat());
        assert!(output.status.success(), "{}", err(&output));
        let found = json(&output);
        assert_valid("report", &found);
        found
    };
    let shorts: Vec<String> =
        table(&folder)[2..].iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(shorts.len(), 3);
    for (short, run) in shorts.iter().zip(&runs) {
        let id = run.header.run_id.as_str();
        for name in [short, id, &id[..11]] {
            let found = chosen(path, &[name]);
            assert_eq!(
                (&found["runs"][0]["run_id"], found["runs"].as_array().unwrap().len()),
                (&json!(id), 1)
            );
            assert_eq!(found["selected"], json!({"runs": [name]}));
            assert_eq!(found["nodes"][0]["median_run_id"], json!(id));
            assert_eq!(chosen(archive, &[name])["nodes"][0]["median_run_id"], json!(id), "archive");
        }
    }
    let two = chosen(path, &[&shorts[0], &shorts[2]]);
    assert_eq!(two["nodes"][0]["runs"], 2);
    let failed = |name: &str| {
        let output = report(&["report", path, "--run", name]);
        assert_eq!(output.status.code(), Some(2));
        err(&output)
    };
    let undecided = failed("97b");
    assert!(
        undecided.starts_with("pmmpi: --run 97b: the ids of 3 runs match. Type more of the id:\n"),
        "{undecided}"
    );
    assert!(runs.iter().all(|run| undecided.contains(&run.header.run_id)), "{undecided}");
    assert!(failed("zz").starts_with("pmmpi: --run: no run has the id zz\n"), "{}", failed("zz"));
    assert!(failed("").contains("expected a run id"), "{}", failed(""));
}

/// The same content as text, for tickets and browsers.
#[test]
fn pages_have_regions_metrics_labels_date_and_sources() {
    let samples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/samples/regions");
    let samples = samples.to_str().unwrap();
    for format in ["md", "html"] {
        let page = out(&report(&["report", samples, "--format", format]));
        for part in [
            "regions of the last run, 43a1",
            "solve",
            "0.03339 and 0.03367",
            "metrics of the last run, 43a1",
            "context",
            "2 ranks on 2 nodes",
            concat!(
                "Made by pmmpi ",
                env!("CARGO_PKG_VERSION"),
                " on 2026-11-21 at 01:19:03 UTC from 1 file in "
            ),
            samples,
        ] {
            assert!(page.contains(part), "{format}: {part}\n{page}");
        }
    }
    let folder = written(&hourly(1));
    for format in ["md", "html"] {
        let page = out(&report(&["report", folder.path().to_str().unwrap(), "--format", format]));
        assert!(page.contains("build=O3"), "{page}");
        let mut unset = command(&["report", samples, "--format", format]);
        let now = out(&unset.env("SOURCE_DATE_EPOCH", "no number").output().unwrap());
        assert!(now.contains("Made by pmmpi ") && !now.contains("2026-11-21 at 01:19:03"), "{now}");
    }
}
