//! Which runs of A and B belong together: the same work on the same node, in the same session if there is one.

use super::side::{Side, SideRun};
use crate::stats::two_sets::SessionRuns;
use crate::table::UNDATED;
use crate::table::node_class::{Key, Parts};
use std::collections::{BTreeMap, BTreeSet};

/// The work by which units of A and B are matched: without the keys in which all runs of A differ from all runs of B.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Work(Vec<(Key, String)>);

/// The runs of A and B of one unit.
pub struct MatchedUnit<'a> {
    /// A node, or the nodes of a job.
    pub unit: &'a str,
    /// The class: the work and the facts that A and B have in common.
    pub class: String,
    /// Its runs by session.
    pub sessions: Vec<MatchedSession<'a>>,
}

/// The runs of a unit in one session. Paired runs have the same index.
#[derive(Default)]
pub struct MatchedSession<'a> {
    pub a: Vec<&'a SideRun>,
    pub b: Vec<&'a SideRun>,
    /// A and B took turns.
    pub in_turns: bool,
}

/// What A and B have in common, and what not.
pub struct Matched<'a> {
    /// In the order of class and unit.
    pub units: Vec<MatchedUnit<'a>>,
    /// The keys in which all runs of A differ from all runs of B, with the texts of both.
    pub differs: Vec<(Key, [BTreeSet<Option<String>>; 2])>,
    /// Units of A, and of B, without a partner in the same work, and the number of their runs.
    pub unmatched: [BTreeMap<&'a str, usize>; 2],
}

/// Matches the runs of A and B. `same_table` if both were read together: then sessions with the same name are the same.
pub fn matched<'a>(a: &'a Side, b: &'a Side, same_table: bool) -> Matched<'a> {
    let differs = differing(a, b);
    // Runs of several programs, for example, cannot be told apart by what A and B differ in.
    let is_single = |texts: &[BTreeSet<Option<String>>; 2]| texts.iter().all(|texts| texts.len() == 1);
    let single = differs.iter().filter(|(key, texts)| key.is_fact() || is_single(texts));
    let dropped: BTreeSet<&Key> = single.map(|(key, _)| key).collect();
    let work = |run: &SideRun| {
        let parts = run.parts.iter().filter(|(key, _)| !key.is_fact() && !dropped.contains(key));
        Work(parts.map(|(key, text)| (key.clone(), text.to_owned())).collect())
    };
    let mut found: BTreeMap<(Work, &str), [Vec<&SideRun>; 2]> = BTreeMap::new();
    for (set, side) in [a, b].into_iter().enumerate() {
        for run in &side.runs {
            found.entry((work(run), &run.unit)).or_default()[set].push(run);
        }
    }
    let mut matched = Matched { units: Vec::new(), unmatched: Default::default(), differs: Vec::new() };
    for ((_, unit), [a, b]) in &found {
        match (a.is_empty(), b.is_empty()) {
            (false, false) => matched.units.push(MatchedUnit {
                unit,
                class: class(a.iter().chain(b), &dropped),
                sessions: sessions(a, b, same_table),
            }),
            (_, true) => *matched.unmatched[0].entry(unit).or_default() += a.len(),
            (true, _) => *matched.unmatched[1].entry(unit).or_default() += b.len(),
        }
    }
    matched.units.sort_by(|a, b| (&a.class, a.unit).cmp(&(&b.class, b.unit)));
    Matched { differs, ..matched }
}

/// The keys for which A and B have no value in common.
fn differing(a: &Side, b: &Side) -> Vec<(Key, [BTreeSet<Option<String>>; 2])> {
    let [a, b] = [a, b].map(Side::texts);
    let keys: BTreeSet<&Key> = a.keys().chain(b.keys()).collect();
    let nothing = || BTreeSet::from([None]);
    let of = |key: &Key| {
        let texts = [&a, &b].map(|texts| texts.get(key).cloned().unwrap_or_else(nothing));
        texts[0].is_disjoint(&texts[1]).then(|| (key.clone(), texts))
    };
    keys.into_iter().filter_map(of).collect()
}

/// The class of a unit: what all of its runs have in common.
fn class<'a>(mut runs: impl Iterator<Item = &'a &'a SideRun>, dropped: &BTreeSet<&Key>) -> String {
    let Some(first) = runs.next() else { return String::new() };
    let mut common: Vec<(&Key, &str)> =
        first.parts.iter().filter(|(key, _)| !dropped.contains(key)).collect();
    runs.for_each(|run| common.retain(|(key, text)| run.parts.get(key) == Some(text)));
    let shown = |(key, text): (&Key, &str)| match key {
        Key::Microcode => format!("microcode {text}"),
        Key::Kernel => format!("Linux {text}"),
        Key::Ranks => Parts::described_ranks(text),
        Key::Named(name) => format!("{name}={text}"),
        _ => text.to_owned(),
    };
    match common.is_empty() {
        true => "undeclared".to_owned(),
        false => common.into_iter().map(shown).collect::<Vec<_>>().join(", "),
    }
}

fn sessions<'a>(a: &[&'a SideRun], b: &[&'a SideRun], same_table: bool) -> Vec<MatchedSession<'a>> {
    let mut sessions: BTreeMap<(usize, Option<&str>), MatchedSession> = BTreeMap::new();
    let apart = !same_table && !overlap(a, b);
    for (set, runs) in [a, b].into_iter().enumerate() {
        for run in runs {
            let name = run.session.as_deref();
            // Files from different days may have sessions of one name, or of none.
            let session = sessions.entry((if apart { set } else { 0 }, name)).or_default();
            if set == 0 { session.a.push(run) } else { session.b.push(run) }
        }
    }
    let mut sessions: Vec<MatchedSession> = sessions.into_iter().flat_map(split).collect();
    sessions.iter_mut().for_each(MatchedSession::pair);
    sessions
}

/// Runs without a session are two sessions if one set was measured before the other.
fn split<'a>(((_, name), session): ((usize, Option<&str>), MatchedSession<'a>)) -> Vec<MatchedSession<'a>> {
    match name.is_none() && session.is_in_blocks() {
        true => vec![
            MatchedSession { a: session.a, ..MatchedSession::default() },
            MatchedSession { b: session.b, ..MatchedSession::default() },
        ],
        false => vec![session],
    }
}

/// True if the runs of both sets were made in the same time.
fn overlap(a: &[&SideRun], b: &[&SideRun]) -> bool {
    let span = |runs: &[&SideRun]| {
        let starts = || runs.iter().map(|run| run.started_unix_ns);
        Some((starts().min()?, starts().max().filter(|last| *last != UNDATED)?))
    };
    match (span(a), span(b)) {
        (Some((a_first, a_last)), Some((b_first, b_last))) => a_first <= b_last && b_first <= a_last,
        _ => false,
    }
}

impl<'a> MatchedSession<'a> {
    /// Finds out whether A and B took turns: almost all pairs of successive runs have one run of A and one run of B.
    /// A run without a neighbour of the other set is left out then, for example one that failed.
    fn pair(&mut self) {
        let all = self.a.len() + self.b.len();
        let of = |set: usize, runs: &[&'a SideRun]| {
            runs.iter().map(|run| (run.started_unix_ns, set, *run)).collect::<Vec<_>>()
        };
        let mut order = [of(0, &self.a), of(1, &self.b)].concat();
        if order.iter().any(|(start, ..)| *start == UNDATED) {
            return;
        }
        order.sort_by_key(|(start, set, _)| (*start, *set));
        if order.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return; // runs at the same time are no turns
        }
        let (mut pairs, mut at) = (Vec::new(), 0);
        while at + 1 < order.len() {
            let (first, second) = (order[at], order[at + 1]);
            match first.1 != second.1 {
                true => pairs.push(if first.1 == 0 { (first.2, second.2) } else { (second.2, first.2) }),
                false => {
                    at += 1;
                    continue;
                }
            }
            at += 2;
        }
        if pairs.len() > 1 && 10 * pairs.len() >= 4 * all {
            (self.a, self.b) = pairs.into_iter().unzip();
            self.in_turns = true;
        }
    }

    /// True if one set was measured before the other.
    pub fn is_in_blocks(&self) -> bool {
        let span = |runs: &[&SideRun]| {
            let starts = || runs.iter().map(|run| run.started_unix_ns).filter(|start| *start != UNDATED);
            Some((starts().min()?, starts().max()?))
        };
        match (span(&self.a), span(&self.b)) {
            (Some((a_first, a_last)), Some((b_first, b_last))) => a_last < b_first || b_last < a_first,
            _ => false,
        }
    }

    /// The values of all runs (ln), for the statistics. A run without the value counts for nothing, and neither does the
    /// run that it is paired with.
    pub fn values(&self, of: impl Fn(&SideRun) -> Option<f64>) -> SessionRuns {
        if self.in_turns {
            let both = |(a, b): (&&SideRun, &&SideRun)| Some((of(a)?.ln(), of(b)?.ln()));
            let (a, b) = self.a.iter().zip(&self.b).filter_map(both).unzip();
            return SessionRuns { a, b, in_turns: true };
        }
        let ln = |runs: &[&SideRun]| runs.iter().filter_map(|run| of(run)).map(f64::ln).collect();
        SessionRuns { a: ln(&self.a), b: ln(&self.b), in_turns: false }
    }
}
