//! Names of events on other machines than this one; and with the real libpfm4 on this machine.

use pmmpi::counters::core_pmus::default_groups;
use pmmpi::counters::event::{Encoding, Event, Group, Modes, kind};
use pmmpi::counters::open_counters::Scope;
use pmmpi::node::{CpuSet, NodeSettings};
use pmmpi::record::wire;
use pmmpi_events::names::{
    Asked, Capacity, CounterPlan, EventNames, NameError, Places, Resolved, Vendor, VendorAnswer, VendorEvent,
    family, plan,
};
use proptest::prelude::*;
use rig::counting::default_set;
use rig::sys::Machine;
use rig::tool::{pmmpi, run, target};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn no_vendor(_: &[String]) -> Result<Vec<VendorAnswer>, String> {
    Err("nobody to ask".to_owned())
}

fn resolve(machine: &Machine, list: &str) -> Result<Vec<Asked>, NameError> {
    EventNames::of(machine.root()).resolve(list, no_vendor)
}

/// All events of a list without braces.
fn events(machine: &Machine, list: &str) -> Vec<Resolved> {
    let asked = resolve(machine, list).unwrap_or_else(|e| panic!("{list}: {e}"));
    asked
        .into_iter()
        .flat_map(|asked| match asked {
            Asked::Event(events) => events,
            Asked::Together(_) => panic!("{list} has braces"),
        })
        .collect()
}

fn codes(machine: &Machine, list: &str) -> Vec<(u32, [u64; 3])> {
    events(machine, list)
        .iter()
        .map(|event| (event.event.encoding.kind, event.event.encoding.config))
        .collect()
}

fn names(machine: &Machine, list: &str) -> Vec<String> {
    events(machine, list).into_iter().map(|event| event.event.name).collect()
}

fn said(machine: &Machine, list: &str) -> String {
    resolve(machine, list).unwrap_err().to_string()
}

fn set(list: &str) -> CpuSet {
    CpuSet::parse(list).unwrap()
}

#[test]
fn names_that_every_kernel_knows_are_the_same_everywhere() {
    for machine in [Machine::intel_server(), Machine::amd_server(), Machine::arm_server(), Machine::bare()] {
        assert_eq!(
            codes(&machine, "cycles,cpu-cycles:u,page-faults,L1-dcache-load-misses,rff01c0"),
            [(0, [0; 3]), (0, [0; 3]), (1, [2, 0, 0]), (3, [0x1_0000, 0, 0]), (4, [0xff_01c0, 0, 0])]
        );
        // pmmpi's names for the default set, and perf's names with the same meaning.
        let typed = "ref-cycles,cycles:k,instructions:k,task-clock,faults,cs,cpu-migrations,instructions:u";
        let own = [
            "ref_cycles",
            "cycles_kernel",
            "instructions_kernel",
            "task_clock_ns",
            "page_faults",
            "context_switches",
            "migrations",
            "instructions:u",
        ];
        assert_eq!(names(&machine, typed), own);
        assert_eq!(names(&machine, &own.join(",")), own);
        assert_eq!(events(&machine, typed), events(&machine, &own.join(",")));
        let modes =
            events(&machine, "cycles,cycles:u,cycles_kernel").into_iter().map(|e| e.event.encoding.modes);
        assert_eq!(modes.collect::<Vec<_>>(), [Modes::All, Modes::User, Modes::Kernel]);
    }
}

/// Each event of the default set can be requested by its name, and the name gives the same event.
#[test]
fn the_default_set_is_made_of_names() {
    let machine = Machine::amd_server();
    for event in pmmpi::counters::default::groups().into_iter().flatten() {
        assert_eq!(events(&machine, &event.name)[0].event, event);
    }
}

#[test]
fn memory_controllers_count_together_on_each_socket() {
    let machine = Machine::intel_server();
    let read = events(&machine, "uncore_imc/cas_count_read/");
    assert_eq!(read.len(), 6);
    for (channel, event) in read.iter().enumerate() {
        assert_eq!(event.event.name, format!("uncore_imc_{channel}/cas_count_read/"));
        assert_eq!(family(&event.event), "uncore_imc/cas_count_read/");
        assert_eq!(event.event.encoding, Encoding::new(20 + channel as u32, 0x304));
        // The event counts lines of 64 bytes.
        assert_eq!((event.event.unit.as_str(), event.event.scale), ("bytes", 64.0));
        assert_eq!(event.places, Places::Socket(set("0,18")));
        assert_eq!(event.pmu, 20 + channel as u32);
    }
    assert_eq!(read, events(&machine, "cas_count_read"));
    assert_eq!(read, events(&machine, "uncore_imc*/cas_count_read/"));
    assert_eq!(read[3..4], events(&machine, "uncore_imc_3/cas_count_read/")[..]);
    assert_eq!(names(&machine, "uncore_cha/event=0x3d,umask=1/")[11], "uncore_cha_11/event=0x3d,umask=1/");
    // The bits of a field that is spread over three places.
    let bits = u64::from(0xff_u8) << 8 | 0xfff << 32 | 0x7ff << 45;
    assert_eq!(codes(&machine, "uncore_upi_0/event=0,umask=0x7fffffff/"), [(50, [bits, 0, 0])]);
}

#[test]
fn energy_is_joules_on_each_socket() {
    for (machine, sockets) in
        [(Machine::intel_server(), "0,18"), (Machine::amd_server(), "0,8"), (Machine::hybrid_client(), "0")]
    {
        let energy = events(&machine, "power/energy-pkg/");
        assert_eq!(energy, events(&machine, "energy-pkg"));
        let event = &energy[0].event;
        assert_eq!((event.unit.as_str(), event.scale), ("J", 2f64.powi(-32)));
        assert_eq!(event.encoding.config, [2, 0, 0]);
        assert_eq!(energy[0].places, Places::Socket(set(sockets)));
    }
}

#[test]
fn terms_are_written_where_the_pmu_has_them() {
    let amd = Machine::amd_server();
    for (list, code) in [
        // The codes of the AMD note: 12 bits of event select, 8 bits of unit mask.
        ("cpu/event=0x40/", 0x40),
        ("cpu/event=0x42,umask=0x1e/", 0x1e42),
        ("cpu/event=0xc0/", 0xc0),
        ("cpu/event=0x4e0,umask=0xf7/", 0x4_0000_f7e0),
        ("cpu/instructions/", 0xc0),
        ("cpu/ref-cycles/", 0x1_0000_0120),
        ("cpu/event=192,edge,cmask=2/", 0x204_00c0),
        ("cpu/r1c0/", 0x1c0),
        ("cpu/config=0x76/", 0x76),
        // The last value counts.
        ("cpu/event=1,event=2/", 2),
        ("cpu/instructions,umask=1/", 0x1c0),
    ] {
        assert_eq!(codes(&amd, list), [(4, [code, 0, 0])], "{list}");
    }
    assert_eq!(
        codes(&amd, "amd_l3/event=0x04,umask=0xff,enallcores,enallslices,threadmask=3/"),
        [(14, [0x0300_c000_0000_ff04, 0, 0])]
    );
    assert_eq!(codes(&amd, "amd_df/event=0x7f1,umask=0xfff/"), [(13, [0x0007_0f00_fff1, 0, 0])]);
    let umc = events(&amd, "amd_umc/event=0x0a,rdwrmask=1/");
    assert_eq!(
        umc.iter().map(|e| e.places.clone()).collect::<Vec<_>>(),
        ["0", "0", "8", "8"].map(|c| Places::Socket(set(c)))
    );
    let intel = Machine::intel_server();
    assert_eq!(codes(&intel, "cpu/mem-loads,ldlat=30/,mem-loads"), [(4, [0x1cd, 30, 0]), (4, [0x1cd, 3, 0])]);
    let arm = Machine::arm_server();
    assert_eq!(codes(&arm, "hnf_cache_miss,inst_retired"), [(9, [0x1_0005, 0, 0]), (8, [8, 0, 0])]);
    assert_eq!(names(&arm, "inst_retired:u"), ["armv8_pmuv3_0/inst_retired/u"]);
    assert_eq!(names(&arm, "armv8_pmuv3_0/event=0x1b,name=spec/"), ["spec"]);
}

#[test]
fn each_kind_of_core_counts_for_itself() {
    let machine = Machine::hybrid_client();
    let cycles = events(&machine, "cycles");
    // PERF_TYPE_HARDWARE with the PMU's number in the upper half.
    assert_eq!(codes(&machine, "cycles"), [(0, [10 << 32, 0, 0]), (0, [4 << 32, 0, 0])]);
    assert_eq!(names(&machine, "cycles"), ["cpu_atom/cycles/", "cpu_core/cycles/"]);
    assert_eq!(cycles[0].places, Places::Threads(Some(set("16-23"))));
    assert_eq!(cycles[1].places, Places::Threads(Some(set("0-15"))));
    assert_eq!(names(&machine, "cycles_kernel"), ["cpu_atom/cycles_kernel/", "cpu_core/cycles_kernel/"]);
    assert_eq!(names(&machine, "cpu_core/cycles/"), ["cpu_core/cycles/"]);
    assert_eq!(codes(&machine, "LLC-loads")[1], (3, [4 << 32 | 2, 0, 0]));
    assert_eq!(codes(&machine, "r1c0"), [(10, [0x1c0, 0, 0]), (4, [0x1c0, 0, 0])]);
    assert_eq!(names(&machine, "r1c0:u"), ["cpu_atom/r1c0/u", "cpu_core/r1c0/u"]);
    assert_eq!(names(&machine, "mem-loads"), ["cpu_atom/mem-loads/", "cpu_core/mem-loads/"]);
    assert_eq!(names(&machine, "slots"), ["cpu_core/slots/"]);
    assert_eq!(names(&machine, "page-faults"), ["page_faults"]);
    for (name, sums) in [
        ("cycles", "cycles"),
        ("cpu_core/cycles_kernel/", "cycles_kernel"),
        ("cpu_core/cycles/u", "cycles:u"),
        ("cpu_core/mem-loads/", "cpu_core/mem-loads/"),
        ("cpu_core/event=0x3c,name=own/", "own"),
        ("uncore_imc_free_running_1/data_read/", "uncore_imc_free_running/data_read/"),
    ] {
        let events = events(&machine, name);
        assert!(events.iter().all(|event| family(&event.event) == sums), "{name}: {events:?}");
    }
    // On a processor with one kind of cores the family is the name itself. A PMU outside of the cores has cycles of
    // its own.
    assert_eq!(family(&events(&Machine::intel_server(), "cpu/instructions/")[0].event), "cpu/instructions/");
    let cluster = Event::counted("arm_dsu_0/cycles/", Encoding::new(10, 0x11));
    assert_eq!(family(&cluster), "arm_dsu/cycles/");
}

#[test]
fn an_event_is_counted_where_its_pmu_says() {
    let machine = Machine::arm_server();
    let online = NodeSettings::read(machine.root()).online;
    let places = |name: &str| events(&machine, name).remove(0).places;
    let allowed =
        |places: &Places| [Scope::Task, Scope::Core, Scope::Socket].map(|scope| places.allow(scope));
    let core = places("inst_retired");
    assert_eq!((allowed(&core), core.cpus(&online).len()), ([true, true, false], 80));
    let software = places("page-faults");
    assert_eq!((allowed(&software), software.cpus(&online).len()), ([true, true, false], 80));
    let mesh = places("hnf_cache_miss");
    assert_eq!((allowed(&mesh), mesh.cpus(&online)), ([false, false, true], vec![0]));
    assert_eq!(core.cpus(&set("3,78-100")), [3, 78, 79]);
    let nowhere = Machine::arm_server();
    nowhere.put(&nowhere.pmu_file("arm_cmn_0", "cpumask"), "\n");
    assert!(said(&nowhere, "hnf_cache_miss").contains("cpumask"));
}

#[test]
fn what_cannot_be_resolved_is_explained() {
    let intel = Machine::intel_server();
    for (list, parts) in [
        (
            "cylces",
            &["unknown event cylces; did you mean cycles?", "`pmmpi list events`", "nobody to ask"][..],
        ),
        ("cas_count_raed", &["did you mean uncore_imc/cas_count_read/"]),
        ("page_fault:u", &["unknown event page_fault;", "page_faults"]),
        ("uncore_imx/cas_count_read/", &["unknown PMU uncore_imx; did you mean uncore_imc?", "power"]),
        (
            "uncore_imc/cas_count_reed/",
            &["uncore_imc_0 has no event or field cas_count_reed", "cas_count_read", "thresh"],
        ),
        ("cpu/evnt=0xc0/", &["cpu has no event or field evnt", "event", "umask", "cmask"]),
        ("cpu/event=0x1c0/", &["cpu/event=0x1c0/", "does not fit into 8 bits (at most 0xff)"]),
        ("cpu/edge=2/", &["cpu/edge=2/", "1 bits"]),
        ("cpu/event=banana/", &["cpu/event=banana/", "number"]),
        ("cpu/event=-1/", &["number"]),
        ("cpu/event=0x1ffffffffffffffff/", &["number"]),
        ("cpu/instructions,cpu-cycles/", &["already names an event"]),
        ("clockticks", &["ambiguous", "uncore_imc/clockticks/ or uncore_upi/clockticks/"]),
        ("uncore_imc/cas_count_read/u", &["outside the cores", "all modes"]),
        ("cycles_kernel:u", &["its name already sets another mode"]),
        ("cycles,,instructions", &["missing"]),
        ("cpu/event=1", &["slash"]),
        ("{cycles", &["brace"]),
        ("r12345678901234567", &["16 hexadecimal digits"]),
    ] {
        let said = said(&intel, list);
        assert!(parts.iter().all(|part| said.contains(part)), "{list}: {said}");
    }
    assert!(said(&Machine::bare(), "cpu/event=1/").contains("PMUs of this machine: none"));
    let open = Machine::intel_server();
    open.put(&open.pmu_file("cpu", "events/wanting"), "event=0xcd,ldlat=?\n");
    assert!(said(&open, "cpu/wanting/").contains("needs a value"));
    assert_eq!(codes(&open, "cpu/wanting,ldlat=7/"), [(4, [0xcd, 7, 0])]);
}

/// u and k, h with k, in any order. Other modes are an error with a message.
#[test]
fn modes_that_are_not_understood_are_an_error() {
    let machine = Machine::intel_server();
    for (list, modes) in [
        ("cycles:u", Modes::User),
        ("cycles:kh", Modes::Kernel),
        ("cycles:hk", Modes::Kernel),
        ("cycles:uk", Modes::All),
        ("cycles:ukh", Modes::All),
        ("cpu/event=1/khu", Modes::All),
        ("r1c0:hk", Modes::Kernel),
    ] {
        assert_eq!(events(&machine, list)[0].event.encoding.modes, modes, "{list}");
    }
    for list in [
        "cycles:h",
        "cycles:uh",
        "cycles:p",
        "cycles:ppp",
        "cycles:",
        "cycles:uu",
        "r1c0:G",
        "cpu/event=1/p",
        "cpu/event=1/h",
        "{cycles,instructions}:S",
    ] {
        let said = said(&machine, list);
        assert!(said.contains("only modes may follow an event: u (user), k or kh"), "{list}: {said}");
    }
}

#[test]
fn tracepoints_have_names() {
    for place in ["tracing", "debug/tracing"] {
        let machine = Machine::intel_server();
        let hidden = said(&machine, "sched:sched_switch");
        assert!(hidden.contains("pmmpi did not look up tracepoints: tracefs is not mounted"), "{hidden}");
        assert!(hidden.contains("mount -t tracefs"), "{hidden}");
        // A name with capital letters is a vendor's.
        assert!(!said(&machine, "INST_RETIRED:ANY_P").contains("look up tracepoints"));
        machine.put(&format!("sys/kernel/{place}/events/sched/sched_switch/id"), "372\n");
        machine.put(&format!("sys/kernel/{place}/events/sched/sched_switch/format"), "name: sched_switch\n");
        machine.put(&format!("sys/kernel/{place}/events/sched/bad/id"), "many\n");
        let switch = &events(&machine, "sched:sched_switch")[0];
        assert_eq!(switch.event, Event::counted("sched:sched_switch", Encoding::new(kind::TRACEPOINT, 372)));
        assert_eq!(
            [Scope::Task, Scope::Core, Scope::Socket].map(|s| switch.places.allow(s)),
            [true, true, false]
        );
        assert_eq!(names(&machine, "sched:sched_switch:k"), ["sched:sched_switch:k"]);
        // It needs no counter, and may be in a group with events that do.
        let plans = planned(&machine, "{cycles,sched:sched_switch}", "GenuineIntel", Scope::Task).unwrap();
        assert_eq!(groups(&plans), [[["cycles", "sched:sched_switch"]]]);
        for (list, part) in [
            ("sched:sched_swich", "did you mean sched:sched_switch?"),
            ("sched:bad", "events/sched/bad/id: pmmpi cannot read the number of a tracepoint from this file"),
            ("sched:sched_switch:u", "happens in the Linux kernel"),
            ("nothing:at_all", "unknown event nothing:at_all"),
            ("..:id", "unknown event"),
            ("sched:..", "unknown event"),
        ] {
            let said = said(&machine, list);
            assert!(said.contains(part) && !said.contains("tracefs"), "{list}: {said}");
        }
    }
}

/// As root, if the kernel shows its tracepoints only to root.
#[test]
fn tracepoints_that_a_user_may_not_see_are_explained() {
    use std::os::unix::fs::MetadataExt;
    let shown = std::fs::metadata("/sys/kernel/tracing/events").is_ok() && rig::users::is_root();
    let mode = std::fs::metadata("/sys/kernel/tracing").map_or(0, |metadata| metadata.mode());
    if !shown || mode & 0o7 != 0 {
        return;
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(pmmpi());
    let output = run(command.args(["list", "events", "sched:sched_switch"]));
    let said = "only root may read /sys/kernel/tracing (to allow all users: mount -o remount,mode=755 \
                /sys/kernel/tracing)";
    assert!(output.code() == 2 && output.err().contains(said), "{}", output.err());
}

#[test]
fn a_vendor_is_asked_once_for_what_nobody_else_knows() {
    let machine = Machine::intel_server();
    let mut asked = Vec::new();
    let vendor = |names: &[String]| {
        asked.push(names.to_vec());
        let found = |name: &str, code| {
            let encoding = Encoding::new(kind::RAW, code);
            VendorAnswer::Found(Vendor { name: name.to_owned(), full_name: format!("skx::{name}"), encoding })
        };
        Ok(vec![found("INST_RETIRED:ANY_P", 0xc0), found("skx::LONGEST_LAT_CACHE:MISS", 0x412e)])
    };
    let names = EventNames::of(machine.root());
    let list = "cycles,INST_RETIRED:ANY_P:u,{instructions,skx::LONGEST_LAT_CACHE:MISS}";
    let resolved = names.resolve(list, vendor).unwrap();
    assert_eq!(asked, [["INST_RETIRED:ANY_P", "skx::LONGEST_LAT_CACHE:MISS"].map(str::to_owned)]);
    let Asked::Event(retired) = &resolved[1] else { panic!("{resolved:?}") };
    assert_eq!(retired[0].event.name, "INST_RETIRED:ANY_P:u");
    assert_eq!(retired[0].event.encoding, Encoding::new(4, 0xc0).in_modes(Modes::User));
    assert_eq!((retired[0].pmu, retired[0].places.clone()), (4, Places::Threads(None)));
    assert!(matches!(&resolved[2], Asked::Together(group) if group[1][0].event.encoding.config[0] == 0x412e));
    // The kernel's files give what the vendor's table leaves open.
    let energy = |text: &str| {
        let encoding = Encoding::new(9, 2);
        let name = "rapl::RAPL_ENERGY_PKG".to_owned();
        names.resolve(text, |_| {
            Ok(vec![VendorAnswer::Found(Vendor { full_name: name.clone(), name, encoding })])
        })
    };
    let Asked::Event(package) = energy("rapl::RAPL_ENERGY_PKG").unwrap().remove(0) else { panic!("braces") };
    assert_eq!((package[0].event.unit.as_str(), package[0].event.scale), ("J", 2f64.powi(-32)));
    assert_eq!(package[0].places, Places::Socket(set("0,18")));
    assert!(energy("rapl::RAPL_ENERGY_PKG:u").unwrap_err().to_string().contains("outside the cores"));
    let unknown =
        |answer: VendorAnswer| names.resolve("FOO:BAR", |_| Ok(vec![answer])).unwrap_err().to_string();
    assert!(
        unknown(VendorAnswer::Unknown { like: vec!["FOO:BAZ".into()] }).contains("did you mean FOO:BAZ?")
    );
    assert!(unknown(VendorAnswer::Refused { why: "no such mask".into() }).contains("FOO:BAR: no such mask"));
    assert!(names.resolve("cycles", |_| panic!("nothing to ask")).is_ok());
    // A helper that returns fewer answers than questions knows less.
    assert!(names.resolve("FOO", |_| Ok(Vec::new())).unwrap_err().to_string().contains("unknown event FOO"));
}

fn planned(
    machine: &Machine,
    list: &str,
    vendor_id: &str,
    scope: Scope,
) -> Result<Vec<CounterPlan>, NameError> {
    plan(resolve(machine, list).unwrap(), scope, Capacity::new(Some(vendor_id), None, false))
}

/// The names of the events in each group of each plan.
fn groups(plans: &[CounterPlan]) -> Vec<Vec<Vec<&str>>> {
    plans.iter().map(|plan| plan.groups.iter().map(of_group).collect()).collect()
}

fn of_group(group: &Group) -> Vec<&str> {
    group.iter().map(|event| event.name.as_str()).collect()
}

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

/// Every listed name can be requested and gives the listed event. The same holds for the name that this event then
/// has.
#[test]
fn what_is_listed_can_be_asked_for() {
    for machine in [
        Machine::intel_server(),
        Machine::hybrid_client(),
        Machine::amd_server(),
        Machine::arm_server(),
        Machine::big_little(),
    ] {
        let names = EventNames::of(machine.root());
        let listed = names.listed();
        assert!(listed.len() > 50);
        for one in &listed {
            for name in std::iter::once(&one.name).chain(&one.aliases) {
                assert_eq!(events(&machine, name), one.events, "{name}");
            }
            for event in &one.events {
                assert_eq!(events(&machine, &event.event.name), std::slice::from_ref(event));
            }
            if one.events[0].places.allow(Scope::Task) {
                let name = if one.name.ends_with('/') {
                    format!("{}u", one.name)
                } else {
                    format!("{}:u", one.name)
                };
                let Ok(user) = resolve(&machine, &name) else {
                    assert!(one.name.ends_with("_kernel"), "{name}");
                    continue;
                };
                let [Asked::Event(user)] = &user[..] else { panic!("{user:?}") };
                for event in user {
                    assert_eq!(event.event.encoding.modes, Modes::User);
                    assert_eq!(events(&machine, &event.event.name), std::slice::from_ref(event));
                }
            }
        }
        let mut all: Vec<&str> = listed.iter().map(|one| one.name.as_str()).collect();
        let before = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), before);
        assert!(names.fields().iter().any(|(_, fields)| fields.contains(&"event".to_owned())));
    }
}

/// Files in /sys with hostile content.
#[test]
fn hostile_files_are_errors_or_nothing() {
    let machine = Machine::intel_server();
    let cpu = |file: &str| machine.pmu_file("cpu", file);
    let at = |file: &str| machine.root().join(cpu(file));
    machine.put(&cpu("format/huge"), vec![b'1'; 1 << 20]);
    machine.put(&cpu("format/binary"), [0xff, 0xfe, 0, 1]);
    machine.put(&cpu("format/far"), "config:0-64");
    machine.put(&cpu("events/binary"), [0xff, 0xfe, 0, 1]);
    machine.put(&cpu("events/itself"), "itself");
    machine.put(&cpu("events/nofield"), "evnt=1");
    machine.put(&cpu("events/terminal"), "event=1,\u{1b}[2J=3");
    machine.put(&cpu("events/scaled"), "event=1");
    machine.put(&cpu("events/scaled.scale"), "NaN");
    machine.put(&cpu("events/\u{1b}[2J"), "event=1");
    std::os::unix::fs::symlink("loop", at("events/loop")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("events/zero")).unwrap();
    std::fs::create_dir(at("events/folder")).unwrap();
    assert!(
        run(Command::new("mkfifo").arg(at("events/pipe")).arg(at("format/pipe"))).success().out().is_empty()
    );
    for term in [
        "huge=1", "binary=1", "far=1", "binary", "itself", "nofield", "terminal", "scaled", "loop", "zero",
        "folder", "pipe", "pipe=1", "../type", "..", "",
    ] {
        let said = said(&machine, &format!("cpu/{term}/"));
        assert!(!said.contains('\u{1b}'), "{term}");
    }
    for (file, text) in [("type", "-1"), ("type", "4294967296"), ("type", ""), ("type", "4\n5")] {
        let machine = Machine::arm_server();
        machine.put(&machine.pmu_file("arm_cmn_0", file), text);
        assert!(said(&machine, "hnf_cache_miss").contains("arm_cmn_0/type"));
        assert_eq!(codes(&machine, "cycles"), [(0, [0; 3])]);
        assert!(EventNames::of(machine.root()).listed().len() > 50);
    }
    for text in ["0-4294967295", "5-3", "0,0", "a", "0-3,2", "\u{0}"] {
        let machine = Machine::arm_server();
        machine.put(&machine.pmu_file("arm_cmn_0", "cpumask"), text);
        assert!(said(&machine, "hnf_cache_miss").contains("arm_cmn_0/cpumask"), "{text}");
    }
    // The folder of the bus is a file.
    let machine = Machine::bare();
    machine.put("sys/bus/event_source/devices", "");
    assert_eq!(codes(&machine, "cycles"), [(0, [0; 3])]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Any text is accepted or gives an error message of at most one screen.
    #[test]
    fn any_text_is_events_or_an_error(
        text in "((cycles|cpu|uncore_imc|power|event|umask|energy-pkg|r1|name|config|[{},/:=*u0-9]){0,12}|.{0,40})"
    ) {
        thread_local!(static MACHINE: Machine = Machine::intel_server());
        MACHINE.with(|machine| {
            match resolve(machine, &text) {
                Ok(asked) => {
                    let _ = plan(asked, Scope::Task, Capacity::new(None, None, false));
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        });
    }

    /// Whatever a kernel file contains, names give events or errors that can be printed.
    #[test]
    fn any_file_is_read_or_refused(
        file in prop::sample::select(vec![
            "type", "cpumask", "cpus", "format/event", "format/umask", "events/cas_count_read",
            "events/cas_count_read.scale", "events/cas_count_read.unit", "events/other",
        ]),
        text in prop_oneof![
            "[0-9,-]{0,12}", "config[0-3]?:[0-9,-]{0,12}", "((event|umask|inv|x)=?(0x)?[0-9a-f?]{0,20},?){0,4}", "\\PC{0,20}",
            "-?[0-9.]{1,5}(e[0-9-]{1,4})?", ".{0,40}",
        ]
    ) {
        let machine = Machine::bare();
        let format = [("event", "config:0-7"), ("umask", "config:8-15")];
        let events = [("cas_count_read", "event=4,umask=3")];
        machine.pmu("uncore_imc_0", 20, &[("cpumask", "0")], &format, &events);
        machine.put(&machine.pmu_file("uncore_imc_0", file), &text);
        let names = EventNames::of(machine.root());
        for list in ["cas_count_read", "uncore_imc/event=1,umask=0xff/", "uncore_imc/other/", "cycles"] {
            match names.resolve(list, no_vendor) {
                Ok(asked) => {
                    for made in plan(asked, Scope::Task, Capacity::new(None, None, false)).into_iter().flatten() {
                        let events = made.groups.iter().flatten();
                        events.for_each(|event| assert!(event.scale.is_finite() && event.scale > 0.0));
                        assert!(made.places.cpus(&set("0-3")).len() <= 4);
                    }
                }
                Err(error) => assert!(!error.to_string().chars().any(char::is_control), "{error}"),
            }
        }
        names.listed();
        names.fields();
    }

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

/// The program that asks libpfm4, for other processors than this one.
fn ask_libpfm(arguments: &[&str]) -> rig::tool::Output {
    let mut command = Command::new(target().join("pmmpi/lib/pmmpi/pmmpi-names"));
    run(command.args(arguments).env("LIBPFM_ENCODE_INACTIVE", "1"))
}

/// The names of the AMD note's events give the codes that the note prints in its tables; the same holds for Intel's
/// manual.
#[test]
fn libpfm4_knows_the_codes_of_the_manuals() {
    let note = |name: &str| format!("amd64_fam10h_barcelona::{name}");
    let expected: Vec<(String, u64)> = [
        ("DATA_CACHE_ACCESSES", 0x40),
        ("DATA_CACHE_REFILLS:L2_SHARED:L2_EXCLUSIVE:L2_OWNED:L2_MODIFIED", 0x1e42),
        ("DATA_CACHE_REFILLS_FROM_SYSTEM:SHARED:EXCLUSIVE:OWNED:MODIFIED", 0x1e43),
        ("RETIRED_INSTRUCTIONS", 0xc0),
        ("CPU_CLK_UNHALTED", 0x76),
        ("INSTRUCTION_CACHE_FETCHES", 0x80),
        ("INSTRUCTION_CACHE_REFILLS_FROM_L2", 0x82),
        ("INSTRUCTION_CACHE_REFILLS_FROM_SYSTEM", 0x83),
    ]
    .map(|(name, code)| (note(name), code))
    .into_iter()
    .chain(
        [("skx::INST_RETIRED:ANY_P", 0xc0), ("skx::LONGEST_LAT_CACHE:MISS", 0x412e)]
            .map(|(n, c)| (n.to_owned(), c)),
    )
    .collect();
    let names: Vec<&str> =
        std::iter::once("resolve").chain(expected.iter().map(|(name, _)| name.as_str())).collect();
    let answers: Vec<VendorAnswer> = wire::decode(&ask_libpfm(&names).success().stdout).unwrap();
    assert_eq!(answers.len(), expected.len());
    for (answer, (name, code)) in answers.iter().zip(&expected) {
        let VendorAnswer::Found(vendor) = answer else { panic!("{name}: {answer:?}") };
        assert_eq!(
            vendor.encoding,
            Encoding::new(kind::RAW, *code),
            "{name}: {:x}",
            vendor.encoding.config[0]
        );
        assert_eq!(&vendor.name, name);
        assert!(vendor.full_name.starts_with(name.split(':').next().unwrap()));
    }
}

#[test]
fn libpfm4_says_what_is_wrong_with_a_name() {
    let answers: Vec<VendorAnswer> = wire::decode(
        &ask_libpfm(&[
            "resolve",
            "skx::INST_RETIRED:ANY",
            "no such event",
            "skx::CPU_CLK_UNHALTED:THREAD_P:u",
        ])
        .success()
        .stdout,
    )
    .unwrap();
    assert!(matches!(&answers[0], VendorAnswer::Refused { why } if why.contains("ANY_P")), "{answers:?}");
    assert!(matches!(&answers[1], VendorAnswer::Unknown { .. }), "{answers:?}");
    assert!(
        matches!(&answers[2], VendorAnswer::Found(vendor) if vendor.encoding.modes == Modes::User),
        "{answers:?}"
    );
    assert_eq!(ask_libpfm(&["what"]).code(), 1);
    // Resolving each name of this processor's tables gives the same answers.
    let described: Vec<VendorEvent> = wire::decode(&ask_libpfm(&["list"]).success().stdout).unwrap();
    let names: Vec<&str> = described.iter().map(|one| one.name.as_str()).collect();
    let answers: Vec<VendorAnswer> =
        wire::decode(&ask_libpfm(&[&["resolve"], &names[..]].concat()).success().stdout).unwrap();
    for (answer, one) in answers.iter().zip(&described) {
        assert!(
            matches!(answer, VendorAnswer::Found(vendor) if vendor.encoding == one.encoding),
            "{answer:?}"
        );
    }
}

fn listed(arguments: &[&str]) -> rig::tool::Output {
    run(Command::new(pmmpi()).args(["list", "events"]).args(arguments)).success()
}

#[test]
fn list_events_says_what_opens_here() {
    let json: Value = serde_json::from_slice(&listed(&["--format", "json"]).stdout).unwrap();
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema/list-events.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&json).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let events = json["events"].as_array().unwrap();
    let event =
        |name: &str| events.iter().find(|event| event["name"] == name).unwrap_or_else(|| panic!("{name}"));
    let clock = event("task_clock_ns");
    assert_eq!(
        (&clock["opens"], &clock["quality"], &clock["unit"]),
        (&true.into(), &"exact".into(), &"ns".into())
    );
    assert_eq!(clock["scopes"], serde_json::json!(["task", "core"]));
    for event in events {
        // An event that does not open has a reason; an event that opens exactly has none.
        assert_eq!(event["quality"] == "exact", event["reason"].is_null(), "{event}");
        assert_eq!(
            event["opens"],
            ["exact", "partial"].contains(&event["quality"].as_str().unwrap()),
            "{event}"
        );
    }
    let text = listed(&["MIGRATIONS"]).out();
    assert!(text.contains("migrations (cpu-migrations)") && !text.contains("page_faults"), "{text}");
    let typed = listed(&["r1c0:u,{page-faults,cs}", "--format", "json"]);
    let typed: Value = serde_json::from_slice(&typed.stdout).unwrap();
    let code = &typed["events"][0]["counted_as"][0];
    assert_eq!(
        (&code["name"], &code["config"][0], &code["modes"]),
        (&"r1c0:u".into(), &"0x1c0".into(), &"user".into())
    );
    assert_eq!(typed["events"].as_array().unwrap().len(), 3);
    let unknown = run(Command::new(pmmpi()).args(["list", "events", "cylces"]));
    assert_eq!((unknown.code(), unknown.out().as_str()), (2, ""));
    assert!(unknown.err().contains("unknown event cylces; did you mean cycles?"), "{}", unknown.err());
}

/// Without libpfm4 all other events are listed, and a message says what to install.
#[test]
fn without_libpfm4_the_rest_is_listed() {
    let library = rig::tool::Folder::new("libdir");
    let script = library.path().join("pmmpi-names");
    std::fs::write(&script, "#!/bin/sh\necho pmmpi-names: apt install libpfm4 >&2\nexit 1\n").unwrap();
    run(Command::new("chmod").arg("+x").arg(&script)).success();
    let output =
        run(Command::new(pmmpi()).args(["list", "events"]).env("PMMPI_LIBDIR", library.path())).success();
    assert!(output.out().contains("page_faults") && output.out().contains("apt install libpfm4"));
    // The real program, when the loader finds a file that is not a library.
    std::fs::write(library.path().join("libpfm.so.4"), "not a library").unwrap();
    let mut real = Command::new(target().join("pmmpi/lib/pmmpi/pmmpi-names"));
    let real = run(real.arg("list").env("LD_LIBRARY_PATH", library.path()));
    assert_eq!((real.code(), real.out().as_str()), (1, ""));
    assert!(real.err().contains("apt install libpfm4"), "{}", real.err());
}
