//! The fabric of a plain program's ranks: MPI through rsmpi.
//!
//! An MPI error ends the whole job, as MPI_ERRORS_ARE_FATAL has it: the ranks are the tool's own.

use mpi::Count;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Root};
use pmmpi::fabric::{Backoff, Broadcast, Fabric, FabricError, Wait};

/// A duplicate of MPI_COMM_WORLD.
pub struct World {
    comm: SimpleCommunicator,
}

/// More bytes than an MPI count holds.
const TOO_LARGE: FabricError = FabricError { call: "MPI_Gatherv", code: -1 };

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

    fn gather(&mut self, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, FabricError> {
        let root = self.comm.process_at_rank(0);
        let count = Count::try_from(bytes.len()).map_err(|_| TOO_LARGE)?;
        if self.comm.rank() != 0 {
            root.gather_into(&count);
            root.gather_varcount_into(bytes);
            return Ok(None);
        }
        let mut counts: Vec<Count> = vec![0; self.size() as usize];
        root.gather_into_root(&count, &mut counts[..]);
        let mut starts = Vec::with_capacity(counts.len());
        let mut total: Count = 0;
        for count in &counts {
            starts.push(total);
            total = total.checked_add(*count).ok_or(TOO_LARGE)?;
        }
        let mut all = vec![0u8; total.unsigned_abs() as usize];
        let mut parts = PartitionMut::new(&mut all[..], counts.clone(), &starts[..]);
        root.gather_varcount_into_root(bytes, &mut parts);
        let part = |(start, count): (&Count, &Count)| all[*start as usize..(start + count) as usize].to_vec();
        Ok(Some(starts.iter().zip(&counts).map(part).collect()))
    }
}

impl Broadcast for World {
    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), FabricError> {
        self.comm.process_at_rank(0).broadcast_into(bytes);
        Ok(())
    }
}
