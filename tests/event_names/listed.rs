//! `pmmpi list events`.

use super::{events, resolve};
use pmmpi::counters::event::Modes;
use pmmpi::counters::open_counters::Scope;
use pmmpi_events::names::{Asked, EventNames};
use rig::sys::Machine;
use rig::tool::{pmmpi, run, target};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

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
    for what in ["groups", "metrics", "kernels"] {
        let none = run(Command::new(pmmpi()).args(["list", what, "zzz"]));
        assert_eq!((none.code(), none.out().as_str()), (2, ""), "{what}");
        assert!(none.err().contains(&format!("none of the {what} matches zzz")), "{}", none.err());
    }
}

#[test]
fn list_kernels_has_those_of_screen_and_validate() {
    let listed = run(Command::new(pmmpi()).args(["list", "kernels", "--format", "json"])).success();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let named = |list: &str, name: &str| {
        let kernels = listed[list].as_array().unwrap();
        kernels.iter().find(|kernel| kernel["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    assert_eq!(named("screen_kernels", "latency")["unit"], "ns");
    assert!(named("kernels", "page-touch")["expected"].is_array());
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
