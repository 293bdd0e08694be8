/* Two barriers and a gather of 200 bytes per rank, as in a program that measures itself. Rank 0 writes one sum to
   argv[1] (ns): the shortest time of any rank in each barrier, plus its own time in the gather. A barrier before each
   of these operations makes the ranks begin it together. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 200 };

static double barrier(MPI_Comm comm) {
    double begin = MPI_Wtime();
    MPI_Barrier(comm);
    double own = MPI_Wtime() - begin, least;
    MPI_Allreduce(&own, &least, 1, MPI_DOUBLE, MPI_MIN, comm);
    return least;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Barrier(comm);
    double took = barrier(comm) + barrier(comm);
    char part[BYTES] = {0};
    char *all = malloc((size_t)size * BYTES);
    int *counts = malloc(size * sizeof *counts), *starts = malloc(size * sizeof *starts);
    for (int at = 0; at < size; at++) counts[at] = BYTES, starts[at] = at * BYTES;
    MPI_Barrier(comm);
    double begin = MPI_Wtime();
    MPI_Gatherv(part, BYTES, MPI_BYTE, all, counts, starts, MPI_BYTE, 0, comm);
    took += MPI_Wtime() - begin;
    if (rank == 0) {
        FILE *file = fopen(argv[1], "w");
        if (!file) MPI_Abort(comm, 1);
        fprintf(file, "%.0f\n", took * 1e9);
        fclose(file);
    }
    MPI_Finalize();
    return 0;
}
