//! Two sets of runs, A and B, of the same nodes: how much longer B takes, and how sure that is.
//!
//! A unit is a node, or a job on several nodes. Each unit has its own times. All values are natural logarithms.

use super::class_runs::ClassRuns;
use super::{benjamini_hochberg, class_model, node_median, normal, within_nodes};

/// What is assumed, and when a difference counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompareSettings {
    /// Accepted share of false discoveries.
    pub q: f64,
    /// The standard deviation of a unit's sessions (ln T), and the number of sessions that this assumption counts for.
    pub sessions: (f64, f64),
}

impl Default for CompareSettings {
    fn default() -> Self {
        Self { q: 0.01, sessions: (0.002, 3.0) }
    }
}

/// The runs of a unit in one session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionRuns {
    /// Of A.
    pub a: Vec<f64>,
    /// Of B.
    pub b: Vec<f64>,
    /// True if A and B took turns: then run i of A and run i of B belong together, and A and B have equally
    /// many runs.
    pub in_turns: bool,
}

/// The sessions of a unit. A session may have runs of one set only.
pub type Unit = Vec<SessionRuns>;

/// How one unit differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitChange {
    /// ln of B / A.
    pub change: f64,
    /// A 95 % interval; `None` if there are too few runs.
    pub interval: Option<[f64; 2]>,
    /// The probability of such a change without a difference, adjusted for the number of units.
    pub adjusted_p: Option<f64>,
    /// True if the difference is certain.
    pub is_different: bool,
}

/// How a class of units differs.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassChange {
    /// The median over the units of ln of B / A.
    pub change: f64,
    /// An interval of at least 93.75 %: from the order statistics of five units or more; otherwise 95 % from the runs.
    pub interval: Option<[f64; 2]>,
    /// A true difference of this size is found with a probability of about 95 % (docs/simulation.md).
    pub smallest_visible: Option<f64>,
    /// The probability of such a change without a difference.
    pub p: Option<f64>,
    /// In the order of the units as given. `None` for a unit that has no run of A or of B.
    pub units: Vec<Option<UnitChange>>,
}

/// Exact values, such as the number of instructions of a test loop, may not vary at all.
const LEAST_SIGMA: f64 = 1e-9;
/// From this many runs of a set on, a single slow run does not matter for the median.
const MANY_RUNS: usize = 5;
/// With fewer degrees of freedom the spread is not known.
const FEWEST_FREEDOM: f64 = 4.0;
/// From this many values on, their spread comes from the median of absolute deviations, which a few slow runs
/// hardly change. For fewer values, this median is too uncertain, and the standard deviation takes its place.
/// Slow runs make the standard deviation too large, but never too small.
const ENOUGH_VALUES: usize = 40;
/// The median of absolute deviations of n normal values is as certain as the standard deviation of this fraction of n
/// values. P. J. Rousseeuw and C. Croux, "Alternatives to the median absolute deviation", JASA 88 (1993).
const EFFICIENCY: f64 = 0.37;

/// A difference, and how sure it is.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    /// ln of B / A.
    change: f64,
    /// The variance of its error; `None` if there are too few runs.
    variance: Option<f64>,
    /// The degrees of freedom of this variance.
    freedom: f64,
}

/// Compares all units of a class. `rounding` is what rounding may hide (ln T), see
/// [`super::resolution::hidden`]; 0 if the values are exact. `None` if no unit has runs of both sets.
///
/// In a session with runs of both sets, a unit's difference is median(B) - median(A), or the median of the
/// differences of runs that belong together. For several such sessions, the unit's difference is the median
/// of the differences of the sessions. A second difference is that between the median over its sessions with
/// A and the median over its sessions with B. The variance of this difference also contains the spread of a
/// unit's sessions. The more certain of the two differences counts; with one session, the first. The variance
/// of a median of k values is v_k sigma^2, with one sigma for the class. A unit whose runs vary clearly more
/// has its own sigma (docs/method.md). `classes` is the number of classes that are compared together.
pub fn compare(
    units: &[Unit],
    rounding: f64,
    classes: usize,
    settings: &CompareSettings,
) -> Option<ClassChange> {
    let alone;
    let units = match variance(units.iter().flatten().filter(|session| session.in_turns).map(differences)) {
        Some(_) => units,
        // Too few pairs show how much their differences vary.
        None => {
            let apart = |session: &SessionRuns| SessionRuns { in_turns: false, ..session.clone() };
            alone = units.iter().map(|unit| unit.iter().map(apart).collect()).collect::<Vec<Unit>>();
            &alone
        }
    };
    let spread = Spread::of(units, rounding, settings);
    let changes: Vec<Option<Estimate>> = units.iter().map(|unit| spread.change(unit)).collect();
    // A class and its units are tested; of one unit these are the same test.
    let families = if changes.iter().flatten().count() > 1 { 2.0 } else { 1.0 };
    let probability = |t: f64, freedom: f64| (families * two_sided(t, freedom)).min(1.0);
    let p = |estimate: &Option<Estimate>| {
        let of = |estimate: &Estimate| {
            Some(probability(estimate.change / estimate.variance?.sqrt(), estimate.freedom))
        };
        estimate.as_ref().and_then(of).unwrap_or(f64::NAN)
    };
    let adjusted = benjamini_hochberg::adjusted(&changes.iter().map(p).collect::<Vec<_>>());
    let of_unit = |(estimate, adjusted): (&Option<Estimate>, f64)| {
        let Estimate { change, variance, freedom } = (*estimate)?;
        let adjusted_p = variance.map(|_| adjusted);
        let reach = variance.map(|variance| student(0.975, freedom) * variance.sqrt());
        let interval = reach.map(|reach| [change - reach, change + reach]);
        // With a large q, p alone would call differences certain whose interval contains 0.
        let is_different = adjusted_p.is_some_and(|p| p <= settings.q)
            && interval.is_some_and(|[low, high]| low * high > 0.0);
        Some(UnitChange { change, interval, adjusted_p, is_different })
    };
    let of_units: Vec<Option<UnitChange>> = changes.iter().zip(adjusted).map(of_unit).collect();
    // Units with too few runs say nothing, unless there are no others.
    let certain = changes.iter().flatten().any(|estimate| estimate.variance.is_some());
    let counts = |estimate: &Estimate| estimate.variance.is_some() || !certain;
    let mut known: Vec<Estimate> = changes.iter().flatten().copied().filter(counts).collect();
    known.sort_unstable_by(|a, b| a.change.total_cmp(&b.change));
    let ascending: Vec<f64> = known.iter().map(|estimate| estimate.change).collect();
    let change = node_median::of_ascending(&ascending)?;
    let error = class_error(&known, change);
    // The usual unit decides, as for the variance.
    let freedom = within_nodes::median_of(&mut known.iter().map(|of| of.freedom).collect::<Vec<_>>());
    let freedom = freedom.unwrap_or(spread.freedom);
    let t = |p: f64| student(p, freedom);
    // Both the difference and its error vary, so this is more than the sum of two quantiles (docs/simulation.md).
    let each = settings.q / families / classes.max(1) as f64;
    let visible = 2.0 * t(1.0 - each / 2.0) * (1.0 + 1.0 / freedom);
    let of_order =
        node_median::interval(ascending.len()).map(|(low, high, _)| [ascending[low], ascending[high]]);
    let of_runs = error.map(|error| [change - t(0.975) * error, change + t(0.975) * error]);
    Some(ClassChange {
        change,
        interval: error.and(of_order.or(of_runs)),
        smallest_visible: error.map(|error| visible * error),
        p: error.map(|error| probability(change / error, freedom)),
        units: of_units,
    })
}

/// The probability that Student's t with this number of degrees of freedom is at least as far from 0, by D. L. Wallace,
/// "Bounds on normal approximations to Student's and the chi-square distributions", Ann. Math. Statist. 30 (1959).
fn two_sided(t: f64, freedom: f64) -> f64 {
    let z = (freedom * (t * t / freedom).ln_1p()).sqrt() * (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0);
    2.0 * normal::upper(z)
}

/// The quantile of Student's t: the inverse of the same formula.
fn student(p: f64, freedom: f64) -> f64 {
    let z = normal::quantile(p) * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0);
    (freedom * (z * z / freedom).exp_m1()).sqrt().copysign(z)
}

/// The standard deviation of the median of the units' changes: from the errors of the units, and from how much they differ.
fn class_error(units: &[Estimate], change: f64) -> Option<f64> {
    let errors = units.iter().map(|estimate| estimate.variance).collect::<Option<Vec<f64>>>()?;
    // The median of the changes hardly depends on a few uncertain units.
    let usual = within_nodes::median_of(&mut errors.clone()).unwrap_or_default();
    let between = match within_nodes::residual_factor(units.len()) {
        Some(factor) => {
            let residuals: Vec<f64> = units.iter().map(|of| (of.change - change) / factor).collect();
            class_model::spread(&residuals, &errors, &|_, error| error, (usual.sqrt() / 2.0, 1.0), 1e-6)
        }
        None => 0.0,
    };
    Some((within_nodes::variance_factor(units.len()) * (usual + between)).sqrt()).filter(|error| *error > 0.0)
}

/// How much values vary, over all units of a class.
struct Spread {
    /// The variance of a run; `None` if it is not known.
    run: Option<f64>,
    /// The variance of the difference of two runs that belong together.
    pair: Option<f64>,
    /// The degrees of freedom of these variances.
    freedom: f64,
    /// The variance of a unit's sessions, without the error of their medians; and its degrees of freedom.
    session: (f64, f64),
    /// The variance of the difference of two rounded medians.
    rounding: f64,
}

impl Spread {
    fn of(units: &[Unit], rounding: f64, settings: &CompareSettings) -> Self {
        let sessions = || units.iter().flatten();
        let alone = sessions().filter(|session| !session.in_turns);
        let run = variance(alone.flat_map(|session| [session.a.clone(), session.b.clone()]));
        let pair = variance(sessions().filter(|session| session.in_turns).map(differences));
        let floor = rounding * rounding;
        let mut spread = Self {
            run: run.map(|(run, _)| run.max(floor)),
            pair: pair.map(|(pair, _)| pair.max(2.0 * floor)),
            freedom: run.into_iter().chain(pair).map(|(_, freedom)| freedom).fold(f64::INFINITY, f64::min),
            session: (settings.sessions.0.powi(2), f64::INFINITY),
            rounding: floor,
        };
        spread.session = spread.of_sessions(units, settings);
        spread
    }

    /// The variance of the sessions of a unit, from units with several sessions of one set and from the assumed
    /// variance. Without such units, it is the assumed variance.
    fn of_sessions(&self, units: &[Unit], settings: &CompareSettings) -> (f64, f64) {
        let (assumed, weight) = (settings.sessions.0.powi(2), settings.sessions.1);
        let series = || units.iter().flat_map(|unit| [sides(unit, |s| &s.a), sides(unit, |s| &s.b)]);
        let medians = series().map(|of_set| of_set.iter().map(|runs| middle(runs)).collect());
        let Some((seen, freedom)) = variance_of(medians, 1.0) else { return (assumed, f64::INFINITY) };
        let errors = series().filter(|of_set| of_set.len() > 1).flatten();
        let errors: Vec<f64> = errors.filter_map(|runs| self.median(runs.len())).collect();
        let error = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        let all = (seen * freedom + (assumed + error) * weight) / (freedom + weight);
        ((all - error).max(0.0), freedom + weight)
    }

    /// The variance of the median of some runs.
    fn median(&self, runs: usize) -> Option<f64> {
        Some(within_nodes::variance_factor(runs) * self.run?)
    }

    /// The difference of a unit; `None` if a set has no runs.
    fn change(&self, unit: &Unit) -> Option<Estimate> {
        let together: Vec<Estimate> = unit.iter().filter_map(|session| self.of_session(session)).collect();
        let together = over_sessions(&together, (0.0, f64::INFINITY));
        let groups = || unit.iter().flat_map(|session| [session.a.clone(), session.b.clone()]);
        let (factor, freedom) = self.clearly_more(self.run, groups());
        let of = |runs: &Vec<f64>| Estimate {
            change: middle(runs),
            variance: self.median(runs.len()).map(|variance| variance * factor),
            freedom,
        };
        let [a, b] = [sides(unit, |s| &s.a), sides(unit, |s| &s.b)]
            .map(|sides| over_sessions(&sides.into_iter().map(of).collect::<Vec<_>>(), self.session));
        let apart = a.zip(b).map(|(a, b)| Estimate {
            change: b.change - a.change,
            variance: a.variance.zip(b.variance).map(|(a, b)| a + b),
            freedom: a.freedom.min(b.freedom),
        });
        let is_better = |a: &Estimate, b: &Estimate| match (a.variance, b.variance) {
            (Some(a), Some(b)) => a <= b,
            (a, _) => a.is_some(),
        };
        let found = match (together, apart) {
            (Some(together), Some(apart)) if is_better(&together, &apart) || unit.len() == 1 => together,
            (together, apart) => apart.or(together)?,
        };
        let variance = found.variance.map(|variance| variance + self.rounding);
        Some(Estimate { variance: variance.filter(|variance| *variance > 0.0), ..found })
    }

    /// The difference in a session with runs of both sets.
    fn of_session(&self, session: &SessionRuns) -> Option<Estimate> {
        if session.a.is_empty() || session.b.is_empty() {
            return None;
        }
        if session.in_turns {
            let pairs = differences(session);
            let (factor, freedom) = self.clearly_more(self.pair, std::iter::once(pairs.clone()));
            let variance = self.pair.map(|pair| within_nodes::variance_factor(pairs.len()) * pair * factor);
            return Some(Estimate { change: middle(&pairs), variance, freedom });
        }
        let (factor, freedom) =
            self.clearly_more(self.run, [session.a.clone(), session.b.clone()].into_iter());
        let variance = self.median(session.a.len()).zip(self.median(session.b.len()));
        let variance = variance.map(|(a, b)| (a + b) * factor);
        Some(Estimate { change: middle(&session.b) - middle(&session.a), variance, freedom })
    }

    /// The factor by which the variance of a unit's values is larger than the variance of its class, if it is
    /// clearly larger; and the degrees of freedom of the variance that counts. Without this factor, the
    /// result of one noisy node would look certain because of the other nodes.
    fn clearly_more(&self, pooled: Option<f64>, groups: impl Iterator<Item = Vec<f64>>) -> (f64, f64) {
        let (mut squares, mut without_largest, mut freedom) = (0.0, 0.0, 0.0);
        for group in groups.filter(|group| group.len() > 1) {
            let mean = group.iter().sum::<f64>() / group.len() as f64;
            let each = || group.iter().map(|value| (value - mean).powi(2));
            squares += each().sum::<f64>();
            // The mean of few runs follows a slow one, so the median and not the mean is the centre here.
            let middle = middle(&group);
            let largest = group.iter().map(|value| (value - middle).powi(2)).fold(0.0, f64::max);
            let all: f64 = group.iter().map(|value| (value - middle).powi(2)).sum();
            without_largest += if group.len() < MANY_RUNS { all } else { all - largest };
            freedom += group.len() as f64 - 1.0;
        }
        let Some(pooled) = pooled.filter(|pooled| freedom > 0.0 && *pooled > 0.0) else {
            return (1.0, self.freedom);
        };
        let ratio = squares / freedom / pooled;
        // The 99 % quantile of chi^2 / f is about this.
        let limit = 1.0 + normal::quantile(0.99) * (2.0 / freedom).sqrt();
        match without_largest / freedom / pooled > limit {
            true => (ratio, freedom),
            false => (1.0, self.freedom),
        }
    }
}

/// The median over sessions that vary by `between`, with its degrees of freedom; `None` without sessions.
fn over_sessions(sessions: &[Estimate], (between, freedom): (f64, f64)) -> Option<Estimate> {
    let values: Vec<f64> = sessions.iter().map(|session| session.change).collect();
    let count = values.len();
    let variances: Option<Vec<f64>> = sessions.iter().map(|session| session.variance).collect();
    let mean = |variances: Vec<f64>| variances.iter().sum::<f64>() / count as f64 + between;
    let variance = variances.map(|of| within_nodes::variance_factor(count) * mean(of));
    let freedom = sessions.iter().map(|session| session.freedom).fold(freedom, f64::min);
    (count > 0).then(|| Estimate { change: middle(&values), variance, freedom })
}

/// The differences of runs that belong together.
fn differences(session: &SessionRuns) -> Vec<f64> {
    session.a.iter().zip(&session.b).map(|(a, b)| b - a).collect()
}

/// The runs of one set in each session that has any.
fn sides(unit: &Unit, of: impl Fn(&SessionRuns) -> &Vec<f64>) -> Vec<&Vec<f64>> {
    unit.iter().map(of).filter(|runs| !runs.is_empty()).collect()
}

fn middle(values: &[f64]) -> f64 {
    within_nodes::median_of(&mut values.to_vec()).unwrap_or(f64::NAN)
}

/// The variance of a value within its group, pooled, and its degrees of freedom; `None` if these are too few.
fn variance(groups: impl Iterator<Item = Vec<f64>>) -> Option<(f64, f64)> {
    variance_of(groups, FEWEST_FREEDOM)
}

/// See [`variance`]; `fewest` degrees of freedom are enough.
fn variance_of(groups: impl Iterator<Item = Vec<f64>>, fewest: f64) -> Option<(f64, f64)> {
    let (mut values, mut ends, mut squares) = (Vec::new(), Vec::new(), 0.0);
    for group in groups.filter(|group| group.len() > 1) {
        let mean = group.iter().sum::<f64>() / group.len() as f64;
        squares += group.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        values.extend(group);
        ends.push(values.len());
    }
    let freedom = (values.len() - ends.len()) as f64;
    let standard = (freedom >= fewest).then(|| ((squares / freedom).max(LEAST_SIGMA * LEAST_SIGMA), freedom));
    if values.len() < ENOUGH_VALUES {
        return standard;
    }
    let class = ClassRuns::new(&values, &ends)?;
    let sigma = within_nodes::sigma(&class, &node_median::of_nodes(&class))?;
    // If more than half of the values are equal, the rest decides.
    if sigma < LEAST_SIGMA { standard } else { Some((sigma * sigma, EFFICIENCY * freedom)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;
    use proptest::prelude::*;

    const SIGMA: f64 = 0.003;

    /// A session of `runs` runs of each set; B is slower by `by`.
    fn session(random: &mut Random, runs: usize, by: f64, in_turns: bool) -> SessionRuns {
        let mut set = |by: f64| (0..runs).map(|_| 4.6 + by + SIGMA * random.normal()).collect::<Vec<_>>();
        SessionRuns { a: set(0.0), b: set(by), in_turns }
    }

    fn rate(experiments: u64, units: usize, runs: usize, by: f64, in_turns: bool) -> f64 {
        let settings = CompareSettings::default();
        let found = (0..experiments).filter(|seed| {
            let mut random = Random::new(*seed);
            let units: Vec<Unit> =
                (0..units).map(|_| vec![session(&mut random, runs, by, in_turns)]).collect();
            compare(&units, 0.0, 1, &settings).unwrap().p.unwrap() <= settings.q
        });
        found.count() as f64 / experiments as f64
    }

    #[test]
    fn equal_sets_are_not_different() {
        for (units, runs) in [(1, 3), (1, 5), (1, 7), (1, 30), (2, 7), (5, 3), (20, 7)] {
            for in_turns in [false, true] {
                let found = rate(2000, units, runs, 0.0, in_turns);
                assert!(found <= 0.01 + 0.005, "{units} units, {runs} runs: {found}");
            }
        }
    }

    #[test]
    fn two_percent_are_found() {
        for in_turns in [false, true] {
            assert!(rate(500, 1, 7, 0.02, in_turns) > 0.99);
            assert!(rate(500, 5, 7, 0.02, in_turns) > 0.99);
        }
    }

    #[test]
    fn what_is_visible_is_found() {
        let settings = CompareSettings::default();
        for (units, runs) in [(1, 5), (1, 7), (2, 5), (5, 7), (20, 5)] {
            let found = (0..1000).filter(|seed| {
                let mut random = Random::new(*seed);
                let plain: Vec<Unit> =
                    (0..units).map(|_| vec![session(&mut random, runs, 0.0, false)]).collect();
                let visible = compare(&plain, 0.0, 1, &settings).unwrap().smallest_visible.unwrap();
                let slower: Vec<Unit> =
                    (0..units).map(|_| vec![session(&mut random, runs, visible, false)]).collect();
                compare(&slower, 0.0, 1, &settings).unwrap().p.unwrap() <= settings.q
            });
            let found = found.count() as f64 / 1000.0;
            assert!(found > 0.94, "{units} units, {runs} runs: {found}");
        }
    }

    /// What drifts alike for A and B says nothing if they took turns.
    #[test]
    fn turns_cancel_a_drift() {
        let drift = |run: usize| 0.05 * run as f64;
        let noise = |run: usize| 0.0005 * ((run * 7) % 5) as f64;
        let set =
            |first: usize| (0..9).map(|run| drift(2 * run + first) / 10.0 + noise(run + first)).collect();
        let unit = |in_turns| vec![SessionRuns { a: set(0), b: set(1), in_turns }];
        let settings = CompareSettings::default();
        let [paired, plain] = [true, false].map(|turns| compare(&[unit(turns)], 0.0, 1, &settings).unwrap());
        assert!(paired.smallest_visible.unwrap() < plain.smallest_visible.unwrap() / 5.0);
    }

    #[test]
    fn other_sessions_make_less_certain() {
        let mut random = Random::new(3);
        let SessionRuns { a, b, .. } = session(&mut random, 7, 0.0, false);
        let together = vec![SessionRuns { a: a.clone(), b: b.clone(), in_turns: false }];
        let apart =
            vec![SessionRuns { a, ..SessionRuns::default() }, SessionRuns { b, ..SessionRuns::default() }];
        let settings = CompareSettings::default();
        let visible = |unit: Unit| compare(&[unit], 0.0, 1, &settings).unwrap().smallest_visible.unwrap();
        assert!(visible(apart) > 1.1 * visible(together));
    }

    /// Times that are rounded to 1 s: 100 s and 101 s may be the same.
    #[test]
    fn rounding_is_no_difference() {
        let unit = vec![SessionRuns { a: vec![100f64.ln(); 7], b: vec![101f64.ln(); 7], in_turns: false }];
        let settings = CompareSettings::default();
        assert!(
            !compare(std::slice::from_ref(&unit), 0.004, 1, &settings).unwrap().units[0]
                .unwrap()
                .is_different
        );
        let other = vec![SessionRuns { b: vec![108f64.ln(); 7], ..unit[0].clone() }];
        assert!(compare(&[other], 0.004, 1, &settings).unwrap().units[0].unwrap().is_different);
    }

    /// What does not vary differs with certainty, or not at all.
    #[test]
    fn exact_values_are_compared() {
        for runs in [7, 30] {
            let unit = |b: f64| vec![SessionRuns { a: vec![1.0; runs], b: vec![b; runs], in_turns: false }];
            let p = |b: f64| compare(&[unit(b)], 0.0, 1, &CompareSettings::default()).unwrap().p.unwrap();
            assert!(p(1.0) > 0.99 && p(1.001) < 1e-9, "{runs}");
        }
    }

    #[test]
    fn too_few_runs_are_compared_without_certainty() {
        let unit = vec![SessionRuns { a: vec![1.0, 1.1], b: vec![2.0], in_turns: false }];
        let found = compare(&[unit], 0.0, 1, &CompareSettings::default()).unwrap();
        assert_eq!((found.interval, found.p, found.smallest_visible), (None, None, None));
        assert!((found.change - 0.95).abs() < 1e-12 && !found.units[0].unwrap().is_different);
        let only_a = vec![SessionRuns { a: vec![1.0], ..SessionRuns::default() }];
        assert_eq!(compare(&[only_a, Vec::new()], 0.0, 1, &CompareSettings::default()), None);
    }

    proptest! {
        /// A and B exchanged: the same difference with the other sign.
        #[test]
        fn both_directions_agree(
            units in proptest::collection::vec(
                (proptest::collection::vec(0.0..1.0f64, 0..6), proptest::collection::vec(0.0..1.0f64, 0..6)), 1..8)
        ) {
            let units: Vec<Unit> = units
                .into_iter()
                .map(|(a, b)| vec![SessionRuns { a, b, in_turns: false }])
                .collect();
            let exchanged: Vec<Unit> = units
                .iter()
                .map(|unit| unit.iter().map(|s| SessionRuns { a: s.b.clone(), b: s.a.clone(), ..*s }).collect())
                .collect();
            let settings = CompareSettings::default();
            match (compare(&units, 0.0, 1, &settings), compare(&exchanged, 0.0, 1, &settings)) {
                (None, None) => {}
                (Some(there), Some(back)) => {
                    prop_assert!((there.change + back.change).abs() < 1e-12);
                    prop_assert_eq!(there.p.is_some(), back.p.is_some());
                    if let (Some(there), Some(back)) = (there.p, back.p) {
                        prop_assert!((there - back).abs() < 1e-9);
                    }
                }
                both => prop_assert!(false, "{both:?}"),
            }
        }
    }
}
