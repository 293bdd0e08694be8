//! The mathematics of verdicts, on slices of numbers: no data frame, no file, no clock, no thread.
//!
//! Times are natural logarithms of seconds, so a difference is a ratio. Reports show a fraction, exp(difference) - 1.
//! The same input gives the same bits.
//!
//! ```
//! use pmmpi_analysis::stats::{class_runs::ClassRuns, median, runs, verdict_rule, within_nodes};
//! // Three nodes of seven runs each; ln seconds, node after node, and where each node ends.
//! let seconds = |run| if run < 14 { 1.0 } else { 1.08f64 } + 1e-4 * f64::from(run % 7);
//! let times: Vec<f64> = (0..21).map(|run| f64::ln(seconds(run))).collect();
//! let class = ClassRuns::new(&times, &[7, 14, 21]).expect("every node has runs");
//! let medians = median::of_nodes(&class); // median run, interval, lower end
//! let sigma = within_nodes::sigma(&class, &medians); // of runs within nodes
//! let judged = verdict_rule::judge(&medians, sigma, &verdict_rule::VerdictSettings::default());
//! assert_eq!(judged.nodes[2].verdict, Some(verdict_rule::Verdict::SlowTail)); // of so few none is SLOW
//! let slow = sigma.map(|sigma| runs::slow(&class, &medians, sigma, &runs::SlowRunSettings::default()));
//! assert_eq!(slow, Some(vec![]));
//! ```
//!
//! | module | answers |
//! |---|---|
//! | [`class_runs`] | which runs belong to which node: the input |
//! | [`median`] | a node's median run, and the interval and the lower end of its median |
//! | [`within_nodes`] | how much runs of one node differ, pooled over its class |
//! | [`qn_scale`] | how much nodes of a class differ |
//! | [`verdict_rule`] | R*: which nodes are slow |
//! | [`runs`] | which runs are slow, and which nodes have too many of them |
//! | [`drift`] | which nodes grow slower from session to session, and since when |
//! | [`bimodal`] | whether a class consists of two kinds of nodes |
//! | [`noise`] | whether the times are precise enough to show an effect |
//! | [`node_counts`], [`terms`], [`term_parts`] | the parts of a slowdown, from counters |
//! | [`cause`] | why a node is slow |
//! | [`normal`], [`binomial`], [`benjamini_hochberg`] | probabilities, and p values of many tests |
//! | [`random`] | numbers for simulations |
//!
//! The code cites the source of each formula. docs/method.md lists them together, and docs/simulation.md shows how
//! often they are right.

pub mod benjamini_hochberg;
pub mod bimodal;
pub mod binomial;
pub mod cause;
pub mod class_runs;
pub mod drift;
pub mod median;
pub mod node_counts;
pub mod noise;
pub mod normal;
pub mod qn_scale;
pub mod random;
pub mod runs;
pub mod term_parts;
pub mod terms;
pub mod verdict_rule;
pub mod within_nodes;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Infinite times and NaN have no meaning here, but they must not cause a panic.
        #[test]
        fn no_number_is_a_panic(
            nodes in proptest::collection::vec(proptest::collection::vec(proptest::num::f64::ANY, 1..9), 0..40),
            q in proptest::num::f64::ANY, delta in proptest::num::f64::ANY
        ) {
            let ends: Vec<usize> = (1..=nodes.len()).map(|n| nodes[..n].iter().map(Vec::len).sum()).collect();
            let times = nodes.concat();
            let class = class_runs::ClassRuns::new(&times, &ends).unwrap();
            let medians = median::of_nodes(&class);
            let sigma = within_nodes::sigma(&class, &medians);
            let settings = verdict_rule::VerdictSettings { q, delta, ..verdict_rule::VerdictSettings::default() };
            prop_assert_eq!(verdict_rule::judge(&medians, sigma, &settings).nodes.len(), nodes.len());
            let settings = runs::SlowRunSettings { q, delta, ..runs::SlowRunSettings::default() };
            let slow = runs::slow(&class, &medians, sigma.unwrap_or(delta), &settings);
            prop_assert!(runs::flaky(&runs::counts(&medians, &slow), q).len() <= nodes.len());
            let mut ascending: Vec<f64> = medians.iter().map(|node| node.median).collect();
            ascending.sort_unstable_by(f64::total_cmp);
            let settings = bimodal::BimodalSettings { delta, min_nodes: 0 };
            let modes = bimodal::modes(&ascending, &settings);
            prop_assert!(modes.is_none_or(|modes| modes.fast.nodes + modes.slow.nodes == nodes.len()));
            let alarms = drift::alarms(&times, delta, &drift::DriftSettings::default());
            prop_assert!(alarms.len() <= times.len());
            prop_assert!(benjamini_hochberg::adjusted(&times).len() == times.len());
        }
    }
}
