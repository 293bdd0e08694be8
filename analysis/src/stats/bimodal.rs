//! A class that is two: nodes that ought to be equal, and are not of one kind.

use super::median;

/// When a class looks bimodal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The halves lie further apart than this fraction: what is less makes nobody slow.
    pub delta: f64,
    /// A smaller class shows no shape.
    pub min_nodes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { delta: 0.03, min_nodes: 20 }
    }
}

/// sqrt(n) times the dip exceeds this in one of 1,000 classes of uniformly distributed nodes, which are the
/// least unimodal of all that are; of normal ones never in 100,000. Simulated for 20 to 2000 nodes: the value
/// is that of the largest, those of smaller classes lie below.
const CRITICAL: f64 = 0.5;

/// The two kinds of nodes that a class seems to have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modes {
    /// See [`dip`].
    pub dip: f64,
    /// The faster ones.
    pub fast: Mode,
    /// The slower ones.
    pub slow: Mode,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mode {
    /// How many nodes.
    pub nodes: usize,
    /// Their median, ln seconds.
    pub centre: f64,
}

/// Whether a class looks bimodal, from its nodes' ascending medians (ln seconds).
///
/// It does where the dip is larger than a unimodal class has it, and the two halves into which squares part it
/// best lie further apart than matters. A few slow nodes make no second mode: they are no share of the class
/// that the dip would see.
pub fn modes(ascending: &[f64], settings: &Settings) -> Option<Modes> {
    if ascending.len() < settings.min_nodes {
        return None;
    }
    let dip = dip(ascending)?;
    let (fast, slow) = ascending.split_at(parting(ascending));
    let mode = |nodes: &[f64]| Some(Mode { nodes: nodes.len(), centre: median::of_ascending(nodes)? });
    let modes = Modes { dip, fast: mode(fast)?, slow: mode(slow)? };
    let is_far = modes.slow.centre - modes.fast.centre > settings.delta.ln_1p();
    (is_far && dip * (ascending.len() as f64).sqrt() > CRITICAL).then_some(modes)
}

/// Where to part ascending values so that the squares within both parts are smallest: the squares between
/// them, n_1 n_2 (mean_1 - mean_2)^2, are largest. The first of equally good places.
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

/// The largest distance between the distribution of ascending, finite values and the unimodal one that is
/// nearest to it: 1 / 2n for one mode, 1/4 for two points. `None` of none.
///
/// J. A. Hartigan and P. M. Hartigan, "The dip test of unimodality", Annals of Statistics 13 (1985); the
/// algorithm is that of P. M. Hartigan, AS 217, Applied Statistics 34 (1985): outside of a modal interval the
/// distribution is compared with its convex minorant on the left and its concave majorant on the right, and the
/// interval shrinks to where the two are furthest apart, until they are nearer than what was found outside.
pub fn dip(ascending: &[f64]) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    let (mut low, mut high) = (0, last);
    // In units of 1 / 2n: no value is nearer to a continuous distribution than half its own step.
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
    /// Places of its corners, ascending.
    corners: Vec<usize>,
    /// 0 for the minorant, which passes below the steps' left corners, 1 for the majorant above their right.
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
                // earlier slope against later slope, multiplied out: values may be equal.
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

    /// On the straight piece between two corners.
    fn at(&self, from: usize, to: usize, place: usize) -> f64 {
        let run = self.values[to] - self.values[from];
        let share = if run > 0.0 { (self.values[place] - self.values[from]) / run } else { 0.0 };
        (from + self.side) as f64 + share * (to - from) as f64
    }

    /// Where this minorant is furthest below a majorant: how far, and the interval between the corner there and
    /// the other's next corner on the far side.
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

    /// How far the steps are from this hull at most, between two of its corners.
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
