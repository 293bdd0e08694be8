//! The first line of a screen: rounds of all nodes, and further rounds of suspects.

use super::common::*;
use super::made::*;
use pmmpi::RankId;
use pmmpi::record::Run;

const HEALTHY: fn(At<'_>) -> Outcome = |_| Outcome::Times(1.0);

/// The first rank of the run is a suspect.
fn for_suspect(run: &mut Run) {
    run.screened.as_mut().expect("a screen").suspects = vec![RankId(0)];
}

fn first_line(files: &[String], args: &[&str]) -> String {
    out(&screen_report(files, args)).lines().next().unwrap_or_default().to_owned()
}

/// In a job of five nodes, all of them run beside a suspect: the number of nodes does not tell which rounds are further ones.
#[test]
fn further_rounds_of_all_nodes_are_further_rounds() {
    let folder = Folder::new();
    let first = Screen { kernels: vec!["triad", "dgemm"], ..Screen::of(0, 5) };
    let mut files = first.write(folder.path(), HEALTHY);
    // Only dgemm has a suspect.
    files.extend(Screen { kernels: vec!["dgemm"], rounds: 3..7, ..Screen::of(0, 5) }.write_changed(
        folder.path(),
        HEALTHY,
        for_suspect,
    ));
    let line = first_line(&files, &[]);
    assert!(
        line.starts_with(
            "screen of 5 nodes: 3 rounds of dgemm, triad; 4 more rounds of suspects; 5.0 runs per node"
        ),
        "{line}"
    );
    let found = json(&screen_report(&files, &["--format", "json"]));
    assert_eq!((&found["rounds"], &found["more_rounds"]), (&3.into(), &4.into()));
}

/// The last round ended after its first kernel.
#[test]
fn an_interrupted_round_is_a_round_of_all_nodes() {
    let folder = Folder::new();
    let screen = Screen { kernels: vec!["triad", "dgemm"], ..Screen::of(0, 5) };
    let mut files = screen.write(folder.path(), HEALTHY);
    files.pop();
    assert!(first_line(&files, &[]).starts_with("screen of 5 nodes: 3 rounds of dgemm, triad; "));
    let some = Screen { nodes: 0..4, rounds: 3..7, ..Screen::of(0, 5) };
    let some = some.write_changed(folder.path(), HEALTHY, for_suspect);
    let fewer = [screen.write(folder.path(), HEALTHY), some].concat();
    let line = first_line(&fewer, &[]);
    assert!(line.contains(": 3 rounds of dgemm, triad; 4 more rounds of suspects; "), "{line}");
}
