/* Names regions and probes of an MPI program for pmmpi.
 *
 *     pmmpi_begin("solve");
 *     ...
 *     pmmpi_end("solve");
 *
 * Both functions are collective over MPI_COMM_WORLD: every rank calls both, and each call waits for all other ranks.
 * All ranks must call both functions, and all other collective functions on MPI_COMM_WORLD (also the non-blocking
 * ones), in the same order. In each rank, only one thread may call these functions, and MPI must allow MPI calls from
 * this thread. Regions may be nested, 64 deep. pmmpi uses only the first 63 bytes of a name, and records only the first
 * 255 regions.
 *
 * A probe is a short section of one thread. Its two functions are not collective: each thread enters and leaves on its
 * own, without a barrier and without a system call. There are two exceptions: when a thread enters its first probe,
 * pmmpi opens counters; and when a thread first uses a name, pmmpi takes memory for this name.
 *
 *     pmmpi_probe_begin("kernel");
 *     ...
 *     pmmpi_probe_end("kernel");
 *
 * The same thread must call both functions. pmmpi records entries between MPI_Init and MPI_Finalize. Probes may be
 * nested, 32 deep. pmmpi uses only the first 63 bytes of a name, and records only the first 254 names of a thread.
 *
 * The program builds and runs without pmmpi; all these functions then do nothing.
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

typedef void pmmpi_probe_mark(const char *name, unsigned long bytes);

static __inline__ void pmmpi_no_probe(const char *name, unsigned long bytes) {
    (void)name;
    (void)bytes;
}

/* If the name is a string literal, the compiler knows its length. */
static __inline__ void pmmpi_probe_call(pmmpi_probe_mark **known, const char *function, const char *name) {
    pmmpi_probe_mark *mark = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (!mark) {
        *(void **)&mark = pmmpi_find ? pmmpi_find((void *)0, function) : (void *)0;
        if (!mark) {
            mark = pmmpi_no_probe;
        }
        __atomic_store_n(known, mark, __ATOMIC_RELAXED);
    }
    mark(name, __builtin_strlen(name));
}

static __inline__ void pmmpi_probe_begin(const char *name) {
    static pmmpi_probe_mark *known;
    pmmpi_probe_call(&known, "pmmpi_probe_enter", name);
}

static __inline__ void pmmpi_probe_end(const char *name) {
    static pmmpi_probe_mark *known;
    pmmpi_probe_call(&known, "pmmpi_probe_leave", name);
}

#ifdef __cplusplus
}
#endif

#endif
