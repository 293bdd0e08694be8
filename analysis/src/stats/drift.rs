//! A node that grows slower from session to session, and since when.

use super::within;

/// When a drift is called one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The first so many sessions say what the node was like.
    pub baseline: usize,
    /// A session counts for no more than so many standard deviations: a single bad one alarms nobody.
    pub cap: f64,
    /// So many standard deviations a session are tolerated for ever.
    pub slack: f64,
    /// Alarm where the sum exceeds this.
    pub alarm: f64,
    /// And the median of the last sessions is slower than the baseline by more than this fraction.
    pub delta: f64,
    /// So many sessions are the last ones.
    pub last: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { baseline: 20, cap: 3.0, slack: 1.5, alarm: 8.0, delta: 0.01, last: 5 }
    }
}

/// An alarm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The session that it seems to have begun in: the first after the sum was 0.
    pub since: usize,
    /// The session that made it certain.
    pub raised: usize,
    /// The session in which it was over. `None` where it is not.
    pub until: Option<usize>,
    /// Median over these sessions, against the baseline: 0.05 is 5 % slower.
    pub change: f64,
    /// The largest sum.
    pub score: f64,
}

/// The alarms of one node. `relative` has one value a session, in the order of time: the node's median minus
/// the class's of the same session, both in ln T; sessions without the node are left out. After maintenance,
/// give the sessions since. Empty where there is none after the baseline.
///
/// x = value - median of the baseline; z = min(x / `deviation`, cap); S = max(0, S + z - slack), from 0;
/// `deviation` is [`deviation`]. The sum is E. S. Page's, "Continuous inspection schemes", Biometrika 41
/// (1954), and its last zero his estimate of when a change began; the cap is of J. M. Lucas and R. B. Crosier,
/// "Robust CUSUM", Communications in Statistics 11 (1982). An alarm is over when the last sessions' median is
/// back under delta; the sum begins anew then.
pub fn alarms(relative: &[f64], deviation: f64, settings: &Settings) -> Vec<Drift> {
    let mut alarms: Vec<Drift> = Vec::new();
    let Some(baseline) = baseline(relative, settings) else { return alarms };
    let (gate, mut window) = (settings.delta.ln_1p(), Vec::with_capacity(settings.last));
    let (mut sum, mut since) = (0.0f64, settings.baseline);
    for (session, value) in relative.iter().enumerate().skip(settings.baseline) {
        // 0 / 0, a node that never varied: nothing.
        let z = ((value - baseline) / deviation).min(settings.cap);
        sum = (sum + if z.is_nan() { 0.0 } else { z } - settings.slack).max(0.0);
        if sum == 0.0 {
            since = session + 1;
        }
        window.clear();
        window.extend_from_slice(&relative[(session + 1).saturating_sub(settings.last)..=session]);
        let slower = within::median_of(&mut window).is_some_and(|last| last - baseline > gate);
        let open = alarms.last_mut().filter(|drift| drift.until.is_none());
        match open {
            Some(drift) if !slower => {
                drift.until = Some(session);
                (sum, since) = (0.0, session + 1);
            }
            Some(drift) => drift.score = drift.score.max(sum),
            None if slower && sum > settings.alarm => {
                alarms.push(Drift { since, raised: session, until: None, change: f64::NAN, score: sum });
            }
            None => {}
        }
    }
    for drift in &mut alarms {
        let sessions = drift.since..drift.until.unwrap_or(relative.len());
        let median = within::median_of(&mut relative[sessions].to_vec());
        drift.change = median.map_or(0.0, |median| (median - baseline).exp_m1());
    }
    alarms
}

/// How far a node's last session is from its own past, in standard deviations. `None` before the baseline is
/// complete, or where nothing ever varied.
pub fn score(relative: &[f64], deviation: f64, settings: &Settings) -> Option<f64> {
    let last = relative.get(settings.baseline..)?.last()?;
    Some((last - baseline(relative, settings)?) / deviation).filter(|score| score.is_finite())
}

fn baseline(relative: &[f64], settings: &Settings) -> Option<f64> {
    within::median_of(&mut relative.get(..settings.baseline)?.to_vec())
}
