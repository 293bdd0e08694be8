//! Byte strings of any length between two ranks.
//!
//! A string goes in pieces of at most 64 KiB: no MPI count, an int, can overflow, however much a
//! large job has to say. The first piece begins with the whole length; whatever is short, as nearly
//! everything is, takes one message.

use crate::fabric::{Fabric, FabricError};
use crate::wire::LIMIT_BYTES;

/// Of the first message.
const FIRST_BYTES: usize = 1024;
const LENGTH_BYTES: usize = size_of::<u64>();
/// Of each that follows.
const PIECE_BYTES: usize = 1 << 16;

/// A length that no rank of this tool sends.
const NOT_OURS: FabricError = FabricError { call: "a message of a rank", code: -1 };

/// Sends `bytes` to [`receive`] on the rank `to`.
pub fn send<F: Fabric>(fabric: &mut F, to: u32, bytes: &[u8]) -> Result<(), FabricError> {
    let (first, rest) = bytes.split_at(bytes.len().min(FIRST_BYTES - LENGTH_BYTES));
    fabric.send(to, &[&(bytes.len() as u64).to_le_bytes(), first].concat())?;
    rest.chunks(PIECE_BYTES).try_for_each(|piece| fabric.send(to, piece))
}

/// What [`send`] sent on the rank `from`.
pub fn receive<F: Fabric>(fabric: &mut F, from: u32) -> Result<Vec<u8>, FabricError> {
    let mut first = [0; FIRST_BYTES];
    fabric.receive(from, &mut first)?;
    let (length, first) = first.split_at(LENGTH_BYTES);
    let length = length.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let length = usize::try_from(length).ok().filter(|length| *length <= LIMIT_BYTES).ok_or(NOT_OURS)?;
    let mut bytes = first[..length.min(first.len())].to_vec();
    let begin = bytes.len();
    bytes.resize(length, 0);
    bytes[begin..].chunks_mut(PIECE_BYTES).try_for_each(|piece| fabric.receive(from, piece))?;
    Ok(bytes)
}

/// Rank 0's `bytes` on every rank. What the others give is not looked at.
///
/// Along a binomial tree: in step k, 2^k ranks know.
pub fn spread<F: Fabric>(fabric: &mut F, bytes: Vec<u8>) -> Result<Vec<u8>, FabricError> {
    let (rank, size) = (fabric.rank(), fabric.size());
    let bytes = if rank == 0 { bytes } else { receive(fabric, rank & (rank - 1))? };
    children(rank, size).rev().try_for_each(|child| send(fabric, child, &bytes))?;
    Ok(bytes)
}

/// Every rank's `bytes`, one after the other in rank order, on rank 0; nothing elsewhere. The reverse of
/// [`spread`].
pub fn collect<F: Fabric>(fabric: &mut F, mut bytes: Vec<u8>) -> Result<Vec<u8>, FabricError> {
    let (rank, size) = (fabric.rank(), fabric.size());
    for child in children(rank, size) {
        bytes.extend(receive(fabric, child)?);
    }
    if rank == 0 {
        return Ok(bytes);
    }
    send(fabric, rank & (rank - 1), &bytes)?;
    Ok(Vec::new())
}

/// Those that have a rank's number but for one more bit, below its own lowest: each leads as many ranks behind
/// it as that bit says.
fn children(rank: u32, size: u32) -> impl DoubleEndedIterator<Item = u32> {
    let bits = if rank == 0 { u32::BITS - 1 } else { rank.trailing_zeros() };
    (0..bits).map(move |bit| rank | 1 << bit).filter(move |child| *child < size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::Threads;

    #[test]
    fn strings_of_every_length_arrive_whole() {
        let pattern = |length: usize| (0..length).map(|at| (at % 251) as u8).collect::<Vec<_>>();
        let lengths =
            [0, 1, FIRST_BYTES - 8, FIRST_BYTES - 7, FIRST_BYTES + PIECE_BYTES, 3 * PIECE_BYTES + 5];
        let ranks = Threads::new(3).into_iter().map(|mut fabric| {
            std::thread::spawn(move || {
                for length in lengths {
                    let told = if fabric.rank() == 0 { pattern(length) } else { Vec::new() };
                    assert_eq!(spread(&mut fabric, told).unwrap(), pattern(length));
                    match fabric.rank() {
                        2 => send(&mut fabric, 1, &pattern(length)).unwrap(),
                        1 => assert_eq!(receive(&mut fabric, 2).unwrap(), pattern(length)),
                        _ => {}
                    }
                }
            })
        });
        ranks.collect::<Vec<_>>().into_iter().for_each(|rank| rank.join().unwrap());
    }

    #[test]
    fn all_ranks_are_reached_in_their_order() {
        for size in 1..20u8 {
            let ranks = Threads::new(size.into()).into_iter().map(|mut fabric| {
                std::thread::spawn(move || {
                    let own = vec![fabric.rank() as u8; 2];
                    let all = collect(&mut fabric, own).unwrap();
                    assert_eq!(all.is_empty(), fabric.rank() != 0);
                    spread(&mut fabric, all).unwrap()
                })
            });
            for rank in ranks.collect::<Vec<_>>() {
                assert_eq!(rank.join().unwrap(), (0..size).flat_map(|rank| [rank; 2]).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        let mut ranks = Threads::new(2);
        ranks[1].send(0, &u64::MAX.to_le_bytes()).unwrap();
        assert_eq!(receive(&mut ranks[0], 1), Err(NOT_OURS));
    }
}
