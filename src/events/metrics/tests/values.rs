//! Values, their quality, and why a value is missing.

use super::{exact, metric, sapphire_rapids, skylake, zen2};
use crate::metrics::*;
use pmmpi::counters::count_and_quality::{Gap, Quality, Reading, WhyUnavailable};

#[test]
fn events_add_up_in_their_unit() {
    let reading = Reading { count: 10, enabled_ns: 1, running_ns: 1, gap: None };
    let mut inputs = MetricInputs::new().with_quantity("elapsed_s", 2.0);
    inputs.add("system_read_bytes", MetricInput::reading(&reading, 64.0));
    inputs.add("system_read_bytes", MetricInput::reading(&reading, 64.0));
    // A given count is used, although the table `any` cannot compute this name.
    assert_eq!(metric(&CpuKind::default(), &inputs, "read_bandwidth").value(), Some(640.0));
}

#[test]
fn a_write_moves_16_bytes_on_family_10h_and_8_on_k8() {
    let inputs = exact(&[("system_writes", 1000)]).with_quantity("elapsed_s", 2.0);
    let rate = |cpu| metric(&cpu, &inputs, "write_bandwidth").value();
    assert_eq!(rate(CpuKind::amd(0x10, 2)), Some(8000.0));
    assert_eq!(rate(CpuKind::amd(0x0f, 2)), Some(4000.0));
}

#[test]
fn frequencies_and_utilisation_are_mccalpins() {
    // Two threads on a 2.1 GHz processor for 1 s, halted for a fifth of it, at 3.5 GHz otherwise.
    let inputs =
        exact(&[("ref_cycles", 3_360_000_000), ("cycles", 5_600_000_000), ("instructions", 2_800_000_000)])
            .with("task_clock_ns", MetricInput::exact(2_000_000_000))
            .with_quantity("tsc_hz", 2.1e9)
            .with_quantity("expected_instructions", 2e9);
    let value = |name| metric(&skylake(), &inputs, name).value().unwrap();
    assert_eq!(value("utilisation"), 0.8);
    assert_eq!(value("frequency_active"), 3.5e9);
    assert!((value("frequency_net") - 2.8e9).abs() < 1.0);
    assert_eq!(value("ipc"), 0.5);
    assert_eq!(value("instructions_to_expected"), 1.4);
    // base_hz is the TSC's rate unless it is given.
    let inputs = inputs.with_quantity("base_hz", 2.0e9);
    assert!((metric(&skylake(), &inputs, "frequency_active").value().unwrap() - 1e10 / 3.0).abs() < 1.0);
}

#[test]
fn what_is_missing_says_which_and_why() {
    let refused = Reading::missing(Gap::Unsupported(libc::ENOENT));
    let inputs = exact(&[("cycles", 10)])
        .with("ref_cycles", MetricInput::reading(&refused, 1.0))
        .with("instructions_kernel", MetricInput::reading(&Reading::missing(Gap::Denied(libc::EACCES)), 1.0))
        .with("instructions", MetricInput::exact(0));
    let utilisation = metric(&skylake(), &inputs, "utilisation");
    assert_eq!((utilisation.value(), utilisation.quality()), (None, Quality::Unsupported));
    assert!(utilisation.reason().unwrap().starts_with("ref_cycles: not counted by this processor"));
    assert!(!utilisation.supports_verdict());
    let kernel = metric(&zen2(), &inputs, "kernel_instruction_share");
    assert_eq!(kernel.quality(), Quality::Denied);
    assert!(kernel.reason().unwrap().contains("paranoid"));
    let reason = |name| metric(&zen2(), &inputs, name).reason().unwrap();
    assert_eq!(reason("cpi"), "the count of instructions is 0");
    assert_eq!(Lack::Nothing("ref_cycles".to_owned()).to_string(), "the count of ref_cycles is 0");
    assert_eq!(reason("branch_rate"), "branches: the run did not count this event");
    let ranks = inputs.clone().with_quantity("ranks", 1.0);
    let seconds = metric(&zen2(), &ranks, "seconds_by_cycles").reason().unwrap();
    assert_eq!(
        seconds,
        "no value for tsc_hz (Rate of the TSC. On Arm, this has no value: Arm has no TSC, and the rate of Arm's \
         generic timer is unrelated to the clock of the cores)"
    );
    assert!(reason("smt_both").starts_with("Zen has no event that counts the cycles in which at least one"));
    assert_eq!(reason("smt_both_upper"), "ref_cycles_a: the run did not count this event");
    assert!(reason("sp_flops_rate").contains("together"));
    let zero = inputs.with("branches", MetricInput::exact(1)).with_quantity("elapsed_s", 0.0);
    assert_eq!(metric(&zen2(), &zero, "context_switch_rate").value(), None);
    let zero = zero.with("context_switches", MetricInput::exact(3));
    assert_eq!(metric(&zen2(), &zero, "context_switch_rate").reason().unwrap(), "elapsed_s is 0");
    // The table `any` has no events of the L3 cache.
    assert!(matches!(metric(&CpuKind::default(), &zero, "l3_miss_ratio").result, Err(Lack::NotHere(_))));
}

#[test]
fn a_value_is_as_good_as_its_worst_count() {
    let reading = |running_ns| Reading { count: 500, enabled_ns: 100, running_ns, gap: None };
    let part = Reading { gap: Some(Gap::UserModeOnly), ..reading(100) };
    let ipc = |cycles: &Reading, instructions: &Reading| {
        let inputs = MetricInputs::new()
            .with("cycles", MetricInput::reading(cycles, 1.0))
            .with("instructions", MetricInput::reading(instructions, 1.0));
        metric(&zen2(), &inputs, "ipc")
    };
    let exact = ipc(&reading(100), &reading(100));
    assert_eq!((exact.quality(), exact.value(), exact.reason()), (Quality::Exact, Some(1.0), None));
    assert!(exact.supports_verdict());
    let scaled = ipc(&reading(100), &reading(25));
    assert_eq!((scaled.quality(), scaled.value()), (Quality::Scaled, Some(4.0)));
    assert!(
        scaled.reason().unwrap().starts_with("instructions: counted 25.0 %") && scaled.supports_verdict()
    );
    let little = ipc(&reading(10), &reading(25));
    assert_eq!(little.result.as_ref().unwrap().running_share, Some(0.1));
    assert!(!little.supports_verdict() && little.value().is_some());
    assert!(ipc(&reading(20), &reading(20)).supports_verdict());
    let partial = ipc(&part, &reading(50));
    assert_eq!(partial.quality(), Quality::Partial);
    assert!(partial.reason().unwrap().starts_with("cycles: user mode only"));
    let gone = ipc(&Reading::missing(Gap::Unavailable(WhyUnavailable::NoSnapshot)), &part);
    assert_eq!((gone.quality(), gone.value()), (Quality::Unavailable, None));
}

#[test]
fn ranks_add_up_and_one_without_a_count_leaves_none() {
    let counted = |count, running_ns| Reading { count, enabled_ns: 100, running_ns, gap: None };
    let sum = MetricInput::reading(&counted(10, 100), 1.0).plus(MetricInput::reading(&counted(10, 50), 1.0));
    assert_eq!((sum.value, sum.quality, sum.running_share), (Some(30.0), Quality::Scaled, Some(0.5)));
    let gap = MetricInput::reading(&Reading::missing(Gap::Unavailable(WhyUnavailable::NoSnapshot)), 1.0);
    let sum = sum.plus(gap);
    assert_eq!((sum.value, sum.quality), (None, Quality::Unavailable));
    assert!(sum.reason.unwrap().contains("did not complete"));
}

#[test]
fn samples_weigh_their_period() {
    let inputs = MetricInputs::new()
        .with("instructions", MetricInput::samples(100, 500_000))
        .with("branches_mispredicted", MetricInput::samples(20, 50_000));
    let rate = metric(&zen2(), &inputs, "branch_misprediction_rate");
    assert_eq!((rate.value(), rate.quality()), (Some(0.02), Quality::Scaled));
}

fn judged(inputs: &MetricInputs, code: &str) -> RuleJudgement {
    judge(&skylake(), inputs).into_iter().find(|(rule, _)| rule.code == code).unwrap().1
}

#[test]
fn short_sections_are_discarded_for_any_kernel_instruction_and_long_ones_flagged_above_one_percent() {
    let section = |elapsed_s, kernel, all| {
        exact(&[
            ("instructions_kernel", kernel),
            ("instructions", all),
            ("cycles_kernel", 0),
            ("cycles", all),
        ])
        .with_quantity("elapsed_s", elapsed_s)
        .with_quantity("counting_instructions_kernel", 0.0)
        .with_quantity("counting_cycles_kernel", 0.0)
    };
    let short = |inputs: &MetricInputs| judged(inputs, "kernel-instructions-in-short-section");
    let long = |inputs: &MetricInputs| judged(inputs, "kernel-instruction-share");
    let one = section(0.000_999, 1, 1_000_000);
    assert_eq!((short(&one), long(&one)), (RuleJudgement::Raised, RuleJudgement::Clear));
    assert_eq!(judged(&one, "kernel-cycles-in-short-section"), RuleJudgement::Clear);
    assert_eq!(short(&section(0.000_999, 0, 1_000_000)), RuleJudgement::Clear);
    // The kernel also reads the counters.
    let read = |kernel| {
        let counts = section(0.000_999, kernel, 1_000_000);
        short(&counts.with_quantity("counting_instructions_kernel", 1000.0))
    };
    assert_eq!((read(1100), read(1101)), (RuleJudgement::Clear, RuleJudgement::Raised));
    let one = section(0.001, 1, 1_000_000);
    assert_eq!((short(&one), long(&one)), (RuleJudgement::Clear, RuleJudgement::Clear));
    assert_eq!(long(&section(1.0, 10_000, 1_000_000)), RuleJudgement::Clear);
    assert_eq!(long(&section(1.0, 10_001, 1_000_000)), RuleJudgement::Raised);
    let discards = |code: &str| catalogue().rules.iter().find(|rule| rule.code == code).unwrap().discards;
    assert!(discards("kernel-cycles-in-short-section") && !discards("kernel-cycle-share"));
    // If the user may not count the kernel, the rule is unknown.
    let denied = MetricInput::reading(&Reading::missing(Gap::Denied(libc::EACCES)), 1.0);
    let unknown = MetricInputs::new().with("instructions_kernel", denied).with_quantity("elapsed_s", 1e-4);
    let unknown = unknown.with_quantity("counting_instructions_kernel", 0.0);
    assert!(matches!(short(&unknown), RuleJudgement::Unknown(Lack::Unmeasured { .. })));
    assert_eq!(long(&unknown), RuleJudgement::Clear);
}

/// McCalpin's ratios: utilisation 0.94, one thread on the processor for 94 % of the time, and a frequency 6 % too low.
#[test]
fn ratios_that_are_not_close_to_1_raise_flags() {
    let section = |ref_cycles, cycles, task_clock_ns| {
        exact(&[("ref_cycles", ref_cycles), ("cycles", cycles), ("task_clock_ns", task_clock_ns)])
            .with_quantity("elapsed_s", 1.0)
            .with_quantity("ranks", 1.0)
            .with_quantity("base_hz", 2.1e9)
    };
    let raised = |inputs: &MetricInputs| -> Vec<&str> {
        let codes = ["low-utilisation", "waiting-threads", "below-nominal-frequency"];
        codes.into_iter().filter(|code| judged(inputs, code) == RuleJudgement::Raised).collect()
    };
    assert_eq!(raised(&section(2_100_000_000, 2_100_000_000, 1_000_000_000)), Vec::<&str>::new());
    assert_eq!(raised(&section(1_995_000_001, 3_500_000_000, 950_000_000)), Vec::<&str>::new());
    assert_eq!(raised(&section(1_974_000_000, 3_500_000_000, 1_000_000_000)), ["low-utilisation"]);
    assert_eq!(raised(&section(1_974_000_000, 3_500_000_000, 940_000_000)), ["waiting-threads"]);
    assert_eq!(raised(&section(2_100_000_000, 1_974_000_000, 1_000_000_000)), ["below-nominal-frequency"]);
}

#[test]
fn the_split_needs_the_union_and_says_where_it_contradicts_itself() {
    // A 2.1 GHz Skylake counts the union with its 25 MHz crystal: 84 TSC cycles per count (McCalpin).
    let skylake_core = exact(&[("ref_cycles_a", 84 * 60), ("ref_cycles_b", 84 * 50), ("ref_xclk_any", 80)])
        .with_quantity("tsc", 84.0 * 100.0)
        .with_quantity("tsc_hz", 2.1e9);
    let share = |cpu: &CpuKind, inputs: &MetricInputs, name| metric(cpu, inputs, name).value().unwrap();
    let names = ["smt_both", "smt_a_alone", "smt_b_alone", "smt_neither"];
    let split = |cpu: &CpuKind, inputs: &MetricInputs| names.map(|name| share(cpu, inputs, name));
    assert_eq!(split(&skylake(), &skylake_core), [0.3, 0.3, 0.2, 0.2]);
    // Later processors split the union among the siblings.
    let later = exact(&[("ref_cycles_a", 84 * 60), ("ref_cycles_b", 84 * 50)])
        .with("ref_distributed_a", MetricInput::exact(45))
        .with("ref_distributed_b", MetricInput::exact(35))
        .with_quantity("tsc", 84.0 * 100.0)
        .with_quantity("tsc_hz", 2.1e9);
    let reason = metric(&sapphire_rapids(), &later, "smt_both").reason().unwrap();
    assert!(reason.contains("crystal"), "{reason}");
    let later = later.with_quantity("crystal_hz", 25e6);
    assert_eq!(split(&sapphire_rapids(), &later), [0.3, 0.3, 0.2, 0.2]);
    // ref_cycles_core below the larger count, and above the sum of both.
    for union in [59, 111] {
        let wrong = exact(&[("ref_cycles_a", 60), ("ref_cycles_b", 50), ("ref_cycles_core", union)])
            .with_quantity("tsc", 200.0);
        let both = metric(&skylake(), &wrong, "smt_both");
        assert!(matches!(both.result, Err(Lack::Contradiction(_))), "{union}");
        let slack = wrong.with_quantity("smt_slack", 0.02);
        assert!(metric(&skylake(), &slack, "smt_both").value().is_some(), "{union}");
    }
}

/// McCalpin-2018-09: on a Xeon E5-2680 of 2.7 GHz, the reference cycles grow "by 27 once every 10 ns", and REF_XCLK counts
/// "at the rate of the 100 MHz XCLK (not scaled!)"; on Nehalem, "No additional scaling needed".
#[test]
fn the_union_is_scaled_by_the_base_ratio_before_skylake() {
    let names = ["smt_both", "smt_a_alone", "smt_b_alone", "smt_neither"];
    let split = |model: u32, event: &str, per_count: u64, tsc_hz: f64| {
        // Busy for 60 % and 50 % of 1000 bus cycles; one of them or both for 80 %.
        let inputs =
            exact(&[("ref_cycles_a", per_count * 600), ("ref_cycles_b", per_count * 500), (event, 800)])
                .with_quantity("tsc", per_count as f64 * 1000.0)
                .with_quantity("tsc_hz", tsc_hz);
        names.map(|name| metric(&CpuKind::intel(model), &inputs, name).value().unwrap())
    };
    let expected = [0.3, 0.3, 0.2, 0.2];
    assert_eq!(split(0x2d, "ref_xclk_any", 27, 2.7e9), expected);
    // The clock of 100 MHz is seldom exact, but the ratio is.
    for model in [0x2a, 0x2d, 0x3a, 0x3e, 0x3c, 0x3f, 0x3d, 0x4f, 0x56] {
        assert_eq!(split(model, "ref_xclk_any", 27, 2.6935e9), expected, "{model:#x}");
    }
    // The Xeon Phi 7250 has 1.4 GHz.
    assert_eq!(split(0x57, "ref_bus_any", 14, 1.3999e9), expected);
    assert_eq!(split(0x2c, "ref_cycles_core", 1, 2.93e9), expected);
}

/// Intel's list says that REF_P counts 133 MHz on Nehalem. If that holds, there is no value, and none that is wrong.
#[test]
fn a_nehalem_that_counts_a_slower_clock_has_no_split() {
    // 22 TSC cycles for each cycle of 133 MHz at 2.93 GHz.
    let inputs = exact(&[("ref_cycles_a", 22 * 600), ("ref_cycles_b", 22 * 500), ("ref_cycles_core", 800)]);
    let both = metric(&CpuKind::intel(0x1a), &inputs.with_quantity("tsc", 22_000.0), "smt_both");
    assert!(matches!(both.result, Err(Lack::Contradiction(_))));
}

/// A socket of 150 W and its DRAM of 20 W for two seconds; two sockets.
#[test]
fn power_is_of_one_socket() {
    let joules = |of_socket: f64| MetricInput { value: Some(2.0 * of_socket), ..MetricInput::exact(0) };
    let inputs = MetricInputs::new()
        .with("package_energy_j", joules(300.0))
        .with("dram_energy_j", joules(40.0))
        .with_quantity("elapsed_s", 2.0)
        .with_quantity("sockets", 2.0);
    let of = |cpu: &CpuKind, name| metric(cpu, &inputs, name).value();
    assert_eq!((of(&skylake(), "socket_power"), of(&skylake(), "dram_power")), (Some(150.0), Some(20.0)));
    let none = MetricInputs::new();
    let lacks = |cpu: &CpuKind, name| metric(cpu, &none, name).reason().unwrap();
    assert!(lacks(&zen2(), "dram_power").contains("do not count the energy of the DRAM"));
    assert!(lacks(&CpuKind::intel(0x1a), "socket_power").contains("only Sandy Bridge and later"));
    assert!(lacks(&sapphire_rapids(), "throttled_cycle_share").contains("Ice Lake-SP"));
}

/// AMD-2008: "a DTLB miss rate of 0.01 (100 retired instructions per DTLB miss) is clearly too high", its example of a
/// sequential walk has 4,096 instructions per miss; "1,000 cache misses per 1,000,000 retired instructions is not a
/// problem, but 1,000 cache misses per 10,000 retired instructions is a major problem".
#[test]
fn amds_thresholds_raise_flags() {
    let of = |instructions, misses| {
        exact(&[
            ("instructions", instructions),
            ("dtlb_l1_miss_l2_miss", misses),
            ("dtlb_l1_miss_l2_hit", 0),
            ("dc_misses", misses),
        ])
        .with_quantity("elapsed_s", 1.0)
    };
    let (tlb, cache) = ("many-dtlb-misses", "many-data-cache-misses");
    assert_eq!(judged(&of(100, 1), tlb), RuleJudgement::Raised);
    assert_eq!(judged(&of(4_096, 1), tlb), RuleJudgement::Clear);
    assert_eq!(judged(&of(10_000, 1_000), cache), RuleJudgement::Raised);
    assert_eq!(judged(&of(1_000_000, 1_000), cache), RuleJudgement::Clear);
    let walk = metric(&skylake(), &of(4_096, 1), "instructions_per_dtlb_l2_miss");
    assert_eq!(walk.value(), Some(4096.0));
    // A run that does not count them raises nothing.
    let none = MetricInputs::new().with_quantity("elapsed_s", 1.0);
    assert!(matches!(judged(&none, tlb), RuleJudgement::Unknown(_)));
}

/// AMD-2008 4.3.4: "A high L3 cache miss rate"; each core counts its own misses.
#[test]
fn the_l3_cache_is_counted_by_core() {
    let inputs = exact(&[("instructions", 1000), ("dc_refills_l3", 30), ("dc_refills_beyond_l3", 10)]);
    for cpu in [skylake(), CpuKind::amd(0x19, 1), CpuKind::intel(0x3f), CpuKind::intel(0x1a)] {
        let of = |name| metric(&cpu, &inputs, name).value();
        let values = [of("l3_data_request_rate"), of("l3_data_miss_rate"), of("l3_data_miss_ratio")];
        assert_eq!(values, [Some(0.04), Some(0.01), Some(0.25)], "{cpu:?}");
    }
    let later = metric(&CpuKind::amd(0x10, 2), &MetricInputs::new(), "l3_data_miss_ratio").reason().unwrap();
    assert!(later.contains("must select all cores"), "{later}");
}

#[test]
fn zen_has_bounds_that_are_called_so() {
    let inputs = exact(&[("ref_cycles_a", 700), ("ref_cycles_b", 600)]).with_quantity("tsc", 1000.0);
    let both = metric(&zen2(), &inputs, "smt_both");
    assert!(matches!(both.result, Err(Lack::NotHere(_))) && both.reason().unwrap().contains("bounds"));
    let lower = metric(&zen2(), &inputs, "smt_both_lower");
    let upper = metric(&zen2(), &inputs, "smt_both_upper");
    assert_eq!((lower.value(), upper.value()), (Some(0.3), Some(0.6)));
    assert!(lower.metric.text.starts_with("Lower bound") && upper.metric.text.starts_with("Upper bound"));
}
