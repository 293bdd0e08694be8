/* A program that enters its regions wrongly: each rank ends a region that it did not begin; then rank 1 alone
   begins one. argv[1] only marks the command line. */
#include "pmmpi.h"
#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pmmpi_end("never begun");
    pmmpi_begin("outer");
    if (rank == 1) pmmpi_begin("alone");
    sleep(300);
    MPI_Finalize();
    return 0;
}
