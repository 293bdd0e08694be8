//! The resolution of times: rounded times hide small differences and create others.

use std::collections::BTreeSet;

/// The largest unit (s) of which nearly all times (s, above zero) are multiples. `None` if it is too fine to matter, or
/// if there are no times. One time in twenty may have another unit: results come from different tools. `ends` has the
/// end of each node's times.
///
/// Times are decimal numbers, so the search is for the greatest common divisor of their last digits.
pub fn unit(seconds: &[f64], ends: &[usize]) -> Option<f64> {
    let finest = NEGLIGIBLE * seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let may_differ = seconds.len() / OTHERS;
    let fits = |scale: f64| seconds.iter().filter(|time| !is_whole(*time * scale)).nth(may_differ).is_none();
    let scales = (0..=MOST_DIGITS).map(|digits| 10f64.powi(digits));
    let scale =
        scales.take_while(|scale| *scale == 1.0 || scale * finest < 1.0).find(|scale| fits(*scale))?;
    let mut first = 0;
    let nodes = ends.iter().map(|end| &seconds[std::mem::replace(&mut first, *end)..*end]);
    let unit = divisor(nodes, scale) as f64 / scale;
    (unit >= finest && finest.is_finite()).then_some(unit)
}

/// A unit below this fraction of the time does not matter.
const NEGLIGIBLE: f64 = 2e-4;
const MOST_DIGITS: i32 = 9;
/// One of so many times may have another unit.
const OTHERS: usize = 20;

/// Decimal numbers are not exact.
fn is_whole(value: f64) -> bool {
    (value - value.round()).abs() <= 1e-9 * value.max(1.0)
}

/// The greatest common divisor g of times in units of the last digit, or 1 if chance explains it. Chance makes a number a
/// multiple of g with probability 1/g. Numbers that are independent of one another are the different times, and the
/// differences between the times of one node.
fn divisor<'a>(nodes: impl Iterator<Item = &'a [f64]>, scale: f64) -> u64 {
    const MANY: usize = 8;
    const CHANCE: f64 = 5e-4;
    let (mut seen, mut divisor, mut varying) = (BTreeSet::new(), 0, 0i32);
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
    if seen.len() < MANY && is_chance { 1 } else { divisor }
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

/// The least standard deviation of runs in ln T: if most runs are equal after rounding, the estimate is 0. Rounding may
/// hide a little more, but [`proved`] leaves out a whole unit, too.
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

/// Ascending ln times, where equal ones are spread evenly over the interval that a time rounded to `unit` seconds stands
/// for. The shape and the spread of many rounded times are then close to those of the times before rounding.
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
        let of = |times: &[f64]| unit(times, &(1..=times.len()).collect::<Vec<_>>());
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
        assert_eq!(of(&of_two), None);
        assert_eq!(of(&(0..20).map(|at| 6000.0 + 60.0 * f64::from(at)).collect::<Vec<_>>()), Some(60.0));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[f64::INFINITY, 1.0]), None);
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
