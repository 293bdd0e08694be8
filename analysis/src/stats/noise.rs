//! Whether the measured times are precise enough to show an effect.

/// What limits the precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Only two bounds of the time are known, and these are far apart: barriers are slow compared with the
    /// work.
    Bounds,
    /// The runs of a node differ too much.
    Runs,
}

/// The uncertainty of a time, as differences of ln T; `None` if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// Upper minus lower bound of a run; for several runs their median.
    pub bounds: Option<f64>,
    /// How far the median may be too high with a probability of 1 %; for several nodes their median.
    pub runs: Option<f64>,
}

/// What hides an effect of the fraction `delta`, with its size as a fraction: the larger of the two
/// uncertainties. `None` if it does not exceed delta.
pub fn hides(delta: f64, noise: &Noise) -> Option<(Limit, f64)> {
    let of =
        |limit, size: Option<f64>| size.filter(|size| size.is_finite()).map(|size| (limit, size.exp_m1()));
    let both = [of(Limit::Bounds, noise.bounds), of(Limit::Runs, noise.runs)].into_iter().flatten();
    both.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, size)| *size > delta)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_one_is_named() {
        let noise = |bounds, runs| hides(0.03, &Noise { bounds, runs }).map(|(limit, _)| limit);
        assert_eq!(noise(Some(0.001), Some(0.02)), None);
        assert_eq!(noise(Some(0.001), Some(0.04)), Some(Limit::Runs));
        assert_eq!(noise(Some(0.05), Some(0.04)), Some(Limit::Bounds));
        assert_eq!(noise(Some(0.05), None), Some(Limit::Bounds));
        assert_eq!((noise(None, None), noise(Some(f64::NAN), None)), (None, None));
        let (_, size) = hides(0.03, &Noise { bounds: Some(0.05f64.ln_1p()), runs: None }).unwrap();
        assert!((size - 0.05).abs() < 1e-12);
    }
}
