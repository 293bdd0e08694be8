//! Rounds of a plain program on any fabric. Each round is between barriers, and is saved before the next one starts.

pub use crate::one_round::RoundsContext;

use crate::console::{Console, say};
use crate::one_round::{self, Round, RoundKind, RoundWork};
use crate::plan::{OnFailure, RoundsPlan};
use crate::process::{LEFT, PreparedProgram};
use crate::series_summary::SeriesSummary;
use crate::{Failure, descendants, saving, signals};
use pmmpi::clock;
use pmmpi::node::NodeKey;
use pmmpi::record::run_file::{Slot, reserved_bytes_alone};
use pmmpi::record::{End, Run};
use pmmpi::session::Beginning;
use pmmpi::session::launcher_request::{Extras, SharedRequest};
use pmmpi::transport::collectives;
use pmmpi::transport::fabric::{FabricError, Pairwise};
use pmmpi::transport::node_meeting::Meeting;
use std::path::PathBuf;

/// The byte that rank 0 sends to all ranks after a round.
const GO_ON: u8 = 0;
const STOP: u8 = 1;

/// Executes `plan` together with the other ranks. Gives the end of this rank's first failed round, or of its last one.
pub fn run<F: Pairwise>(mut fabric: F, plan: &RoundsPlan, mut place: RoundsContext) -> Result<End, Failure> {
    let program = PreparedProgram::new(&plan.program, &plan.argv, plan.environment.iter().cloned());
    let program = program.map_err(|e| Failure::own(format_args!("cannot start the program: {e}")))?;
    let speaks = fabric.rank() == 0;
    let console = if speaks { Console::new(plan) } else { Console::silent() };
    if plan.timeout.is_some() {
        descendants::adopt();
    }
    let mut series = SeriesSummary::new(plan.runs);
    let mut result: Option<End> = None;
    let mut lost = None;
    let mut began_ns = place.began_ns;
    // Rank 0's plan decides for all ranks.
    let told = SharedRequest::share(&mut fabric, || SharedRequest {
        extras: Extras { pings: plan.pings, tight_end: true, ..Extras::default() },
        meeting: Meeting::arrange(),
        ..SharedRequest::default()
    });
    let told = told.map_err(in_round)?;
    for number in 0..plan.rounds() {
        console.begin(number, number < plan.warmup);
        let session =
            Beginning { began_ns, pings: told.extras.pings, tight_end: true, meeting: told.meeting };
        let work = RoundWork {
            program: &program,
            file: &plan.program,
            kind: RoundKind::Program,
            timeout: plan.timeout,
            is_screen: false,
            selection: &plan.selection,
            output_to_stderr: false,
            gpus: plan.gpus.as_deref(),
            is_first: number == 0,
            is_last: number + 1 == plan.rounds(),
        };
        let round = one_round::measure(&mut fabric, &work, &place, session).map_err(in_round)?;
        if round.own.is_left {
            say(format_args!("{}: {}: {LEFT}", NodeKey::own().hostname, plan.program.display()));
        }
        let mut verdict = GO_ON;
        if let Some(parts) = &round.parts {
            let settled = settle(plan, number, &round, parts, &mut place.slot, &console, &mut series);
            verdict = settled.unwrap_or_else(|failure| {
                lost = Some(failure);
                STOP
            });
        }
        let verdict = collectives::spread(&mut fabric, vec![verdict]).map_err(in_round)?;
        if result.is_none_or(End::is_success) {
            result = Some(round.own.status());
        }
        if verdict == [STOP] {
            if let Some(signal) = signals::asked_to_end().filter(|_| number + 1 < plan.rounds()) {
                console.stopped(signal, (number + 1).saturating_sub(plan.warmup));
                result = result.map(|end| if end.is_success() { End::Signaled(signal) } else { end });
            }
            break;
        }
        began_ns = clock::monotonic_ns();
    }
    console.end();
    console.summary(&series);
    match (lost, result) {
        // If the program failed, its status is the exit status.
        (Some(failure), Some(end)) if !end.is_success() => {
            say(failure);
            Ok(end)
        }
        (Some(failure), _) => Err(failure),
        (None, result) => result.ok_or_else(|| Failure::own("the plan has no round")),
    }
}

/// On rank 0: saves a measured round and decides whether another round follows.
fn settle(
    plan: &RoundsPlan,
    number: u32,
    round: &Round,
    parts: &[Vec<u8>],
    slot: &mut Option<Slot>,
    console: &Console,
    series: &mut SeriesSummary,
) -> Result<u8, Failure> {
    let kept = number.checked_sub(plan.warmup);
    let header = plan.header_of(kept.unwrap_or(0), round.started_unix_ns);
    let mut run = Run::assemble(header, round.size, parts, round.gather_ns)
        .map_err(|e| Failure::own(format_args!("pmmpi cannot decode the record of a rank: {e}")))?;
    run.keep_options(&plan.selection);
    if let Some(kept) = kept {
        series.add(kept, &run);
        let save = |folder: &PathBuf| {
            // With several ranks, nothing is reserved for runs after the first: the disk may be full.
            let bytes = if round.size == 1 { reserved_bytes_alone(&run.header) } else { 0 };
            let new = || Slot::take(folder).and_then(|slot| slot.reserve(bytes));
            let slot = slot.take().map_or_else(new, Ok);
            let slot = slot.map_err(|e| saving::not_saved(folder, e))?;
            saving::save(folder, Some(slot), &run, plan.quiet)
        };
        let started = run.ranks.iter().any(|rank| !matches!(rank.end, End::NotStarted(_)));
        let saved = plan.out.as_ref().filter(|_| started).map(save).transpose();
        if started {
            console.kept(kept, &run, saved.as_ref().ok().and_then(|file| file.as_deref()));
        }
        saved?;
    }
    explain(plan, number, &run, console);
    let failed = !run.end().is_some_and(End::is_success);
    let stop = failed && plan.on_failure == OnFailure::Stop || signals::asked_to_end().is_some();
    Ok(if stop { STOP } else { GO_ON })
}

/// Prints what the program cannot print itself: that it did not start, and that its failure ends the rounds.
fn explain(plan: &RoundsPlan, number: u32, run: &Run, console: &Console) {
    let Some(rank) = run.ranks.iter().find(|rank| !rank.end.is_success()) else { return };
    let (program, node) = (plan.program.display(), &run.nodes[rank.node.index()].key.hostname);
    if let End::NotStarted(errno) = rank.end {
        let why = std::io::Error::from_raw_os_error(errno);
        console.say(format_args!("{program} did not start on {node} (rank {}): {why}", rank.rank));
    }
    if plan.rounds() > 1 && !plan.quiet {
        let kind = if number < plan.warmup { "warm-up" } else { "run" };
        let next = match plan.on_failure {
            OnFailure::Stop if number + 1 < plan.rounds() => {
                "; pmmpi starts no further run (see --on-failure)"
            }
            _ => "",
        };
        console.say(format_args!("this {kind} failed on {node} (rank {}): {}{next}", rank.rank, rank.end));
    }
}

pub(crate) fn in_round(error: FabricError) -> Failure {
    Failure::own(format_args!("MPI communication between ranks failed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmmpi::counters::selection::Selection;
    use pmmpi::record::{Mode, RunHeader, Series, run_file};
    use pmmpi::transport::fabric::{Fabric, Solo, Threads};
    use std::path::Path;
    use tempfile::TempDir;

    fn folder() -> TempDir {
        TempDir::with_prefix("test-rounds-").unwrap()
    }

    fn runs_in(folder: &Path) -> Vec<Run> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<_> = entries.filter(|p| p.extension().is_some_and(|e| e == "pmr")).collect();
        paths.sort();
        paths.iter().map(|path| run_file::read(path).unwrap()).collect()
    }

    fn plan(script: &str, out: &Path) -> RoundsPlan {
        let header = RunHeader {
            series: Some(Series { id: "s".into(), round: 0 }),
            ..RunHeader::new(String::new(), vec!["sh".into()], Mode::Plain, 0)
        };
        RoundsPlan {
            program: "/bin/sh".into(),
            argv: ["sh", "-c", script].map(Into::into).to_vec(),
            environment: vec![("OUT".into(), out.into())],
            gpus: None,
            runs: 3,
            warmup: 1,
            on_failure: OnFailure::Stop,
            timeout: None,
            pings: false,
            selection: Selection::default(),
            out: Some(out.to_owned()),
            quiet: true,
            leads_by: None,
            header,
        }
    }

    fn place() -> RoundsContext {
        RoundsContext { mpi_library: None, host: vec![], began_ns: clock::monotonic_ns(), slot: None }
    }

    #[test]
    fn warm_ups_run_and_are_not_kept() {
        let folder = folder();
        let plan = plan("echo . >> $OUT/count", folder.path());
        assert_eq!(run(Solo, &plan, place()).unwrap(), End::Exited(0));
        let count = std::fs::read_to_string(folder.path().join("count")).unwrap();
        assert_eq!(count.lines().count(), 4);
        let rounds: Vec<_> =
            runs_in(folder.path()).into_iter().map(|r| r.header.series.unwrap().round).collect();
        assert_eq!(rounds, [0, 1, 2]);
    }

    #[test]
    fn a_failure_stops_every_rank_or_none_as_told() {
        for (on_failure, kept) in [(OnFailure::Stop, 1), (OnFailure::Continue, 3)] {
            let folder = folder();
            let mut plan = plan("exit 0", folder.path());
            (plan.warmup, plan.on_failure) = (0, on_failure);
            let ranks = Threads::new(3).into_iter().map(|fabric| {
                let mut plan = plan.clone();
                if fabric.rank() == 2 {
                    plan.argv[2] = "exit 7".into();
                }
                std::thread::spawn(move || run(fabric, &plan, place()).unwrap())
            });
            let ranks: Vec<_> = ranks.collect();
            let ends: Vec<_> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
            assert_eq!(ends, [End::Exited(0), End::Exited(0), End::Exited(7)]);
            let runs = runs_in(folder.path());
            assert_eq!(runs.len(), kept);
            assert!(runs.iter().all(|r| r.end() == Some(End::Exited(7)) && r.ranks.len() == 3));
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_a_record_too() {
        let folder = folder();
        let plan = RoundsPlan { program: "/nonexistent".into(), ..plan("", folder.path()) };
        assert_eq!(run(Solo, &plan, place()).unwrap(), End::NotStarted(libc::ENOENT));
        assert_eq!(runs_in(folder.path()).len(), 0, "the warm-up failed: nothing follows");
    }

    #[test]
    fn a_run_that_cannot_be_saved_ends_the_rounds() {
        let folder = folder();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let plan = RoundsPlan {
            out: Some(folder.path().join("file/absent")),
            warmup: 0,
            ..plan("exit 0", folder.path())
        };
        let failure = run(Solo, &plan, place()).unwrap_err();
        assert_eq!(failure.code, 125);
        assert!(failure.message.contains("could not save the run"), "{failure}");
    }
}
