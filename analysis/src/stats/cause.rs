//! Why a node is slow: the largest term, if it makes up at least half of the slowdown, and other counts that
//! explain the term.

mod evidence;
mod snoop_filter;

use super::node_counts::Counted;
use super::term_parts::{HALTED, OFF_CPU, STOLEN, TermPart, parts};
use super::terms::{Decomposition, Identity, Term, decompose};
use super::verdict_rule::Verdict;
use evidence::{Evidence, Next, Usual};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// When a cause is named.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CauseSettings {
    /// The term makes up at least this share of ln(T / Tref).
    pub share: f64,
    /// The term is at least this many spreads of its class above the reference.
    pub score: f64,
    /// Least spread (in ln T), as with verdicts.
    pub floor: f64,
    /// If fewer nodes have the same counters, their spread is not known well enough.
    pub min_nodes: usize,
    /// The snoop filters of the nodes' processors.
    pub snoop_filter: SnoopFilters,
    /// Without a count of evictions, a snoop filter is the cause only if the L2 caches read at least this
    /// multiple of the bytes on the node with the fewest bytes. In J. D. McCalpin, "HPL and DGEMM performance
    /// variability on the Xeon Platinum 8160 processor", SC18, slow runs had 1.5 to 2.2 times the minimum.
    pub snoop_filter_fills: f64,
    /// A snoop filter is the cause only if it evicted at least this share of the additional lines that the L2 caches read
    /// (SC18: "Snoop Filter Evictions clearly account for the majority of the excess L2 fills").
    pub snoop_filter_share: f64,
    /// At least this share of the evicted lines came back from memory, if fewer evictions are sufficient (SC18: 10 to 15 %).
    pub snoop_filter_reads: f64,
    /// A line from memory or from another cache costs a core at most this many cycles: about 200 ns at 3 GHz.
    /// If the additional lines cost fewer than the additional cycles, they are not the cause.
    pub cycles_per_line: f64,
    /// If memory itself is slower, a line costs a core at most this many cycles more: about 33 ns at 3 GHz, a third of the
    /// usual latency.
    pub more_cycles_per_line: f64,
}

impl Default for CauseSettings {
    fn default() -> Self {
        Self {
            share: 0.5,
            score: 3.0,
            floor: 0.002,
            min_nodes: 5,
            snoop_filter: SnoopFilters::None,
            snoop_filter_fills: 1.5,
            snoop_filter_share: 0.5,
            snoop_filter_reads: 0.05,
            cycles_per_line: 600.0,
            more_cycles_per_line: 100.0,
        }
    }
}

/// The snoop filters of a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SnoopFilters {
    /// None that could be a cause, or the processor is unknown.
    #[default]
    None,
    /// Only a count of their evictions shows that they are the cause.
    Counted,
    /// As in Skylake-SP with more than 16 cores, whose conflicts the SC18 paper describes.
    WithConflicts,
}

/// Bytes of a cache line.
const LINE_BYTES: f64 = 64.0;

/// The explanation of a node's time.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The terms, which add up to ln(T / Tref).
    pub terms: BTreeMap<&'static str, f64>,
    /// The parts of some terms; the parts of a term add up to it.
    pub parts: BTreeMap<&'static str, f64>,
    /// Why the node is slow.
    pub cause: Result<Cause, NoCause>,
}

/// Why a node is slow.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// What made it slow.
    pub kind: CauseKind,
    /// The largest term (ln T).
    pub difference: f64,
    /// The term as a fraction of ln(T / Tref). More than 1 if other terms are negative.
    pub share: f64,
    /// How many spreads of its class the term is above the reference.
    pub score: f64,
}

/// What makes a node slow: a term, perhaps a part of it, and other counts that tell more.
#[derive(Clone, Debug, PartialEq)]
pub enum CauseKind {
    /// Its cores ran at a lower frequency.
    Frequency,
    /// Fewer cycles per second on the processor; without reference cycles, the reason is unknown.
    NetFrequency,
    /// Its threads needed more time on the processor; without the processor's counters, the reason is
    /// unknown.
    OnCpu,
    /// Its threads were on a processor for less of the time.
    OffCpu(Option<Unusual>),
    /// Its hardware threads worked for less of the time.
    Utilisation(Option<Unusual>),
    /// Like `Utilisation`: the hypervisor gave its hardware threads to other virtual machines.
    Stolen,
    /// Like `Utilisation`, although the Linux kernel had put its threads on the hardware threads.
    Halted {
        /// True if cycles in the Linux kernel were not counted: the node may have spent this time there.
        or_in_kernel: bool,
    },
    /// More instructions.
    Instructions,
    /// More instructions; most of the additional instructions are in the Linux kernel.
    KernelInstructions(Option<Unusual>),
    /// More cycles per instruction.
    Cpi,
    /// More cycles per instruction; most of the additional cycles are in the Linux kernel.
    KernelCpi,
    /// More cycles per instruction, and more bytes into its L2 caches.
    Cache {
        /// More bytes into L2 caches: 0.05 is 5 %.
        fills: f64,
    },
    /// More cycles per instruction, more bytes into its L2 caches, and more bytes read from and written to
    /// memory.
    CacheAndMemory {
        /// More bytes into L2 caches: 0.05 is 5 %.
        fills: f64,
        /// More bytes read from and written to memory: 0.05 is 5 %.
        bytes: f64,
    },
    /// More cycles per instruction, because a snoop filter evicted lines from its L2 caches. All values are
    /// fractions.
    SnoopFilter {
        /// More bytes into L2 caches: 0.5 is 50 %.
        fills: f64,
        /// More bytes read from memory, if that is unusual.
        reads: Option<f64>,
        /// More evictions, if they were counted and are unusual.
        evictions: Option<f64>,
    },
    /// More cycles per instruction, and more bytes read from and written to memory, but not into its L2 caches.
    MemoryTraffic {
        /// More bytes read from and written to memory: 0.05 is 5 %.
        bytes: f64,
    },
    /// More cycles per instruction; as many bytes read from and written to memory as usual, but at a lower
    /// bandwidth.
    Memory,
    /// One of its ranks worked for longer than the others.
    Imbalance,
    /// Its ranks had fewer hardware threads.
    Cpus,
    /// Time in which nothing was counted.
    Uncounted,
    /// The largest term makes up less than half of the slowdown, or is not unusual. The largest terms (ln T):
    /// at most two, and only terms above zero.
    Mixed(Vec<(Term, f64)>),
}

impl CauseKind {
    /// A stable name for scripts: a term, perhaps with a slash and a part of the term.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Frequency => "frequency",
            Self::NetFrequency => "net-frequency",
            Self::OnCpu => "on-cpu",
            Self::OffCpu(_) => "utilisation/off-cpu",
            Self::Utilisation(_) => "utilisation",
            Self::Stolen => "utilisation/stolen",
            Self::Halted { .. } => "utilisation/halted",
            Self::Instructions => "instructions",
            Self::KernelInstructions(_) => "instructions/kernel",
            Self::Cpi => "cpi",
            Self::KernelCpi => "cpi/kernel",
            Self::Cache { .. } => "cpi/cache",
            Self::CacheAndMemory { .. } => "cpi/cache-and-memory",
            Self::SnoopFilter { .. } => "cpi/snoop-filter",
            Self::MemoryTraffic { .. } => "cpi/memory-traffic",
            Self::Memory => "cpi/memory",
            Self::Imbalance => "imbalance",
            Self::Cpus => "cpus",
            Self::Uncounted => "uncounted",
            Self::Mixed(_) => "mixed",
        }
    }
}

/// A count that is unusually high in the class.
#[derive(Clone, Debug, PartialEq)]
pub struct Unusual {
    /// Which count.
    pub name: &'static str,
    /// The node's value.
    pub own: f64,
    /// The median of the class.
    pub usual: f64,
}

/// Why no cause is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoCause {
    /// No other node of its class was measured in its session.
    Alone,
    /// Half or more of the nodes of its session are suspects of earlier sessions or new, so their counts are no reference.
    OnlySuspects,
    /// The verdict is OK.
    NotSlow,
    /// The node has no counts.
    NothingCounted,
    /// A count that a decomposition needs is missing: its name and the reason.
    Missing {
        /// The count.
        name: &'static str,
        /// Why it is missing.
        reason: String,
    },
    /// Neither instructions and cycles nor a task clock were counted.
    NoTerms,
    /// Fewer than half of the nodes of its class have the same counters, or its time is not above zero.
    NoReference,
    /// Too few nodes of its class have the same counters.
    FewNodes {
        /// Number of nodes with the same counters.
        nodes: usize,
        /// Number of nodes that a cause needs.
        needed: usize,
    },
    /// It is no slower than the nodes of its class with the same counters.
    NoSlower,
}

impl Explanation {
    /// No terms and no cause.
    pub fn without(none: NoCause) -> Self {
        Self { terms: BTreeMap::new(), parts: BTreeMap::new(), cause: Err(none) }
    }

    /// Removes the cause of a node whose verdict is OK or that was not compared.
    pub fn for_verdict(self, verdict: Option<Verdict>) -> Self {
        let none = match verdict {
            None if self.cause == Err(NoCause::OnlySuspects) => return self,
            None => NoCause::Alone,
            Some(Verdict::Ok) => NoCause::NotSlow,
            Some(_) => return self,
        };
        Self { cause: Err(none), ..self }
    }
}

impl Default for Explanation {
    fn default() -> Self {
        Self::without(NoCause::NothingCounted)
    }
}

/// Why each node of a class is as slow as it is. `ln_times` has the ln seconds of each node's median run, and `class`
/// the counts of that run.
pub fn explain(class: &[Option<Counted>], ln_times: &[f64], settings: &CauseSettings) -> Vec<Explanation> {
    let mut all: Vec<Option<Explanation>> = vec![None; class.len()];
    for whole in decompose(class, ln_times, settings.floor) {
        let of = Explainer {
            class,
            parts: parts(class, &whole),
            whole: &whole,
            settings,
            usual: Default::default(),
        };
        for (at, node) in whole.nodes.iter().enumerate() {
            // A node with a more detailed decomposition is in this one only for the reference.
            all[*node].get_or_insert_with(|| of.node(at));
        }
    }
    let nothing = |counted: &Option<Counted>| Explanation::without(why_nothing(counted.as_ref()));
    all.into_iter().zip(class).map(|(one, counted)| one.unwrap_or_else(|| nothing(counted))).collect()
}

fn why_nothing(counted: Option<&Counted>) -> NoCause {
    let Some(counted) = counted else { return NoCause::NothingCounted };
    if Identity::of(counted).is_some() {
        return NoCause::NoReference;
    }
    let missing = counted.most_missed();
    missing.map_or(NoCause::NoTerms, |(name, reason)| NoCause::Missing { name, reason: reason.to_owned() })
}

struct Explainer<'a> {
    class: &'a [Option<Counted>],
    whole: &'a Decomposition,
    parts: Vec<TermPart>,
    settings: &'a CauseSettings,
    /// Indexed by [`Evidence`]; computed when a node first needs it.
    usual: [OnceCell<Usual>; 7],
}

impl Explainer<'_> {
    fn node(&self, at: usize) -> Explanation {
        let terms = self.whole.terms.iter().map(|column| (column.term.name(), column.differences[at]));
        let parts = self.parts.iter().filter_map(|part| Some((part.name, part.differences[at]?)));
        Explanation { terms: terms.collect(), parts: parts.collect(), cause: self.cause(at) }
    }

    fn cause(&self, at: usize) -> Result<Cause, NoCause> {
        let slower = self.whole.slower[at];
        let nodes = self.whole.nodes.len();
        if nodes < self.settings.min_nodes {
            return Err(NoCause::FewNodes { nodes, needed: self.settings.min_nodes });
        }
        let most = self.whole.terms.iter().max_by(|a, b| a.differences[at].total_cmp(&b.differences[at]));
        let Some(most) = most.filter(|_| slower > 0.0) else {
            return Err(NoCause::NoSlower);
        };
        let difference = most.differences[at];
        let (share, score) = (difference / slower, self.score(difference, most.spread));
        let is_named = share >= self.settings.share && score >= self.settings.score;
        let kind =
            if is_named { self.named(most.term, at, difference) } else { CauseKind::Mixed(self.largest(at)) };
        Ok(Cause { kind, difference, share, score })
    }

    fn score(&self, difference: f64, spread: f64) -> f64 {
        difference / spread.max(self.settings.floor)
    }

    /// True if a part makes up at least half of its term and is unusual in the class.
    fn stands_out(&self, name: &str, at: usize) -> bool {
        let Some(part) = self.parts.iter().find(|part| part.name == name) else { return false };
        let whole = self.whole.term(part.of).map(|column| column.differences[at]);
        part.differences[at].zip(whole).is_some_and(|(part_of, whole)| {
            part_of >= self.settings.share * whole && self.score(part_of, part.spread) >= self.settings.score
        })
    }

    /// `difference` is the term's.
    fn named(&self, term: Term, at: usize, difference: f64) -> CauseKind {
        match term {
            Term::Frequency => CauseKind::Frequency,
            Term::NetFrequency => CauseKind::NetFrequency,
            Term::OnCpu => CauseKind::OnCpu,
            Term::OffCpu => CauseKind::OffCpu(self.unusual(Evidence::Switches, at)),
            Term::Utilisation => self.utilisation(at),
            Term::Instructions if self.stands_out("d_instructions_kernel", at) => {
                CauseKind::KernelInstructions(self.unusual(Evidence::Faults, at))
            }
            Term::Instructions => CauseKind::Instructions,
            Term::Cpi => self.cpi(at, difference),
            Term::Imbalance => CauseKind::Imbalance,
            Term::Cpus => CauseKind::Cpus,
            Term::Uncounted => CauseKind::Uncounted,
        }
    }

    fn utilisation(&self, at: usize) -> CauseKind {
        if self.stands_out(STOLEN, at) {
            CauseKind::Stolen
        } else if self.stands_out(OFF_CPU, at) {
            CauseKind::OffCpu(self.unusual(Evidence::Switches, at))
        } else if self.stands_out(HALTED, at) {
            CauseKind::Halted { or_in_kernel: self.whole.identity == Identity::CyclesUser }
        } else {
            CauseKind::Utilisation(self.unusual(Evidence::Switches, at))
        }
    }

    fn cpi(&self, at: usize, difference: f64) -> CauseKind {
        if self.stands_out("d_cpi_kernel", at) {
            return CauseKind::KernelCpi;
        }
        let score = self.settings.score;
        let next = |evidence| self.next(evidence, at);
        let [fills, bytes, bandwidth] =
            [Evidence::FilledBytes, Evidence::MemoryBytes, Evidence::Bandwidth].map(next);
        if let Some(fills) = &fills
            && let Some(kind) = self.snoop_filter(at, fills, difference)
        {
            return kind;
        }
        let more = |next: &Option<Next>| {
            let next = next.as_ref().filter(|next| next.score >= score)?;
            Some((next.own / next.usual - 1.0, self.can_more_cost(next, at, difference)))
        };
        let each = self.settings.more_cycles_per_line;
        let is_equal =
            |next: &Next| next.score.abs() < score && self.can_cost(next.own, each, at, difference);
        let is_down = |next: &Next| next.score <= -score;
        match (more(&fills), more(&bytes)) {
            (Some((fills, a)), Some((bytes, b))) if a || b => CauseKind::CacheAndMemory { fills, bytes },
            (Some((fills, true)), None) => CauseKind::Cache { fills },
            (None, Some((bytes, true))) => CauseKind::MemoryTraffic { bytes },
            (None, None)
                if bytes.as_ref().is_some_and(is_equal) && bandwidth.as_ref().is_some_and(is_down) =>
            {
                CauseKind::Memory
            }
            _ => CauseKind::Cpi,
        }
    }

    /// True if the additional lines can cost the node's additional cycles.
    fn can_more_cost(&self, next: &Next, at: usize, difference: f64) -> bool {
        self.can_cost(next.own - next.usual, self.settings.cycles_per_line, at, difference)
    }

    /// True if the lines in `bytes` can cost the node's additional cycles, with so many cycles each. `difference` is the
    /// term (ln T) that shows the cycles.
    fn can_cost(&self, bytes: f64, cycles_per_line: f64, at: usize, difference: f64) -> bool {
        let counted = self.class[self.whole.nodes[at]].as_ref();
        let cycles =
            counted.and_then(|counted| counted.positive("cycles").or(counted.positive("cycles_user")));
        let additional = cycles.map(|cycles| -cycles * (-difference).exp_m1());
        additional.is_none_or(|additional| bytes / LINE_BYTES * cycles_per_line >= additional)
    }

    /// The two largest terms above zero.
    fn largest(&self, at: usize) -> Vec<(Term, f64)> {
        let mut terms: Vec<(Term, f64)> =
            self.whole.terms.iter().map(|column| (column.term, column.differences[at])).collect();
        terms.sort_by(|a, b| b.1.total_cmp(&a.1));
        terms.into_iter().take(2).filter(|(_, difference)| *difference > 0.0).collect()
    }
}
