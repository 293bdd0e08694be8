/* A fixed amount of work: two threads, each bound to a hardware thread of its own if the process may use two. argv[1]:
   the steps of each thread, in millions. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static long steps;

/* Each step depends on the step before, so its time does not depend on the compiler. */
static void *work(void *number) {
    uint64_t value = (uintptr_t)number;
    for (long step = 0; step < steps; step++) value = value * 6364136223846793005u + 1442695040888963407u;
    return (void *)(uintptr_t)value;
}

/* The hardware thread with this index in the set; the first again after the last. */
static int nth(const cpu_set_t *set, int index) {
    index %= CPU_COUNT(set);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, set) && index-- == 0) return cpu;
    return -1;
}

int main(int argc, char **argv) {
    steps = argc > 1 ? atol(argv[1]) * 1000000 : 0;
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return 1;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_attr_t bound;
        CPU_ZERO(&one);
        CPU_SET(nth(&allowed, i), &one);
        if (pthread_attr_init(&bound) || pthread_attr_setaffinity_np(&bound, sizeof one, &one)) return 1;
        if (pthread_create(&threads[i], &bound, work, (void *)(uintptr_t)i)) return 1;
    }
    uint64_t sum = 0;
    for (int i = 0; i < 2; i++) {
        void *value;
        if (pthread_join(threads[i], &value)) return 1;
        sum += (uintptr_t)value;
    }
    printf("%llx\n", (unsigned long long)sum);
    return 0;
}
