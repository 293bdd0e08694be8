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

/// What hides an effect of the fraction `delta`, and how large it is as a fraction: the larger of the two if
/// it exceeds delta. A node that is slower by delta has about half of its true lower ends below the gate where
/// the runs' noise is 0, and nearly all where that noise is delta.
pub fn hides(delta: f64, noise: &Noise) -> Option<(Limit, f64)> {
    let of = |limit, size: Option<f64>| size.filter(|size| size.is_finite()).map(|size| (limit, size.exp_m1()));
    let both = [of(Limit::Bounds, noise.bounds), of(Limit::Runs, noise.runs)].into_iter().flatten();
    both.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, size)| *size > delta)
}
