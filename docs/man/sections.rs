//! Sections of man pages that the command line does not know.

use crate::page::Section;

/// Of each command that measures a program.
pub const MEASURING: [Section; 4] = [REGIONS, EXIT_STATUS, ENVIRONMENT, FILES];

pub const REPORT_ENVIRONMENT: Section = (
    "ENVIRONMENT",
    "PMMPI_OUT    the folder that `pmmpi report` reads where no PATH is given
PMMPI_TRUST  the folder with what `pmmpi validate` found",
);
const EXIT_STATUS: Section = (
    "EXIT STATUS",
    "The program's own: its code, or its signal.
124  the program's time was up (--timeout), however it ended then
125  pmmpi itself failed, before the program started wherever that is possible
126  the program cannot be executed
127  the program was not found",
);
pub const DOCTOR_EXIT_STATUS: Section = (
    "EXIT STATUS",
    "0    nothing is broken (with --fail-on limits: nor limited)
1    something is
2    the command line is wrong
125  what was found could not be written",
);
pub const ENVIRONMENT: Section = (
    "ENVIRONMENT",
    "PMMPI_OUT     the folder for run files where --out names none
PMMPI_LIBDIR  where libpmmpi_agent.so, pmmpi-topology, pmmpi-names and the runners are,
              if not in ../lib/pmmpi as seen from pmmpi's own folder",
);
const REGIONS: Section = (
    "REGIONS",
    "pmmpi_begin(\"NAME\") and pmmpi_end(\"NAME\") of pmmpi.h (C, C++) or the module
pmmpi in pmmpi.f90 (Fortran) bracket a part of the work with barriers of its
own, and `pmmpi report` bounds it. All ranks call them in the same order.
With --regions pcontrol MPI_Pcontrol(N), N >= 2, enters region N in place of
the one before it, MPI_Pcontrol(-N) leaves it, 0 stops counting on its rank,
1 goes on. Without it MPI_Pcontrol is passed on and adds no barrier. With
--regions off pmmpi_begin and pmmpi_end add none either.",
);
const FILES: Section = (
    "FILES",
    "pmmpi-results/RUN_ID.pmr      one run each, written whole or not at all
pmmpi-results/RUN_ID.partial/ a run while it runs, and what is left of one that
                              ended badly; `pmmpi report` reads it
pmmpi-results/.nodes/         what changes only when a node boots; may be removed",
);

pub const VALIDATE: [Section; 3] = [
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
