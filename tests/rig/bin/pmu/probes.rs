//! Checks what probes count: short sections of this thread.

use crate::access::user_access;
use crate::{Check, unless};
use pmmpi::RankId;
use pmmpi::probes::ProbeTotals;
use pmmpi::session::live_probes::collect;
use rig::known_counts::{TURN_INSTRUCTIONS, turns};
use rig::probing::{arm, inside};

const ENTRIES: u64 = 1000;
const LENGTHS: [u64; 4] = [1, 10, 1000, 100_000];
/// Instructions around the loop in an entry: the loop's own start, and the calls.
const FEW: u64 = 16;

/// Each entry counts the instructions of a known loop, and no other instruction varies: not one of 1000 entries differs.
pub fn to_the_instruction() -> Check {
    user_access(true)?;
    arm();
    let name = |length: u64| format!("{length} turns");
    for _ in 0..ENTRIES {
        inside("nothing", || ());
        for length in LENGTHS {
            inside(&name(length), || turns(length));
        }
    }
    let probes = collect(RankId(0));
    if let Some(gap) = probes.uncounted {
        return Err(gap.to_string());
    }
    let of = |name: &str| -> Result<ProbeTotals, String> {
        let found = probes.over_ranks().find(|(known, ..)| *known == name);
        let (_, totals, _) = found.ok_or_else(|| format!("no probe {name}"))?;
        match totals.counted + totals.discarded.all() == ENTRIES && totals.counted > 0 {
            true => Ok(totals),
            false => Err(format!("{name}: {totals:?}")),
        }
    };
    let instructions = |name: &str| {
        let found = of(name)?.instructions;
        if found.least == found.most { Ok(found.least) } else { Err(format!("{name}: {found:?}")) }
    };
    let nothing = instructions("nothing")?;
    let first = instructions(&name(LENGTHS[0]))?;
    let mut found = vec![format!("nothing {nothing}")];
    let mut wrong = nothing > FEW || first > nothing + FEW;
    for length in LENGTHS {
        let counted = instructions(&name(length))?;
        found.push(format!("{} {counted}", name(length)));
        wrong |= counted != first + (length - LENGTHS[0]) * TURN_INSTRUCTIONS;
    }
    let discarded: u64 = probes.totals.iter().map(|totals| totals.discarded.all()).sum();
    found.push(format!("discarded {discarded} of {}", ENTRIES * (LENGTHS.len() as u64 + 1)));
    unless(wrong, found.join(", "))
}
