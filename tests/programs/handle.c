/* Calls MPI through handles of a library that it opens itself, argv[1]: no agent can intercept these calls. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*init)(int *, char ***) = (int (*)(int *, char ***))dlsym(library, "MPI_Init");
    int (*finalize)(void) = (int (*)(void))dlsym(library, "MPI_Finalize");
    init(&argc, &argv);
    usleep(20000);
    printf("handle\n");
    fflush(stdout);
    return finalize();
}
