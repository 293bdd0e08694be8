//! Classes of archived rows: they are those of the files that were exported.

use super::common::{self, Folder, command, err, json, report};
use super::runs::run;
use super::{export, files};
use std::path::{Path, PathBuf};

/// The classes depend neither on the keys at export nor on those of the report. This also holds for an archive of an
/// archive.
#[test]
fn classes_of_an_archive_are_those_of_its_files() {
    let folder = Folder::new();
    let stamps = |node| [0, 10, 5_000_000_010 + node, 5_000_000_020 + node];
    for number in 0..6 {
        let names = ["n1", "n2"].map(|name| (name, stamps(number)));
        let mut own = run(&format!("run-{number}"), &names);
        own.header.started_unix_ns = 1_795_000_000_000_000_000 + number;
        own.header.command = vec!["sh".into(), "-c".into(), format!("true\n # {}", number % 2)];
        let labels = [("Sku", "a"), ("sku", ["b", "c"][number as usize % 2]), ("run", "x"), ("empty", "")];
        own.header.labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let hardware = |node: usize| own.nodes[node].facts.clone().unwrap().hardware;
        let (mut first, mut second) = (hardware(0), hardware(1));
        first.microcode = Some(format!("0x{}", number / 2));
        second.memory_bytes = None;
        second.kernel = None;
        for (node, hardware) in [first, second].into_iter().enumerate() {
            own.nodes[node].facts.as_mut().unwrap().hardware = hardware;
        }
        if number == 5 {
            own.nodes[1].facts = None;
        }
        folder.write(&own);
    }
    let csv = "node,run,elapsed_s,class,sku,Pool,value,class.sku,Cores\na,1,1,x,5,,7,8,48\nb,1,2,,b,p,8,9,\nc,1,2,y,,q,8,9,64\n";
    folder.put("fleet.csv", csv);
    let own = folder.path().display().to_string();
    let archives = Folder::new();
    let [one, two] = ["one", "two"].map(|name| archives.path().join(name).display().to_string());
    let keep = ["export", "--class-by", "pool,sku,class", "-o", &one, &own];
    let done = command(&keep).output().unwrap();
    assert!(err(&done).contains("class.sku (3 values), value (3 values)"), "{}", err(&done));
    assert!(export(&[&one], &two).status.success());
    let classes = |path: &str, keys: &[&str]| {
        let output = report(&[&["report", "--format", "json", path], keys].concat());
        let nodes = json(&output)["nodes"].clone();
        assert!(nodes.as_array().unwrap().len() >= 5, "{nodes}");
        let all = nodes.as_array().unwrap().iter();
        let classes: Vec<String> = all.clone().map(|node| node["class"].to_string()).collect();
        (classes, all.map(|node| node["runs"].as_u64().unwrap()).sum::<u64>())
    };
    assert_eq!(classes(&own, &[]).1, 15);
    for keys in [
        "",
        "none",
        "cpu",
        "microcode",
        "memory,kernel",
        "command",
        "ranks,labels",
        "sku",
        "SKU,Sku,run",
        "class,pool",
        "pool,sku",
    ] {
        let keys: Vec<&str> = if keys.is_empty() { vec![] } else { vec!["--class-by", keys] };
        let expected = classes(&own, &keys);
        assert_eq!(classes(&one, &keys), expected, "{keys:?}");
        assert_eq!(classes(&two, &keys), expected, "{keys:?}");
    }
    // With other keys at export, they are still the same runs.
    let again = command(&["export", "--class-by", "cpu", "-o", &one, &own]).output().unwrap();
    assert_eq!(common::out(&again), format!("0 rows added to {one}, 15 were already there\n"));
}

/// The declared class identifies a run, whatever the class keys are when it is read.
#[test]
fn what_makes_a_class_makes_no_runs() {
    let folder = Folder::new();
    let mut csv = String::from("node,run,elapsed_s,class,rack\n");
    for node in 0..6 {
        for run in 0..7 {
            let (s, class) = if node < 3 { (10.0, "x") } else { (12.0, "y") };
            csv += &format!("n{node},{run},{},{class},r{}\n", s + f64::from(run) / 1000.0, node % 2);
        }
    }
    // The same node and run number in two classes are two runs.
    csv += "n0,0,12,y,r0\n";
    let csv = folder.put("two.csv", csv).display().to_string();
    let archive = folder.path().join("archive").display().to_string();
    for (keys, added) in [("none", 43), ("class", 0), ("rack,class", 0), ("rack", 0)] {
        let done = command(&["export", &csv, "-o", &archive, "--class-by", keys]).output().unwrap();
        let expected = format!("{added} rows added to {archive}, {} were already there\n", 43 - added);
        assert_eq!((common::out(&done), done.status.code()), (expected, Some(0)), "{keys}: {}", err(&done));
    }
    for keys in ["none", "class", "class,labels", "rack,class", "rack"] {
        let of = |paths: &[&str]| {
            let output = report(&[&["report", "--format", "json", "--class-by", keys], paths].concat());
            assert_eq!(output.status.code(), Some(0), "{}", err(&output));
            let report = json(&output);
            let runs: u64 =
                report["nodes"].as_array().unwrap().iter().map(|n| n["runs"].as_u64().unwrap()).sum();
            assert_eq!(runs, 43, "{keys}");
            report["nodes"].clone()
        };
        assert_eq!(of(&[&csv]), of(&[&archive, &csv]), "{keys}");
        // The archive was exported without the key rack.
        if !keys.contains("rack") {
            assert_eq!(of(&[&csv]), of(&[&archive]), "{keys}");
        }
    }
    // Without that key at export, the archive has no such key. Its counters are not keys.
    let codes = |path: &str, keys: &str| {
        let report = json(&report(&["report", "--format", "json", "--class-by", keys, path]));
        report["warnings"].as_array().unwrap().iter().any(|warning| warning["code"] == "unknown-class-key")
    };
    let text = common::out(&report(&["report", "--format", "json", "--class-by", "none", &archive]));
    assert!(!text.contains("archived-classes"), "{text}");
    assert!(!codes(&csv, "rack") && codes(&archive, "rack") && codes(&archive, "elapsed_s"));
    let empty = folder.put("empty.csv", "node,run,elapsed_s,rack\na,1,2,\n").display().to_string();
    assert!(codes(&empty, "rack"));
}

/// Another program rewrote an archive file: it lacks pmmpi's own metadata, or the parts of classes.
#[test]
fn a_file_of_an_archive_that_was_written_anew_is_one() {
    use polars::prelude::*;
    let folder = Folder::new();
    for number in 0..3 {
        let mut own = run(&format!("run-{number}"), &[("n1", [0, 10, 5_000_000_010, 5_000_000_020])]);
        own.header.command = vec!["sh".into(), "-c".into(), "true\n".into()];
        folder.write(&own);
    }
    folder.put("fleet.csv", "node,run,elapsed_s,class\na,1,1,x\nb,1,2,y\n");
    let (own, archive) = (folder.path().display().to_string(), folder.path().join("archive"));
    assert!(export(&[&own], &archive.display().to_string()).status.success());
    let nodes = |path: &Path, keys: &str| {
        let output = report(&["report", "--format", "json", "--class-by", keys, path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{} {}", common::out(&output), err(&output));
        json(&output)["nodes"].clone()
    };
    let frames: Vec<DataFrame> = files(&archive)
        .iter()
        .map(|file| {
            polars_io::SerReader::finish(polars_io::parquet::read::ParquetReader::new(
                std::fs::File::open(file).unwrap(),
            ))
            .unwrap()
        })
        .collect();
    let anew = |name: &str, is_kept: &dyn Fn(&str) -> bool| {
        let folder = folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        for (number, frame) in frames.iter().enumerate() {
            let kept: Vec<Column> =
                frame.columns().iter().filter(|column| is_kept(column.name())).cloned().collect();
            let file = std::fs::File::create(folder.join(format!("{number}.parquet"))).unwrap();
            let mut frame = DataFrame::new(frame.height(), kept).unwrap();
            polars_io::parquet::write::ParquetWriter::new(file).finish(&mut frame).unwrap();
        }
        folder
    };
    let whole = anew("whole", &|_| true);
    for keys in ["cpu", "class", "labels,command"] {
        assert_eq!(nodes(&archive, keys), nodes(&whole, keys), "{keys}");
    }
    let by_default = "cpu,microcode,memory,kernel,command,ranks,labels,class";
    let without_parts = anew("without parts", &|name| !name.starts_with("class."));
    assert_eq!(nodes(&archive, by_default), nodes(&without_parts, by_default));
    let lost =
        json(&report(&["report", "--format", "json", "--class-by", "cpu", without_parts.to_str().unwrap()]));
    assert!(lost["warnings"].to_string().contains("archived-classes"), "{}", lost["warnings"]);
    // Only the columns with values.
    let of_csv = folder.path().join("of csv").display().to_string();
    let csv = folder.path().join("fleet.csv").display().to_string();
    assert!(export(&[&own], &of_csv).status.success());
    let more = folder.put("more.csv", "node,run,elapsed_s,class,tsc\nc,1,1,z,5\n").display().to_string();
    let before = files(Path::new(&of_csv));
    assert!(export(&[&csv, &more], &of_csv).status.success());
    let new: Vec<PathBuf> =
        files(Path::new(&of_csv)).into_iter().filter(|file| !before.contains(file)).collect();
    let mut reader = polars_io::parquet::read::ParquetReader::new(std::fs::File::open(&new[0]).unwrap());
    let names: Vec<String> = reader
        .schema()
        .unwrap()
        .iter_names()
        .map(ToString::to_string)
        .filter(|name| name.contains("class.") || name == "tsc" || name == "elapsed_lower_s")
        .collect();
    assert_eq!((names, new.len()), (vec!["class.declared".to_owned(), "tsc".to_owned()], 1));
}
