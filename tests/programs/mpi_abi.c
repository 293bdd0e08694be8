/* A library of the standard ABI (MPI 5.0) on top of a real MPI with another ABI. It supports a few calls, and
   translates the standard's handles, constants and statuses to those of the MPI whose mpi.h it is compiled with.
   It opens that MPI's library so that no other object sees it.

   A handle that this library did not make, or that belongs to another ABI, gives a message and ends the program.

   ABI_LIBRARY_VERSION in the environment: the result of MPI_Get_library_version, instead of the real one.
   ABI_MAJOR: the result of MPI_Abi_get_version, instead of 1. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ABI_NAMES_ONLY
#include "mpi_abi.h"

#ifdef OPEN_MPI
static const char *const real_mpi = "libmpi.so.40";
#else
static const char *const real_mpi = "libmpich.so.12";
#endif

/* A handle of the standard ABI. */
typedef struct object *Handle;

/* PMPI_name of the standard ABI, and the weak MPI_name beside it. */
#define ABI(name, arguments)                                                                          \
    __attribute__((visibility("default"))) int abi_##name arguments __asm__("PMPI_" #name);           \
    __attribute__((visibility("default"), weak, alias("PMPI_" #name))) int abi_weak_##name arguments  \
        __asm__("MPI_" #name);                                                                        \
    int abi_##name arguments

/* The real PMPI_name. */
#define REAL(name) ((__typeof__(&PMPI_##name))real("PMPI_" #name))

static void die(const char *what, const void *about) {
    fprintf(stderr, "libmpi_abi: %s (%p)\n", what, about);
    abort();
}

/* Finds a function in the real library, even if a profiling tool or this library exports the same name. */
static void *real(const char *name) {
    static _Atomic(void *) library;
    void *opened = atomic_load(&library);
    if (!opened) {
        /* RTLD_DEEPBIND: the real library's own MPI calls stay inside it. */
        opened = dlopen(real_mpi, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
        if (!opened) die(dlerror(), NULL);
        atomic_store(&library, opened);
    }
    void *symbol = dlsym(opened, name);
    if (!symbol) die(name, NULL);
    return symbol;
}

#ifdef OPEN_MPI
/* Its predefined handles are addresses in the real library, and this library is not linked with that one. */
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) ((type)real(#global))
#endif

/* Handles that this library made. */
enum { FREE, COMM, REQUEST };
static struct object {
    atomic_int kind;
    union {
        MPI_Comm comm;
        MPI_Request request;
    };
} objects[4096];

static Handle make(int kind) {
    for (Handle object = objects; object < objects + sizeof objects / sizeof *objects; object++) {
        int expected = FREE;
        if (atomic_compare_exchange_strong(&object->kind, &expected, kind)) return object;
    }
    die("too many handles", NULL);
    return NULL;
}

static Handle checked(Handle handle, int kind) {
    uintptr_t from_first = (uintptr_t)handle - (uintptr_t)objects;
    if (from_first >= sizeof objects || from_first % sizeof *objects != 0 || handle->kind != kind)
        die("not a handle of this library", handle);
    return handle;
}

static MPI_Comm real_comm(Handle comm) {
    switch ((uintptr_t)comm) {
    case ABI_COMM_NULL: return MPI_COMM_NULL;
    case ABI_COMM_WORLD: return MPI_COMM_WORLD;
    case ABI_COMM_SELF: return MPI_COMM_SELF;
    default: return checked(comm, COMM)->comm;
    }
}

static MPI_Datatype real_type(Handle type) {
    switch ((uintptr_t)type) {
    case ABI_DATATYPE_NULL: return MPI_DATATYPE_NULL;
    case ABI_INT: return MPI_INT;
    case ABI_DOUBLE: return MPI_DOUBLE;
    case ABI_CHAR: return MPI_CHAR;
    case ABI_BYTE: return MPI_BYTE;
    default: die("not a datatype of this library", type); return MPI_DATATYPE_NULL;
    }
}

static MPI_Errhandler real_errhandler(Handle errhandler) {
    switch ((uintptr_t)errhandler) {
    case ABI_ERRORS_ARE_FATAL: return MPI_ERRORS_ARE_FATAL;
    case ABI_ERRORS_RETURN: return MPI_ERRORS_RETURN;
    default: die("not an error handler of this library", errhandler); return MPI_ERRHANDLER_NULL;
    }
}

static int real_rank(int rank) {
    if (rank == ABI_ANY_SOURCE) return MPI_ANY_SOURCE;
    return rank == ABI_PROC_NULL ? MPI_PROC_NULL : rank;
}

static int abi_rank(int rank) {
    if (rank == MPI_ANY_SOURCE) return ABI_ANY_SOURCE;
    return rank == MPI_PROC_NULL ? ABI_PROC_NULL : rank;
}

static int real_tag(int tag) { return tag == ABI_ANY_TAG ? MPI_ANY_TAG : tag; }

static const void *real_buffer(const void *buffer) { return buffer == ABI_IN_PLACE ? MPI_IN_PLACE : buffer; }

static int abi_code(int code) { return code == MPI_SUCCESS ? ABI_SUCCESS : ABI_ERR_OTHER; }

/* Writes all 32 bytes: a shorter status would be wrong. */
static void give_status(const MPI_Status *real, ABI_Status *status) {
    if (!status) return;
    memset(status, 0, sizeof *status);
    status->MPI_SOURCE = abi_rank(real->MPI_SOURCE);
    status->MPI_TAG = real->MPI_TAG == MPI_ANY_TAG ? ABI_ANY_TAG : real->MPI_TAG;
}

static const int levels[][2] = {{ABI_THREAD_SINGLE, MPI_THREAD_SINGLE},
                                {ABI_THREAD_FUNNELED, MPI_THREAD_FUNNELED},
                                {ABI_THREAD_SERIALIZED, MPI_THREAD_SERIALIZED},
                                {ABI_THREAD_MULTIPLE, MPI_THREAD_MULTIPLE}};

static int level(int value, int from) {
    for (int i = 0; i < 4; i++)
        if (levels[i][from] == value) return levels[i][!from];
    die("no thread level of this library", (void *)(intptr_t)value);
    return -1;
}

static int made(int code, Handle object, Handle *handle) {
    if (code == MPI_SUCCESS)
        *handle = object;
    else
        object->kind = FREE;
    return abi_code(code);
}

/* A new communicator, or MPI_COMM_NULL. */
static int made_comm(int code, Handle object, Handle *handle) {
    if (code != MPI_SUCCESS || object->comm != MPI_COMM_NULL) return made(code, object, handle);
    object->kind = FREE;
    *handle = (Handle)ABI_COMM_NULL;
    return ABI_SUCCESS;
}

ABI(Abi_get_version, (int *major, int *minor)) {
    const char *other = getenv("ABI_MAJOR");
    *major = other ? atoi(other) : ABI_VERSION;
    *minor = *major < 0 ? -1 : ABI_SUBVERSION;
    return ABI_SUCCESS;
}

ABI(Get_library_version, (char *version, int *length)) {
    const char *other = getenv("ABI_LIBRARY_VERSION");
    if (!other) return abi_code(REAL(Get_library_version)(version, length));
    *length = snprintf(version, ABI_MAX_LIBRARY_VERSION_STRING, "%s", other);
    return ABI_SUCCESS;
}

ABI(Init, (int *argc, char ***argv)) { return abi_code(REAL(Init)(argc, argv)); }

ABI(Init_thread, (int *argc, char ***argv, int required, int *provided)) {
    int code = REAL(Init_thread)(argc, argv, level(required, 0), provided);
    *provided = level(*provided, 1);
    return abi_code(code);
}

ABI(Query_thread, (int *provided)) {
    int code = REAL(Query_thread)(provided);
    *provided = level(*provided, 1);
    return abi_code(code);
}

ABI(Finalize, (void)) { return abi_code(REAL(Finalize)()); }

ABI(Abort, (Handle comm, int code)) { return abi_code(REAL(Abort)(real_comm(comm), code)); }

ABI(Pcontrol, (const int level, ...)) { return abi_code(REAL(Pcontrol)(level)); }

ABI(Comm_rank, (Handle comm, int *rank)) { return abi_code(REAL(Comm_rank)(real_comm(comm), rank)); }

ABI(Comm_size, (Handle comm, int *size)) { return abi_code(REAL(Comm_size)(real_comm(comm), size)); }

ABI(Comm_dup, (Handle comm, Handle *duplicate)) {
    Handle object = make(COMM);
    return made_comm(REAL(Comm_dup)(real_comm(comm), &object->comm), object, duplicate);
}

ABI(Comm_split, (Handle comm, int color, int key, Handle *part)) {
    Handle object = make(COMM);
    int real_color = color == ABI_UNDEFINED ? MPI_UNDEFINED : color;
    return made_comm(REAL(Comm_split)(real_comm(comm), real_color, key, &object->comm), object, part);
}

/* MPI_Comm_idup writes the real communicator into the object later; the object exists until it is freed. */
ABI(Comm_idup, (Handle comm, Handle *duplicate, Handle *request)) {
    Handle object = make(COMM), pending = make(REQUEST);
    int code = REAL(Comm_idup)(real_comm(comm), &object->comm, &pending->request);
    made(code, object, duplicate);
    return made(code, pending, request);
}

ABI(Comm_free, (Handle *comm)) {
    Handle object = checked(*comm, COMM);
    int code = REAL(Comm_free)(&object->comm);
    object->kind = FREE;
    *comm = (Handle)ABI_COMM_NULL;
    return abi_code(code);
}

ABI(Comm_set_errhandler, (Handle comm, Handle errhandler)) {
    return abi_code(REAL(Comm_set_errhandler)(real_comm(comm), real_errhandler(errhandler)));
}

ABI(Barrier, (Handle comm)) { return abi_code(REAL(Barrier)(real_comm(comm))); }

ABI(Ibarrier, (Handle comm, Handle *request)) {
    Handle pending = make(REQUEST);
    return made(REAL(Ibarrier)(real_comm(comm), &pending->request), pending, request);
}

static void completed(Handle *request) {
    (*request)->kind = FREE;
    *request = (Handle)ABI_REQUEST_NULL;
}

/* The empty status, as for MPI_REQUEST_NULL. */
static void give_empty_status(ABI_Status *status) {
    MPI_Status empty = {.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG};
    give_status(&empty, status);
}

ABI(Test, (Handle *request, int *flag, ABI_Status *status)) {
    if (*request == (Handle)ABI_REQUEST_NULL) {
        *flag = 1;
        give_empty_status(status);
        return ABI_SUCCESS;
    }
    MPI_Status real_status;
    int code = REAL(Test)(&checked(*request, REQUEST)->request, flag, &real_status);
    if (code == MPI_SUCCESS && *flag) {
        give_status(&real_status, status);
        completed(request);
    }
    return abi_code(code);
}

ABI(Wait, (Handle *request, ABI_Status *status)) {
    if (*request == (Handle)ABI_REQUEST_NULL) {
        give_empty_status(status);
        return ABI_SUCCESS;
    }
    MPI_Status real_status;
    int code = REAL(Wait)(&checked(*request, REQUEST)->request, &real_status);
    if (code == MPI_SUCCESS) {
        give_status(&real_status, status);
        completed(request);
    }
    return abi_code(code);
}

ABI(Bcast, (void *buffer, int count, Handle type, int root, Handle comm)) {
    return abi_code(REAL(Bcast)(buffer, count, real_type(type), root, real_comm(comm)));
}

/* On ranks other than the root, this argument may have any value. */
static MPI_Datatype roots_type(Handle type, int root, Handle comm) {
    int rank;
    REAL(Comm_rank)(real_comm(comm), &rank);
    return rank == root ? real_type(type) : MPI_DATATYPE_NULL;
}

ABI(Gather, (const void *send, int count, Handle type, void *receive, int receive_count, Handle receive_type,
             int root, Handle comm)) {
    return abi_code(REAL(Gather)(real_buffer(send), count, real_type(type), receive, receive_count,
                                 roots_type(receive_type, root, comm), root, real_comm(comm)));
}

ABI(Gatherv, (const void *send, int count, Handle type, void *receive, const int *counts, const int *starts,
              Handle receive_type, int root, Handle comm)) {
    return abi_code(REAL(Gatherv)(real_buffer(send), count, real_type(type), receive, counts, starts,
                                  roots_type(receive_type, root, comm), root, real_comm(comm)));
}

ABI(Allgather, (const void *send, int count, Handle type, void *receive, int receive_count, Handle receive_type,
                Handle comm)) {
    return abi_code(REAL(Allgather)(real_buffer(send), count, real_type(type), receive, receive_count,
                                    real_type(receive_type), real_comm(comm)));
}

ABI(Send, (const void *buffer, int count, Handle type, int rank, int tag, Handle comm)) {
    return abi_code(REAL(Send)(buffer, count, real_type(type), real_rank(rank), tag, real_comm(comm)));
}

ABI(Recv, (void *buffer, int count, Handle type, int rank, int tag, Handle comm, ABI_Status *status)) {
    MPI_Status real_status;
    int code = REAL(Recv)(buffer, count, real_type(type), real_rank(rank), real_tag(tag), real_comm(comm),
                          &real_status);
    if (code == MPI_SUCCESS) give_status(&real_status, status);
    return abi_code(code);
}

ABI(Isend, (const void *buffer, int count, Handle type, int rank, int tag, Handle comm, Handle *request)) {
    Handle pending = make(REQUEST);
    MPI_Request *made_request = &pending->request;
    return made(REAL(Isend)(buffer, count, real_type(type), real_rank(rank), tag, real_comm(comm), made_request),
                pending, request);
}

ABI(Irecv, (void *buffer, int count, Handle type, int rank, int tag, Handle comm, Handle *request)) {
    Handle pending = make(REQUEST);
    MPI_Request *made_request = &pending->request;
    return made(REAL(Irecv)(buffer, count, real_type(type), real_rank(rank), real_tag(tag), real_comm(comm),
                            made_request),
                pending, request);
}
