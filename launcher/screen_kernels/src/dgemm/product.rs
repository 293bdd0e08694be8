//! Matrices of whole numbers, and the check of their product.

use crate::error::{Wrong, double};
use crate::random::Random;

/// Doubles hold all whole numbers up to 2^53.
const EXACT_BITS: u32 = f64::MANTISSA_DIGITS;
/// Operands with fewer bits would test the multipliers too little.
const LEAST_OPERAND_BITS: u32 = 12;
/// One thread then uses 1.6 GB.
pub(super) const MOST_N: u32 = 1 << 13;

/// A wrong element of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WrongElement {
    pub(super) element: usize,
    pub(super) expected: f64,
    pub(super) found: f64,
    pub(super) wrong_count: u64,
}

impl WrongElement {
    pub(super) fn into_wrong(self, of: String, hardware_thread: u32) -> Wrong {
        let (expected, found) = (double(self.expected), double(self.found));
        let (element, wrong_count) = (self.element as u64, self.wrong_count);
        Wrong { hardware_thread, of, element, expected, found, wrong_count }
    }
}

/// The bits of an operand, without its sign: with more bits, a sum of `products * n` products of two operands might
/// not be exact.
pub(super) fn operand_bits(n: u32, products: u32) -> Option<u32> {
    let terms = u64::from(n) * u64::from(products);
    if terms == 0 || n > MOST_N {
        return None;
    }
    let term_bits = EXACT_BITS.checked_sub(terms.next_power_of_two().ilog2())?;
    Some(term_bits / 2).filter(|bits| *bits >= LEAST_OPERAND_BITS)
}

/// The element of the matrix A (0) or B (1), between -2^bits and 2^bits.
pub(super) fn operand(matrix: usize, element: usize, bits: u32) -> i64 {
    let word = Random((matrix as u64) << 62 | element as u64).next() as i64;
    word >> (63 - bits)
}

/// Finds the first element of C that is not `products` times A B. It misses an error with a probability of about
/// 2^-63, and only if several elements of a row are wrong.
pub(super) fn wrong_element(
    n: usize,
    products: u32,
    [a, b, c]: [&[f64]; 3],
    seed: u64,
) -> Option<WrongElement> {
    let mut random = Random(seed);
    // Odd numbers, so that the difference of one element never becomes 0 modulo 2^64.
    let vector: Vec<i64> = (0..n).map(|_| random.next() as i64 | 1).collect();
    let times = |row: &[f64], vector: &[i64]| {
        let terms = row.iter().zip(vector).map(|(value, factor)| (*value as i64).wrapping_mul(*factor));
        terms.fold(0i64, i64::wrapping_add)
    };
    let b_vector: Vec<i64> = b.chunks_exact(n).map(|row| times(row, &vector)).collect();
    let mut first: Option<WrongElement> = None;
    let rows = a.chunks_exact(n).zip(c.chunks_exact(n));
    for (row, (a_row, c_row)) in rows.enumerate() {
        let expected = times(a_row, &b_vector).wrapping_mul(i64::from(products));
        let whole = c_row.iter().all(|value| *value as i64 as f64 == *value);
        if whole && times(c_row, &vector) == expected {
            continue;
        }
        let expected = exact_row(n, products, a_row, b);
        for (column, (expected, found)) in expected.into_iter().zip(c_row).enumerate() {
            if expected != *found {
                let wrong_count = first.map_or(0, |first| first.wrong_count) + 1;
                let element = row * n + column;
                let new = WrongElement { element, expected, found: *found, wrong_count };
                first = Some(WrongElement { wrong_count, ..first.unwrap_or(new) });
            }
        }
    }
    first
}

/// A row of the product, with whole numbers.
fn exact_row(n: usize, products: u32, a_row: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sums = vec![0i64; n];
    for (value, b_row) in a_row.iter().zip(b.chunks_exact(n)) {
        for (sum, other) in sums.iter_mut().zip(b_row) {
            *sum = sum.wrapping_add((*value as i64).wrapping_mul(*other as i64));
        }
    }
    sums.into_iter().map(|sum| sum.wrapping_mul(i64::from(products)) as f64).collect()
}
