//! The mathematics of verdicts, on slices of numbers: no data frame, no file, no clock, no thread.
//!
//! Unless a comment says otherwise, times are natural logarithms of seconds, so a difference of two times
//! stands for a ratio. Reports show a fraction, exp(difference) - 1. The same input gives the same bits.
//!
//! ```
//! use pmmpi_analysis::stats::{class_runs::ClassRuns, node_median, resolution, slow_runs, verdict_rule, within_nodes};
//! // Three nodes of seven runs each; ln seconds, node after node, and where each node ends.
//! let seconds = |run| if run < 14 { 1.0 } else { 1.08f64 } + 1e-4 * f64::from(run % 7);
//! let times: Vec<f64> = (0..21).map(|run| f64::ln(seconds(run))).collect();
//! let class = ClassRuns::new(&times, &[7, 14, 21]).expect("every node has runs");
//! let medians = node_median::of_nodes(&class); // median run and its interval
//! let sigma = within_nodes::sigma(&class, &medians); // of runs within nodes
//! let variance = |runs| Some(within_nodes::variance_factor(runs) * sigma?.powi(2));
//! let node = |node: &node_median::NodeMedian| verdict_rule::MeasuredNode::new(node, variance(node.runs));
//! let nodes: Vec<_> = medians.iter().map(node).collect();
//! let units = resolution::Units::default(); // the times are exact
//! let judged = verdict_rule::judge(&nodes, &units, &verdict_rule::VerdictSettings::default());
//! assert_eq!(judged[2].verdict, Some(verdict_rule::Verdict::SlowTail)); // too small a class for SLOW
//! let slow = sigma.map(|sigma| slow_runs::slow(&class, &medians, sigma, &units, &slow_runs::SlowRunSettings::default()));
//! assert_eq!(slow, Some(vec![]));
//! ```
//!
//! | module | answers |
//! |---|---|
//! | [`class_runs`] | which runs belong to which node: the input |
//! | [`node_median`] | a node's median run, and the interval of its median |
//! | [`within_nodes`] | how much runs of one node differ, pooled over its class |
//! | [`qn_scale`] | how much nodes of a class differ |
//! | [`resolution`] | to which unit times were rounded, and what rounding cannot explain |
//! | [`rounds`] | what all runs of a round, or of a session, have in common |
//! | [`time_order`] | whether times depend on when they were measured |
//! | [`class_model`] | how much healthy nodes differ, and how sure it is that a node is slow |
//! | [`verdict_rule`] | the verdict on each node |
//! | [`run_law`], [`slow_runs`] | which runs are slow |
//! | [`slow_places`] | at which cores, sockets or ranks of a node a run differs |
//! | [`flaky`] | which nodes have too many slow runs |
//! | [`own_history`] | which nodes are slower or faster than they were, and since when |
//! | [`two_sets`] | how much longer one set of runs takes than another, and the smallest visible difference |
//! | [`drift`] | which nodes became slower over their sessions, and since when |
//! | [`bimodal`] | whether a class consists of two kinds of nodes |
//! | [`noise`] | whether the times are precise enough to show an effect |
//! | [`node_counts`], [`terms`], [`term_parts`] | the parts of a slowdown, from counters |
//! | [`cause`] | why a node is slow |
//! | [`goes_with_slowness`] | which counters, metrics and facts are higher or lower in slow runs, or on slow nodes |
//! | [`health`] | whether a node has an unusually high count of throttling, errors or other faults |
//! | [`normal`], [`chi_squared`], [`binomial`], [`poisson`], [`benjamini_hochberg`] | probabilities, and p values of many tests |
//! | [`ranks`] | ranks, and scores of ranks |
//! | [`random`] | numbers for simulations |
//!
//! The code cites the source of each formula. docs/method.md lists the formulas together, and
//! docs/simulation.md shows how often the results are right.

pub mod benjamini_hochberg;
pub mod bimodal;
pub mod binomial;
pub mod cause;
pub mod chi_squared;
pub mod class_model;
pub mod class_runs;
pub mod drift;
pub mod flaky;
pub mod goes_with_slowness;
pub mod health;
pub mod node_counts;
pub mod node_median;
pub mod noise;
pub mod normal;
pub mod own_history;
pub mod poisson;
pub mod qn_scale;
pub mod random;
pub mod ranks;
pub mod resolution;
pub mod rounds;
pub mod run_law;
pub mod slow_places;
pub mod slow_runs;
pub mod term_parts;
pub mod terms;
pub mod time_order;
pub mod two_sets;
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
            let medians = node_median::of_nodes(&class);
            let sigma = within_nodes::sigma(&class, &medians);
            let variance = sigma.map(|sigma| sigma * sigma);
            let nodes: Vec<_> =
                medians.iter().map(|node| verdict_rule::MeasuredNode::new(node, variance)).collect();
            let unit = Some(delta).filter(|unit| *unit > 0.0);
            let units = resolution::Units { class: unit, coarser: unit.map(|unit| (0, 2.0 * unit)).into_iter().collect() };
            let settings = verdict_rule::VerdictSettings { q, delta, ..verdict_rule::VerdictSettings::default() };
            prop_assert_eq!(verdict_rule::judge(&nodes, &units, &settings).len(), nodes.len());
            let settings = slow_runs::SlowRunSettings { q, delta, ..slow_runs::SlowRunSettings::default() };
            let slow = slow_runs::slow(&class, &medians, sigma.unwrap_or(delta), &units, &settings);
            prop_assert!(slow.len() <= times.len());
            let round: Vec<u32> = (0..times.len() as u32).map(|run| run % 7).collect();
            let of_nodes = medians.iter().map(|node| node.median);
            let effects = rounds::effects(&class, of_nodes, &round, 7, &[], sigma.unwrap_or(q), &rounds::RoundSettings::default());
            prop_assert!(effects.is_empty() || effects.len() == 7);
            time_order::rank_ratio(&times);
            time_order::dependence(class.nodes(), sigma.unwrap_or(q).abs());
            resolution::Units::of(&times, &ends);
            let mut ascending: Vec<f64> = medians.iter().map(|node| node.median).collect();
            ascending.sort_unstable_by(f64::total_cmp);
            let settings = bimodal::BimodalSettings { delta, min_nodes: 0, min_part: 0 };
            let modes = bimodal::modes(&ascending, unit, &settings);
            prop_assert!(modes.is_none_or(|modes| modes.fast.nodes + modes.slow.nodes == nodes.len()));
            let alarms = drift::alarms(&times, delta, &drift::DriftSettings::default());
            prop_assert!(alarms.len() <= times.len());
            prop_assert!(benjamini_hochberg::adjusted(&times).len() == times.len());
        }
    }
}
