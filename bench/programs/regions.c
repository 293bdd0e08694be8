/* The cost of a region entry in addition to its two barriers. Runs argv[1] pairs of barriers and as many entries,
   alternating every 100. Rank 0 writes to argv[2] the median time (ns) of a pair of barriers, and of an entry. */
#include "pmmpi.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TURN = 100 };

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, turns = atoi(argv[1]) / TURN;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    double *bare = malloc(turns * sizeof *bare), *marked = malloc(turns * sizeof *marked);
    for (int turn = 0; turn < turns; turn++) {
        double begin = MPI_Wtime();
        for (int entry = 0; entry < TURN; entry++) {
            MPI_Barrier(comm);
            MPI_Barrier(comm);
        }
        double middle = MPI_Wtime();
        for (int entry = 0; entry < TURN; entry++) {
            pmmpi_begin("region");
            pmmpi_end("region");
        }
        bare[turn] = middle - begin;
        marked[turn] = MPI_Wtime() - middle;
    }
    qsort(bare, turns, sizeof *bare, ascending);
    qsort(marked, turns, sizeof *marked, ascending);
    if (rank == 0) {
        FILE *file = fopen(argv[2], "w");
        if (!file) MPI_Abort(comm, 1);
        fprintf(file, "%.1f %.1f\n", bare[turns / 2] * 1e9 / TURN, marked[turns / 2] * 1e9 / TURN);
        fclose(file);
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
