//! Reads what the kernel counts when hardware does not work as it should, before and after the work of an MPI program.
//!
//! The agent asks for the second reading, because the gather follows the work at once. A thread of this process waits
//! for that: the program's own process reads nothing.

use pmmpi::node::{HealthCount, HealthReading};
use pmmpi::record::wire;
use pmmpi::session::shared_memory::{Blob, SharedMemory};
use pmmpi_workload::held_signals::HeldSignals;
use std::path::Path;
use std::sync::Arc;

/// The first reading of the node.
pub struct HealthWatch(HealthReading);

impl HealthWatch {
    /// Reads the node, and starts the thread. Call it before any counter is opened, because a counter would follow the
    /// thread.
    pub fn begin(shared: Arc<SharedMemory>) -> Self {
        let watch = Self(HealthReading::read(Path::new("/")));
        let (before, live) = (watch.0.clone(), shared.live());
        let answer = move || {
            live.wait_for_health_request();
            let counts = wire::encode(&Self(before).counts());
            // Without an answer, the run has no such counts.
            let _ = counts.map(|counts| shared.put(Blob::Health, &counts));
            live.announce_health();
        };
        // Signals are for the first thread, which waits for the program.
        let held = HeldSignals::back();
        if std::thread::Builder::new().stack_size(STACK_BYTES).spawn(answer).is_err() {
            live.announce_health(); // there is no second reading
        }
        drop(held);
        watch
    }

    /// What was added since.
    pub fn counts(&self) -> Vec<HealthCount> {
        self.0.until(Some(&HealthReading::read(Path::new("/"))))
    }
}

const STACK_BYTES: usize = 128 << 10;
