//! Sections of man pages that the command line does not know.

use crate::page::Section;

/// Of each command that measures a program.
pub const MEASURING: [Section; 4] = [REGIONS, EXIT_STATUS, ENVIRONMENT, FILES];

pub const REPORT_ENVIRONMENT: Section = (
    "ENVIRONMENT",
    "PMMPI_OUT    the folder that report, export and compare read if the command line
             names no folder (default: pmmpi-results)
PMMPI_TRUST  the folder with the results of `pmmpi validate`, which report, export
             and compare read",
);
const EXIT_STATUS: Section = (
    "EXIT STATUS",
    "The exit status of the program. If a signal ended the program, pmmpi ends itself
with the same signal. repeat: the status or the signal of the first launch that
failed. The statuses of pmmpi itself:
124  pmmpi ended the program because of --timeout
125  pmmpi itself failed (if possible, before the program starts), or the command
     line is wrong
126  the program cannot be executed
127  the program was not found",
);
pub const DOCTOR_EXIT_STATUS: Section = (
    "EXIT STATUS",
    "0    no check is broken (with --fail-on limits: no check is broken or limits)
1    a check is broken (with --fail-on limits: broken or limits)
2    the command line is wrong
125  pmmpi could not write the result",
);
pub const ENVIRONMENT: Section = (
    "ENVIRONMENT",
    "PMMPI_OUT     the folder for run files, if --out names no folder
PMMPI_LIBDIR  the folder of libpmmpi_agent.so, pmmpi-topology, pmmpi-names,
              pmmpi-gpus, pmmpi-dynamic and the runners (default: ../lib/pmmpi
              relative to pmmpi's own folder, or else pmmpi's own folder)",
);
pub const LIST_ENVIRONMENT: Section = (
    "ENVIRONMENT",
    "PMMPI_LIBDIR  the folder of pmmpi-names, which knows the event names of vendors
              (default: ../lib/pmmpi relative to pmmpi's own folder, or else
              pmmpi's own folder)",
);
const REGIONS: Section = (
    "REGIONS",
    "pmmpi_begin(\"NAME\") and pmmpi_end(\"NAME\") of pmmpi.h (C, C++) or the module
pmmpi in pmmpi.f90 (Fortran) enclose a region: a part of the work with its own
barriers. `pmmpi report` shows bounds of the region's time. All ranks must call
these functions and all other collective functions in the same order. With
--regions pcontrol, MPI_Pcontrol(N) with N >= 2 leaves the region that an earlier
call of MPI_Pcontrol entered, and enters region N. MPI_Pcontrol(-N) leaves region
N. MPI_Pcontrol(0) pauses the recording of regions on its rank, and
MPI_Pcontrol(1) resumes the recording. Without this option pmmpi only passes
MPI_Pcontrol on and adds no barrier. With --regions off, pmmpi_begin and pmmpi_end
add no barrier either, and pmmpi records no probes.",
);
const FILES: Section = (
    "FILES",
    "pmmpi-results/RUN_ID.pmr      one complete run; the file appears only when it is complete
pmmpi-results/RUN_ID.partial/ the data of an MPI program that still runs or ended
                              badly; `pmmpi report` can read this folder
pmmpi-results/.nodes/         facts of nodes that rarely change; you may remove this
                              folder",
);
const SCREEN_FILES: Section = (
    "FILES",
    "pmmpi-results/RUN_ID.pmr          one round of one kernel, or of PROGRAM
pmmpi-results/SERIES_ID.ended     why the screen ended early
pmmpi-results/RUN_ID.findings     --apply: the nodes to mark, and the nodes that passed
pmmpi-results/node-actions.jsonl  --apply: the log of all changes, unless --log names
                                  another file",
);

pub const SCREEN: [Section; 3] = [
    (
        "EXIT STATUS",
        "0    the screen is complete, and no condition of --fail-on or --gate is true
1    the screen ended early; or pmmpi could not use some input, or could not add
     the runs to the archive; or pmmpi could not read or change a node in Slurm,
     could not use the log (--log), or marked no node because of --max-nodes
2    the command line is wrong
3    --fail-on: the condition is true; --gate: a node is not fit to return
4    --fail-on: the report could not judge the nodes, or a node has no result;
     --gate: a node is UNDECIDED
125  pmmpi itself failed
126  the program that the screen measures, or pmmpi-report, cannot be executed
127  the program that the screen measures, or pmmpi-report, was not found",
    ),
    ENVIRONMENT,
    SCREEN_FILES,
];
pub const VALIDATE: [Section; 3] = [
    (
        "EXIT STATUS",
        "0    pmmpi found no event unusable
1    at least one event is unusable
2    the command line is wrong
125  pmmpi itself failed",
    ),
    (
        "ENVIRONMENT",
        "PMMPI_TRUST     the folder for the results
XDG_STATE_HOME  without PMMPI_TRUST, the results are in the folder pmmpi below this
                folder (default: ~/.local/state)",
    ),
    ("FILES", "trust-CPU.json  the results for one kind of processor"),
];
