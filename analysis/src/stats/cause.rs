//! Why a node is slow: the term that makes up half of its slowdown, and other counts that explain the term.

use super::node_counts::Counted;
use super::term_parts::{HALTED, OFF_CPU, STOLEN, TermPart, parts};
use super::terms::{Decomposition, Identity, Term, TermColumn, decompose, middle_and_spread};
use super::verdict::Verdict;
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
    /// With fewer nodes with the same counters, the spread is not known well enough.
    pub min_nodes: usize,
}

impl Default for CauseSettings {
    fn default() -> Self {
        Self { share: 0.5, score: 3.0, floor: 0.002, min_nodes: 5 }
    }
}

/// The explanation of a node's time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// They add up to ln(T / Tref).
    pub terms: BTreeMap<&'static str, f64>,
    /// The parts of some terms; the parts of a term add up to it.
    pub parts: BTreeMap<&'static str, f64>,
    /// Why the node is slow.
    pub cause: Option<Cause>,
    /// Why there is no cause.
    pub reason: Option<String>,
}

/// Why a node is slow.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// A stable name for scripts: a term, perhaps with a slash and a part of the term.
    pub name: &'static str,
    /// The term as a fraction of ln(T / Tref). More than 1 if other terms are negative.
    pub share: f64,
    /// How many spreads of its class the term is above the reference.
    pub score: f64,
    /// The finding for people, with a likely reason.
    pub text: String,
}

impl Explanation {
    /// Removes the cause of a node whose verdict is OK or that was not compared.
    pub fn for_verdict(self, verdict: Option<Verdict>) -> Self {
        let reason = match verdict {
            None => "no other node of its class was measured",
            Some(Verdict::Ok) => "nothing stands against the node",
            Some(_) => return self,
        };
        Self { cause: None, reason: Some(reason.to_owned()), ..self }
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
    let nothing = |counted: &Option<Counted>| Explanation {
        reason: Some(why_nothing(counted.as_ref())),
        ..Explanation::default()
    };
    all.into_iter().zip(class).map(|(one, counted)| one.unwrap_or_else(|| nothing(counted))).collect()
}

fn why_nothing(counted: Option<&Counted>) -> String {
    let Some(counted) = counted else { return "nothing was counted".to_owned() };
    if Identity::of(counted).is_some() {
        return "fewer than half of the nodes of its class have the same counters, or its time is none"
            .to_owned();
    }
    counted
        .most_missed()
        .unwrap_or_else(|| "neither instructions and cycles nor a task clock were counted".to_owned())
}

struct Explainer<'a> {
    class: &'a [Option<Counted>],
    whole: &'a Decomposition,
    parts: Vec<TermPart>,
    settings: &'a CauseSettings,
    /// Indexed by [`Evidence`]; computed when a node first needs it.
    usual: [OnceCell<Usual>; 5],
}

/// A count that is not a term, but may show the reason behind a term.
#[derive(Clone, Copy)]
enum Evidence {
    Switches,
    Faults,
    FilledBytes,
    MemoryBytes,
    /// Bytes of memory divided by the node's time.
    Bandwidth,
}

impl Evidence {
    fn name(self) -> &'static str {
        match self {
            Evidence::Switches => "context_switches",
            Evidence::Faults => "page_faults",
            Evidence::FilledBytes => "system_read_bytes",
            Evidence::MemoryBytes | Evidence::Bandwidth => "dram_bytes",
        }
    }
}

/// A count on the nodes of a decomposition.
struct Usual {
    /// The logarithm for each node; `None` if the node did not count it or the count is 0.
    ln: Vec<Option<f64>>,
    /// Median and Qn.
    of_class: Option<(f64, f64)>,
}

/// A node's count compared with its class.
struct Next {
    own: f64,
    usual: f64,
    /// In spreads of the class, of logarithms.
    score: f64,
}

impl Explainer<'_> {
    fn node(&self, at: usize) -> Explanation {
        let terms = self.whole.terms.iter().map(|column| (column.term.name(), column.differences[at]));
        let parts = self.parts.iter().filter_map(|part| Some((part.name, part.differences[at]?)));
        let cause = self.cause(at);
        Explanation {
            terms: terms.collect(),
            parts: parts.collect(),
            reason: cause.as_ref().err().cloned(),
            cause: cause.ok(),
        }
    }

    fn cause(&self, at: usize) -> Result<Cause, String> {
        let slower = self.whole.slower[at];
        let nodes = self.whole.nodes.len();
        if nodes < self.settings.min_nodes {
            return Err(format!(
                "{nodes} nodes of its class have the same counters: a cause needs {}",
                self.settings.min_nodes
            ));
        }
        let most = self.whole.terms.iter().max_by(|a, b| a.differences[at].total_cmp(&b.differences[at]));
        let Some(most) = most.filter(|_| slower > 0.0) else {
            return Err("it is no slower than the nodes of its class with the same counters".to_owned());
        };
        let (share, score) = (most.differences[at] / slower, self.score(most.differences[at], most.spread));
        let is_named = share >= self.settings.share && score >= self.settings.score;
        let (name, text) = if is_named { self.named(most, at) } else { ("mixed", self.mixed(at)) };
        Ok(Cause { name, share, score, text })
    }

    fn score(&self, difference: f64, spread: f64) -> f64 {
        difference / spread.max(self.settings.floor)
    }

    /// True if a part makes up most of its term and is unusual in the class.
    fn stands_out(&self, name: &str, at: usize) -> bool {
        let Some(part) = self.parts.iter().find(|part| part.name == name) else { return false };
        let whole = self.whole.term(part.of).map(|column| column.differences[at]);
        part.differences[at].zip(whole).is_some_and(|(part_of, whole)| {
            part_of >= self.settings.share * whole && self.score(part_of, part.spread) >= self.settings.score
        })
    }

    fn usual(&self, evidence: Evidence) -> &Usual {
        self.usual[evidence as usize].get_or_init(|| {
            let of = |(node, slower): (&usize, &f64)| {
                let count = self.class.get(*node)?.as_ref()?.positive(evidence.name())?;
                let per = if matches!(evidence, Evidence::Bandwidth) { *slower } else { 0.0 };
                Some(count.ln() - per)
            };
            let ln: Vec<Option<f64>> = self.whole.nodes.iter().zip(&self.whole.slower).map(of).collect();
            Usual { of_class: middle_and_spread(ln.iter().copied().flatten()), ln }
        })
    }

    fn next(&self, evidence: Evidence, at: usize) -> Option<Next> {
        let Usual { ln, of_class } = self.usual(evidence);
        let (own, (usual, spread)) = (ln[at]?, (*of_class)?);
        Some(Next { own: own.exp(), usual: usual.exp(), score: self.score(own - usual, spread) })
    }

    fn named(&self, column: &TermColumn, at: usize) -> (&'static str, String) {
        let more = percent(column.differences[at].exp_m1());
        let less = percent(-(-column.differences[at]).exp_m1());
        match column.term {
            Term::Frequency => (
                "frequency",
                format!(
                    "its cores ran at a {less} lower frequency: a thermal or power limit, or another setting"
                ),
            ),
            Term::NetFrequency => (
                "net-frequency",
                format!(
                    "{less} fewer cycles a second on the processor: a thermal or power limit, halted or stolen \
                     (no reference cycles tell which)"
                ),
            ),
            Term::OnCpu => (
                "on-cpu",
                format!(
                    "its threads needed {more} more time on the processor: a slower core, stolen, more to do (no \
                     counters of the processor tell which)"
                ),
            ),
            Term::OffCpu => self.off_cpu(&less, at),
            Term::Utilisation => self.utilisation(&less, at),
            Term::Instructions if self.stands_out("d_instructions_kernel", at) => (
                "instructions/kernel",
                format!(
                    "{more} more instructions, most of these in the kernel{}",
                    self.evidence(Evidence::Faults, at)
                ),
            ),
            Term::Instructions => (
                "instructions",
                format!(
                    "{more} more instructions: it spun while it waited, or took another path through the code"
                ),
            ),
            Term::Cpi => self.cpi(&more, at),
            Term::Imbalance => (
                "imbalance",
                format!("one of its ranks worked for {more} longer than the others, next to what is usual"),
            ),
            Term::Cpus => ("cpus", format!("its ranks had {less} fewer hardware threads")),
            Term::Uncounted => (
                "uncounted",
                format!(
                    "{more} more time than was counted: before or after the work, or its clocks disagree"
                ),
            ),
        }
    }

    fn off_cpu(&self, less: &str, at: usize) -> (&'static str, String) {
        let evidence = self.evidence(Evidence::Switches, at);
        let text = format!(
            "its threads were on a processor for {less} less of the time: others ran there, or it waited{evidence}"
        );
        ("utilisation/off-cpu", text)
    }

    fn utilisation(&self, less: &str, at: usize) -> (&'static str, String) {
        if self.stands_out(STOLEN, at) {
            let text = format!(
                "its hardware threads worked {less} less of the time: the hypervisor gave it to others"
            );
            return ("utilisation/stolen", text);
        }
        if self.stands_out(OFF_CPU, at) {
            return self.off_cpu(less, at);
        }
        if self.stands_out(HALTED, at) {
            let what = match self.whole.identity {
                Identity::CyclesUser => {
                    "in the kernel, which was not counted, halted by the hardware, or taken by a hypervisor"
                }
                _ => "halted by the hardware, or taken by a hypervisor",
            };
            let text = format!(
                "its hardware threads worked {less} less of the time while the kernel had it on them: {what}"
            );
            return ("utilisation/halted", text);
        }
        let text = format!(
            "its hardware threads worked {less} less of the time: halted, waiting, or taken by others{}",
            self.evidence(Evidence::Switches, at)
        );
        ("utilisation", text)
    }

    fn cpi(&self, more: &str, at: usize) -> (&'static str, String) {
        if self.stands_out("d_cpi_kernel", at) {
            return ("cpi/kernel", format!("{more} more cycles an instruction, most of these in the kernel"));
        }
        let score = self.settings.score;
        let [fills, bytes, bandwidth] = [Evidence::FilledBytes, Evidence::MemoryBytes, Evidence::Bandwidth]
            .map(|evidence| self.next(evidence, at));
        let is_up = |next: &Option<Next>| next.as_ref().is_some_and(|next| next.score >= score);
        let is_equal = |next: &Next| next.score.abs() < score;
        let relative = |next: &Option<Next>| {
            next.as_ref().map_or_else(String::new, |next| percent(next.own / next.usual - 1.0))
        };
        match (is_up(&fills), is_up(&bytes)) {
            (true, true) => (
                "cpi/snoop-filter",
                format!(
                    "{more} more cycles an instruction, {} more bytes into its L2 caches, {} more of memory: as \
                     where a snoop filter evicts what cores still use (huge pages of 1 GiB help)",
                    relative(&fills),
                    relative(&bytes)
                ),
            ),
            (true, false) => (
                "cpi/cache",
                format!(
                    "{more} more cycles an instruction, and {} more bytes into its L2 caches",
                    relative(&fills)
                ),
            ),
            (false, false)
                if bytes.as_ref().is_some_and(is_equal)
                    && bandwidth.as_ref().is_some_and(|bandwidth| bandwidth.score <= -score) =>
            {
                (
                    "cpi/memory",
                    format!(
                        "{more} more cycles an instruction, for as many bytes of memory, at a lower bandwidth: \
                         where memory is the limit, a DIMM, its channel or the uncore's frequency"
                    ),
                )
            }
            _ => (
                "cpi",
                format!(
                    "{more} more cycles an instruction: caches, memory, TLBs, a shared core (--group memory tells more)"
                ),
            ),
        }
    }

    /// A remark in parentheses if the count is unusual.
    fn evidence(&self, evidence: Evidence, at: usize) -> String {
        match self.next(evidence, at).filter(|next| next.score >= self.settings.score) {
            Some(Next { own, usual, .. }) => {
                format!(" ({own:.0} {}, usual are {usual:.0})", evidence.name().replace('_', " "))
            }
            None => String::new(),
        }
    }

    /// Names the two largest terms.
    fn mixed(&self, at: usize) -> String {
        let mut terms: Vec<(f64, Term)> =
            self.whole.terms.iter().map(|column| (column.differences[at], column.term)).collect();
        terms.sort_by(|a, b| b.0.total_cmp(&a.0));
        let largest = terms.iter().take(2).filter(|(difference, _)| *difference > 0.0);
        let largest: Vec<String> = largest
            .map(|(difference, term)| {
                let name = term.name().trim_start_matches("d_").replace('_', " ");
                format!("{name} {}", percent(difference.exp_m1()))
            })
            .collect();
        format!(
            "no term makes up half of it and is unusual for the class; the largest: {}",
            largest.join(", ")
        )
    }
}

fn percent(fraction: f64) -> String {
    format!("{:.1} %", fraction * 100.0)
}
