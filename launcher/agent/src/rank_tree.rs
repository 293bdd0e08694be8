//! A tree over all ranks with rank 0 at its root; a rank has up to 15 children per level below it.
//!
//! It is flatter than the binomial tree of MPI libraries. If ranks share cores, each step to another rank waits until
//! that rank runs, which costs more than sending to more children.

/// Bits per digit of a rank's number: one digit per level.
const DIGIT_BITS: u32 = 4;

/// The parent of a rank: its number with the last nonzero digit set to 0.
pub fn parent(rank: u32) -> Option<u32> {
    (rank != 0).then(|| rank & !(DIGITS << shift(rank)))
}

/// The children of a rank: its number with one of its trailing zero digits replaced. Children with the largest subtrees
/// come last.
pub fn children(rank: u32, size: u32) -> impl DoubleEndedIterator<Item = u32> {
    let zeros = if rank == 0 { u32::BITS } else { shift(rank) };
    (0..zeros)
        .step_by(DIGIT_BITS as usize)
        .flat_map(move |shift| (1..=DIGITS).map(move |digit| rank | digit << shift))
        .filter(move |child| *child < size)
}

const DIGITS: u32 = (1 << DIGIT_BITS) - 1;

/// Bit position of the last nonzero digit.
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
