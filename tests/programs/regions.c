/* Regions with known true times: rank r writes CLOCK_REALTIME around each entry to argv[1]/truth.r, as "name begin
   end". There are argv[2] entries of argv[3] ms, and longer on higher ranks. If argv[2] is negative, each rank
   kills itself after -argv[2] entries. */
#include "pmmpi.h"
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static FILE *truth;
static int rank;

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void work(const char *name, int ms) {
    long long begin = now_ns(), ns = (ms + rank) * 1000000LL;
    struct timespec pause = {ns / 1000000000, ns % 1000000000};
    nanosleep(&pause, NULL);
    fprintf(truth, "%s %lld %lld\n", name, begin, now_ns());
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int entries = atoi(argv[2]), ms = atoi(argv[3]);
    char path[4096];
    snprintf(path, sizeof path, "%s/truth.%d", argv[1], rank);
    truth = fopen(path, "w");
    if (!truth) return 1;
    for (int entry = 0; entry < abs(entries); entry++) {
        pmmpi_begin("step");
        long long begin = now_ns();
        work("outside", 0);
        pmmpi_begin("solve");
        work("solve", ms);
        pmmpi_end("solve");
        fprintf(truth, "step %lld %lld\n", begin, now_ns());
        pmmpi_end("step");
    }
    if (entries < 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        raise(SIGKILL);
    }
    MPI_Pcontrol(2);
    work("MPI_Pcontrol(2)", ms);
    MPI_Pcontrol(3, "a name", 1.5);
    work("MPI_Pcontrol(3)", ms);
    MPI_Pcontrol(-3);
    MPI_Pcontrol(0);
    pmmpi_begin("unseen");
    pmmpi_end("unseen");
    MPI_Pcontrol(1);
    pmmpi_end("never begun");
    pmmpi_begin("until the end");
    work("until the end", ms);
    fclose(truth);
    MPI_Finalize();
    return 0;
}
