//! Detects a class that is really two classes: its nodes ought to be equal, but are of two kinds.

use super::{node_median, resolution};

/// When a class looks bimodal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BimodalSettings {
    /// The medians of the two parts must be further apart than this fraction. A node that is closer to the
    /// others is not SLOW either.
    pub delta: f64,
    /// A smaller class has no visible shape.
    pub min_nodes: usize,
    /// A smaller part of the class is no second kind: its nodes have verdicts of their own.
    pub min_part: usize,
}

impl Default for BimodalSettings {
    fn default() -> Self {
        Self { delta: 0.03, min_nodes: 20, min_part: 5 }
    }
}

/// The limit of sqrt(n) times the dip. Fewer than one of 1,000 classes of uniformly distributed nodes exceed it;
/// uniform distributions are the least unimodal ones. In simulations, one in 1,000 exceeds 0.62, 0.66, 0.70 and 0.71
/// for n = 20, 50, 200 and 1000.
const CRITICAL: f64 = 0.75;

/// The two kinds of nodes that a class seems to have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoModes {
    /// See [`dip`].
    pub dip: f64,
    /// The faster nodes.
    pub fast: ClassMode,
    /// The slower nodes.
    pub slow: ClassMode,
}

/// One of the two kinds of nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassMode {
    /// Number of nodes.
    pub nodes: usize,
    /// Their median, ln seconds.
    pub centre: f64,
}

/// Whether a class looks bimodal, from its nodes' ascending medians (ln seconds).
///
/// The function divides the class into two parts with the least sum of squares. The class is bimodal under
/// three conditions. The dip is larger than the dip of a unimodal class. The medians of the parts are further
/// apart than `delta`. And each part has at least `min_part` nodes. A few slow nodes are not a second mode:
/// they are too small a part of the class to change the dip.
///
/// Rounded times are equal for many nodes, and the steps of their distribution look like modes. `unit` is their
/// resolution (s), and equal times are spread over it.
pub fn modes(ascending: &[f64], unit: Option<f64>, settings: &BimodalSettings) -> Option<TwoModes> {
    if ascending.len() < settings.min_nodes {
        return None;
    }
    let dip = match unit {
        Some(unit) => dip(&resolution::spread(ascending, unit))?,
        None => dip(ascending)?,
    };
    let (fast, slow) = ascending.split_at(parting(ascending));
    let mode =
        |nodes: &[f64]| Some(ClassMode { nodes: nodes.len(), centre: node_median::of_ascending(nodes)? });
    let modes = TwoModes { dip, fast: mode(fast)?, slow: mode(slow)? };
    let is_far = modes.slow.centre - modes.fast.centre > settings.delta.ln_1p();
    let is_part = modes.fast.nodes.min(modes.slow.nodes) >= settings.min_part;
    (is_far && is_part && dip * (ascending.len() as f64).sqrt() > CRITICAL).then_some(modes)
}

/// The place that divides ascending values with the least sum of squares within the two parts. There the sum of
/// squares between them, n_1 n_2 (mean_1 - mean_2)^2, is largest. The first of several such places.
fn parting(ascending: &[f64]) -> usize {
    let count = ascending.len() as f64;
    let origin = ascending[0];
    let total: f64 = ascending.iter().map(|value| value - origin).sum();
    let (mut sum, mut best, mut place) = (0.0, -1.0, 0);
    for (before, pair) in ascending.windows(2).enumerate() {
        sum += pair[0] - origin;
        let n = (before + 1) as f64;
        let between = (sum / n - (total - sum) / (count - n)).powi(2) * n * (count - n);
        if between > best {
            (best, place) = (between, before + 1);
        }
    }
    place
}

/// The largest distance between the distribution of ascending, finite values and the nearest unimodal
/// distribution. It is at least 1 / 2n (for evenly spaced values) and at most 1/4 (for two points with half
/// of the values each). `None` without values.
///
/// Source: J. A. Hartigan and P. M. Hartigan, "The dip test of unimodality", Annals of Statistics 13 (1985).
/// The algorithm is that of P. M. Hartigan, AS 217, Applied Statistics 34 (1985). It compares the
/// distribution outside of a modal interval with its convex minorant on the left and its concave majorant on
/// the right. The interval shrinks to where the two are furthest apart, until their distance there is no
/// larger than the distance found outside.
pub fn dip(ascending: &[f64]) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    let (mut low, mut high) = (0, last);
    // In units of 1 / 2n: a continuous distribution cannot be closer to a value than half of the value's step.
    let mut dip = 1.0f64;
    while ascending[low] < ascending[high] {
        let minorant = Hull::below(ascending, low, high);
        let majorant = Hull::above(ascending, low, high);
        let (distance, modal) = minorant.widest(&majorant);
        if distance <= dip {
            break;
        }
        dip = dip.max(minorant.excess(low, modal.0)).max(majorant.excess(modal.1, high));
        if modal == (low, high) {
            break;
        }
        (low, high) = modal;
    }
    Some(dip / (2.0 * ascending.len() as f64))
}

/// The convex minorant or concave majorant of a distribution's steps, in units of one value.
struct Hull<'a> {
    values: &'a [f64],
    /// Indices of its corners, ascending.
    corners: Vec<usize>,
    /// 0 for the minorant, which passes below the steps' left corners; 1 for the majorant, which passes above their
    /// right corners.
    side: usize,
}

impl<'a> Hull<'a> {
    fn below(values: &'a [f64], low: usize, high: usize) -> Self {
        Self::new(values, low, high, 0)
    }

    fn above(values: &'a [f64], low: usize, high: usize) -> Self {
        Self::new(values, low, high, 1)
    }

    fn new(values: &'a [f64], low: usize, high: usize, side: usize) -> Self {
        let mut corners: Vec<usize> = Vec::new();
        for place in low..=high {
            while let [.., a, b] = corners[..] {
                let (earlier, later) = ((b - a) as f64, (place - b) as f64);
                // Compares the earlier slope with the later one, without a division, because values may be equal.
                let turn = later * (values[b] - values[a]) - earlier * (values[place] - values[b]);
                let keeps = if side == 0 { turn > 0.0 } else { turn < 0.0 };
                if keeps {
                    break;
                }
                corners.pop();
            }
            corners.push(place);
        }
        Self { values, corners, side }
    }

    /// The height at `place` on the straight piece between two corners.
    fn at(&self, from: usize, to: usize, place: usize) -> f64 {
        let run = self.values[to] - self.values[from];
        let share = if run > 0.0 { (self.values[place] - self.values[from]) / run } else { 0.0 };
        (from + self.side) as f64 + share * (to - from) as f64
    }

    /// Where this minorant is furthest below a majorant: the distance, and the interval from the corner there to the
    /// next corner of the other hull on the far side.
    fn widest(&self, majorant: &Hull) -> (f64, (usize, usize)) {
        let (mut i, mut j) = (1, 1);
        let (below, above) = (&self.corners, &majorant.corners);
        let mut widest = (0.0, (below[0], above[above.len() - 1]));
        while i < below.len() && j < above.len() && (i + 1 < below.len() || j + 1 < above.len()) {
            let (distance, modal);
            if below[i] > above[j] {
                distance = (above[j] + 1) as f64 - self.at(below[i - 1], below[i], above[j]);
                modal = (below[i - 1], above[j]);
                j += 1;
            } else {
                distance = majorant.at(above[j - 1], above[j], below[i]) - below[i] as f64;
                modal = (below[i], above[j]);
                i += 1;
            }
            if distance >= widest.0 {
                widest = (distance, modal);
            }
        }
        widest
    }

    /// The largest distance of the steps from this hull between two of its corners.
    fn excess(&self, from: usize, to: usize) -> f64 {
        let is_inside = |piece: &&[usize]| piece[0] >= from && piece[1] <= to;
        let is_wide = |piece: &&[usize]| self.values[piece[0]] < self.values[piece[1]];
        let pieces = self.corners.windows(2).filter(is_inside).filter(is_wide);
        let of_piece = |piece: &[usize]| {
            let step = |place: usize| match self.side {
                0 => (place + 1) as f64 - self.at(piece[0], piece[1], place),
                _ => self.at(piece[0], piece[1], place) - place as f64,
            };
            (piece[0]..=piece[1]).map(step).fold(1.0, f64::max)
        };
        pieces.map(of_piece).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;
    use proptest::prelude::*;

    /// The first example is from the paper: the quality of 63 statistics departments. The others come from the
    /// authors' Fortran program, translated for R and Python's diptest 0.8.
    #[test]
    fn dips_are_those_of_the_authors() {
        let faculties = [
            30, 33, 35, 36, 37, 37, 39, 39, 39, 39, 39, 40, 40, 40, 40, 41, 42, 43, 43, 43, 44, 44, 45, 45,
            46, 46, 47, 47, 48, 48, 48, 49, 50, 50, 51, 52, 52, 53, 53, 53, 53, 53, 54, 54, 57, 57, 59, 60,
            60, 60, 61, 61, 61, 61, 62, 62, 62, 62, 63, 66, 70, 72, 72,
        ];
        let faculties: Vec<f64> = faculties.map(f64::from).to_vec();
        let cases: [(f64, &[f64]); 4] = [
            (0.059_523_809_523_809_52, &faculties),
            (0.1111111111111111, &[2.0, 6.0, 6.0, 7.0, 9.0, 10.0]),
            (0.125, &[1.0, 2.0, 3.0, 4.0, 4.0, 7.0, 9.0, 9.0]),
            (0.08333333333333333, &[0.0, 1.0, 2.0, 4.0, 5.0, 7.0, 8.0, 9.0, 9.0, 10.0, 10.0, 11.0]),
        ];
        for (expected, values) in cases {
            assert!((dip(values).unwrap() - expected).abs() < 1e-12, "{values:?}: {:?}", dip(values));
        }
    }

    #[test]
    fn dips_of_simple_shapes() {
        assert_eq!(dip(&[]), None);
        let even: Vec<f64> = (0..40).map(f64::from).collect();
        assert_eq!(dip(&even), Some(1.0 / 80.0));
        let two: Vec<f64> =
            (0..1000).map(|i| if i < 500 { 0.0 } else { 1.0 } + f64::from(i) * 1e-9).collect();
        assert!((dip(&two).unwrap() - 0.25).abs() < 0.002);
        assert_eq!(dip(&[3.0; 30]), Some(1.0 / 60.0));
    }

    fn class(parts: &[(usize, f64)]) -> Vec<f64> {
        let mut random = Random::new(5);
        let mut all: Vec<f64> = Vec::new();
        for (nodes, centre) in parts {
            all.extend((0..*nodes).map(|_| centre + 0.015 * random.normal()));
        }
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn two_kinds_are_seen_and_described() {
        let modes = modes(&class(&[(1200, 0.0), (800, 0.1)]), None, &BimodalSettings::default()).unwrap();
        assert!(modes.fast.nodes.abs_diff(1200) < 5 && modes.slow.nodes.abs_diff(800) < 5);
        assert!(modes.fast.centre.abs() < 0.002 && (modes.slow.centre - 0.1).abs() < 0.002);
    }

    #[test]
    fn one_kind_is_one() {
        let found = |values: &[f64]| modes(values, None, &BimodalSettings::default());
        assert_eq!(found(&class(&[(2000, 0.0)])), None);
        assert_eq!(found(&class(&[(2000, 0.0), (20, 0.1)])), None);
        assert_eq!(found(&class(&[(9, 0.0), (10, 0.5)])), None);
        assert_eq!(found(&[1.0; 100]), None);
        // Two kinds, but too close to each other to make a node slow: times in steps of the clock.
        let steps: Vec<f64> = (0..200).map(|i| if i < 100 { 0.0 } else { 0.01 }).collect();
        assert_eq!(found(&steps), None);
    }

    proptest! {
        #[test]
        fn a_dip_has_its_limits(
            values in proptest::collection::vec(-20..20i32, 1..80), scale in 0.01..9.0f64
        ) {
            let sorted = |sign: f64| {
                let scaled = values.iter().map(|value| sign * scale * f64::from(*value));
                let mut values: Vec<f64> = scaled.collect();
                values.sort_by(f64::total_cmp);
                values
            };
            let (there, mirrored) = (dip(&sorted(1.0)).unwrap(), dip(&sorted(-1.0)).unwrap());
            let least = 0.5 / values.len() as f64;
            prop_assert!(there >= least - 1e-12 && there <= 0.25f64.max(least) + 1e-12);
            prop_assert!((there - mirrored).abs() < 1e-9);
        }
    }
}
