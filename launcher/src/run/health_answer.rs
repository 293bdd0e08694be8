//! Reads the node's health before and after the work of an MPI program. The agent requests the second reading, because
//! rank 0 gathers the records directly after the work. A thread of this process waits for the request: the program's
//! own process reads nothing.

use crate::own_files;
use pmmpi::node::{Inventory, facts_of_mpi_process};
use pmmpi::record::wire;
use pmmpi::session::shared_memory::{Blob, SharedMemory};
use pmmpi_workload::health_watch::{HealthWatch, PATIENCE_IN_FINALIZE, in_thread};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// Reads the node, and starts the thread. Call it before any counter is opened, because a counter would follow the thread.
pub fn begin(shared: Arc<SharedMemory>) -> Arc<HealthWatch> {
    let watch = Arc::new(HealthWatch::begin(own_files::gpus().as_deref()));
    let (before, live) = (watch.clone(), shared.live());
    let answer = move || {
        let process = live.wait_for_health_request();
        // Without an answer, the run has no such counts.
        let host = shared.take(Blob::Node).unwrap_or_default();
        let mut watched = before.end(&host, PATIENCE_IN_FINALIZE);
        watched.inventory.join(facts_of(&shared, process));
        let _ = wire::encode(&watched).map(|watched| shared.put(Blob::Health, &watched));
        live.announce_health();
    };
    if !in_thread(answer) {
        live.announce_health(); // there is no second reading
    }
    watch
}

/// How the MPI process communicates, and its settings: its MPI library has opened its connections, and has not closed them.
fn facts_of(shared: &SharedMemory, process: u32) -> Inventory {
    let memory = shared.file().metadata();
    let identity = memory.map(|memory| (memory.dev(), memory.ino()));
    identity.map_or_else(|_| Inventory::default(), |of| facts_of_mpi_process(Path::new("/"), process, of))
}
