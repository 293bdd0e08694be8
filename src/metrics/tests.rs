use super::*;
use crate::counters::reading::{Cause, Gap, Quality, Reading};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn zen2() -> CpuKind {
    CpuKind::amd(0x17, 0x31)
}

fn skylake() -> CpuKind {
    CpuKind::intel(0x55)
}

fn sapphire_rapids() -> CpuKind {
    CpuKind::intel(0x8f)
}

fn metric(cpu: &CpuKind, inputs: &Inputs, name: &str) -> MetricValue {
    evaluate(cpu, inputs).into_iter().find(|value| value.metric.name == name).expect(name)
}

fn exact(counts: &[(&str, u64)]) -> Inputs {
    counts.iter().fold(Inputs::new(), |inputs, (name, count)| inputs.with(name, Input::exact(*count)))
}

/// The names of a formula and of what its names stand for.
fn all_names(formula: &Formula, table: &Table, names: &mut BTreeSet<String>) {
    for name in formula.names() {
        names.insert(name.clone());
        let default = catalogue().quantity(name).and_then(|quantity| quantity.default.as_ref());
        match (table.meaning(name), default) {
            (Some(Meaning::Formula { formula, .. }), _) | (None, Some(formula)) => {
                all_names(formula, table, names);
            }
            _ => {}
        }
    }
}

#[test]
fn every_name_in_every_formula_is_known_on_every_processor() {
    let catalogue = catalogue();
    assert!(catalogue.metrics.len() > 70 && catalogue.tables.len() == 12);
    for table in &catalogue.tables {
        let mut names = BTreeSet::new();
        let conditions = catalogue.metrics.iter().flat_map(|metric| &metric.checks);
        let conditions = conditions.chain(catalogue.rules.iter().flat_map(|rule| &rule.when));
        let sides = conditions.flat_map(Condition::sides);
        let defined = table.names.values().filter_map(|meaning| match meaning {
            Meaning::Formula { formula, .. } => Some(formula),
            _ => None,
        });
        let metrics = catalogue.metrics.iter().map(|metric| &metric.formula);
        for formula in metrics.chain(sides).chain(defined) {
            all_names(formula, table, &mut names);
        }
        for name in names {
            let known = table.meaning(&name).is_some() || catalogue.quantity(&name).is_some();
            assert!(known, "{}: {name}", table.name);
        }
    }
}

#[test]
fn the_catalogue_is_in_order() {
    let catalogue = catalogue();
    let unique = |names: Vec<&str>| assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len());
    unique(catalogue.metrics.iter().map(|metric| metric.name.as_str()).collect());
    unique(catalogue.rules.iter().map(|rule| rule.code.as_str()).collect());
    unique(catalogue.tables.iter().map(|table| table.name.as_str()).collect());
    unique(catalogue.quantities.iter().map(|quantity| quantity.name.as_str()).collect());
    let is_group = |name: &String| catalogue.groups.iter().any(|group| group.name == *name);
    let is_table = |name: &String| catalogue.tables.iter().any(|table| table.name == *name);
    let sources: Vec<&str> = catalogue.sources.iter().map(|source| source.key.as_str()).collect();
    let cites = |text: &str| sources.iter().any(|source| text.starts_with(source));
    for metric in &catalogue.metrics {
        assert!(!metric.groups.is_empty() && metric.groups.iter().all(is_group), "{}", metric.name);
        assert!(metric.cpus.iter().all(is_table), "{}", metric.name);
        assert!(cites(&metric.source), "{}: {}", metric.name, metric.source);
        assert!(!metric.unit.is_empty() && !metric.text.contains('\n'), "{}", metric.name);
    }
    let cited = catalogue.rules.iter().map(|rule| &rule.source);
    let cited = cited.chain(catalogue.tables.iter().map(|table| &table.source));
    let cited = cited.chain(catalogue.quantities.iter().filter_map(|quantity| quantity.source.as_ref()));
    cited.for_each(|source| assert!(cites(source), "{source}"));
    for group in
        ["default", "efficiency", "frequency", "cache", "tlb", "branch", "fp", "memory", "smt", "noise"]
    {
        for table in &catalogue.tables {
            assert!(
                !catalogue.events_of(group, table).is_empty() || group == "smt" || table.name == "any",
                "{group}"
            );
        }
    }
}

/// Nothing is opened, and nothing explained, that no metric asks for.
#[test]
fn every_name_of_a_table_is_some_metrics() {
    for table in &catalogue().tables {
        let mut names = BTreeSet::new();
        let conditions = catalogue().rules.iter().flat_map(|rule| &rule.when);
        let formulas = catalogue().metrics.iter().flat_map(Metric::formulas);
        for formula in formulas.chain(conditions.flat_map(Condition::sides)) {
            all_names(formula, table, &mut names);
        }
        let unused: Vec<&String> = table.names.keys().filter(|name| !names.contains(*name)).collect();
        assert!(unused.is_empty(), "{}: {unused:?}", table.name);
    }
}

#[test]
fn groups_open_what_their_metrics_need_and_no_more() {
    let events = |cpu: &CpuKind, group| -> Vec<&str> {
        let table = catalogue().table(cpu).unwrap();
        catalogue().events_of(group, table).into_iter().map(|event| event.name.as_str()).collect()
    };
    assert_eq!(events(&zen2(), "efficiency"), ["instructions", "cycles"]);
    // Zen's indirect method lacks the page table walker's requests, so that its other events are of no use.
    assert!(!events(&zen2(), "cache").contains(&"l2_requests_dc"));
    assert!(events(&CpuKind::amd(0x10, 2), "cache").contains(&"l2_requests_tlb"));
    assert_eq!(events(&zen2(), "smt"), ["ref_cycles_a", "ref_cycles_b"]);
    assert_eq!(events(&skylake(), "smt"), ["ref_cycles_a", "ref_cycles_b", "ref_xclk_any"]);
    let distributed = ["ref_cycles_a", "ref_cycles_b", "ref_distributed_a", "ref_distributed_b"];
    assert_eq!(events(&sapphire_rapids(), "smt"), distributed);
    assert!(events(&CpuKind::amd(0x10, 2), "smt").is_empty());
    assert!(events(&CpuKind::default(), "memory").is_empty());
}

#[test]
fn nodes_that_say_nothing_of_their_processor_have_everybodys_table() {
    let mut hardware = crate::node::Hardware {
        cpu_vendor: Some("AuthenticAMD".into()),
        cpu_family: Some(0x17),
        ..Default::default()
    };
    assert_eq!(CpuKind::of_node(&hardware), CpuKind::default());
    hardware.cpu_model = Some(0x31);
    assert_eq!(CpuKind::of_node(&hardware), zen2());
}

#[test]
fn events_add_up_in_their_unit() {
    let encoding = crate::counters::event::Encoding::new(crate::counters::event::kind::RAW, 0);
    let event = crate::counters::event::Event {
        scale: 64.0,
        ..crate::counters::event::Event::counted("system_read_bytes", encoding)
    };
    let reading = Reading { count: 10, enabled_ns: 1, running_ns: 1, gap: None };
    let mut inputs = Inputs::new().with_quantity("elapsed_s", 2.0);
    inputs.add_event(&event, &reading);
    inputs.add_event(&event, &reading);
    // Given under a name that everybody's table cannot compute, it counts.
    assert_eq!(metric(&CpuKind::default(), &inputs, "read_bandwidth").value(), Some(640.0));
}

/// What is counted without asking is what the default group needs.
#[test]
fn the_default_group_is_the_default_set() {
    let everybodys = catalogue().table(&CpuKind::default()).unwrap();
    let needed = catalogue().events_of("default", everybodys);
    let needed: BTreeSet<&str> = needed.into_iter().map(|event| event.name.as_str()).collect();
    let opened = crate::counters::default::groups();
    let opened: BTreeSet<&str> = opened.iter().flatten().map(|event| event.name.as_str()).collect();
    assert_eq!(needed, opened);
}

/// perf(1)'s syntax: a generic name, or a PMU with terms; codes are hexadecimal.
#[test]
fn encodings_can_be_read() {
    for table in &catalogue().tables {
        for meaning in table.names.values() {
            let Meaning::Event(event) = meaning else { continue };
            let encoding = &event.encoding;
            let generic = !encoding.contains('/') && !encoding.contains('=');
            let terms = encoding.split_once('/').and_then(|(pmu, rest)| Some((pmu, rest.rsplit_once('/')?)));
            let raw = terms.is_some_and(|(pmu, (terms, modes))| {
                let is_term = |term: &str| match term.split_once('=') {
                    Some((_, value)) => value
                        .strip_prefix("0x")
                        .map_or(value == "1", |hex| u64::from_str_radix(hex, 16).is_ok()),
                    None => term == "mperf",
                };
                !pmu.is_empty() && terms.split(',').all(is_term) && ["", "k"].contains(&modes)
            });
            assert!(generic || raw, "{}: {encoding}", table.name);
        }
    }
}

#[test]
fn processors_have_their_tables() {
    let name = |cpu: &CpuKind| catalogue().table(cpu).unwrap().name.clone();
    for (cpu, table) in [
        (CpuKind::amd(0x0f, 0x2b), "amd-k8"),
        (CpuKind::amd(0x10, 0x04), "amd-10h"),
        (CpuKind::amd(0x17, 0x01), "amd-zen1"),
        (CpuKind::amd(0x17, 0x71), "amd-zen2"),
        (CpuKind::amd(0x19, 0x01), "amd-zen3"),
        (CpuKind::amd(0x19, 0x50), "amd-zen3"),
        (CpuKind::amd(0x19, 0x11), "amd-zen4"),
        (CpuKind::amd(0x19, 0xa0), "amd-zen4"),
        (CpuKind::amd(0x1a, 0x02), "amd-zen5"),
        (CpuKind::amd(0x1a, 0x50), "any"),
        (CpuKind::intel(0x55), "intel-skylake-sp"),
        (CpuKind::intel(0x6a), "intel-ice-lake-sp"),
        (CpuKind::intel(0x8f), "intel-sapphire-rapids"),
        (CpuKind::intel(0xcf), "intel-sapphire-rapids"),
        (CpuKind::intel(0xad), "intel-granite-rapids"),
        (CpuKind::intel(0x9e), "any"),
        (CpuKind::default(), "any"),
    ] {
        assert_eq!(name(&cpu), table, "{cpu:?}");
    }
    let tables = &catalogue().tables;
    for family in 0..0x20 {
        for model in 0..0x100 {
            for vendor in ["AuthenticAMD", "GenuineIntel"] {
                let cpu = CpuKind { vendor: vendor.into(), family, model };
                let holds = tables.iter().filter(|table| table.cpus.iter().any(|range| range.holds(&cpu)));
                assert!(holds.count() <= 1, "{cpu:?}");
            }
        }
    }
}

/// Table 1 of AMD-2008, the measurements of the sections that it names.
#[test]
fn table_1_is_computed_on_family_10h_and_answered_everywhere() {
    const TABLE_1: [&str; 53] = [
        "ipc",
        "cpi",
        "read_bandwidth",
        "write_bandwidth",
        "dram_bandwidth",
        "dc_request_rate",
        "dc_miss_rate",
        "dc_miss_ratio",
        "ic_request_rate",
        "ic_miss_rate",
        "ic_miss_ratio",
        "l2_request_rate",
        "l2_miss_rate",
        "l2_miss_ratio",
        "l2_request_rate_indirect",
        "l2_miss_rate_indirect",
        "l2_miss_ratio_indirect",
        "l2_instruction_fraction",
        "l2_data_fraction",
        "l2_page_table_fraction",
        "l3_request_rate",
        "l3_miss_rate",
        "l3_miss_ratio",
        "dtlb_l1_request_rate",
        "dtlb_l1_miss_rate",
        "dtlb_l1_miss_ratio",
        "dtlb_l2_request_rate",
        "dtlb_l2_miss_rate",
        "dtlb_l2_miss_ratio",
        "itlb_l1_request_rate",
        "itlb_l1_miss_rate",
        "itlb_l1_miss_ratio",
        "itlb_l2_request_rate",
        "itlb_l2_miss_rate",
        "itlb_l2_miss_ratio",
        "branch_rate",
        "branch_misprediction_rate",
        "branch_misprediction_ratio",
        "branch_taken_rate",
        "branch_taken_ratio",
        "instructions_per_branch",
        "near_return_rate",
        "return_stack_miss_rate",
        "return_stack_misprediction_ratio",
        "instructions_per_call",
        "misaligned_access_rate",
        "misaligned_access_ratio",
        "fpu_op_rate",
        "fp_mmx_rate",
        "sp_flops_rate",
        "dp_flops_rate",
        "overall_fp_exception_rate",
        "fp_exception_rate",
    ];
    for table in &catalogue().tables {
        // Every event of the table comes to 1000.
        let events = table.names.iter().filter(|(_, meaning)| matches!(meaning, Meaning::Event(_)));
        let inputs = events.fold(Inputs::new(), |inputs, (name, _)| inputs.with(name, Input::exact(1000)));
        let inputs = inputs.with_quantity("elapsed_s", 2.0).with_quantity("tsc_hz", 1e9);
        let cpu = table.cpus.first().map_or(CpuKind::default(), |range| CpuKind {
            vendor: range.vendor.clone(),
            family: range.family,
            model: range.models[0],
        });
        let values = evaluate(&cpu, &inputs);
        for name in TABLE_1 {
            let value = values.iter().find(|value| value.metric.name == name).expect(name);
            match &value.result {
                Ok(value) => assert!(value.value > 0.0, "{}: {name}", table.name),
                Err(Lack::NotHere(reason)) => {
                    assert!(!reason.is_empty() && table.name != "amd-10h", "{}: {name}", table.name);
                }
                Err(lack) => panic!("{}: {name}: {lack}", table.name),
            }
        }
    }
}

/// What the note prints for each family, event select and unit mask.
#[test]
fn families_10h_and_k8_have_the_printed_codes() {
    let encoding = |cpu: &CpuKind, name: &str| match catalogue().table(cpu).unwrap().meaning(name) {
        Some(Meaning::Event(event)) => event.encoding.clone(),
        other => panic!("{name}: {other:?}"),
    };
    let (ten, eight) = (CpuKind::amd(0x10, 2), CpuKind::amd(0x0f, 2));
    for (name, select, mask) in [
        ("cycles", 0x76, 0),
        ("instructions", 0xc0, 0),
        ("system_reads", 0x6c, 7),
        ("system_writes", 0x6d, 1),
        ("dc_accesses", 0x40, 0),
        ("dc_refills_l2", 0x42, 0x1e),
        ("dc_refills_system", 0x43, 0x1e),
        ("ic_fetches", 0x80, 0),
        ("ic_refills_l2", 0x82, 0),
        ("ic_refills_system", 0x83, 0),
        ("l2_requests", 0x7d, 7),
        ("l2_misses", 0x7e, 7),
        ("l2_fill_writes", 0x7f, 3),
        ("l2_requests_tlb", 0x7d, 4),
        ("l2_misses_tlb", 0x7e, 4),
        ("itlb_l1_miss_l2_hit", 0x84, 0),
        ("branches", 0xc2, 0),
        ("branches_mispredicted", 0xc3, 0),
        ("branches_taken", 0xc4, 0),
        ("near_returns", 0xc8, 0),
        ("near_returns_mispredicted", 0xc9, 0),
        ("misaligned_accesses", 0x47, 0),
        ("fpu_ops", 0x00, 7),
        ("fpu_exceptions", 0xdb, 0xf),
    ] {
        let printed = match mask {
            0 => format!("cpu/event={select:#04x}/"),
            mask => format!("cpu/event={select:#04x},umask={mask:#04x}/"),
        };
        assert_eq!([encoding(&ten, name), encoding(&eight, name)], [printed.clone(), printed], "{name}");
    }
    // FAMDEP, and what family 10h alone has.
    assert_eq!(encoding(&ten, "dtlb_l1_miss_l2_hit"), "cpu/event=0x45,umask=0x07/");
    assert_eq!(encoding(&eight, "dtlb_l1_miss_l2_hit"), "cpu/event=0x45/");
    assert_eq!(encoding(&ten, "dtlb_l1_miss_l2_miss"), "cpu/event=0x46,umask=0x07/");
    assert_eq!(encoding(&eight, "dtlb_l1_miss_l2_miss"), "cpu/event=0x46/");
    assert_eq!(encoding(&ten, "itlb_l1_miss_l2_miss"), "cpu/event=0x85,umask=0x03/");
    assert_eq!(encoding(&eight, "itlb_l1_miss_l2_miss"), "cpu/event=0x85/");
    assert_eq!(encoding(&ten, "mmx_fp_instructions"), "cpu/event=0xcb,umask=0x07/");
    assert_eq!(encoding(&eight, "mmx_fp_instructions"), "cpu/event=0xcb,umask=0x0f/");
    assert_eq!(encoding(&ten, "dram_accesses_0"), "cpu/event=0xe0,umask=0x07/");
    assert_eq!(encoding(&ten, "dram_accesses_1"), "cpu/event=0xe0,umask=0x38/");
    assert_eq!(encoding(&eight, "dram_accesses"), "cpu/event=0xe0,umask=0x07/");
    assert_eq!(encoding(&ten, "l3_requests"), "cpu/event=0x4e0,umask=0xf7/");
    assert_eq!(encoding(&ten, "l3_misses"), "cpu/event=0x4e1,umask=0xf7/");
    assert_eq!(encoding(&ten, "sp_flops"), "cpu/event=0x03,umask=0x47/");
    assert_eq!(encoding(&ten, "dp_flops"), "cpu/event=0x03,umask=0x78/");
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
    // Two hardware threads of a 2.1 GHz processor for 1 s, halted for a fifth of it, at 3.5 GHz otherwise.
    let inputs =
        exact(&[("ref_cycles", 3_360_000_000), ("cycles", 5_600_000_000), ("instructions", 2_800_000_000)])
            .with_quantity("tsc", 2.1e9)
            .with_quantity("tsc_hz", 2.1e9)
            .with_quantity("cpus", 2.0)
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
        .with("ref_cycles", Input::reading(&refused, 1.0))
        .with("instructions_kernel", Input::reading(&Reading::missing(Gap::Denied(libc::EACCES)), 1.0))
        .with("instructions", Input::exact(0));
    let utilisation = metric(&zen2(), &inputs, "utilisation");
    assert_eq!((utilisation.value(), utilisation.quality()), (None, Quality::Unsupported));
    assert!(utilisation.reason().unwrap().starts_with("ref_cycles: not counted by this processor"));
    assert!(!utilisation.supports_verdict());
    let kernel = metric(&zen2(), &inputs, "kernel_instruction_share");
    assert_eq!(kernel.quality(), Quality::Denied);
    assert!(kernel.reason().unwrap().contains("paranoid"));
    let reason = |name| metric(&zen2(), &inputs, name).reason().unwrap();
    assert_eq!(reason("cpi"), "no instructions were counted");
    assert_eq!(reason("branch_rate"), "branches: not among the events that were counted");
    assert_eq!(reason("seconds_by_cycles"), "tsc_hz was not given: Rate of the TSC");
    assert!(reason("smt_both").starts_with("no event of Zen counts the cycles in which either"));
    assert_eq!(reason("smt_both_upper"), "ref_cycles_a: not among the events that were counted");
    assert!(reason("sp_flops_rate").contains("together"));
    let zero = inputs.with("branches", Input::exact(1)).with_quantity("elapsed_s", 0.0);
    assert_eq!(metric(&zen2(), &zero, "context_switch_rate").value(), None);
    let zero = zero.with("context_switches", Input::exact(3));
    assert_eq!(metric(&zen2(), &zero, "context_switch_rate").reason().unwrap(), "elapsed_s is 0");
    // A misaligned access is not the same on a processor without any other event.
    assert!(matches!(metric(&CpuKind::default(), &zero, "l3_miss_ratio").result, Err(Lack::NotHere(_))));
}

#[test]
fn a_value_is_as_good_as_its_worst_count() {
    let reading = |running_ns| Reading { count: 500, enabled_ns: 100, running_ns, gap: None };
    let part = Reading { gap: Some(Gap::UserModeOnly), ..reading(100) };
    let ipc = |cycles: &Reading, instructions: &Reading| {
        let inputs = Inputs::new()
            .with("cycles", Input::reading(cycles, 1.0))
            .with("instructions", Input::reading(instructions, 1.0));
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
    let gone = ipc(&Reading::missing(Gap::Unavailable(Cause::NoSnapshot)), &part);
    assert_eq!((gone.quality(), gone.value()), (Quality::Unavailable, None));
}

#[test]
fn ranks_add_up_and_one_without_a_count_leaves_none() {
    let counted = |count, running_ns| Reading { count, enabled_ns: 100, running_ns, gap: None };
    let sum = Input::reading(&counted(10, 100), 1.0).plus(Input::reading(&counted(10, 50), 1.0));
    assert_eq!((sum.value, sum.quality, sum.running_share), (Some(30.0), Quality::Scaled, Some(0.5)));
    let gap = Input::reading(&Reading::missing(Gap::Unavailable(Cause::NoSnapshot)), 1.0);
    let sum = sum.plus(gap);
    assert_eq!((sum.value, sum.quality), (None, Quality::Unavailable));
    assert!(sum.reason.unwrap().contains("did not come"));
}

#[test]
fn samples_weigh_their_period() {
    let inputs = Inputs::new()
        .with("instructions", Input::samples(100, 500_000))
        .with("branches_mispredicted", Input::samples(20, 50_000));
    let rate = metric(&zen2(), &inputs, "branch_misprediction_rate");
    assert_eq!((rate.value(), rate.quality()), (Some(0.02), Quality::Scaled));
}

fn judged(inputs: &Inputs, code: &str) -> Judgement {
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
    };
    let short = |inputs: &Inputs| judged(inputs, "kernel-instructions-in-short-section");
    let long = |inputs: &Inputs| judged(inputs, "kernel-instruction-share");
    let one = section(0.000_999, 1, 1_000_000);
    assert_eq!((short(&one), long(&one)), (Judgement::Raised, Judgement::Clear));
    assert_eq!(judged(&one, "kernel-cycles-in-short-section"), Judgement::Clear);
    assert_eq!(short(&section(0.000_999, 0, 1_000_000)), Judgement::Clear);
    let one = section(0.001, 1, 1_000_000);
    assert_eq!((short(&one), long(&one)), (Judgement::Clear, Judgement::Clear));
    assert_eq!(long(&section(1.0, 10_000, 1_000_000)), Judgement::Clear);
    assert_eq!(long(&section(1.0, 10_001, 1_000_000)), Judgement::Raised);
    let discards = |code: &str| catalogue().rules.iter().find(|rule| rule.code == code).unwrap().discards;
    assert!(discards("kernel-cycles-in-short-section") && !discards("kernel-cycle-share"));
    // Where the kernel may not be counted, nothing can be said of it.
    let denied = Input::reading(&Reading::missing(Gap::Denied(libc::EACCES)), 1.0);
    let unknown = Inputs::new().with("instructions_kernel", denied).with_quantity("elapsed_s", 1e-4);
    assert!(matches!(short(&unknown), Judgement::Unknown(Lack::Unmeasured { .. })));
    assert_eq!(long(&unknown), Judgement::Clear);
}

/// TSC cycles of a core in which (both, a alone, b alone, neither) of its hardware threads were busy.
fn core([both, a, b, neither]: [u64; 4]) -> Inputs {
    exact(&[("ref_cycles_a", both + a), ("ref_cycles_b", both + b), ("ref_cycles_core", both + a + b)])
        .with_quantity("tsc", (both + a + b + neither) as f64)
}

#[test]
fn the_split_needs_the_union_and_says_where_it_contradicts_itself() {
    // A 2.1 GHz Skylake counts the union with its 25 MHz crystal: 84 TSC cycles a count (McCalpin).
    let skylake_core = exact(&[("ref_cycles_a", 84 * 60), ("ref_cycles_b", 84 * 50), ("ref_xclk_any", 80)])
        .with_quantity("tsc", 84.0 * 100.0)
        .with_quantity("tsc_hz", 2.1e9);
    let share = |cpu: &CpuKind, inputs: &Inputs, name| metric(cpu, inputs, name).value().unwrap();
    let names = ["smt_both", "smt_a_alone", "smt_b_alone", "smt_neither"];
    let split = |cpu: &CpuKind, inputs: &Inputs| names.map(|name| share(cpu, inputs, name));
    assert_eq!(split(&skylake(), &skylake_core), [0.3, 0.3, 0.2, 0.2]);
    // Later ones split the union among the siblings.
    let later = exact(&[("ref_cycles_a", 84 * 60), ("ref_cycles_b", 84 * 50)])
        .with("ref_distributed_a", Input::exact(45))
        .with("ref_distributed_b", Input::exact(35))
        .with_quantity("tsc", 84.0 * 100.0)
        .with_quantity("tsc_hz", 2.1e9);
    let reason = metric(&sapphire_rapids(), &later, "smt_both").reason().unwrap();
    assert!(reason.contains("crystal"), "{reason}");
    let later = later.with_quantity("crystal_hz", 25e6);
    assert_eq!(split(&sapphire_rapids(), &later), [0.3, 0.3, 0.2, 0.2]);
    // CORE below the larger, and above the sum.
    for union in [59, 111] {
        let wrong = exact(&[("ref_cycles_a", 60), ("ref_cycles_b", 50), ("ref_cycles_core", union)])
            .with_quantity("tsc", 200.0);
        let both = metric(&skylake(), &wrong, "smt_both");
        assert!(matches!(both.result, Err(Lack::Contradiction(_))), "{union}");
        let slack = wrong.with_quantity("smt_slack", 0.02);
        assert!(metric(&skylake(), &slack, "smt_both").value().is_some(), "{union}");
    }
}

#[test]
fn zen_has_bounds_that_are_called_so() {
    let inputs = exact(&[("ref_cycles_a", 700), ("ref_cycles_b", 600)]).with_quantity("tsc", 1000.0);
    let both = metric(&zen2(), &inputs, "smt_both");
    assert!(matches!(both.result, Err(Lack::NotHere(_))) && both.reason().unwrap().contains("bounds"));
    let lower = metric(&zen2(), &inputs, "smt_both_lower");
    let upper = metric(&zen2(), &inputs, "smt_both_upper");
    assert_eq!((lower.value(), upper.value()), (Some(0.3), Some(0.6)));
    assert_eq!((lower.metric.bound, upper.metric.bound), (Some(Bound::Lower), Some(Bound::Upper)));
}

/// docs/metrics.md is what the catalogue says.
#[test]
fn the_page_of_metrics_is_up_to_date() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    let page = page(catalogue());
    if std::env::var_os("PMMPI_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap() == page, "see the head of {}", path.display());
}

fn any_input() -> impl Strategy<Value = Input> {
    let gaps = prop::option::of(prop_oneof![
        Just(Gap::UserModeOnly),
        Just(Gap::Denied(1)),
        Just(Gap::Unsupported(2)),
        Just(Gap::Unavailable(Cause::Busy)),
    ]);
    let count = prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0u64..1 << 40];
    (count, any::<u32>(), any::<u32>(), gaps).prop_map(|(count, enabled, running, gap)| {
        let reading = Reading { count, enabled_ns: enabled.into(), running_ns: running.into(), gap };
        Input::reading(&reading, 1.0)
    })
}

fn any_inputs() -> impl Strategy<Value = Inputs> {
    let names: Vec<String> =
        catalogue().tables.iter().flat_map(|table| table.names.keys().cloned()).collect();
    let quantities: Vec<String> =
        catalogue().quantities.iter().map(|quantity| quantity.name.clone()).collect();
    let counts = prop::collection::vec((prop::sample::select(names), any_input()), 0..80);
    let quantity = prop_oneof![any::<f64>(), Just(0.0), 1e-6f64..1e12];
    let quantities = prop::collection::vec((prop::sample::select(quantities), quantity), 0..12);
    (counts, quantities).prop_map(|(counts, quantities)| {
        let inputs =
            counts.into_iter().fold(Inputs::new(), |inputs, (name, input)| inputs.with(&name, input));
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
    /// Every metric has a finite value with a quality that has one, or none and a reason.
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

    /// No metric is better than a count in its formula.
    #[test]
    fn quality_never_improves(cpu in any_cpu(), inputs in any_inputs()) {
        let table = catalogue().table(&cpu).unwrap();
        for value in evaluate(&cpu, &inputs) {
            let mut names = BTreeSet::new();
            // A name that was given stands for itself.
            let mut todo = vec![&value.metric.formula];
            while let Some(formula) = todo.pop() {
                for name in formula.names() {
                    if inputs.count(name).is_some() {
                        names.insert(name.clone());
                    } else if let Some(Meaning::Formula { formula, .. }) = table.meaning(name)
                        && inputs.quantity(name).is_none()
                    {
                        todo.push(formula);
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

    /// What was busy is found again, and the bounds hold it.
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
            let inputs = Inputs::new().with("cycles", cycles).with("instructions", instructions);
            metric(&zen2(), &inputs, "ipc").value().unwrap()
        };
        let sampled = ratio(Input::samples(samples, period), Input::samples(samples, other));
        prop_assert_eq!(sampled, ratio(Input::exact(samples * period), Input::exact(samples * other)));
    }
}
