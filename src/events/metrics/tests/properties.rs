//! Properties of all inputs.

use super::{core, metric, skylake, zen2};
use crate::metrics::*;
use pmmpi::counters::count_and_quality::{Gap, Quality, Reading, WhyUnavailable};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn any_input() -> impl Strategy<Value = MetricInput> {
    let gaps = prop::option::of(prop_oneof![
        Just(Gap::UserModeOnly),
        Just(Gap::Denied(1)),
        Just(Gap::Unsupported(2)),
        Just(Gap::Unavailable(WhyUnavailable::Busy)),
    ]);
    let count = prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0u64..1 << 40];
    (count, any::<u32>(), any::<u32>(), gaps).prop_map(|(count, enabled, running, gap)| {
        let reading = Reading { count, enabled_ns: enabled.into(), running_ns: running.into(), gap };
        MetricInput::reading(&reading, 1.0)
    })
}

fn any_inputs() -> impl Strategy<Value = MetricInputs> {
    let names: Vec<String> =
        catalogue().tables.iter().flat_map(|table| table.names.keys().cloned()).collect();
    let quantities: Vec<String> =
        catalogue().quantities.iter().map(|quantity| quantity.name.clone()).collect();
    let counts = prop::collection::vec((prop::sample::select(names), any_input()), 0..80);
    let quantity = prop_oneof![any::<f64>(), Just(0.0), 1e-6f64..1e12];
    let quantities = prop::collection::vec((prop::sample::select(quantities), quantity), 0..12);
    (counts, quantities).prop_map(|(counts, quantities)| {
        let inputs =
            counts.into_iter().fold(MetricInputs::new(), |inputs, (name, input)| inputs.with(&name, input));
        quantities.into_iter().fold(inputs, |inputs, (name, value)| inputs.with_quantity(&name, value))
    })
}

fn any_cpu() -> impl Strategy<Value = CpuKind> {
    let known: Vec<Range> = catalogue().tables.iter().flat_map(|table| table.cpus.clone()).collect();
    let known = prop::sample::select(known).prop_map(|range| CpuKind {
        vendor: range.vendor,
        family: range.family,
        model: range.models[1],
    });
    let any = (".*", any::<u32>(), any::<u32>());
    let any = any.prop_map(|(vendor, family, model)| CpuKind { vendor, family, model });
    prop_oneof![4 => known, 1 => any]
}

proptest! {
    /// Every metric has either a finite value and a quality that allows one, or no value and a reason.
    #[test]
    fn evaluation_is_total(cpu in any_cpu(), inputs in any_inputs()) {
        let values = evaluate(&cpu, &inputs);
        prop_assert_eq!(values.len(), catalogue().metrics.len());
        for value in values {
            prop_assert_eq!(value.value().is_some(), value.quality().has_value());
            prop_assert!(value.value().is_none_or(f64::is_finite));
            if value.value().is_none() {
                prop_assert!(value.reason().is_some_and(|reason| !reason.is_empty()));
                prop_assert!(!value.supports_verdict());
            }
            if value.quality() != Quality::Exact {
                prop_assert!(value.reason().is_some());
            }
        }
        prop_assert_eq!(judge(&cpu, &inputs).len(), catalogue().rules.len());
    }

    /// No metric has a better quality than a count in its formula.
    #[test]
    fn quality_never_improves(cpu in any_cpu(), inputs in any_inputs()) {
        let table = catalogue().table(&cpu).unwrap();
        for value in evaluate(&cpu, &inputs) {
            let mut names = BTreeSet::new();
            // A given count hides the definition of its name, unless it has no value.
            let mut todo = vec![&value.metric.formula];
            while let Some(formula) = todo.pop() {
                for name in formula.names() {
                    let count = inputs.count(name);
                    let is_hidden = count.is_some_and(|count| count.value.is_some());
                    match table.meaning(name) {
                        Some(Meaning::Formula { formula, .. })
                            if !is_hidden && (count.is_some() || inputs.quantity(name).is_none()) =>
                        {
                            todo.push(formula)
                        }
                        _ if count.is_some() => _ = names.insert(name.clone()),
                        _ => {}
                    }
                }
            }
            for name in names {
                let of_count = inputs.count(&name).unwrap();
                if value.value().is_some() {
                    prop_assert_eq!(worse(value.quality(), of_count.quality), value.quality(), "{}", name);
                    let share = value.result.as_ref().unwrap().running_share;
                    prop_assert!(of_count.running_share.is_none_or(|of| share.unwrap() <= of));
                }
            }
        }
    }

    #[test]
    fn sums_of_counts_are_no_better_than_their_parts(a in any_input(), b in any_input()) {
        let sum = a.clone().plus(b.clone());
        prop_assert_eq!(sum.quality, worse(a.quality, b.quality));
        prop_assert_eq!(sum.value.is_some(), sum.quality.has_value());
        prop_assert_eq!(sum.quality, b.plus(a).quality);
    }

    /// The split returns the busy parts, and the bounds enclose them.
    #[test]
    fn the_split_is_exact_and_within_the_bounds(parts in prop::array::uniform4(0u64..1 << 40)) {
        prop_assume!(parts.iter().sum::<u64>() > 0);
        let inputs = core(parts);
        let tsc = inputs.quantity("tsc").unwrap();
        let share = |name: &str| metric(&skylake(), &inputs, name).value().unwrap();
        for (name, part) in ["smt_both", "smt_a_alone", "smt_b_alone", "smt_neither"].iter().zip(parts) {
            prop_assert_eq!(share(name), part as f64 / tsc);
        }
        let both = parts[0] as f64 / tsc;
        prop_assert!(share("smt_both_lower") <= both && both <= share("smt_both_upper"));
    }

    /// Samples of any period give what the events themselves would.
    #[test]
    fn weights_cancel(samples in 1u64..1 << 20, period in 1u64..1 << 20, other in 1u64..1 << 20) {
        let ratio = |cycles, instructions| {
            let inputs = MetricInputs::new().with("cycles", cycles).with("instructions", instructions);
            metric(&zen2(), &inputs, "ipc").value().unwrap()
        };
        let sampled = ratio(MetricInput::samples(samples, period), MetricInput::samples(samples, other));
        prop_assert_eq!(sampled, ratio(MetricInput::exact(samples * period), MetricInput::exact(samples * other)));
    }
}
