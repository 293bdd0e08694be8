//! A fleet after the figures of J. D. McCalpin, "HPL and DGEMM performance variability on the Xeon Platinum 8160
//! processor", SC18: 190 nodes, slow runs because snoop filters evicted lines from the L2 caches, and slow runs for
//! another reason.

use super::SKYLAKE;
use super::common::{Folder, json, out, report};
use super::two_sockets::{CORES, Like, Numbering};
use pmmpi::record::run_file;
use pmmpi_analysis::stats::random::Random;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

const NODES: usize = 190;
const RUNS: usize = 7;
/// Lines into the L2 cache of a core without conflicts.
const LEAST_FILLS: f64 = 1e9;

/// The true cores with conflicts of each slow run, by node and run.
type Truth = HashMap<(usize, usize), BTreeSet<u32>>;

/// Writes the runs. In a usual run, conflicts hit up to 16 cores, others in each run; the lines come back from the L3
/// cache, and the run is as fast. In a slow run, they hit most cores, and 10 to 15 % of the lines come from memory.
fn write(folder: &Path) -> Truth {
    let (mut random, mut truth) = (Random::new(1808), Truth::new());
    for (node, run) in (0..NODES).flat_map(|node| (0..RUNS).map(move |run| (node, run))) {
        let is_slow = (node * RUNS + run) % 31 == 7;
        let is_slow_otherwise = (node * RUNS + run) % 31 == 19;
        let count = if is_slow { 30.0 + 14.0 * random.uniform() } else { 16.0 * random.uniform() } as usize;
        let mut cores: Vec<u32> = (0..CORES).collect();
        cores.sort_by_cached_key(|_| (random.uniform() * 1e9) as u64);
        let hit: BTreeSet<u32> = cores.into_iter().take(count).collect();
        let mut fills: Vec<f64> =
            (0..CORES).map(|_| LEAST_FILLS * (1.0 + 0.01 * random.normal().abs())).collect();
        let (mut evictions, mut reads) = (vec![1e7; 2], vec![5e9 * (1.0 + 0.002 * random.normal()); 2]);
        for core in &hit {
            let more =
                LEAST_FILLS * if is_slow { 0.8 + 0.6 * random.uniform() } else { 0.2 + random.uniform() };
            fills[*core as usize] += more;
            let socket = *core as usize / 24;
            evictions[socket] += 0.85 * more;
            reads[socket] += if is_slow { (0.10 + 0.05 * random.uniform()) * 0.85 * more } else { 0.0 };
        }
        let slower = match () {
            () if is_slow => 1.08 + 0.12 * random.uniform(),
            // A few more reads go with the longer time.
            () if is_slow_otherwise => {
                reads.iter_mut().for_each(|reads| *reads *= 1.02);
                1.10
            }
            () => 1.0,
        };
        let seconds = 100.0 * (1.0 + 0.001 * random.normal()) * slower;
        let like = Like {
            node: &format!("n{node:03}"),
            run,
            model: SKYLAKE,
            numbering: Numbering::Apart,
            seconds,
            // Cores that wait for others wait busily.
            cycles: vec![2.1e9 * seconds; CORES as usize],
            fills,
            evictions,
            reads,
            is_bound: true,
        };
        run_file::write(folder, &like.run()).unwrap();
        if is_slow {
            truth.insert((node, run), hit);
        }
    }
    truth
}

/// The report names the slow runs, the counter that goes with them, and the cores.
#[test]
fn slow_runs_counter_and_cores_come_out_of_the_report() {
    let folder = Folder::new();
    let truth = write(folder.path());
    let path = folder.path().to_str().unwrap();
    let output = report(&["report", path, "--format", "json"]);
    let all = json(&output);
    let runs = all["slow_runs"].as_array().unwrap();
    let found: Vec<((usize, usize), &Value)> =
        runs.iter().map(|run| (super::node_and_run(run), run)).collect();
    let otherwise = |(node, run): (usize, usize)| (node * RUNS + run) % 31 == 19;
    let (others, found): (Vec<_>, Vec<_>) = found.into_iter().partition(|(at, _)| otherwise(*at));
    let is_snoop = |run: &Value| run["cause"] == "cpi/snoop-filter";
    let wrong_cause = others.iter().filter(|(_, run)| is_snoop(run)).count();
    assert!(others.len() > 40 && wrong_cause * 20 <= others.len(), "{wrong_cause} of {}", others.len());
    let missed = truth.keys().filter(|of| !found.iter().any(|(at, _)| at == *of)).count();
    let wrong = found.iter().filter(|(at, _)| !truth.contains_key(at)).count();
    let other_cause = found.iter().filter(|(_, run)| run["cause"] != "cpi/snoop-filter").count();
    let (mut named, mut of_others, mut hit) = (0, 0, 0);
    for (at, run) in &found {
        let Some(cores) = truth.get(at) else { continue };
        let places = run["places"]["places"].as_array().cloned().unwrap_or_default();
        named += places.len();
        of_others +=
            places.iter().filter(|of| !cores.contains(&(of["core"].as_u64().unwrap() as u32))).count();
        hit += cores.len();
    }
    assert_eq!((missed, other_cause), (0, 0), "of {} slow runs", truth.len());
    // The false discovery rates of runs and of cores are 1 %.
    assert!(wrong * 50 <= found.len(), "{wrong} of {}", found.len());
    assert!(of_others * 50 <= named && named * 100 >= hit * 95, "{of_others} of {named} named, {hit} hit");
    let text = out(&report(&["report", path, "--correlate"]));
    let lines = [
        "86 of 1330 runs are slower than the other runs of their nodes; causes: ",
        "cpi/snoop-filter: at ",
        "snoop_filter_evictions       runs  +0.",
        "         1330 runs: the fastest took ",
    ];
    for line in lines {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line}: {text}");
    }
}
