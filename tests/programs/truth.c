/* A job with a known true elapsed time: each rank works for argv[2] + rank * argv[3] ms, and writes CLOCK_REALTIME
   after MPI_Init and before MPI_Finalize to argv[1]/truth.RANK. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    long long begin = now_ns();
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long long work = (atoll(argv[2]) + rank * atoll(argv[3])) * 1000000;
    struct timespec pause = {work / 1000000000, work % 1000000000};
    nanosleep(&pause, NULL);
    if (argc > 4) MPI_Barrier(MPI_COMM_WORLD);
    long long end = now_ns();
    char path[4096];
    snprintf(path, sizeof path, "%s/truth.%d", argv[1], rank);
    FILE *file = fopen(path, "w");
    if (file) {
        fprintf(file, "%lld %lld\n", begin, end);
        fclose(file);
    }
    MPI_Finalize();
    return file ? 0 : 1;
}
