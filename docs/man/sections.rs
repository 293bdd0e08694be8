//! Sections of man pages that the command line does not know. The viewer fills their paragraphs
//! and their entries (`NAME  text`).

use crate::page::PageSection;

/// Of each command that measures a program.
pub const MEASURING: [PageSection; 3] = [REGIONS, ENVIRONMENT, FILES];

pub const REPORT_ENVIRONMENT: PageSection = (
    "ENVIRONMENT",
    "PMMPI_OUT    the folder that the commands report, export and compare read if the
             command line names no folder (default: pmmpi-results)
PMMPI_TRUST  the folder with the results of `pmmpi validate`; the commands report,
             export and compare read these results",
);
pub const ENVIRONMENT: PageSection = (
    "ENVIRONMENT",
    "PMMPI_OUT     the folder for run files, if --out names no folder
PMMPI_LIBDIR  the folder of libpmmpi_agent.so, pmmpi-topology, pmmpi-names,
              pmmpi-gpus, pmmpi-dynamic and the runners (default: ../lib/pmmpi
              relative to pmmpi's own folder; for a file that is not there,
              pmmpi's own folder)",
);
pub const LIST_ENVIRONMENT: PageSection = (
    "ENVIRONMENT",
    "PMMPI_LIBDIR  the folder of the program pmmpi-names, from which pmmpi gets the event
              names of vendors (default: ../lib/pmmpi relative to pmmpi's own
              folder; if pmmpi-names is not there, pmmpi's own folder)",
);
const REGIONS: PageSection = (
    "REGIONS",
    "pmmpi_begin(\"NAME\") and pmmpi_end(\"NAME\") of pmmpi.h (C, C++) or of the module
pmmpi in pmmpi.f90 (Fortran) enclose a region: a part of the work with its own
barriers. `pmmpi report` shows bounds of the region's time. All ranks must call
these functions and all other collective functions in the same order. With
--regions pcontrol, a call of MPI_Pcontrol(N) with N >= 2 enters region N. If an
earlier call of MPI_Pcontrol entered a region, the new call first leaves this
region. MPI_Pcontrol(-N) leaves region N. MPI_Pcontrol(0) pauses the recording of
regions on the calling rank, and MPI_Pcontrol(1) resumes the recording. Without
--regions pcontrol, pmmpi passes each call of MPI_Pcontrol to the MPI library, and
adds no barrier. With --regions off, pmmpi records no regions and no probes, and
pmmpi_begin and pmmpi_end add no barrier.",
);
const FILES: PageSection = (
    "FILES",
    "pmmpi-results/RUN_ID.pmr       one complete run; the file appears only when it is complete
pmmpi-results/RUN_ID.partial/  the data of an MPI program that still runs or did
                               not end normally; `pmmpi report` can read this folder
pmmpi-results/.nodes/          rarely changing facts of nodes; you may remove this
                               folder",
);
const SCREEN_FILES: PageSection = (
    "FILES",
    "pmmpi-results/RUN_ID.pmr          one round of one kernel, or of PROGRAM
pmmpi-results/SERIES_ID.ended     why the screen ended early
pmmpi-results/RUN_ID.findings     --apply: the nodes to mark, and the nodes that passed
                                  --gate
pmmpi-results/node-actions.jsonl  --apply: the log of all changes, unless --log names
                                  another file",
);

pub const SCREEN: [PageSection; 2] = [ENVIRONMENT, SCREEN_FILES];
pub const VALIDATE: [PageSection; 2] = [
    (
        "ENVIRONMENT",
        "PMMPI_TRUST     the folder for the results
XDG_STATE_HOME  if PMMPI_TRUST is not set, the results are in XDG_STATE_HOME/pmmpi
                (default: ~/.local/state/pmmpi)",
    ),
    ("FILES", "trust-CPU.json  the results for one kind of processor"),
];

/// Of every page.
pub fn see_also(command: &str) -> String {
    let commands = if command == "pmmpi" { "" } else { "pmmpi(1) lists all commands.\n" };
    format!("{commands}{DOCUMENTATION}")
}

const DOCUMENTATION: &str = "\
The full documentation is in the folder
PREFIX/share/doc/pmmpi/docs. PREFIX is the folder of the installation: the program
is PREFIX/bin/pmmpi. If a help text names a file docs/NAME.md, this file is in that
folder. docs/exit-status.md describes all exit statuses.
PREFIX/share/doc/pmmpi/README.md lists the files.";

/// The section EXIT STATUS of a command. docs/exit-status.md says the same at length.
pub fn exit_status(command: &str) -> String {
    match command {
        "pmmpi" | "run" | "repeat" => MEASURING_STATUS.to_owned(),
        "screen" => SCREEN_STATUS.to_owned(),
        "doctor" => format!("{DOCTOR_STATUS}\n{OWN_STATUS}"),
        "validate" => format!("{VALIDATE_STATUS}\n{OWN_STATUS}"),
        "list" => format!("{LIST_STATUS}\n{OWN_STATUS}"),
        "report" => format!("{INPUT_STATUS}\n{REPORT_STATUS}\n{START_STATUS}\n{NAGIOS_STATUS}"),
        "compare" => format!("{INPUT_STATUS}\n{COMPARE_STATUS}\n{START_STATUS}"),
        "diff" => format!("{DIFF_STATUS}\n{START_STATUS}"),
        _ => format!("{INPUT_STATUS}\n{START_STATUS}"),
    }
}

const MEASURING_STATUS: &str = "\
pmmpi ends with the exit status of the measured program. If a signal ended the
program, pmmpi ends itself with the same signal. `pmmpi repeat` ends with the status
or the signal of the first launch that failed. The statuses of pmmpi itself:
124  pmmpi ended the program because of --timeout
125  the command line is wrong, or pmmpi itself failed (if possible, pmmpi finds the
     error before the program starts)
126  the program cannot be executed
127  the program was not found";
const SCREEN_STATUS: &str = "\
0    the screen is complete, and no condition of --fail-on or --gate is true
1    one of these: the screen ended early; a signal came before pmmpi changed nodes
     (--apply); pmmpi could not use some input; after the last round, pmmpi could
     not add the runs to the archive; after the last round, pmmpi could not use the
     log (--log); pmmpi could not find, read or change a node in Slurm; pmmpi found
     several nodes for one host in Slurm; pmmpi marked no node because of
     --max-nodes; a node passed --gate, but pmmpi did not remove the mark of this
     node
2    the command line is wrong; --apply: the user has no right to change nodes in
     Slurm
3    --fail-on: the condition is true; --gate: a node is not fit to return
4    --fail-on: the report could not judge the nodes, or a node has no result;
     --gate: a node is UNDECIDED
125  pmmpi itself failed; or pmmpi measured nothing, because it could not write to
     --out or --archive, or could not use the log
126  the program that the screen measures, or pmmpi-report, cannot be executed
127  the program that the screen measures, or pmmpi-report, was not found";
const DOCTOR_STATUS: &str = "\
0    no check is `broken` (with --fail-on limits: all checks are `ok`)
1    pmmpi could not write the result; or, without --fail-on, a check is `broken`
2    the command line is wrong
3    --fail-on broken: a check is `broken`; --fail-on limits: a check is `broken`
     or `limits`";
const VALIDATE_STATUS: &str = "\
0    no event is `unusable`
1    at least one event is `unusable`, or pmmpi could not write the result
2    the command line is wrong";
const LIST_STATUS: &str = "\
0    success
1    pmmpi could not write the result
2    the command line is wrong, or nothing matches the filter";
/// Of doctor, validate and list.
const OWN_STATUS: &str = "125  pmmpi itself failed";
/// Of the commands that read many runs.
const INPUT_STATUS: &str = "\
0    success
1    pmmpi could not use some input, ran out of memory, or could not write the
     result
2    the command line is wrong, or pmmpi could use none of the input";
const REPORT_STATUS: &str = "\
3    --fail-on: a condition is true
4    --fail-on: the report could not judge whether a condition is true";
const COMPARE_STATUS: &str = "\
3    --fail-on: a condition is true
4    --fail-on: the runs are too few or vary too much to show whether a condition
     is true; or most runs of one set have no partner in the other set (a partner
     is a run of the same work on the same node)";
const DIFF_STATUS: &str = "\
0    success
1    pmmpi ran out of memory, or could not write the result
2    the command line is wrong, or pmmpi could not read one of the two runs
3    --fail-on different: the runs differ";
/// Of the commands for which pmmpi becomes pmmpi-report.
const START_STATUS: &str = "\
126  pmmpi-report, pmmpi's own program for this command, cannot be executed
127  pmmpi-report was not found";
const NAGIOS_STATUS: &str = "\
With --exit nagios: 0 is OK, 1 is WARNING, 2 is CRITICAL, 3 is UNKNOWN.";
