/* A program for musl. With MPI it uses musl_mpi.c. */
#include <stdio.h>
#ifdef WITH_MPI
int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);
#else
#define MPI_Init(argc, argv) 0
#define MPI_Finalize() 0
#endif

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    puts("done");
    return MPI_Finalize();
}
