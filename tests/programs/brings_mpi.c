/* A library that needs MPI. The tests preload it into every process, like an I/O tool. It does nothing. */
#include <mpi.h>

int brings_mpi_size(void) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}
