//! How many instructions a kernel of `pmmpi screen` should execute: the report compares this with the counted number.

use pmmpi::counters::expected::ExpectedInstructions;
use pmmpi::record::KernelResult;

/// The number of each rank. Rank 0 knows only its own number, which is also that of the other ranks if all of them have
/// done the same work in the same way. `None` if a rank has no value, or if the ranks differ.
pub(crate) fn of_all(
    of_rank_0: Option<u64>,
    results: &[KernelResult],
    ranks: usize,
) -> Option<ExpectedInstructions> {
    let instructions = of_rank_0?;
    let first = results.first().filter(|_| results.len() == ranks)?;
    // The work is the number of cores; a note has the kind of vectors.
    let is_like_first = |result: &KernelResult| {
        !result.values.is_empty() && result.work == first.work && result.notes == first.notes
    };
    results.iter().all(is_like_first).then_some(ExpectedInstructions { part: None, instructions })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_do_the_same_execute_the_same() {
        let result = |work: f64, note: &str| KernelResult {
            values: vec![100.0],
            work,
            notes: vec![note.to_owned()],
            ..KernelResult::default()
        };
        let of = |results: &[KernelResult], ranks| of_all(Some(7), results, ranks).map(|of| of.instructions);
        let equal = [result(2.0, "AVX2"), result(2.0, "AVX2")];
        assert_eq!(of(&equal, 2), Some(7));
        assert_eq!(of(&equal, 3), None);
        assert_eq!(of(&[], 0), None);
        assert_eq!(of(&[result(2.0, "AVX2"), result(4.0, "AVX2")], 2), None);
        assert_eq!(of(&[result(2.0, "AVX2"), result(2.0, "AVX-512")], 2), None);
        let failed = KernelResult { values: Vec::new(), ..result(2.0, "AVX2") };
        assert_eq!(of(&[result(2.0, "AVX2"), failed], 2), None);
        assert_eq!(of_all(None, &equal, 2), None);
    }
}
