//! The counts on each node of a run, as [`crate::stats::cause`] needs them.
//!
//! They include only the ranks' own threads and devices that belong to no core (memory controllers). Counts of
//! hardware threads (`--scope core`) include all processes on them. That is another sum, so it is left out.
//!
//! The identity of [`crate::stats::terms`] holds for the time T from the first t1 to the last t2 of the node's ranks,
//! with
//!
//! - `cpus`: the number of hardware threads that the ranks may use; each counts once. For pinned ranks these are the
//!   threads that they are pinned to. For other ranks these are all threads of the node: then U says how much of the
//!   node they used, and n is a constant of the class. The number of threads in a rank does not matter: counters follow all of
//!   them, and R is their sum.
//! - `tsc`: the time T in ticks, at the mean rate at which the ranks' time stamp counters ran between t1 and t2. It
//!   counts once per node, not once per rank.

use crate::stats::node_counts::{Counted, MISSED, NAMES};
use hashbrown::HashSet;
use pmmpi::NodeId;
use pmmpi::counters::count_and_quality::Quality;
use pmmpi::counters::counts::CountRow;
use pmmpi::counters::event::Event;
use pmmpi::counters::open_counters::Scope;
use pmmpi::node::CpuSet;
use pmmpi::record::{NodeRecord, RankRecord, Run};
use pmmpi_events::metrics::{
    CpuKind, CpuTable, Lack, MetricInput, MetricInputs, amount, catalogue, of_totals,
};
use pmmpi_events::totals::{Total, WhyInexact, totals_by};
use pmmpi_events::validation::RunTrust;
use std::borrow::Cow;
use std::ptr;
use std::sync::LazyLock;

/// The sums over the ranks of each node record of a run. A value exists if all ranks of the node record counted it,
/// exactly or for a sufficient part of the time, and `trust` does not call the event unusable. Otherwise the reason
/// is given for [`MISSED`]. Counts of user mode only have names of their own with the suffix `_user`.
pub fn of_nodes(run: &Run, trust: &RunTrust) -> Vec<Counted> {
    let mut ranks: Vec<Vec<&RankRecord>> = vec![Vec::new(); run.nodes.len()];
    run.ranks.iter().for_each(|rank| ranks[rank.node.index()].push(rank));
    let mut lost = vec![0; run.nodes.len()];
    run.lost.iter().for_each(|rank| lost[rank.node.index()] += 1);
    let node = |row: &CountRow| {
        let scope = run.counts.sets[row.set as usize].scope;
        let is_counted = row.region.is_none() && scope != Scope::Core;
        let rank = run.ranks.binary_search_by_key(&row.rank, |rank| rank.rank).ok().filter(|_| is_counted)?;
        Some(run.ranks[rank].node)
    };
    let mut totals = totals_by(&run.counts, node).peekable();
    let nodes = (0..).map(NodeId).zip(&run.nodes).zip(ranks.iter().zip(lost));
    let mut known = KnownLacks::default();
    let of = |((at, record), (ranks, lost)): ((NodeId, &NodeRecord), (&Vec<&RankRecord>, usize))| {
        let totals = totals.next_if(|(node, _)| *node == at).map(|(_, totals)| totals).unwrap_or_default();
        let mut counted = counts(record, totals, ranks.len() + lost, trust, &mut known);
        times(&mut counted, ranks);
        counted
    };
    nodes.map(of).collect()
}

/// Amounts that are computed from several events, or that have events of their own on each processor.
const AMOUNTS: [&str; 5] =
    ["system_read_bytes", "system_write_bytes", "dram_bytes", "dram_read_bytes", "snoop_filter_evictions"];
/// Events for which the largest value of a rank is also given: whether it was counted in user mode only, the name of the
/// sum, and the name of the largest value.
const BUSY: [(&str, bool, &str, &str); 4] = [
    ("ref_cycles", false, "ref_cycles", "ref_cycles_most"),
    ("ref_cycles", true, "ref_cycles_user", "ref_cycles_user_most"),
    ("task_clock_ns", false, "task_clock_ns", "task_clock_ns_most"),
    ("task_clock_ns", true, "task_clock_ns_user", "task_clock_ns_user_most"),
];

/// Amounts that a node lacks because of the events that it counted, or because of its processor. Nodes of a run are
/// often alike, so the next node probably lacks the same.
#[derive(Default)]
struct KnownLacks<'a> {
    /// The processor of the last node, and its table.
    cpu: Option<(CpuKind, &'a CpuTable)>,
    /// The table for which the rest holds.
    table: Option<&'a CpuTable>,
    /// The events, and whether each has a value.
    events: Vec<(&'a Event, bool)>,
    is_lacking: [bool; AMOUNTS.len()],
}

impl<'a> KnownLacks<'a> {
    fn table_of(&mut self, cpu: CpuKind) -> Option<&'a CpuTable> {
        match &self.cpu {
            Some((known, table)) if *known == cpu => Some(table),
            _ => {
                let table = catalogue().table(&cpu)?;
                self.cpu = Some((cpu, table));
                Some(table)
            }
        }
    }

    /// Sets the amounts that `inputs` have.
    fn set_amounts(&mut self, counted: &mut Counted, cpu: CpuKind, all: &[Total<'a>], inputs: &MetricInputs) {
        let Some(table) = self.table_of(cpu) else { return };
        let events = || all.iter().map(|total| (total.event, total.count.is_some()));
        let is_same =
            |((a, has_a), (b, has_b)): ((&Event, bool), &(&Event, bool))| ptr::eq(a, *b) && has_a == *has_b;
        let is_known = self.table.is_some_and(|known| ptr::eq(known, table))
            && self.events.len() == all.len()
            && events().zip(&self.events).all(is_same);
        if !is_known {
            (self.table, self.is_lacking) = (Some(table), Default::default());
            self.events = events().collect();
        }
        let lacking = self.is_lacking.iter_mut().zip(AMOUNTS).filter(|(is_lacking, _)| !**is_lacking);
        for (is_lacking, name) in lacking {
            match amount(table, inputs, name) {
                Ok(value) if value.supports_verdict() && value.quality != Quality::Partial => {
                    counted.set(name, value.value);
                }
                Ok(_) | Err(Lack::Nothing(_) | Lack::Contradiction(_) | Lack::NotFinite) => {}
                Err(Lack::NotHere(_) | Lack::Unmeasured { .. } | Lack::Unknown(_)) => *is_lacking = true,
            }
        }
    }
}

fn counts<'a>(
    record: &NodeRecord,
    mut totals: Vec<Total<'a>>,
    ranks: usize,
    trust: &RunTrust,
    known_lacks: &mut KnownLacks<'a>,
) -> Counted {
    // A few values have other names than the totals.
    let mut counted = Counted::with_capacity(totals.len() + AMOUNTS.len());
    if totals.is_empty() {
        counted
            .lack("task_clock_ns", "no rank counted anything (run files before schema 3 have no counters)");
        return counted;
    }
    for total in totals.iter_mut().filter(|total| total.scope == Scope::Task && total.places != ranks) {
        (total.count, total.quality) = (None, Quality::Unavailable);
        total.reason = Some(WhyInexact::FewRanks { counted: total.places, of: ranks });
    }
    // If each node has one rank, all nodes have the same text.
    for total in totals.iter_mut().filter(|_| ranks == 1) {
        if let Some(WhyInexact::Place { rank, .. }) = &mut total.reason {
            *rank = None;
        }
    }
    // A missing value matters in a sum over several PMUs (such names have a slash), and if its reason is reported.
    let matters = |total: &Total| {
        let name = &total.event.name;
        total.count.is_some() || name.contains('/') || MISSED.contains(&name.as_str())
    };
    totals.retain(matters);
    let user: Vec<Total> = totals.extract_if(.., |total| total.user_mode_only).collect();
    let all = totals;
    let (all_inputs, user_inputs) = (of_totals(&all, trust), of_totals(&user, trust));
    put(&mut counted, &user_inputs, "_user", |_| true);
    put(&mut counted, &all_inputs, "", |quality| matches!(quality, Quality::Exact | Quality::Scaled));
    for total in all.iter().chain(&user) {
        let is_it = |(name, is_user, ..): &&(&str, bool, _, _)| {
            total.event.name == *name && total.user_mode_only == *is_user
        };
        let Some((_, _, sum, of_rank)) = BUSY.iter().find(is_it) else { continue };
        let Some(most) = total.most.filter(|_| counted.get(sum).is_some()) else { continue };
        counted.set(*of_rank, most as f64 * total.event.scale);
    }
    let cpu = record.facts.as_ref().map(|facts| CpuKind::of_node(&facts.hardware)).unwrap_or_default();
    known_lacks.set_amounts(&mut counted, cpu, &all, &all_inputs);
    counted
}

const NOT_ENOUGH: &str = "counted only for a small part of the time, or unusable on this processor";

fn put(counted: &mut Counted, inputs: &MetricInputs, suffix: &str, is_good: impl Fn(Quality) -> bool) {
    for (name, input) in inputs.counts() {
        let MetricInput { value, quality, reason, .. } = input;
        match value {
            Some(value) if is_good(*quality) && input.supports_verdict() => {
                match suffix {
                    "" => counted.set(known(name), *value),
                    _ => counted.set(known(&format!("{name}{suffix}")), *value),
                }
                if !suffix.is_empty() && counted.get(name).is_none() {
                    lack(counted, name, reason.as_deref());
                }
            }
            _ => lack(counted, name, reason.as_deref()),
        }
    }
}

/// Gives the reason if a report may show it: see [`Counted::most_missed`].
fn lack(counted: &mut Counted, name: &str, reason: Option<&str>) {
    if let Some(name) = MISSED.into_iter().find(|missed| *missed == name) {
        counted.lack(name, reason.unwrap_or(NOT_ENOUGH));
    }
}

/// The name, without memory of its own if it is one of [`NAMES`].
fn known(name: &str) -> Cow<'static, str> {
    static KNOWN: LazyLock<HashSet<&'static str>> = LazyLock::new(|| NAMES.into_iter().collect());
    KNOWN.get(name).map_or_else(|| name.to_owned().into(), |known| Cow::Borrowed(*known))
}

/// Values that do not come from counters.
fn times(counted: &mut Counted, ranks: &[&RankRecord]) {
    counted.set("ranks", ranks.len() as f64);
    match threads_in_any(ranks.iter().map(|rank| &rank.allowed)) {
        0 => counted.lack("cpus", "pmmpi does not know which hardware threads the ranks may use"),
        threads => counted.set("cpus", threads as f64),
    }
    match ticks(ranks) {
        Some(ticks) => counted.set("tsc", ticks),
        None => counted.lack("tsc", "pmmpi does not know whether the time stamp counter is invariant"),
    }
}

/// How many hardware threads are in at least one of these sets. Counts ranges, not single threads: a file may claim four
/// thousand million threads.
fn threads_in_any<'a>(sets: impl Iterator<Item = &'a CpuSet>) -> u64 {
    let count = |(first, last): &(u32, u32)| (u64::from(*last) + 1).saturating_sub(u64::from(*first));
    CpuSet::union(sets).0.iter().map(count).sum()
}

/// T in ticks, from the first t1 to the last t2. The function subtracts each rank's time stamp counter only from
/// itself, because time stamp counters of different sockets are not comparable.
fn ticks(ranks: &[&RankRecord]) -> Option<f64> {
    let stamps = || ranks.iter().map(|rank| <[i64; 4]>::from(rank.stamps));
    let (from, to) = (stamps().map(|t| t[1]).min()?, stamps().map(|t| t[2]).max()?);
    let worked_ns: f64 = ranks.iter().map(|rank| rank.stamps.inner_ns() as f64).sum();
    let ticks: f64 =
        ranks.iter().map(|rank| rank.tsc.map(|[t1, t2]| t2.wrapping_sub(t1) as f64)).sum::<Option<f64>>()?;
    (worked_ns > 0.0 && to > from).then(|| ticks / worked_ns * (to - from) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmmpi::RankId;
    use pmmpi::bounds::Stamps;
    use pmmpi::counters::count_and_quality::Gap;
    use pmmpi::counters::counts::GroupCounts;
    use pmmpi::counters::event::{Encoding, kind};
    use pmmpi::counters::open_counters::Set;
    use pmmpi::node::{CpuSet, Hardware, NodeFacts, NodeKey};
    use pmmpi::record::{End, Mode, RunHeader};
    use pmmpi_events::validation::Trust;

    const S: i64 = 1_000_000_000;

    /// Two ranks with two hardware threads each, which work for 2 s and 3 s.
    fn run(gap: Option<Gap>) -> Run {
        let header = RunHeader::new("run".into(), vec!["a.out".into()], Mode::Plain, 0);
        let mut run = Run::empty(header, 2);
        let key = NodeKey { hostname: "a".into(), boot_id: String::new(), time_namespace: 0 };
        let hardware = Hardware {
            cpu_vendor: Some("GenuineIntel".into()),
            cpu_family: Some(6),
            cpu_model: Some(0x55),
            ..Hardware::default()
        };
        let facts = Some(NodeFacts { hardware, ..NodeFacts::default() });
        run.nodes.push(NodeRecord { facts, ..NodeRecord::new(key) });
        let rank = |rank: u32, seconds: i64| RankRecord {
            rank: RankId(rank),
            stamps: Stamps::new(0, S, (1 + seconds) * S, 5 * S).unwrap(),
            tsc: Some([7, 7 + 2_000_000_000 * seconds as u64]),
            allowed: CpuSet(vec![(2 * rank, 2 * rank + 1)]),
            ..RankRecord::unmeasured(End::Finalized)
        };
        run.ranks = vec![rank(0, 2), rank(1, 3)];
        let event = |name: &str| (Event::counted(name, Encoding::new(kind::HARDWARE, 0)), gap);
        let task = Set {
            scope: Scope::Task,
            events: ["cycles", "ref_cycles", "instructions", "l2_lines_in"].map(event).into(),
            groups: vec![vec![0, 1, 2, 3]],
        };
        let controller = |name: &str| (Event::counted(name, Encoding::new(20, 0)), None);
        let socket = Set {
            scope: Scope::Socket,
            events: ["dram_reads", "dram_writes"].map(controller).into(),
            groups: vec![vec![0, 1]],
        };
        let row = |rank, cpu, set, counts: &[u64], running_ns| CountRow {
            rank: RankId(rank),
            cpu,
            set,
            region: None,
            groups: vec![Some(GroupCounts { enabled_ns: 100, running_ns, counts: counts.to_vec() })],
        };
        run.counts.sets = vec![task, socket];
        run.counts.rows = vec![
            row(0, None, 0, &[40, 20, 80, 5], 100),
            row(0, Some(0), 1, &[100, 10], 100),
            row(0, Some(8), 1, &[200, 20], 100),
            row(1, None, 0, &[60, 30, 120, 7], 100),
        ];
        run
    }

    fn of(run: &Run) -> Counted {
        of_nodes(run, &Trust::default().of_run(run)).remove(0)
    }

    #[test]
    fn threads_of_several_ranks_count_once() {
        let count = |lists: &[&str]| {
            let sets: Vec<CpuSet> = lists.iter().map(|list| CpuSet::parse(list).unwrap()).collect();
            threads_in_any(sets.iter())
        };
        assert_eq!(count(&["0-3,8", "2-5", "8", "4-4"]), 7);
        assert_eq!((count(&[]), count(&["0-4294967295", "7"])), (0, 1 << 32));
    }

    #[test]
    fn sums_are_over_all_ranks_of_a_node() {
        let counted = of(&run(None));
        for (name, value) in [
            ("cycles", 100.0),
            ("ref_cycles", 50.0),
            ("ref_cycles_most", 30.0),
            ("instructions", 200.0),
            ("ranks", 2.0),
            ("cpus", 4.0),
            ("tsc", 6e9),
            ("system_read_bytes", 12.0 * 64.0),
            ("dram_bytes", 330.0 * 64.0),
        ] {
            assert_eq!(counted.get(name), Some(value), "{name}");
        }
        assert!(counted.why_not("task_clock_ns").is_none() && counted.get("task_clock_ns").is_none());
    }

    #[test]
    fn what_one_rank_lacks_the_node_lacks() {
        let mut without = run(None);
        without.counts.rows.pop();
        let counted = of(&without);
        assert_eq!(
            (counted.get("cycles"), counted.why_not("cycles")),
            (None, Some("only 1 of the node's 2 ranks counted this event"))
        );
        assert!(counted.get("system_read_bytes").is_none() && counted.get("dram_bytes").is_some());

        let mut shared = run(None);
        shared.counts.rows[3].groups[0].as_mut().unwrap().running_ns = 50;
        assert_eq!(of(&shared).get("cycles"), Some(160.0));
        shared.counts.rows[3].groups[0].as_mut().unwrap().running_ns = 19;
        let counted = of(&shared);
        assert_eq!((counted.get("cycles"), counted.get("ref_cycles_most")), (None, None));
        assert!(counted.why_not("cycles").unwrap().starts_with("rank 1: counted 19.0 %"));

        let mut unknown = run(None);
        unknown.ranks[1].tsc = None;
        unknown.ranks.iter_mut().for_each(|rank| rank.allowed = CpuSet::default());
        let counted = of(&unknown);
        assert!(counted.why_not("tsc").is_some() && counted.why_not("cpus").is_some());
        unknown.counts = Default::default();
        assert!(of(&unknown).why_not("task_clock_ns").unwrap().contains("schema 3"));
    }

    #[test]
    fn user_mode_has_names_of_its_own() {
        let counted = of(&run(Some(Gap::UserModeOnly)));
        assert_eq!(
            (counted.get("cycles_user"), counted.get("ref_cycles_user_most")),
            (Some(100.0), Some(30.0))
        );
        assert!(
            counted.get("cycles").is_none() && counted.why_not("cycles").unwrap().contains("user mode only")
        );
        let counted = of(&run(Some(Gap::OneKindOfCore)));
        assert!(counted.get("cycles").is_none() && counted.get("cycles_user").is_none());
        assert!(counted.why_not("cycles").unwrap().contains("other kinds of cores"));
    }

    #[test]
    fn a_lost_rank_is_a_rank() {
        let mut run = run(None);
        run.ranks.pop();
        let (t_ns, ended_ns, whereabouts) = (vec![], None, None);
        let (rank, node) = (RankId(1), NodeId(0));
        let lost = pmmpi::record::LostRank { rank, node, t_ns, end: End::Lost, ended_ns, whereabouts };
        run.lost.push(lost);
        assert_eq!(of(&run).why_not("cycles"), Some("only 1 of the node's 2 ranks counted this event"));
    }
}
