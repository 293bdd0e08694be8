//! The tail of the chi-squared distribution.

use super::normal;

/// P(chi^2 > x) with `degrees` of freedom, to two digits in the tail: E. B. Wilson and M. M. Hilferty, "The
/// distribution of chi-square", PNAS 17 (1931). NaN for NaN.
pub fn upper(x: f64, degrees: usize) -> f64 {
    let spread = 2.0 / (9.0 * degrees.max(1) as f64);
    let cube_root = (x / degrees.max(1) as f64).cbrt();
    normal::upper((cube_root - (1.0 - spread)) / spread.sqrt())
}
