//! Whether a node has more cycles per instruction because a snoop filter evicted lines from its L2 caches.

use super::evidence::{Evidence, Next};
use super::{CauseKind, Explainer, LINE_BYTES, SnoopFilters};

impl Explainer<'_> {
    /// The cause, if snoop filters evicted lines that the L2 caches then read again. If evictions were
    /// counted, two conditions hold. The evictions are at least half of the additional lines that the L2
    /// caches read (as in SC18). And unusually many bytes were read from memory, or unusually
    /// many lines were evicted. If evictions were not counted, the L2 caches read at least 1.5 times the least number
    /// of bytes, and the bytes read from memory are unusually many: usual runs differ much in the bytes that
    /// L2 caches read, but not in the bytes read from memory. In each case, the additional lines from memory
    /// or, for unusually many evictions, into the L2 caches can cost the additional cycles.
    pub(super) fn snoop_filter(&self, at: usize, fills: &Next, difference: f64) -> Option<CauseKind> {
        // The logarithm and its inverse round.
        const ROUNDING: f64 = 1e-9;
        let settings = self.settings;
        let is_more = |next: &Next| next.score >= settings.score;
        let more = |next: &Next| next.own / next.usual - 1.0;
        let [reads, evictions] =
            [Evidence::ReadBytes, Evidence::SnoopFilterEvictions].map(|evidence| self.next(evidence, at));
        let can_cost = |next: &&Next| self.can_more_cost(next, at, difference);
        let many_reads = reads.as_ref().filter(|next| is_more(next));
        // If evicted lines came back from memory, half as many additional evictions are sufficient.
        let came_back = many_reads.zip(evictions.as_ref()).is_some_and(|(reads, evictions)| {
            let evicted = (evictions.own - evictions.least) * LINE_BYTES;
            reads.own - reads.usual >= settings.snoop_filter_reads * evicted
        });
        let score = settings.score * if came_back { 0.5 } else { 1.0 };
        let many_evictions = evictions.as_ref().is_some_and(|next| next.linear_score >= score);
        let are_many = fills.own >= (settings.snoop_filter_fills - ROUNDING) * fills.least;
        let is_shown = match (&evictions, settings.snoop_filter) {
            (_, SnoopFilters::None) | (None, SnoopFilters::Counted) => false,
            (Some(evictions), _) => {
                let evicted = (evictions.own - evictions.least) * LINE_BYTES;
                evicted >= settings.snoop_filter_share * (fills.own - fills.least)
                    && (many_reads.is_some_and(|reads| can_cost(&reads))
                        || many_evictions && can_cost(&fills))
            }
            (None, SnoopFilters::WithConflicts) => {
                are_many && many_reads.is_some_and(|reads| can_cost(&reads) || can_cost(&fills))
            }
        };
        is_shown.then(|| CauseKind::SnoopFilter {
            fills: more(fills),
            reads: many_reads.map(more),
            evictions: evictions.as_ref().map(more).filter(|by| *by > 0.0),
        })
    }
}
