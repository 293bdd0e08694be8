/* Makes the double of NVIDIA's library count more and a network link slower, and works for longer than a second. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    usleep(1200000);
    if (rank == 0) {
        FILE *file = fopen(getenv("NVML_DOUBLE"), "w");
        if (!file || fprintf(file, "2500000000 12\n") < 0 || fclose(file))
            MPI_Abort(MPI_COMM_WORLD, 1);
        file = fopen(getenv("LINK_RATE"), "w");
        if (!file || fprintf(file, "100 Gb/sec (2X HDR)\n") < 0 || fclose(file))
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
