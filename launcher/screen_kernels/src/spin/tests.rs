use super::*;
use crate::kernel::repeat;
use crate::team::tests::small_team;
use proptest::prelude::*;

proptest! {
    /// The loop, squaring, and one step after another agree.
    #[test]
    fn numbers_are_those_of_single_steps(number in any::<u64>(), trips in 1..100u64) {
        let steps = trips * STEPS_PER_TRIP;
        let single = (0..steps).fold(number, |x, _| x.wrapping_mul(MULTIPLIER).wrapping_add(ADDEND));
        prop_assert_eq!(after(number, steps), single);
        // SAFETY: it only computes.
        prop_assert_eq!(unsafe { work(trips, number, MULTIPLIER, ADDEND) }, single);
    }

    /// The sums agree with a plain computation on sorted times.
    #[test]
    fn detours_are_those_above_the_threshold(
        quanta in prop::collection::vec(0..5000u64, 1..60),
        threshold in 0..3000u64,
    ) {
        let mut stamps = vec![77];
        stamps.extend(quanta.iter().scan(77, |end, quantum| { *end += quantum; Some(*end) }));
        let found = noise(&stamps, threshold);
        let mut sorted = quanta.clone();
        sorted.sort_unstable();
        let median = sorted[sorted.len() / 2];
        let detours: Vec<u64> = sorted.iter().filter(|one| **one > median + threshold).map(|one| one - median).collect();
        prop_assert_eq!(found.median_ns, median);
        prop_assert_eq!(found.detours, detours.len() as u64);
        prop_assert_eq!(found.longest_ns, detours.last().copied().unwrap_or(0));
        let (lost, all) = (detours.iter().sum::<u64>(), quanta.iter().sum::<u64>());
        prop_assert!((found.share * all as f64 - lost as f64).abs() < 1e-6);
    }
}

#[test]
fn a_wrong_number_is_found() {
    let mut stamps = Pages::map(11 * size_of::<u64>(), false).unwrap();
    stamps.words::<u64>().fill(0);
    let mut quanta = Quanta { stamps, number: 3 };
    let found = quanta.run(2);
    assert_eq!(quanta.check(found, 32, 6), Ok(()));
    let found = quanta.run(2);
    for bit in 0..64 {
        let mut copy = Quanta { stamps: Pages::map(88, false).unwrap(), number: quanta.number };
        let wrong = copy.check(found ^ 1 << bit, 32, 6).unwrap_err();
        assert_eq!((wrong.hardware_thread, wrong.element), (6, 9));
    }
    assert_eq!(quanta.check(found, 32, 6), Ok(()));
}

#[test]
fn repetitions_have_all_values() {
    let team = small_team();
    let mut spin = Spin::new(SpinSettings { steps: 100, quanta: 1000, threshold_ns: 500 }).unwrap();
    let repetitions = repeat(&mut spin, &team, 1, 3).unwrap();
    for repetition in repetitions {
        assert!(repetition.values.iter().map(|value| value.measure).eq(MEASURES));
        assert!(repetition.values.iter().all(|value| value.threads.len() == team.len()));
        // A quantum takes at least a cycle per step.
        assert!(repetition.values[3].threads.iter().all(|quantum| *quantum > 0.0));
    }
    for (steps, quanta) in [(0, 1), (1, 0)] {
        assert!(Spin::new(SpinSettings { steps, quanta, threshold_ns: 0 }).is_err());
    }
}
