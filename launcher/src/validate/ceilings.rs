//! Ceilings of a machine: the bandwidth and latency of memory that a program can attain, measured without counters.
//!
//! STREAM's loops run on one hardware thread of each core of a socket at the same time, with and without non-temporal
//! stores. One core then chases pointers. From both follows how many cache lines must be in flight at the same time:
//! concurrency = bandwidth x latency (Little's law).

use super::ceiling_values::{Bandwidth, SocketCeilings};
use super::memory::{free_bytes, mebibytes, socket};
use pmmpi::node::{Cores, CpuSet};
use pmmpi_screen_kernels::{
    Error, Latency, LatencySettings, Repetition, ScreenKernel, Stores, Team, Triad, TriadSettings, repeat,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// STREAM's default: the best of ten repetitions, of which the first one does not count.
const REPETITIONS: usize = 9;
const WARM_UPS: usize = 1;
const LINE_BYTES: f64 = 64.0;
const ARRAYS: u64 = 3;

/// The ceilings of each socket on whose hardware threads this process may run.
pub fn measure(root: &Path) -> Vec<SocketCeilings> {
    let allowed = CpuSet::allowed();
    let mut sockets: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for thread in Cores::read(root, &allowed).threads(0) {
        sockets.entry(socket(root, thread).unwrap_or(0)).or_default().push(thread);
    }
    if sockets.is_empty() {
        // The kernel shows no topology.
        sockets.insert(0, allowed.numbers().collect());
    }
    sockets.into_iter().map(|(socket, threads)| of_socket(root, socket, threads)).collect()
}

fn of_socket(root: &Path, socket: u32, hardware_threads: Vec<u32>) -> SocketCeilings {
    let cache_bytes = last_level_caches(root, &hardware_threads);
    let mut ceilings = SocketCeilings {
        socket,
        hardware_threads,
        cache_bytes,
        array_bytes: None,
        bandwidth: Vec::new(),
        latency_ns: None,
        lines_in_flight: None,
        reason: None,
        notes: Vec::new(),
    };
    if let Err(why) = fill(root, &mut ceilings) {
        ceilings.reason = Some(why);
    }
    ceilings
}

fn fill(root: &Path, ceilings: &mut SocketCeilings) -> Result<(), String> {
    let cache =
        ceilings.cache_bytes.ok_or("pmmpi cannot read the sizes of this processor's caches in sysfs")?;
    let first =
        *ceilings.hardware_threads.first().ok_or("pmmpi is not allowed to run on any core of this socket")?;
    let free =
        free_bytes(root, first).ok_or("pmmpi cannot read the amount of free memory in /proc/meminfo")?;
    let settings = TriadSettings::for_caches(cache, Stores::Ordinary);
    let needed = settings.array_bytes.saturating_mul(ARRAYS);
    // Other programs need memory, too, and use the page cache.
    if needed > free / 2 {
        return Err(format!(
            "too little memory: STREAM's arrays need {}, more than half of the free memory ({})",
            mebibytes(needed),
            mebibytes(free)
        ));
    }
    ceilings.array_bytes = Some(settings.array_bytes);
    let text = |error: Error| error.to_string();
    let team = Team::new(&ceilings.hardware_threads).map_err(text)?;
    let mut highest = 0.0_f64;
    for (stores, name) in [(Stores::Ordinary, "ordinary"), (Stores::NonTemporal, "non-temporal")] {
        let mut kernel = Triad::new(TriadSettings { stores, ..settings }).map_err(text)?;
        let repetitions = repeat(&mut kernel, &team, WARM_UPS, REPETITIONS).map_err(text)?;
        let rates = bandwidth(&repetitions, name);
        highest = rates.iter().map(|rate| rate.memory_gigabytes_per_s).fold(highest, f64::max);
        ceilings.bandwidth.extend(rates);
        add_notes(&mut ceilings.notes, &kernel);
    }
    drop(team); // its threads would wait on the cores beside the chase
    let team = Team::new(&[first]).map_err(text)?;
    let mut kernel = Latency::new(LatencySettings::for_caches(cache)).map_err(text)?;
    let repetitions = repeat(&mut kernel, &team, WARM_UPS, REPETITIONS).map_err(text)?;
    add_notes(&mut ceilings.notes, &kernel);
    let latency = repetitions.iter().map(|repetition| repetition.values[0].node).reduce(f64::min);
    ceilings.latency_ns = latency;
    // GB/s are bytes per nanosecond.
    ceilings.lines_in_flight = latency.map(|latency| highest * latency / LINE_BYTES);
    Ok(())
}

fn add_notes(notes: &mut Vec<String>, kernel: &dyn ScreenKernel) {
    for note in kernel.notes() {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// The best rate of each loop, in STREAM's order.
fn bandwidth(repetitions: &[Repetition], stores: &'static str) -> Vec<Bandwidth> {
    let best = |name: &str| {
        let values = repetitions.iter().flat_map(|repetition| &repetition.values);
        values.filter(|value| value.measure.name == name).map(|value| value.node).reduce(f64::max)
    };
    let rate = |name: &'static str| {
        let [gigabytes_per_s, memory_gigabytes_per_s] = [best(name)?, best(&format!("{name}-memory"))?];
        Some(Bandwidth { name, stores, gigabytes_per_s, memory_gigabytes_per_s })
    };
    ["copy", "scale", "add", "triad"].into_iter().filter_map(rate).collect()
}

/// The sizes of the different last-level caches of these hardware threads together. A cache that several threads share
/// counts once.
pub fn last_level_caches(root: &Path, hardware_threads: &[u32]) -> Option<u64> {
    let mut found: BTreeSet<(u32, String)> = BTreeSet::new();
    let mut bytes = 0_u64;
    for thread in hardware_threads {
        let folder = root.join(format!("sys/devices/system/cpu/cpu{thread}/cache"));
        let text = |index: &Path, file: &str| {
            fs::read_to_string(index.join(file)).ok().map(|text| text.trim().to_owned())
        };
        let indices = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
        let cache = |index: std::path::PathBuf| {
            let level: u32 = text(&index, "level")?.parse().ok()?;
            let holds_data = text(&index, "type")? != "Instruction";
            let size = super::memory::cache_size(&text(&index, "size")?)?;
            holds_data.then_some((level, size, text(&index, "shared_cpu_list").unwrap_or_default()))
        };
        let (level, size, shared) = indices.filter_map(cache).max_by_key(|(level, ..)| *level)?;
        if found.insert((level, shared)) {
            bytes = bytes.saturating_add(size);
        }
    }
    Some(bytes).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::super::memory::tests::Root;
    use super::*;

    /// Two complexes of two cores, as on Zen: each has an L3 cache of its own.
    #[test]
    fn each_last_level_cache_counts_once() {
        let root = Root::new();
        for cpu in 0..4 {
            let shared = if cpu < 2 { "0-1" } else { "2-3" };
            let caches = [
                ("1", "Data", "32K", "0"),
                ("1", "Instruction", "32K", "0"),
                ("3", "Unified", "16384K", shared),
            ];
            for (number, (level, kind, size, list)) in caches.into_iter().enumerate() {
                let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{number}");
                root.put(&format!("{folder}/level"), level);
                root.put(&format!("{folder}/type"), kind);
                root.put(&format!("{folder}/size"), size);
                root.put(&format!("{folder}/shared_cpu_list"), list);
            }
        }
        assert_eq!(last_level_caches(root.path(), &[0, 1, 2, 3]), Some(32 << 20));
        assert_eq!(last_level_caches(root.path(), &[1]), Some(16 << 20));
        assert_eq!(last_level_caches(root.path(), &[7]), None);
    }

    #[test]
    fn without_sizes_of_caches_nothing_is_measured() {
        let root = Root::new();
        let ceilings = of_socket(root.path(), 1, vec![0]);
        assert!(ceilings.bandwidth.is_empty() && ceilings.latency_ns.is_none());
        assert!(ceilings.reason.unwrap().contains("caches"));
    }

    /// Real loops on this machine's cores, as if its caches and memory were small.
    #[test]
    fn rates_latency_and_concurrency_fit_together() {
        let root = Root::new();
        for cpu in CpuSet::allowed().numbers() {
            root.caches(cpu, &[(3, "Unified", "1024K")]);
        }
        root.put("proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 8000000 kB\n");
        let found = measure(root.path());
        let [ceilings] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&ceilings.reason, ceilings.bandwidth.len()), (&None, 8), "{ceilings:?}");
        let mut highest = 0.0_f64;
        for rate in &ceilings.bandwidth {
            let ratio = rate.memory_gigabytes_per_s / rate.gigabytes_per_s;
            let expected = match (rate.stores, rate.name) {
                ("non-temporal", _) => 1.0,
                (_, "copy" | "scale") => 24.0 / 16.0,
                _ => 32.0 / 24.0,
            };
            assert!((ratio - expected).abs() < 1e-9 && rate.gigabytes_per_s > 0.0, "{rate:?}");
            highest = highest.max(rate.memory_gigabytes_per_s);
        }
        let lines = highest * ceilings.latency_ns.unwrap() / 64.0;
        assert!((ceilings.lines_in_flight.unwrap() / lines - 1.0).abs() < 1e-9);

        root.put("proc/meminfo", "MemTotal: 400000 kB\nMemAvailable: 400000 kB\n");
        let found = measure(root.path());
        assert!(found[0].reason.as_ref().unwrap().starts_with("too little memory"), "{found:?}");
    }
}
