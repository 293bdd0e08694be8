/* A pointer chase through a random ring of lines (Sattolo), for a comparison with the kernel latency of pmmpi screen:
   each line on standard input starts one repetition, which prints ns per load. Arguments: bytes of the ring; loads of a
   repetition; 1 for huge pages; the hardware thread. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    size_t lines = strtoull(argv[1], NULL, 10) / LINE;
    long loads = atol(argv[2]) / 16 * 16;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[4]), &set);
    size_t bytes = (lines * LINE + (2 << 20) - 1) >> 21 << 21;
    char *start = aligned_alloc(2 << 20, bytes);
    uint32_t *next = malloc(lines * sizeof *next);
    if (sched_setaffinity(0, sizeof set, &set) || !start || !next) return 1;
    madvise(start, bytes, atoi(argv[3]) ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (size_t at = 0; at < lines; at++) next[at] = at;
    uint64_t random = 88172645463325252u;
    for (size_t at = lines - 1; at > 0; at--) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        size_t other = random % at;
        uint32_t kept = next[at];
        next[at] = next[other], next[other] = kept;
    }
    for (size_t at = 0; at < lines; at++) *(char **)(start + at * LINE) = start + (size_t)next[at] * LINE;
    free(next);
    char *volatile end = start;
    while (getchar() == '\n') {
        char *at = end;
        double begin = now();
        for (long load = 0; load < loads; load += 16) {
            #pragma GCC unroll 16
            for (int step = 0; step < 16; step++) at = *(char **)at;
        }
        end = at;
        printf("%.4f\n", (now() - begin) / loads);
        fflush(stdout);
    }
    return 0;
}
