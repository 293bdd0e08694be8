//! The kernel `net` of `pmmpi screen`: latency and bandwidth between nodes. It runs in the ranks themselves.
//!
//! The first rank of each node, its leader, measures with one partner after the other ([`schedule`]); all pairs of a
//! step do so at the same time. So the network is loaded as by an application that uses all nodes (bisection load), and
//! pairs can share cables: only a node that is slow with nearly all partners, or a pair that is slow in most rounds,
//! has a fault ([`pmmpi::slow_links`]). The same holds for wrong data ([`pmmpi::wrong_data`]).

mod content;
mod exchange;
mod schedule;
#[cfg(test)]
mod tests;

use exchange::{Amount, Buffers, Outcome, PairMedians, ScheduledPair};
use pmmpi::RankId;
use pmmpi::node::NodeKey;
use pmmpi::record::{KernelMeasure, KernelReport, KernelResult, Link, wire};
use pmmpi::slow_links::{BYTES, ROUND_TRIPS, Score, typical};
use pmmpi::text::count;
use pmmpi::transport::collectives;
use pmmpi::transport::fabric::{Fabric, FabricError, Pairwise};
use pmmpi::wrong_data::{self, Notice};
use schedule::{Partners, Schedule};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Up to this number of leaders, each leader measures with all other leaders.
const FEW_LEADERS: u32 = 17;
/// The same limit for a further round of suspects.
const FEW_SUSPECTS: u32 = 64;
/// With more leaders, each leader measures with this number of partners in each round. With 8 partners, a few bad
/// partners hardly change a node's median.
const PARTNERS: u32 = 8;

/// The amount of an exchange. [`pmmpi::slow_links`] names a time of this amount.
const AMOUNT: Amount = Amount {
    round_trips: ROUND_TRIPS as usize,
    warm_ups: 20,
    bursts: 5,
    messages: 8,
    message_bytes: BYTES as usize / (5 * 8),
    most: Duration::from_millis(500),
    limit: Duration::from_secs(10),
};

/// Which pairs a round measures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetRound {
    /// Decides about pairs. Rank 0's counts.
    pub seed: u64,
    /// The first channel. Rank 0's counts.
    pub first_channel: u16,
    /// True in a round for suspects, which should meet all of the unsuspected nodes beside them.
    pub for_suspects: bool,
}

/// The leaders of a round, and this rank's place among them.
pub(crate) struct Net {
    leaders: Vec<Leader>,
    /// For each step this rank's partner: an index of `leaders`. Empty if this rank is no leader.
    partners: Vec<Option<u32>>,
    first_channel: u16,
    amount: Amount,
    buffers: Option<Buffers>,
    steps: usize,
}

/// The first rank of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Leader {
    rank: u32,
    hostname: String,
}

/// What rank 0 tells all ranks.
#[derive(Default, Serialize, Deserialize)]
struct Fleet {
    leaders: Vec<Leader>,
    seed: u64,
    first_channel: u16,
}

impl Net {
    /// Collective over all ranks of `fabric`: finds the leaders, and allocates memory.
    pub fn prepare<F: Fabric>(fabric: &mut F, round: NetRound, node: &NodeKey) -> Result<Self, FabricError> {
        let leaders = leaders(fabric, node)?;
        let NetRound { seed, first_channel, for_suspects } = round;
        // Encoding into memory does not fail. All ranks run the same version, so decoding does not fail either.
        let fleet = wire::encode(&Fleet { leaders, seed, first_channel }).unwrap_or_default();
        let fleet: Fleet = wire::decode(&collectives::spread(fabric, fleet)?).unwrap_or_default();
        let number = fleet.leaders.len() as u32;
        let few = if for_suspects { FEW_SUSPECTS } else { FEW_LEADERS };
        let partners = if number <= few { Partners::All } else { Partners::Random(PARTNERS) };
        let schedule = Schedule::new(number, partners, fleet.seed);
        let place = fleet.leaders.iter().position(|leader| leader.rank == fabric.rank());
        Ok(Self {
            steps: schedule.steps(),
            partners: place.map(|place| schedule.partners_of(place as u32)).unwrap_or_default(),
            buffers: place.map(|_| AMOUNT.buffers()),
            leaders: fleet.leaders,
            first_channel: fleet.first_channel,
            amount: AMOUNT,
        })
    }

    /// How many channels the round needs.
    pub fn channels(&self) -> u16 {
        (self.steps % usize::from(u16::MAX)) as u16
    }

    /// Measures with one partner after the other. `None` if this rank is no leader.
    pub fn run<F: Pairwise>(&mut self, fabric: &mut F, timeout: Option<Duration>) -> Option<KernelReport> {
        let buffers = self.buffers.as_mut()?;
        let began = Instant::now();
        // A leader that waits in vain for one partner arrives late at the next one, which waits longer for it: with each
        // step by two limits. So one hanging node does not make all others miss their partners.
        let end = timeout.and_then(|timeout| began.checked_add(timeout));
        let within = |limit: Duration| {
            let limit = began + limit;
            end.map_or(limit, |end| end.min(limit))
        };
        let mut all = Vec::new();
        for (step, partner) in (0u32..).zip(&self.partners) {
            let Some(partner) = partner.and_then(|partner| self.leaders.get(partner as usize)) else {
                continue;
            };
            let meeting = ScheduledPair {
                partner: partner.rank,
                channel: self.first_channel.wrapping_add(step as u16),
                arrival: within(2 * self.amount.limit * (step + 1)),
                end: within(2 * self.amount.limit * (step + 2)),
            };
            all.push((partner, exchange::measure(fabric, buffers, meeting, &self.amount)));
        }
        Some(KernelReport { measures: measures(), result: result(&all), ..KernelReport::default() })
    }
}

/// Collective over all ranks. The number of nodes on rank 0; 0 elsewhere.
pub(crate) fn node_count<F: Fabric>(fabric: &mut F) -> Result<usize, FabricError> {
    leaders(fabric, NodeKey::own()).map(|leaders| leaders.len())
}

/// On rank 0 the first rank of each node; nothing elsewhere.
fn leaders<F: Fabric>(fabric: &mut F, node: &NodeKey) -> Result<Vec<Leader>, FabricError> {
    let own = wire::encode(&(fabric.rank(), node.digest(), &node.hostname)).unwrap_or_default();
    let mut known = HashSet::new();
    let all = collectives::collect(fabric, &own)?;
    let leader = |bytes: &Vec<u8>| {
        let (rank, node, hostname) = wire::decode::<(u32, u64, String)>(bytes).ok()?;
        known.insert(node).then_some(Leader { rank, hostname })
    };
    Ok(all.iter().filter_map(leader).collect())
}

/// The bandwidth stands for the kernel: faults of links, cards and cables cost bandwidth. Latencies also differ because
/// some pairs are farther apart than others.
fn measures() -> Vec<KernelMeasure> {
    let measure = |name: &str, unit: &str, larger_is_better| KernelMeasure {
        name: name.to_owned(),
        unit: unit.to_owned(),
        larger_is_better,
    };
    vec![
        measure("bandwidth", "GB/s", true),
        measure("latency", "us", false),
        measure("least latency", "us", false),
    ]
}

type Exchanged<'a> = (&'a Leader, Result<Outcome, FabricError>);

fn result(all: &[Exchanged]) -> KernelResult {
    let of = |(leader, outcome): &Exchanged| match outcome {
        Ok(Outcome::Measured(measured)) => Some((leader.rank, *measured)),
        _ => None,
    };
    let measured: Vec<(u32, PairMedians)> = all.iter().filter_map(of).collect();
    let link = |(rank, measured): &(u32, PairMedians)| Link {
        partner: RankId(*rank),
        latency_ns: measured.latency_ns as f32,
        gigabytes_per_s: measured.gigabytes_per_s as f32,
    };
    let links: Vec<Link> = measured.iter().map(link).collect();
    let mut result =
        KernelResult { work: 1.0, wrong: wrong(all), notes: notes(all), links, ..KernelResult::default() };
    match Score::of(&result.links) {
        _ if result.wrong.is_some() => {}
        Some(score) => {
            let least = typical(measured.iter().map(|(_, measured)| measured.least_latency_ns).collect());
            let least_ns = least.unwrap_or(score.latency_ns).min(score.latency_ns);
            result.values = vec![score.gigabytes_per_s, score.latency_ns / 1e3, least_ns / 1e3];
            result.seconds = Some(score.seconds);
        }
        None if all.is_empty() => {
            result.failed =
                Some("the kernel `net` needs at least two nodes, but there is only one".to_owned());
        }
        None => {
            result.failed = Some(format!("the exchanges with {} gave no time", count(all.len(), "partner")))
        }
    }
    result
}

/// What is wrong with received data, and whose they are.
fn wrong(all: &[Exchanged]) -> Option<String> {
    let notices = all.iter().filter_map(|(leader, outcome)| {
        let received = match outcome {
            Ok(Outcome::Wrong(what)) => Some(what.as_str()),
            Ok(Outcome::WrongThere) => None,
            _ => return None,
        };
        Some(Notice { hostname: &leader.hostname, rank: RankId(leader.rank), received })
    });
    wrong_data::text(&notices.collect::<Vec<_>>())
}

/// The partners without a time.
fn notes(all: &[Exchanged]) -> Vec<String> {
    let note = |(Leader { rank, hostname }, outcome): &Exchanged| match outcome {
        Ok(Outcome::Measured(_) | Outcome::Wrong(_) | Outcome::WrongThere) => None,
        Ok(Outcome::Absent) => Some(format!("{hostname} (rank {rank}) did not answer in time")),
        Ok(Outcome::TooSlow) => Some(format!(
            "the exchange with {hostname} (rank {rank}) was too slow: it did not end within {} s, or the kernel `net` \
             reached --timeout",
            AMOUNT.limit.as_secs()
        )),
        Err(e) => Some(format!("the exchange with {hostname} (rank {rank}) failed: {e}")),
    };
    all.iter().filter_map(note).collect()
}
