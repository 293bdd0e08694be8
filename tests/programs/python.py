# mpi4py, which opens MPI with dlopen(RTLD_LOCAL): sleeps 20 ms and prints rank and size.
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
time.sleep(0.02)
print(f"rank {world.Get_rank()} of {world.Get_size()}", flush=True)
