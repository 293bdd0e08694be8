/* Names regions of an MPI program for pmmpi.
 *
 *     pmmpi_begin("solve");
 *     ...
 *     pmmpi_end("solve");
 *
 * Both are collective over MPI_COMM_WORLD: every rank calls them, in one order with its other collective calls
 * there (non-blocking ones too), and waits in each for all others. Of a rank's threads one calls them, and may call MPI. Regions may lie in one another. The first 63
 * bytes of a name count, and 255 names.
 *
 * The program needs nothing to be built or run with: without pmmpi both do nothing.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef PMMPI_H
#define PMMPI_H

#ifdef __cplusplus
extern "C" {
#endif

/* dlsym, under a name that no other declaration of it can contradict; weak, because a statically linked
 * program has none. A weak reference to pmmpi's own functions would not do: without -fPIE the linker makes
 * it null for good. */
void *pmmpi_find(void *handle, const char *name) __asm__("dlsym") __attribute__((weak));

typedef void pmmpi_mark(const char *name);

static __inline__ void pmmpi_nothing(const char *name) { (void)name; }

/* One word, which several threads may look up at once and all find the same. */
static __inline__ void pmmpi_call(pmmpi_mark **known, const char *function, const char *name) {
    pmmpi_mark *mark = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (!mark) {
        *(void **)&mark = pmmpi_find ? pmmpi_find((void *)0, function) : (void *)0;
        if (!mark) {
            mark = pmmpi_nothing;
        }
        __atomic_store_n(known, mark, __ATOMIC_RELAXED);
    }
    mark(name);
}

static __inline__ void pmmpi_begin(const char *name) {
    static pmmpi_mark *known;
    pmmpi_call(&known, "pmmpi_region_begin", name);
}

static __inline__ void pmmpi_end(const char *name) {
    static pmmpi_mark *known;
    pmmpi_call(&known, "pmmpi_region_end", name);
}

#ifdef __cplusplus
}
#endif

#endif
