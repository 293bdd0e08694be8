//! Runs a kernel and its original in turns, and prints the median of the ratios of neighbouring repetitions.
//!
//!     cargo run --release -p pmmpi-screen-kernels --example in_turns -- PART [PAIRS] [SIZE]
//!
//! PART is triad, triad-nt, dgemm, latency, or a kernel that has no original: spin, fma, disk. SIZE is the bytes of an
//! array (triad), the bytes of the ring (latency), or n (dgemm). The originals are in bench/programs; `cc` compiles
//! them. For dgemm, the variable BLAS names the library (default: libopenblas.so.0).

use pmmpi_screen_kernels::{
    Blas, Dgemm, DgemmSettings, Disk, DiskSettings, Error, Fma, FmaSettings, Latency, LatencySettings,
    ScreenKernel, Spin, SpinSettings, Stores, Team, Triad, TriadSettings, allowed_hardware_threads,
};
use std::env;
use std::error::Error as StdError;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

type Outcome<T> = Result<T, Box<dyn StdError>>;

/// A program that runs one repetition for each line of its input.
struct Original {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Original {
    fn start(source: &str, flags: &[&str], arguments: &[String], hardware_threads: &[u32]) -> Outcome<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/programs");
        let program = env::temp_dir().join(format!("in-turns-{}-{source}", std::process::id()));
        let compiler = env::var("CC").unwrap_or("cc".to_owned());
        let mut command = Command::new(compiler);
        command
            .arg("-O3")
            .args(flags)
            .arg(folder.join(format!("{source}.c")))
            .arg("-o")
            .arg(&program)
            .arg("-lm");
        if !command.status()?.success() {
            return Err(format!("{command:?} failed").into());
        }
        let places: Vec<String> = hardware_threads.iter().map(|one| format!("{{{one}}}")).collect();
        let mut command = Command::new(&program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Threads that spin between two repetitions would take time from the kernel.
        command
            .env("OMP_PLACES", places.join(","))
            .env("OMP_PROC_BIND", "true")
            .env("OMP_WAIT_POLICY", "passive");
        command.env("OMP_NUM_THREADS", places.len().to_string());
        let mut child = command.spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut original = Self { child, output };
        original.repetition()?; // the program is ready, and its file may go
        std::fs::remove_file(program)?;
        Ok(original)
    }

    fn repetition(&mut self) -> Outcome<Vec<f64>> {
        self.child.stdin.as_mut().ok_or("no input")?.write_all(b"\n")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
    }

    fn end(mut self) -> Outcome<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the original ended with {status}").into()) }
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// Prints the medians of each of `names`, and of their ratios.
fn compare(names: &[&str], unit: &str, pairs: &[(Vec<f64>, Vec<f64>)]) {
    println!("{:<14} {:>12} {:>12} {:>8}  quartiles of the ratio", "", "kernel", "original", "ratio");
    for (at, name) in names.iter().enumerate() {
        let mut ratios: Vec<f64> = pairs.iter().map(|(kernel, original)| kernel[at] / original[at]).collect();
        let mut kernel: Vec<f64> = pairs.iter().map(|pair| pair.0[at]).collect();
        let mut original: Vec<f64> = pairs.iter().map(|pair| pair.1[at]).collect();
        let ratio = median(&mut ratios);
        let (low, high) = (ratios[ratios.len() / 4], ratios[ratios.len() * 3 / 4]);
        let (kernel, original) = (median(&mut kernel), median(&mut original));
        println!("{name:<8} {unit:<5} {kernel:>12.3} {original:>12.3} {ratio:>8.3}  {low:.3} to {high:.3}");
    }
}

/// The values of the node, by measure.
fn run(kernel: &mut dyn ScreenKernel, team: &Team) -> Result<Vec<f64>, Error> {
    Ok(kernel.run(team)?.values.into_iter().map(|value| value.node).collect())
}

fn in_turns(
    kernel: &mut dyn ScreenKernel,
    team: &Team,
    pairs: usize,
    mut original: impl FnMut() -> Outcome<Vec<f64>>,
) -> Outcome<Vec<(Vec<f64>, Vec<f64>)>> {
    kernel.prepare(team)?;
    kernel.notes().iter().for_each(|note| println!("{note}"));
    run(kernel, team)?;
    let mut done = Vec::new();
    for pair in 0..pairs {
        // Each is the first in every second pair.
        if pair % 2 == 0 {
            let own = run(kernel, team)?;
            done.push((own, original()?));
        } else {
            let other = original()?;
            done.push((run(kernel, team)?, other));
        }
    }
    kernel.check(team)?;
    Ok(done)
}

fn triad(stores: Stores, team: &Team, pairs: usize, size: Option<u64>) -> Outcome<()> {
    let array_bytes = size.unwrap_or(1 << 30);
    for huge_pages in [true, false] {
        let settings = TriadSettings { array_bytes, stores, huge_pages, last_level_caches_bytes: None };
        let mut kernel = Triad::new(settings)?;
        let flags: &[&str] = match stores {
            Stores::Ordinary => &["-fopenmp"],
            Stores::NonTemporal => &["-fopenmp", "-DNON_TEMPORAL", "-march=native"],
        };
        let arguments = [(array_bytes / 8).to_string(), u8::from(huge_pages).to_string()];
        let mut original = Original::start("stream", flags, &arguments, team.hardware_threads())?;
        let pairs = in_turns(&mut kernel, team, pairs, || {
            // In the order of the kernel's measures.
            let values = original.repetition()?;
            Ok(vec![values[3], values[0], values[1], values[2]])
        })?;
        original.end()?;
        compare(&["triad", "copy", "scale", "add"], "GB/s", &pairs);
    }
    Ok(())
}

fn latency(team: &Team, pairs: usize, size: Option<u64>) -> Outcome<()> {
    // Short repetitions: on a busy machine, many of them are then without an interruption.
    let (bytes, loads) = (size.unwrap_or(1 << 30), 1 << 15);
    // The original has one thread.
    let team = Team::new(&team.hardware_threads()[..1])?;
    for huge_pages in [true, false] {
        let mut kernel =
            Latency::new(LatencySettings { loads, huge_pages, ..LatencySettings::for_memory(bytes) })?;
        let place = team.hardware_threads()[0];
        let arguments =
            [bytes.to_string(), loads.to_string(), u8::from(huge_pages).to_string(), place.to_string()];
        let mut original = Original::start("chase", &[], &arguments, team.hardware_threads())?;
        let pairs = in_turns(&mut kernel, &team, pairs, || original.repetition())?;
        original.end()?;
        compare(&["latency"], "ns", &pairs);
    }
    Ok(())
}

fn dgemm(team: &Team, pairs: usize, size: Option<u64>) -> Outcome<()> {
    let n = size.map_or(Ok(500), u32::try_from)?;
    let blas = Blas::open(Path::new(&env::var("BLAS").unwrap_or("libopenblas.so.0".to_owned())))?;
    let settings = DgemmSettings { n, ..DgemmSettings::default() };
    let mut kernel = Dgemm::new(settings.clone())?;
    let mut original = Dgemm::new(DgemmSettings { blas: Some(blas), ..settings })?;
    original.prepare(team)?;
    original.notes().iter().for_each(|note| println!("{note}"));
    run(&mut original, team)?;
    let pairs = in_turns(&mut kernel, team, pairs, || Ok(run(&mut original, team)?))?;
    original.check(team)?;
    compare(&["dgemm"], "GF/s", &pairs);
    Ok(())
}

fn alone(kernel: &mut dyn ScreenKernel, team: &Team, repetitions: usize) -> Outcome<()> {
    kernel.prepare(team)?;
    kernel.run(team)?;
    let done = (0..repetitions).map(|_| kernel.run(team)).collect::<Result<Vec<_>, _>>()?;
    kernel.check(team)?;
    kernel.notes().iter().for_each(|note| println!("{note}"));
    for (at, measure) in kernel.measures().iter().enumerate() {
        let node = median(&mut done.iter().map(|one| one.values[at].node).collect::<Vec<_>>());
        let threads: Vec<String> = (0..done[0].values[at].threads.len())
            .map(|thread| {
                median(&mut done.iter().map(|one| one.values[at].threads[thread]).collect::<Vec<_>>())
            })
            .map(|value| format!("{value:.3}"))
            .collect();
        println!(
            "{:<14} {:<8} {node:>10.3}  by hardware thread: {}",
            measure.name,
            measure.unit,
            threads.join(" ")
        );
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let part = arguments.first().map_or("", String::as_str);
    let pairs = arguments.get(1).map_or(Ok(15), |text| text.parse())?;
    let size = arguments.get(2).map(|text| text.parse()).transpose()?;
    let team = Team::new(&allowed_hardware_threads()?)?;
    match part {
        "triad" => triad(Stores::Ordinary, &team, pairs, size),
        "triad-nt" => triad(Stores::NonTemporal, &team, pairs, size),
        "dgemm" => dgemm(&team, pairs, size),
        "latency" => latency(&team, pairs, size),
        "spin" => alone(&mut Spin::new(SpinSettings::default())?, &team, pairs),
        "fma" => alone(&mut Fma::new(FmaSettings::default())?, &team, pairs),
        "disk" => alone(&mut Disk::new(DiskSettings::in_folder(&env::current_dir()?))?, &team, pairs),
        _ => Err("usage: in_turns triad|triad-nt|dgemm|latency|spin|fma|disk [PAIRS] [SIZE]".into()),
    }
}
