/* Names regions of an MPI program for pmmpi.
 *
 *     pmmpi_begin("solve");
 *     ...
 *     pmmpi_end("solve");
 *
 * Both functions are collective over MPI_COMM_WORLD: every rank calls both, and each call waits for all other ranks.
 * All ranks must call both functions, and all other collective functions on MPI_COMM_WORLD (also the non-blocking
 * ones), in the same order. In each rank, only one thread may call these functions, and MPI must allow MPI calls from
 * this thread. Regions may be nested. pmmpi uses only the first 63 bytes of a name, and records only the first 255
 * regions.
 *
 * The program builds and runs without pmmpi; both functions then do nothing.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef PMMPI_H
#define PMMPI_H

#ifdef __cplusplus
extern "C" {
#endif

/* dlsym under another name, to avoid conflicts with other declarations of dlsym. The reference is weak because a
 * statically linked program has no dlsym. A weak reference to pmmpi's own functions would not work: without -fPIE, the
 * linker sets such a reference to null permanently. */
void *pmmpi_find(void *handle, const char *name) __asm__("dlsym") __attribute__((weak));

typedef void pmmpi_mark(const char *name);

static __inline__ void pmmpi_nothing(const char *name) { (void)name; }

/* Several threads may look up the function at once: all find the same address, and store it in one word, `known`. */
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
