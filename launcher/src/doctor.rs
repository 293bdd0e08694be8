//! `pmmpi doctor`: shows what this machine can measure, and each problem with its effect and its fix.
//!
//! A small function makes each [`check::Check`] from a [`machine::Machine`]; tests use a fake machine. The checks
//! change nothing, and no measurement runs them.

mod check;
mod clocks;
mod command;
mod counters;
mod json;
mod machine;
mod memory;
mod mpi;
mod own_files;
mod perf_rights;
mod processor;
mod text;

use crate::cli::options::{DoctorFailOn, Examination, FormatArg};
use crate::launch::Launch;
use crate::stdout;
use check::{Check, DoctorReport, Status};
use machine::{Here, Machine};
use pmmpi::node::NodeKey;
use pmmpi::transport::node_election::{Duty, Role};
use pmmpi_workload::Failure;
use std::io::IsTerminal;

/// The exit status if a check is broken, without `--fail-on`.
const BROKEN: i32 = 1;
/// The exit status if a check has the status that `--fail-on` names, or a worse one: the same as of `pmmpi report`.
const FOUND: i32 = 3;

/// All checks, in the order of the output.
const CHECKS: [fn(&dyn Machine) -> Check; 26] = [
    counters::pmu,
    counters::software_events,
    counters::uncore,
    perf_rights::paranoid,
    perf_rights::capabilities,
    counters::nmi_watchdog,
    perf_rights::descriptors,
    processor::hypervisor,
    processor::smt,
    processor::governor,
    processor::frequency_limits,
    processor::turbo,
    memory::huge_pages,
    clocks::clock_source,
    clocks::invariant_tsc,
    clocks::time_service,
    mpi::launchers,
    mpi::compiler,
    mpi::libraries,
    mpi::runners,
    mpi::launch,
    mpi::slurm,
    own_files::agent,
    own_files::topology,
    own_files::report,
    own_files::out,
];

/// Examines this machine and reports on stdout. In a job, one rank per node reports. Gives the exit status.
pub fn run(typed: &Examination) -> Result<i32, Failure> {
    let launch = Launch::read();
    // The leader must keep its role until it has examined the node.
    let role = Role::enter(Duty::Examine, launch.job_key().as_deref());
    if !launch.is_first_of_node().unwrap_or(role.leads()) {
        return Ok(0);
    }
    let report = examine(&Here::new(typed.out.clone()), &NodeKey::own().hostname);
    let rendered = match typed.format {
        FormatArg::Text => {
            let is_terminal = std::io::stdout().is_terminal();
            let colour = text::wants_colour(is_terminal, |v| std::env::var_os(v));
            text::render(&report, colour, stdout::width())
        }
        FormatArg::Json => json::render(&report)?,
    };
    stdout::write(&rendered)?;
    Ok(exit_status(report.status(), typed.fail_on))
}

fn examine(machine: &dyn Machine, node: &str) -> DoctorReport {
    DoctorReport { node: node.to_owned(), checks: CHECKS.iter().map(|check| check(machine)).collect() }
}

fn exit_status(status: Status, fail_on: Option<DoctorFailOn>) -> i32 {
    let (worst_allowed, failed) = match fail_on {
        None => (Status::Limits, BROKEN),
        Some(DoctorFailOn::Broken) => (Status::Limits, FOUND),
        Some(DoctorFailOn::Limits) => (Status::Ok, FOUND),
    };
    if status > worst_allowed { failed } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::tests::Fake;
    use std::collections::BTreeSet;

    #[test]
    fn scripts_are_told_what_they_asked_for() {
        let codes = |fail_on| Status::ALL.map(|status| exit_status(status, fail_on));
        assert_eq!(codes(None), [0, 0, 1]);
        assert_eq!(codes(Some(DoctorFailOn::Broken)), [0, 0, 3]);
        assert_eq!(codes(Some(DoctorFailOn::Limits)), [0, 3, 3]);
    }

    #[test]
    fn every_check_has_a_name_of_its_own() {
        let report = examine(&Fake::new(), "n");
        let names: BTreeSet<&str> = report.checks.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), CHECKS.len());
    }

    #[test]
    fn each_check_is_documented_and_no_other() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/doctor.md");
        let page = std::fs::read_to_string(page).unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let documented: Vec<&str> = rows.map(|(name, _)| name).collect();
        let report = examine(&Fake::new(), "n");
        assert_eq!(documented, report.checks.iter().map(|check| check.name).collect::<Vec<_>>());
    }

    #[test]
    fn the_guide_shows_what_doctor_prints() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, after) = page.split_once("<!-- sample: doctor -->\n```\n").unwrap();
        let (sample, _) = after.split_once("```").unwrap();
        let machine = Fake::new().file("proc/cpuinfo", "flags\t\t: tsc hypervisor\n");
        let text = text::render(&examine(&machine, "n"), false, None);
        assert!(text.contains(sample), "{sample}is not in:\n{text}");
    }

    /// Files with contents that no kernel writes.
    #[test]
    fn no_content_of_a_file_is_too_strange() {
        const FILES: [&str; 20] = [
            "proc/cpuinfo",
            "proc/stat",
            "proc/self/status",
            "proc/self/limits",
            "proc/self/uid_map",
            "proc/sys/kernel/perf_event_paranoid",
            "proc/sys/kernel/nmi_watchdog",
            "sys/bus/event_source/devices/cpu/type",
            "sys/bus/event_source/devices/_9/cpumask",
            "sys/class/dmi/id/sys_vendor",
            "sys/devices/system/clocksource/clocksource0/available_clocksource",
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq",
            "sys/devices/system/cpu/cpufreq/boost",
            "sys/devices/system/cpu/online",
            "sys/devices/system/cpu/smt/control",
            "sys/kernel/mm/transparent_hugepage/enabled",
            "lib/pmmpi/libpmmpi_agent.so",
        ];
        let prefixes = ["", "CapEff:", "Max open files ", "cpu ", "flags\t: ", "["];
        let strange = [
            "",
            "-1",
            "99999999999999999999999",
            "5-2,0-4294967295",
            "\u{0}\u{1b}[2J",
            "1 1 1 1 1 1 1 -8",
            "é x",
        ];
        for content in
            prefixes.iter().flat_map(|prefix| strange.map(|content| format!("{prefix}{content}\n")))
        {
            let fake = FILES.iter().fold(Fake::new(), |fake, file| fake.file(file, &content));
            let fake =
                fake.program("mpirun", &content).program("srun", &content).program("ldconfig", &content);
            let report = examine(&fake, &content);
            let text = text::render(&report, false, None);
            assert!(!text.contains('\u{1b}') && !text.contains('\u{0}'), "{content:?}");
            assert!(json::render(&report).is_ok());
        }
    }

    /// A machine without readable files and without installed programs.
    #[test]
    fn nothing_readable_is_never_taken_for_all_is_well() {
        let report = examine(&Fake::new(), "n");
        assert_eq!(report.status(), Status::Broken);
        for check in &report.checks {
            assert!(!check.found.is_empty() && !check.meaning.is_empty(), "{check:?}");
            assert!(check.status == Status::Ok || check.fix.is_some(), "{check:?}");
        }
    }
}
