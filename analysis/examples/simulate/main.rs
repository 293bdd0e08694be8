//! sim
mod fleet;
mod methods;
mod score;
use fleet::*;
use methods::*;
use score::*;
use pmmpi_analysis::stats::class::Class;

fn main() {
    let recipe = Recipe::default();
    let t = std::time::Instant::now();
    for base in [0u64, 1000, 2000] {
    let fleets: Vec<Fleet> = (0..30).map(|seed| Fleet::new(&recipe, base+seed)).collect();
    for (name, method) in METHODS {
        let mut score = Score::default();
        for fleet in &fleets {
            let class = Class::new(&fleet.times, &fleet.ends).unwrap();
            score.add(&method(&class), &fleet.slow_by);
        }
        println!("{name:25} {:.3} {:.3} {:.3} {:.2}", score.precision(), score.recall(), score.recall_of_much(), score.wrong_per_fleet());
    }
    let mut score = Score::default();
    for fleet in &fleets {
        let class = Class::new(&fleet.times, &fleet.ends).unwrap();
        let truth: Vec<f64> = fleet.slow_runs.iter().map(|s| if *s {0.2} else {0.0}).collect();
        score.add(&slow_runs(&class), &truth);
    }
        println!("{:25} {:.4} {:.4} {:.3} {:.2}", "slow runs", score.precision(), score.recall(), score.recall_of_much(), score.wrong_per_fleet());
    }
    println!("{:?}", t.elapsed());
}
