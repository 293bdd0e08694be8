/* Names regions of an MPI program for pmmpi.
 *
 *     pmmpi_begin("solve");
 *     ...
 *     pmmpi_end("solve");
 *
 * Both are collective: every rank of MPI_COMM_WORLD calls them in the same order, and waits in each for all
 * others. Regions may lie in one another. The first 63 bytes of a name count, and 255 names.
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

static inline void pmmpi_begin(const char *name) {
    static pmmpi_mark *mark;
    static int looked;
    if (!looked && pmmpi_find) {
        mark = (pmmpi_mark *)pmmpi_find((void *)0, "pmmpi_region_begin");
    }
    looked = 1;
    if (mark) {
        mark(name);
    }
}

static inline void pmmpi_end(const char *name) {
    static pmmpi_mark *mark;
    static int looked;
    if (!looked && pmmpi_find) {
        mark = (pmmpi_mark *)pmmpi_find((void *)0, "pmmpi_region_end");
    }
    looked = 1;
    if (mark) {
        mark(name);
    }
}

#ifdef __cplusplus
}
#endif

#endif
