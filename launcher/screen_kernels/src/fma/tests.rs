use super::*;
use crate::kernel::repeat;
use crate::team::tests::small_team;
use proptest::prelude::*;

fn step(x: f64, addend: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Fused => x.mul_add(x, addend),
        Rounding::Split => x * x + addend,
    }
}

fn end(lane: usize, steps: u64, rounding: Rounding) -> f64 {
    (0..steps).fold(STARTS[lane], |x, _| step(x, ADDENDS[lane], rounding))
}

/// Without vector instructions, and with the multiply-add of the C library if the compiler may not use the
/// processor's.
#[test]
fn ends_are_those_of_single_steps() {
    for (rounding, expected) in [(Rounding::Fused, ENDS_FUSED), (Rounding::Split, ENDS_SPLIT)] {
        let computed: Vec<u64> = (0..MOST_LANES).map(|lane| end(lane, STEPS, rounding).to_bits()).collect();
        assert_eq!(computed, expected, "{rounding:?}: {computed:#x?}");
    }
}

#[test]
fn all_chains_compute_the_same() {
    for chains in machine::all_here() {
        assert_eq!(chains.first_wrong(&chains.ends(STEPS)), None, "{}", chains.instructions);
        let ends = chains.ends(8);
        for (at, found) in ends.iter().enumerate() {
            let used = at < chains.chains * chains.lanes;
            let expected = if used { end(at % chains.lanes, 8, chains.rounding) } else { 0.0 };
            assert_eq!(*found, expected, "{} {at}", chains.instructions);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// One wrong bit in any step of any lane changes the end. The test leaves out the last bits: if x is small, the next
    /// step rounds them away.
    #[test]
    fn a_wrong_bit_in_any_step_changes_the_end(lane in 0..MOST_LANES, at in 0..STEPS, bit in 26..63u32) {
        for rounding in [Rounding::Fused, Rounding::Split] {
            let x = end(lane, at, rounding);
            let wrong = f64::from_bits(x.to_bits() ^ 1 << bit);
            let rest = (at..STEPS).fold(wrong, |x, _| step(x, ADDENDS[lane], rounding));
            let expected = if rounding == Rounding::Fused { ENDS_FUSED } else { ENDS_SPLIT };
            prop_assert_ne!(rest.to_bits(), expected[lane]);
        }
    }

    #[test]
    fn a_wrong_end_is_found(place in any::<prop::sample::Index>(), bit in 0..64u32) {
        let chains = Fma::new(FmaSettings::default()).unwrap().chains;
        let mut ends = chains.ends(STEPS);
        let at = place.index(chains.chains * chains.lanes);
        ends[at] = f64::from_bits(ends[at].to_bits() ^ 1 << bit);
        let wrong = chains.first_wrong(&ends).unwrap();
        prop_assert_eq!((wrong.element, wrong.wrong_count), ((at % chains.lanes) as u64, 1));
        let expected = format!("chain {} ({})", at / chains.lanes, chains.instructions);
        prop_assert_eq!(wrong.of, expected);
    }
}

#[test]
fn a_repetition_counts_its_instructions() {
    let team = small_team();
    let mut fma = Fma::new(FmaSettings { calls: 2 }).unwrap();
    let repetitions = repeat(&mut fma, &team, 0, 1).unwrap();
    let value = &repetitions[0].values[0];
    let operations = (2 * fma.instruction_count()) as f64 * fma.chains.lanes as f64;
    let node = operations * team.len() as f64 / repetitions[0].elapsed_ns as f64;
    assert_eq!((value.node, value.threads.len()), (node, team.len()));
    // As in the source of the loop.
    let trip = match fma.instructions() {
        "AVX-512" => 4 * 16 + 2,
        "AVX2" => 4 * 12 + 2,
        "SSE2" => 4 * 12 * 2 + 2,
        _ => 4 * 15 * 2 + 2,
    };
    assert_eq!(fma.expected_instructions(), Some(2 * (STEPS / 4) * trip));
    assert!(Fma::new(FmaSettings { calls: 0 }).is_err());
}
