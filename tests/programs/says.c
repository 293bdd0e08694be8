/* C: sleeps 20 ms and prints rank and size. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    usleep(20000);
    printf("rank %d of %d\n", rank, size);
    MPI_Finalize();
    return 0;
}
