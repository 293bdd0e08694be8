//! Detects nodes with too many slow runs.

use super::benjamini_hochberg::{self, Test};
use super::poisson;

/// Numbers of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Runs that were tested for slowness.
    pub runs: u32,
    /// Slow runs.
    pub slow: u32,
    /// Number of series of slow runs. A series is one slow run, or several in immediate succession.
    pub series: u32,
}

impl RunCounts {
    /// Counts the runs of a node in one session, in the order of time.
    pub fn of(is_slow: &[bool]) -> Self {
        let slow = is_slow.iter().filter(|slow| **slow).count() as u32;
        let series = is_slow.chunk_by(|a, b| a == b).filter(|same| same[0]).count() as u32;
        Self { runs: is_slow.len() as u32, slow, series }
    }

    /// Adds other runs.
    pub fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.slow += other.slow;
        self.series += other.series;
    }
}

/// The runs of a node in one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeSession {
    /// Number of the session.
    pub session: u32,
    /// The node's runs.
    pub counts: RunCounts,
}

/// A node with more slow runs than expected from the other nodes of its class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flaky {
    /// Index of the node in the class.
    pub node: usize,
    /// Number of all its runs.
    pub runs: usize,
    /// Number of its slow runs.
    pub slow: usize,
    /// The probability that a healthy node has so many slow runs (or series of slow runs).
    pub p: f64,
    /// The same, adjusted for the number of nodes tested (Benjamini-Hochberg).
    pub adjusted_p: f64,
}

/// In the rate of one session, the rate of all sessions counts like this number of runs.
const SHRINK: f64 = 20.0;

/// The flaky nodes of a class, by node. `nodes` has the sessions of each node.
///
/// The hypothesis: a run in session t is slow with the probability r_t. r_t comes from the *other* nodes, so
/// no node is flaky because of a session that was bad for all nodes. r_t is the weighted mean of two shares of slow
/// runs. The first is the share in this session, which may have few runs. The second is the share in all
/// sessions, which counts like 20 runs. r_t is never below the second share. The test takes the number of
/// slow runs as a Poisson number with the mean of the hypothesis. If slow runs come in series, each series
/// counts as one, because a single disturbance may last for several runs.
pub fn flaky(nodes: &[&[NodeSession]], q: f64) -> Vec<Flaky> {
    let in_series = come_in_series(nodes);
    let of = |counts: &RunCounts| f64::from(if in_series { counts.series } else { counts.slow });
    let sessions =
        nodes.iter().copied().flatten().map(|node| node.session as usize + 1).max().unwrap_or_default();
    let (mut all, mut of_session) = (RunCounts::default(), vec![RunCounts::default(); sessions]);
    for NodeSession { session, counts } in nodes.iter().copied().flatten() {
        all.add(*counts);
        of_session[*session as usize].add(*counts);
    }
    let mut found = Vec::new();
    for (node, sessions) in nodes.iter().enumerate() {
        let own = total(sessions);
        if of(&own) < 2.0 {
            continue; // one slow run is no habit
        }
        // Laplace's rule of succession: the rate is not 0 if the others had no slow run.
        let rate = (of(&all) - of(&own) + 1.0) / f64::from(all.runs - own.runs + 2);
        let expected = |NodeSession { session, counts }: &NodeSession| {
            let session = &of_session[*session as usize];
            let (runs, slow) = (f64::from(session.runs - counts.runs), of(session) - of(counts));
            f64::from(counts.runs) * rate.max((slow + SHRINK * rate) / (runs + SHRINK))
        };
        let p = poisson::at_least(of(&own) as usize, sessions.iter().map(expected).sum());
        let (runs, slow) = (own.runs as usize, own.slow as usize);
        found.push(Flaky { node, runs, slow, p, adjusted_p: f64::NAN });
    }
    let mut tests: Vec<Test> =
        found.iter().enumerate().map(|(index, node)| Test { index, p: node.p }).collect();
    // Nodes without a slow run have p = 1. They belong to the family and are the larger part of it.
    benjamini_hochberg::adjust(&mut tests, nodes.len());
    for test in tests {
        found[test.index].adjusted_p = test.p;
    }
    found.retain(|node| node.adjusted_p <= q);
    found
}

fn total(sessions: &[NodeSession]) -> RunCounts {
    let mut all = RunCounts::default();
    sessions.iter().for_each(|session| all.add(session.counts));
    all
}

/// True if more slow runs follow one another than expected by chance. If X slow runs are at random places
/// among the K runs of a node, both runs of a neighbouring pair are slow with the probability X (X - 1) / (K
/// (K - 1)).
fn come_in_series(nodes: &[&[NodeSession]]) -> bool {
    let (mut pairs, mut expected) = (0, 0.0);
    for sessions in nodes {
        let RunCounts { runs, slow, series } = total(sessions);
        if slow < 2 {
            continue;
        }
        pairs += slow - series;
        let neighbours: u32 = sessions.iter().map(|session| session.counts.runs.saturating_sub(1)).sum();
        let [runs, slow] = [runs, slow].map(f64::from);
        expected += f64::from(neighbours) * slow * (slow - 1.0) / (runs * (runs - 1.0));
    }
    f64::from(pairs) > expected + 1.2 * expected.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes with ten sessions of five runs; `slow` has the node, session and run of each slow run.
    fn found(nodes: usize, slow: &[(usize, usize, usize)]) -> Vec<(usize, usize, usize)> {
        let all: Vec<Vec<NodeSession>> = (0..nodes)
            .map(|node| {
                let session = |session: usize| {
                    let is_slow: Vec<bool> = (0..5).map(|run| slow.contains(&(node, session, run))).collect();
                    NodeSession { session: session as u32, counts: RunCounts::of(&is_slow) }
                };
                (0..10).map(session).collect()
            })
            .collect();
        let nodes: Vec<&[NodeSession]> = all.iter().map(Vec::as_slice).collect();
        flaky(&nodes, 0.01).iter().map(|found| (found.node, found.slow, found.runs)).collect()
    }

    #[test]
    fn too_many_slow_runs_are_seen() {
        let of_seven: Vec<_> = (0..6).map(|session| (7, session, session % 5)).collect();
        assert_eq!(found(40, &of_seven), [(7, 6, 50)]);
        assert_eq!(found(40, &of_seven[..1]), []);
        // Not in a class of two nodes: it has too few other runs to compare with.
        assert_eq!(found(2, &of_seven[..3]), []);
    }

    #[test]
    fn a_bad_session_makes_no_node_flaky() {
        // Every second node is slow in three sessions.
        let bad = |node: usize| (0..3).flat_map(move |session| [(node, session, 1), (node, session, 3)]);
        let all: Vec<_> = (0..40).step_by(2).flat_map(bad).collect();
        assert_eq!(found(40, &all), []);
    }

    #[test]
    fn a_series_is_one_event() {
        // Each of ten nodes was disturbed once, for four runs.
        let once: Vec<_> = (0..10).flat_map(|node| (0..4).map(move |run| (node, node, run))).collect();
        assert_eq!(found(40, &once), []);
        let often = (0..10).flat_map(|session| (0..2).map(move |run| (30, session, run)));
        assert_eq!(found(40, &once.into_iter().chain(often).collect::<Vec<_>>()), [(30, 20, 50)]);
    }
}
