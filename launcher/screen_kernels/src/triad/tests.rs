use super::*;
use crate::kernel::repeat;
use crate::random::Random;
use crate::team::tests::small_team;
use proptest::prelude::*;

fn small(stores: Stores, array_bytes: u64) -> TriadSettings {
    TriadSettings { array_bytes, stores, huge_pages: false, last_level_caches_bytes: None }
}

/// Every kind of vectors of this processor, and both kinds of stores; more repetitions than the arrays can grow.
#[test]
fn all_loops_compute_what_stream_computes() {
    let team = small_team();
    for loops in machine::all_here() {
        for stores in [Stores::Ordinary, Stores::NonTemporal] {
            let mut triad = Triad { loops, ..Triad::new(small(stores, 100_000)).unwrap() };
            repeat(&mut triad, &team, 1, 2).unwrap();
            repeat(&mut triad, &team, 0, MOST_REPETITIONS as usize + 3).unwrap();
            assert_eq!(triad.repetitions, 3);
        }
    }
}

#[test]
fn a_kernel_that_skips_an_element_is_wrong() {
    let team = small_team();
    let mut triad = Triad::new(small(Stores::Ordinary, 100_000)).unwrap();
    triad.prepare(&team).unwrap();
    triad.run(&team).unwrap();
    // The check expects one more repetition than the arrays had.
    triad.repetitions += 1;
    let Err(Error::Wrong(wrong)) = triad.check(&team) else { panic!("the check found nothing") };
    assert_eq!((wrong.of.as_str(), wrong.element), ("the thread's part of array a", 0));
    assert_eq!(wrong.hardware_thread, team.hardware_threads()[0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A flipped bit anywhere is found, at its place.
    #[test]
    fn a_flipped_bit_is_found(
        array in 0..3usize,
        place in any::<prop::sample::Index>(),
        bit in 0..64u32,
        repetitions in 0..=MOST_REPETITIONS,
    ) {
        let mut arrays = Arrays::new(40 * STEP, false).unwrap();
        let loops = Triad::new(small(Stores::Ordinary, 1 << 20)).unwrap().loops.ordinary;
        for _ in 0..repetitions {
            (0..4).for_each(|operation| arrays.run(operation, loops[operation]));
        }
        let expected = Expected::after(repetitions);
        prop_assert_eq!(arrays.check(&expected, 5), Ok(()));
        let element = place.index(40 * STEP);
        let value = &mut arrays.all()[array][element];
        *value = f64::from_bits(value.to_bits() ^ 1 << bit);
        let found = double(*value);
        let wrong = arrays.check(&expected, 5).unwrap_err();
        let name = ["a", "b", "c"][array];
        prop_assert_eq!(wrong.of, format!("the thread's part of array {name}"));
        prop_assert_eq!((wrong.element, wrong.wrong_count, wrong.hardware_thread), (element as u64, 1, 5));
        prop_assert_eq!(wrong.found, found);
    }
}

/// A bit flips in an array of a team's thread; the error names the thread.
#[test]
fn a_flipped_bit_names_the_hardware_thread() {
    let team = small_team();
    let mut random = Random(1);
    for last in 0..team.len() {
        let mut triad = Triad::new(small(Stores::NonTemporal, 1 << 20)).unwrap();
        triad.prepare(&team).unwrap();
        triad.run(&team).unwrap();
        let place = random.next();
        let arrays = triad.arrays.as_ref().unwrap();
        team.with(arrays, move |member, arrays| {
            if member.number == last {
                let element = place as usize % arrays.elements;
                let value = &mut arrays.all()[1][element];
                *value = f64::from_bits(value.to_bits() ^ 1);
            }
            Ok(())
        })
        .unwrap();
        let Err(Error::Wrong(wrong)) = triad.check(&team) else { panic!("the check found nothing") };
        assert_eq!(wrong.hardware_thread, team.hardware_threads()[last]);
    }
}

/// A line that came from another place is found, although all its values belong to the array.
#[test]
fn a_line_from_a_wrong_place_is_found() {
    let mut arrays = Arrays::new(200 * STEP, false).unwrap();
    for distance in [8, 16, 512, 4096] {
        arrays.fill();
        arrays.all()[0].copy_within(1024 + distance..1024 + distance + 8, 1024);
        assert_eq!(arrays.check(&Expected::after(0), 0).unwrap_err().wrong_count, 8);
    }
}

#[test]
fn bytes_are_those_of_stream_and_of_memory() {
    let bytes = |stores| OPERATIONS.map(|one| one.bytes_per_element(stores)).map(|b| (b.stream, b.memory));
    assert_eq!(bytes(Stores::Ordinary), [(16, 24), (16, 24), (24, 32), (24, 32)]);
    assert_eq!(bytes(Stores::NonTemporal), [(16, 16), (16, 16), (24, 24), (24, 24)]);
}

#[test]
fn a_repetition_has_all_values() {
    let team = small_team();
    let mut triad = Triad::new(small(Stores::Ordinary, 1 << 20)).unwrap();
    let repetitions = repeat(&mut triad, &team, 0, 1).unwrap();
    let values = &repetitions[0].values;
    assert!(values.iter().map(|value| value.measure).eq(MEASURES));
    assert_eq!(values[0].measure.name, "triad");
    assert!(values.iter().all(|value| value.threads.len() == team.len()));
    assert!(values.iter().all(|value| value.node > 0.0 && value.node.is_finite()));
    // Memory sees 32 bytes where STREAM counts 24.
    assert!((values[4].node / values[0].node - 32.0 / 24.0).abs() < 1e-12);
}

#[test]
fn small_arrays_have_a_note() {
    let note = |bytes: u64, caches: Option<u64>| {
        TriadSettings::for_memory(bytes, Stores::Ordinary, caches).note_of_caches()
    };
    let caches = 32 << 20;
    for bytes in [16 << 20, 64 << 20, 4 * caches - 3] {
        let note = note(bytes, Some(caches)).unwrap();
        assert!(note.contains("last-level caches (0.034 GB)"), "{note}");
    }
    for (bytes, caches) in [(4 * caches, Some(caches)), (1 << 30, Some(caches)), (1 << 20, None)] {
        assert_eq!(note(bytes, caches), None, "{bytes}");
    }
    assert_eq!(TriadSettings::for_caches(caches, Stores::Ordinary).note_of_caches(), None);
    let team = small_team();
    let settings =
        TriadSettings { last_level_caches_bytes: Some(caches), ..small(Stores::Ordinary, 1 << 20) };
    let mut triad = Triad::new(settings).unwrap();
    triad.prepare(&team).unwrap();
    assert_eq!(triad.notes().len(), 2);
}

#[test]
fn sizes_follow_the_caches_or_the_memory() {
    assert_eq!(TriadSettings::for_caches(480 << 20, Stores::Ordinary).array_bytes, 1920 << 20);
    assert_eq!(TriadSettings::for_caches(1 << 20, Stores::Ordinary).array_bytes, LEAST_ARRAY_BYTES);
    assert_eq!(TriadSettings::for_memory(3 << 30, Stores::Ordinary, None).array_bytes, 1 << 30);
    for array_bytes in [0, 100, 511, u64::MAX] {
        assert!(elements_per_thread(array_bytes, 1).is_err(), "{array_bytes}");
        let mut triad = Triad::new(small(Stores::Ordinary, array_bytes)).unwrap();
        assert!(matches!(triad.prepare(&small_team()), Err(Error::Setting(_))));
    }
}
