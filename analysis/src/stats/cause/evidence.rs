//! Counts that are not terms, compared with those of the class: they may show the reason behind a term.

use super::{Explainer, Unusual};
use crate::stats::terms::middle_and_spread;

/// A count that is not a term, but may show the reason behind a term.
#[derive(Clone, Copy)]
pub(super) enum Evidence {
    Switches,
    Faults,
    FilledBytes,
    MemoryBytes,
    ReadBytes,
    SnoopFilterEvictions,
    /// Bytes of memory divided by the node's time.
    Bandwidth,
}

impl Evidence {
    fn name(self) -> &'static str {
        match self {
            Evidence::Switches => "context_switches",
            Evidence::Faults => "page_faults",
            Evidence::FilledBytes => "system_read_bytes",
            Evidence::ReadBytes => "dram_read_bytes",
            Evidence::SnoopFilterEvictions => "snoop_filter_evictions",
            Evidence::MemoryBytes | Evidence::Bandwidth => "dram_bytes",
        }
    }
}

/// A count on the nodes of a decomposition.
pub(super) struct Usual {
    /// The logarithm for each node; `None` if the node did not count it or the count is 0.
    ln: Vec<Option<f64>>,
    /// Median and Qn.
    of_class: Option<(f64, f64)>,
    /// Median and Qn of the counts themselves.
    linear: Option<(f64, f64)>,
    /// The least count.
    least: f64,
}

/// A node's count compared with its class.
pub(super) struct Next {
    pub(super) own: f64,
    pub(super) usual: f64,
    /// The least in the class.
    pub(super) least: f64,
    /// The difference of the logarithms, in spreads of the class.
    pub(super) score: f64,
    /// The difference itself, in spreads of the class: for counts that may be near 0 in usual runs.
    pub(super) linear_score: f64,
}

impl Explainer<'_> {
    fn usual(&self, evidence: Evidence) -> &Usual {
        self.usual[evidence as usize].get_or_init(|| {
            let of = |(node, slower): (&usize, &f64)| {
                let count = self.class.get(*node)?.as_ref()?.positive(evidence.name())?;
                let per = if matches!(evidence, Evidence::Bandwidth) { *slower } else { 0.0 };
                Some(count.ln() - per)
            };
            let ln: Vec<Option<f64>> = self.whole.nodes.iter().zip(&self.whole.slower).map(of).collect();
            let least = ln.iter().flatten().copied().fold(f64::INFINITY, f64::min).exp();
            let linear = middle_and_spread(ln.iter().flatten().map(|ln| ln.exp()));
            Usual { of_class: middle_and_spread(ln.iter().copied().flatten()), linear, ln, least }
        })
    }

    pub(super) fn next(&self, evidence: Evidence, at: usize) -> Option<Next> {
        let Usual { ln, of_class, linear, least } = self.usual(evidence);
        let (own, (usual, spread)) = (ln[at]?, (*of_class)?);
        let score = self.score(own - usual, spread);
        let (middle, spread) = (*linear)?;
        let linear_score = (own.exp() - middle) / spread.max(self.settings.floor * middle);
        Some(Next { own: own.exp(), usual: usual.exp(), least: *least, score, linear_score })
    }

    /// The count, if it is unusually high.
    pub(super) fn unusual(&self, evidence: Evidence, at: usize) -> Option<Unusual> {
        let next = self.next(evidence, at).filter(|next| next.score >= self.settings.score)?;
        Some(Unusual { name: evidence.name(), own: next.own, usual: next.usual })
    }
}
