use super::*;
use crate::stats::random::Random;
use proptest::prelude::*;

const DEVIATION: f64 = 0.002;

/// Nodes whose sessions vary by [`DEVIATION`]; `slower` is what is added to a session of a node.
fn nodes(count: usize, sessions: usize, slower: impl Fn(usize, usize) -> f64) -> Vec<Vec<SessionTime>> {
    let mut random = Random::new(5);
    let mut session = |node, at| SessionTime {
        time: node as f64 + slower(node, at) + DEVIATION * random.normal(),
        variance: DEVIATION * DEVIATION / 4.0,
        reach: [0.001; 2],
        level: 0.0,
        runs: 7,
    };
    (0..count).map(|node| (0..sessions).map(|at| session(node, at)).collect()).collect()
}

fn found(nodes: &[Vec<SessionTime>]) -> Vec<Option<OwnChange>> {
    let nodes: Vec<&[SessionTime]> = nodes.iter().map(Vec::as_slice).collect();
    let settings = OwnHistorySettings::default();
    changes(&nodes, between_sessions(&nodes, &settings), &settings)
}

/// The first node with a change from session `since` on; the others are the same.
fn step(by: f64, since: usize, sessions: usize) -> OwnChange {
    let found = found(&nodes(50, sessions, |node, at| if node == 0 && at >= since { by } else { 0.0 }));
    assert!(found[1..].iter().flatten().all(|node| node.verdict == OwnVerdict::Same), "{found:?}");
    found[0].clone().unwrap()
}

#[test]
fn a_change_is_found_and_dated() {
    for (by, since, sessions, verdict, course) in [
        (0.03, 1, 2, OwnVerdict::Slowed, Course::Latest),
        (0.03, 3, 6, OwnVerdict::Slowed, Course::Step),
        (0.03, 50, 52, OwnVerdict::Slowed, Course::Step),
        (-0.03, 1, 2, OwnVerdict::Faster, Course::Latest),
        (-0.05, 20, 52, OwnVerdict::Faster, Course::Step),
    ] {
        let change = step(by, since, sessions);
        assert_eq!((change.verdict, change.since, change.course), (verdict, Some(since), Some(course)));
        assert!((change.now - change.before - by).abs() < 0.006, "{change:?}");
        assert!(
            change.at_least * by > 0.0 && change.at_least.abs() < (change.now - change.before).abs(),
            "{change:?}"
        );
        assert!(change.score * by > 0.0 && change.score.abs() > 4.0 && change.adjusted_p < 0.01);
    }
}

/// Half of the nodes, or the only one, in the middle of the history.
#[test]
fn a_change_of_half_of_the_nodes_is_no_spread() {
    for (count, sessions) in [(1usize, 4), (1, 6), (2, 6), (10, 4), (10, 12), (24, 3)] {
        for since in 1..sessions {
            let changed = |node: usize| node < count.div_ceil(2);
            let by = |node: usize, at: usize| if changed(node) && at >= since { 0.03 } else { 0.0 };
            for (node, change) in found(&nodes(count, sessions, by)).iter().flatten().enumerate() {
                let expected = changed(node).then_some(since);
                assert_eq!(change.since, expected, "{count} nodes, {sessions} sessions: {node}: {change:?}");
            }
        }
    }
}

#[test]
fn a_small_change_is_none() {
    for change in [step(0.005, 3, 6), step(0.0, 3, 6)] {
        assert_eq!((change.verdict, change.since, change.course), (OwnVerdict::Same, None, None));
    }
    let small = vec![nodes(1, 2, |_, _| 0.0).remove(0); 3];
    assert!(found(&small).iter().flatten().all(|node| node.verdict == OwnVerdict::Same));
}

/// What is over needs no attention; the node was slow in one session.
#[test]
fn a_single_bad_session_is_named() {
    let found = found(&nodes(50, 8, |node, at| if node == 3 && at == 5 { 0.05 } else { 0.0 }));
    let node = found[3].as_ref().unwrap();
    assert_eq!((node.verdict, &node.bad_sessions[..]), (OwnVerdict::Same, &[5][..]));
    assert!(found.iter().flatten().filter(|node| !node.bad_sessions.is_empty()).count() == 1);
}

/// Letters are sessions of a node among 50: h healthy, s 6 % slower, t 12 % slower.
fn of_pattern(pattern: &str) -> OwnChange {
    let by = |at: usize| match pattern.as_bytes()[at] {
        b's' => 0.06,
        b't' => 0.12,
        _ => 0.0,
    };
    let found = found(&nodes(50, pattern.len(), |node, at| if node == 3 { by(at) } else { 0.0 }));
    let others = found.iter().flatten().filter(|node| node.verdict != OwnVerdict::Same);
    assert!(others.count() <= 1, "{pattern}");
    found[3].clone().unwrap()
}

/// What is over is no change of the node: its values are those of its other sessions.
#[test]
fn a_node_that_is_as_before_again_is_the_same() {
    for pattern in
        ["hhhssssh", "hsssh", "hhssh", "shhshhshhh", "shhhshhhsh", "hssssssssh", "shshhh", "hhhhssss"]
    {
        let node = of_pattern(&format!("{pattern}hh"));
        let bad: Vec<usize> = pattern.match_indices('s').map(|(at, _)| at).collect();
        assert_eq!((node.verdict, &node.bad_sessions), (OwnVerdict::Same, &bad), "{pattern}: {node:?}");
        assert!((node.now - node.before).abs() < 0.01 && node.adjusted_p > 0.01, "{pattern}: {node:?}");
        assert!(node.score.abs() < 5.0 && (node.bad_by - 0.06).abs() < 0.01, "{pattern}: {node:?}");
    }
}

#[test]
fn how_it_changed_is_told() {
    for (pattern, verdict, course) in [
        ("shhhhhhhhh", OwnVerdict::Faster, Course::First),
        ("sssh", OwnVerdict::Faster, Course::Latest),
        ("ssssshhh", OwnVerdict::Faster, Course::Step),
        ("shh", OwnVerdict::Faster, Course::Step),
        ("hhhsssttt", OwnVerdict::Slowed, Course::Steps),
        ("hhhhhsssss", OwnVerdict::Slowed, Course::Step),
    ] {
        let node = of_pattern(pattern);
        assert_eq!((node.verdict, node.course), (verdict, Some(course)), "{pattern}: {node:?}");
        assert!(node.bad_sessions.is_empty(), "{pattern}: {node:?}");
    }
    // Flat first, then slower from session to session.
    let late =
        found(&nodes(50, 30, |node, at| if node == 3 { 0.003 * at.saturating_sub(19) as f64 } else { 0.0 }));
    let late = late[3].as_ref().unwrap();
    assert_eq!((late.verdict, late.course), (OwnVerdict::Slowed, Some(Course::Creep)), "{late:?}");
}

/// A bad time that is over does not hide that the node is slow again.
#[test]
fn a_node_that_is_slow_again_is_slowed() {
    for (pattern, since, bad, course) in [
        ("hsshhhhs", 7, &[1, 2][..], Course::Unsteady),
        ("shhhshhss", 7, &[0, 4], Course::Unsteady),
        ("shhhshhsss", 7, &[0, 4], Course::Step),
    ] {
        let node = of_pattern(pattern);
        assert_eq!((node.verdict, node.since), (OwnVerdict::Slowed, Some(since)), "{pattern}: {node:?}");
        assert_eq!(node.bad_sessions, bad, "{pattern}: {node:?}");
        assert_eq!(node.course, Some(course), "{pattern}: {node:?}");
    }
}

/// A change for the worse does not hide a bad time before it.
#[test]
fn bad_sessions_are_told_beside_a_change() {
    let node = of_pattern("hhsshhhhtttt");
    assert_eq!((node.verdict, node.since), (OwnVerdict::Slowed, Some(8)), "{node:?}");
    assert_eq!(node.bad_sessions, [2, 3], "{node:?}");
}

#[test]
fn one_session_is_no_history() {
    assert_eq!(found(&nodes(3, 1, |_, _| 0.0)), [None, None, None]);
    assert_eq!(found(&[vec![], vec![]]), [None, None]);
    assert_eq!(found(&[]), []);
}

/// One run of a session may be a slow run.
#[test]
fn few_runs_need_a_second_session() {
    let of_runs = |since: usize| {
        let mut nodes = nodes(50, 6, |node, at| if node == 0 && at >= since { 0.05 } else { 0.0 });
        nodes.iter_mut().flatten().for_each(|session| session.runs = 1);
        found(&nodes)[0].clone().unwrap().verdict
    };
    assert_eq!((of_runs(5), of_runs(4)), (OwnVerdict::Suspect, OwnVerdict::Slowed));
}

/// The medians and deviations that grow by one value are those of the definition.
#[test]
fn running_values_are_those_of_each_part() {
    let sessions = &nodes(1, 40, |_, at| if at % 7 == 0 { 0.1 } else { 0.0 })[0];
    let (medians, deviations) = (running_medians(sessions.iter()), running_deviations(sessions.iter()));
    for count in 1..=sessions.len() {
        let middle = level(&sessions[..count]);
        let deviation: f64 = sessions[..count].iter().map(|session| (session.time - middle).abs()).sum();
        assert!((medians[count - 1] - middle).abs() < 1e-12);
        assert!((deviations[count - 1] - deviation).abs() < 1e-9);
    }
}

proptest! {
    /// Any history has an answer, and the order of nodes does not matter.
    #[test]
    fn any_history_can_be_read(
        times in proptest::collection::vec(
            proptest::collection::vec((-1.0..1.0f64, 0.0..0.01f64, 0..9u32), 0..12), 1..12
        ),
        turn in 0..12usize
    ) {
        let session = |(time, variance, runs): &(f64, f64, u32)| SessionTime {
            time: *time, variance: *variance, reach: [variance.sqrt(); 2], level: 0.1, runs: *runs
        };
        let mut nodes: Vec<Vec<SessionTime>> =
            times.iter().map(|node| node.iter().map(session).collect()).collect();
        let changes = found(&nodes);
        prop_assert_eq!(changes.len(), times.len());
        for (node, sessions) in changes.iter().zip(&times) {
            prop_assert_eq!(node.is_some(), sessions.len() > 1);
            let Some(node) = node else { continue };
            prop_assert_eq!(node.since.is_some(), node.verdict != OwnVerdict::Same);
            prop_assert!(node.since.is_none_or(|since| 0 < since && since < sessions.len()));
            prop_assert!(node.score.is_finite() && (0.0..=1.0).contains(&node.adjusted_p));
            prop_assert!(node.bad_sessions.is_sorted() && node.bad_sessions.iter().all(|at| at + 1 < sessions.len()));
            let size = node.now - node.before;
            match node.verdict {
                OwnVerdict::Slowed | OwnVerdict::Suspect => prop_assert!(size > 0.0 && node.at_least >= 0.0),
                OwnVerdict::Faster => prop_assert!(size < 0.0 && node.at_least <= 0.0),
                OwnVerdict::Same => prop_assert_eq!(node.at_least, 0.0),
            }
        }
        let turn = turn % nodes.len();
        nodes.rotate_left(turn);
        let mut turned = found(&nodes);
        turned.rotate_right(turn);
        prop_assert_eq!(changes, turned);
    }
}
