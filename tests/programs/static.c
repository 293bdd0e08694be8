/* Statically linked, with its own MPI_Init: the loader can preload nothing into it. */
#include <stdio.h>
#include <unistd.h>

int MPI_Init(int *argc, char ***argv) { return argc && argv ? 0 : 1; }

int main(int argc, char **argv) {
    int code = MPI_Init(&argc, &argv);
    usleep(20000);
    printf("static\n");
    return code;
}
