/* The cost of an entry of a probe without content. Runs argv[1] entries in turns of 1000, and as many entries inside
   another probe. Writes to argv[2] the median times (ns) of an entry, and of an entry that encloses another one, and the
   time of the first entry. */
#include "pmmpi.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TURN = 1000 };

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, count, sizeof *values, ascending);
    return values[count / 2] * 1e9 / TURN;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int turns = atoi(argv[1]) / TURN;
    double *alone = malloc(turns * sizeof *alone), *nested = malloc(turns * sizeof *nested);
    double first = MPI_Wtime();
    pmmpi_probe_begin("first");
    pmmpi_probe_end("first");
    first = MPI_Wtime() - first;
    for (int turn = 0; turn < turns; turn++) {
        double begin = MPI_Wtime();
        for (int entry = 0; entry < TURN; entry++) {
            pmmpi_probe_begin("kernel");
            pmmpi_probe_end("kernel");
        }
        double middle = MPI_Wtime();
        for (int entry = 0; entry < TURN; entry++) {
            pmmpi_probe_begin("outer");
            pmmpi_probe_begin("inner");
            pmmpi_probe_end("inner");
            pmmpi_probe_end("outer");
        }
        alone[turn] = middle - begin;
        nested[turn] = MPI_Wtime() - middle;
    }
    FILE *file = fopen(argv[2], "w");
    if (!file) MPI_Abort(MPI_COMM_WORLD, 1);
    fprintf(file, "%.2f %.2f %.0f\n", median(alone, turns), median(nested, turns), first * 1e9);
    fclose(file);
    MPI_Finalize();
    return 0;
}
