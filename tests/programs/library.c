/* A library that uses MPI, for a program that uses MPI only through it. */
#include <mpi.h>
#include <stdio.h>

int work(int *argc, char ***argv) {
    int size;
    MPI_Init(argc, argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("size %d\n", size);
    return MPI_Finalize();
}
