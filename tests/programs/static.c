/* Statically linked, with an MPI_Init of its own: nothing can be preloaded into it. */
#include <stdio.h>
#include <unistd.h>

int MPI_Init(int *argc, char ***argv) { return argc && argv ? 0 : 1; }

int main(int argc, char **argv) {
    int code = MPI_Init(&argc, &argv);
    usleep(20000);
    printf("static\n");
    return code;
}
