//! Finds out whether a node became slower over its sessions, and since when.

use super::class_runs::ClassRuns;
use super::{node_median, within_nodes};

/// When a drift raises an alarm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriftSettings {
    /// Number of first sessions that form the baseline.
    pub baseline: usize,
    /// A session counts for at most this many standard deviations, so that a single bad session raises no alarm.
    pub cap: f64,
    /// The sum S subtracts this many standard deviations in each session, and so ignores smaller distances.
    pub slack: f64,
    /// An alarm needs a sum S above this value.
    pub alarm: f64,
    /// The median of the last sessions must be slower than the baseline by more than this fraction.
    pub delta: f64,
    /// Number of last sessions in the median of `delta`.
    pub last: usize,
}

impl Default for DriftSettings {
    fn default() -> Self {
        Self { baseline: 20, cap: 3.0, slack: 1.5, alarm: 8.0, delta: 0.01, last: 5 }
    }
}

/// An alarm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriftAlarm {
    /// Index of the session in which the drift seems to have begun: the first session after the last sum of
    /// 0.
    pub since: usize,
    /// Index of the session that raised the alarm.
    pub raised: usize,
    /// Index of the session in which the drift ended; `None` if it continues.
    pub until: Option<usize>,
    /// Median over the sessions of the drift, relative to the baseline: 0.05 is 5 % slower.
    pub change: f64,
    /// The largest sum S during the alarm.
    pub score: f64,
}

/// s_med: the standard deviation of a node's session medians about its baseline. It is pooled over the nodes
/// of a class like [`within_nodes::sigma`], because twenty sessions of one node give a poor estimate.
/// `histories` has the values of each node, as [`alarms`] takes them. Only nodes with a complete baseline
/// count; `None` without such a node.
pub fn deviation(histories: &[&[f64]], settings: &DriftSettings) -> Option<f64> {
    let baselines: Vec<&[f64]> =
        histories.iter().filter_map(|history| history.get(..settings.baseline)).collect();
    let ends: Vec<usize> = (1..=baselines.len()).map(|node| node * settings.baseline).collect();
    let sessions = baselines.concat();
    let class = ClassRuns::new(&sessions, &ends)?;
    within_nodes::sigma(&class, &node_median::of_nodes(&class))
}

/// The alarms of one node. `relative` has one value per session of the node, in the order of time: the node's
/// median minus the level of the session (ln T). After maintenance, pass only the sessions since then. Empty
/// without a session after the baseline.
///
/// x = value - median of the baseline; z = min(x / `deviation`, cap); S = max(0, S + z - slack), where S
/// begins at 0. `deviation` is the result of the function [`deviation`]. The sum is that of E. S. Page,
/// "Continuous inspection schemes", Biometrika 41 (1954), and its last zero is Page's estimate of when a
/// change began. The cap comes from J. M. Lucas and R. B. Crosier, "Robust CUSUM", Communications in
/// Statistics 11 (1982). An alarm ends when the median of the last sessions is at most delta above the
/// baseline; the sum then starts again from 0.
pub fn alarms(relative: &[f64], deviation: f64, settings: &DriftSettings) -> Vec<DriftAlarm> {
    let mut alarms: Vec<DriftAlarm> = Vec::new();
    let Some(baseline) = baseline(relative, settings) else { return alarms };
    let (gate, mut window) = (settings.delta.ln_1p(), Vec::with_capacity(settings.last));
    let (mut sum, mut since) = (0.0f64, settings.baseline);
    for (session, value) in relative.iter().enumerate().skip(settings.baseline) {
        let distance = value - baseline;
        let z = if distance == 0.0 { 0.0 } else { (distance / deviation).min(settings.cap) };
        sum = (sum + z - settings.slack).max(0.0);
        if sum == 0.0 {
            since = session + 1;
        }
        window.clear();
        window.extend_from_slice(&relative[(session + 1).saturating_sub(settings.last)..=session]);
        let slower = within_nodes::median_of(&mut window).is_some_and(|last| last - baseline > gate);
        let open = alarms.last_mut().filter(|drift| drift.until.is_none());
        match open {
            Some(drift) if !slower => {
                drift.until = Some(session);
                (sum, since) = (0.0, session + 1);
            }
            Some(drift) => drift.score = drift.score.max(sum),
            None if slower && sum > settings.alarm => {
                alarms.push(DriftAlarm { since, raised: session, until: None, change: f64::NAN, score: sum });
            }
            None => {}
        }
    }
    for drift in &mut alarms {
        let sessions = drift.since..drift.until.unwrap_or(relative.len());
        let median = within_nodes::median_of(&mut relative[sessions].to_vec());
        drift.change = median.map_or(0.0, |median| (median - baseline).exp_m1());
    }
    alarms
}

/// How far a node's last session is from its baseline, in standard deviations. `None` before the baseline is
/// complete, or if the deviation is 0.
pub fn score(relative: &[f64], deviation: f64, settings: &DriftSettings) -> Option<f64> {
    let last = relative.get(settings.baseline..)?.last()?;
    Some((last - baseline(relative, settings)?) / deviation).filter(|score| score.is_finite())
}

fn baseline(relative: &[f64], settings: &DriftSettings) -> Option<f64> {
    within_nodes::median_of(&mut relative.get(..settings.baseline)?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;
    use proptest::prelude::*;

    const DEVIATION: f64 = 0.004;

    fn node(steps: &[(usize, f64)], sessions: usize) -> Vec<f64> {
        let mut random = Random::new(11);
        let slower =
            |at: usize| steps.iter().filter(|(from, _)| at >= *from).map(|(_, by)| by.ln_1p()).sum::<f64>();
        (0..sessions).map(|at| 0.05 + DEVIATION * random.normal() + slower(at)).collect()
    }

    fn found(relative: &[f64]) -> Vec<DriftAlarm> {
        alarms(relative, DEVIATION, &DriftSettings::default())
    }

    #[test]
    fn a_change_is_found_and_dated() {
        let alarms = found(&node(&[(30, 0.04)], 52));
        assert_eq!(alarms.len(), 1);
        assert!((28..=31).contains(&alarms[0].since) && (33..38).contains(&alarms[0].raised), "{alarms:?}");
        assert!(
            (alarms[0].change - 0.04).abs() < 0.006 && alarms[0].until.is_none() && alarms[0].score > 8.0
        );
        assert!(score(&node(&[(30, 0.04)], 52), DEVIATION, &DriftSettings::default()).unwrap() > 5.0);
    }

    #[test]
    fn what_is_mended_is_over() {
        let alarms = found(&node(&[(30, 0.04), (40, -0.04), (60, 0.06)], 80));
        assert_eq!(alarms.len(), 2);
        assert!((42..=44).contains(&alarms[0].until.unwrap()) && alarms[1].until.is_none(), "{alarms:?}");
    }

    #[test]
    fn nothing_is_said_of_healthy_or_new_nodes() {
        assert_eq!(found(&node(&[], 500)), []);
        assert_eq!(found(&node(&[(5, 0.2)], 20)), []);
        assert_eq!(score(&node(&[], 20), DEVIATION, &DriftSettings::default()), None);
        // One very bad session.
        let mut relative = node(&[], 52);
        relative[40] += 3.0;
        assert_eq!(found(&relative), []);
    }

    /// Many deviations, but less than delta.
    #[test]
    fn what_does_not_matter_is_no_alarm() {
        let mut relative = vec![0.0; 52];
        relative[30..].fill(0.008);
        assert_eq!(alarms(&relative, 0.0001, &DriftSettings::default()), []);
        assert_eq!(alarms(&relative, 0.0, &DriftSettings::default()), []);
        relative[30..].fill(0.02);
        let alarms = alarms(&relative, 0.0, &DriftSettings::default());
        assert_eq!((alarms[0].since, alarms[0].raised), (30, 35));
    }

    #[test]
    fn deviations_are_pooled() {
        let mut random = Random::new(1);
        let mut histories: Vec<Vec<f64>> = (0..500)
            .map(|node| (0..30).map(|_| f64::from(node) + DEVIATION * random.normal()).collect())
            .collect();
        histories.push(vec![5.0; 19]);
        let histories: Vec<&[f64]> = histories.iter().map(Vec::as_slice).collect();
        let pooled = deviation(&histories, &DriftSettings::default()).unwrap();
        assert!((pooled / DEVIATION - 1.0).abs() < 0.02, "{pooled}");
        assert_eq!(deviation(&histories[500..], &DriftSettings::default()), None);
    }

    proptest! {
        #[test]
        fn any_history_can_be_read(
            relative in proptest::collection::vec(-1.0..1.0f64, 0..90), deviation in 0.0..0.5f64
        ) {
            let alarms = alarms(&relative, deviation, &DriftSettings::default());
            for drift in &alarms {
                prop_assert!(20 <= drift.since && drift.since <= drift.raised);
                prop_assert!(drift.raised < relative.len() && drift.change.is_finite());
                prop_assert!(drift.until.is_none_or(|until| drift.raised < until));
            }
            for pair in alarms.windows(2) {
                prop_assert!(pair[0].until.is_some_and(|until| until < pair[1].since));
            }
        }
    }
}
