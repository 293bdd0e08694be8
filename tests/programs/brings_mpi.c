/* A library that needs MPI and is preloaded into everything, as tools for I/O are. It does nothing. */
#include <mpi.h>

int brings_mpi_size(void) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}
