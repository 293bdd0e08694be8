//! The fabric of a plain program's ranks: MPI through rsmpi.
//!
//! An MPI error ends the whole job, as MPI_ERRORS_ARE_FATAL has it: the ranks are the tool's own.

use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};
use pmmpi::fabric::{Backoff, Fabric, FabricError, Wait};

/// A duplicate of MPI_COMM_WORLD.
pub struct World {
    comm: SimpleCommunicator,
}

impl World {
    /// Collective over all ranks.
    pub fn duplicate(universe: &Universe) -> Self {
        Self { comm: universe.world().duplicate() }
    }
}

impl Fabric for World {
    fn rank(&self) -> u32 {
        self.comm.rank().unsigned_abs()
    }

    fn size(&self) -> u32 {
        self.comm.size().unsigned_abs()
    }

    fn barrier(&mut self, wait: Wait, meanwhile: &mut dyn FnMut()) -> Result<(), FabricError> {
        let mut request = self.comm.immediate_barrier();
        let mut backoff = Backoff::new(wait);
        while let Err(pending) = request.test() {
            request = pending;
            if backoff.begins_to_wait() {
                meanwhile();
            }
            backoff.pause();
        }
        Ok(())
    }

    fn send(&mut self, to: u32, message: &[u8]) -> Result<(), FabricError> {
        self.comm.process_at_rank(to as i32).send(message);
        Ok(())
    }

    fn receive(&mut self, from: u32, buffer: &mut [u8]) -> Result<(), FabricError> {
        self.comm.process_at_rank(from as i32).receive_into(buffer);
        Ok(())
    }
}
