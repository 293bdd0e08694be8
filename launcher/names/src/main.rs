//! Looks up event names of vendors' manuals with libpfm4 and writes the result to stdout in wire form:
//! `pmmpi-names resolve NAME...` writes a list of `names::VendorAnswer`, `pmmpi-names list` a list of
//! `names::VendorEvent`.
//!
//! It is a separate program, so that the launcher, which runs on every rank, needs no libpfm4, and so that a crash
//! in the library ends only this process. It loads the system's library at run time, because a newer one knows
//! newer processors.

mod pfm;

use pfm::PfmLibrary;
use pmmpi::record::wire;
use pmmpi_events::names::{Vendor, VendorAnswer, VendorEvent, closest};
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("pmmpi-names: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let bytes = match arguments.split_first() {
        Some((command, names)) if command == "resolve" => {
            let library = PfmLibrary::load()?;
            wire::encode(&names.iter().map(|name| resolve(&library, name)).collect::<Vec<VendorAnswer>>())?
        }
        Some((command, [])) if command == "list" => wire::encode(&list(&PfmLibrary::load()?))?,
        _ => return Err("expected: resolve NAME..., or list".into()),
    };
    Ok(std::io::stdout().write_all(&bytes)?)
}

fn resolve(library: &PfmLibrary, name: &str) -> VendorAnswer {
    match library.encode(name) {
        Ok((encoding, full_name)) => {
            VendorAnswer::Found(Vendor { name: name.to_owned(), full_name, encoding })
        }
        Err(error) if error.is_not_found() => {
            let names = names(library);
            VendorAnswer::Unknown { like: closest(name, names.iter().map(String::as_str)) }
        }
        Err(error) => {
            let masks = library.masks_of(name);
            let masks = if masks.is_empty() {
                String::new()
            } else {
                format!("; the unit masks of this event are {}", masks.join(", "))
            };
            VendorAnswer::Refused { why: format!("libpfm4 reports: {error}{masks}") }
        }
    }
}

/// The names of all events, without and with each unit mask.
fn names(library: &PfmLibrary) -> Vec<String> {
    let of = |event: pfm::PfmEvent| {
        let masks = event.masks.iter().map(|mask| format!("{}:{}", event.name, mask.0)).collect::<Vec<_>>();
        std::iter::once(event.name.clone()).chain(masks)
    };
    library.events().into_iter().flat_map(of).collect()
}

/// The events of this processor's tables that libpfm4 can encode.
fn list(library: &PfmLibrary) -> Vec<VendorEvent> {
    let mut all = Vec::new();
    for event in library.events() {
        let mut add = |name: String, description: String| {
            if let Ok((encoding, _)) = library.encode(&name) {
                all.push(VendorEvent { name, description, encoding });
            }
        };
        if event.masks.is_empty() {
            add(event.name, event.description);
            continue;
        }
        for (mask, description) in event.masks {
            add(format!("{}:{mask}", event.name), format!("{}: {description}", event.description));
        }
    }
    all
}
