//! Random numbers for simulations and tests. They are the same on every machine and in every version.

/// SplitMix64: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
/// Generators with consecutive seeds are sufficiently independent to simulate separate clusters.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Each seed gives its own stream.
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed);
        Self(random.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between 0 and 1, exclusive.
    pub fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Mean 0, standard deviation 1. Marsaglia's polar method; the second value is discarded.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// Mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_right() {
        let mut random = Random::new(1);
        let normal: Vec<f64> = (0..200_000).map(|_| random.normal()).collect();
        let moment = |power| normal.iter().map(|x| x.powi(power)).sum::<f64>() / normal.len() as f64;
        for (power, expected) in [(1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0)] {
            assert!((moment(power) - expected).abs() < 0.05, "{power}: {}", moment(power));
        }
        let mean = |mut next: Box<dyn FnMut() -> f64>| (0..200_000).map(|_| next()).sum::<f64>() / 200_000.0;
        let (mut a, mut b) = (Random::new(2), Random::new(3));
        assert!((mean(Box::new(move || a.exponential())) - 1.0).abs() < 0.01);
        assert!((mean(Box::new(move || b.uniform())) - 0.5).abs() < 0.003);
    }
}
