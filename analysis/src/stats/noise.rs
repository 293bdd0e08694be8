//! Whether what is looked for could be seen at all.

/// What limits the sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The time itself is only known to lie between two bounds: barriers are slow against the work.
    Bounds,
    /// The runs of a node differ by more.
    Runs,
}

/// What makes a time unsure, each as a difference of ln T; `None` where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// Upper minus lower bound of a run; the median of several runs.
    pub bounds: Option<f64>,
    /// The median minus the lower end of its interval; the median of several nodes.
    pub runs: Option<f64>,
}

/// What hides an effect of the fraction `delta`, and how large it is as a fraction: the larger of the two,
/// where it exceeds delta. A time that is only known within delta tells nothing of delta; and with runs
/// that differ so much a node would have to be slower by twice delta before its lower end is beyond the
/// gate.
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
