//! The exit status: what the user asked for, all together.

use super::common::*;
use super::made::*;

fn status(files: &[String], args: &[&str]) -> Option<i32> {
    screen_report(files, args).status.code()
}

/// n04 is slow, and n01 was repaired and is fast again: the gate alone would hide the slow node.
#[test]
fn gate_and_fail_on_both_count() {
    let folder = Folder::new();
    let of_slow = |slow: &'static [u32]| {
        let times = move |at: At<'_>| Outcome::Times(if slow.contains(&at.node) { 1.2 } else { 1.0 });
        Screen { rounds: 0..7, ..Screen::of(0, 6) }.write(&folder.path().join(slow.len().to_string()), times)
    };
    let slow = of_slow(&[4]);
    assert_eq!(status(&slow, &["--gate", "n01"]), Some(0));
    assert_eq!(status(&slow, &["--gate", "n01", "--fail-on", "slow"]), Some(3));
    assert_eq!(status(&slow, &["--gate", "n04"]), Some(3));
    let healthy = of_slow(&[]);
    assert_eq!(status(&healthy, &["--gate", "n01", "--fail-on", "slow"]), Some(0));
    // A repaired node that took no part is undecided; a slow node is the worse news.
    assert_eq!(status(&healthy, &["--gate", "n01,n77", "--fail-on", "slow"]), Some(4));
    assert_eq!(status(&slow, &["--gate", "n01,n77", "--fail-on", "slow"]), Some(3));
}

/// An archive has no values of kernels. It must not look like a screen without findings.
#[test]
fn an_archive_alone_is_no_screen() {
    let folder = Folder::new();
    let files = Screen::of(0, 5).write(&folder.path().join("runs"), |_| Outcome::Times(1.0));
    let archive = folder.path().join("archive").display().to_string();
    assert!(report(&words(&["export", "--output", &archive], &files)).status.success());
    for args in [&["screen", &archive][..], &["screen", &archive, "--format", "json"]] {
        let refused = report(args);
        assert_eq!((refused.status.code(), out(&refused)), (Some(2), String::new()));
        let told = err(&refused);
        assert!(told.starts_with(&format!("pmmpi: no screen in {archive}: ")), "{told}");
        assert!(told.contains("pmmpi report ARCHIVE"), "{told}");
    }
    let both = report(&words(&["screen", &archive], &files));
    assert!(both.status.success() && out(&both).starts_with("screen of 5 nodes: 3 rounds"), "{}", out(&both));
}
