/* Rank argv[1] comes last: it ends when the file argv[2] exists. The others end at once. Each of them creates the
   file argv[2].RANK.PID, so that a test can stop it while it waits. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank;
    if (argc < 3) return 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == atoi(argv[1])) {
        while (access(argv[2], F_OK) != 0) usleep(1000);
    } else {
        char name[4096];
        snprintf(name, sizeof name, "%s.%d.%d", argv[2], rank, (int)getpid());
        FILE *file = fopen(name, "w");
        if (file == NULL) return 1;
        fclose(file);
    }
    MPI_Finalize();
    return 0;
}
