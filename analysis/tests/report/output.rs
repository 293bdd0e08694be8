//! What a report writes, and where: to terminals, files and pipes.

use super::by_hand;
use super::common::{Folder, assert_valid, command, err, json, out, report};
use super::runs::run;
use std::process::Stdio;

#[test]
fn the_first_screen_answers() {
    let folder = Folder::new();
    for i in 0..30 {
        let t = [0, 10, 1_000_000_000 + i, 1_000_000_020 + i];
        let hosts: Vec<String> = (0..40).map(|host| format!("node{host:03}")).collect();
        let ranks: Vec<(&str, [i64; 4])> = hosts.iter().map(|host| (host.as_str(), t)).collect();
        folder.write(&run(&format!("20260101T000000.0000000{i:02}Z-0123456789abcdef"), &ranks));
    }
    let text = out(&report(&["report", folder.path().to_str().unwrap()]));
    assert!(text.starts_with("30 runs, 40 nodes, 30 files\n"), "{text}");
    let first: Vec<&str> = text.lines().take(24).collect();
    assert!(first.contains(&"none of 40 nodes stands out from its class"), "{text}");
    assert!(
        first.iter().any(|line| line.starts_with("node")) && first.iter().all(|line| line.len() <= 200),
        "{text}"
    );
    assert!(
        text.contains("... and 20 earlier runs (--top 0 shows all)") && text.contains("... and 30 more rows")
    );
    let all = out(&report(&["report", "--top", "0", folder.path().to_str().unwrap()]));
    assert_eq!(all.lines().filter(|line| line.starts_with("node")).count(), 40);
}

/// Anyone may have written a run file.
#[test]
fn hostile_names_and_numbers_do_no_harm() {
    let folder = Folder::new();
    let t = [0, 10, 1_000_000, 1_000_020];
    let mut hostile = run("hostile\x1b[2J", &[("a\x1b]0;b\x07\n", t)]);
    hostile.header.command = vec!["\r\x1b[31m".into()];
    (hostile.gather_ns, hostile.ranks[0].setup_ns) = (i64::MAX, i64::MAX);
    let bytes = std::fs::read(folder.write(&hostile)).unwrap();
    folder.put("hostile.pmr", bytes);
    let output = report(&["report", folder.path().join("hostile.pmr").to_str().unwrap()]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(!out(&output).chars().any(|c| c.is_control() && c != '\n'), "{:?}", out(&output));
    let mut long = run("long", &[("a", t)]);
    long.header.command = vec!["x".repeat(100_000)];
    let text = out(&report(&["report", folder.write(&long).to_str().unwrap()]));
    assert!(text.lines().all(|line| line.len() < 400) && text.contains("(1 of 1 ranks)"), "{text}");
    let mut endless = run("endless", &[("a", t)]);
    endless.size = u32::MAX;
    let endless = json(&report(&["report", folder.write(&endless).to_str().unwrap(), "--format", "json"]));
    assert_eq!(endless["runs"][0]["missing_ranks"].as_array().unwrap().len(), 4096);
    assert_eq!(endless["runs"][0]["missing_count"], u32::MAX - 1);
}

#[test]
fn results_arrive_whole_or_not_at_all() {
    let folder = Folder::new();
    let run = folder.write(&by_hand());
    let run = run.to_str().unwrap();
    let file = folder.path().join("report.json");
    assert!(report(&["report", run, "--format", "json", "-o", file.to_str().unwrap()]).status.success());
    let written: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_valid("report", &written);
    // Writes into a link's target and does not replace the link: the target may be a device.
    let link = folder.path().join("link.json");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(report(&["report", run, "-o", link.to_str().unwrap()]).status.success());
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("1 run, "));
    let to_stdout = command(&["report", run, "-o", "-"]).current_dir(folder.path()).output().unwrap();
    assert!(out(&to_stdout).starts_with("1 run, ") && !folder.path().join("-").exists());
    let nowhere = report(&["report", run, "-o", "/nonexistent/report"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(err(&nowhere).contains("cannot write the result to"));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let status = command(&["report", run]).stdout(full).output().unwrap();
    assert_eq!(status.status.code(), Some(1));
    assert!(err(&status).contains("cannot write the result to stdout"));
    // A reader that closes the pipe early.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = command(&["report", run]).stdout(writer).output().unwrap();
    assert_eq!((status.status.code(), err(&status)), (Some(0), String::new()));
}

#[test]
fn help_is_never_lost() {
    for args in [&["report", "--help"][..], &["--help"], &["--version"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = command(args).stdout(full).output().unwrap();
        let said = err(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("cannot write the result to stdout: No space left on device"), "{said}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command(args).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), err(&output)), (Some(0), String::new()), "{args:?}");
    }
}

#[test]
fn help_fits_a_screen() {
    for args in [
        &["report", "--help"][..],
        &["export", "--help"],
        &["compare", "--help"],
        &["bounds", "--help"],
        &["--help"],
    ] {
        let text = out(&command(args).env("COLUMNS", "80").output().unwrap());
        assert!(text.lines().count() <= 24 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        // The man page has the name of the program; the command line has not.
        assert!(!text.replace("man pmmpi-report", "").contains("pmmpi-report"), "{text}");
    }
}

/// A child process makes the report. A signal to parent or child ends both, and no process continues to read.
#[test]
fn no_child_is_left_behind() {
    use std::io::Write;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    // In the background of a script this process ignores SIGINT, and processes that it starts inherit that.
    // SAFETY: this sets a disposition; no handler is involved.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    for (signal, is_from_a_terminal) in
        [(libc::SIGTERM, false), (libc::SIGKILL, false), (libc::SIGINT, false), (libc::SIGINT, true)]
    {
        let mut report = command(&["report", "-"]);
        report.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut report = report.spawn().unwrap();
        let mut stdin = report.stdin.take().unwrap();
        // More than a pipe holds, so a process must be reading.
        stdin.write_all(b"node,run,elapsed_s\n").unwrap();
        stdin.write_all(&b"a,1,1\n".repeat(1 << 17)).unwrap();
        let pid = report.id() as i32;
        // SAFETY: the process is a child that was not yet waited for, and no other process is in its group.
        unsafe { libc::kill(if is_from_a_terminal { -pid } else { pid }, signal) };
        assert_eq!(report.wait().unwrap().signal(), Some(signal));
        while stdin.write_all(b"a,1,1\n").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}
