/* Counts all signals that a program can handle, except SIGCHLD, until it receives SIGTERM, or the signal whose
   number is the argument. Then it prints the number and the count of each received signal: 10x1 15x1. With a
   second argument it prints into a file of its own in that folder, because a launcher that must end may lose its
   ranks' output. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

#define SIGNALS 65

static volatile sig_atomic_t counts[SIGNALS];

static void count(int signal) { counts[signal]++; }

static void sleep_ms(long ms) {
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) {}
}

int main(int argc, char **argv) {
#ifdef WITH_MPI
    MPI_Init(&argc, &argv);
#endif
    int last = argc > 1 ? atoi(argv[1]) : SIGTERM;
    struct sigaction action = {.sa_handler = count};
    for (int signal = 1; signal < SIGNALS; signal++)
        if (signal != SIGCHLD) sigaction(signal, &action, NULL);
    printf("ready\n");
    fflush(stdout);
    while (!counts[last]) sleep_ms(1);
    sleep_ms(200); /* a second one would arrive within this time */
    FILE *file = stdout;
    char path[1000];
    if (argc > 2) {
        snprintf(path, sizeof path, "%s/counts.%d", argv[2], (int)getpid());
        file = fopen(path, "w");
    }
    const char *gap = "";
    for (int signal = 1; signal < SIGNALS; signal++)
        if (counts[signal]) {
            fprintf(file, "%s%dx%d", gap, signal, (int)counts[signal]);
            gap = " ";
        }
    fprintf(file, "\n");
    fflush(file);
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    return 0;
}
