use super::*;
use crate::kernel::repeat;
use crate::team::tests::small_team;
use proptest::prelude::*;
use std::path::Path;

#[test]
fn products_are_right() {
    let team = small_team();
    for (n, products) in [(1, 1), (2, 3), (17, 2), (100, 10), (500, 1), (600, 1)] {
        let mut dgemm = Dgemm::new(DgemmSettings { n, products, blas: None }).unwrap();
        let repetitions = repeat(&mut dgemm, &team, 1, 2).unwrap();
        assert_eq!(repetitions[0].values[0].threads.len(), team.len());
    }
}

/// The largest sums that a size allows are exact, and one bit more would not be.
#[test]
fn sums_are_exact() {
    for (n, products) in [(1, 1), (500, 1), (500, 10), (8192, 10), (3, 1000)] {
        let bits = operand_bits(n, products).unwrap();
        let most = u128::from(n) * u128::from(products);
        assert!(most << (2 * bits) <= 1 << 53, "{n} {products}");
        assert!(most << (2 * bits + 2) > 1 << 52, "{n} {products}");
        let limit = 1i64 << bits;
        let elements: Vec<i64> = (0..1000).map(|element| operand(1, element, bits)).collect();
        assert!(elements.iter().all(|one| (-limit..limit).contains(one)));
        assert!(elements.iter().any(|one| *one < -limit / 2) && elements.iter().any(|one| *one > limit / 2));
    }
}

#[test]
fn sizes_that_it_cannot_use_are_errors() {
    for (n, products) in [(0, 1), (1, 0), (8193, 1), (500, u32::MAX), (u32::MAX, u32::MAX)] {
        assert!(matches!(Dgemm::new(DgemmSettings { n, products, blas: None }), Err(Error::Setting(_))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any flipped bit of any element of the product is found, at its place.
    #[test]
    fn a_flipped_bit_of_the_product_is_found(
        n in 1..40usize,
        products in 1..4u32,
        place in any::<prop::sample::Index>(),
        bit in 0..64u32,
        seed in any::<u64>(),
    ) {
        let mut matrices = Matrices::new(n, operand_bits(n as u32, products).unwrap()).unwrap();
        (0..products).for_each(|_| matrices.add_product(None));
        prop_assert_eq!(matrices.check_product(products, seed, 7), Ok(()));
        let element = place.index(n * n);
        let value = &mut matrices.all()[2][element];
        let flipped = f64::from_bits(value.to_bits() ^ 1 << bit);
        prop_assume!(flipped != *value); // -0 is a right result, too
        *value = flipped;
        let wrong = matrices.check_product(products, seed, 7).unwrap_err();
        prop_assert_eq!((wrong.element, wrong.wrong_count, wrong.hardware_thread), (element as u64, 1, 7));
        prop_assert_eq!(wrong.found, crate::error::double(flipped));
    }

    /// So is a flipped bit of A or B, which the product alone would not show.
    #[test]
    fn a_flipped_bit_of_an_operand_is_found(
        matrix in 0..2usize,
        place in any::<prop::sample::Index>(),
        bit in 0..64u32,
    ) {
        let mut matrices = Matrices::new(20, 20).unwrap();
        prop_assert_eq!(matrices.check_operands(7), Ok(()));
        let element = place.index(400);
        let value = &mut matrices.all()[matrix][element];
        *value = f64::from_bits(value.to_bits() ^ 1 << bit);
        let wrong = matrices.check_operands(7).unwrap_err();
        prop_assert_eq!((wrong.element, wrong.of), (element as u64, format!("the matrix {}", ["A", "B"][matrix])));
    }
}

/// Two errors in a row that cancel in the row's plain sum.
#[test]
fn errors_that_cancel_in_a_sum_are_found() {
    let mut matrices = Matrices::new(30, 20).unwrap();
    matrices.add_product(None);
    matrices.all()[2][65] += 1.0;
    matrices.all()[2][70] -= 1.0;
    for seed in 0..20 {
        let wrong = matrices.check_product(1, seed, 0).unwrap_err();
        assert_eq!((wrong.element, wrong.wrong_count), (65, 2));
    }
}

#[test]
fn a_missing_product_is_found() {
    let mut matrices = Matrices::new(30, 20).unwrap();
    matrices.add_product(None);
    let wrong = matrices.check_product(2, 1, 0).unwrap_err();
    assert_eq!(wrong.element, 0);
    assert!(wrong.wrong_count > 890, "{wrong:?}");
}

#[test]
fn libraries_that_cannot_multiply_are_errors() {
    let error = |path: &str| Blas::open(Path::new(path)).unwrap_err().to_string();
    assert!(error("/nowhere/libblas.so").contains("Cannot load the BLAS library /nowhere/libblas.so"));
    let reason = match cfg!(target_feature = "crt-static") {
        true => "this pmmpi is statically linked",
        false => "has no function cblas_dgemm; give a BLAS library",
    };
    assert!(error("libc.so.6").contains(reason));
}
