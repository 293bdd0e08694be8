/* A job with a known last rank: each rank works for argv[1] ms, and rank argv[2] for argv[3] ms more. If argv[3]
   is 0, all ranks leave a barrier together. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
    int rank;
    if (argc < 4) return 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long long ms = atoll(argv[1]) + (rank == atoi(argv[2]) ? atoll(argv[3]) : 0);
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
    if (atoll(argv[3]) == 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
