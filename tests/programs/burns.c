/* Keeps cores busy in every way that counters must follow: a thread that exists before MPI_Init, one that is
   created after it, a child, and a child's child. Each of the four burns 100 ms and touches PAGES new pages. Rank
   r writes the CPU time of all four (ns) and PAGES to argv[1]/cpu.r.
   argv[2]: "kill" ends rank 1 by SIGKILL halfway, "close" closes each counter's descriptor and puts a pipe in its place,
   "touch" enters a region three times and touches 16 new pages in each. */
#define _GNU_SOURCE
#ifdef WITH_MPI
#include <mpi.h>
#endif
#ifdef WITH_REGIONS
#include "pmmpi.h"
#endif
#include <dirent.h>
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

/* More pages than the rest of the program touches. So a count of 4 to 5 times as many page faults misses none of
   the four workers and counts none twice. */
#define PAGES 2048

static volatile int begun;

static long long cpu_ns(void) {
    struct timespec own;
    struct rusage children;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    return own.tv_sec * 1000000000LL + own.tv_nsec +
           (children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1000000000LL +
           (children.ru_utime.tv_usec + children.ru_stime.tv_usec) * 1000LL;
}

/* Each page faults once, even if the machine supports huge pages. */
static char *new_pages(int pages) {
    size_t bytes = (size_t)pages * sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) abort();
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

static void touch_each(char *memory, int pages) {
    for (int page = 0; page < pages; page++) memory[(size_t)page * sysconf(_SC_PAGESIZE)] = 1;
}

static long long thread_cpu_ns(void) {
    struct timespec own;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
    return own.tv_sec * 1000000000LL + own.tv_nsec;
}

/* CPU time of this thread, not a number of loops, because cores differ in speed. Counted from here: the thread that
   exists before MPI_Init has used CPU time already. */
static void burn(int ms) {
    long long until_ns = thread_cpu_ns() + ms * 1000000LL;
    touch_each(new_pages(PAGES), PAGES);
    while (thread_cpu_ns() < until_ns);
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

/* Counters may have descriptors above the program's own limit, so it raises the limit first. */
static void replace_counters(int *pipe_ends) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char target[64] = "";
        if (readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1) > 0 && strstr(target, "perf_event"))
            dup2(pipe_ends[0], atoi(entry->d_name));
    }
    if (folder) closedir(folder);
    if (write(pipe_ends[1], "hello", 5) != 5) abort();
}

#ifdef WITH_REGIONS
static void touch(int pages) {
    char *memory = new_pages(pages);
    pmmpi_begin("touch");
    touch_each(memory, pages);
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
        replace_counters(pipe_ends);
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
    fprintf(file, "%lld %d\n", took_ns, PAGES);
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
