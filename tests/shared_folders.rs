//! Folders that many processes share: on a network file system, or from containers with their own process ids.

use rig::tool::{Folder, Started, pmmpi, run, runs_in, start, target};
use std::fs;
use std::path::Path;
use std::process::Command;

const STARTS: usize = 300;

/// On a file system without unnamed files. With `own_numbers`, in a PID namespace of its own, in which pmmpi has id
/// 1.
fn start_one(out: &Path, own_numbers: bool) -> Started {
    let mut command = Command::new(target().join("release/pmmpi-rig-named"));
    if own_numbers {
        command.args(["unshare", "--pid", "--fork"]);
    }
    start(command.arg(pmmpi()).arg("--out").arg(out).arg("true"))
}

/// All start at the same time, and each finds a name for its run.
#[test]
fn many_starts_share_a_folder_where_each_file_has_a_name() {
    let folder = Folder::new("shared");
    let out = folder.path().join("runs");
    fs::create_dir(&out).unwrap();
    let started: Vec<Started> = (0..STARTS).map(|number| start_one(&out, number % 3 > 0)).collect();
    for one in started {
        let output = one.finish().success();
        assert!(!output.err().contains("warning"), "{}", output.err());
    }
    assert_eq!(runs_in(&out).len(), STARTS);
    let left = |folder: &Path| -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).filter(|name| !name.ends_with(".pmr")).collect()
    };
    assert_eq!(left(&out), [".nodes"]);
    assert_eq!(left(&out.join(".nodes")).len(), 1);
}

/// With unnamed files, the test above would test nothing.
#[test]
fn the_rig_refuses_unnamed_files() {
    let folder = Folder::new("unnamed");
    let named = target().join("release/pmmpi-rig-named");
    let script = "import os, sys; os.open(sys.argv[1], os.O_TMPFILE | os.O_RDWR)";
    let mut command = Command::new(named);
    let output = run(command.args(["python3", "-c", script]).arg(folder.path()));
    assert!(output.err().contains("Operation not supported"), "{}", output.err());
}
