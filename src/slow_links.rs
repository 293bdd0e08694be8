//! Slow nodes and slow links, from the results of the kernel `net` of `pmmpi screen`.
//!
//! A pair of nodes is slow if one of the two nodes or the link between them is slow. A slow node is slow with nearly all
//! partners, so a node's score is the median over its partners. A slow link is slow although both nodes have good scores.

use crate::order_statistics::{of_ascending, position};
use crate::record::{Link, Run};
use std::collections::{BTreeMap, BTreeSet};

/// The work with one partner whose time is [`Score::seconds`]: this number of round trips of a small message...
pub const ROUND_TRIPS: u32 = 1000;
/// ...and this amount of data in each direction. With 1.5 us and 12 GB/s each part takes 3 ms, so both count.
pub const BYTES: u64 = 40 << 20;

/// A link is slow if its latency or time per byte is this many times the value of each of its two nodes. Pairs far
/// apart in a fat tree pass more switches, and static routes of pairs that communicate at the same time can share a
/// cable: T. Hoefler, T. Schneider and A. Lumsdaine, "Multistage switches are not crossbars", CLUSTER 2008. So a
/// smaller factor is no fault. (NVIDIA's ClusterKit calls a latency bad from 2.1 times the smallest one on.)
const SLOW_LINK: f64 = 2.0;
/// The same for a node, compared with the fleet's median. This is no verdict on the node: it decides only whose links can
/// be judged, so it must not be so small that noise hides a slow link.
const SLOW_NODE: f64 = 2.0;

/// What a node reaches with its partners.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Half of the round-trip time of a small message (ns).
    pub latency_ns: f64,
    /// Data per time in one direction, while the same amount flows in the other direction (10^9 bytes per second).
    pub gigabytes_per_s: f64,
    /// The time of a fixed work with one partner (s): [`ROUND_TRIPS`] round trips, and [`BYTES`] in each direction.
    pub seconds: f64,
    /// The number of partners.
    pub partners: usize,
}

impl Score {
    /// Each value is the [`typical`] one of all partners. `None` without links.
    pub fn of(links: &[Link]) -> Option<Self> {
        let pairs = links.iter().map(|link| Pair {
            latency_ns: f64::from(link.latency_ns),
            gigabytes_per_s: f64::from(link.gigabytes_per_s),
        });
        Self::of_pairs(&pairs.collect::<Vec<_>>())
    }

    fn of_pairs(pairs: &[Pair]) -> Option<Self> {
        let typical = |value: &dyn Fn(&Pair) -> f64| typical(pairs.iter().map(value).collect());
        Some(Self {
            latency_ns: typical(&|pair| pair.latency_ns)?,
            gigabytes_per_s: -typical(&|pair| -pair.gigabytes_per_s)?,
            seconds: typical(&Pair::seconds)?,
            partners: pairs.len(),
        })
    }

    /// How many times worse than `other` the worse of its two values is.
    fn times_worse_than(&self, other: &Self) -> f64 {
        (self.latency_ns / other.latency_ns).max(other.gigabytes_per_s / self.gigabytes_per_s)
    }
}

/// The median of the values, one per partner, without the largest; for an even number the smaller of the middle two. If
/// large values are bad, one slow partner or one slow link does not show, even with only two partners. `None` without
/// values.
pub fn typical(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let without_worst = values.len().saturating_sub(1).max(1);
    values.get(position(without_worst)?).copied()
}

/// What two nodes reach with each other.
#[derive(Clone, Copy)]
struct Pair {
    latency_ns: f64,
    gigabytes_per_s: f64,
}

impl Pair {
    fn seconds(&self) -> f64 {
        (2.0 * f64::from(ROUND_TRIPS) * self.latency_ns + BYTES as f64 / self.gigabytes_per_s) / 1e9
    }
}

/// A link that one of its two nodes measured in one round.
#[derive(Clone, Debug)]
pub struct LinkReading<N> {
    /// The node that measured.
    pub node: N,
    /// The node at the other end.
    pub partner: N,
    /// Half of the round-trip time (ns).
    pub latency_ns: f64,
    /// In one direction (10^9 bytes per second).
    pub gigabytes_per_s: f64,
}

/// The readings of a round, with host names, because ranks have other numbers in rounds of fewer nodes.
pub fn readings(run: &Run) -> impl Iterator<Item = LinkReading<&str>> {
    let results = run.screened.iter().flat_map(|screened| &screened.results);
    results.flat_map(move |result| {
        result.links.iter().filter_map(move |link| {
            Some(LinkReading {
                node: run.host_of(result.rank)?,
                partner: run.host_of(link.partner)?,
                latency_ns: f64::from(link.latency_ns),
                gigabytes_per_s: f64::from(link.gigabytes_per_s),
            })
        })
    })
}

/// What the readings of any number of rounds show.
#[derive(Clone, Debug)]
pub struct Network<N> {
    /// Each node with its score.
    pub nodes: BTreeMap<N, Score>,
    /// Nodes that are slow with nearly all partners, so that nothing can be said of their links.
    pub slow_nodes: BTreeSet<N>,
    /// The slowest first.
    pub slow_links: Vec<SlowLink<N>>,
}

/// A link that is slow although both its nodes are fast with others.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowLink<N> {
    /// Both nodes, in order.
    pub nodes: [N; 2],
    /// The median of its readings (ns).
    pub latency_ns: f64,
    /// The same (10^9 bytes per second).
    pub gigabytes_per_s: f64,
    /// How many times worse than with the worse of both nodes' scores the latency or the time per byte is.
    pub times_worse: f64,
    /// The number of readings: two per round.
    pub readings: usize,
}

impl<N: Ord + Clone> Network<N> {
    /// Ignores readings with values that cannot be.
    pub fn of(readings: impl IntoIterator<Item = LinkReading<N>>) -> Self {
        let pairs = pairs(readings);
        let mut partners: BTreeMap<&N, Vec<(&N, Pair)>> = BTreeMap::new();
        for ([a, b], (pair, _)) in &pairs {
            partners.entry(a).or_default().push((b, *pair));
            partners.entry(b).or_default().push((a, *pair));
        }
        // Partners that are slow themselves say nothing about a node. So a second pass leaves them out, unless no partner
        // would remain.
        let first = scores(&partners, &BTreeSet::new());
        let nodes = scores(&partners, &slow(&first));
        let slow_nodes = slow(&nodes);
        let link = |([a, b], (pair, readings)): (&[N; 2], &(Pair, usize))| {
            let reached = [nodes.get(a)?, nodes.get(b)?];
            let is_fine = |node: &N| !slow_nodes.contains(node);
            let worst = Score {
                latency_ns: reached[0].latency_ns.max(reached[1].latency_ns),
                gigabytes_per_s: reached[0].gigabytes_per_s.min(reached[1].gigabytes_per_s),
                ..*reached[0]
            };
            let times_worse = Score::of_pairs(&[*pair])?.times_worse_than(&worst);
            let Pair { latency_ns, gigabytes_per_s } = *pair;
            let link = SlowLink {
                nodes: [a.clone(), b.clone()],
                latency_ns,
                gigabytes_per_s,
                times_worse,
                readings: *readings,
            };
            (is_fine(a) && is_fine(b) && times_worse >= SLOW_LINK).then_some(link)
        };
        let mut slow_links: Vec<SlowLink<N>> = pairs.iter().filter_map(link).collect();
        slow_links.sort_by(|a, b| b.times_worse.total_cmp(&a.times_worse));
        let named = |nodes: BTreeMap<&N, Score>| {
            nodes.into_iter().map(|(node, score)| (node.clone(), score)).collect()
        };
        Self {
            slow_nodes: slow_nodes.iter().map(|node| (*node).clone()).collect(),
            slow_links,
            nodes: named(nodes),
        }
    }
}

/// The medians of each pair's readings, and how many there are.
fn pairs<N: Ord>(readings: impl IntoIterator<Item = LinkReading<N>>) -> BTreeMap<[N; 2], (Pair, usize)> {
    let mut of: BTreeMap<[N; 2], (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    let is_positive = |value: f64| value.is_finite() && value > 0.0;
    for reading in readings {
        let LinkReading { node, partner, latency_ns, gigabytes_per_s } = reading;
        if node == partner || !is_positive(latency_ns) || !is_positive(gigabytes_per_s) {
            continue;
        }
        let pair = if node < partner { [node, partner] } else { [partner, node] };
        let (latencies, bandwidths) = of.entry(pair).or_default();
        latencies.push(latency_ns);
        bandwidths.push(gigabytes_per_s);
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        of_ascending(&values)
    };
    let pair = |(nodes, (latencies, bandwidths)): (_, (Vec<f64>, Vec<f64>))| {
        let count = latencies.len();
        Some((nodes, (Pair { latency_ns: median(latencies)?, gigabytes_per_s: median(bandwidths)? }, count)))
    };
    of.into_iter().filter_map(pair).collect()
}

/// The scores of all nodes over their partners that are not in `without`.
fn scores<'a, N: Ord>(
    partners: &BTreeMap<&'a N, Vec<(&'a N, Pair)>>,
    without: &BTreeSet<&N>,
) -> BTreeMap<&'a N, Score> {
    let score = |(node, pairs): (&&'a N, &Vec<(&'a N, Pair)>)| {
        let kept = pairs.iter().filter(|(partner, _)| !without.contains(partner));
        let kept: Vec<Pair> = kept.map(|(_, pair)| *pair).collect();
        let all = || pairs.iter().map(|(_, pair)| *pair).collect::<Vec<_>>();
        Some((*node, Score::of_pairs(&kept).or_else(|| Score::of_pairs(&all()))?))
    };
    partners.iter().filter_map(score).collect()
}

/// Nodes that are much worse than the fleet's median.
fn slow<'a, N: Ord>(scores: &BTreeMap<&'a N, Score>) -> BTreeSet<&'a N> {
    let median = |value: &dyn Fn(&Score) -> f64| {
        let mut values: Vec<f64> = scores.values().map(value).collect();
        values.sort_by(f64::total_cmp);
        of_ascending(&values).unwrap_or_default()
    };
    let fleet = Score {
        latency_ns: median(&|score| score.latency_ns),
        gigabytes_per_s: median(&|score| score.gigabytes_per_s),
        seconds: median(&|score| score.seconds),
        partners: 0,
    };
    scores
        .iter()
        .filter(|(_, score)| score.times_worse_than(&fleet) > SLOW_NODE)
        .map(|(node, _)| *node)
        .collect()
}

#[cfg(test)]
mod tests;
