//! Reads a node before and after the work: what its kernel and its GPUs count when hardware does not work as it should.

use crate::held_signals::HeldSignals;
use pmmpi::node::{GpuReading, HealthReading, Watched};
use pmmpi::record::wire;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The longest wait for the reading that began before the work. A driver that hangs must not hold up the run.
const PATIENCE: Duration = Duration::from_secs(5);
/// Loading NVIDIA's library may take longer than a short run, and GPUs hardly throttle in it.
const SHORTEST_FOR_GPUS: Duration = Duration::from_secs(1);

/// The reading before the work.
pub struct HealthWatch {
    before: Mutex<Receiver<(HealthReading, GpuReading)>>,
    began: Instant,
    /// The program that reads GPUs; `None` on nodes without NVIDIA's driver.
    gpus: Option<PathBuf>,
}

impl HealthWatch {
    /// Reads the kernel's counts. If the node has NVIDIA's driver, starts the program `gpus` in a thread: the work need not
    /// wait for it. Call this before any counter is opened, because a counter would follow the thread.
    pub fn begin(gpus: Option<&Path>) -> Self {
        let (to, before) = channel();
        let gpus = gpus.filter(|_| Path::new("/sys/module/nvidia").exists()).map(Path::to_owned);
        let reading = HealthReading::read(Path::new("/"));
        let program = gpus.clone();
        let read = move || {
            let of_gpus = program.as_deref().map(read_gpus).unwrap_or_default();
            // Nobody waits for it after a short run.
            let _ = to.send((reading, of_gpus));
        };
        match gpus {
            None => read(),
            // Without a thread there is no reading, and the run has no such counts.
            Some(_) => _ = in_thread(read),
        }
        Self { before: Mutex::new(before), began: Instant::now(), gpus }
    }

    /// Reads again. Gives what was added, and what the node's GPUs are; nothing if it was called before.
    pub fn end(&self) -> Watched {
        let took = self.began.elapsed();
        let before = self.before.lock().ok().and_then(|before| before.recv_timeout(PATIENCE).ok());
        let Some((mut before, of_gpus)) = before else { return Watched::default() };
        let mut after = HealthReading::read(Path::new("/"));
        if let Some(program) = self.gpus.as_deref().filter(|_| took >= SHORTEST_FOR_GPUS) {
            after.join(read_gpus(program).counts);
        }
        before.join(of_gpus.counts);
        let mut watched = Watched { counts: before.until(Some(&after)), ..Watched::default() };
        if let Some(gpus) = of_gpus.gpus {
            watched.inventory.set("gpus", gpus);
        }
        watched
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
