"""Prints which of the tool's environment variables its children have after MPI is initialised."""
import os
from mpi4py import MPI

os.system('echo "after: [$LD_PRELOAD] [$PMMPI_SPOOL]"')
MPI.COMM_WORLD.Barrier()
