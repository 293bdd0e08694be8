//! Floating-point speed with products of matrices, one product per hardware thread.
//!
//! The elements of the matrices are small whole numbers, so every sum is exact in doubles, whatever the order in
//! which a library adds. So the check needs no tolerance, and finds every flipped bit of a product: it multiplies
//! both sides with a random vector (Freivalds 1977), in whole numbers modulo 2^64.

mod blas;
mod product;

use crate::error::{Error, Wrong};
use crate::kernel::{Measure, Repetition, ScreenKernel, rate};
use crate::pages::{Pages, require_available};
use crate::team::{PerThread, Span, Team};
pub use blas::Blas;
use product::{operand, operand_bits, wrong_element};

const MEASURES: [Measure; 1] = [Measure { name: "dgemm", unit: "GFLOP/s", larger_is_better: true }];
/// The matrices A, B and C.
const MATRICES: usize = 3;
/// The crate matrixmultiply multiplies blocks of 1024 columns. The part of B in such a block alone fills a
/// second-level cache of 2 MiB.
const MOST_COLUMNS: usize = 512;

/// Settings of [`Dgemm`].
#[derive(Clone, Debug)]
pub struct DgemmSettings {
    /// Rows and columns of each matrix.
    pub n: u32,
    /// Products that each thread computes and adds in a repetition.
    pub products: u32,
    /// The library that multiplies; `None`: the crate matrixmultiply.
    pub blas: Option<Blas>,
}

impl Default for DgemmSettings {
    fn default() -> Self {
        Self { n: 500, products: 10, blas: None }
    }
}

/// Speed of matrix products.
pub struct Dgemm {
    settings: DgemmSettings,
    operand_bits: u32,
    matrices: Option<PerThread<Matrices>>,
    repetitions: u64,
}

/// The matrices of one thread.
struct Matrices {
    pages: Pages,
    n: usize,
    operand_bits: u32,
}

impl Dgemm {
    /// Refuses sizes for which sums of doubles are not exact.
    pub fn new(settings: DgemmSettings) -> Result<Self, Error> {
        let operand_bits = operand_bits(settings.n, settings.products).ok_or_else(|| {
            Error::Setting(format!(
                "dgemm cannot use n = {} with {} products per repetition; both must be at least 1, and n at most {}",
                settings.n,
                settings.products,
                product::MOST_N
            ))
        })?;
        Ok(Self { settings, operand_bits, matrices: None, repetitions: 0 })
    }
}

impl ScreenKernel for Dgemm {
    fn name(&self) -> &'static str {
        "dgemm"
    }

    fn measures(&self) -> &'static [Measure] {
        &MEASURES
    }

    fn prepare(&mut self, team: &Team) -> Result<(), Error> {
        self.matrices = None; // free the memory of an earlier call first
        let (n, operand_bits) = (self.settings.n as usize, self.operand_bits);
        require_available((MATRICES * n * n * size_of::<f64>() * team.len()) as u64, "dgemm")?;
        self.matrices = Some(team.create(move |_| Matrices::new(n, operand_bits))?);
        Ok(())
    }

    fn run(&mut self, team: &Team) -> Result<Repetition, Error> {
        let matrices = self.matrices.as_ref().ok_or_else(not_prepared)?;
        let (products, n) = (self.settings.products, f64::from(self.settings.n));
        team.with(matrices, |_, matrices| {
            matrices.all()[2].fill(0.0);
            Ok(())
        })?;
        let blas = self.settings.blas.clone();
        let (_, spans) = team.timed(matrices, move |matrices: &mut Matrices| {
            (0..products).for_each(|_| matrices.add_product(blas.as_ref()));
        })?;
        self.repetitions += 1;
        let seed = self.repetitions;
        team.with(matrices, move |member, matrices| {
            matrices.check_product(products, seed, member.hardware_thread).map_err(Error::from)
        })?;
        let operations = 2.0 * n * n * n * f64::from(products);
        let value = rate(MEASURES[0], operations, &spans);
        Ok(Repetition { elapsed_ns: Span::of_all(&spans).elapsed_ns(), values: vec![value] })
    }

    fn check(&mut self, team: &Team) -> Result<(), Error> {
        let matrices = self.matrices.as_ref().ok_or_else(not_prepared)?;
        team.with(matrices, |member, matrices| {
            matrices.check_operands(member.hardware_thread).map_err(Error::from)
        })?;
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let library = self.settings.blas.as_ref().map_or("the crate matrixmultiply".to_owned(), Blas::name);
        vec![format!(
            "n = {}, {} products per repetition, by {library}",
            self.settings.n, self.settings.products
        )]
    }
}

fn not_prepared() -> Error {
    Error::Internal("dgemm ran before it was prepared".to_owned())
}

impl Matrices {
    fn new(n: usize, operand_bits: u32) -> Result<Self, Error> {
        let pages = Pages::map(MATRICES * n * n * size_of::<f64>(), true)?;
        let mut matrices = Self { pages, n, operand_bits };
        let [a, b, c] = matrices.all();
        for (matrix, values) in [a, b].into_iter().enumerate() {
            for (element, value) in values.iter_mut().enumerate() {
                *value = operand(matrix, element, operand_bits) as f64;
            }
        }
        c.fill(0.0);
        Ok(matrices)
    }

    /// A, B and C, row by row.
    fn all(&mut self) -> [&mut [f64]; MATRICES] {
        let size = self.n * self.n;
        let (a, rest) = self.pages.words::<f64>().split_at_mut(size);
        let (b, c) = rest.split_at_mut(size);
        [a, b, &mut c[..size]]
    }

    /// C = C + A B
    fn add_product(&mut self, blas: Option<&Blas>) {
        let n = self.n;
        let [a, b, c] = self.all();
        match blas {
            Some(blas) => blas.add_product([n, n, n], a, b, c),
            None => {
                let (row, one) = (n as isize, 1);
                for first in (0..n).step_by(MOST_COLUMNS) {
                    let columns = MOST_COLUMNS.min(n - first);
                    let (a, b, c) = (a.as_ptr(), b[first..].as_ptr(), c[first..].as_mut_ptr());
                    // SAFETY: the matrices have n rows of n elements; these are columns of B and of C, and C is neither
                    // A nor B.
                    unsafe {
                        matrixmultiply::dgemm(n, n, columns, 1.0, a, row, one, b, row, one, 1.0, c, row, one);
                    }
                }
            }
        }
    }

    /// C must be `products` times A B.
    fn check_product(&mut self, products: u32, seed: u64, hardware_thread: u32) -> Result<(), Wrong> {
        let n = self.n;
        let [a, b, c] = self.all();
        let Some(wrong) = wrong_element(n, products, [a, b, c], seed) else { return Ok(()) };
        let of = format!("the product (row {}, column {})", wrong.element / n, wrong.element % n);
        Err(wrong.into_wrong(of, hardware_thread))
    }

    /// Checks that A and B still have their first values. With a wrong A or B, the check of the product finds no
    /// error.
    fn check_operands(&mut self, hardware_thread: u32) -> Result<(), Wrong> {
        let operand_bits = self.operand_bits;
        for ((matrix, values), name) in self.all()[..2].iter().enumerate().zip(["A", "B"]) {
            let expected = |element| operand(matrix, element, operand_bits) as f64;
            let differs = |(element, value): &(usize, &f64)| value.to_bits() != expected(*element).to_bits();
            let wrong_count = values.iter().enumerate().filter(differs).count() as u64;
            if let Some((element, found)) = values.iter().enumerate().find(differs) {
                let wrong = product::WrongElement {
                    element,
                    expected: expected(element),
                    found: *found,
                    wrong_count,
                };
                return Err(wrong.into_wrong(format!("the matrix {name}"), hardware_thread));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
