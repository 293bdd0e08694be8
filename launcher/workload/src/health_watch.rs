//! Reads a node before and after the work: what its Linux kernel and its GPUs count when hardware does not
//! work as it should.

use crate::held_signals::HeldSignals;
use pmmpi::node::{
    FACTS_MAY_CHANGE_AFTER, GpuReading, HealthReading, Inventory, Watched, settings_of_process,
};
use pmmpi::record::{HostPart, wire};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// In a shorter run, GPUs hardly throttle, and loading NVIDIA's library may take longer than the run.
const SHORTEST: Duration = FACTS_MAY_CHANGE_AFTER;

/// The longest wait for GPUs after a program without MPI.
const PATIENCE_ALONE: Duration = Duration::from_secs(5);
/// The longest wait for GPUs after an MPI program. The agent waits a little longer, because other ranks wait for it.
pub const PATIENCE_IN_FINALIZE: Duration = Duration::from_millis(1500);

/// The reading before the work.
pub struct HealthWatch {
    kernel: HealthReading,
    began: Instant,
    /// `None` on nodes without NVIDIA's driver.
    gpus: Option<GpuWatch>,
}

/// GPUs, which a thread reads at the beginning of the work.
struct GpuWatch {
    /// The program that reads them.
    program: PathBuf,
    before: Mutex<Receiver<GpuReading>>,
}

impl HealthWatch {
    /// Reads the kernel's counts. If the node has NVIDIA's driver, starts the program `gpus` in a thread: the work need not
    /// wait for it. Call this before any counter is opened, because a counter would follow the thread.
    pub fn begin(gpus: Option<&Path>) -> Self {
        let gpus = gpus.filter(|_| Path::new("/sys/module/nvidia").exists());
        Self {
            kernel: HealthReading::read(Path::new("/")),
            began: Instant::now(),
            gpus: gpus.map(GpuWatch::begin),
        }
    }

    /// Reads again after a program without MPI. The program got its settings from this process.
    pub fn end_alone(&self, host: &[u8]) -> Watched {
        let mut watched = self.end(host, PATIENCE_ALONE);
        watched.inventory.join(settings_of_process(Path::new("/"), "self"));
        watched
    }

    /// Reads again. Gives what was added, what the node's GPUs are, and which facts have changed since `host` was
    /// read. `host` is a [`HostPart`] in wire form. A short run does not wait for GPUs and facts. Other runs wait for
    /// the GPUs until `patience` is over. So a driver that hangs does not stop the run, and the counts of the Linux
    /// kernel are not lost.
    pub fn end(&self, host: &[u8], patience: Duration) -> Watched {
        let (took, deadline) = (self.began.elapsed(), Instant::now() + patience);
        let (mut before, mut after) = (self.kernel.clone(), HealthReading::read(Path::new("/")));
        let mut inventory = Inventory::default();
        if let Ok(host) = wire::decode::<HostPart>(host)
            && let Some(changed) = host.facts().0.changed_during(took, Path::new("/"))
        {
            inventory.set_changed(changed);
        }
        let gpus = self.gpus.as_ref().filter(|_| took >= SHORTEST);
        if let Some((first, second)) = gpus.and_then(|gpus| gpus.around(deadline)) {
            before.join(first.counts);
            after.join(second.counts);
            if let Some(kinds) = first.gpus {
                inventory.set("gpus", kinds);
            }
        }
        Watched { counts: before.until(Some(&after)), inventory }
    }
}

/// The facts of `host` as they are now, in wire form; the same if they cannot be read.
pub fn read_again(host: &[u8]) -> Vec<u8> {
    let again = || {
        let (before, topology) = wire::decode::<HostPart>(host).ok()?.facts();
        wire::encode(&HostPart::new(before.read_again(Path::new("/")), topology)).ok()
    };
    again().unwrap_or_else(|| host.to_vec())
}

impl GpuWatch {
    fn begin(program: &Path) -> Self {
        Self { program: program.to_owned(), before: Mutex::new(read_gpus(program)) }
    }

    /// The readings of the beginning and of now. The first is `None` if it is not there before `deadline`, or if it was
    /// asked for before; the second is then empty.
    fn around(&self, deadline: Instant) -> Option<(GpuReading, GpuReading)> {
        let until = |reading: &Receiver<GpuReading>| {
            reading.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
        };
        let before = until(&*self.before.lock().ok()?)?;
        Some((before, until(&read_gpus(&self.program)).unwrap_or_default()))
    }
}

/// Starts a thread with a small stack. Signals stay with the thread that waits for the program. False if it cannot start.
pub fn in_thread(work: impl FnOnce() + Send + 'static) -> bool {
    const STACK_BYTES: usize = 256 << 10;
    let held = HeldSignals::back();
    let started = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).is_ok();
    drop(held);
    started
}

/// Starts the program that reads GPUs. The reading comes from a thread, or never; it is empty if the library cannot be
/// loaded or used. The program ends with this process.
fn read_gpus(program: &Path) -> Receiver<GpuReading> {
    let (to, reading) = channel();
    let mut command = Command::new(program);
    command
        .arg(std::process::id().to_string())
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    in_thread(move || {
        let output = command.output().ok().filter(|output| output.status.success());
        let decoded = output.and_then(|output| wire::decode(&output.stdout).ok());
        // A short run does not wait for the reading.
        let _ = to.send(decoded.unwrap_or_default());
    });
    reading
}
