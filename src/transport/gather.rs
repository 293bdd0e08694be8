//! Gathers the ranks' parts on rank 0 in two steps: within each node, then from node to node.
//!
//! The ranks of a node leave their parts with one of them, which joins the parts before it sends them. So a job of
//! 1,000,000 ranks on 8,000 nodes sends 8,000 messages to rank 0, not 1,000,000. docs/scale.md counts the bytes and
//! steps.

use crate::record::{Part, wire};
use crate::transport::collectives;
use crate::transport::fabric::{Fabric, FabricError};
use crate::transport::node_meeting::{Handover, Meeting};

/// Collective. Returns the nodes' parts in wire form on rank 0, `None` elsewhere.
pub fn gather<F: Fabric>(
    fabric: &mut F,
    meeting: Meeting,
    mut part: Part,
) -> Result<Option<Vec<Vec<u8>>>, FabricError> {
    let (mut bytes, mut met) = (encode(&part), Ok(()));
    if fabric.size() > 1 {
        let left = meeting.come(&bytes);
        met = fabric.meet(); // even if this fails, the others wait for this rank below
        match left {
            Handover::WithAnother => bytes.clear(),
            Handover::Alone => {}
            Handover::With(host) => {
                for guest in host.guests() {
                    // A part that cannot be decoded means a missing rank.
                    part.join(wire::decode(&guest).unwrap_or_default());
                }
                bytes = encode(&part);
            }
        }
    }
    let parts = collectives::collect(fabric, &bytes)?;
    met?;
    Ok((fabric.rank() == 0).then_some(parts))
}

/// Empty if the part is longer than a rank may send: these ranks are then missing.
fn encode(part: &Part) -> Vec<u8> {
    wire::encode(part).ok().filter(|bytes| bytes.len() <= wire::LIMIT_BYTES).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RankId;
    use crate::node::NodeKey;
    use crate::record::{End, RankRecord};
    use crate::transport::fabric::Threads;

    #[test]
    fn the_ranks_of_a_node_come_in_one_part_and_each_once() {
        let meeting = Meeting::arrange();
        let give = |mut fabric: Threads, meeting| {
            let record = RankRecord { rank: RankId(fabric.rank()), ..RankRecord::unmeasured(End::Finalized) };
            gather(&mut fabric, meeting, Part::of_rank(NodeKey::own().clone(), Vec::new(), record)).unwrap()
        };
        // All ranks on one node; then no two ranks can meet.
        for (meet, parts) in [(true, 1), (false, 5)] {
            let came = std::thread::scope(|scope| {
                let ranks = Threads::new(5).into_iter().map(|fabric| {
                    scope.spawn(move || give(fabric, if meet { meeting } else { Meeting::arrange() }))
                });
                let ranks: Vec<_> = ranks.collect();
                ranks.into_iter().map(|rank| rank.join().unwrap()).collect::<Vec<_>>()
            });
            assert!(came[1..].iter().all(Option::is_none));
            let came: Vec<Part> = came[0].iter().flatten().map(|part| wire::decode(part).unwrap()).collect();
            assert_eq!(came.len(), parts);
            let mut ranks: Vec<u32> =
                came.iter().flat_map(|part| &part.ranks).map(|rank| rank.rank.0).collect();
            ranks.sort_unstable();
            assert_eq!(ranks, [0, 1, 2, 3, 4]);
        }
    }
}
