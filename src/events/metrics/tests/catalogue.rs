//! The data: every name is known, every code can be read, each processor has its table.

use super::{sapphire_rapids, skylake, zen2};
use crate::metrics::*;
use std::collections::BTreeSet;

/// Collects the names of a formula, and those of the definitions behind them.
fn all_names(formula: &Formula, table: &CpuTable, names: &mut BTreeSet<String>) {
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
    assert!(catalogue.metrics.len() > 70 && catalogue.tables.len() == 22);
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

/// Counts of siblings cannot be added up over cores.
#[test]
fn metrics_of_siblings_are_those_of_cores() {
    for metric in &catalogue().metrics {
        let is_of_siblings = |table: &CpuTable| {
            let mut names = BTreeSet::new();
            metric.formulas().for_each(|formula| all_names(formula, table, &mut names));
            names.iter().any(|name| match table.meaning(name) {
                Some(Meaning::Event(event)) => event.sibling.is_some(),
                _ => false,
            })
        };
        let of_siblings = catalogue().tables.iter().any(is_of_siblings);
        assert_eq!(of_siblings, metric.per == Per::Core, "{}", metric.name);
    }
}

/// Some metric or rule uses every name of every table.
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
    // Zen cannot count the requests of the page table walker, so the other events of the indirect method are of no
    // use.
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
    let mut hardware = pmmpi::node::Hardware {
        cpu_vendor: Some("AuthenticAMD".into()),
        cpu_family: Some(0x17),
        ..Default::default()
    };
    assert_eq!(CpuKind::of_node(&hardware), CpuKind::default());
    hardware.cpu_model = Some(0x31);
    assert_eq!(CpuKind::of_node(&hardware), zen2());
}

/// The default events are those that the default group needs.
#[test]
fn the_default_group_is_the_default_set() {
    let everybodys = catalogue().table(&CpuKind::default()).unwrap();
    let needed = catalogue().events_of("default", everybodys);
    let needed: BTreeSet<&str> = needed.into_iter().map(|event| event.name.as_str()).collect();
    let opened = pmmpi::counters::default::groups();
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
                    None => matches!(term, "mperf" | "aperf" | "energy-pkg" | "energy-ram"),
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
        (CpuKind::intel(0x1a), "intel-nehalem"),
        (CpuKind::intel(0x2c), "intel-nehalem"),
        (CpuKind::intel(0x2f), "intel-nehalem"),
        (CpuKind::intel(0x2a), "intel-sandy-bridge"),
        (CpuKind::intel(0x2d), "intel-sandy-bridge-ep"),
        (CpuKind::intel(0x3a), "intel-ivy-bridge"),
        (CpuKind::intel(0x3e), "intel-ivy-bridge-ep"),
        (CpuKind::intel(0x45), "intel-haswell"),
        (CpuKind::intel(0x3f), "intel-haswell-ep"),
        (CpuKind::intel(0x47), "intel-broadwell"),
        (CpuKind::intel(0x4f), "intel-broadwell-ep"),
        (CpuKind::intel(0x56), "intel-broadwell-ep"),
        (CpuKind::intel(0x57), "intel-knights-landing"),
        (CpuKind::intel(0x85), "intel-knights-landing"),
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
        // Every event of the table counts 1000.
        let events = table.names.iter().filter(|(_, meaning)| matches!(meaning, Meaning::Event(_)));
        let inputs =
            events.fold(MetricInputs::new(), |inputs, (name, _)| inputs.with(name, MetricInput::exact(1000)));
        let quantities = [("elapsed_s", 2.0), ("tsc_hz", 1e9), ("ranks", 1.0), ("sockets", 1.0)];
        let inputs =
            quantities.iter().fold(inputs, |inputs, (name, value)| inputs.with_quantity(name, *value));
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

/// The event selects and unit masks that the note prints for each family.
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
        ("return_stack_hits", 0x88, 0),
        ("return_stack_overflows", 0x89, 0),
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
    // Codes that differ between the families (FAMDEP), and those that only family 10h has.
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

/// docs/metrics.md agrees with the catalogue.
#[test]
fn the_page_of_metrics_is_up_to_date() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = page(catalogue());
    if std::env::var_os("PMMPI_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap() == page, "see the head of {}", path.display());
}
