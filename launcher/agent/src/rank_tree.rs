//! A tree over all ranks, rank 0 at its root: 15 answer to one.
//!
//! Flatter than the binomial tree of MPI libraries. Where ranks share cores, a step from one to the next waits
//! until it is the next one's turn, which is dearer than to send to some more.

/// Ranks are numbers in this base: a digit a level.
const DIGIT_BITS: u32 = 4;

/// Whom a rank answers to: the rank of its number without the last digit that is not 0.
pub fn parent(rank: u32) -> Option<u32> {
    (rank != 0).then(|| rank & !(DIGITS << shift(rank)))
}

/// Those that answer to it: they have its number and one digit more, among the zeros that it ends in. Those that
/// lead most ranks behind them come last.
pub fn children(rank: u32, size: u32) -> impl DoubleEndedIterator<Item = u32> {
    let zeros = if rank == 0 { u32::BITS } else { shift(rank) };
    (0..zeros)
        .step_by(DIGIT_BITS as usize)
        .flat_map(move |shift| (1..=DIGITS).map(move |digit| rank | digit << shift))
        .filter(move |child| *child < size)
}

const DIGITS: u32 = (1 << DIGIT_BITS) - 1;

/// Of the last digit that is not 0.
fn shift(rank: u32) -> u32 {
    rank.trailing_zeros() / DIGIT_BITS * DIGIT_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_but_0_has_one_parent_that_is_nearer_to_0() {
        for size in (1..70).chain([255, 256, 257, 5000]) {
            let mut reached: Vec<u32> = (0..size).flat_map(|rank| children(rank, size)).collect();
            reached.sort_unstable();
            assert_eq!(reached, (1..size).collect::<Vec<_>>());
            for rank in 0..size {
                assert!(children(rank, size).all(|child| parent(child) == Some(rank)));
            }
        }
        assert_eq!(parent(0), None);
        assert_eq!(children(0, u32::MAX).count(), 8 * 15);
    }
}
