//! Moves byte strings of any length between rank 0 and all ranks.
//!
//! They use the fabric's collective operations, not messages between two ranks, which could mix with the program's
//! own. Long strings go in several rounds, so that no MPI count, an int, overflows in a large job.

use crate::record::wire::{self, LIMIT_BYTES};
use crate::transport::fabric::{Fabric, FabricError};

/// Bytes of a string's first message, including the length. A short string needs only this message.
const FIRST_BYTES: usize = 512;
const LENGTH_BYTES: usize = size_of::<u64>();
/// Most bytes on rank 0 in one round: well below the largest int.
const ROUND_BYTES: usize = 1 << 30;

/// The error for a length that no rank of this tool sends.
const NOT_OURS: FabricError = FabricError { call: "reading a message of a rank", code: -1 };

/// Returns rank 0's `bytes` on every rank. Ignores the `bytes` of other ranks.
pub fn spread<F: Fabric>(fabric: &mut F, mut bytes: Vec<u8>) -> Result<Vec<u8>, FabricError> {
    let mut first = [0; FIRST_BYTES];
    let (length, begin) = first.split_at_mut(LENGTH_BYTES);
    if fabric.rank() == 0 {
        length.copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        let short = bytes.len().min(begin.len());
        begin[..short].copy_from_slice(&bytes[..short]);
    }
    fabric.broadcast(&mut first)?;
    let (length, begin) = first.split_at(LENGTH_BYTES);
    bytes.resize(length_of(length)?, 0);
    let short = begin.len().min(bytes.len());
    let (begun, rest) = bytes.split_at_mut(short);
    begun.copy_from_slice(&begin[..short]);
    rest.chunks_mut(ROUND_BYTES).try_for_each(|piece| fabric.broadcast(piece))?;
    Ok(bytes)
}

/// On rank 0 every rank's `bytes` that are not empty, in rank order; nothing elsewhere.
pub fn collect<F: Fabric>(fabric: &mut F, bytes: &[u8]) -> Result<Vec<Vec<u8>>, FabricError> {
    collect_in_rounds(fabric, bytes, ROUND_BYTES)
}

fn collect_in_rounds<F: Fabric>(
    fabric: &mut F,
    bytes: &[u8],
    round_bytes: usize,
) -> Result<Vec<Vec<u8>>, FabricError> {
    let lengths = fabric.gather(&(bytes.len() as u64).to_le_bytes())?;
    let lengths = lengths.chunks(LENGTH_BYTES).map(length_of).collect::<Result<Vec<_>, _>>()?;
    let mut all: Vec<Vec<u8>> = lengths.iter().map(|length| Vec::with_capacity(*length)).collect();
    let mut round = |fabric: &mut F, begin: usize, piece: usize| {
        let part_of = |length: usize| begin.min(length)..length.min(begin.saturating_add(piece));
        let counts: Vec<usize> = lengths.iter().map(|length| part_of(*length).len()).collect();
        let came = fabric.gather_varying(&bytes[part_of(bytes.len())], &counts)?;
        let mut rest = &came[..];
        for (string, count) in all.iter_mut().zip(counts) {
            let part;
            (part, rest) = rest.split_at_checked(count).ok_or(NOT_OURS)?;
            string.extend_from_slice(part);
        }
        Ok(())
    };
    // Only rank 0 has the lengths. Nearly always this round moves everything, and rank 0 waits for no other rank
    // after it.
    let first = (round_bytes / fabric.size() as usize).max(1);
    round(fabric, 0, first)?;
    let plan = wire::encode(&plan(&lengths, first, round_bytes)).map_err(|_| NOT_OURS)?;
    let (longest, piece): (usize, usize) = wire::decode(&spread(fabric, plan)?).map_err(|_| NOT_OURS)?;
    (first..longest).step_by(piece.max(1)).try_for_each(|begin| round(fabric, begin, piece))?;
    all.retain(|string| !string.is_empty());
    Ok(all)
}

/// The longest of these lengths, and how many bytes of each string go in one round after the `first` ones.
fn plan(lengths: &[usize], first: usize, round_bytes: usize) -> (usize, usize) {
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let rest = lengths.iter().map(|length| length.saturating_sub(first)).filter(|rest| *rest > 0);
    let (givers, total) =
        rest.fold((0, 0usize), |(givers, sum), rest| (givers + 1, sum.saturating_add(rest)));
    (longest, if total <= round_bytes { longest } else { (round_bytes / givers).max(1) })
}

fn length_of(bytes: &[u8]) -> Result<usize, FabricError> {
    let length = bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    usize::try_from(length).ok().filter(|length| *length <= LIMIT_BYTES).ok_or(NOT_OURS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::fabric::Threads;

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at % 251) as u8).collect()
    }

    /// Runs `work` on `size` ranks, which are threads, and returns each rank's result.
    fn on_ranks<T: Send>(size: u32, work: impl Fn(&mut Threads) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let ranks = Threads::new(size).into_iter().map(|mut fabric| {
                let work = &work;
                scope.spawn(move || work(&mut fabric))
            });
            let ranks: Vec<_> = ranks.collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn strings_of_every_length_reach_all_ranks() {
        let short = FIRST_BYTES - LENGTH_BYTES;
        for length in [0, 1, short, short + 1, 100_000] {
            let heard = on_ranks(3, |fabric| {
                let own = if fabric.rank() == 0 { pattern(length) } else { vec![9; 7] };
                spread(fabric, own).unwrap()
            });
            assert_eq!(heard, vec![pattern(length); 3]);
        }
    }

    #[test]
    fn all_that_ranks_give_comes_in_their_order_however_many_rounds_it_takes() {
        for lengths in [vec![0], vec![5], vec![0, 3, 0, 1000, 7], vec![0; 4], (0..20).collect()] {
            for round_bytes in [1, 2, 10, 999, ROUND_BYTES] {
                let give = |fabric: &mut Threads| {
                    collect_in_rounds(fabric, &pattern(lengths[fabric.rank() as usize]), round_bytes).unwrap()
                };
                let came = on_ranks(lengths.len() as u32, give);
                let given = lengths.iter().filter(|length| **length > 0);
                assert_eq!(came[0], given.map(|length| pattern(*length)).collect::<Vec<_>>());
                assert!(came[1..].iter().all(Vec::is_empty));
            }
        }
    }

    #[test]
    fn a_round_holds_no_more_than_it_may() {
        for lengths in [vec![100; 10], vec![0, 70, 0, 31], vec![50, 50], vec![1000, 1, 1]] {
            for first in [1, 10, 40] {
                let (longest, piece) = plan(&lengths, first, 100);
                assert_eq!(longest, *lengths.iter().max().unwrap());
                let rest = lengths.iter().map(|length| piece.min(length.saturating_sub(first)));
                assert!(rest.sum::<usize>() <= 100);
            }
        }
    }

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        assert_eq!(length_of(&u64::MAX.to_le_bytes()), Err(NOT_OURS));
        assert_eq!(length_of(&7u64.to_le_bytes()), Ok(7));
    }
}
