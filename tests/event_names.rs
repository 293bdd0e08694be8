//! Names of events on other machines than this one; and with the real libpfm4 on this machine.

#[path = "event_names/any_input.rs"]
mod any_input;
#[path = "event_names/event_groups.rs"]
mod event_groups;
#[path = "event_names/listed.rs"]
mod listed;
#[path = "event_names/vendor_names.rs"]
mod vendor_names;

use pmmpi::counters::event::{Encoding, Event, Group, Modes, kind};
use pmmpi::counters::open_counters::Scope;
use pmmpi::node::{CpuSet, NodeSettings};
use pmmpi_events::names::{
    Asked, Capacity, CounterPlan, EventNames, NameError, Places, Resolved, VendorAnswer, family, plan,
};
use rig::sys::Machine;
use rig::tool::{pmmpi, run};
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
        ("cycles_kernel:u", &["the event's name already sets another mode"]),
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
        assert!(
            said.contains("after an event, pmmpi accepts only a mode: EVENT:u (user mode)"),
            "{list}: {said}"
        );
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
