//! Any text as a list of events, and any content of the files in /sys.

use super::{codes, no_vendor, resolve, said, set};
use pmmpi::counters::open_counters::Scope;
use pmmpi_events::names::{Capacity, EventNames, plan};
use proptest::prelude::*;
use rig::sys::Machine;
use rig::tool::run;
use std::process::Command;

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
}
