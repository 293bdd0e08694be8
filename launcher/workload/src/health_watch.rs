//! Reads a node before and after the work: what its kernel and its GPUs count when hardware does not work as it should.

use crate::held_signals::HeldSignals;
use pmmpi::node::{GpuReading, HealthReading, Inventory, NodeFacts, NodeSettings, Watched};
use pmmpi::record::{HostPart, wire};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The longest wait for the GPUs that were read beside the work. A driver that hangs must not hold up the run.
const PATIENCE: Duration = Duration::from_secs(5);
/// In a shorter run, facts hardly change and GPUs hardly throttle, and loading NVIDIA's library may take longer than the
/// run.
const SHORTEST: Duration = Duration::from_secs(1);

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

    /// Reads again. Gives what was added, what the node's GPUs are, and which facts have changed since `host` was read.
    /// `host` is a [`HostPart`] in wire form. A short run does not wait for GPUs and facts.
    pub fn end(&self, host: &[u8]) -> Watched {
        let took = self.began.elapsed();
        let (mut before, mut after) = (self.kernel.clone(), HealthReading::read(Path::new("/")));
        let mut watched = Watched::default();
        if let Some(gpus) = self.gpus.as_ref().filter(|_| took >= SHORTEST)
            && let Some(reading) = gpus.before()
        {
            before.join(reading.counts);
            after.join(read_gpus(&gpus.program).counts);
            if let Some(kinds) = reading.gpus {
                watched.inventory.set("gpus", kinds);
            }
        }
        if took >= SHORTEST
            && let Some(changed) = changed_since(host)
        {
            watched.inventory.set_changed(changed);
        }
        watched.counts = before.until(Some(&after));
        watched
    }
}

/// The facts of `host` as they are now, in wire form; the same if they cannot be read.
pub fn read_again(host: &[u8]) -> Vec<u8> {
    let again = || {
        let (before, topology) = wire::decode::<HostPart>(host).ok()?.facts();
        wire::encode(&HostPart::new(now(&before), topology)).ok()
    };
    again().unwrap_or_else(|| host.to_vec())
}

/// Which facts have changed since `host` was read.
fn changed_since(host: &[u8]) -> Option<String> {
    let (before, _) = wire::decode::<HostPart>(host).ok()?.facts();
    before.changed_until(&now(&before))
}

/// Only a boot changes the hardware.
fn now(before: &NodeFacts) -> NodeFacts {
    let root = Path::new("/");
    let hardware = before.hardware.clone();
    NodeFacts { hardware, settings: NodeSettings::read(root), inventory: Inventory::read(root) }
}

impl GpuWatch {
    fn begin(program: &Path) -> Self {
        let (to, before) = channel();
        let path = program.to_owned();
        // Without a thread there is no reading, and the run has no such counts.
        in_thread(move || {
            // A short run is over before.
            let _ = to.send(read_gpus(&path));
        });
        Self { program: program.to_owned(), before: Mutex::new(before) }
    }

    /// The reading of the beginning; `None` if it takes too long, or if it was asked for before.
    fn before(&self) -> Option<GpuReading> {
        self.before.lock().ok()?.recv_timeout(PATIENCE).ok()
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

/// Nothing if the library cannot be loaded or used.
fn read_gpus(program: &Path) -> GpuReading {
    let mut command = Command::new(program);
    let output = command.env_remove("LD_PRELOAD").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.ok().filter(|output| output.status.success());
    output.and_then(|output| wire::decode(&output.stdout).ok()).unwrap_or_default()
}
