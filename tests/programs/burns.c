/* Keeps cores busy in every way that counters must follow: a thread that was there before MPI_Init, one that is made
   after it, a child, and a child's child. Rank r writes the CPU time that all of them took meanwhile (ns) to argv[1]/cpu.r.
   argv[2]: "kill" ends rank 1 by SIGKILL halfway, "close" closes every descriptor and puts a pipe in its place,
   "touch" enters a region three times and touches 16 new pages in each. */
#ifdef WITH_MPI
#include <mpi.h>
#endif
#ifdef WITH_REGIONS
#include "pmmpi.h"
#endif
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int begun, stop;

static long long cpu_ns(void) {
    struct timespec own;
    struct rusage children;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    return own.tv_sec * 1000000000LL + own.tv_nsec +
           (children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1000000000LL +
           (children.ru_utime.tv_usec + children.ru_stime.tv_usec) * 1000LL;
}

/* CPU time of this thread, not a number of turns: cores differ. */
static void burn(int ms) {
    struct timespec now;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
}

static void *late(void *ms) {
    burn(*(int *)ms);
    return NULL;
}

/* Sleeps until the work begins. */
static void *early(void *ms) {
    while (!begun) usleep(1000);
    burn(*(int *)ms);
    return NULL;
}

static void child(int ms, int depth) {
    pid_t pid = fork();
    if (pid == 0) {
        if (depth) child(ms, depth - 1);
        burn(ms);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static void replace_descriptors(int *pipe_ends) {
    for (int fd = 3; fd < 1024; fd++)
        if (fd != pipe_ends[0] && fd != pipe_ends[1] && fcntl(fd, F_GETFD) >= 0 && fd >= 500)
            dup2(pipe_ends[0], fd);
    if (write(pipe_ends[1], "hello", 5) != 5) abort();
}

#ifdef WITH_REGIONS
static void touch(int pages) {
    size_t bytes = (size_t)pages * 4096;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) abort();
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    pmmpi_begin("touch");
    for (int page = 0; page < pages; page++) memory[(size_t)page * 4096] = 1;
    pmmpi_end("touch");
}
#endif

int main(int argc, char **argv) {
    int rank = 0, ms = 100;
    const char *how = argc > 2 ? argv[2] : "";
    pthread_t before, after;
    pthread_create(&before, NULL, early, &ms);
#ifdef WITH_MPI
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#endif
    long long from_ns = cpu_ns();
    begun = 1;
    pthread_create(&after, NULL, late, &ms);
    int pipe_ends[2];
    if (!strcmp(how, "close")) {
        if (pipe(pipe_ends)) return 1;
        replace_descriptors(pipe_ends);
    }
    child(ms, 1);
    pthread_join(before, NULL);
    pthread_join(after, NULL);
#ifdef WITH_REGIONS
    for (int entry = 0; !strcmp(how, "touch") && entry < 3; entry++) touch(16);
#endif
    long long took_ns = cpu_ns() - from_ns;
    char path[4096];
    snprintf(path, sizeof path, "%s/cpu.%d", argv[1], rank);
    FILE *file = fopen(path, "w");
    if (!file) return 1;
    fprintf(file, "%lld\n", took_ns);
    fclose(file);
    if (!strcmp(how, "kill")) {
        if (rank == 1) raise(SIGKILL);
        pause();
    }
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    char left[6] = "";
    if (!strcmp(how, "close") && (read(pipe_ends[0], left, 5) != 5 || strcmp(left, "hello"))) return 9;
    return 0;
}
