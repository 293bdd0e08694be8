/* A program of the standard ABI, compiled only with mpi_abi.h. It compares each call of the library with the MPI
   standard, and fails with a message if they differ.

   abi FOLDER MS MS_PER_RANK: like truth.c, each rank works for MS + rank * MS_PER_RANK ms, and writes
   CLOCK_REALTIME after MPI_Init and before MPI_Finalize to FOLDER/truth.RANK.
   abi thread LEVEL: MPI_Init_thread at this level, and prints the provided level.
   abi abort CODE: rank 0 calls MPI_Abort. */
#include "mpi_abi.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_RANKS = 64, TAG = 5 };

static int rank, size;

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "abi: rank %d: line %d: %s\n", rank, __LINE__, #condition);     \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void sleep_ms(long long ms) {
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* The guards show whether the library writes more or fewer bytes than a status of the ABI has. */
struct guarded {
    int before;
    MPI_Status status;
    int after;
};

static struct guarded guarded(void) {
    struct guarded guarded;
    memset(&guarded, 0x5a, sizeof guarded);
    return guarded;
}

#define CHECK_STATUS(guarded, source, tag)                                                  \
    do {                                                                                    \
        CHECK((guarded).before == 0x5a5a5a5a && (guarded).after == 0x5a5a5a5a);             \
        CHECK((guarded).status.MPI_SOURCE == (source) && (guarded).status.MPI_TAG == (tag)); \
    } while (0)

static void library(void) {
    int major = 0, minor = -1, length = -1;
    CHECK(MPI_Abi_get_version(&major, &minor) == 0 && (major != 1 || minor == 0));
    char version[ABI_MAX_LIBRARY_VERSION_STRING];
    CHECK(MPI_Get_library_version(version, &length) == 0 && length > 0 && strlen(version) <= (size_t)length);
    CHECK(MPI_Pcontrol(1) == 0);
}

static void communicators(void) {
    MPI_Comm duplicate = MPI_COMM_NULL, second = MPI_COMM_NULL, part = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    int number = -1, flag = 0;
    CHECK(MPI_Comm_idup(MPI_COMM_WORLD, &duplicate, &request) == 0 && request != MPI_REQUEST_NULL);
    while (!flag) CHECK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == 0);
    CHECK(request == MPI_REQUEST_NULL && (size_t)duplicate > ABI_LAST_PREDEFINED_HANDLE);
    CHECK(MPI_Comm_rank(duplicate, &number) == 0 && number == rank);
    CHECK(MPI_Comm_dup(duplicate, &second) == 0 && second != duplicate);
    CHECK(MPI_Comm_size(second, &number) == 0 && number == size);
    CHECK(MPI_Comm_set_errhandler(second, MPI_ERRORS_RETURN) == 0);
    /* This rank does not exist. The call returns an error only because of the error handler. */
    CHECK(MPI_Send(&number, 1, MPI_INT, size, TAG, second) != 0);
    CHECK(MPI_Comm_split(duplicate, rank == 0 ? ABI_UNDEFINED : 1, -rank, &part) == 0);
    if (rank == 0) {
        CHECK(part == MPI_COMM_NULL);
    } else {
        CHECK(MPI_Comm_size(part, &number) == 0 && number == size - 1);
        CHECK(MPI_Comm_rank(part, &number) == 0 && number == size - 1 - rank);
        CHECK(MPI_Comm_free(&part) == 0);
    }
    CHECK(MPI_Comm_free(&second) == 0 && second == MPI_COMM_NULL);
    CHECK(MPI_Comm_free(&duplicate) == 0 && duplicate == MPI_COMM_NULL);
}

static void collectives(void) {
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == 0);
    CHECK(MPI_Ibarrier(MPI_COMM_WORLD, &request) == 0);
    struct guarded status = guarded();
    CHECK(MPI_Wait(&request, &status.status) == 0 && request == MPI_REQUEST_NULL);
    CHECK(status.before == 0x5a5a5a5a && status.after == 0x5a5a5a5a);
    int all[MOST_RANKS], own = 100 + rank;
    CHECK(MPI_Allgather(&own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD) == 0);
    for (int i = 0; i < size; i++) CHECK(all[i] == 100 + i);
    memset(all, 0, sizeof all);
    all[rank] = 200 + rank;
    CHECK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD) == 0);
    for (int i = 0; i < size; i++) CHECK(all[i] == 200 + i);
    /* Arguments that only the root needs are missing elsewhere; the last rank is the root. */
    int last = size - 1;
    int *roots = rank == last ? all : NULL;
    CHECK(MPI_Gather(&own, sizeof own, MPI_BYTE, roots, sizeof own, MPI_BYTE, last, MPI_COMM_WORLD) == 0);
    for (int i = 0; rank == last && i < size; i++) CHECK(all[i] == 100 + i);
    /* Rank r sends r + 1 letters. */
    char letters[MOST_RANKS], text[MOST_RANKS * MOST_RANKS];
    int counts[MOST_RANKS], starts[MOST_RANKS], total = 0;
    memset(letters, 'a' + rank, sizeof letters);
    for (int i = 0; i < size; i++) counts[i] = i + 1, starts[i] = total, total += i + 1;
    CHECK(MPI_Gatherv(letters, rank + 1, MPI_CHAR, text, counts, starts, MPI_CHAR, 0, MPI_COMM_WORLD) == 0);
    for (int i = 0; rank == 0 && i < size; i++) CHECK(text[starts[i]] == 'a' + i && text[starts[i] + i] == 'a' + i);
    double number = rank == last ? 0.5 : 0;
    CHECK(MPI_Bcast(&number, 1, MPI_DOUBLE, last, MPI_COMM_WORLD) == 0 && number == 0.5);
}

static void messages(void) {
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, sent = 300 + rank, got = -1, flag = 0;
    MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL;
    /* Not from MPI_ANY_SOURCE: with busy processors and no shared memory, MPICH 5.0.2 sometimes hangs there by itself. */
    CHECK(MPI_Irecv(&got, 1, MPI_INT, previous, ABI_ANY_TAG, MPI_COMM_WORLD, &receiving) == 0);
    CHECK(MPI_Isend(&sent, 1, MPI_INT, next, TAG, MPI_COMM_WORLD, &sending) == 0);
    CHECK(sending != receiving && (size_t)receiving > ABI_LAST_PREDEFINED_HANDLE);
    struct guarded status = guarded();
    while (!flag) CHECK(MPI_Test(&receiving, &flag, &status.status) == 0);
    CHECK(got == 300 + previous && receiving == MPI_REQUEST_NULL);
    CHECK_STATUS(status, previous, TAG);
    CHECK(MPI_Wait(&sending, MPI_STATUS_IGNORE) == 0 && sending == MPI_REQUEST_NULL);
    /* Without a pending request, the status is empty. */
    status = guarded();
    CHECK(MPI_Test(&sending, &flag, &status.status) == 0 && flag);
    CHECK_STATUS(status, ABI_ANY_SOURCE, ABI_ANY_TAG);
    /* A message that no rank has sent yet. */
    CHECK(MPI_Irecv(&got, 1, MPI_INT, previous, TAG + 1, MPI_COMM_WORLD, &receiving) == 0);
    CHECK(MPI_Test(&receiving, &flag, MPI_STATUS_IGNORE) == 0 && !flag && receiving != MPI_REQUEST_NULL);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == 0);
    CHECK(MPI_Send(&sent, 1, MPI_INT, next, TAG + 1, MPI_COMM_WORLD) == 0);
    CHECK(MPI_Wait(&receiving, MPI_STATUS_IGNORE) == 0 && got == 300 + previous);
    /* Against the direction of the ring, one rank after the other. */
    got = -1;
    status = guarded();
    if (rank > 0) {
        CHECK(MPI_Recv(&got, 1, MPI_INT, rank - 1, TAG, MPI_COMM_WORLD, &status.status) == 0 && got == 400);
        CHECK_STATUS(status, rank - 1, TAG);
    }
    got = 400;
    CHECK(MPI_Send(&got, 1, MPI_INT, rank < size - 1 ? rank + 1 : ABI_PROC_NULL, TAG, MPI_COMM_WORLD) == 0);
    status = guarded();
    CHECK(MPI_Recv(&got, 1, MPI_INT, ABI_PROC_NULL, TAG, MPI_COMM_WORLD, &status.status) == 0 && got == 400);
    CHECK_STATUS(status, ABI_PROC_NULL, ABI_ANY_TAG);
}

static int worked(const char *folder, long long ms) {
    long long begin = now_ns();
    library();
    communicators();
    collectives();
    messages();
    sleep_ms(ms);
    long long end = now_ns();
    char path[4096];
    snprintf(path, sizeof path, "%s/truth.%d", folder, rank);
    FILE *file = fopen(path, "w");
    if (!file) return 0;
    fprintf(file, "%lld %lld\n", begin, end);
    return fclose(file) == 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    if (!strcmp(argv[1], "thread")) {
        int required = atoi(argv[2]), provided = -1;
        CHECK(MPI_Init_thread(&argc, &argv, required, &provided) == 0);
        printf("%d for %d\n", provided, required);
        return MPI_Finalize();
    }
    CHECK(MPI_Init(&argc, &argv) == 0);
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank) == 0 && MPI_Comm_size(MPI_COMM_WORLD, &size) == 0);
    CHECK(size <= MOST_RANKS);
    if (!strcmp(argv[1], "abort")) {
        sleep_ms(100);
        if (rank == 0) MPI_Abort(MPI_COMM_WORLD, atoi(argv[2]));
        sleep_ms(100000);
    }
    int done = argc > 3 && worked(argv[1], atoll(argv[2]) + rank * atoll(argv[3]));
    return MPI_Finalize() || !done;
}
