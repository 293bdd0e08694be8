//! Resolves the event names that the user asks for, on this node.

use crate::cli::options::{self, MeasurementArgs};
use crate::vendor_names;
use pmmpi::counters::core_pmus::default_groups;
use pmmpi::counters::count_and_quality::Gap;
use pmmpi::counters::counters_per_pmu;
use pmmpi::counters::default;
use pmmpi::counters::event::{Encoding, Event, kind};
use pmmpi::counters::open_counters::Scope;
use pmmpi::counters::requested::AskedFor;
use pmmpi::counters::selection::{Selection, WantedSet};
use pmmpi::node::{Cores, CpuSet, NodeFacts, first_of_chips};
use pmmpi_events::metrics::{CpuKind, CpuTable, EventSpec, Sibling, catalogue};
use pmmpi_events::names::{Asked, Capacity, CounterPlan, EventNames, Places, plan};
use pmmpi_workload::Failure;
use std::path::{Path, PathBuf};

/// The default set of each rank's own threads, plus the events of the options.
pub fn select(typed: &MeasurementArgs) -> Result<Selection, Failure> {
    let selection = default_selection();
    if typed.counters == options::CountersArg::Off {
        refuse_beside_off(typed)?;
        return Ok(selection.off());
    }
    let typed_scope = typed.scope.unwrap_or(options::ScopeArg::Task);
    if typed_scope == options::ScopeArg::Task && typed.events.is_none() && typed.group.is_empty() {
        return Ok(selection);
    }
    let counters = counters_per_pmu::general_counters();
    NodeCounters::look(Path::new("/"), counters)?.select(selection, typed, typed_scope.into())
}

/// Returns an error if no group has this name.
pub fn check_group(option: &str, name: &str) -> Result<(), Failure> {
    let groups: Vec<&str> = catalogue().groups.iter().map(|group| group.name.as_str()).collect();
    match groups.contains(&name) {
        true => Ok(()),
        false => Err(Failure::own(format_args!(
            "{option} {name}: there is no group of this name; choose one of {}",
            groups.join(", ")
        ))),
    }
}

/// With `--counters off`, an option that asks for events is an error.
fn refuse_beside_off(typed: &MeasurementArgs) -> Result<(), Failure> {
    let asked = [
        ("--events", typed.events.is_some()),
        ("--group", !typed.group.is_empty()),
        ("--scope", typed.scope.is_some()),
    ];
    match asked.into_iter().find(|(_, is_asked)| *is_asked) {
        Some((option, _)) => Err(Failure::own(format_args!(
            "--counters off disables all counters, but {option} needs counters: remove one of these two \
             options"
        ))),
        None => Ok(()),
    }
}

/// On a processor with several kinds of cores, every kind counts the default set.
fn default_selection() -> Selection {
    let groups = default_groups(Path::new("/"));
    Selection::of(vec![WantedSet::new(Scope::Task, groups, Vec::new())])
}

impl From<options::ScopeArg> for Scope {
    fn from(typed: options::ScopeArg) -> Self {
        match typed {
            options::ScopeArg::Task => Self::Task,
            options::ScopeArg::Core => Self::Core,
            options::ScopeArg::Socket => Self::Socket,
        }
    }
}

/// The events, the processor and the hardware threads of a node.
struct NodeCounters {
    /// The root of the node's file system: "/", except in tests.
    root: PathBuf,
    names: EventNames,
    facts: NodeFacts,
    online: CpuSet,
    capacity: Capacity,
}

/// Why an event cannot be counted in the requested scope.
struct Refused(String);

impl Refused {
    fn of(self, option: &str) -> Failure {
        Failure::own(format_args!("{option}: {}", self.0))
    }
}

impl NodeCounters {
    /// Reads the node whose `/proc` and `/sys` are below `root`. `counters` is [`counters_per_pmu::general_counters`].
    fn look(root: &Path, counters: Option<usize>) -> Result<Self, Failure> {
        let facts = NodeFacts::read(root);
        let online = facts.settings.online.clone();
        if online.0.is_empty() {
            return Err(Failure::own(
                "--events, --group and --scope need /sys/devices/system/cpu/online, but pmmpi cannot read \
                 this file: is /sys mounted?",
            ));
        }
        let watchdog = counters_per_pmu::watchdog_takes_one(root);
        let capacity = Capacity::new(facts.hardware.cpu_vendor.as_deref(), counters, watchdog);
        Ok(Self { root: root.to_owned(), names: EventNames::of(root), facts, online, capacity })
    }

    /// Adds the events that the options ask for.
    fn select(
        &self,
        mut selection: Selection,
        typed: &MeasurementArgs,
        scope: Scope,
    ) -> Result<Selection, Failure> {
        let mut add = |typed: String, wanted: Vec<WantedSet>, is_asked: fn(&Event) -> bool| {
            let names = |wanted: &WantedSet| {
                let scope = wanted.scope;
                let asked = wanted.groups.iter().flatten().filter(|event| is_asked(event));
                asked.map(|event| (scope, event.name.clone())).collect::<Vec<_>>()
            };
            selection.asked.push(AskedFor { typed, events: wanted.iter().flat_map(names).collect() });
            selection.sets.extend(wanted);
        };
        if let Some(list) = &typed.events {
            let asked = self.names.resolve(list, vendor_names::resolve);
            let asked = asked.map_err(|e| Failure::own(format_args!("--events {list}: {e}")))?;
            let mut wanted = Vec::new();
            if scope == Scope::Core {
                // With --scope core, each rank's own threads count these events, too.
                wanted.extend(self.wanted(asked.clone(), Scope::Task).map_err(|e| e.of("--events"))?);
            }
            wanted.extend(self.wanted(asked, scope).map_err(|e| e.of("--events"))?);
            add("--events".to_owned(), wanted, |_| true);
        }
        for name in &typed.group {
            add(format!("--group {name}"), self.group(name, scope)?, |_| true);
        }
        if scope == Scope::Core {
            let cpus = self.online.numbers().collect();
            let all = WantedSet::new(scope, default::groups_of_a_core(), cpus);
            // Only the software events are marked as requested, so a machine without a PMU causes no warning.
            add("--scope core".to_owned(), vec![all], |event| event.encoding.kind == kind::SOFTWARE);
        }
        if scope == Scope::Socket && selection.sets.iter().all(|wanted| wanted.scope != Scope::Socket) {
            return Err(self.nothing_outside_cores(&typed.group));
        }
        Ok(selection.tidied())
    }

    /// The error if the options ask for no event outside the cores. `typed` has the groups of `--group`.
    fn nothing_outside_cores(&self, typed: &[String]) -> Failure {
        let has_none = match typed.is_empty() {
            true => String::new(),
            false => format!(", and --group {} has none on this processor", typed.join(",")),
        };
        let groups = self.groups_outside_cores();
        let or_groups = match groups.is_empty() {
            true => String::new(),
            false => format!(" or --group with one of: {}", groups.join(", ")),
        };
        Failure::own(format_args!(
            "--scope socket needs events of PMUs outside the cores{has_none}: add --events (see `pmmpi list \
             events`){or_groups}"
        ))
    }

    /// The groups with at least one event of a PMU outside the cores that this machine can count.
    fn groups_outside_cores(&self) -> Vec<&'static str> {
        let Some(table) = catalogue().table(&CpuKind::of_node(&self.facts.hardware)) else {
            return Vec::new();
        };
        let has_some = |group: &str| {
            let mut events = catalogue().events_of(group, table).into_iter();
            events.any(|event| event.scope == Scope::Socket && self.event(event).is_some())
        };
        let names = catalogue().groups.iter().map(|group| group.name.as_str());
        names.filter(|name| has_some(name)).collect()
    }

    fn wanted(&self, asked: Vec<Asked>, scope: Scope) -> Result<Vec<WantedSet>, Refused> {
        let plans = plan(asked, scope, self.capacity).map_err(|e| Refused(e.to_string()))?;
        let wanted = |CounterPlan { scope, places, groups }| {
            let cpus = if scope == Scope::Task { Vec::new() } else { places.cpus(&self.online) };
            WantedSet::new(scope, groups, cpus)
        };
        Ok(plans.into_iter().map(wanted).collect())
    }

    /// The events of a group of metrics on this processor, each in its scope.
    fn group(&self, name: &str, scope: Scope) -> Result<Vec<WantedSet>, Failure> {
        check_group("--group", name)?;
        let Some(table) = catalogue().table(&CpuKind::of_node(&self.facts.hardware)) else {
            return Ok(Vec::new());
        };
        self.events_of(name, table, scope).map_err(|e| e.of("--group"))
    }

    /// Gives each event the name that the metrics' formulas use. An event without a PMU on this machine is left
    /// out, with the reason.
    fn events_of(&self, group: &str, table: &CpuTable, scope: Scope) -> Result<Vec<WantedSet>, Refused> {
        let places = [
            (Scope::Task, None),
            (Scope::Core, None),
            (Scope::Core, Some(Sibling::A)),
            (Scope::Core, Some(Sibling::B)),
            (Scope::Socket, None),
        ];
        let events = catalogue().events_of(group, table);
        let on_siblings = events.iter().any(|event| event.sibling.is_some());
        let cores = if on_siblings { Cores::read(&self.root, &self.online) } else { Cores::default() };
        let mut all = Vec::new();
        for (place, sibling) in places {
            // With --scope core, all hardware threads count the events of scope task, too.
            let too = place == Scope::Core && sibling.is_none() && scope == Scope::Core;
            let is_there = |event: &&&EventSpec| {
                (event.scope, event.sibling) == (place, sibling) || too && event.scope == Scope::Task
            };
            let (known, unknown): (Vec<_>, Vec<_>) = events
                .iter()
                .filter(is_there)
                .map(|event| (event, self.event(event)))
                .partition(|(_, asked)| asked.is_some());
            let wanted = self.wanted(known.into_iter().filter_map(|(_, asked)| asked).collect(), place)?;
            all.extend(match sibling {
                Some(sibling) => only_on(wanted, &cores.threads(sibling.index())),
                None => wanted,
            });
            let unknown: Vec<Event> =
                unknown.into_iter().map(|(event, _)| without_pmu(&event.name)).collect();
            all.extend((!unknown.is_empty()).then(|| WantedSet {
                left_out: Some(Gap::Unsupported(libc::ENODEV)),
                ..WantedSet::new(place, vec![unknown], Vec::new())
            }));
        }
        Ok(all)
    }

    fn event(&self, spec: &EventSpec) -> Option<Asked> {
        let no_vendor = |_: &[String]| Err("not asked".to_owned());
        let asked = self.names.resolve(&spec.encoding, no_vendor).ok()?;
        let Some(Asked::Event(mut resolved)) = asked.into_iter().next() else { return None };
        for resolved in &mut resolved {
            // A formula sees the events of several PMUs of one kind as one event.
            resolved.event.name.clone_from(&spec.name);
            // Before Zen, the core PMU of AMD also has the events of a processor chip.
            if spec.scope == Scope::Socket && matches!(resolved.places, Places::Threads(_)) {
                let chips = first_of_chips(&self.root, &self.online);
                resolved.places = Places::Socket(CpuSet::from_numbers(chips.into_iter()));
            }
        }
        Some(Asked::Event(resolved))
    }
}

/// An event with a name only: this machine has no PMU for it.
fn without_pmu(name: &str) -> Event {
    Event::counted(name, Encoding::new(u32::MAX, 0))
}

/// Restricts `wanted` to these hardware threads. If no event remains, the sets stay, with empty lists. So the run
/// still records the user's request.
fn only_on(mut wanted: Vec<WantedSet>, threads: &[u32]) -> Vec<WantedSet> {
    wanted.iter_mut().for_each(|wanted| wanted.cpus.retain(|cpu| threads.contains(cpu)));
    // On a hybrid processor, one kind of core may have such hardware threads and the other kind not.
    if wanted.iter().any(|wanted| !wanted.cpus.is_empty()) {
        wanted.retain(|wanted| !wanted.cpus.is_empty());
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A fake node's files: a processor of a family and model, and the siblings of each hardware thread. Drop
    /// removes them.
    struct Node(PathBuf);

    impl Node {
        fn new(cpuinfo: &str, siblings: &[&str]) -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let node =
                Self(std::env::temp_dir().join(format!("test-counting-{}-{number}", std::process::id())));
            node.put("proc/cpuinfo", cpuinfo);
            node.put("sys/devices/system/cpu/online", &format!("0-{}\n", siblings.len() - 1));
            for (thread, list) in siblings.iter().enumerate() {
                node.put(&format!("sys/devices/system/cpu/cpu{thread}/topology/core_cpus_list"), list);
            }
            node
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn pmu(&self, name: &str, number: u32, format: &[(&str, &str)], events: &[(&str, &str)]) {
            let folder = format!("sys/bus/event_source/devices/{name}");
            self.put(&format!("{folder}/type"), &number.to_string());
            format.iter().for_each(|(name, bits)| self.put(&format!("{folder}/format/{name}"), bits));
            events.iter().for_each(|(name, terms)| self.put(&format!("{folder}/events/{name}"), terms));
        }

        /// Each event of the group, with its scope and hardware threads.
        fn group(&self, name: &str, scope: Scope) -> Vec<(String, Scope, Vec<u32>)> {
            let machine = NodeCounters::look(&self.0, None).map_err(|failure| failure.message).unwrap();
            let wanted = machine.group(name, scope).map_err(|failure| failure.message).unwrap();
            let event = |wanted: &WantedSet| {
                let place = (wanted.scope, wanted.cpus.clone());
                let names = wanted.groups.iter().flatten().map(|event| event.name.clone());
                names.map(move |name| (name, place.0, place.1.clone())).collect::<Vec<_>>()
            };
            wanted.iter().flat_map(event).collect()
        }
    }

    impl Drop for Node {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const SKYLAKE: &str = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n";
    const ZEN_2: &str = "vendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t\t: 49\n";
    const ZEN_4: &str = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n";
    const CORE: [(&str, &str); 3] =
        [("event", "config:0-7\n"), ("umask", "config:8-15\n"), ("any", "config:21\n")];
    const SMT: [&str; 4] = ["0,2", "1,3", "0,2", "1,3"];
    const ARM: &str = "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n";

    fn at(name: &str, cpus: &[u32]) -> (String, Scope, Vec<u32>) {
        (name.to_owned(), Scope::Core, cpus.to_vec())
    }

    #[test]
    fn siblings_are_counted_each_on_its_own_hardware_thread() {
        let node = Node::new(SKYLAKE, &SMT);
        node.pmu("cpu", 4, &CORE, &[]);
        let (first, second) = ([0, 1], [2, 3]);
        let skylake = [at("ref_cycles_a", &first), at("ref_xclk_any", &first), at("ref_cycles_b", &second)];
        assert_eq!(node.group("smt", Scope::Task), skylake);
        // `--scope core` itself adds the default set of all hardware threads; the group does not.
        assert_eq!(node.group("smt", Scope::Core), skylake);
        // On Zen, the PMU `msr` counts these events.
        let node = Node::new(ZEN_2, &SMT);
        node.pmu("cpu", 4, &CORE[..2], &[]);
        node.pmu("msr", 11, &[("event", "config:0-63\n")], &[("mperf", "event=0x02\n")]);
        assert_eq!(node.group("smt", Scope::Task), [at("ref_cycles_a", &first), at("ref_cycles_b", &second)]);
    }

    /// The core PMU of family 10h counts the events of a whole chip. Therefore one hardware thread of each chip
    /// counts them, and not each rank.
    #[test]
    fn events_of_a_chip_are_counted_once_a_chip() {
        let node =
            Node::new("vendor_id\t: AuthenticAMD\ncpu family\t: 16\nmodel\t\t: 4\n", &["0", "1", "2", "3"]);
        node.pmu("cpu", 4, &[("event", "config:0-7,32-35\n"), ("umask", "config:8-15\n")], &[]);
        for (thread, socket) in ["0\n", "0\n", "1\n", "1\n"].iter().enumerate() {
            node.put(&format!("sys/devices/system/cpu/cpu{thread}/topology/physical_package_id"), socket);
        }
        let memory = node.group("memory", Scope::Task);
        let dram: Vec<_> = memory.iter().filter(|(name, ..)| name.starts_with("dram")).collect();
        assert_eq!(dram.len(), 2);
        assert!(
            dram.iter().all(|(_, scope, cpus)| (*scope, &cpus[..]) == (Scope::Socket, &[0, 2])),
            "{dram:?}"
        );
        let reads = memory.iter().find(|(name, ..)| name == "system_reads").unwrap();
        assert_eq!((reads.1, &reads.2[..]), (Scope::Task, &[][..]));
    }

    /// Before Zen 4 the core PMU counts no reference cycles: the group asks the hardware threads for them.
    #[test]
    fn frequencies_of_zen_2_need_counts_of_hardware_threads() {
        let node = Node::new(ZEN_2, &SMT);
        node.pmu("cpu", 4, &CORE[..2], &[]);
        let events = [("mperf", "event=0x02\n"), ("aperf", "event=0x01\n")];
        node.pmu("msr", 11, &[("event", "config:0-63\n")], &events);
        let on_cores: Vec<_> = node
            .group("frequency", Scope::Task)
            .into_iter()
            .filter(|(_, scope, _)| *scope == Scope::Core)
            .collect();
        assert_eq!(on_cores, [at("mperf", &[0, 1, 2, 3]), at("aperf", &[0, 1, 2, 3])]);
    }

    #[test]
    fn a_core_without_a_second_hardware_thread_has_one_place() {
        let node = Node::new(SKYLAKE, &["0", "1"]);
        node.pmu("cpu", 4, &CORE, &[]);
        let expected = [at("ref_cycles_a", &[0, 1]), at("ref_xclk_any", &[0, 1]), at("ref_cycles_b", &[])];
        assert_eq!(node.group("smt", Scope::Task), expected);
        // This kernel or processor has no AnyThread bit.
        let node = Node::new(SKYLAKE, &SMT);
        node.pmu("cpu", 4, &CORE[..2], &[]);
        let expected = [at("ref_cycles_a", &[0, 1]), at("ref_xclk_any", &[]), at("ref_cycles_b", &[2, 3])];
        assert_eq!(node.group("smt", Scope::Task), expected);
    }

    /// One kind of core has two hardware threads, the other has one. The catalogue has no table for this processor.
    #[test]
    fn of_several_kinds_of_cores_each_is_counted_as_far_as_it_has_siblings() {
        let node = Node::new(
            "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 151\n",
            &["0-1", "0-1", "2-3", "2-3", "4", "5"],
        );
        for (name, number, cpus) in [("cpu_core", 4, "0-3\n"), ("cpu_atom", 10, "4-5\n")] {
            node.pmu(name, number, &CORE[..2], &[]);
            node.put(&format!("sys/bus/event_source/devices/{name}/cpus"), cpus);
        }
        let mut events = node.group("smt", Scope::Task);
        events.sort_by(|a, b| (&a.0, &a.2).cmp(&(&b.0, &b.2)));
        let expected =
            [at("ref_cycles_a", &[0, 2]), at("ref_cycles_a", &[4, 5]), at("ref_cycles_b", &[1, 3])];
        assert_eq!(events, expected);
    }

    /// Processors of Intel, AMD and Arm, a hybrid one and an unknown one, each with and without its PMUs. Every
    /// event of each group is either tried or left out with a reason, never both.
    #[test]
    fn each_machine_is_asked_for_all_that_its_groups_need() {
        let hybrid = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 151\n";
        let unknown = "processor\t: 0\n";
        for (cpuinfo, pmus) in [
            (SKYLAKE, &["cpu"][..]),
            (ZEN_2, &["cpu", "msr"]),
            (ZEN_4, &["cpu"]),
            (hybrid, &["cpu_core", "cpu_atom"]),
            (ARM, &["armv8_pmuv3_0"]),
            (unknown, &[]),
        ] {
            for has_pmus in [true, false] {
                let node = Node::new(cpuinfo, &SMT);
                for (number, pmu) in (8..).zip(pmus.iter().filter(|_| has_pmus)) {
                    node.pmu(pmu, number, &CORE[..2], &[("mperf", "event=0x02\n")]);
                }
                let machine = NodeCounters::look(&node.0, None).map_err(|failure| failure.message).unwrap();
                let table = catalogue().table(&CpuKind::of_node(&machine.facts.hardware)).unwrap();
                for group in &catalogue().groups {
                    let wanted = machine.group(&group.name, Scope::Task).map_err(|e| e.message).unwrap();
                    let names = |left_out: bool| -> Vec<&str> {
                        let sets = wanted.iter().filter(|set| set.left_out.is_some() == left_out);
                        sets.flat_map(|set| &set.groups).flatten().map(|event| event.name.as_str()).collect()
                    };
                    let (tried, missing) = (names(false), names(true));
                    for spec in catalogue().events_of(&group.name, table) {
                        let name = spec.name.as_str();
                        assert!(tried.contains(&name) != missing.contains(&name), "{} {name}", group.name);
                    }
                }
            }
        }
    }

    #[test]
    fn what_threads_are_asked_for_is_asked_of_all_hardware_threads_too() {
        let node = Node::new(SKYLAKE, &SMT);
        node.pmu("cpu", 4, &CORE, &[]);
        let efficiency = |scope| {
            let events = node.group("efficiency", scope);
            events.into_iter().map(|(name, scope, cpus)| (name, scope, cpus.len())).collect::<Vec<_>>()
        };
        let task = [("instructions", Scope::Task, 0), ("cycles", Scope::Task, 0)];
        let both = [task[0], task[1], ("instructions", Scope::Core, 4), ("cycles", Scope::Core, 4)];
        let owned = |events: &[(&str, Scope, usize)]| -> Vec<(String, Scope, usize)> {
            events.iter().map(|(name, scope, count)| ((*name).to_owned(), *scope, *count)).collect()
        };
        assert_eq!(efficiency(Scope::Task), owned(&task));
        assert_eq!(efficiency(Scope::Core), owned(&both));
    }

    /// The message proposes only groups whose events this machine has.
    #[test]
    fn a_scope_without_events_is_explained() {
        let refused = |node: &Node, groups: &[&str]| {
            let arguments = groups.iter().chain(&["--scope", "socket", "true"]);
            let arguments: Vec<OsString> = arguments.map(OsString::from).collect();
            let typed = options::measurement(&arguments).unwrap();
            let machine = NodeCounters::look(&node.0, None).map_err(|failure| failure.message).unwrap();
            let selected = machine.select(Selection::of(Vec::new()), &typed, Scope::Socket);
            selected.err().map(|failure| failure.message).unwrap()
        };
        let needs = "--scope socket needs events of PMUs outside the cores";
        let add = "add --events (see `pmmpi list events`)";
        let node = Node::new(ARM, &SMT);
        node.pmu("armv8_pmuv3_0", 8, &CORE[..2], &[]);
        assert_eq!(refused(&node, &[]), format!("{needs}: {add}"));
        let of_group = refused(&node, &["--group", "memory"]);
        assert_eq!(of_group, format!("{needs}, and --group memory has none on this processor: {add}"));
        node.pmu("power", 9, &CORE[..1], &[("energy-pkg", "event=0x02\n")]);
        let of_groups = refused(&node, &["--group", "memory,tlb"]);
        let has_none = "and --group memory,tlb has none on this processor";
        assert_eq!(of_groups, format!("{needs}, {has_none}: {add} or --group with one of: power"));
    }
}
