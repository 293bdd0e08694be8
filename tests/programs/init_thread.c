/* Calls MPI_Init_thread with the level argv[1], and prints the provided level. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int provided = -1, claimed = -1, is_main = -1;
    MPI_Init_thread(&argc, &argv, atoi(argv[1]), &provided);
    MPI_Query_thread(&claimed);
    MPI_Is_thread_main(&is_main);
    printf("provided %d %d main %d\n", provided, claimed, is_main);
    MPI_Finalize();
    return 0;
}
