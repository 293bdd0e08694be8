//! Reads the NVIDIA GPUs of a node with NVML. Writes their properties and counts to stdout in wire form, as a
//! [`pmmpi::node::GpuReading`].
//!
//! It is a separate program, because the launcher is static and cannot load libraries, and so that a crash in the
//! driver's library ends only this process. It loads the driver's library at run time.
//!
//! If it must not outlive the process that started it, its argument is the number of that process.

use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, PerformancePolicy};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use pmmpi::node::{GpuReading, counted};
use pmmpi::record::wire;
use std::error::Error;
use std::ffi::OsStr;
use std::io::Write;
use std::process::ExitCode;

/// The library that the driver installs; the name without a number belongs to development packages.
const LIBRARY: &str = "libnvidia-ml.so.1";

fn main() -> ExitCode {
    let parent = std::env::args().nth(1).and_then(|parent| parent.parse().ok());
    if !end_with_parent(parent) {
        return ExitCode::FAILURE;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("pmmpi-gpus: {LIBRARY}: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Ends this process with the thread that started it: a driver that hangs must not leave it behind. False if the parent ended
/// before this call: then no signal will come.
fn end_with_parent(parent: Option<i32>) -> bool {
    // SAFETY: no memory is involved. If it fails, only a process that hangs outlives its parent.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        parent.is_none_or(|parent| libc::getppid() == parent)
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let nvml = Nvml::builder().lib_path(OsStr::new(LIBRARY)).init()?;
    let mut reading = GpuReading::default();
    let mut kinds = Vec::new();
    for index in 0..nvml.device_count()? {
        let name = format!("GPU {index}");
        match nvml.device_by_index(index) {
            Ok(device) => {
                kinds.push(kind(&device));
                count(&device, &name, &mut reading);
            }
            // It fell off the bus.
            Err(NvmlError::GpuLost) => kinds.push("lost GPU".to_owned()),
            Err(e) => kinds.push(format!("unreadable GPU ({e})")),
        }
    }
    let driver = nvml.sys_driver_version().map_or_else(|_| String::new(), |it| format!("; driver {it}"));
    reading.gpus = counted(kinds).map(|gpus| format!("{gpus}{driver}"));
    std::io::stdout().write_all(&wire::encode(&reading)?)?;
    Ok(())
}

/// For example "NVIDIA H100 PCIe, at most 1755 MHz, 350 W, ECC on". Equal GPUs have equal texts.
fn kind(device: &Device) -> String {
    let name = device.name().unwrap_or_else(|_| "unknown".to_owned());
    let clock = device.max_clock_info(Clock::SM).map(|clock| format!("at most {clock} MHz"));
    let limit = device.enforced_power_limit().map(|milliwatts| format!("{} W", (milliwatts + 500) / 1000));
    let ecc = device.is_ecc_enabled().map(|ecc| if ecc.currently_enabled { "ECC on" } else { "ECC off" });
    let known = [clock.ok(), limit.ok(), ecc.ok().map(str::to_owned)];
    std::iter::once(name).chain(known.into_iter().flatten()).collect::<Vec<_>>().join(", ")
}

/// What the GPU counts since the driver was loaded. A GPU that does not support a count has none.
fn count(device: &Device, name: &str, reading: &mut GpuReading) {
    let policies = [PerformancePolicy::Thermal, PerformancePolicy::Power];
    let throttled = policies.into_iter().filter_map(|policy| device.violation_status(policy).ok());
    // NVML's header says that the time is in ns.
    let throttled = throttled.map(|status| status.violation_time / 1_000_000).reduce(u64::saturating_add);
    let errors = |kind| device.total_ecc_errors(kind, EccCounter::Volatile).ok();
    for (count, value) in [
        ("gpu_throttled_ms", throttled),
        ("gpu_memory_errors_corrected", errors(MemoryError::Corrected)),
        ("gpu_memory_errors_uncorrected", errors(MemoryError::Uncorrected)),
    ] {
        if let Some(value) = value {
            reading.counts.set(count, name, value);
        }
    }
}
