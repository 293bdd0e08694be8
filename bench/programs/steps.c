/* argv[1] steps. In each step every rank computes, and then takes part in an MPI_Allreduce. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int steps = argc > 1 ? atoi(argv[1]) : 100;
    double sum = 0, all = 0;
    for (int step = 0; step < steps; step++) {
        for (int i = 1; i < 400000; i++) sum += 1.0 / ((double)i * i + step);
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return all < 0;
}
