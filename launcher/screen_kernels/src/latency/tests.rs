use super::*;
use crate::kernel::repeat;
use crate::team::tests::small_team;
use proptest::prelude::*;

fn small(bytes: u64, loads: u64) -> LatencySettings {
    LatencySettings { loads, huge_pages: false, ..LatencySettings::for_memory(bytes) }
}

#[test]
fn loads_end_where_the_order_says() {
    let team = small_team();
    // More loads than lines, fewer, and a number that is no multiple of 16.
    for (bytes, loads) in [(1 << 16, 10_000), (1 << 20, 100), (256, 17)] {
        let mut latency = Latency::new(small(bytes * team.len() as u64, loads)).unwrap();
        let repetitions = repeat(&mut latency, &team, 1, 5).unwrap();
        assert_eq!(repetitions[0].values[0].threads.len(), team.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The pointers alone, without the order, visit every line once and return.
    #[test]
    fn the_ring_visits_all_lines(lines in 2..3000u32, seed in any::<u64>()) {
        let mut ring = Ring::new(lines, false, seed).unwrap();
        prop_assert_eq!(ring.check(0), Ok(()));
        let start = ring.pages.start() as u64;
        let words = ring.pages.words::<u64>();
        let (mut at, mut seen) = (0, vec![false; lines as usize]);
        for _ in 0..lines {
            prop_assert!(!std::mem::replace(&mut seen[at / LINE_WORDS], true));
            at = (words[at] - start) as usize / size_of::<u64>();
        }
        prop_assert_eq!(at, 0);
    }

    /// A flipped bit in a pointer is found, at its line.
    #[test]
    fn a_flipped_bit_is_found(lines in 2..3000u32, place in any::<prop::sample::Index>(), bit in 0..64u32) {
        let mut ring = Ring::new(lines, false, 1).unwrap();
        let line = place.index(lines as usize);
        ring.pages.words::<u64>()[line * LINE_WORDS] ^= 1 << bit;
        let wrong = ring.check(3).unwrap_err();
        prop_assert_eq!((wrong.element, wrong.wrong_count, wrong.hardware_thread), (line as u64, 1, 3));
    }

    /// A flipped bit in the order, too, even if the order then has a line that does not exist.
    #[test]
    fn a_flipped_bit_in_the_order_is_found(
        lines in 2..3000u32,
        place in any::<prop::sample::Index>(),
        bit in 0..32u32,
    ) {
        let mut ring = Ring::new(lines, false, 1).unwrap();
        ring.order[place.index(lines as usize)] ^= 1 << bit;
        prop_assert_eq!(ring.check(3).unwrap_err().hardware_thread, 3);
    }
}

/// Prefetchers find no order: hardly any line is near the line before it, and no distance is frequent.
#[test]
fn the_order_is_random() {
    let ring = Ring::new(10_000, false, 1).unwrap();
    let distances = ring.order.windows(2).map(|pair| i64::from(pair[1]) - i64::from(pair[0]));
    let mut counts = std::collections::BTreeMap::new();
    distances.clone().for_each(|distance| *counts.entry(distance).or_insert(0) += 1);
    assert!(distances.filter(|distance| distance.abs() <= 16).count() < 100);
    assert!(counts.values().all(|count| *count < 20));
    let other = Ring::new(10_000, false, 2).unwrap();
    assert!(ring.order.iter().zip(&other.order).filter(|(one, two)| one == two).count() < 20);
}

/// A load that returns the pointer of a wrong line ends at a wrong place.
#[test]
fn a_wrong_end_is_found() {
    let mut ring = Ring::new(100, false, 1).unwrap();
    // SAFETY: every line points to a line of the ring.
    ring.at = unsafe { chase(2, ring.at) };
    assert_eq!(ring.arrive(32, 0), Ok(()));
    // SAFETY: as above.
    ring.at = unsafe { chase(2, ring.at) };
    let wrong = ring.arrive(33, 4).unwrap_err();
    assert_eq!((wrong.element, wrong.hardware_thread), (65, 4));
    assert_ne!(wrong.expected, wrong.found);
}

#[test]
fn small_chains_have_a_note() {
    let caches = 32 << 20;
    let note = |bytes: u64| LatencySettings { bytes, ..LatencySettings::for_caches(caches) }.note_of_caches();
    for bytes in [1 << 20, 4 * caches - 1] {
        let note = note(bytes).unwrap();
        assert!(
            note.contains("less than four times") && note.contains("last-level caches (0.034 GB)"),
            "{note}"
        );
    }
    assert_eq!((note(4 * caches), LatencySettings::for_caches(caches).note_of_caches()), (None, None));
    assert_eq!(small(1 << 20, 16).note_of_caches(), None);
    let settings = LatencySettings { last_level_caches_bytes: Some(caches), ..small(1 << 20, 16) };
    let mut latency = Latency::new(settings).unwrap();
    latency.prepare(&small_team()).unwrap();
    assert_eq!(latency.notes().len(), 2);
}

#[test]
fn sizes_that_it_cannot_use_are_errors() {
    assert_eq!(LatencySettings::for_caches(480 << 20).bytes, 3840 << 20);
    assert!(Latency::new(small(1 << 20, 0)).is_err());
    for bytes in [0, 127, u64::MAX] {
        let error = lines_per_thread(bytes, 1).unwrap_err().to_string();
        assert!(error.contains("at least 128 bytes, and at most 255 GiB"), "{error}");
    }
    assert_eq!(lines_per_thread(128, 1).unwrap(), 2);
}
