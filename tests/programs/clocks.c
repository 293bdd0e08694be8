/* Prints the host's name, how far CLOCK_MONOTONIC and CLOCK_BOOTTIME are ahead of CLOCK_REALTIME, and
   CLOCK_REALTIME (ns). */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Of many pairs of readings, the pair with the shortest interruption. */
static long long ahead_ns(clockid_t clock) {
    long long ahead = 0, shortest = -1;
    for (int i = 0; i < 1000; i++) {
        long long before = now_ns(CLOCK_REALTIME), then = now_ns(clock), took = now_ns(CLOCK_REALTIME) - before;
        if (shortest >= 0 && took >= shortest) continue;
        ahead = then - before;
        shortest = took;
    }
    return ahead;
}

int main(void) {
    char name[256];
    gethostname(name, sizeof name);
    printf("%s %lld %lld %lld\n", name, ahead_ns(CLOCK_MONOTONIC), ahead_ns(CLOCK_BOOTTIME), now_ns(CLOCK_REALTIME));
    return 0;
}
