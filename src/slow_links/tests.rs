//! Fleets with slow nodes and slow links.

use super::*;
use crate::ids::RankId;

const GOOD: Pair = Pair { latency_ns: 1500.0, gigabytes_per_s: 12.0 };

/// All readings of pairs of `nodes` nodes that `is_measured`, each from both ends. A slow pair takes `pair`.
fn fleet(
    nodes: u32,
    is_measured: impl Fn(u32, u32) -> bool,
    pair: impl Fn(u32, u32) -> Pair,
) -> Vec<LinkReading<u32>> {
    let mut readings = Vec::new();
    for a in 0..nodes {
        for b in (a + 1..nodes).filter(|b| is_measured(a, *b)) {
            let Pair { latency_ns, gigabytes_per_s } = pair(a, b);
            // A few percent of difference, as on real networks.
            let noise = 1.0 + 0.03 * f64::from((a * 7 + b * 13) % 11) / 11.0;
            let (latency_ns, gigabytes_per_s) = (latency_ns * noise, gigabytes_per_s / noise);
            readings.push(LinkReading { node: a, partner: b, latency_ns, gigabytes_per_s });
            readings.push(LinkReading { node: b, partner: a, latency_ns, gigabytes_per_s });
        }
    }
    readings
}

fn names(network: &Network<u32>) -> (Vec<u32>, Vec<[u32; 2]>) {
    let links = network.slow_links.iter().map(|link| link.nodes);
    (network.slow_nodes.iter().copied().collect(), links.collect())
}

/// A pair is as slow as its slowest part.
fn with_bad_nodes(bad: &'static [u32], of_bad: Pair) -> impl Fn(u32, u32) -> Pair {
    move |a, b| if bad.contains(&a) || bad.contains(&b) { of_bad } else { GOOD }
}

const SLOW: [Pair; 3] = [
    Pair { latency_ns: 6000.0, ..GOOD },
    Pair { gigabytes_per_s: 3.0, ..GOOD },
    Pair { latency_ns: 1e6, gigabytes_per_s: 0.1 },
];

#[test]
fn a_good_network_has_nothing_to_name() {
    for nodes in [0, 1, 2, 3, 8, 50] {
        let network = Network::of(fleet(nodes, |_, _| true, |_, _| GOOD));
        assert_eq!(names(&network), (vec![], vec![]));
        assert_eq!(network.nodes.len() as u32, if nodes > 1 { nodes } else { 0 });
    }
}

#[test]
fn a_slow_node_is_named_and_none_of_its_links() {
    for slow in SLOW {
        for nodes in [3, 4, 5, 16] {
            let network = Network::of(fleet(nodes, |_, _| true, with_bad_nodes(&[2], slow)));
            assert_eq!(names(&network), (vec![2], vec![]), "{nodes} nodes");
        }
    }
}

#[test]
fn a_slow_link_is_named_and_none_of_its_nodes() {
    for slow in SLOW {
        for nodes in [3, 4, 5, 16] {
            let pair = |a, b| if (a, b) == (0, 2) { slow } else { GOOD };
            let network = Network::of(fleet(nodes, |_, _| true, pair));
            assert_eq!(names(&network), (vec![], vec![[0, 2]]), "{nodes} nodes");
            let link = &network.slow_links[0];
            assert!(link.times_worse > 3.8 && link.readings == 2, "{link:?}");
        }
    }
}

#[test]
fn two_slow_nodes_are_both_named() {
    for slow in SLOW {
        for nodes in [5, 6, 12] {
            let network = Network::of(fleet(nodes, |_, _| true, with_bad_nodes(&[0, 3], slow)));
            assert_eq!(names(&network), (vec![0, 3], vec![]), "{nodes} nodes");
        }
    }
}

#[test]
fn a_slow_node_and_a_slow_link_are_told_apart() {
    let pair = |a, b| match (a, b) {
        (1, 4) => SLOW[1],
        _ => with_bad_nodes(&[3], SLOW[0])(a, b),
    };
    let network = Network::of(fleet(8, |_, _| true, pair));
    assert_eq!(names(&network), (vec![3], vec![[1, 4]]));
}

/// Eight partners of each of 1000 nodes: neighbours on a ring with several distances.
#[test]
fn a_few_partners_are_enough_in_a_large_fleet() {
    let is_measured =
        |a: u32, b: u32| [1, 17, 120, 333].iter().any(|far| (b - a) == *far || a + 1000 - b == *far);
    let bad: &'static [u32] = &[5, 6, 500, 999];
    let pair = |a, b| if (a, b) == (700, 717) { SLOW[1] } else { with_bad_nodes(bad, SLOW[1])(a, b) };
    let network = Network::of(fleet(1000, is_measured, pair));
    assert!(network.nodes.values().all(|score| score.partners >= 5), "bad partners are left out");
    assert_eq!(names(&network), (bad.to_vec(), vec![[700, 717]]));
}

/// In each round another pair shares a cable with others: no pair is slow in most rounds.
#[test]
fn a_link_that_is_slow_in_one_round_is_not_slow() {
    let round =
        |slow: (u32, u32)| fleet(6, |_, _| true, move |a, b| if (a, b) == slow { SLOW[1] } else { GOOD });
    let rounds = [(0, 1), (2, 4), (1, 5)].into_iter().flat_map(round);
    assert_eq!(names(&Network::of(rounds)), (vec![], vec![]));
}

#[test]
fn values_that_cannot_be_are_ignored() {
    let reading =
        |node, partner, value| LinkReading { node, partner, latency_ns: value, gigabytes_per_s: value };
    let odd = [f64::NAN, 0.0, -1.0, f64::INFINITY].map(|value| reading(0, 1, value));
    assert!(Network::of(odd).nodes.is_empty());
    assert!(Network::of([reading(3, 3, 1.0)]).nodes.is_empty());
}

#[test]
fn a_score_leaves_out_the_worst_partner() {
    let link = |latency_ns, gigabytes_per_s| Link { partner: RankId(1), latency_ns, gigabytes_per_s };
    let score = |links: &[Link]| Score::of(links).map(|score| (score.latency_ns, score.gigabytes_per_s));
    assert_eq!(score(&[]), None);
    assert_eq!(score(&[link(2.0, 10.0)]), Some((2.0, 10.0)));
    assert_eq!(score(&[link(9.0, 1.0), link(2.0, 10.0)]), Some((2.0, 10.0)));
    let four = [link(3.0, 8.0), link(9.0, 1.0), link(1.0, 12.0), link(2.0, 10.0)];
    assert_eq!(score(&four), Some((2.0, 10.0)));
    // 1000 round trips of 3 us, and 40 MiB at 10 GB/s.
    let seconds = Score::of(&[link(1500.0, 10.0)]).unwrap().seconds;
    assert!((seconds - (0.003 + 0.004_194_304)).abs() < 1e-12, "{seconds}");
}
