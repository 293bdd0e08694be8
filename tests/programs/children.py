"""Says what its children have of the tool in their environment, when MPI is initialised."""
import os
from mpi4py import MPI

os.system('echo "after: [$LD_PRELOAD] [$PMMPI_SPOOL]"')
MPI.COMM_WORLD.Barrier()
