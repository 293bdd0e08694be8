//! Names of events that only a vendor's table has; also with the real libpfm4 on this machine.

use super::set;
use pmmpi::counters::event::{Encoding, Modes, kind};
use pmmpi::record::wire;
use pmmpi_events::names::{Asked, EventNames, Places, Vendor, VendorAnswer, VendorEvent};
use rig::sys::Machine;
use rig::tool::{run, target};
use std::process::Command;

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
