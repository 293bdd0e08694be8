//! The PMUs in a machine's cores: one, or one for each kind of core.

use super::default;
use super::event::{Group, kind};
use crate::node::{CpuSet, kernel_text};
use std::path::Path;

/// Where the kernel lists all PMUs, below the root folder.
pub const DEVICES: &str = "sys/bus/event_source/devices";

/// The kernel's own PMUs, which are not a processor's.
const OF_THE_KERNEL: [&str; 5] = ["breakpoint", "kprobe", "software", "tracepoint", "uprobe"];

/// True for a PMU in a core: the one of a processor of one kind of core (no file tells), or one that says of
/// which cores it is. `devices` is the folder that lists all PMUs.
pub fn is_core_pmu(devices: &Path, name: &str) -> bool {
    // A server has a hundred of "uncore", and each rank asks.
    let is_elsewhere = OF_THE_KERNEL.contains(&name) || name.starts_with("uncore_");
    matches!(name, "cpu" | "cpum_cf") || !is_elsewhere && devices.join(name).join("cpus").exists()
}

/// The default set, as it is counted of a program's own threads on the machine whose files are below `root`, normally
/// "/": on a processor with several kinds of cores the processor's events once for each kind.
pub fn default_groups(root: &Path) -> Vec<Group> {
    let kinds = kinds_of_cores(root);
    let on_each_kind = |group: Group| match group.iter().all(|event| event.encoding.kind == kind::SOFTWARE) {
        true => vec![group],
        false => {
            let on = |(name, number): &(String, u32)| {
                group.iter().map(|event| event.clone().on_core_pmu(name, Some(*number))).collect()
            };
            kinds.iter().map(on).collect()
        }
    };
    match kinds.len() {
        0 | 1 => default::groups(),
        _ => default::groups().into_iter().flat_map(on_each_kind).collect(),
    }
}

/// Name and perf_event_attr.type of each core PMU that has a hardware thread online, by name.
fn kinds_of_cores(root: &Path) -> Vec<(String, u32)> {
    let devices = root.join(DEVICES);
    let entries = std::fs::read_dir(&devices).into_iter().flatten().flatten();
    let read = |name: String| {
        let file = |file: &str| kernel_text(root, &format!("{DEVICES}/{name}/{file}"));
        let number = file("type")?.parse().ok()?;
        // All cores of one kind may be offline.
        let is_online = |cpus: String| CpuSet::parse(&cpus).is_some_and(|cpus| !cpus.0.is_empty());
        let has_cpus = devices.join(&name).join("cpus").exists();
        (!has_cpus || file("cpus").is_some_and(is_online)).then_some((name, number))
    };
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut kinds: Vec<(String, u32)> =
        names.filter(|name| is_core_pmu(&devices, name)).filter_map(read).collect();
    kinds.sort();
    kinds
}
