//! Which of the architecture's common events an Arm processor has.
//!
//! A processor need not have all of them; its registers PMCEID say which it has (Arm Architecture Reference Manual,
//! D13). The kernel opens each code all the same (drivers/perf/arm_pmuv3.c, `__armv8_pmuv3_map_event`, which ends in
//! `armpmu_map_event` of arm_pmu.c), and a counter of one that is not there stays 0. Its sysfs lists those alone that
//! are there (`armv8pmu_event_attr_is_visible`).

use super::fields;
use super::pmu::Pmu;
use super::syntax::Term;
use crate::counters::event::{Encoding, kind};

/// Codes of common events that PMCEID0 and PMCEID1 tell of. (Others have no name in sysfs, or another register.)
const COMMON: u64 = 0x40;
/// Up to here every kernel that has the list knows each code. Its list has grown upwards since: a kernel that lists
/// a higher code knows all below it.
const ALWAYS_KNOWN: u64 = 0x30;
/// CHAIN: there, and never listed.
const CHAIN: u64 = 0x1e;

/// True where this PMU opens an event and never counts one.
pub fn lacks(pmu: &Pmu, encoding: Encoding) -> bool {
    let is_code = encoding.kind == pmu.kind || encoding.kind == kind::RAW;
    let of_architecture = ["armv8_", "armv9_"].iter().any(|start| pmu.name.starts_with(start));
    let code = code(encoding.config);
    if !is_code || !of_architecture || code >= COMMON || code == CHAIN {
        return false;
    }
    let encode = |name: String| fields::encode(pmu, &[Term { name, value: None }]).ok();
    let listed: Vec<u64> =
        pmu.events().into_iter().filter_map(encode).map(|event| self::code(event.config)).collect();
    let is_known = code <= ALWAYS_KNOWN || listed.iter().any(|known| *known > code);
    !listed.is_empty() && is_known && !listed.contains(&code)
}

/// The field `event` of these PMUs: config:0-15.
fn code(config: [u64; 3]) -> u64 {
    config[0] & 0xffff
}
