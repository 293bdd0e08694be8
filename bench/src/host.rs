//! Describes the machine and the software of the measurement.

use pmmpi::node::NodeFacts;
use std::path::Path;
use std::process::Command;

/// A heading with host, versions and the command.
pub fn describe() -> String {
    let facts = NodeFacts::read(Path::new("/"));
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".into());
    let first_line = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output().ok()?;
        String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
    };
    let virtual_machine = if facts.hardware.hypervisor { ", a virtual machine" } else { "" };
    format!(
        "# What pmmpi costs\n\n\
         Unless a section says otherwise, `make bench` measured these values with pmmpi {}, and the variants \
         in a table ran in turns. A value with brackets is a median; the brackets contain the quartiles. \
         Peak memory is a median, too.\n\n\
         - {}, {} hardware threads{virtual_machine}, {} GiB, Linux {}\n- {}\n- {}\n- {}\n",
        env!("CARGO_PKG_VERSION"),
        or_unknown(facts.hardware.cpu_model_name),
        facts.settings.online.0.iter().map(|(first, last)| last - first + 1).sum::<u32>(),
        facts.hardware.memory_bytes.unwrap_or(0) >> 30,
        or_unknown(facts.hardware.kernel),
        or_unknown(first_line("mpirun.openmpi", &["--version"])),
        or_unknown(first_line("mpichversion", &[])),
        or_unknown(first_line("rustc", &["--version"])),
    )
}
