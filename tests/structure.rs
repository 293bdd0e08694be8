//! Rules of the source tree that the compiler does not check: dependencies between crates, linked libraries, allowed
//! licences and allowed crates.

use rig::tool::{run, target, tool};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Metadata for this platform only: other platforms need crates that a fresh machine has not downloaded.
fn metadata(arguments: &[&str]) -> Value {
    let about = run(Command::new("rustc").arg("-vV")).success().out();
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc's host");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--manifest-path"])
        .arg(manifest)
        .args(["--filter-platform", host]);
    let output = run(command.args(arguments)).success();
    serde_json::from_slice(&output.stdout).expect("JSON of cargo metadata")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn dependencies_point_one_way() {
    let metadata = metadata(&["--no-deps"]);
    let ours: BTreeSet<&str> =
        list(&metadata, "packages").iter().map(|package| text(package, "name")).collect();
    let uses = |package: &Value| -> BTreeSet<String> {
        let all = list(package, "dependencies").iter().map(|dependency| text(dependency, "name"));
        all.filter(|name| ours.contains(name)).map(str::to_owned).collect()
    };
    let found: BTreeMap<&str, BTreeSet<String>> =
        list(&metadata, "packages").iter().map(|package| (text(package, "name"), uses(package))).collect();
    let named = |names: &[&str]| names.iter().copied().map(str::to_owned).collect::<BTreeSet<_>>();
    let (core, events) = (named(&["pmmpi"]), named(&["pmmpi", "pmmpi-events"]));
    let expected: BTreeMap<&str, BTreeSet<String>> = [
        ("pmmpi", BTreeSet::new()),
        ("pmmpi-events", core.clone()),
        ("pmmpi-workload", events.clone()),
        ("pmmpi-kernels", BTreeSet::new()),
        ("pmmpi-screen-kernels", BTreeSet::new()),
        ("pmmpi-node-actions", core.clone()),
        (
            "pmmpi-launcher",
            named(&[
                "pmmpi",
                "pmmpi-events",
                "pmmpi-workload",
                "pmmpi-kernels",
                "pmmpi-screen-kernels",
                "pmmpi-node-actions",
            ]),
        ),
        ("pmmpi-runner", named(&["pmmpi", "pmmpi-events", "pmmpi-workload"])),
        ("pmmpi-agent", core.clone()),
        ("pmmpi-topology", core.clone()),
        ("pmmpi-names", events.clone()),
        ("pmmpi-gpus", core.clone()),
        ("pmmpi-analysis", events.clone()),
        // Completions offer the names of kernels.
        ("pmmpi-manual", named(&["pmmpi", "pmmpi-analysis", "pmmpi-events", "pmmpi-kernels"])),
        ("pmmpi-tests", named(&["pmmpi", "pmmpi-events", "pmmpi-kernels"])),
        ("pmmpi-bench", core),
    ]
    .into_iter()
    .collect();
    assert_eq!(found, expected);
}

#[test]
fn folders_of_the_core_point_one_way() {
    let order = [
        "text",
        "order_statistics",
        "ids",
        "bounds",
        "clock",
        "regions",
        "node",
        "counters",
        "probes",
        "record",
        "slow_links",
        "wrong_data",
        "transport",
        "session",
        "partial",
        "rsmpi",
    ];
    point_one_way("src", &order);
}

#[test]
fn folders_of_the_launcher_point_one_way() {
    let order = [
        "launch",
        "program",
        "own_files",
        "vendor_names",
        "stdout",
        "cli",
        "run",
        "repeat",
        "validate",
        "list",
        "doctor",
        "screen",
    ];
    point_one_way("launcher/src", &order);
}

#[test]
fn folders_of_the_analysis_point_one_way() {
    let order = [
        "memory",
        "warnings",
        "recorded",
        "stats",
        "table",
        "input",
        "verdicts",
        "report",
        "comparison",
        "stamps_csv",
        "render",
        "export_archive",
        "output",
        "cli",
        "commands",
    ];
    point_one_way("analysis/src", &order);
}

/// No two files of a crate import each other, directly or through others, except a module and its parts.
#[test]
fn files_import_one_another_in_no_circle() {
    for folder in [
        "src",
        "src/events",
        "launcher/src",
        "launcher/agent/src",
        "launcher/workload/src",
        "launcher/screen_kernels/src",
        "launcher/node_actions/src",
        "analysis/src",
    ] {
        let modules = modules(folder);
        assert!(modules.len() > 5, "{folder}");
        let names: BTreeSet<&String> = modules.keys().collect();
        let imports: BTreeMap<&String, BTreeSet<&String>> =
            modules.iter().map(|(name, text)| (name, imports(name, text, &names))).collect();
        for name in imports.keys() {
            let (mut reached, mut next) = (BTreeSet::new(), vec![*name]);
            while let Some(at) = next.pop() {
                next.extend(imports[at].iter().filter(|import| reached.insert(**import)));
            }
            let circle: Vec<_> = reached.iter().filter(|other| imports[**other].contains(name)).collect();
            assert!(!reached.contains(name), "{folder}: {name} imports itself through {circle:?}");
        }
    }
}

/// The code of each module of a crate, without tests and comments, by its path.
fn modules(folder: &str) -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let (mut folders, mut modules) = (vec![root.clone()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name =
                path.strip_prefix(&root).unwrap().with_extension("").to_str().unwrap().replace('/', "::");
            if path.is_dir() {
                folders.extend((!path.join("Cargo.toml").exists()).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !matches!(name.as_str(), "lib" | "main")
                && !name.split("::").any(|part| part == "tests")
            {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
                let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
                modules.insert(name, code.collect::<Vec<_>>().join("\n"));
            }
        }
    }
    modules
}

/// The modules that the module `name` uses, except its parents and its parts.
fn imports<'a>(name: &str, code: &str, modules: &BTreeSet<&'a String>) -> BTreeSet<&'a String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut found = BTreeSet::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            if code[..at].ends_with(is_word) {
                continue;
            }
            let path = &code[at..];
            let end = path.find(|c| !is_word(c)).unwrap_or(path.len());
            let (path, rest) = path.split_at(end);
            let listed = rest.strip_prefix('{').and_then(|rest| rest.split('}').next()).unwrap_or_default();
            for last in listed.split(',').map(str::trim) {
                let mut parts: Vec<&str> = name.split("::").filter(|_| start == "super::").collect();
                for part in path.split("::").chain(last.split("::")).filter(|part| !part.is_empty()) {
                    match part {
                        "super" => _ = parts.pop(),
                        "crate" => parts.clear(),
                        part => parts.push(part),
                    }
                }
                let known = (1..=parts.len()).rev().map(|length| parts[..length].join("::"));
                found.extend(known.into_iter().find_map(|path| modules.get(&path).copied()));
            }
        }
    }
    let holds = |whole: &str, part: &str| part == whole || part.starts_with(&format!("{whole}::"));
    found.retain(|other| !holds(other, name) && !holds(name, other));
    found
}

/// Each file or folder of a crate's source imports only files or folders that come before it in `order`.
fn point_one_way(crate_folder: &str, order: &[&str]) {
    let place = |name: &str| order.iter().position(|known| *known == name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(crate_folder);
    let (mut folders, mut edges) = (vec![root.clone()], 0);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                // A crate of its own; the compiler checks its imports.
                folders.extend((!path.join("Cargo.toml").exists()).then_some(path));
                continue;
            }
            let own = path.strip_prefix(&root).unwrap().iter().next().unwrap().to_str().unwrap();
            let own = own.strip_suffix(".rs").unwrap_or(own);
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            if matches!(own, "lib" | "main")
                || path.strip_prefix(&root).unwrap().iter().any(|part| part == "tests")
            {
                continue;
            }
            assert!(place(own).is_some(), "{} is not in the order", path.display());
            for line in code {
                for import in line.split("crate::").skip(1) {
                    let end = import.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(import.len());
                    let Some(imported) = place(&import[..end]) else { continue };
                    assert!(place(own) >= Some(imported), "{}: {line}", path.display());
                    edges += usize::from(place(own) != Some(imported));
                }
            }
        }
    }
    assert!(edges > 20, "{edges} imports were seen");
}

/// The libraries that a file needs from the loader; empty for a static program.
fn needed(file: &Path) -> Vec<String> {
    let output = run(Command::new("readelf").arg("-d").arg(file)).success().out();
    let name = |line: &str| Some(line.split_once("Shared library: [")?.1.trim_end_matches(']').to_owned());
    output.lines().filter(|line| line.contains("NEEDED")).filter_map(name).collect()
}

fn all_needed(file: &Path) -> String {
    let output = run(Command::new("ldd").arg(file));
    output.out() + &output.err()
}

#[test]
fn only_the_runners_link_mpi() {
    let library = |name: &str| target().join("pmmpi/lib/pmmpi").join(name);
    let without: [PathBuf; 6] = [
        tool("pmmpi"),
        tool("pmmpi-report"),
        library("libpmmpi_agent.so"),
        library("pmmpi-topology"),
        library("pmmpi-names"),
        library("pmmpi-gpus"),
    ];
    for file in without {
        assert!(
            !all_needed(&file).contains("mpi.so") && !all_needed(&file).contains("mpich"),
            "{}",
            file.display()
        );
    }
    for (mpi, name) in [("openmpi", "libmpi.so"), ("mpich", "libmpich.so")] {
        assert!(all_needed(&library(&format!("pmmpi-runner-{mpi}"))).contains(name));
    }
}

/// The loader would load any other library that a preloaded library needs into every workload. And a process in a
/// container with a C library that lacks a needed function would not start.
#[test]
fn the_agent_needs_a_c_library_of_2012_and_nothing_else() {
    let agent = target().join("pmmpi/lib/pmmpi/libpmmpi_agent.so");
    assert_eq!(needed(&agent), ["libc.so.6"]);
    let symbols = run(Command::new("objdump").arg("-T").arg(&agent)).success().out();
    let undefined: Vec<&str> =
        symbols.lines().filter(|line| line.contains("*UND*") || line.contains(" w ")).collect();
    assert!(undefined.len() > 20, "{symbols}");
    for symbol in undefined {
        let newer = symbol.split_once("GLIBC_").map(|(_, version)| {
            let numbers: Vec<u32> = version
                .split([')', ' '])
                .next()
                .unwrap()
                .split('.')
                .map(|part| part.parse().unwrap())
                .collect();
            numbers > vec![2, 17]
        });
        // A symbol without a version may be missing, so the code checks for it first (a weak reference).
        assert!(newer == Some(false) || newer.is_none() && symbol.contains(" w "), "{symbol}");
    }
}

/// The agent exports what it interposes and what pmmpi.h declares, and no name that could conflict with a workload.
#[test]
fn the_agent_exports_mpi_names_and_its_own() {
    let agent = target().join("pmmpi/lib/pmmpi/libpmmpi_agent.so");
    let output = run(Command::new("nm").args(["-D", "--defined-only"]).arg(agent)).success().out();
    let names: Vec<&str> = output.lines().filter_map(|line| line.split_whitespace().last()).collect();
    let is_mpi = |name: &&str| name.trim_start_matches('P').starts_with("MPI_");
    let (mpi, own): (Vec<&str>, Vec<&str>) = names.into_iter().partition(is_mpi);
    assert_eq!(
        (mpi.len(), own),
        (10, ["pmmpi_probe_enter", "pmmpi_probe_leave", "pmmpi_region_begin", "pmmpi_region_end"].to_vec())
    );
}

/// docs/programs.md names the test for each kind of program.
#[test]
fn each_test_that_the_docs_name_exists() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let sources = sources.filter(|path| path.extension().is_some_and(|e| e == "rs"));
    // The tests of the emulated machine have names in a list.
    let sources = sources.chain([folder.join("rig/bin/pmu/main.rs")]);
    let tests: String = sources.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let docs = std::fs::read_to_string(folder.join("../docs/programs.md")).unwrap();
    let is_test = |name: &&str| {
        name.contains('_') && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit())
    };
    let named: Vec<&str> = docs.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(named.len() > 30);
    for name in named {
        let is_there = |form: String| tests.contains(&form);
        let exists = [format!("fn {name}()"), format!("=> {name}"), format!("(\"{name}\", ")];
        assert!(exists.into_iter().any(is_there), "{name}");
    }
}

/// The launcher's `doctor` examines machines; no part of it runs during a measurement.
#[test]
fn no_measurement_asks_the_doctor() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../launcher/src");
    let users = std::fs::read_dir(sources).unwrap().flatten().map(|entry| entry.path()).filter(|path| {
        path.is_file() && std::fs::read_to_string(path).is_ok_and(|text| text.contains("doctor::"))
    });
    let users: Vec<PathBuf> = users.collect();
    assert!(users.len() == 1 && users[0].ends_with("main.rs"), "{users:?}");
}

/// The statistics take numbers and return numbers. The launcher uses some of them, which are therefore in the crate pmmpi.
#[test]
fn the_statistics_know_no_files_nor_frames() {
    let modules = modules("analysis/src/stats");
    assert!(modules.len() > 10);
    for (name, code) in modules {
        let code = code.replace("pmmpi::order_statistics::", "");
        for other in
            ["polars", "serde", "pmmpi::", "std::fs", "std::io", "std::thread", "std::time", "println!"]
        {
            assert!(!code.contains(other), "{name}: {other}");
        }
        for line in code.lines().filter(|line| line.trim_start().starts_with("use crate::")) {
            assert!(line.contains("use crate::stats::"), "{name}: {line}");
        }
    }
}

/// Readers of results fill the table and do not use it. Only modules that read or write Parquet use data frames.
#[test]
fn readers_of_results_fill_the_table_and_know_no_statistics() {
    /// Files that use Polars beside the reader of Parquet.
    const OF_POLARS: [&str; 4] =
        ["table/frame.rs", "table/place_table.rs", "table/place_values.rs", "export_archive.rs"];
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../analysis/src");
    let in_folder = |folder: &str| {
        let entries = std::fs::read_dir(sources.join(folder)).unwrap().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect::<Vec<PathBuf>>()
    };
    let readers = [
        in_folder("input/importers"),
        in_folder("input/importers/parquet"),
        vec![sources.join("input/importers.rs")],
    ]
    .concat();
    assert!(readers.len() > 8);
    for reader in &readers {
        let text = std::fs::read_to_string(reader).unwrap();
        for line in text.lines().filter(|line| line.starts_with("use crate::")) {
            let known =
                ["table", "input::importers", "input::progress"].map(|place| format!("use crate::{place}::"));
            assert!(known.iter().any(|room| line.starts_with(room)), "{}: {line}", reader.display());
        }
    }
    let folders = [
        "",
        "input",
        "input/importers",
        "input/importers/parquet",
        "table",
        "verdicts",
        "report",
        "render",
        "stats",
    ];
    let rooms = folders.map(in_folder).concat();
    for path in rooms {
        let text = std::fs::read_to_string(&path).unwrap();
        let place = path.strip_prefix(&sources).unwrap().to_str().unwrap();
        let may = place.contains("parquet") || OF_POLARS.contains(&place);
        let uses = text.lines().any(|line| line.trim_start().starts_with("use polars"));
        assert!(!uses || may, "{place}");
    }
}

/// The dependency policy: licences that are compatible with MIT OR Apache-2.0, crates only from the registry, and
/// bincode only at 2.0.1.
#[test]
fn dependencies_may_be_used() {
    const LICENCES: [&str; 13] = [
        "MIT",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "ISC",
        "MIT-0",
        "Unicode-3.0",
        "Unlicense",
        "Zlib",
        "0BSD",
    ];
    let metadata = metadata(&[]);
    for package in list(&metadata, "packages") {
        let name = text(package, "name");
        let source = text(package, "source");
        assert!(source.is_empty() || source.starts_with("registry+"), "{name} comes from {source}");
        // "A OR B" gives a choice, "A AND B" does not; "/" is the old form of OR.
        let licence = text(package, "license").replace('/', " OR ").replace(['(', ')'], "");
        let may = |one: &str| LICENCES.contains(&one.trim());
        let each = |alternative: &str| alternative.split(" AND ").all(may);
        assert!(licence.split(" OR ").any(each), "{name}: licence `{licence}`");
        assert!(name != "bincode" || text(package, "version") == "2.0.1", "bincode must stay at 2.0.1");
    }
}
