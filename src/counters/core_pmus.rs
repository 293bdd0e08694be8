//! The PMUs in a machine's cores: one, or one for each kind of core.

use super::default;
use super::event::{Group, kind};
use crate::node::{CpuSet, kernel_text};
use std::path::Path;

/// Where the kernel lists all PMUs, below the root folder.
pub const DEVICES: &str = "sys/bus/event_source/devices";

/// PMUs of the kernel, not of a processor.
const OF_THE_KERNEL: [&str; 5] = ["breakpoint", "kprobe", "software", "tracepoint", "uprobe"];

/// True for a PMU in a core. On a processor with one kind of core only the PMU's name shows this; otherwise the PMU
/// has a file `cpus`. `devices` is the folder that lists all PMUs.
pub fn is_core_pmu(devices: &Path, name: &str) -> bool {
    // Avoids a file access for each uncore PMU: a server has about a hundred, and every rank runs this.
    let is_elsewhere = OF_THE_KERNEL.contains(&name) || name.starts_with("uncore_");
    matches!(name, "cpu" | "cpum_cf") || !is_elsewhere && devices.join(name).join("cpus").exists()
}

/// The default set for a program's own threads, on the machine whose files are below `root` (normally "/"). On a
/// processor with several kinds of cores, it has each hardware group once per kind.
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

/// Name and perf_event_attr.type of each core PMU that has a hardware thread online, sorted by name.
pub(super) fn kinds_of_cores(root: &Path) -> Vec<(String, u32)> {
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
