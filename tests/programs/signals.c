/* Without an argument: counts each SIGUSR1 until SIGTERM comes, then says how many there were of both.
   With one: waits for the signal of that number, and says that it came. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

static volatile sig_atomic_t user, ends, awaited;

static void count(int signal) {
    if (signal == awaited || signal == SIGTERM) ends++;
    else user++;
}

int main(int argc, char **argv) {
#ifdef WITH_MPI
    MPI_Init(&argc, &argv);
#endif
    struct sigaction action = {.sa_handler = count};
    awaited = argc > 1 ? atoi(argv[1]) : 0;
    if (awaited) {
        sigaction(awaited, &action, NULL);
    } else {
        sigaction(SIGUSR1, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
    }
    printf("ready\n");
    fflush(stdout);
    while (!ends) usleep(1000);
    if (awaited) {
        printf("got %d\n", (int)awaited);
    } else {
        usleep(50000); /* a second copy of the signal would come now */
        printf("user %d term %d\n", (int)user, (int)ends);
    }
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    return 0;
}
