//! One kernel of `pmmpi screen`, in a process of its own: a wrong pointer or a hanging disk then harms no other kernel.

use crate::cli::options::{KernelArgs, StoresArg};
use crate::own_files;
use crate::validate::{last_level_caches, limit_bytes};
use pmmpi::node::{Cores, CpuSet, Hardware};
use pmmpi::order_statistics::of_ascending;
use pmmpi::record::{End, KernelMeasure, KernelReport, KernelResult};
use pmmpi_screen_kernels::{
    Blas, Dgemm, DgemmSettings, Disk, DiskSettings, Error, Fma, FmaSettings, Latency, LatencySettings,
    Measure, Repetition, ScreenKernel, Spin, SpinSettings, Stores, Team, Triad, TriadSettings,
};
use pmmpi_workload::Failure;
use pmmpi_workload::kernel_process::{KERNEL_SOCKET, MeasuringProcess};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;

/// The hidden command that runs a kernel.
pub const COMMAND: &str = "screen-kernel";

/// If set, the kernel may use all cores of the node, not only those to which a launcher bound its rank.
pub const ALL_CORES_VARIABLE: &str = "PMMPI_ALL_CORES";

/// Repetitions before the barrier: the processor leaves its sleep states, and caches and pages are warm.
const WARM_UPS: usize = 1;

/// An amount of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Bytes(u64),
    /// Percent of the memory that the job may use on a node.
    Percent(u64),
}

impl Size {
    /// Parses `85%`, `512M` or `2G`; `None` for anything else, and for nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
        let shift = match unit.to_ascii_uppercase().as_str() {
            "%" => return Some(Self::Percent(number)).filter(|_| number <= 100),
            "" | "B" => 0,
            "K" | "KB" | "KIB" => 10,
            "M" | "MB" | "MIB" => 20,
            "G" | "GB" | "GIB" => 30,
            "T" | "TB" | "TIB" => 40,
            _ => return None,
        };
        number.checked_mul(1 << shift).map(Self::Bytes)
    }

    /// The size in bytes for one of `ranks` ranks on a node with `total` bytes of memory, of which a control group allows
    /// `limit`. Nodes with the same memory modules show slightly different totals, but must do the same work: so the total
    /// counts in whole GiB.
    fn bytes(self, total: u64, limit: Option<u64>, ranks: u32) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => {
                let total = total.div_ceil(1 << 30) << 30;
                limit.map_or(total, |limit| total.min(limit)) / 100 * percent / u64::from(ranks.max(1))
            }
        }
    }
}

/// Runs the kernel and sends its results to the process that measures it.
pub fn run(typed: &KernelArgs) -> Result<End, Failure> {
    if let (true, Some(library)) = (typed.check, &typed.blas) {
        return check_blas(library).map(|()| End::Exited(0));
    }
    // SAFETY: checks whether the descriptor is open; it is the one that the measuring process passed on.
    let socket = unsafe {
        if libc::fcntl(KERNEL_SOCKET, libc::F_GETFD) < 0 {
            return Err(Failure::usage(format_args!("only `pmmpi screen` can start `pmmpi {COMMAND}`")));
        }
        libc::fcntl(KERNEL_SOCKET, libc::F_SETFD, libc::FD_CLOEXEC);
        OwnedFd::from_raw_fd(KERNEL_SOCKET)
    };
    // If the measuring process is killed, its kernel must not go on.
    // SAFETY: no memory is involved.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let mut measuring = MeasuringProcess::new(socket.into());
    let gone = |e: std::io::Error| {
        Failure::own(format_args!("the process of pmmpi that measures this kernel has ended: {e}"))
    };
    let mut report = KernelReport::default();
    match measure(typed, &mut measuring, &mut report) {
        Ok(()) => {}
        Err(Stopped::Kernel(Error::Wrong(wrong))) => report.result.wrong = Some(wrong.to_string()),
        Err(Stopped::Kernel(error)) => report.result.failed = Some(error.to_string()),
        Err(Stopped::Measuring(error)) => return Err(gone(error)),
    }
    let KernelResult { wrong, failed, values, threads, .. } = &mut report.result;
    let has_failed = failed.is_some();
    if has_failed || wrong.is_some() {
        values.clear();
        threads.clear();
    }
    measuring.send(&report).map_err(gone)?;
    Ok(if has_failed { End::Exited(1) } else { End::Exited(0) })
}

/// Why a kernel has no result.
enum Stopped {
    Kernel(Error),
    /// The other process is gone.
    Measuring(std::io::Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Kernel(error)
    }
}

fn measure(
    typed: &KernelArgs,
    measuring: &mut MeasuringProcess,
    report: &mut KernelReport,
) -> Result<(), Stopped> {
    let root = Path::new("/");
    let allowed = allowed();
    let mut cores = Cores::read(root, &allowed).threads(0);
    if cores.is_empty() {
        cores.extend(allowed.numbers()); // the kernel shows no topology
    }
    let repetitions = repetitions(&typed.kernel);
    let mut kernel = kernel(typed, root, &cores)?;
    measuring.send_faults(typed.blas.is_some());
    report.measures = kernel.measures().iter().map(measure_record).collect();
    let team = Team::new(&cores)?;
    kernel.prepare(&team)?;
    for _ in 0..WARM_UPS {
        kernel.run(&team)?;
    }
    measuring.wait_for_go().map_err(Stopped::Measuring)?;
    let before_ns = cpu_ns();
    let mut done = Vec::with_capacity(repetitions);
    for _ in 0..repetitions {
        done.push(kernel.run(&team)?);
    }
    let after_ns = cpu_ns();
    measuring.say_done().map_err(Stopped::Measuring)?;
    report.cpu_ns = [0, 1].map(|at| after_ns[at] - before_ns[at]);
    let of_repetition = kernel.expected_instructions().map(|of_thread| of_thread * team.len() as u64);
    report.expected_instructions = of_repetition.map(|expected| expected * repetitions as u64);
    report.result.notes = kernel.notes();
    report.result.work = work(&typed.kernel, cores.len());
    kernel.check(&team)?;
    fill(&mut report.result, &done, team.hardware_threads());
    Ok(())
}

fn measure_record(measure: &Measure) -> KernelMeasure {
    let Measure { name, unit, larger_is_better } = *measure;
    KernelMeasure { name: name.to_owned(), unit: unit.to_owned(), larger_is_better }
}

/// The medians of the repetitions.
fn fill(result: &mut KernelResult, repetitions: &[Repetition], hardware_threads: &[u32]) {
    let Some(first) = repetitions.first() else { return };
    let median_of = |value: &dyn Fn(&Repetition) -> f64| {
        let mut values: Vec<f64> = repetitions.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        of_ascending(&values).unwrap_or_default()
    };
    result.values = (0..first.values.len()).map(|at| median_of(&|r| r.values[at].node)).collect();
    let of_threads = first.values.first().map_or(0, |value| value.threads.len());
    let thread = |(at, number): (usize, &u32)| (*number, median_of(&|r| r.values[0].threads[at]) as f32);
    result.threads = hardware_threads.iter().enumerate().take(of_threads).map(thread).collect();
}

/// The hardware threads that the kernel uses. Even if pmmpi ignores the binding of a launcher, the cpuset of the job limits
/// them.
fn allowed() -> CpuSet {
    if std::env::var_os(ALL_CORES_VARIABLE).is_some() {
        // SAFETY: the mask is as long as stated. The system ignores hardware threads that do not exist.
        unsafe {
            let mask = [u8::MAX; 1024];
            libc::sched_setaffinity(0, mask.len(), mask.as_ptr().cast());
        }
    }
    CpuSet::allowed()
}

/// User and system CPU time of this process, all threads (ns).
fn cpu_ns() -> [i64; 2] {
    // SAFETY: an all-zero rusage is valid, and the call fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    [usage.ru_utime, usage.ru_stime].map(pmmpi::session::timeval_ns)
}

/// See [`KernelResult::work`].
fn work(kernel: &str, cores: usize) -> f64 {
    // A chain of loads and a quantum take the same time on any number of cores; a product takes a core.
    if matches!(kernel, "dgemm" | "fma") { cores as f64 } else { 1.0 }
}

/// How often a kernel repeats its work between the barriers: about a second in all.
fn repetitions(kernel: &str) -> usize {
    match kernel {
        "triad" | "dgemm" => 10,
        "latency" => 5,
        "fma" => 5,
        _ => 1,
    }
}

fn kernel(typed: &KernelArgs, root: &Path, cores: &[u32]) -> Result<Box<dyn ScreenKernel>, Error> {
    let setting = |text: &str| Error::Setting(text.to_owned());
    let memory = || -> Result<Option<u64>, Error> {
        let Some(size) = typed.memory.as_deref().and_then(Size::parse) else { return Ok(None) };
        let total = Hardware::read(root).memory_bytes;
        let total =
            total.ok_or_else(|| setting("pmmpi cannot read the size of the memory in /proc/meminfo"))?;
        Ok(Some(size.bytes(total, limit_bytes(root), typed.ranks_of_node)))
    };
    let caches = || {
        last_level_caches(root, cores).ok_or_else(|| {
            setting("pmmpi cannot read the sizes of the caches in sysfs; give the size of the arrays with --memory")
        })
    };
    let stores = match typed.stores {
        StoresArg::Ordinary => Stores::Ordinary,
        StoresArg::NonTemporal => Stores::NonTemporal,
    };
    Ok(match typed.kernel.as_str() {
        "triad" => Box::new(Triad::new(match memory()? {
            Some(bytes) => TriadSettings::for_memory(bytes, stores, caches().ok()),
            None => TriadSettings::for_caches(caches()?, stores),
        })?),
        "latency" => {
            let settings = match memory()? {
                // Larger rings show the same latency, and take long to prepare.
                Some(bytes) => match caches().map(LatencySettings::for_caches) {
                    Ok(usual) => LatencySettings { bytes: bytes.min(usual.bytes), ..usual },
                    Err(_) => LatencySettings::for_memory(bytes),
                },
                None => LatencySettings::for_caches(caches()?),
            };
            Box::new(Latency::new(settings)?)
        }
        "dgemm" => {
            let blas = typed.blas.as_deref().map(Blas::open).transpose()?;
            Box::new(Dgemm::new(DgemmSettings { blas, ..DgemmSettings::default() })?)
        }
        "spin" => Box::new(Spin::new(SpinSettings::default())?),
        "fma" => Box::new(Fma::new(FmaSettings::default())?),
        "disk" => {
            let folder = typed
                .disk
                .as_deref()
                .ok_or_else(|| setting("the kernel `disk` needs a folder (--disk DIR)"))?;
            Box::new(Disk::new(DiskSettings::in_folder(folder))?)
        }
        other => return Err(setting(&format!("there is no kernel {other}"))),
    })
}

/// Refuses a library that is no BLAS, before any node starts.
pub fn check_blas(library: &Path) -> Result<(), Failure> {
    if cfg!(target_feature = "crt-static") {
        return check_blas_elsewhere(library);
    }
    Blas::open(library).map(drop).map_err(|e| Failure::usage(format_args!("--blas: {e}")))
}

/// The same in the program that can load libraries.
fn check_blas_elsewhere(library: &Path) -> Result<(), Failure> {
    let program = own_files::dynamic()?;
    let options = [COMMAND, "dgemm", KernelArgs::CHECK, KernelArgs::BLAS];
    let output = Command::new(&program).args(options).arg(library).output();
    let output = output.map_err(|e| Failure::own(format_args!("{}: {e}", program.display())))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::usage(said.trim().trim_start_matches("pmmpi: ")))
}

#[cfg(test)]
mod tests {
    use super::super::kernel_list::{KERNELS, NET};
    use super::*;
    use pmmpi_screen_kernels::MeasureValue;

    #[test]
    fn sizes_are_shares_of_the_memory_or_bytes() {
        assert_eq!(Size::parse("85%"), Some(Size::Percent(85)));
        assert_eq!(Size::parse("2G"), Some(Size::Bytes(2 << 30)));
        assert_eq!(Size::parse("512MiB"), Some(Size::Bytes(512 << 20)));
        assert_eq!(Size::parse("100"), Some(Size::Bytes(100)));
        for text in ["", "%", "G", "0", "0%", "101%", "-1", "1.5G", "2X", "99999999999999999999", "20000000T"]
        {
            assert_eq!(Size::parse(text), None, "{text}");
        }
        // Two nodes whose firmware takes different amounts of the same memory do the same work.
        let totals = [270_067_630_080_u64, 270_049_280_000];
        let share = |total| Size::Percent(85).bytes(total, None, 1);
        assert_eq!(totals.map(share), [(252 << 30) / 100 * 85; 2]);
        // A job with a limit of 100 GiB, and four ranks of a node.
        assert_eq!(Size::Percent(50).bytes(totals[0], Some(100 << 30), 4), (100 << 30) / 100 * 50 / 4);
        assert_eq!(Size::Bytes(7).bytes(totals[0], Some(1), 4), 7);
    }

    #[test]
    fn a_result_is_the_median_of_its_repetitions() {
        let measure = Measure { name: "copy", unit: "GB/s", larger_is_better: true };
        let repetition = |node: f64| Repetition {
            elapsed_ns: 1,
            values: vec![MeasureValue { measure, node, threads: vec![node / 4.0, node / 2.0] }],
        };
        let mut result = KernelResult::default();
        fill(&mut result, &[8.0, 16.0, 4.0].map(repetition), &[0, 2]);
        assert_eq!((result.values, result.threads), (vec![8.0], vec![(0, 2.0), (2, 4.0)]));
    }

    #[test]
    fn each_kernel_of_the_list_can_be_made() {
        for (name, _, unit) in KERNELS.into_iter().filter(|(name, ..)| *name != NET) {
            let typed = KernelArgs {
                kernel: name.to_owned(),
                memory: Some("1M".to_owned()),
                ranks_of_node: 1,
                stores: StoresArg::Ordinary,
                blas: None,
                check: false,
                disk: Some("/tmp".into()),
            };
            let made = kernel(&typed, Path::new("/"), &[0]).map_err(|e| e.to_string()).unwrap();
            assert_eq!((made.name(), made.measures()[0].unit), (name, unit));
        }
    }
}
