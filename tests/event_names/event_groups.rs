//! Events that are counted together, and how many of them fit the counters of a machine.

use super::{groups, names, planned, resolve, set};
use pmmpi::counters::core_pmus::default_groups;
use pmmpi::counters::event::kind;
use pmmpi::counters::open_counters::Scope;
use pmmpi_events::names::{Capacity, EventNames, Places, family, plan};
use proptest::prelude::*;
use rig::counting::default_set;
use rig::sys::Machine;

#[test]
fn groups_fit_the_counters() {
    let list =
        "cycles,instructions,ref-cycles,cycles:k,cache-misses,branches,branch-misses,page-faults,cycles";
    let amd = planned(&Machine::amd_server(), list, "AuthenticAMD", Scope::Task).unwrap();
    assert_eq!(
        groups(&amd),
        [[
            vec!["cycles", "instructions", "ref_cycles", "cycles_kernel"],
            vec!["cache-misses", "branches", "branch-misses"],
            vec!["page_faults"]
        ]]
    );
    // Three events have counters of their own; the second event of one of them does not.
    let intel = planned(&Machine::intel_server(), list, "GenuineIntel", Scope::Core).unwrap();
    assert_eq!(
        groups(&intel),
        [[
            vec![
                "cycles",
                "instructions",
                "ref_cycles",
                "cycles_kernel",
                "cache-misses",
                "branches",
                "branch-misses"
            ],
            vec!["page_faults"]
        ]]
    );
    assert_eq!((intel[0].scope, &intel[0].places), (Scope::Core, &Places::Threads(None)));
    let raw = "cpu/event=0xc0/,cpu/event=0x3c/,r300,branches,branch-misses,cache-misses,cache-references,cpu/event=0xc0,umask=1/";
    let raw = planned(&Machine::intel_server(), raw, "GenuineIntel", Scope::Task).unwrap();
    assert_eq!(raw[0].groups.iter().map(Vec::len).collect::<Vec<_>>(), [7, 1]);
}

/// The size of groups follows the number of counters of this machine.
#[test]
fn groups_fit_the_counters_that_the_machine_has() {
    let list = "cycles,branches,branch-misses,cache-misses,cache-references,cycles:k,instructions:k";
    let sizes = |machine: &Machine, vendor: &str, counters, watchdog| -> Vec<usize> {
        let capacity = Capacity::new(Some(vendor), Some(counters), watchdog);
        let plans = plan(resolve(machine, list).unwrap(), Scope::Task, capacity).unwrap();
        plans[0].groups.iter().map(Vec::len).collect()
    };
    let (amd, intel) = (Machine::amd_server(), Machine::intel_server());
    assert_eq!(sizes(&amd, "AuthenticAMD", 6, false), [6, 1]);
    assert_eq!(sizes(&amd, "AuthenticAMD", 6, true), [5, 2]);
    // Two of these events have counters of their own; the watchdog takes the one of cycles.
    assert_eq!(sizes(&intel, "GenuineIntel", 4, false), [6, 1]);
    assert_eq!(sizes(&intel, "GenuineIntel", 4, true), [5, 2]);
    assert_eq!(sizes(&intel, "GenuineIntel", 8, true), [7]);
}

#[test]
fn braces_keep_together_what_can_be_counted_together() {
    let amd = Machine::amd_server();
    let five = planned(
        &amd,
        "cycles,{cycles,instructions,branches,cache-misses,r1,page-faults}:u,branches",
        "x",
        Scope::Task,
    );
    let five = five.unwrap();
    assert_eq!(
        groups(&five)[0],
        [
            vec!["cycles", "branches"],
            vec!["cycles:u", "instructions:u", "branches:u", "cache-misses:u", "r1:u", "page_faults:u"]
        ]
    );
    let apart = planned(&amd, "{cycles,power/energy-pkg/}", "x", Scope::Task).unwrap_err().to_string();
    assert!(
        apart.contains("{cycles,power/energy-pkg/}") && apart.contains("cannot form an event group"),
        "{apart}"
    );
    assert!(planned(&amd, "{page-faults,power/energy-pkg/}", "x", Scope::Task).is_err());
    assert_eq!(
        groups(&planned(&amd, "{page-faults,cs}", "x", Scope::Task).unwrap()),
        [[["page_faults", "context_switches"]]]
    );
    let memory = planned(
        &Machine::intel_server(),
        "{uncore_imc/cas_count_read/,uncore_imc/cas_count_write/},energy-pkg,cycles",
        "GenuineIntel",
        Scope::Task,
    )
    .unwrap();
    // One group per controller, then energy, at the same places; cycles in each rank.
    assert_eq!(memory[0].groups.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2, 2, 2, 2, 1]);
    assert_eq!((memory[0].scope, &memory[0].places), (Scope::Socket, &Places::Socket(set("0,18"))));
    assert_eq!((memory[1].scope, groups(&memory[1..])), (Scope::Task, vec![vec![vec!["cycles"]]]));
    let client = Machine::hybrid_client();
    let kinds = "{cycles,instructions:u,page-faults}";
    let each = [
        vec!["cpu_atom/cycles/", "cpu_atom/instructions/u"],
        vec!["cpu_core/cycles/", "cpu_core/instructions/u"],
        // In a group with events of one kind of cores, it would be counted only on those cores.
        vec!["page_faults"],
    ];
    let task = planned(&client, kinds, "GenuineIntel", Scope::Task).unwrap();
    assert_eq!(groups(&task), [each.to_vec()]);
    let core = planned(&client, kinds, "GenuineIntel", Scope::Core).unwrap();
    assert_eq!(groups(&core), each.map(|group| vec![group]));
    assert_eq!(core[1].places, Places::Threads(Some(set("0-15"))));
    let refused = planned(&client, "cycles", "GenuineIntel", Scope::Socket).unwrap_err().to_string();
    assert!(refused.contains("pmmpi can count cpu_atom/cycles/ only with --scope task or core"), "{refused}");
}

/// The default set is the same everywhere, except that each kind of core counts it.
#[test]
fn the_default_set_counts_on_every_kind_of_core() {
    let default = pmmpi::counters::default::groups();
    let groups_on = |machine: &Machine| {
        let names = EventNames::of(machine.root());
        let set = names.resolve(&default_set(), |_| unreachable!()).unwrap();
        let plans = plan(set, Scope::Task, Capacity::new(None, None, false)).unwrap();
        assert_eq!((plans.len(), plans[0].scope), (1, Scope::Task));
        assert_eq!(plans[0].groups, default_groups(machine.root()));
        default_groups(machine.root())
    };
    for machine in [Machine::bare(), Machine::intel_server(), Machine::amd_server(), Machine::arm_server()] {
        assert_eq!(groups_on(&machine), default);
    }
    for (machine, numbers) in [(Machine::hybrid_client(), [10u64, 4]), (Machine::big_little(), [7, 8])] {
        let hybrid = groups_on(&machine);
        assert_eq!((hybrid.len(), &hybrid[2]), (3, &default[1]));
        for (group, number) in hybrid.iter().zip(numbers) {
            for (event, plain) in group.iter().zip(&default[0]) {
                assert_eq!(family(event), plain.name);
                assert_eq!(event.encoding.config[0], plain.encoding.config[0] | number << 32);
            }
        }
    }
    // All cores of one kind may be offline.
    let machine = Machine::hybrid_client();
    machine.put(&machine.pmu_file("cpu_atom", "cpus"), "\n");
    assert_eq!(groups_on(&machine), default);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Groups contain each requested event once, and at most as many as there are counters.
    #[test]
    fn packing_loses_nothing(picks in proptest::collection::vec(0usize..54, 0..40), intel in any::<bool>()) {
        thread_local!(static ALL: (Machine, Vec<String>) = {
            let machine = Machine::intel_server();
            let all = EventNames::of(machine.root()).listed().into_iter().map(|one| one.name).collect();
            (machine, all)
        });
        ALL.with(|(machine, all)| {
            let list: Vec<&str> = picks.iter().map(|pick| all[*pick].as_str()).collect();
            if list.is_empty() {
                return;
            }
            let mut wanted: Vec<String> = names(machine, &list.join(","));
            wanted.sort();
            wanted.dedup();
            let id = if intel { "GenuineIntel" } else { "AuthenticAMD" };
            let plans = planned(machine, &list.join(","), id, Scope::Task).unwrap();
            let mut packed: Vec<String> = Vec::new();
            for group in plans.iter().flat_map(|plan| &plan.groups) {
                let hardware = group.iter().filter(|event| event.encoding.kind != kind::SOFTWARE).count();
                assert!(hardware <= if intel { 7 } else { 4 });
                packed.extend(group.iter().map(|event| event.name.clone()));
            }
            packed.sort();
            assert_eq!(packed, wanted);
        });
    }
}
