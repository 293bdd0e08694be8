/* Prints how many files a program can open between MPI_Init and MPI_Finalize, and its limit. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define MOST 65536

static int opened[MOST];

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    int count = 0;
    while (count < MOST && (opened[count] = open("/dev/null", O_RDONLY)) >= 0) count++;
    for (int at = 0; at < count; at++) close(opened[at]);
    printf("opened %d of %ld\n", count, (long)limit.rlim_cur);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
