//! Checks the rule for short regions: pmmpi's own reads of the counters are no work of the program's kernel.

use crate::{Check, unless};
use pmmpi::clock::monotonic_ns;
use pmmpi::counters::core_pmus::default_groups;
use pmmpi::counters::counter_table::CounterTable;
use pmmpi::counters::open_counters::OpenCounters;
use pmmpi::counters::perf_event_open::{Counters, Target};
use pmmpi::record::{End, Mode, Run, RunHeader};
use pmmpi::session::live_record::LiveRecord;
use pmmpi::session::live_regions::RegionTable;
use pmmpi::session::{Beginning, OfNode, RankMemory, RankSession, Work};
use pmmpi::transport::fabric::Solo;
use pmmpi::transport::node_meeting::Meeting;
use pmmpi_events::metrics::{RuleJudgement, rules_of_region};
use pmmpi_events::totals::totals;
use pmmpi_events::validation::Trust;
use rig::known_counts::{Pages, turns};
use std::path::Path;
use std::sync::atomic::AtomicU64;

const ENTRIES: u64 = 20;
const RULE: &str = "kernel-instructions-in-short-section";

/// Entries without work of the kernel raise no flag; page faults do, if each entry has one.
pub fn without_own_reads() -> Check {
    let run = measured()?;
    let empty = run.empty_entry.counts.get("instructions_kernel").copied();
    let empty = empty.ok_or_else(|| format!("no empty entry: {:?}", run.empty_entry))?;
    let mut found = vec![format!("empty {empty}")];
    let mut wrong = empty == 0;
    for (name, is_raised) in [("nothing", false), ("turns", false), ("faults", true)] {
        let region = run.counts.regions.iter().position(|known| known == name).map(|at| at as u32);
        let totals = totals(&run.counts, |row| row.region == region);
        let kernel = totals.iter().find(|total| total.event.name == "instructions_kernel");
        let kernel = kernel.and_then(|total| total.count).ok_or_else(|| format!("{name} has no count"))?;
        let rules = rules_of_region(&run, name, &Trust::default());
        let judgement = rules.into_iter().find(|(rule, _)| rule.code == RULE).map(|(_, judgement)| judgement);
        let expected = if is_raised { RuleJudgement::Raised } else { RuleJudgement::Clear };
        wrong |= judgement.as_ref() != Some(&expected);
        found.push(format!("{name} {:.1}, {judgement:?}", kernel as f64 / ENTRIES as f64));
    }
    unless(wrong, format!("instructions of the kernel in an entry: {}", found.join("; ")))
}

/// A rank alone with three regions.
fn measured() -> Result<Run, String> {
    let (live, regions) = (LiveRecord::default(), RegionTable::boxed());
    let counters = Counters::open(&default_groups(Path::new("/")), Target::ThisThread);
    let opened = counters.opened().clone();
    let words: Vec<AtomicU64> = (0..CounterTable::words(&opened)).map(|_| AtomicU64::new(0)).collect();
    let memory = RankMemory { live: &live, regions: &regions, snapshots: CounterTable::new(&words, &opened) };
    let beginning =
        Beginning { began_ns: monotonic_ns(), pings: false, tight_end: false, meeting: Meeting::arrange() };
    let mut session = RankSession::open(memory, counters, Solo, beginning);
    session.measure_empty_entry();
    let said = |e: pmmpi::transport::fabric::FabricError| e.to_string();
    session.start().map_err(said)?;
    for _ in 0..ENTRIES {
        let pages = Pages::new().map_err(|e| e.to_string())?;
        let works: [(&[u8], &dyn Fn()); 3] =
            [(b"nothing", &|| ()), (b"turns", &|| turns(1000)), (b"faults", &|| pages.touch())];
        for (name, work) in works {
            session.enter_region(name).map_err(said)?;
            work();
            session.leave_region(name).map_err(said)?;
        }
    }
    session.stop().map_err(said)?;
    let work = Work { end: End::Finalized, child_cpu_ns: None, kernel: None };
    let parts = session.gather(work, None, OfNode::default()).map_err(said)?;
    let header = RunHeader::new("r".into(), vec!["regions".into()], Mode::Plain, 0);
    Run::assemble(header, 1, &parts.ok_or("rank 0 has no parts")?, 0).map_err(|e| e.to_string())
}
