//! Facts that limit the result of a screen.

use super::common::*;
use super::made::*;

fn healthy(_: At<'_>) -> Outcome {
    Outcome::Times(1.0)
}

/// The option of a screen is --rounds, not --runs.
#[test]
fn too_few_rounds_are_named_with_the_option_of_a_screen() {
    let folder = Folder::new();
    let files = Screen { rounds: 0..2, ..Screen::of(0, 5) }.write(folder.path(), healthy);
    for command in ["screen", "report"] {
        let text = out(&report(&words(&[command], &files)));
        let told = "warning: nodes with fewer than 3 runs of a kernel: n00 (2 runs), n01 (2 runs), n02 (2 runs) and 2 \
                    more nodes [few-rounds]\n         Screen more rounds: --rounds 3+4 ";
        assert!(text.contains(told) && !text.contains("--runs"), "{text}");
    }
    let one = Screen { rounds: 0..1, ..Screen::of(0, 1) }.write(&folder.path().join("one"), healthy);
    let text = out(&screen_report(&one, &[]));
    assert!(text.contains("n00 has only 1 run of a kernel, but the report needs 3 [few-rounds]"), "{text}");
    let enough = Screen::of(0, 5).write(&folder.path().join("enough"), healthy);
    let text = out(&screen_report(&enough, &[]));
    assert!(!text.contains("few-r"), "{text}");
}
