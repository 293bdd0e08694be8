//! The resolution of times: rounded times hide small differences and create others.

use super::poisson;
use std::collections::{BTreeMap, BTreeSet};

/// The units (s) of which the times of a class are multiples. `None`, or no entry, if they are too fine to matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Units {
    /// The unit of nearly all times. One time in twenty may have another unit, because results may come from
    /// several tools.
    pub class: Option<f64>,
    /// The units of nodes with coarser times, by the index of the node.
    pub coarser: BTreeMap<usize, f64>,
}

impl Units {
    /// Finds the units of times (s, above zero). `ends` has the end of each node's times.
    ///
    /// Times are decimal numbers. The function counts them in units of their last digit, and takes the
    /// greatest common divisor. Some nodes have coarser times if chance does not explain why their last
    /// digits are zero.
    pub fn of(seconds: &[f64], ends: &[usize]) -> Self {
        let is_single = |time: &f64| f64::from(*time as f32) == *time;
        match seconds.iter().all(is_single) {
            true => Self::of_exact(&seconds.iter().map(|time| seven_digits(*time)).collect::<Vec<_>>(), ends),
            false => Self::of_exact(seconds, ends),
        }
    }

    fn of_exact(seconds: &[f64], ends: &[usize]) -> Self {
        let finest = NEGLIGIBLE * seconds.iter().copied().fold(f64::INFINITY, f64::min);
        if !finest.is_finite() {
            return Self::default();
        }
        let may_differ = seconds.len() / OTHERS;
        let fits = |digits: &i32| {
            let is_other = |time: &&f64| !is_whole(*time * scale(*digits));
            let others = seconds.iter().filter(is_other).take(may_differ + 1).count();
            others == 0 || others <= may_differ && are_different(seconds, *digits)
        };
        let matter = |digits: &i32| *digits == 0 || scale(*digits) * finest < 1.0;
        let usual = (0..=MOST_DIGITS).take_while(matter).find(fits);
        let least = usual.unwrap_or_else(|| (0..=MOST_DIGITS).take_while(matter).count() as i32);
        let unit = usual.map(|digits| divisor(of_nodes(seconds, ends), digits));
        let class = unit.filter(|unit| *unit >= finest);
        let coarser = coarser(seconds, ends, least, unit.unwrap_or_else(|| 1.0 / scale(least)));
        // The median of the class is then rounded, too.
        if coarser.len() * MOST_COARSER <= ends.len() {
            return Self { class, coarser };
        }
        let mut units: Vec<f64> = coarser.into_values().collect();
        units.sort_unstable_by(f64::total_cmp);
        Self { class: units.get(units.len() / 2).copied(), coarser: BTreeMap::new() }
    }

    /// The unit of a node's times.
    pub fn of_node(&self, node: usize) -> Option<f64> {
        self.coarser.get(&node).copied().or(self.class)
    }
}

/// The nodes whose times have fewer than `usual` digits after the point, with the unit of their times. The
/// times of the other nodes are multiples of `unit`. Chance also makes some times coarser. For example, a
/// random multiple of 0.01 s is a multiple of 1 s with a probability of 0.01.
fn coarser(seconds: &[f64], ends: &[usize], usual: i32, unit: f64) -> BTreeMap<usize, f64> {
    let mut found = BTreeMap::new();
    // The last digits of a few different times are not random.
    const RANDOM: usize = 8;
    let mut different = BTreeSet::new();
    let are_random = seconds.iter().any(|time| {
        different.insert(time.to_bits());
        different.len() >= RANDOM
    });
    if usual == 0 || !are_random {
        return found;
    }
    let is_whole_at = |digits: i32, node: usize| {
        let (times, scale) = (of_node(seconds, ends, node), scale(digits));
        !times.is_empty() && times.iter().all(|time| is_whole(time * scale))
    };
    // Times with fewer digits are among these.
    let some: Vec<usize> = (0..ends.len()).filter(|node| is_whole_at(usual - 1, *node)).collect();
    for digits in 0..usual {
        let is_other = |node: &usize| !found.contains_key(node);
        let whole: Vec<usize> =
            some.iter().copied().filter(is_other).filter(|node| is_whole_at(digits, *node)).collect();
        if whole.is_empty() {
            continue;
        }
        // Equal times of a node are no independent evidence.
        let by_chance = |node: usize| {
            let mut times = of_node(seconds, ends, node).to_vec();
            times.sort_unstable_by(f64::total_cmp);
            times.dedup();
            (unit * scale(digits)).min(1.0).powi(times.len().min(99) as i32)
        };
        let expected: f64 = (0..ends.len()).filter(is_other).map(by_chance).sum();
        if poisson::at_least(whole.len(), expected) < CHANCE {
            let times = whole.iter().map(|node| of_node(seconds, ends, *node));
            if let Some(unit) = unit_of_some(times, digits, || quartile_range(seconds)) {
                found.extend(whole.iter().map(|node| (*node, unit)));
            }
        }
    }
    found
}

fn of_node<'a>(seconds: &'a [f64], ends: &[usize], node: usize) -> &'a [f64] {
    &seconds[node.checked_sub(1).map_or(0, |before| ends[before])..ends[node]]
}

fn of_nodes<'a>(seconds: &'a [f64], ends: &'a [usize]) -> impl Iterator<Item = &'a [f64]> {
    (0..ends.len()).map(|node| of_node(seconds, ends, node))
}

/// A unit below this fraction of the time does not matter.
const NEGLIGIBLE: f64 = 2e-4;
const MOST_DIGITS: i32 = 9;
/// One in this number of times may have another unit.
const OTHERS: usize = 20;
/// If more than one in this number of nodes has coarser times, the class has the coarser unit.
const MOST_COARSER: usize = 4;
/// If zeros at the end of times have a smaller probability, they are not due to chance.
const CHANCE: f64 = 5e-4;

fn scale(digits: i32) -> f64 {
    10f64.powi(digits)
}

/// True for a whole number, within a tolerance, because decimal fractions are not exact in binary.
fn is_whole(value: f64) -> bool {
    (value - value.round()).abs() <= 1e-9 * value.max(1.0)
}

/// The greatest common divisor (s) of times with this many digits after the point, or one unit of the last
/// digit if chance explains the divisor. Chance makes a number a multiple of g with probability 1/g. Numbers
/// that are independent of one another are the different times, and the differences between the times of one
/// node.
fn divisor<'a>(nodes: impl Iterator<Item = &'a [f64]>, digits: i32) -> f64 {
    const MANY: usize = 8;
    let scale = scale(digits);
    let (mut seen, mut divisor, mut varying) = (BTreeSet::new(), 0u64, 0i32);
    for times in nodes {
        let mut of_node = None;
        let mut varies = false;
        for time in times.iter().map(|time| time * scale).filter(|time| is_whole(*time)) {
            let time = time.round() as u64;
            divisor = gcd(divisor, time);
            if seen.len() < MANY {
                seen.insert(time);
            }
            varies |= *of_node.get_or_insert(time) != time;
        }
        varying += i32::from(varies);
    }
    let different = seen.len() as i32;
    let is_chance = different < 2 || (divisor as f64).powi(-different.saturating_add(varying)) > CHANCE;
    (if seen.len() < MANY && is_chance { 1.0 } else { divisor as f64 }) / scale
}

/// The unit of some nodes' times. Multiples of five in the last digit need no further evidence, because these
/// nodes have few times. If all times are equal, the unit is so large that rounding explains this, but at
/// most one unit of the last digit. `range` is the range in which times usually vary.
fn unit_of_some<'a>(
    nodes: impl Iterator<Item = &'a [f64]> + Clone,
    digits: i32,
    range: impl Fn() -> f64,
) -> Option<f64> {
    let times = || nodes.clone().flatten().map(|time| (time * scale(digits)).round() as u64);
    let first = times().next()?;
    if times().all(|time| time == first) {
        let enough = -(2.0 * range()).log10().ceil();
        return enough.is_finite().then(|| 1.0 / scale((enough as i32).clamp(digits, MOST_DIGITS)));
    }
    let five = times().fold(5, gcd) as f64 / scale(digits);
    Some(divisor(nodes.clone(), digits).max(five))
}

/// The decimal number that a time in single precision stands for.
fn seven_digits(time: f64) -> f64 {
    let scale = scale(6i32.saturating_sub(time.log10().floor() as i32));
    (time * scale).round() / scale
}

/// The range of the middle half of times.
fn quartile_range(seconds: &[f64]) -> f64 {
    let mut times = seconds.to_vec();
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() * 3 / 4] - times[times.len() / 4]
}

/// True if the times that have this many digits after the point are no exception: at least four of them
/// differ.
fn are_different(seconds: &[f64], digits: i32) -> bool {
    const DIFFERENT: usize = 4;
    let mut seen = BTreeSet::new();
    seconds.iter().map(|time| time * scale(digits)).filter(|time| is_whole(*time)).any(|time| {
        seen.insert(time.round() as u64);
        seen.len() >= DIFFERENT
    })
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Standard deviation of ln T from rounding.
pub fn deviation(unit: Option<f64>, ln_time: f64) -> f64 {
    unit.map_or(0.0, |unit| unit / ln_time.exp() / 12f64.sqrt())
}

/// The lower limit of the standard deviation of runs in ln T. It is necessary because the estimate is 0 if
/// most runs are equal after rounding. Rounding may hide a little more, but [`proved`] also leaves out a
/// whole unit.
pub fn hidden(unit: Option<f64>, ln_time: f64) -> f64 {
    unit.map_or(0.0, |unit| unit / ln_time.exp() * 0.4)
}

/// The part of a difference from a reference that rounding cannot explain: ln((T - unit/2) / (Tref + unit/2)), or 0.
/// A negative difference likewise.
pub fn proved(unit: Option<f64>, ln_time: f64, difference: f64) -> f64 {
    let Some(half) = unit.map(|unit| unit / 2.0) else { return difference };
    let (time, reference) = (ln_time.exp(), (ln_time - difference).exp());
    match difference > 0.0 {
        true => ((time - half).max(f64::MIN_POSITIVE) / (reference + half)).ln().max(0.0),
        false => ((time + half) / (reference - half).max(f64::MIN_POSITIVE)).ln().min(0.0),
    }
}

/// Ascending ln times. Equal times are spread evenly over the interval that a time rounded to `unit` seconds
/// stands for. The shape and the spread of many rounded times are then close to those of the times before
/// rounding.
pub fn spread(ascending: &[f64], unit: f64) -> Vec<f64> {
    let of_equal = |equal: &[f64]| -> Vec<f64> {
        let (time, count) = (equal[0].exp(), equal.len() as f64);
        let place = |at: usize| (time + unit * ((at as f64 + 0.5) / count - 0.5)).max(f64::MIN_POSITIVE).ln();
        (0..equal.len()).map(place).collect()
    };
    let mut spread: Vec<f64> = ascending.chunk_by(|a, b| a == b).flat_map(of_equal).collect();
    // Means of two rounded times lie half a unit apart.
    spread.sort_unstable_by(f64::total_cmp);
    spread
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;
    use proptest::prelude::*;

    fn rounded(count: usize, centre: f64, sd: f64, to: f64) -> Vec<f64> {
        let mut random = Random::new(9);
        (0..count).map(|_| ((centre * (sd * random.normal()).exp()) / to).round() * to).collect()
    }

    #[test]
    fn units_are_found() {
        let of = |times: &[f64]| Units::of(times, &(1..=times.len()).collect::<Vec<_>>()).class;
        let unit = |times: &[f64], ends: &[usize]| Units::of(times, ends).class;
        for to in [1.0, 0.5, 0.25, 0.1, 0.04, 0.01] {
            let found = of(&rounded(200, 10.0, 0.1, to)).unwrap();
            assert!((found - to).abs() < 1e-9, "{to}: {found}");
        }
        // Too fine to matter, or not rounded at all.
        assert_eq!(of(&rounded(200, 10.0, 0.1, 1e-3)), None);
        assert_eq!(of(&rounded(200, 10.0, 0.1, 1e-7)), None);
        // Few different values have a large common divisor by chance.
        assert_eq!(of(&[10.0, 20.0, 30.0]), Some(1.0));
        assert_eq!(of(&[10.5; 7]), Some(0.1));
        assert_eq!(of(&[6000.0, 6060.0, 6000.0, 6120.0]), Some(60.0));
        // Two times, in the runs of three nodes or of one.
        let two = [10.0, 10.5, 10.0, 10.5, 10.0, 10.5];
        assert_eq!((unit(&two, &[2, 4, 6]), unit(&two, &[6])), (Some(0.5), Some(0.1)));
        assert_eq!(unit(&[600.0, 660.0], &[1, 2]), Some(60.0));
        // Results of two tools.
        let mut of_two = rounded(200, 10.0, 0.1, 1.0);
        of_two[7] = 10.123_456;
        assert_eq!(of(&of_two), Some(1.0));
        of_two.truncate(19);
        assert_eq!(of(&of_two), None, "too few different times");
        assert_eq!(of(&(0..20).map(|at| 6000.0 + 60.0 * f64::from(at)).collect::<Vec<_>>()), Some(60.0));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[f64::INFINITY, 1.0]), None);
    }

    /// Nodes of another tool, which gives fewer digits.
    #[test]
    fn coarser_nodes_are_found() {
        let ends: Vec<usize> = (1..=50).map(|node| 7 * node).collect();
        for (fine, to) in [(1e-6, 1.0), (1e-3, 0.1), (0.01, 0.5), (0.01, 1.0)] {
            let mut times = rounded(350, 10.3, 0.03, fine);
            let usual = Units::of(&times, &ends);
            assert!(usual.coarser.is_empty(), "{usual:?}");
            for node in [3, 20, 49] {
                times[7 * node..7 * node + 7].iter_mut().for_each(|time| *time = (*time / to).round() * to);
            }
            let found = Units::of(&times, &ends);
            assert_eq!(found.class, usual.class);
            assert_eq!(found.coarser.keys().copied().collect::<Vec<_>>(), [3, 20, 49], "{fine} {to}");
            assert!(found.coarser.values().all(|unit| (unit - to).abs() < 1e-9), "{found:?}");
            assert_eq!((found.of_node(3), found.of_node(4)), (Some(to), usual.class));
        }
        // Equal times of a node show a unit, too, and single precision is no obstacle.
        let mut times = rounded(350, 10.6, 0.005, 1e-6);
        times[..70].fill(11.0);
        assert_eq!(Units::of(&times, &ends).of_node(3), Some(1.0));
        let single: Vec<f64> =
            rounded(350, 2.05, 0.05, 0.1).iter().map(|time| f64::from(*time as f32)).collect();
        assert!((Units::of(&single, &ends).class.unwrap() - 0.1).abs() < 1e-9);
        // A third of the nodes: then the class's median is rounded, too.
        let mut times = rounded(350, 10.3, 0.03, 1e-6);
        times[..7 * 17].iter_mut().for_each(|time| *time = time.round());
        assert_eq!(Units::of(&times, &ends), Units { class: Some(1.0), coarser: BTreeMap::new() });
        // One round number is chance.
        let mut times = rounded(50, 10.3, 0.03, 1e-3);
        times[7] = 10.0;
        assert!(Units::of(&times, &(1..=50).collect::<Vec<_>>()).coarser.is_empty());
    }

    #[test]
    fn spread_times_vary_as_before() {
        let mut random = Random::new(3);
        let times: Vec<f64> = (0..2000).map(|_| 10.3 + 0.8 * random.normal()).collect();
        let mut rounded: Vec<f64> = times.iter().map(|time| time.round().ln()).collect();
        rounded.sort_unstable_by(f64::total_cmp);
        let spread: Vec<f64> = spread(&rounded, 1.0).iter().map(|ln| ln.exp()).collect();
        let middle = |times: &[f64]| {
            let mut deviations: Vec<f64> = times.iter().map(|time| (time - 10.3).abs()).collect();
            deviations.sort_unstable_by(f64::total_cmp);
            deviations[1000]
        };
        let ratio = middle(&spread) / middle(&times);
        assert!(spread.is_sorted() && (0.8..1.25).contains(&ratio), "{ratio}");
    }

    proptest! {
        /// Whatever was rounded away, the true ratio is at least the proved one.
        #[test]
        fn what_is_proved_is_true(a in 1.0..100.0f64, b in 1.0..100.0f64, to in prop_oneof![Just(1.0), Just(0.1)]) {
            let [x, y] = [a, b].map(|time: f64| ((time / to).round() * to).max(to).ln());
            let (proved, truth) = (proved(Some(to), x, x - y), (a / b).ln());
            let holds = if x > y { proved <= truth.max(0.0) + 1e-9 } else { proved >= truth.min(0.0) - 1e-9 };
            prop_assert!(holds, "{proved} {truth}");
        }
    }
}
