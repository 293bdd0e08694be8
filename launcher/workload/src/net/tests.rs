//! The kernel on threads as ranks, one of which is slow, away, or receives something wrong.

use super::*;
use pmmpi::slow_links::{LinkReading, Network};
use pmmpi::transport::fabric::{Channel, Solo, Threads, Wait};
use pmmpi::wrong_data::{PartInWrongData, WrongData};
use std::sync::Arc;

/// A rank as a thread, with a fault.
struct Faulty {
    fabric: Threads,
    fault: Option<Fault>,
}

#[derive(Clone, Copy)]
enum Fault {
    /// Each message to or from the partner (any if `None`) leaves so late.
    Delay(Option<u32>, Duration),
    /// This byte of what the partner (any if `None`) sends arrives with a flipped bit, if the message is that long.
    Flips(Option<u32>, usize),
}

impl Fabric for Faulty {
    fn rank(&self) -> u32 {
        self.fabric.rank()
    }

    fn size(&self) -> u32 {
        self.fabric.size()
    }

    fn barrier(&mut self, wait: Wait, meanwhile: &mut dyn FnMut()) -> Result<(), FabricError> {
        self.fabric.barrier(wait, meanwhile)
    }

    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), FabricError> {
        self.fabric.broadcast(bytes)
    }

    fn gather(&mut self, own: &[u8]) -> Result<Vec<u8>, FabricError> {
        self.fabric.gather(own)
    }

    fn gather_varying(&mut self, own: &[u8], counts: &[usize]) -> Result<Vec<u8>, FabricError> {
        self.fabric.gather_varying(own, counts)
    }

    fn send(&mut self, to: u32, message: &[u8]) -> Result<(), FabricError> {
        self.fabric.send(to, message)
    }

    fn receive(&mut self, from: u32, buffer: &mut [u8]) -> Result<(), FabricError> {
        self.fabric.receive(from, buffer)
    }
}

impl Pairwise for Faulty {
    fn exchange(
        &mut self,
        with: &Channel,
        own: &Arc<Vec<u8>>,
        theirs: &mut [u8],
        deadline: Instant,
    ) -> Result<bool, FabricError> {
        match self.fault {
            Some(Fault::Delay(of, delay)) if !own.is_empty() && of.is_none_or(|of| of == with.partner) => {
                std::thread::sleep(delay);
            }
            _ => {}
        }
        let done = self.fabric.exchange(with, own, theirs, deadline)?;
        if let Some(Fault::Flips(of, at)) = self.fault
            && of.is_none_or(|of| of == with.partner)
            && let Some(byte) = theirs.get_mut(at)
        {
            *byte ^= 0x10;
        }
        Ok(done)
    }
}

const LITTLE: Amount = Amount {
    round_trips: 20,
    warm_ups: 2,
    bursts: 2,
    messages: 3,
    message_bytes: 1000,
    most: Duration::from_secs(60),
    limit: Duration::from_secs(60),
};

/// The results of all ranks but those that are `away`. Rank r is on node r / `per_node`.
fn results(
    size: u32,
    per_node: u32,
    amount: Amount,
    fault: impl Fn(u32) -> Option<Fault>,
    away: &[u32],
) -> Vec<Option<KernelReport>> {
    std::thread::scope(|scope| {
        let ranks = Threads::new(size).into_iter().map(|fabric| {
            let rank = fabric.rank();
            let mut fabric = Faulty { fabric, fault: fault(rank) };
            scope.spawn(move || {
                let node = u64::from(rank / per_node);
                let key =
                    NodeKey { hostname: format!("n{node}"), time_namespace: node, ..NodeKey::own().clone() };
                let round = NetRound { seed: 1, first_channel: 65_530, for_suspects: false };
                let mut net = Net::prepare(&mut fabric, round, &key).unwrap();
                net.amount = amount;
                net.buffers = net.buffers.is_some().then(|| amount.buffers());
                if away.contains(&rank) { None } else { net.run(&mut fabric, None) }
            })
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn readings(results: &[Option<KernelReport>]) -> Vec<LinkReading<u32>> {
    let of = |(rank, report): (u32, &Option<KernelReport>)| {
        let links = report.iter().flat_map(|report| report.result.links.clone());
        let reading = move |link: Link| LinkReading {
            node: rank,
            partner: link.partner.0,
            latency_ns: f64::from(link.latency_ns),
            gigabytes_per_s: f64::from(link.gigabytes_per_s),
        };
        links.map(reading).collect::<Vec<_>>()
    };
    (0..).zip(results).flat_map(of).collect()
}

fn wrong_data_of(results: &[Option<KernelReport>]) -> WrongData<u32> {
    let of = |(rank, report): (u32, &Option<KernelReport>)| {
        let text = report.as_ref().and_then(|report| report.result.wrong.clone()).unwrap_or_default();
        let transfer = |(partner, is_received): (RankId, bool)| {
            if is_received { [partner.0, rank] } else { [rank, partner.0] }
        };
        wrong_data::partners(&text).map(transfer).collect::<Vec<_>>()
    };
    let right = readings(results).into_iter().map(|reading| [reading.node, reading.partner]);
    WrongData::of((0..).zip(results).flat_map(of), right)
}

#[test]
fn each_leader_measures_with_all_others() {
    for size in [2, 3, 5, 8] {
        let results = results(size, 1, LITTLE, |_| None, &[]);
        for (rank, report) in (0..).zip(&results) {
            let KernelReport { measures, result, .. } = report.as_ref().unwrap();
            let mut partners: Vec<u32> = result.links.iter().map(|link| link.partner.0).collect();
            partners.sort_unstable();
            assert_eq!(partners, (0..size).filter(|other| *other != rank).collect::<Vec<_>>());
            assert_eq!((&result.wrong, &result.failed), (&None, &None));
            assert!(result.notes.is_empty() && measures.len() == 3);
            assert!(result.values.iter().chain(&result.seconds).all(|value| *value > 0.0));
            assert!(result.values[2] <= result.values[1], "the least latency");
            // Both partners have the same values.
            for link in &result.links {
                let theirs = &results[link.partner.index()].as_ref().unwrap().result.links;
                let back = theirs.iter().find(|back| back.partner.0 == rank).unwrap();
                assert_eq!(Link { partner: RankId(rank), ..*link }, *back);
            }
        }
    }
}

#[test]
fn only_the_first_rank_of_a_node_measures() {
    let results = results(6, 2, LITTLE, |_| None, &[]);
    let partners = |report: &Option<KernelReport>| report.as_ref().map(|report| report.result.links.len());
    assert_eq!(
        results.iter().map(partners).collect::<Vec<_>>(),
        [Some(2), None, Some(2), None, Some(2), None]
    );
}

#[test]
fn one_node_alone_cannot_measure() {
    let round = NetRound { seed: 1, first_channel: 0, for_suspects: true };
    let mut net = Net::prepare(&mut Solo, round, NodeKey::own()).unwrap();
    let result = net.run(&mut Solo, None).unwrap().result;
    assert!(result.failed.unwrap().contains("two nodes"));
    assert_eq!((result.values, result.seconds), (vec![], None));
}

const DELAY: Duration = Duration::from_millis(5);

#[test]
fn a_slow_node_has_the_slowest_score() {
    let results = results(6, 1, LITTLE, |rank| (rank == 3).then_some(Fault::Delay(None, DELAY)), &[]);
    let seconds: Vec<f64> = results.iter().map(|of| of.as_ref().unwrap().result.seconds.unwrap()).collect();
    // Each word of the slow node leaves late, so a round trip takes the delay at least.
    assert!(seconds[3] >= f64::from(ROUND_TRIPS) * DELAY.as_secs_f64());
    let network = Network::of(readings(&results));
    assert!(network.slow_nodes.contains(&3), "{:?}", network.nodes);
    assert!(network.slow_links.iter().all(|link| !link.nodes.contains(&3)));
}

#[test]
fn a_slow_link_does_not_slow_its_nodes() {
    let late = Duration::from_millis(50);
    let results = results(5, 1, LITTLE, |rank| (rank == 1).then_some(Fault::Delay(Some(4), late)), &[]);
    let readings = readings(&results);
    let slowest = readings.iter().max_by(|a, b| a.latency_ns.total_cmp(&b.latency_ns)).unwrap();
    assert!([(1, 4), (4, 1)].contains(&(slowest.node, slowest.partner)), "{readings:?}");
    // An order: the link's latency is at least half of its delay.
    let scores = Network::of(readings.clone()).nodes;
    assert!([1, 4].iter().all(|node| scores[node].latency_ns < slowest.latency_ns), "{scores:?}");
}

#[test]
fn both_partners_of_a_wrong_byte_name_each_other() {
    // In a word, and in the second message of a burst.
    for (at, what) in [(2, "a message of 8 bytes"), (1234, "byte 234 of a message of 1000 bytes")] {
        let results = results(4, 1, LITTLE, |rank| (rank == 2).then_some(Fault::Flips(Some(0), at)), &[]);
        let result = |rank: usize| &results[rank].as_ref().unwrap().result;
        assert_eq!(result(2).wrong.as_deref(), Some(&*format!("{what} from n0 (rank 0) is wrong")));
        assert_eq!(result(0).wrong.as_deref(), Some("n2 (rank 2) received something wrong from this node"));
        for rank in [0, 2] {
            let KernelResult { values, seconds, links, .. } = result(rank);
            assert!(values.is_empty() && seconds.is_none());
            assert!(links.iter().all(|link| link.partner.0 % 2 == 1), "a wrong exchange has no time");
        }
        assert!(result(1).wrong.is_none() && result(1).links.len() == 3);
        let found = wrong_data_of(&results);
        assert_eq!(
            found.parts.into_iter().collect::<Vec<_>>(),
            [(0, PartInWrongData::OfLink), (2, PartInWrongData::OfLink)]
        );
        assert_eq!(found.links.into_iter().collect::<Vec<_>>(), [[0, 2]]);
    }
}

#[test]
fn only_the_node_with_wrong_bytes_of_all_partners_is_faulty() {
    let results = results(6, 1, LITTLE, |rank| (rank == 2).then_some(Fault::Flips(None, 1234)), &[]);
    let found = wrong_data_of(&results);
    let part = |rank: u32| if rank == 2 { PartInWrongData::Faulty } else { PartInWrongData::Partner };
    let expected: Vec<(u32, PartInWrongData)> = (0..6).map(|rank| (rank, part(rank))).collect();
    assert_eq!(found.parts.into_iter().collect::<Vec<_>>(), expected);
    assert!(found.links.is_empty());
}

/// A partner that never comes costs time, but no other pair its measurement.
#[test]
fn a_partner_that_is_away_is_named() {
    let amount = Amount { limit: Duration::from_millis(500), ..LITTLE };
    let results = results(4, 1, amount, |_| None, &[1]);
    for rank in [0, 2, 3] {
        let result = &results[rank].as_ref().unwrap().result;
        assert!(
            result.notes.contains(&"n1 (rank 1) did not answer in time".to_owned()),
            "{:?}",
            result.notes
        );
        assert!(result.links.iter().all(|link| link.partner != RankId(1)));
        assert!(result.failed.is_none() && result.values.len() == 3);
    }
}

#[test]
fn round_trips_end_early_on_a_slow_link() {
    let amount = Amount { most: Duration::ZERO, ..LITTLE };
    let results = results(2, 1, amount, |_| None, &[]);
    assert!(results.iter().flatten().all(|report| report.result.links.len() == 1));
}

#[test]
fn the_amount_is_that_of_the_named_time() {
    assert_eq!(AMOUNT.messages * AMOUNT.message_bytes * AMOUNT.bursts, BYTES as usize);
    assert_eq!(AMOUNT.message_bytes, 1 << 20);
}
