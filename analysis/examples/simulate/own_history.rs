//! Fleets over several sessions, in which some nodes change.

use crate::measured_runs::{MeasuredRun, MeasuredRuns};
use crate::promises::{Rate, over};
use pmmpi_analysis::stats::own_history::{Course, OwnVerdict};
use pmmpi_analysis::stats::random::Random;
use pmmpi_analysis::stats::verdict_rule::Verdict;
use std::ops::Range;

/// A fleet over some sessions. ln T = node + session of the node + run, all normal.
#[derive(Clone, Copy)]
pub struct Fleet {
    pub nodes: usize,
    pub sessions: usize,
    pub runs: usize,
    /// Share of nodes that change at a random session.
    pub changed: f64,
    /// Least and largest change, as a fraction; negative for nodes that become faster.
    pub by: (f64, f64),
    /// Standard deviation of a node's sessions (ln T).
    pub session_sd: f64,
    /// The sessions of a node have a t distribution with 3 degrees of freedom, not a normal one.
    pub has_bad_sessions: bool,
    /// Share of the nodes that a session measures.
    pub measured: f64,
    /// Standard deviation of what a session changes for all nodes (ln T).
    pub common_sd: f64,
    /// How a change goes.
    pub course: Truth,
}

/// How a change goes in truth.
#[derive(Clone, Copy, PartialEq)]
pub enum Truth {
    Step,
    /// Only in every second session from then on.
    Unsteady,
    /// From the first session to the last.
    Creep,
    /// In one session in the middle.
    OneSession,
}

/// The reference of the design.
pub const REFERENCE: Fleet = Fleet {
    nodes: 1000,
    sessions: 2,
    runs: 7,
    changed: 0.01,
    by: (0.01, 0.12),
    session_sd: 0.003,
    has_bad_sessions: false,
    measured: 1.0,
    common_sd: 0.02,
    course: Truth::Step,
};

/// A node that changes.
#[derive(Clone, Copy)]
struct Change {
    by: f64,
    since: usize,
}

/// Rates over the fleets of some seeds.
pub fn of(fleet: Fleet, seeds: Range<u64>) -> Vec<Rate> {
    let simulate = |random: &mut Random, runs: &mut MeasuredRuns| fleet.simulate(random, runs);
    over(seeds, simulate, |sums, judged, truth: &Vec<Option<Change>>| {
        let reports = judged.by_node();
        sums.count("class moved", judged.verdicts.classes.iter().any(|class| class.moved.is_some()));
        let (mut found, mut wrong, mut faster, mut suspects, mut right_since, mut much) =
            (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        for (node, change) in truth.iter().enumerate() {
            let Some(report) = reports.get(&node) else { continue };
            let history = &report.history;
            let wanted = match change {
                Some(change) if change.by < 0.0 => OwnVerdict::Faster,
                _ => OwnVerdict::Slowed,
            };
            let is_found = history.verdict == Some(wanted);
            let Some(change) = change else {
                wrong += f64::from(u8::from(history.verdict == Some(OwnVerdict::Slowed)));
                faster += f64::from(u8::from(history.verdict == Some(OwnVerdict::Faster)));
                suspects += f64::from(u8::from(history.verdict == Some(OwnVerdict::Suspect)));
                sums.count("healthy with a bad session", !history.events.bad_sessions.is_empty());
                continue;
            };
            let size = change.by.abs();
            found += f64::from(u8::from(is_found));
            sums.count("recall", is_found);
            for (name, from, to) in
                [("of 2-3 %", 0.02, 0.03), ("of 3-5 %", 0.03, 0.05), ("of > 5 %", 0.05, 1.0)]
            {
                if (from..to).contains(&size) {
                    sums.count(name, is_found);
                }
            }
            sums.count("SLOW by class", report.verdict >= Some(Verdict::SlowTail));
            if !is_found {
                sums.count(
                    "bad session named",
                    history.events.bad_sessions == [format!("s{:03}", change.since)],
                );
                continue;
            }
            if size > 0.03 {
                much += 1.0;
                right_since += f64::from(u8::from(
                    history.events.since.as_deref() == Some(&format!("s{:03}", change.since)),
                ));
            }
            let at_least = history.events.at_least.unwrap_or_default();
            sums.count("at least true", at_least.abs() <= size);
            sums.count(
                "STEP or LATEST",
                matches!(history.events.course, Some(Course::Step | Course::Latest | Course::First)),
            );
            sums.count("UNSTEADY", history.events.course == Some(Course::Unsteady));
            sums.count("CREEP", history.events.course == Some(Course::Creep));
        }
        // "faster" fleets look for FASTER.
        let wrong_of_kind = if fleet.by.0 < 0.0 { faster } else { wrong };
        if found + wrong_of_kind > 0.0 {
            sums.add("precision", found, found + wrong_of_kind);
        }
        sums.add("false SLOWED", wrong, 1.0);
        sums.add("false FASTER", faster, 1.0);
        sums.add("false SUSPECT", suspects, 1.0);
        if much > 0.0 {
            sums.add("since right", right_since, much);
        }
    })
}

impl Fleet {
    fn simulate(&self, random: &mut Random, runs: &mut MeasuredRuns) -> Vec<Option<Change>> {
        let common: Vec<f64> = (0..self.sessions).map(|_| self.common_sd * random.normal()).collect();
        let mut truth = Vec::new();
        for node in 0..self.nodes {
            let theta = 0.015 * random.normal();
            let mut change = (random.uniform() < self.changed).then(|| {
                let by = self.by.0 + (self.by.1 - self.by.0) * random.uniform();
                let since = match self.course {
                    Truth::Creep => 1,
                    Truth::OneSession => 1 + (random.uniform() * (self.sessions - 2) as f64) as usize,
                    _ => 1 + (random.uniform() * (self.sessions - 1) as f64) as usize,
                };
                Change { by, since }
            });
            for (session, common) in common.iter().enumerate() {
                let own = self.session_sd * if self.has_bad_sessions { t3(random) } else { random.normal() };
                if random.uniform() > self.measured {
                    if let Some(change) = &mut change
                        && change.since == session
                    {
                        change.since += 1;
                    }
                    continue;
                }
                let by = change.map_or(0.0, |change| {
                    self.course.part(change.since, session, self.sessions) * change.by.ln_1p()
                });
                for run in 0..self.runs {
                    let slow =
                        if random.uniform() < 0.01 { (0.1 + 0.2 * random.uniform()).ln_1p() } else { 0.0 };
                    let ln_time = 10f64.ln() + theta + common + own + by + 0.003 * random.normal() + slow;
                    runs.add(MeasuredRun { node, session, run, ln_time, start_s: None });
                }
            }
            // A change after the node's last session is none that can be seen.
            truth.push(change.filter(|change| change.since < self.sessions));
        }
        truth
    }
}

impl Truth {
    /// Which part of the change a session has.
    fn part(self, since: usize, session: usize, sessions: usize) -> f64 {
        let is_changed = match self {
            Self::Step => session >= since,
            Self::Unsteady => session >= since && (sessions - 1 - session).is_multiple_of(2),
            Self::OneSession => session == since,
            Self::Creep => return session as f64 / (sessions - 1) as f64,
        };
        f64::from(u8::from(is_changed))
    }
}

/// A t distribution with 3 degrees of freedom, with a standard deviation of 1.
fn t3(random: &mut Random) -> f64 {
    let squares: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
    random.normal() / (squares / 3.0).sqrt() / 3f64.sqrt()
}
