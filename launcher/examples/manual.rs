//! Writes the launcher's man pages into `man/man1` below the folder named: `cargo run --example manual -- FOLDER`.

#[path = "../src/cli/options.rs"]
#[allow(dead_code)]
mod options;
#[path = "../../docs/man/page.rs"]
mod page;

use clap::CommandFactory;
use std::path::PathBuf;

const EXIT_STATUS: (&str, &str) = (
    "EXIT STATUS",
    "The program's own: its code, or its signal.
124  the program's time was up (--timeout), however it ended then
125  pmmpi itself failed, before the program started wherever that is possible
126  the program cannot be executed
127  the program was not found",
);
const DOCTOR_EXIT_STATUS: (&str, &str) = (
    "EXIT STATUS",
    "0    nothing is broken (with --fail-on limits: nor limited)
1    something is
2    the command line is wrong
125  what was found could not be written",
);
const ENVIRONMENT: (&str, &str) = (
    "ENVIRONMENT",
    "PMMPI_OUT     the folder for run files where --out names none
PMMPI_LIBDIR  where libpmmpi_agent.so, pmmpi-topology, pmmpi-names and the runners are,
              if not in ../lib/pmmpi as seen from pmmpi's own folder",
);
const REGIONS: (&str, &str) = (
    "REGIONS",
    "pmmpi_begin(\"NAME\") and pmmpi_end(\"NAME\") of pmmpi.h (C, C++) or the module
pmmpi in pmmpi.f90 (Fortran) bracket a part of the work with barriers of its
own, and `pmmpi report` bounds it. All ranks call them in the same order.
With --regions pcontrol MPI_Pcontrol(N), N >= 2, enters region N in place of
the one before it, MPI_Pcontrol(-N) leaves it, 0 stops counting on its rank,
1 goes on. Without it MPI_Pcontrol is passed on and adds no barrier. With
--regions off pmmpi_begin and pmmpi_end add none either.",
);
const FILES: (&str, &str) = (
    "FILES",
    "pmmpi-results/RUN_ID.pmr      one run each, written whole or not at all
pmmpi-results/RUN_ID.partial/ a run while it runs, and what is left of one that
                              ended badly; `pmmpi report` reads it
pmmpi-results/.nodes/         what changes only when a node boots; may be removed",
);

const VALIDATE: [(&str, &str); 3] = [
    (
        "EXIT STATUS",
        "0    nothing that could be counted is unusable
1    something is
2    the command line is wrong
125  pmmpi itself failed",
    ),
    (
        "ENVIRONMENT",
        "PMMPI_TRUST     the folder for what is found
XDG_STATE_HOME  whose folder pmmpi it is otherwise, if not ~/.local/state",
    ),
    ("FILES", "trust-CPU.json  what was found, one for each kind of processor"),
];

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| ".".into()));
    let man = folder.join("man/man1");
    std::fs::create_dir_all(&man)?;
    let command = page::with_all(options::Options::command()).mut_subcommand("run", page::with_all);
    // `report` and `bounds` are described by the program that they become.
    let measuring = [REGIONS, EXIT_STATUS, ENVIRONMENT, FILES];
    for (name, sections) in [("run", &measuring[..]), ("repeat", &measuring), ("list", &[ENVIRONMENT])] {
        let sub = command.find_subcommand(name).cloned().unwrap_or_default();
        let sub = sub.bin_name(format!("pmmpi {name}"));
        page::write(&man, &format!("pmmpi-{name}"), sub, sections)?;
    }
    let validate = command.find_subcommand("validate").cloned().unwrap_or_default();
    page::write(&man, "pmmpi-validate", validate.bin_name("pmmpi validate"), &VALIDATE)?;
    let doctor = command.find_subcommand("doctor").cloned().unwrap_or_default().bin_name("pmmpi doctor");
    page::write(&man, "pmmpi-doctor", doctor, &[DOCTOR_EXIT_STATUS, ENVIRONMENT])?;
    page::write(&man, "pmmpi", command, &measuring)
}
