/* A program of which rank 1 alone enters a region, as one does that means another tool. argv[1] is nothing but a
   mark on its command line. */
#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) MPI_Pcontrol(2);
    sleep(300);
    MPI_Finalize();
    return 0;
}
