/* Counts each SIGUSR1 until SIGTERM comes, then says how many there were of both. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

static volatile sig_atomic_t user, ends;

static void count(int signal) {
    if (signal == SIGUSR1) user++;
    else ends++;
}

int main(int argc, char **argv) {
#ifdef WITH_MPI
    MPI_Init(&argc, &argv);
#endif
    struct sigaction action = {.sa_handler = count};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    printf("ready\n");
    fflush(stdout);
    sigset_t none;
    sigemptyset(&none);
    while (!ends) sigsuspend(&none);
    usleep(50000); /* a second copy of the signal would come now */
    printf("user %d term %d\n", (int)user, (int)ends);
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    return 0;
}
