//! `pmmpi-rig-pmu` compares a processor's counters with loops whose counts are known, one line per check in the form
//! of TAP: "ok NAME: what was found", "not ok NAME: why". It needs root, and a processor that counts each instruction
//! exactly once: qemu's with -icount.
//!
//! `pmmpi-rig-pmu cells USER` prints for each question of `rig::perf_rights` the quality of its count.
//! `pmmpi-rig-pmu inherited pages|turns DESCRIPTOR ID` reads an inherited counter before and after the work.
//! `pmmpi-rig-pmu cost` prints the cost of reading a counter.
//! `pmmpi-rig-pmu work THREADS CHILDREN TURNS` runs the loop in threads, in children, and in its own main thread.

mod access;
mod cost;
mod followed;
mod groups;
mod kernels;
mod loops;
mod probes;
mod regions;
mod tool;
mod validate;

use pmmpi::counters::event::{Encoding, Group, Modes, kind};
use rig::counting::{alone, inherited};
use rig::known_counts::{Pages, TURN_INSTRUCTIONS, turns};
use rig::perf_rights::{User, cells};
use std::process::ExitCode;

const CYCLES: u64 = 0;
const INSTRUCTIONS: u64 = 1;
const TURNS: u64 = 10_000_000;
const LOOP: u64 = TURNS * TURN_INSTRUCTIONS;
/// Instructions from the end of one read(2) to the begin of the next.
const AROUND: u64 = 100;

/// What was found, or what is wrong.
type Check = Result<String, String>;
type NamedCheck = (&'static str, fn() -> Check);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] => check_all(),
        ["cost"] => cost::table().map_or_else(|why| fail(&why), |()| ExitCode::SUCCESS),
        ["cells", name] => {
            match User::ALL.iter().find(|user| user.name() == *name).map(|user| user.become_it()) {
                Some(Ok(())) => {
                    cells().iter().for_each(|cell| println!("{}", cell.answer()));
                    ExitCode::SUCCESS
                }
                Some(Err(e)) => fail(&format!("becoming {name}: {e}")),
                None => fail("usage: cells root|admin|perfmon|nobody"),
            }
        }
        ["work", rest @ ..] => {
            match rest.iter().map(|s| s.parse()).collect::<Result<Vec<u64>, _>>().as_deref() {
                Ok([threads, children, turns]) => followed::work(*threads, *children, *turns)
                    .map_or_else(|why| fail(&why), |()| ExitCode::SUCCESS),
                _ => fail("usage: work THREADS CHILDREN TURNS"),
            }
        }
        ["inherited", work, descriptor, id] => {
            let (Ok(descriptor), Ok(id)) = (descriptor.parse(), id.parse()) else {
                return fail("usage: inherited pages|turns DESCRIPTOR ID");
            };
            let counted = match (*work, Pages::new()) {
                ("pages", Ok(pages)) => inherited(descriptor, id, || pages.touch()),
                _ => inherited(descriptor, id, || turns(TURNS)),
            };
            counted.map_or_else(
                |why| fail(&why),
                |count| {
                    println!("{count}");
                    ExitCode::SUCCESS
                },
            )
        }
        _ => fail("usage: pmmpi-rig-pmu [cells USER | cost | inherited .. | work ..]"),
    }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("pmmpi-rig-pmu: {why}");
    ExitCode::FAILURE
}

fn check_all() -> ExitCode {
    const CHECKS: &[NamedCheck] = &[
        ("the_loop_is_counted_to_the_instruction", loops::the_loop),
        ("the_default_set", loops::the_default_set),
        ("user_and_kernel_mode_apart", loops::modes),
        ("threads_and_children_of_this_thread", followed::this_thread),
        ("threads_and_children_of_the_next_program", followed::next_program),
        ("a_group_counts_the_same_instants", groups::group),
        ("24_events_share_the_counters", groups::shared),
        ("groups_that_share_the_counters_stay_whole", groups::shared_groups),
        ("what_does_not_fit_into_a_group_starts_another_one", groups::too_large_a_group),
        ("the_kernel_tells_what_counts_at_once", groups::at_once),
        ("a_hardware_thread", groups::hardware_thread),
        ("who_may_count_what", access::permissions),
        ("registers_read_by_the_program", access::registers),
        ("probes_count_to_the_instruction", probes::to_the_instruction),
        ("own_reads_are_no_work_of_the_kernel_in_a_region", regions::without_own_reads),
        ("a_program_reads_what_its_launcher_opened", followed::handed),
        ("watched_writes_are_counted_to_the_last_one", followed::watched),
        ("events_that_the_processor_lacks_have_no_value", loops::lacking),
        ("kernels_do_what_their_tables_say", kernels::on_paper),
        ("kernels_do_it_one_instruction_at_a_time", kernels::stepped),
        ("validate_counts_what_kernels_do", validate::instructions),
        ("validate_counts_to_the_last_one", validate::to_the_last_one),
        ("validate_judges_what_is_counted_and_nothing_else", validate::verdicts),
        ("doctor_sees_what_the_processor_counts", tool::doctor),
        ("list_events_says_what_opens", tool::events),
        ("a_measured_program_comes_to_what_it_does", tool::a_run),
        ("the_row_of_a_hardware_thread_is_exact", tool::the_row_of_a_hardware_thread),
        ("groups_in_turn_count_what_each_alone_counts", tool::groups_in_turn),
    ];
    println!("1..{}", CHECKS.len());
    let mut failed = false;
    for (name, check) in CHECKS {
        match check() {
            Ok(found) => println!("ok {name}: {found}"),
            Err(why) => {
                failed = true;
                println!("not ok {name}: {why}");
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn hardware(id: u64, modes: Modes) -> Encoding {
    Encoding::new(kind::HARDWARE, id).in_modes(modes)
}

fn instructions() -> Vec<Group> {
    alone("instructions:u", hardware(INSTRUCTIONS, Modes::User))
}

fn unless(wrong: bool, found: String) -> Check {
    if wrong { Err(found) } else { Ok(found) }
}

fn is_near(value: u64, expected: u64, parts_per_million: u64) -> bool {
    value.abs_diff(expected) <= expected / 1_000_000 * parts_per_million
}

/// CPU time of this process and of the children that it has waited for (ns).
fn cpu_ns() -> Result<u64, String> {
    let mut total = 0;
    for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        // SAFETY: all zeros is a valid rusage, and the call writes it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            if libc::getrusage(who, &mut usage) != 0 {
                return Err(format!("getrusage: {}", std::io::Error::last_os_error()));
            }
            usage
        };
        for time in [usage.ru_utime, usage.ru_stime] {
            total += time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        }
    }
    Ok(total)
}
