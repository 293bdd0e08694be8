/* Prints which of the tool's environment variables its children have, before MPI_Init and after it. The child
   argv[1] is an MPI program of one rank; it is not the rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void child(const char *when, const char *program) {
    char command[4096];
    const char *alone = "env -u PMI_FD -u PMI_RANK -u PMI_SIZE -u PMIX_NAMESPACE -u PMIX_RANK -u OMPI_COMM_WORLD_RANK";
    snprintf(command, sizeof command, "echo \"%s: [$LD_PRELOAD] [$PMMPI_SPOOL]\"; %s %s > /dev/null 2>&1; true", when,
             program ? alone : "", program ? program : "");
    if (system(command) != 0) exit(1);
}

int main(int argc, char **argv) {
    int rank;
    child("before", argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    child("after", NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
