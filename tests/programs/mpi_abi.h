/* As much of the standard ABI's mpi.h as the tests need: the constants and layouts of MPI 5.0 ("Application
   Binary Interface" and "Defined Constants"), as in mpi.h of the MPI Forum's mpi-abi-stubs 1.0.0.

   mpi_abi.c, which has a real MPI's mpi.h beside this one, takes the part with names of its own only. */

enum {
    ABI_VERSION = 1,
    ABI_SUBVERSION = 0,

    ABI_COMM_NULL = 0x100,
    ABI_COMM_WORLD = 0x101,
    ABI_COMM_SELF = 0x102,
    ABI_ERRORS_ARE_FATAL = 0x141,
    ABI_ERRORS_RETURN = 0x143,
    ABI_REQUEST_NULL = 0x180,
    ABI_DATATYPE_NULL = 0x200,
    ABI_INT = 0x209,
    ABI_DOUBLE = 0x214,
    ABI_CHAR = 0x243,
    ABI_BYTE = 0x247,
    /* Above them are the handles that a library makes: addresses. */
    ABI_LAST_PREDEFINED_HANDLE = 0xfff,

    ABI_SUCCESS = 0,
    ABI_ERR_OTHER = 16,

    ABI_ANY_SOURCE = -1,
    ABI_ANY_TAG = -2,
    ABI_PROC_NULL = -3,
    ABI_UNDEFINED = -32766,

    ABI_THREAD_SINGLE = 0,
    ABI_THREAD_FUNNELED = 1024,
    ABI_THREAD_SERIALIZED = 2048,
    ABI_THREAD_MULTIPLE = 4096,

    ABI_MAX_LIBRARY_VERSION_STRING = 8192,
};

/* MPI_STATUS_IGNORE is 0, MPI_IN_PLACE is 1. */
#define ABI_IN_PLACE ((void *)1)

typedef struct {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} ABI_Status;

#ifndef ABI_NAMES_ONLY
typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef struct MPI_ABI_Errhandler *MPI_Errhandler;
typedef struct MPI_ABI_Request *MPI_Request;
typedef ABI_Status MPI_Status;

#define MPI_COMM_NULL ((MPI_Comm)ABI_COMM_NULL)
#define MPI_COMM_WORLD ((MPI_Comm)ABI_COMM_WORLD)
#define MPI_COMM_SELF ((MPI_Comm)ABI_COMM_SELF)
#define MPI_ERRORS_RETURN ((MPI_Errhandler)ABI_ERRORS_RETURN)
#define MPI_REQUEST_NULL ((MPI_Request)ABI_REQUEST_NULL)
#define MPI_INT ((MPI_Datatype)ABI_INT)
#define MPI_DOUBLE ((MPI_Datatype)ABI_DOUBLE)
#define MPI_CHAR ((MPI_Datatype)ABI_CHAR)
#define MPI_BYTE ((MPI_Datatype)ABI_BYTE)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_IN_PLACE ABI_IN_PLACE

int MPI_Abi_get_version(int *abi_major, int *abi_minor);
int MPI_Get_library_version(char *version, int *resultlen);
int MPI_Init(int *argc, char ***argv);
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int MPI_Finalize(void);
int MPI_Abort(MPI_Comm comm, int errorcode);
int MPI_Pcontrol(const int level, ...);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_size(MPI_Comm comm, int *size);
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm);
int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request);
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm);
int MPI_Comm_free(MPI_Comm *comm);
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler);
int MPI_Barrier(MPI_Comm comm);
int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request);
int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status);
int MPI_Wait(MPI_Request *request, MPI_Status *status);
int MPI_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);
int MPI_Gather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
               MPI_Datatype recvtype, int root, MPI_Comm comm);
int MPI_Gatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm);
int MPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                  MPI_Datatype recvtype, MPI_Comm comm);
int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
int MPI_Recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status);
int MPI_Isend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
              MPI_Request *request);
int MPI_Irecv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Request *request);
#endif
