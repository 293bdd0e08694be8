/* Probes of several threads: in each of THREADS threads of a rank, argv[1] entries of "kernel" inside as many of "outer";
   in the main thread 3 entries of "sleep", of 2 ms each; on the last rank alone, one entry of "only here". Prints the
   time in which the main thread slept (ns). */
#include "pmmpi.h"
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 3, TURNS = 1000 };

static int entries;
static volatile double sum;

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void *work(void *none) {
    for (int entry = 0; entry < entries; entry++) {
        pmmpi_probe_begin("outer");
        pmmpi_probe_begin("kernel");
        double own = 0;
        for (int turn = 1; turn < TURNS; turn++) own += 1.0 / turn;
        pmmpi_probe_end("kernel");
        sum = own;
        pmmpi_probe_end("outer");
    }
    return none;
}

int main(int argc, char **argv) {
    int provided, rank, size;
    pmmpi_probe_begin("before MPI_Init");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    entries = argc > 1 ? atoi(argv[1]) : 0;
    pthread_t threads[THREADS];
    for (int thread = 0; thread < THREADS; thread++) pthread_create(&threads[thread], NULL, work, NULL);
    for (int thread = 0; thread < THREADS; thread++) pthread_join(threads[thread], NULL);
    long long begin = now_ns();
    for (int entry = 0; entry < 3; entry++) {
        struct timespec pause = {0, 2000000};
        pmmpi_probe_begin("sleep");
        nanosleep(&pause, NULL);
        pmmpi_probe_end("sleep");
    }
    printf("%lld\n", now_ns() - begin);
    if (rank == size - 1) {
        pmmpi_probe_begin("only here");
        pmmpi_probe_end("only here");
    }
    MPI_Finalize();
    return 0;
}
