//! The SQL in docs/import.md computes the medians of an archive as `pmmpi export` does. DuckDB and Spark run it.

use pmmpi::record::run_file::VERSION;
use rig::tool::{Folder, run, tool};
use rig::wheels;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first block in a language that contains a text.
fn documented(language: &str, text: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/import.md");
    let page = std::fs::read_to_string(page).unwrap();
    let begin = format!("```{language}\n");
    let mut blocks = page.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.find(|block| block.contains(text)).unwrap().to_owned()
}

/// Results of another tool in two sessions, with a column in the class; some runs have no session.
fn results() -> String {
    let mut csv = String::from("node,run,session,class,blas,started,elapsed_s\n");
    for (node, run) in (0..6).flat_map(|node| (0..12).map(move |run| (node, run))) {
        let session = ["s1", "s2", ""][run % 3];
        let blas = ["mkl", "openblas"][node % 2];
        let seconds = 10.0 + node as f64 * 0.1 + ((run * 7) % 12) as f64 * 0.01;
        let month = 10 + run / 6;
        let _ = writeln!(csv, "n{node},{run},{session},hpl,{blas},2026-{month}-28T08:{run:02}:00Z,{seconds}");
    }
    csv
}

/// An archive with runs of pmmpi and of another tool.
fn archive(folder: &Folder) -> PathBuf {
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("runs/v{VERSION}"));
    let results_csv = folder.path().join("results.csv");
    std::fs::write(&results_csv, results()).unwrap();
    let archive = folder.path().join("archive");
    let mut export = Command::new(tool("pmmpi"));
    export.args(["export", "--class-by", "cpu,command,labels,blas,class", "-o"]).arg(&archive);
    export.arg(&results_csv).args(
        std::fs::read_dir(&runs)
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "pmr")),
    );
    run(&mut export).success();
    archive
}

/// The reports from the archive's own medians and from others are equal.
fn assert_equal_reports(archive: &Path, medians: &Path) {
    for keys in ["cpu,command,labels,blas,class", "none"] {
        let report = |path: &Path| {
            let args = ["report", "--format", "json", "--class-by", keys];
            run(Command::new(tool("pmmpi")).args(args).arg(path)).success().out().to_owned()
        };
        let (expected, found) = (report(&archive.join("_medians")), report(medians));
        assert!(expected.contains("\"n5\"") && expected == found, "{expected}\n{found}");
    }
}

#[test]
fn duckdb_computes_the_same_medians() {
    let folder = Folder::new("medians");
    let archive = archive(&folder);
    let medians = folder.path().join("medians.parquet");
    let sql = documented("sql", "read_parquet").replace("DIR", archive.to_str().unwrap());
    let sql = sql.replace("'medians.parquet'", &format!("'{}'", medians.display()));
    run(Command::new(wheels::python("duckdb")).args([
        "-c",
        "import duckdb, sys; duckdb.execute(sys.argv[1])",
        &sql,
    ]))
    .success();
    assert_equal_reports(&archive, &medians);
}

/// In Spark's local mode.
#[test]
fn spark_computes_the_same_medians() {
    const SESSION: &str = "from pyspark.sql import SparkSession\n\
        spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', False).getOrCreate()\n";
    let folder = Folder::new("spark");
    let archive = archive(&folder);
    let medians = folder.path().join("medians");
    let script = documented("python", "spark.sql(").replace("\"DIR\"", &format!("{archive:?}"));
    let script = SESSION.to_owned() + &script.replace("\"medians\"", &format!("{medians:?}"));
    let mut spark = Command::new(wheels::python("pyspark"));
    // Spark's own address, which may have no name in the network of a test machine.
    spark.env("SPARK_LOCAL_IP", "127.0.0.1").env("SPARK_LOCAL_DIRS", folder.path());
    run(spark.current_dir(folder.path()).args(["-c", &script])).success();
    assert_equal_reports(&archive, &medians);
}
