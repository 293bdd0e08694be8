//! A binomial tree over all ranks, rank 0 at its root.

/// Whom a rank answers to: the rank of its number without the lowest bit.
pub fn parent(rank: u32) -> Option<u32> {
    (rank != 0).then(|| rank & (rank - 1))
}

/// Those that answer to it: they have its number and one bit more, below its own lowest. Each leads as many
/// ranks behind it as that bit says.
pub fn children(rank: u32, size: u32) -> impl DoubleEndedIterator<Item = u32> {
    let bits = if rank == 0 { u32::BITS - 1 } else { rank.trailing_zeros() };
    (0..bits).map(move |bit| rank | 1 << bit).filter(move |child| *child < size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_but_0_has_one_parent_that_is_nearer_to_0() {
        for size in 1..70 {
            let mut reached: Vec<u32> = (0..size).flat_map(|rank| children(rank, size)).collect();
            reached.sort_unstable();
            assert_eq!(reached, (1..size).collect::<Vec<_>>());
            for rank in 0..size {
                assert!(children(rank, size).all(|child| parent(child) == Some(rank)));
            }
        }
        assert_eq!(parent(0), None);
        assert_eq!(children(0, u32::MAX).count(), 31);
    }
}
