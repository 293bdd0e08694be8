//! Compares the statistics with independent implementations: statsmodels and scipy from Debian's packages.

use pmmpi_analysis::stats::goes_with_slowness::Slowness;
use pmmpi_analysis::stats::random::Random;
use pmmpi_analysis::stats::{benjamini_hochberg, binomial, node_median, normal, qn_scale, ranks};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The answers of reference.py.
fn answers(questions: &Value) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference.py");
    // Debian's own Python, because Debian's packages belong to it; PATH may have another Python first.
    let mut python = Command::new("/usr/bin/python3")
        .args(["-W", "ignore"])
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("/usr/bin/python3: `make deps-test` installs it");
    python.stdin.take().unwrap().write_all(questions.to_string().as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`make deps-test` installs python3-statsmodels; Python said: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn is_near(found: f64, expected: f64) -> bool {
    found == expected || (found - expected).abs() <= 1e-9 * expected.abs()
}

/// Normal, heavy-tailed, with equal values, and far from 0.
fn samples(random: &mut Random) -> Vec<Vec<f64>> {
    let mut sample = |at: usize| -> Vec<f64> {
        let count = 2 + (random.uniform() * if at < 60 { 12.0 } else { 400.0 }) as usize;
        let mut draw = || match at % 4 {
            0 => random.normal(),
            1 => random.normal() / random.uniform(),
            2 => (random.uniform() * 8.0).floor(),
            _ => 20.0 + 0.001 * random.normal(),
        };
        (0..count).map(|_| draw()).collect()
    };
    (0..120).map(&mut sample).collect()
}

/// Times, values and the ends of their blocks.
type Blocks = (Vec<f64>, Vec<f64>, Vec<usize>);

/// Blocks of 1 to 9 runs, with a weak association, few different values in each third case, and one large block in some.
fn blocks(random: &mut Random) -> Vec<Blocks> {
    let mut of = |at: usize| {
        let mut ends = vec![if at.is_multiple_of(5) { 60 } else { 10 }];
        for _ in 0..at % 40 {
            ends.push(ends[ends.len() - 1] + 1 + (9.0 * random.uniform()) as usize);
        }
        let mut pair = || {
            let time = random.exponential();
            let value = 0.2 * time + random.normal();
            (time, if at.is_multiple_of(3) { (2.0 * value).round() } else { value })
        };
        let (times, values) = (0..ends[ends.len() - 1]).map(|_| pair()).unzip();
        (times, values, ends)
    };
    (0..120).map(&mut of).collect()
}

#[test]
fn python_says_the_same() {
    let mut random = Random::new(2026);
    let mut samples = samples(&mut random);
    let counts: Vec<usize> = (1..400).chain([999, 1000, 1001, 1074, 1075, 2000, 5000]).collect();
    let binomials: Vec<(usize, f64, usize)> = (0..400)
        .map(|_| {
            let trials = 1 + (10f64.powf(3.0 * random.uniform())) as usize;
            (trials, random.uniform(), (random.uniform() * (trials + 1) as f64) as usize)
        })
        .collect();
    let scores: Vec<f64> = (0..200).map(|_| -8.0 + 43.0 * random.uniform()).collect();
    let p: Vec<f64> = (0..500).map(|_| random.uniform().powi(3)).collect();
    let blocks = blocks(&mut random);
    let told = answers(&json!({
        "samples": samples, "counts": counts, "binomials": binomials, "scores": scores, "p": p, "blocks": blocks
    }));

    for (at, sample) in samples.iter().enumerate() {
        assert_eq!(ranks::mid_ranks(sample), numbers(&told["mid_ranks"][at]));
        let near = |(found, expected): (&f64, &f64)| (found - expected).abs() < 1e-9;
        assert!(ranks::savage(sample).iter().zip(&numbers(&told["savage"][at])).all(near), "{sample:?}");
    }
    let mut smallest = 1.0f64;
    for ((times, values, ends), told) in blocks.iter().zip(told["associations"].as_array().unwrap()) {
        let found = Slowness::new(times.clone(), ends.clone()).association(values).unwrap();
        let told = numbers(told);
        // If both directions are equally likely, either may be the more certain one.
        assert!(found.p > 0.8 || (found.rho - told[0]).abs() < 1e-9, "{found:?} {told:?}");
        // The gamma distribution by Wilson and Hilferty's formula: two digits.
        assert!((found.p / told[1] - 1.0).abs() < 0.05, "{found:?} {told:?}");
        smallest = smallest.min(found.p);
    }
    assert!(smallest < 1e-3, "{smallest}");

    assert!(is_near(qn_scale::CONSTANT, told["constant"].as_f64().unwrap()));
    for (sample, expected) in samples.iter_mut().zip(numbers(&told["qn"])) {
        sample.sort_by(f64::total_cmp);
        let found = qn_scale::qn(sample).unwrap();
        assert!(is_near(found, expected), "Qn of {sample:?}: {found} {expected}");
    }
    for (at, count) in counts.iter().enumerate() {
        let expected = &told["intervals"][at];
        match node_median::interval(*count) {
            None => assert!(expected.is_null(), "{count}: {expected}"),
            Some((low, high, coverage)) => {
                assert_eq!(
                    (expected[0].as_u64(), expected[1].as_u64()),
                    (Some(low as u64), Some(high as u64))
                );
                assert!(is_near(coverage, expected[2].as_f64().unwrap()), "{count}: {coverage} {expected}");
            }
        }
        assert_eq!(node_median::rank(*count, 0.01).0 as u64, told["ranks"][at].as_u64().unwrap(), "{count}");
    }
    for ((trials, p, x), expected) in binomials.iter().zip(numbers(&told["tails"])) {
        let found = binomial::at_least(*trials, *p, *x);
        assert!(is_near(found, expected), "P(Bin({trials}, {p}) >= {x}): {found} {expected}");
    }
    for (score, expected) in scores.iter().zip(numbers(&told["upper"])) {
        assert!(is_near(normal::upper(*score), expected), "1 - Phi({score}): {expected}");
    }
    for (p, expected) in p.iter().zip(numbers(&told["quantiles"])) {
        assert!((normal::quantile(*p) - expected).abs() < 1e-9, "Phi^-1({p}): {expected}");
    }
    for (found, expected) in benjamini_hochberg::adjusted(&p).iter().zip(numbers(&told["adjusted"])) {
        assert!(is_near(*found, expected), "{found} {expected}");
    }
}
