//! Fleets with faulty nodes and faulty links.

use super::*;

/// All pairs of `nodes` nodes exchange data. Data from a to b arrive wrong if `is_wrong`.
fn fleet(nodes: u32, is_wrong: impl Fn(u32, u32) -> bool) -> WrongData<u32> {
    let all = || (0..nodes).flat_map(move |a| (0..nodes).filter(move |b| *b != a).map(move |b| [a, b]));
    let wrong = all().filter(|[a, b]| is_wrong(*a, *b));
    let right = all().filter(|[a, b]| !is_wrong(*a, *b) && !is_wrong(*b, *a));
    WrongData::of(wrong, right)
}

fn with_part(found: &WrongData<u32>, part: PartInWrongData) -> Vec<u32> {
    found.parts.iter().filter(|(_, of)| **of == part).map(|(node, _)| *node).collect()
}

fn links(found: &WrongData<u32>) -> Vec<[u32; 2]> {
    found.links.iter().copied().collect()
}

fn others(nodes: u32, bad: &[u32]) -> Vec<u32> {
    (0..nodes).filter(|node| !bad.contains(node)).collect()
}

#[test]
fn right_data_name_nobody() {
    for nodes in [0, 1, 2, 9] {
        let found = fleet(nodes, |_, _| false);
        assert!(found.parts.is_empty() && found.links.is_empty());
    }
}

/// Whether it sends or receives wrong data.
#[test]
fn one_bad_node_of_nine_is_faulty_and_its_partners_are_not() {
    for found in [fleet(9, |from, _| from == 4), fleet(9, |_, to| to == 4), fleet(9, |a, b| a == 4 || b == 4)]
    {
        assert_eq!(with_part(&found, PartInWrongData::Faulty), [4]);
        assert_eq!(with_part(&found, PartInWrongData::Partner), others(9, &[4]));
        assert!(found.links.is_empty());
    }
}

#[test]
fn a_node_that_is_wrong_with_most_of_its_partners_is_faulty() {
    let found = fleet(9, |from, to| from == 4 && (to % 2 == 1 || to == 0));
    assert_eq!(
        (with_part(&found, PartInWrongData::Faulty), with_part(&found, PartInWrongData::Partner)),
        (vec![4], vec![0, 1, 3, 5, 7])
    );
    let found = fleet(9, |from, to| from == 4 && [1, 7].contains(&to));
    assert_eq!((with_part(&found, PartInWrongData::Faulty), links(&found)), (vec![], vec![[4, 1], [4, 7]]));
    // With three nodes, the other two are right with each other.
    assert_eq!(with_part(&fleet(3, |_, to| to == 2), PartInWrongData::Faulty), [2]);
}

/// A faulty link between switches disturbs pairs of healthy nodes, some of which meet at a node by chance.
#[test]
fn scattered_wrong_pairs_make_no_node_faulty() {
    const NODES: u32 = 64;
    let mut state = 1u64;
    for _ in 0..300 {
        let mut wrong = BTreeSet::new();
        while wrong.len() < 12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (node, distance) = ((state >> 33) as u32 % NODES, (state >> 50) as u32 % 4 + 1);
            wrong.insert([node, (node + distance) % NODES]);
        }
        // Each node has 8 partners.
        let pairs = (0..NODES).flat_map(|node| (1..5).map(move |by| [node, (node + by) % NODES]));
        let found = WrongData::of(wrong.clone(), pairs);
        assert_eq!((with_part(&found, PartInWrongData::Faulty), found.links), (vec![], wrong));
    }
}

#[test]
fn one_pair_is_a_link() {
    let found = fleet(9, |from, to| (from, to) == (5, 2));
    assert_eq!(with_part(&found, PartInWrongData::OfLink), [2, 5]);
    assert_eq!((found.parts.len(), links(&found)), (2, vec![[5, 2]]));
}

/// A healthy node has wrong data with both bad nodes.
#[test]
fn two_bad_nodes_of_nine_are_faulty() {
    let found = fleet(9, |from, to| [3, 6].contains(&from) || [3, 6].contains(&to));
    assert_eq!(with_part(&found, PartInWrongData::Faulty), [3, 6]);
    assert_eq!(with_part(&found, PartInWrongData::Partner), others(9, &[3, 6]));
    assert!(found.links.is_empty());
}

#[test]
fn a_bad_node_does_not_hide_a_bad_link() {
    let found = fleet(9, |from, to| from == 4 || (from, to) == (0, 1));
    assert_eq!(with_part(&found, PartInWrongData::Faulty), [4]);
    assert_eq!(with_part(&found, PartInWrongData::OfLink), [0, 1]);
    assert_eq!(links(&found), [[0, 1]]);
}

/// Nobody can say whose fault it is.
#[test]
fn of_two_nodes_none_is_faulty() {
    let found = fleet(2, |_, _| true);
    assert_eq!(with_part(&found, PartInWrongData::OfLink), [0, 1]);
    assert_eq!(links(&found), [[0, 1], [1, 0]]);
}

/// What all share is faulty, for example a switch.
#[test]
fn if_all_data_are_wrong_no_node_is_faulty() {
    let found = fleet(9, |_, _| true);
    assert_eq!(with_part(&found, PartInWrongData::OfLink), others(9, &[]));
    assert_eq!(found.links.len(), 9 * 8);
}

/// Two faults meet at a healthy node: links may explain that as well.
#[test]
fn a_chain_of_wrong_pairs_makes_no_node_faulty() {
    let chain = [[0, 1], [1, 2], [2, 3], [3, 4]];
    let found = fleet(9, |from, to| chain.contains(&[from, to]));
    assert_eq!((with_part(&found, PartInWrongData::Faulty), links(&found)), (vec![], chain.to_vec()));
}

#[test]
fn rounds_count_together() {
    let right = [[1, 2], [2, 3], [3, 1], [0, 3]];
    let first = [[0, 1]];
    assert_eq!(with_part(&WrongData::of(first, right), PartInWrongData::OfLink), [0, 1]);
    let both = WrongData::of([[0, 1], [0, 2]], right);
    assert_eq!(
        (with_part(&both, PartInWrongData::Faulty), with_part(&both, PartInWrongData::Partner)),
        (vec![0], vec![1, 2])
    );
    // The same pair again shows nothing new.
    assert_eq!(links(&WrongData::of([[0, 1], [0, 1]], right)), [[0, 1]]);
}

#[test]
fn a_text_names_partners_that_can_be_read_again() {
    let notice = |rank: u32, received| Notice { hostname: "n1 (a)", rank: RankId(rank), received };
    let all = [notice(7, Some("byte 3 of a message")), notice(0, None), notice(8, None), notice(9, None)];
    let written = text(&all).unwrap();
    assert!(written.ends_with("; wrong data with 1 more partner"), "{written}");
    let read: Vec<(RankId, bool)> = partners(&written).collect();
    assert_eq!(read, [(RankId(7), true), (RankId(0), false), (RankId(8), false)]);
    assert_eq!(text(&[]), None);
    assert_eq!(partners("wrong result on hardware thread 3: element 4").count(), 0);
}
